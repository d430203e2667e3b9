/* Inside the coordinator's machine:
 *   coordinator.c  events come in, actions go out
 *   workers.c      who is there: registration, heartbeats, loss
 *   job.c          a job's states, its tasks' ends, what becomes of a failure
 *   regions.c      what the regions of a job are together
 *   restart.c      drains, and what follows when one has ended
 *   deploy.c       placement on free slots, DEPLOY, readiness, START
 *   progress.c     how far a job is, by what its hosts say
 *   commands.c     what clients ask
 *   record.c       a job as it is kept for the next leader */
#ifndef CK_CLUSTER_COORDINATOR_COORDINATOR_INT_H
#define CK_CLUSTER_COORDINATOR_COORDINATOR_INT_H

#include "cluster/coordinator/coordinator.h"
#include "cluster/restart_policy.h"

enum { ENDED_JOBS_KEPT = 100, WAITERS_MAX = 64, NO_HOST = UINT32_MAX };

typedef struct worker {
    struct worker *next;
    char id[CK_CLUSTER_NAME_MAX + 1], address[CK_CLUSTER_NAME_MAX + 1];
    uint64_t incarnation, turn;
    uint64_t conn; /* 0: it has closed, and the worker may come back over another one */
    uint32_t slots, used;
    int64_t last_seen_us;
} worker;

/* What a task is doing, as far as the coordinator knows. The sets of the specification are states: restart_pending is
 * TASK_RESTART_PENDING, restart_drain_expected is TASK_DRAINING. */
typedef enum task_state {
    TASK_RESTART_PENDING, /* on no worker; the next deployment places it */
    TASK_DEPLOYED,        /* sent to a worker, which has not said that it is ready */
    TASK_RUNNING,         /* ready, or running */
    TASK_DRAINING,        /* told to end; nothing is deployed while there is one */
    TASK_FINISHED,        /* well */
    TASK_ENDED,           /* otherwise: failed, cancelled, lost */
    TASK_STATE_COUNT
} task_state;

typedef struct task {
    task_state state;
    uint32_t role, index;
    uint32_t host;     /* of the attempt's; NO_HOST */
    uint32_t retries;  /* of max_restarts, used by this task */
    const char *error; /* a literal or the job's error; NULL: none */
} task;

/* One worker's part in an attempt: a process of its own there. */
typedef struct job_host {
    char worker_id[CK_CLUSTER_NAME_MAX + 1];
    uint64_t incarnation;
    worker *worker; /* NULL: lost, or not yet back after a change of leaders */
    bool ready;
    char address[CK_CLUSTER_NAME_MAX + 1]; /* resolved once it is ready, empty again at a restart */
    ck_progress progress;                  /* the last it said, never kept on disk; its note is: */
    char note[CK_CLUSTER_NOTE_MAX + 1];
} job_host;

typedef enum job_state {
    JOB_DEPLOYING,
    JOB_RUNNING,
    JOB_DRAINING,    /* tasks have been told to end; `goal` says what for. For a restart: awaiting_restart */
    JOB_BACKING_OFF, /* drained, and waiting before the restart */
    JOB_RECOVERING,  /* it ran, and a new leader waits for the workers it runs on */
    JOB_SUSPENDED,   /* ended by a record that would fail again; RESUME goes on */
    JOB_FINISHED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_STATE_COUNT
} job_state;

typedef enum job_goal { GOAL_RUN, GOAL_RESTART, GOAL_SUSPEND, GOAL_CANCEL, GOAL_FAIL, GOAL_COUNT } job_goal;

typedef enum waiter_kind { WAIT_END, WAIT_SAVEPOINT, WAIT_STOP } waiter_kind;
typedef struct waiter {
    waiter_kind kind;
    uint64_t conn, request;
    uint64_t checkpoint; /* WAIT_SAVEPOINT: the greatest that regions have taken for it; WAIT_STOP: the one it has */
    bool stop; /* WAIT_SAVEPOINT: the job is to end with it, which is waited for, too: WAIT_STOP, of the lead */
} waiter;

