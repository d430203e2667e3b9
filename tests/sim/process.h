/* One simulated process: heap, random, fault points, scheduler, registry, one job. It runs on a disk and a clock that
 * outlive it, until its job ends or its trouble comes. After a crash its heap goes whole; otherwise it must have given
 * back every byte. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "dice.h"
#include "gate_fs.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/simfs.h"
#include "runtime/job.h"
#include "sql/compile.h"

/* How a life is disturbed. */
typedef enum trouble {
    TROUBLE_NONE,
    TROUBLE_CRASH,       /* at a turn */
    TROUBLE_CRASH_POINT, /* at a fault point */
    TROUBLE_ERROR_POINT, /* a fault point fails once */
    TROUBLE_DISK,        /* a write or fsync fails, once or from then on */
    TROUBLE_CANCEL,      /* at a turn */
    TROUBLE_CRASH_CALL,  /* in the n-th call that changes the disk */
    TROUBLE_MEMORY,      /* the n-th allocation fails */
    TROUBLE_COUNT
} trouble;
extern const char *const trouble_names[TROUBLE_COUNT];

typedef struct trouble_plan {
    trouble kind;
    ck_fault_point point; /* CRASH_POINT, ERROR_POINT */
    uint64_t at;          /* turn, hit of the point, write or fsync, call, allocation: 1-based */
    int errnum;           /* DISK */
    bool lasting;         /* DISK */
    gate_death death;     /* CRASH_CALL */
} trouble_plan;

/* Draws where it comes. point -1: any below `points`. */
trouble_plan trouble_draw(dice *d, trouble kind, int point, uint32_t points);
void trouble_print(const trouble_plan *t);
/* How a life keeps its checkpoints: bases and deltas, or a changelog. point: where it is to crash, -1: anywhere. */
ck_changelog_config changelog_draw(dice *d, int point);

typedef enum life_end { END_FINISHED, END_WAS_FINISHED, END_CRASHED, END_FAILED, END_CANCELLED, END_WRONG } life_end;
extern const char *const end_names[];

typedef struct process {
    ck_proc proc;
    ck_tracked_heap *heap;
    ck_seeded_random random;
    ck_faults faults;
    ck_log log;
    gate gate;
    const trouble_plan *trouble;
    bool verbose;
    bool impatient;                    /* checkpoints may time out again and again, the last one too */
    uint64_t given_up, first_given_up; /* checkpoints, by the log: how many, the first one's id */
    bool file_gone;                    /* by the log: a manifest was to name a file that nobody sees any more */
    ck_arena arena;
    ck_registry registry;
    ck_catalog *catalog; /* of SQL jobs; else NULL */
    ck_scheduler *scheduler;
    ck_job *job;
    char why[1400]; /* what is wrong, or how it failed */
} process;

/* Everything up to the scheduler; the trouble is armed and borrowed. */
void process_init(process *p, ck_simfs *disk, ck_manual_clock *clock, dice *d, const trouble_plan *t, bool verbose);
bool process_crashed(const process *p);
/* What is said when something does not hold. */
life_end process_wrong(process *p, const char *what, const ck_error *err);

/* What a world does between turns; may be NULL. true: the job has done what it should and is cancelled. */
typedef bool (*process_watch)(void *arg, uint64_t turn);
/* Turns until the job ends, the trouble comes, or it takes too long. */
life_end process_run(process *p, process_watch watch, void *arg);
/* With `start` having failed by s, or else after running. */
life_end process_not_started(process *p, ck_status s, const ck_error *err);
/* Takes down what the end leaves, checks that nothing is left, and frees the heap. */
life_end process_end(process *p, life_end end);

#endif
