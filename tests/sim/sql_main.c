/* sql_sim: SQL jobs on the seeded scheduler and the simulated disk, seed after seed.
 *
 *   sql_sim [--seeds N] [--first S] [--job S] [--undisturbed] [--batch-rows 1|7|4096] [--point NAME] [--skewed]
 *           [--no-follow] [--verbose]
 *
 * --job: the script and input of seed S, under the schedules and troubles of all others. The first seed that does not
 * hold is printed, with the command that shows it alone, and ends the run with 1. At the end it says what the seeds
 * have met; a run of 500 disturbed seeds that has met too little fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "sql_world.h"

static int usage(void) {
    fprintf(stderr, "usage: sql_sim [--seeds N] [--first S] [--job S] [--undisturbed] [--batch-rows 1|7|4096] [--point "
                    "NAME] [--skewed] [--no-follow] [--verbose]\n");
    return 2;
}

static int point_of(const char *name) {
    for (int i = 0; i < CK_FAULT_COUNT; i++)
        if (strcmp(ck_fault_name((ck_fault_point)i), name) == 0) return i;
    return -1;
}

static bool take_flag(const char *arg, sql_world_options *o) {
    if (strcmp(arg, "--verbose") == 0)
        o->verbose = true;
    else if (strcmp(arg, "--undisturbed") == 0)
        o->undisturbed = true;
    else if (strcmp(arg, "--skewed") == 0)
        o->input.skewed = true;
    else if (strcmp(arg, "--no-follow") == 0)
        o->input.no_follow = true;
    else
        return false;
    return true;
}

static void print_stats(const sql_world_stats *s, bool undisturbed) {
    if (undisturbed) return;
    printf("%llu lives: ", (unsigned long long)s->lives);
    for (int i = 0; i < END_WRONG; i++) printf("%llu %s, ", (unsigned long long)s->ends[i], end_names[i]);
    printf(
        "%llu checkpoints given up, %llu lives began with deltas, %llu of them over an abort, %llu crashes in calls\n"
        "crashes by point:",
        (unsigned long long)s->given_up, (unsigned long long)s->restored_deltas, (unsigned long long)s->over_abort,
        (unsigned long long)s->calls);
    for (int i = 0; i < CK_FAULT_COUNT; i++)
        if (s->points[i]) printf(" %s %llu", ck_fault_name((ck_fault_point)i), (unsigned long long)s->points[i]);
    printf("\n");
}

/* A simulator that disturbs nothing proves nothing. */
static int judge(const sql_world_stats *s, const sql_world_options *o) {
    int silent = 0;
    if (o->undisturbed || o->job || o->fault_point >= 0 || s->seeds < 500) return 0;
    for (int i = 0; i < CK_FAULT_COUNT; i++) {
        if (s->points[i]) continue;
        printf("no crash came at %s\n", ck_fault_name((ck_fault_point)i));
        silent++;
    }
    if (!s->given_up || !s->restored_deltas || !s->over_abort || !s->calls) printf("something never came\n"), silent++;
    return silent ? 1 : 0;
}

/* The command that shows one seed again. */
static void print_command(unsigned long long seed, const sql_world_options *o) {
    printf("(build/sql_sim --seeds 1 --first %llu --verbose", seed);
    if (o->job) printf(" --job %llu", (unsigned long long)o->job);
    if (o->input.batch_rows) printf(" --batch-rows %d", o->input.batch_rows);
    if (o->fault_point >= 0) printf(" --point %s", ck_fault_name((ck_fault_point)o->fault_point));
    printf("%s%s%s)\n", o->undisturbed ? " --undisturbed" : "", o->input.skewed ? " --skewed" : "",
           o->input.no_follow ? " --no-follow" : "");
}

int main(int argc, char **argv) {
    unsigned long long seeds = 100, first = 1;
    sql_world_options o = {.fault_point = -1};
    sql_world_stats stats = {0};
    for (int i = 1; i < argc; i++) {
        if (take_flag(argv[i], &o)) continue;
        if (i + 1 == argc) return usage();
        if (strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--job") == 0)
            o.job = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--batch-rows") == 0)
            o.input.batch_rows = atoi(argv[++i]);
        else if (strcmp(argv[i], "--point") == 0 && (o.fault_point = point_of(argv[i + 1])) >= 0)
            i++;
        else
            return usage();
    }
    for (unsigned long long s = first; s < first + seeds; s++) {
        const char *why;
        if (sql_world_run(s, &o, &stats, &why)) continue;
        printf("seed %llu: %s\n", s, why);
        print_command(s, &o);
        return 1;
    }
    print_stats(&stats, o.undisturbed);
    printf("%llu seeds from %llu held\n", seeds, first);
    return judge(&stats, &o);
}
