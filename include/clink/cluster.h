/* clink over many processes: a coordinator, workers, and what is asked of a coordinator. Who asks knows the
 * coordinator's token, which commands of the same user on the same machine find by themselves. Nobody listens elsewhere
 * than on loopback addresses without mutual TLS. */
#ifndef CLINK_CLUSTER_H
#define CLINK_CLUSTER_H

#include "clink/clink.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Mutual TLS: PEM files, all or none. Everybody shows a certificate of the same CA, and whoever is dialled one for the
 * host under which it is dialled. */
typedef struct clink_tls {
    const char *cert, *key, *ca;
} clink_tls;

/* ---- the coordinator ---- */

typedef struct clink_coordinator clink_coordinator;

/* Zero is a good default; struct_bytes = sizeof(clink_coordinator_options). Texts are copied. */
typedef struct clink_coordinator_options {
    size_t struct_bytes;
    const char *bind;         /* NULL = 127.0.0.1 */
    uint16_t port;            /* 0 = any */
    const char *metadata_dir; /* jobs are kept there for the next coordinator; NULL: they end with this one */
    const char *ha;           /* etcd://HOST:PORT[,...][/PREFIX]: kept there; of several coordinators one leads */
    int64_t lease_ms;         /* with ha: so long after a leader's last sign another one may lead; 0 = 5000 */
    /* With lines "ROLE[,ROLE...] TOKEN" (read, submit, plugin, worker, all): the tokens. Otherwise one with all roles
     * is made and put there. NULL = in the runtime directory */
    const char *token_file;
    int64_t watchdog_interval_ms, heartbeat_timeout_ms, restart_drain_timeout_ms; /* 0 = 100, 2000, 30000 */
    int64_t restart_budget_decay_ms;                                              /* 0 = never */
    uint32_t max_restarts;
    clink_tls tls;
    const char *advertise; /* the host it is reached under, as those that stand by say it; NULL = bind */
    /* Plugins that clients bring: "any", or a file with the SHA-256 of those that are taken, a line each, as sha256sum
     * prints it; NULL = none. What is taken runs as the user of the workers. */
    const char *allow_plugins;
} clink_coordinator_options;

/* It leads when this returns; port may be NULL. The engine outlives it. With ha CLINK_TIMEOUT: another one leads, which
 * the error names; ask again a little later. */
CLINK_API clink_status clink_coordinator_start(clink_engine *engine, const clink_coordinator_options *options,
                                               clink_coordinator **coordinator, uint16_t *port, clink_error *error);
/* CLINK_OK: it leads. Otherwise why it does not any more. Thread: any. */
CLINK_API clink_status clink_coordinator_state(clink_coordinator *coordinator, clink_error *error);
/* Jobs go on where they are. NULL is fine. */
CLINK_API void clink_coordinator_stop(clink_coordinator *coordinator);

/* ---- a worker ---- */

typedef struct clink_worker_options {
    size_t struct_bytes;
    const char *coordinator; /* NULL = 127.0.0.1:6123 */
    const char *token_file;
    const char *name;                           /* the same over restarts; NULL: one of its own */
    const char *state_dir;                      /* NULL = in the runtime directory */
    const char *data_host;                      /* where task hosts listen for each other; NULL = 127.0.0.1 */
    const char *advertise;                      /* under which host they are dialled; NULL = data_host */
    uint32_t slots;                             /* 0 = cores; the engine's memory_bytes is shared out over them */
    void (*began)(void *arg, const char *name); /* it waits for work; may be NULL */
    void *began_arg;
    clink_tls tls;
    /* With TLS, or one of these, jobs are taken for somebody else's: they touch files below data_root only, ${file:}
     * reads below secret_dir, ${env:} what is called CLINK_SECRET_*. NULL = none */
    const char *data_root, *secret_dir;
} clink_worker_options;

/* Works until SIGINT or SIGTERM comes: these, SIGCHLD and SIGUSR1 are blocked in the whole process, before the engine
 * was opened, and this is its main thread. Task hosts are the running program again: `task-host ARGUMENTS`, which is to
 * call clink_task_host with them. */
CLINK_API clink_status clink_worker_run(clink_engine *engine, const clink_worker_options *options, clink_error *error);
/* A task host's whole life; what the process ends with. */
CLINK_API int clink_task_host(clink_engine *engine, int argc, char **argv);

/* ---- clients ---- */

typedef struct clink_cluster {
    size_t struct_bytes;
    const char *coordinator; /* NULL = 127.0.0.1:6123 */
    const char *token_file;
    int64_t timeout_ms; /* of an answer; 0 = 30000, -1 = for ever */
    clink_tls tls;
} clink_cluster;

/* Compiles the script here, or with run->plugin_job a plugin's job, and hands it over, with the engine's plugins where
 * the coordinator has them not. Answers are one JSON object, freed with clink_free: {"id", "name",
 * "status", "error", "attempt", "restarts", "restarts_max", "tasks", "tasks_running", "checkpoint", "rows_in",
 * "rows_out", "memory_bytes", "memory_limit", "watermark", "watermark_note"}, the last six of the attempt and at most a
 * few seconds old: rows null and memory 0 before anything is known, the watermark null where there is none, the note
 * what it waits for, as clink_job_watermark says it. wait: answer when the job has ended, and however it did this is
 * CLINK_OK. max_restarts: on a worker's loss, -1 = auto. The engine's memory_bytes, where it was given, bounds the
 * job's memory over all workers, each subtask's share being the same. A job of parts that have nothing to do with each
 * other, which restart each alone, also has "regions": [{"region", "status", "error", "attempt", "restarts", "tasks",
 * "tasks_running", "checkpoint"}], in all answers but those of CLINK_JOB_LIST; without, no subtask has a region. */
CLINK_API clink_status clink_submit(clink_engine *engine, const clink_cluster *cluster, const char *sql,
                                    const clink_run *run, int64_t max_restarts, int32_t wait, char **json,
                                    clink_error *error);

typedef enum clink_job_command {
    CLINK_JOB_LIST = 1,  /* of all: one object a line */
    CLINK_JOB_STATUS,    /* and its "subtasks": [{"role", "index", "region", "status", "worker", "error"}] */
    CLINK_JOB_CANCEL,    /* asks: its tasks end after the answer */
    CLINK_JOB_DROP,      /* the job is forgotten at once, whatever it does */
    CLINK_JOB_SAVEPOINT, /* answers when it is complete: "savepoint" is its number */
    CLINK_JOB_STOP,      /* and the job ends with it */
    CLINK_JOB_WAIT,      /* until it has ended, or is suspended */
    CLINK_JOB_RESUME,    /* one that is suspended */
} clink_job_command;
CLINK_API clink_status clink_ask(clink_engine *engine, const clink_cluster *cluster, clink_job_command command,
                                 uint64_t job, char **json, clink_error *error);
/* CLINK_JOB_RESUME without one record more: "SPLIT:OFFSET", as the job's error names it; NULL: with all. The job leaves
 * it out in all attempts to come. */
CLINK_API clink_status clink_resume(clink_engine *engine, const clink_cluster *cluster, uint64_t job,
                                    const char *skip_record, char **json, clink_error *error);

#ifdef __cplusplus
}
#endif
#endif
