/* The coordinator: which workers there are, which jobs run on them, and what happens when one is lost. A pure state
 * machine: what it hears comes in as events with the time, what it wants done comes out as actions. It has no clock, no
 * thread and no I/O, so the simulator runs this very code.
 *
 *   driver: frames, closed connections, ticks --> events --> [ machine ] --> actions --> driver: sends, writes, dials
 *
 * Order is the contract of durability: what stands behind a PERSIST is done only when that is durable. A driver whose
 * PERSIST fails, or is refused since another leads, does nothing more for this machine: it frees it. So does it on
 * CK_NOMEM from any event: a new machine recovers from the records.
 *
 * Time is monotonic microseconds and never goes back. Threads: one at a time. */
#ifndef CK_CLUSTER_COORDINATOR_COORDINATOR_H
#define CK_CLUSTER_COORDINATOR_COORDINATOR_H

#include "base/log.h"
#include "cluster/message.h"
#include "os/random.h"

typedef struct ck_coordinator ck_coordinator;

typedef struct ck_coordinator_config {
    ck_mem mem;
    uint64_t epoch;     /* above that of every leader before it */
    uint64_t seed;      /* of the jitter between restarts */
    ck_random *secrets; /* of attempts; NULL: they come from the seed, too (tests, the simulator) */
    int64_t watchdog_interval_us;
    int64_t heartbeat_timeout_us;
    int64_t restart_drain_timeout_us;
    uint32_t max_restarts;           /* of each failing task; not those of the job, which come after */
    int64_t restart_budget_decay_us; /* so long without a restart, and the job's budget is whole again; 0 = never */
    int64_t restart_backoff_us;      /* before the second restart in a row, then doubling ... */
    int64_t restart_backoff_max_us;  /* ... up to this */
    size_t job_bytes_max;            /* of a job's description, where records have less room; 0: as a frame takes */
    const ck_log *log;               /* lost workers, restarts and failures; NULL: nobody is told */
} ck_coordinator_config;

/* The specification's defaults. */
ck_coordinator_config ck_coordinator_defaults(ck_mem mem, uint64_t epoch);

CK_NODISCARD ck_status ck_coordinator_new(const ck_coordinator_config *cfg, ck_coordinator **out, ck_error *err);
void ck_coordinator_free(ck_coordinator *c); /* with the actions not taken; NULL is fine */

/* ---- the start: a record for each job that was kept, in any order, then begin ---- */

/* A RECORD_LEADER or RECORD_JOB as PERSIST wrote it. CK_CORRUPT: it does not check out. */
CK_NODISCARD ck_status ck_coordinator_recover(ck_coordinator *c, const ck_message *record, ck_error *err);
/* From here on it leads: jobs it knows wait for their workers to come back, for one heartbeat timeout. */
CK_NODISCARD ck_status ck_coordinator_begin(ck_coordinator *c, int64_t now_us, ck_error *err);

/* ---- events; CK_OK, CK_NOMEM, or, from heard, what closes the connection ---- */

/* Every watchdog_interval_us. Frames that are there are to be heard first. One that comes later than half the heartbeat
 * timeout after the last means that this process was suspended: nobody is lost for that. */
CK_NODISCARD ck_status ck_coordinator_tick(ck_coordinator *c, int64_t now_us, ck_error *err);
/* A frame came over a connection. conn is the driver's number for it, never 0 and never used twice. */
CK_NODISCARD ck_status ck_coordinator_heard(ck_coordinator *c, int64_t now_us, uint64_t conn, const ck_message *m,
                                            ck_error *err);
CK_NODISCARD ck_status ck_coordinator_closed(ck_coordinator *c, int64_t now_us, uint64_t conn, ck_error *err);
/* A PROBE found nobody at the address. */
CK_NODISCARD ck_status ck_coordinator_unreachable(ck_coordinator *c, int64_t now_us, uint64_t incarnation,
                                                  ck_error *err);

/* ---- actions ---- */

typedef enum ck_action_kind {
    CK_ACTION_SEND,    /* frame to conn; nothing when it has gone */
    CK_ACTION_CLOSE,   /* conn, after what was sent */
    CK_ACTION_PROBE,   /* does somebody listen at `address`? If surely not: unreachable(number) */
    CK_ACTION_PERSIST, /* frame, durably, as record `number` (0: the leader's) in place of what was there */
    CK_ACTION_FORGET,  /* record `number` */
} ck_action_kind;

typedef struct ck_action {
    struct ck_action *next; /* the machine's */
    ck_action_kind kind;
    uint64_t conn;
    uint64_t number;
    ck_frame *frame; /* SEND, PERSIST; whoever takes the action may take it and set NULL */
    char address[CK_CLUSTER_NAME_MAX + 1];
} ck_action;

/* The next action, or NULL. Free it with ck_action_free. */
ck_action *ck_coordinator_next(ck_coordinator *c);
void ck_action_free(ck_coordinator *c, ck_action *a);

/* ---- a look, for the status page and tests ---- */

uint32_t ck_coordinator_worker_count(const ck_coordinator *c);
uint32_t ck_coordinator_free_slots(const ck_coordinator *c);
/* Some job that has not ended runs with the plugin of this hash. */
bool ck_coordinator_names_plugin(const ck_coordinator *c, ck_view hash);

#endif
