/* The cluster's token: who knows it may talk to the coordinator. Loopback is not authentication, so there always is
 * one; the coordinator makes it when it starts, in a directory that only its user may enter, and commands of the same
 * user find it there by themselves. It is never an argument. */
#ifndef CK_CLUSTER_TOKEN_H
#define CK_CLUSTER_TOKEN_H

#include "base/arena.h"
#include "base/proc.h"

enum { CK_TOKEN_CHARS = 64 };
typedef struct ck_token {
    char text[CK_TOKEN_CHARS + 1];
} ck_token;

/* $XDG_RUNTIME_DIR/clink, or /tmp/clink-UID: made 0700 when it is not there; refused when it is another user's. */
CK_NODISCARD ck_status ck_runtime_dir(ck_proc *proc, ck_arena *a, const char **out, ck_error *err);
void ck_token_make(ck_proc *proc, ck_token *out); /* a new one */
/* That of the coordinator of a port: in a file of 0600, in place of what was there. file NULL: where others look. */
CK_NODISCARD ck_status ck_token_publish(ck_proc *proc, const char *file, uint16_t port, const ck_token *t,
                                        ck_error *err);
CK_NODISCARD ck_status ck_token_find(ck_proc *proc, const char *file, uint16_t port, ck_token *out, ck_error *err);
/* In a time that says nothing of where they differ. */
bool ck_token_equal(const ck_token *t, ck_view other);

#endif
