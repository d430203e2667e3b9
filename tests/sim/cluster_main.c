/* cluster_sim: coordinators, workers and jobs over a simulated network, seed after seed.
 *
 *   cluster_sim [--seeds N] [--first S] [--verbose]
 *
 * The first seed that does not hold is printed and ends the run with 1; the same seed with --verbose says how it came.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_world.h"

int main(int argc, char **argv) {
    unsigned long long seeds = 100, first = 1;
    bool verbose = false;
    cluster_counts n = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            seeds = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
            first = strtoull(argv[++i], NULL, 10);
        } else {
            fprintf(stderr, "usage: cluster_sim [--seeds N] [--first S] [--verbose]\n");
            return 2;
        }
    }
    for (unsigned long long s = first; s < first + seeds; s++) {
        const char *why;
        if (cluster_run(s, verbose, &why, &n)) continue;
        printf("seed %llu: %s\n(build/cluster_sim --seeds 1 --first %llu --verbose)\n", s, why, s);
        return 1;
    }
    printf("%llu seeds from %llu held: of %llu jobs %llu finished, %llu failed; %llu restarts, %llu hosts of a region "
           "whose "
           "others went on; %llu changes of leader\n",
           seeds, first, (unsigned long long)n.jobs, (unsigned long long)n.finished, (unsigned long long)n.failed,
           (unsigned long long)n.restarts, (unsigned long long)n.alone, (unsigned long long)n.leaders);
    if (seeds >= 100 && (n.finished * 4 < n.jobs || n.restarts < n.jobs || n.alone < n.jobs / 10)) {
        printf("too few jobs finish, or too few restart, or none alone: this shows nothing\n");
        return 1;
    }
    return 0;
}
