/* Real SQL on the seeded scheduler and the simulated disk. A seed decides the script, its input, every choice of the
 * schedule, and - unless it is undisturbed - up to seven lives of the process. A reader watches the output all the time
 * and knows what must come out. */
#ifndef SIM_SQL_WORLD_H
#define SIM_SQL_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "process.h"
#include "sql_case.h"

typedef struct sql_world_options {
    bool verbose;
    bool undisturbed;       /* one life, with or without a checkpoint directory */
    uint64_t job;           /* script and input of this seed, whatever the seed of the schedule; 0: of the same */
    uint64_t allocation;    /* the one trouble: this allocation of the first life fails; 0: the seed chooses */
    uint64_t sync;          /* the one trouble: this write or fsync of the first life fails; 0: the seed chooses */
    int sync_errnum;
    bool sync_lasting;      /* and all that follow */
    int fault_point;        /* -1: the seed chooses */
    sql_case_options input; /* of the case */
} sql_world_options;

/* What a run of seeds has met, so that it can be seen to have tested something. */
typedef struct sql_world_stats {
    uint64_t seeds, lives, ends[END_WRONG + 1], points[CK_FAULT_COUNT], calls;
    uint64_t given_up;        /* checkpoints */
    uint64_t memory;          /* lives that an allocation failed in */
    uint64_t disk;            /* lives that a write or fsync failed in */
    uint64_t deltas;          /* delta files that lives began with */
    uint64_t restored_deltas; /* lives that began with some */
    uint64_t materialised;    /* lives that began with rows written beside the checkpoints in the directory */
    uint64_t inflight;        /* lives that began with in-flight files in the directory */
    uint64_t by_region;       /* lives that ran one region of a job of several */
    uint64_t over_abort;      /* lives that began with a delta written after an abort that its base was before */
} sql_world_stats;

/* true: everything held. false: *why says what did not (static storage). */
bool sql_world_run(uint64_t seed, const sql_world_options *o, sql_world_stats *stats, const char **why);

#endif
