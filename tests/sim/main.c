/* sim: runs model jobs on the seeded scheduler and the simulated disk, seed after seed, and checks what was committed.
 *
 *   sim [--seeds N] [--first S] [--batch-rows 1|7|4096] [--point NAME] [--no-checkpoints] [--verbose]
 *
 * The first seed that does not hold is printed and ends the run with 1; the same seed with --verbose says how it came.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "world.h"

static int usage(void) {
    fprintf(
        stderr,
        "usage: sim [--seeds N] [--first S] [--batch-rows 1|7|4096] [--point NAME] [--no-checkpoints] [--verbose]\n");
    return 2;
}

static int point_of(const char *name) {
    for (int i = 0; i < CK_FAULT_COUNT; i++)
        if (strcmp(ck_fault_name((ck_fault_point)i), name) == 0) return i;
    return -1;
}

int main(int argc, char **argv) {
    unsigned long long seeds = 100, first = 1;
    world_options o = {.fault_point = -1};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            o.verbose = true;
        else if (strcmp(argv[i], "--no-checkpoints") == 0)
            o.no_checkpoints = true;
        else if (i + 1 == argc)
            return usage();
        else if (strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--batch-rows") == 0)
            o.batch_rows = atoi(argv[++i]);
        else if (strcmp(argv[i], "--point") == 0 && (o.fault_point = point_of(argv[i + 1])) >= 0)
            i++;
        else
            return usage();
    }
    for (unsigned long long s = first; s < first + seeds; s++) {
        const char *why;
        if (world_run(s, &o, &why)) continue;
        printf("seed %llu: %s\n(build/sim --seeds 1 --first %llu --verbose", s, why, s);
        if (o.batch_rows) printf(" --batch-rows %d", o.batch_rows);
        if (o.fault_point >= 0) printf(" --point %s", ck_fault_name((ck_fault_point)o.fault_point));
        printf("%s)\n", o.no_checkpoints ? " --no-checkpoints" : "");
        return 1;
    }
    printf("%llu seeds from %llu held\n", seeds, first);
    return 0;
}
