/* The coordinator as a process has it: the machine on one event loop, with a listener, records in a directory, and
 * probes. A peer that stalls, says nonsense or does not know the token costs only its own connection.
 *
 * Threads: start and stop from one; everything else is the loop's. */
#ifndef CK_CLUSTER_COORDINATOR_SERVER_H
#define CK_CLUSTER_COORDINATOR_SERVER_H

#include "base/proc.h"
#include "cluster/coordinator/coordinator.h"
#include "net/tls.h"

typedef struct ck_coordinator_server ck_coordinator_server;

typedef struct ck_coordinator_server_config {
    ck_proc *proc;
    const char *host;      /* without TLS it must be a loopback address */
    const char *advertise; /* the host under which it is reached; NULL: the same */
    ck_tls_files tls;
    uint16_t port;                 /* 0: any */
    const char *metadata_dir;      /* made when missing, locked; NULL: what is known ends with the process */
    const char *ha;                /* etcd://...: there, and whichever coordinator its lease has leads; NULL: none */
    int64_t lease_s;               /* with ha */
    const char *token_file;    /* the operator's tokens, or where to put one; NULL: where commands of our user look */
    const char *allow_plugins; /* uploads.h; NULL: none are taken */
    ck_coordinator_config machine; /* mem, epoch and seed are the server's to fill */
} ck_coordinator_server_config;

/* Reads the records, listens, leads. CK_EXISTS: somebody has the port, or the directory. CK_AGAIN, with ha: another one
 * leads; nobody listens here meanwhile. Blocks (I/O). */
CK_NODISCARD ck_status ck_coordinator_server_start(const ck_coordinator_server_config *cfg, ck_coordinator_server **out,
                                                   uint16_t *port, ck_error *err);
/* CK_OK: it leads. Otherwise why it does not any more: a record could not be written, the lease has run out,
 * memory ran out. */
CK_NODISCARD ck_status ck_coordinator_server_state(ck_coordinator_server *s, ck_error *err);
void ck_coordinator_server_stop(ck_coordinator_server *s); /* jobs go on where they are; NULL is fine */

#endif
