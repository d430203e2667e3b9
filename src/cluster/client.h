/* One question to a coordinator and its answer; and plugins, which a job that is submitted brings. */
#ifndef CK_CLUSTER_CLIENT_H
#define CK_CLUSTER_CLIENT_H

#include "base/proc.h"
#include "cluster/message.h"
#include "net/tls.h"

typedef struct ck_client_config {
    ck_proc *proc;
    const char *address;    /* "HOST:PORT", or several (addresses.h): the one that listens is asked */
    const char *token_file; /* NULL: where the coordinator of that port has put it */
    int64_t timeout_us;     /* -1: for ever */
    ck_tls_files tls;
} ck_client_config;

/* Asks m and waits for the REPLY; views in it are the arena's. CK_AGAIN: no answer in time. CK_NOTFOUND: nobody listens; of several
 * addresses not within the timeout. A refusal comes as a reply
 * whose status is not CK_OK, and is returned as that status with its sentence. Blocks. */
CK_NODISCARD ck_status ck_client_ask(const ck_client_config *cfg, const ck_message *m, ck_arena *a, ck_msg_reply *out,
                                     ck_error *err);

/* A plugin's file, whole. */
typedef struct ck_client_plugin {
    ck_msg_plugin said;
    ck_view content;
} ck_client_plugin;

/* The same for a SUBMIT, behind its plugins: each that the coordinator does not have is sent, in parts. What it does
 * not take is refused before anything is sent. */
CK_NODISCARD ck_status ck_client_submit(const ck_client_config *cfg, const ck_client_plugin *plugins, uint32_t count,
                                        const ck_message *m, ck_arena *a, ck_msg_reply *out, ck_error *err);

#endif