/* A region of a job, with attempts of its own; of most jobs it is all. Those of one job are neighbours in the list of
 * jobs, the lead first, which also has what belongs to all of them. */
typedef struct job {
    struct job *next;
    struct job *lead, *next_region;
    uint64_t id; /* ck_region_number: that of the lead is the job's */
    uint32_t region;

    /* the lead's */
    ck_arena arena;      /* names, roles, tasks; of all regions */
    char *description;   /* what task hosts are told, spec.spec; NULL when all have ended: nobody is told any more */
    ck_proto_list roles; /* ck_msg_role, of all regions, as they were submitted */
    uint32_t region_count;
    bool dropped; /* nobody is told of it any more; it stays while tasks of it may work */
    char name[CK_CLUSTER_NAME_MAX + 1];

    uint64_t attempt;
    job_state state;
    job_goal goal;
    ck_msg_submit spec; /* with the roles of the region; without its description, where it is not the lead */
    task *tasks;
    uint32_t task_count;
    uint32_t *first_task; /* of each role */
    job_host *hosts;      /* of the attempt; room for workers_max */
    uint32_t host_count, hosts_room;
    uint32_t restart_attempts;
    uint32_t restarts_in_a_row; /* of any budget, without a quiet time between them */
    uint64_t latest_completed_checkpoint_id;
    int64_t deadline_us;                  /* DRAINING: restart_deadline; BACKING_OFF, RECOVERING: when that is over */
    int64_t running_since_us;             /* 0: it has not run since the last restart */
    char error[CK_CLUSTER_ERROR_MAX + 1]; /* of this attempt, the cause first */
    ck_msg_skip *skips;                   /* room for CK_CLUSTER_SKIPS_MAX; NULL: none */
    uint32_t skip_count;
    waiter waiters[WAITERS_MAX]; /* the lead's for the end, of each that is asked for a savepoint */
    uint32_t waiter_count;
} job;

struct ck_coordinator {
    ck_coordinator_config cfg;
    int64_t now_us, last_tick_us;
    int64_t adopt_until_us; /* until then a new leader waits for the workers it has read about */
    uint64_t next_job, next_request;
    uint64_t random;
    worker *workers, **workers_end;    /* in the order they came */
    uint32_t worker_count, next_place; /* round robin */
    job *jobs, **jobs_end;
    uint32_t job_count; /* with all its regions each is one */
    ck_action *first, **end;
    bool begun;
    bool out_of_memory; /* an action could not be written down: the event says CK_NOMEM */
    ck_arena scratch;   /* of the message being written */
};

/* ---- coordinator.c: actions; lack of memory is noted and ends the event ---- */
void coordinator_send(ck_coordinator *c, uint64_t conn, const ck_message *m);
void coordinator_act(ck_coordinator *c, ck_action_kind kind, uint64_t conn, uint64_t number, const char *address);
void coordinator_persist(ck_coordinator *c, uint64_t number, const ck_message *m);
void coordinator_on_checkpoint(ck_coordinator *c, job *j, uint64_t checkpoint); /* is complete */
uint64_t coordinator_random(ck_coordinator *c);
ck_msg_fence coordinator_fence(const ck_coordinator *c, const job *j); /* j NULL: of no job */

/* ---- workers.c ---- */
ck_status workers_register(ck_coordinator *c, uint64_t conn, const ck_msg_register *m, ck_error *err);
worker *workers_of_conn(const ck_coordinator *c, uint64_t conn);
void workers_watch(ck_coordinator *c);                            /* judges silence */
void workers_lose(ck_coordinator *c, worker *w, const char *why); /* frees w */

