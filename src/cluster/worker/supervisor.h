/* The worker as a process has it: a session over a connection to the coordinator, and task hosts, which are this
 * program started again. The calling thread, the process's main one, only spawns and reaps; an event loop does the
 * rest. A host ends with the worker, and when its connection to it ends.
 *
 * Hosts connect to a socket in the worker's directory, say HELLO with their job and attempt, get their DEPLOY, and
 * later START and TAKE_SAVEPOINT; they say READY, CHECKPOINT, SAVEPOINT_ENDED, PROGRESS, and ENDED before they exit.
 */
#ifndef CK_CLUSTER_WORKER_SUPERVISOR_H
#define CK_CLUSTER_WORKER_SUPERVISOR_H

#include "base/proc.h"
#include "cluster/message.h"
#include "net/tls.h"

typedef struct ck_supervisor_config {
    ck_proc *proc;
    const char *coordinator; /* "HOST:PORT", or several (addresses.h) */
    const char *token_file;  /* NULL: where the coordinator of that port has put it */
    const char *name;        /* the same over restarts; NULL: one of its own */
    uint32_t slots;
    size_t slot_bytes;     /* of memory: a host's are those of its tasks */
    const char *state_dir; /* NULL: in the runtime directory */
    const char *data_host; /* where hosts listen for each other */
    const char *advertise; /* under which host they dial each other; NULL: data_host */
    ck_tls_files tls;      /* towards the coordinator, and between hosts */
    /* With TLS, or one of these, jobs are taken for somebody else's: they touch files below data_root only, secrets
     * below secret_dir, and of the environment CLINK_SECRET_*. NULL: none. */
    const char *data_root, *secret_dir;
    /* Of this program, for a host: verb SOCKET JOB ATTEMPT PARENT DATA-HOST ADVERTISED CERT KEY CA DATA-ROOT SECRET-DIR
     * SLOT-BYTES PLUGIN-DIR. */
    const char *verb;
    void (*began)(void *arg, const char *name); /* once, when it waits for work; may be NULL */
    void *arg;
} ck_supervisor_config;

/* Until SIGINT or SIGTERM comes, which with SIGCHLD and SIGUSR1 are blocked in the whole process: CK_OK. Its hosts are
 * gone when it returns. */
CK_NODISCARD ck_status ck_supervisor_run(const ck_supervisor_config *cfg, ck_error *err);

#endif
