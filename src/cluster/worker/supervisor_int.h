/* Inside a worker's process:
 *   supervisor.c  the main thread: spawns, reaps, ends
 *   hosts.c       the loop: connections of hosts, what they say
 *   uplink.c      the loop: the connection to the coordinator
 *   fetch.c       the loop: plugins that hosts to come need */
#ifndef CK_CLUSTER_WORKER_SUPERVISOR_INT_H
#define CK_CLUSTER_WORKER_SUPERVISOR_INT_H

#include <pthread.h>
#include <sys/types.h>

#include "base/sha256.h"
#include "cluster/worker/plugin_cache.h"
#include "cluster/worker/session.h"
#include "cluster/worker/supervisor.h"
#include "net/connection.h"

enum { QUEUE_BYTES_MAX = 32 << 20, ARENA_BYTES_MAX = 64 << 20, HOSTS_MAX = 4096 };

typedef struct hosted_plugin {
    char hash[CK_SHA256_CHARS + 1], name[CK_CLUSTER_NAME_MAX + 1];
    uint64_t bytes;
} hosted_plugin;

typedef struct fetch fetch; /* fetch.c */

/* Loop: a host that has, will have or had a process. It is over when that is reaped and its connection has ended: what
 * it said last comes before that. */
typedef struct hosted {
    struct hosted *next;
    uint64_t job, attempt;
    ck_frame *deploy; /* until it asks for it */
    ck_connection *c; /* a reference */
    bool reaped, told;
    bool waiting;   /* for plugins: it has no process yet */
    bool looked_at; /* fetch.c */
    hosted_plugin *plugins;
    uint32_t plugin_count;
    int wait_status;
    ck_task_outcome outcome;
    uint64_t flags;
    char error[CK_CLUSTER_ERROR_MAX + 1];
} hosted;

/* To the main thread. */
typedef struct request {
    struct request *next;
    bool kill; /* else spawn */
    uint64_t job, attempt;
    char **environment; /* of one to spawn */
} request;

typedef struct child { /* main thread */
    struct child *next;
    pid_t pid;
    uint64_t job, attempt;
} child;

typedef struct supervisor {
    const ck_supervisor_config *cfg;
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena;
    const char *dir, *socket; /* "unix:..." */
    const char *name;
    pthread_t main_thread;

    /* loop */
    ck_net_loop *loop;
    ck_listener *listener; /* of hosts */
    ck_listener *probed;   /* that it is here can be seen over the network, where it is; NULL: on this machine only */
    ck_tls *tls;           /* NULL: none */
    ck_session *session;
    ck_connection *up;    /* to the coordinator; a reference */
    uint32_t turn;        /* of the coordinator's addresses: which is dialled */
    bool up_open, silent; /* silent: that nobody is there has been said */
    bool gave_up;         /* that whoever is there does not answer */
    ck_net_timer timer;
    ck_net_post first;
    hosted *hosts;
    ck_plugin_cache *plugins;
    const char *plugin_dir;
    fetch *fetches; /* the first is under way */

    child *children; /* main thread */

    pthread_mutex_t lock; /* guards what follows */
    request *requests, **requests_end;
    ck_status status;
    ck_error error;
} supervisor;

/* ---- supervisor.c; thread: the loop's ---- */
void supervisor_fail(supervisor *s, ck_status why, const ck_error *err); /* the process ends for it */
void supervisor_kill(supervisor *s, uint64_t job, uint64_t attempt);
void supervisor_spawn(supervisor *s, uint64_t job, uint64_t attempt, ck_view deploy); /* what it will be told */

/* ---- hosts.c ---- */
ck_status hosts_listen(supervisor *s, ck_error *err);
hosted *hosts_find(const supervisor *s, uint64_t job, uint64_t attempt);
void hosts_add(supervisor *s, uint64_t job, uint64_t attempt, ck_frame **deploy); /* takes it */
void hosts_reaped(supervisor *s, uint64_t job, uint64_t attempt, int wait_status);
void hosts_drain(supervisor *s); /* the session's actions */
void hosts_spawn(supervisor *s, hosted *h);
void hosts_fail_waiting(supervisor *s, hosted *h, const ck_error *why); /* frees h */
void hosts_free(supervisor *s, hosted *h);

/* ---- fetch.c ---- */
void fetch_for(supervisor *s, hosted *h); /* starts it once it has its plugins; it may be gone when this returns */
void fetch_connected(supervisor *s);
void fetch_disconnected(supervisor *s);
/* Not CK_OK: the connection is to be closed for that reason. */
ck_status fetch_heard(supervisor *s, const ck_msg_plugin_part *m, ck_error *err);
void fetch_free_all(supervisor *s);

/* ---- uplink.c ---- */
void uplink_start(supervisor *s);
void uplink_give_up(supervisor *s); /* on who does not answer: the next address is dialled */

#endif
