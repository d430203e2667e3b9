/* Inside the coordinator's server: server.c, and server_plugins.c for what goes past the machine. */
#ifndef CK_CLUSTER_COORDINATOR_SERVER_INT_H
#define CK_CLUSTER_COORDINATOR_SERVER_INT_H

#include <pthread.h>

#include "cluster/coordinator/records.h"
#include "cluster/coordinator/server.h"
#include "cluster/coordinator/uploads.h"
#include "cluster/token.h"
#include "net/connection.h"

enum { SERVER_ARENA_BYTES_MAX = 64 << 20 };

typedef struct peer {
    struct peer *next;
    ck_coordinator_server *server;
    ck_connection *c;
    uint64_t number;
    unsigned roles; /* of the token it has shown; 0: none yet */
} peer;

struct ck_coordinator_server {
    ck_proc *proc;
    ck_mem mem;
    ck_net_loop *loop;
    ck_listener *listener;
    ck_tokens tokens;
    ck_token own; /* the one that is made here, or that etcd has; where the operator has given some, it is none */
    ck_tls *tls;
    ck_records *records; /* NULL: none are kept */
    ck_plugin_store *plugins;
    ck_uploads *uploads;
    ck_coordinator *c; /* NULL: it leads no more */
    ck_net_timer timer;
    ck_net_post first; /* arms the timer */
    int64_t interval_us;
    peer *peers;
    uint64_t last_number;
    uint64_t nobody;      /* incarnation whose probe was answered at once; 0: none */
    pthread_mutex_t lock; /* guards what follows */
    ck_status status;
    ck_error error;
    pthread_cond_t changed;
    uint32_t works; /* about plugins, elsewhere */
    bool stopping;
};

/* ---- server.c; thread: the loop's ---- */
peer *server_peer(const ck_coordinator_server *s, uint64_t number); /* NULL: it has closed */
ck_status server_send(peer *p, const ck_message *m, ck_error *err);
/* Of what the machine is not asked. */
ck_status server_answer(peer *p, ck_status status, const char *why, bool wanted, ck_error *err);
ck_status server_refuse(peer *p, const ck_error *why, ck_error *err); /* who goes on asking is answered so again */

/* ---- server_plugins.c ---- */
bool plugins_are_meant(const ck_message *m);
/* CK_FULL: the answer takes a while, and nothing else is read from the connection until then. */
ck_status plugins_hear(peer *p, const ck_message *m, ck_error *err);
void plugins_stop(ck_coordinator_server *s); /* thread: whoever stops the server; waits for what is under way */

#endif
