/* Who may talk, and about what: tokens, each with roles (roles.h). Loopback is not authentication, so there always is
 * one. Either the coordinator makes it when it starts, with all roles, in a directory that only its user may enter, and
 * commands of the same user find it there by themselves; or a file of the operator's has several, a line each:
 *
 *   ROLE[,ROLE...] TOKEN      of 32 to 128 letters, digits and ._~+/=-; behind # anything
 *
 * A token is never an argument. */
#ifndef CK_CLUSTER_TOKEN_H
#define CK_CLUSTER_TOKEN_H

#include "base/arena.h"
#include "base/proc.h"
#include "cluster/roles.h"

enum {
    CK_TOKEN_CHARS = 64, /* of one that was made here */
    CK_TOKEN_CHARS_MIN = 32,
    CK_TOKEN_CHARS_MAX = 128,
    CK_TOKENS_MAX = 64,
};
typedef struct ck_token {
    char text[CK_TOKEN_CHARS_MAX + 1];
} ck_token;

typedef struct ck_tokens {
    ck_token token[CK_TOKENS_MAX];
    unsigned roles[CK_TOKENS_MAX];
    uint32_t count;
} ck_tokens;

/* $XDG_RUNTIME_DIR/clink, or /tmp/clink-UID: made 0700 when it is not there; refused when it is another user's. */
CK_NODISCARD ck_status ck_runtime_dir(ck_proc *proc, ck_arena *a, const char **out, ck_error *err);
void ck_token_make(ck_proc *proc, ck_token *out); /* a new one */
/* That of the coordinator of a port: in a file of 0600, in place of what was there. file NULL: where others look. */
CK_NODISCARD ck_status ck_token_publish(ck_proc *proc, const char *file, uint16_t port, const ck_token *t,
                                        ck_error *err);
/* The one to show; of a file with several the first. */
CK_NODISCARD ck_status ck_token_find(ck_proc *proc, const char *file, uint16_t port, ck_token *out, ck_error *err);
/* Those of an operator's file. count 0: it is none: not there, or with a token that a coordinator has put there. */
CK_NODISCARD ck_status ck_tokens_read(ck_proc *proc, const char *file, ck_tokens *out, ck_error *err);
/* In a time that says nothing of where they differ. */
bool ck_token_equal(const ck_token *t, ck_view other);
/* The roles of a token that was shown; 0: it is none of them. In a time that says nothing of which it is. */
unsigned ck_tokens_roles(const ck_tokens *t, ck_view shown);

#endif
