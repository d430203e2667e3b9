/* Option values that stand for a secret: ${env:NAME} and ${file:PATH}. They are resolved where the connector uses them,
 * so that neither graphs nor checkpoints hold what they stand for. */
#ifndef CK_CONNECTOR_SECRET_H
#define CK_CONNECTOR_SECRET_H

#include "base/arena.h"
#include "base/proc.h"

/* The value of option `name`: what it stands for, a file's text without its last line ends, at most bytes_max of it;
 * any other value as it is (*out == value). In the arena or the environment. The secret is in no message. Blocks. */
CK_NODISCARD ck_status ck_secret_resolve(ck_proc *proc, const char *name, const char *value, size_t bytes_max,
                                         ck_arena *a, const char **out, ck_error *err);

/* A script is kept in the checkpoint directory and shown by EXPLAIN: CK_INVALID where a value (NULL: none is given)
 * does not stand for the secret but is it. */
CK_NODISCARD ck_status ck_secret_check(const char *name, const char *value, ck_error *err);

/* CK_INVALID where an address has a user or password in it, as in https://user:word@host/. */
CK_NODISCARD ck_status ck_secret_check_url(const char *name, const char *url, const char *instead, ck_error *err);

#endif