/* ---- job.c ---- */
job *job_find(const ck_coordinator *c, uint64_t id); /* a region, by its own number */
/* The only way to another state; a move that the table does not have is a bug. */
void job_move(ck_coordinator *c, job *j, job_state to);
bool job_is_over(const job *j);
const char *job_state_text(const job *j);
bool task_is_active(const task *t);                /* it may work on some worker, and holds a slot there */
void task_release(job *j, task *t, task_state to); /* gives the slot back */
bool job_has(const job *j, task_state s);
void job_set_error(job *j, const char *fmt, ...) CK_PRINTF(2, 3); /* the first one stays */
void job_add_error(job *j, const char *fmt, ...) CK_PRINTF(2, 3); /* behind what there is: the cause comes first */
void job_on_ended(ck_coordinator *c, job *j, worker *w, const ck_msg_ended *m);
void job_lose_worker(ck_coordinator *c, job *j, const worker *w, const char *why);
void job_lose_host(ck_coordinator *c, job *j, uint32_t host, const char *why);
void job_free(ck_coordinator *c, job *lead); /* takes it out of the list, with its regions */
void job_sweep(ck_coordinator *c);           /* ended ones beyond those kept, dropped ones nobody works for */

/* ---- regions.c; any region of a job will do ---- */
bool regions_are_over(const job *j);
bool regions_are_settled(const job *j);         /* over, or nothing goes on before somebody resumes it */
const char *regions_state_text(const job *j);   /* of all of them in a word */
const char *regions_error(const job *j);        /* of the one that failed, or of the first that has one */
void regions_follow(ck_coordinator *c, job *j); /* one that has failed: the others go on for nobody */
bool regions_left_behind(const job *j);         /* another one ends the job, and this one has not been told */
uint64_t regions_checkpoint(const job *j);      /* the greatest that any has completed */

/* ---- restart.c ---- */
/* Tells everything that may work to end. whole: finished tasks are deployed again, too, for a restart. */
void restart_drain(ck_coordinator *c, job *j, job_goal goal, bool whole);
void restart_check_drained(ck_coordinator *c, job *j);
void restart_watch(ck_coordinator *c, job *j);   /* deadlines of one job */
void restart_recover(ck_coordinator *c, job *j); /* a new leader goes on with what the last one was doing */
bool restart_allowed(const job *j);              /* by the job's budget */
void restart_cancel_host(ck_coordinator *c, const job *j, uint32_t host);

/* ---- deploy.c ---- */
/* Places what is RESTART_PENDING, as a new attempt. Without slots the job fails. */
void deploy(ck_coordinator *c, job *j);
void deploy_all(ck_coordinator *c, job *lead); /* the first time, for which there are slots */
void deploy_check_ready(ck_coordinator *c, job *j);
void deploy_start_host(ck_coordinator *c, const job *j, uint32_t host);
uint32_t deploy_needs(const job *j); /* slots, for what is RESTART_PENDING */
uint32_t deploy_free_slots(const ck_coordinator *c);

/* ---- progress.c ---- */
void progress_heard(job *j, const worker *w, const ck_progress *p);
ck_progress progress_of(const job *j); /* of all regions; borrows from the job */

/* ---- commands.c ---- */
ck_status commands_submit(ck_coordinator *c, uint64_t conn, const ck_msg_submit *m, ck_error *err);
void commands_hear(ck_coordinator *c, uint64_t conn, const ck_msg_command *m);
void commands_job_ended(ck_coordinator *c, job *j);       /* tells who waits for it */
void commands_attempt_over(ck_coordinator *c, job *j);    /* savepoints asked of it come to nothing */
void commands_region_finished(ck_coordinator *c, job *j); /* and here the last checkpoint is one */
void commands_savepoint_ended(ck_coordinator *c, job *j, const ck_msg_savepoint_ended *m);
void commands_forget_conn(ck_coordinator *c, uint64_t conn);

/* ---- record.c ---- */
void record_leader(ck_coordinator *c);
void record_job(ck_coordinator *c, const job *j);
void record_drop_description(ck_coordinator *c, job *lead);
void record_free_job(ck_coordinator *c, job *lead); /* which is in no list */
/* A job from its description, with its regions; tasks wait for a deployment. Copies everything. */
bool record_skip(job *j, ck_view record); /* false: no memory; there is room */
ck_status record_new_job(ck_coordinator *c, const ck_msg_submit *m, uint64_t id, job **out, ck_error *err);

#endif
