/* sql_sim: SQL jobs on the seeded scheduler and the simulated disk, seed after seed.
 *
 *   sql_sim [--seeds N] [--first S] [--job S] [--undisturbed] [--batch-rows 1|7|4096] [--point NAME] [--skewed]
 *           [--small] [--no-follow] [--allocations STEP] [--allocation N] [--syncs STEP] [--sync N:ERRNO[:lasting]] [--verbose]
 *
 * --allocations: for each seed, every STEP-th allocation of the first life fails, one in each run. --syncs: so does
 * every STEP-th write or fsync, with ENOSPC and with EIO, every other one with all that follow. --job: the script
 * and input of seed S, under the schedules and troubles of all others. The first seed that does not hold is printed,
 * with the command that shows it alone, and ends the run with 1. At the end it says what the seeds have met; a run of
 * 300 disturbed seeds that has met too little fails. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "sql_world.h"

enum { JUDGED_SEEDS = 300, VISITS_MAX = 300 };

static int usage(void) {
    fprintf(stderr, "usage: sql_sim [--seeds N] [--first S] [--job S] [--undisturbed] [--batch-rows 1|7|4096] [--point "
                    "NAME] [--skewed] [--small] [--no-follow] [--allocations STEP] [--allocation N] [--syncs STEP] [--sync "
                    "N:ERRNO[:lasting]] [--verbose]\n");
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
    else if (strcmp(arg, "--small") == 0)
        o->input.small = true;
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
    printf("%llu checkpoints given up, %llu lives began with deltas, %llu of them over an abort, %llu with in-flight "
           "files, %llu with materialisations, %llu crashes in calls, "
           "%llu allocations failed, %llu writes or fsyncs failed, %llu ran one region of several\n"
           "crashes by point:",
           (unsigned long long)s->given_up, (unsigned long long)s->restored_deltas, (unsigned long long)s->over_abort,
           (unsigned long long)s->inflight, (unsigned long long)s->materialised, (unsigned long long)s->calls,
           (unsigned long long)s->memory,
           (unsigned long long)s->disk, (unsigned long long)s->by_region);
    for (int i = 0; i < CK_FAULT_COUNT; i++)
        if (s->points[i]) printf(" %s %llu", ck_fault_name((ck_fault_point)i), (unsigned long long)s->points[i]);
    printf("\n");
}

static bool is_judged(const sql_world_stats *s, const sql_world_options *o) {
    return !(o->undisturbed || o->job || o->allocation || o->sync || o->fault_point >= 0) && s->seeds >= JUDGED_SEEDS;
}

/* A simulator that disturbs nothing proves nothing. */
static int judge(const sql_world_stats *s, const sql_world_options *o) {
    int silent = 0;
    if (!is_judged(s, o)) return 0;
    for (int i = 0; i < CK_FAULT_LOCAL_COUNT; i++) {
        if (s->points[i]) continue;
        printf("no crash came at %s\n", ck_fault_name((ck_fault_point)i));
        silent++;
    }
    if (!s->given_up || !s->restored_deltas || !s->over_abort || !s->inflight || !s->materialised || !s->calls ||
        !s->memory || !s->by_region)
        printf("something never came\n"), silent++;
    return silent ? 1 : 0;
}

/* The command that shows one seed again. */
static void print_command(unsigned long long seed, const sql_world_options *o) {
    printf("(build/sql_sim --seeds 1 --first %llu --verbose", seed);
    if (o->job) printf(" --job %llu", (unsigned long long)o->job);
    if (o->input.batch_rows) printf(" --batch-rows %d", o->input.batch_rows);
    if (o->allocation) printf(" --allocation %llu", (unsigned long long)o->allocation);
    if (o->sync)
        printf(" --sync %llu:%d%s", (unsigned long long)o->sync, o->sync_errnum, o->sync_lasting ? ":lasting" : "");
    if (o->fault_point >= 0) printf(" --point %s", ck_fault_name((ck_fault_point)o->fault_point));
    printf("%s%s%s%s)\n", o->undisturbed ? " --undisturbed" : "", o->input.skewed ? " --skewed" : "",
           o->input.small ? " --small" : "", o->input.no_follow ? " --no-follow" : "");
}

static bool run_seed(unsigned long long seed, const sql_world_options *o, sql_world_stats *stats) {
    const char *why;
    if (sql_world_run(seed, o, stats, &why)) return true;
    printf("seed %llu: %s\n", seed, why);
    print_command(seed, o);
    return false;
}

/* Until the job needs fewer allocations than the one that should fail. */
static bool sweep_allocations(unsigned long long seed, sql_world_options o, uint64_t step, sql_world_stats *stats) {
    uint64_t before = stats->memory;
    for (o.allocation = 1 + seed % step;; o.allocation += step) {
        if (!run_seed(seed, &o, stats)) return false;
        if (stats->memory == before) return true;
        before = stats->memory;
    }
}

/* Until the job needs fewer of them than the one that should fail. */
static bool sweep_syncs(unsigned long long seed, sql_world_options o, uint64_t step, sql_world_stats *stats) {
    static const int errnums[] = {ENOSPC, EIO};
    for (o.sync = 1 + seed % step;; o.sync += step) {
        uint64_t before = stats->disk;
        o.sync_lasting = o.sync / step % 2;
        for (int i = 0; i < 2; i++) {
            o.sync_errnum = errnums[i];
            if (!run_seed(seed, &o, stats)) return false;
        }
        if (stats->disk == before) return true;
    }
}

static bool take_sync(const char *text, sql_world_options *o) {
    char *end;
    o->sync = strtoull(text, &end, 10);
    if (*end != ':') return false;
    o->sync_errnum = (int)strtol(end + 1, &end, 10);
    o->sync_lasting = strcmp(end, ":lasting") == 0;
    return o->sync > 0 && (!*end || o->sync_lasting);
}

/* A point that chance left out gets lives of its own: seeds that crash only there, until one does. */
static bool visit_points(unsigned long long first, sql_world_options o, sql_world_stats *stats) {
    for (int i = 0; i < CK_FAULT_LOCAL_COUNT; i++) {
        o.fault_point = i;
        for (unsigned long long s = first; !stats->points[i] && s < first + VISITS_MAX; s++)
            if (!run_seed(s, &o, stats)) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    unsigned long long seeds = 100, first = 1, step = 0, syncs = 0;
    sql_world_options o = {.fault_point = -1};
    sql_world_stats stats = {0};
    for (int i = 1; i < argc; i++) {
        if (take_flag(argv[i], &o)) continue;
        if (i + 1 == argc) return usage();
        if (strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--allocations") == 0)
            step = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--allocation") == 0)
            o.allocation = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--syncs") == 0)
            syncs = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--sync") == 0 && take_sync(argv[i + 1], &o))
            i++;
        else if (strcmp(argv[i], "--job") == 0)
            o.job = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--batch-rows") == 0)
            o.input.batch_rows = atoi(argv[++i]);
        else if (strcmp(argv[i], "--point") == 0 && (o.fault_point = point_of(argv[i + 1])) >= 0)
            i++;
        else
            return usage();
    }
    for (unsigned long long s = first; s < first + seeds; s++)
        if (!(step    ? sweep_allocations(s, o, step, &stats)
              : syncs ? sweep_syncs(s, o, syncs, &stats)
                      : run_seed(s, &o, &stats)))
            return 1;
    if (is_judged(&stats, &o) && !step && !syncs && !visit_points(first, o, &stats)) return 1;
    print_stats(&stats, o.undisturbed);
    printf("%llu seeds from %llu held\n", seeds, first);
    return step || syncs ? 0 : judge(&stats, &o);
}
