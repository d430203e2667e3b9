/* A simulated cluster: real coordinators and worker sessions over a network, a store and task hosts that are models. A
 * seed fixes every delay, loss, crash, suspension and partition. */
#ifndef SIM_CLUSTER_WORLD_H
#define SIM_CLUSTER_WORLD_H

#include "cluster/coordinator/coordinator.h"
#include "cluster/worker/session.h"
#include "dice.h"

enum {
    MS = 1000,
    WORKERS = 4,
    SLOTS = 8,
    JOBS_MAX = 5,
    REGIONS_MAX = 3,
    LEADERS_MAX = 64, /* one after another */
    CONNS_MAX = 4096,
    HOSTS_MAX = 4096,
    RECORDS_MAX = 64,
    TASKS_MAX = 6,
    LEASE_TICKS = 20, /* in which one that is superseded finds it out, in the mean */
    FAULTS_END_MS = 40000,
    END_MS = 400000,
};

#define FOREVER_US (INT64_MAX / 4) /* suspended until then: it hangs, its connections stand, and nobody answers */

typedef enum event_kind {
    EVENT_LEADER_TICK,
    EVENT_WORKER_TICK,
    EVENT_DELIVER,
    EVENT_CLOSED, /* one end of a connection hears that it is gone */
    EVENT_PROBED,
    EVENT_HOST,
    EVENT_KILLED,
    EVENT_CLIENT,
    EVENT_FAULT,
    EVENT_WORKER_BORN,
    EVENT_LEADER_BORN,
} event_kind;

typedef struct event {
    int64_t at_us;
    uint64_t order;
    event_kind kind;
    uint32_t a, b;
    uint64_t number;
    ck_frame *frame;
} event;

typedef struct leader {
    ck_coordinator *c;
    bool alive, busy;
    uint64_t epoch;
    int64_t suspended_until_us;
} leader;

typedef struct conn {
    int32_t worker; /* -1: the client */
    uint32_t leader;
    bool open[2]; /* of leader, of the other */
    int64_t last_us[2];
} conn;

typedef enum host_state { HOST_STARTING, HOST_READY, HOST_RUNNING, HOST_DEAD } host_state;

/* A task host: the model of a process that runs its tasks of a job and takes part in its checkpoints. */
typedef struct host {
    host_state state;
    uint32_t worker, life; /* of the worker */
    uint64_t job, attempt; /* job: a region's number */
    uint32_t process, process_count, tasks[TASKS_MAX], task_count;
    uint64_t restore;
    uint64_t position; /* process 0 */
    uint64_t doomed;   /* position at which it fails; 0: it does not */
    uint64_t doom;     /* how: flags of ENDED */
    int64_t started_us;
    int64_t born_us;
    uint32_t leaders; /* that there had been by then */
    bool failed;      /* or lost, and not told to end */
} host;

typedef struct sim_worker {
    ck_session *s;
    bool alive;
    uint32_t life;
    uint32_t conn; /* 0: none */
    int64_t suspended_until_us, partition_until_us, excused_until_us;
} sim_worker;

/* A region's part of its job's directory: what survives everything. Its lock is held by one live host, and never
 * stolen. */
typedef struct store {
    uint32_t lock; /* host number + 1 */
    uint64_t checkpoint, position, length;
    uint64_t fence; /* the newest attempt that has had the lock */
    bool finished;
} store;

typedef struct sim_job {
    bool submitted, dropped, cancel_asked, checkpointed;
    uint64_t id;
    uint64_t before; /* another one of its name that was shown, and has to have ended */
    uint32_t name;   /* its own */
    uint64_t attempt, shown_checkpoint;
    bool over, finished, failed;
    uint32_t regions;
    store stores[REGIONS_MAX];
} sim_job;

typedef struct world {
    dice dice;
    bool verbose;
    ck_budget budget;
    ck_mem mem;
    int64_t now_us;
    event *heap;
    uint32_t heap_count, heap_room;
    uint64_t order;
    leader leaders[LEADERS_MAX];
    uint32_t leader_count; /* the last one is the newest */
    sim_worker workers[WORKERS];
    conn conns[CONNS_MAX];
    uint32_t conn_count, client_conn;
    int64_t client_heard_us;
    host hosts[HOSTS_MAX];
    uint32_t host_count;
    ck_frame *records[RECORDS_MAX];
    uint64_t guard; /* the newest epoch whose record stands: older ones' are refused */
    sim_job jobs[JOBS_MAX];
    uint32_t job_count;
    bool calm; /* no more faults */
    uint64_t alone;
    char why[400];
} world;

/* What does not hold ends the run; the first reason stays. */
void world_broken(world *w, const char *fmt, ...) CK_PRINTF(2, 3);
void world_say(const world *w, const char *fmt, ...) CK_PRINTF(2, 3);
void world_at(world *w, int64_t at_us, event_kind kind, uint32_t a, uint32_t b, uint64_t number, ck_frame *frame);
/* The same event then, in its place among those of one time. */
void world_hold(world *w, const event *e, int64_t until_us);
void world_excuse(sim_worker *k, int64_t until_us); /* it is away until then */
int64_t world_delay(world *w);                      /* of a frame, or a step */

/* ---- cluster_net.c: connections, and the processes at their ends ---- */
void net_send(world *w, uint32_t conn, bool to_leader, ck_frame *f); /* takes f */
void net_close(world *w, uint32_t conn, bool by_leader);
void net_deliver(world *w, const event *e);
void net_closed(world *w, const event *e);
void net_dial(world *w, uint32_t worker);
void net_dial_client(world *w);
void net_process_died(world *w, int32_t worker, uint32_t leader); /* worker -1: the leader did */
void leader_drain(world *w, uint32_t leader);
void leader_kill(world *w, uint32_t leader);
bool leader_is_there(const world *w); /* the newest: it lives, and does not hang */
void leader_born(world *w);

/* ---- cluster_hosts.c ---- */
void worker_born(world *w, uint32_t worker);
void worker_kill(world *w, uint32_t worker);
void worker_drain(world *w, uint32_t worker);
void host_step(world *w, uint32_t number);
void host_killed(world *w, uint32_t number);
bool worker_excused(const world *w, uint32_t worker); /* from being thought alive */
sim_job *job_of(world *w, uint64_t region);           /* by a region's number */

/* ---- cluster_client.c: submits, looks, cancels ---- */
void client_step(world *w);
void client_heard(world *w, const ck_message *m);
ck_msg_submit client_job(uint32_t name, uint32_t regions);

/* What happened in all seeds: a simulation in which nothing does shows nothing. */
typedef struct cluster_counts {
    uint64_t jobs, finished, failed, restarts, leaders;
    uint64_t alone; /* attempts of a region that began while another one of its job worked on */
} cluster_counts;

/* true: it held. *why is a static text. */
bool cluster_run(uint64_t seed, bool verbose, const char **why, cluster_counts *counts);

#endif
