/* What the verbs that talk to a coordinator share. */
#ifndef CK_CLI_CLUSTER_H
#define CK_CLI_CLUSTER_H

#include "clink/cluster.h"
#include "cli/flags.h"

typedef struct cluster_flags {
    const char *coordinator, *token_file;
    int64_t timeout_s;
    bool json;
    clink_tls tls;
} cluster_flags;

/* Rows of a table of flags, for a clink_tls. */
#define CLUSTER_TLS_FLAGS(tls)                                                                                         \
    {"tls-cert", 0, FLAG_TEXT, &(tls).cert, "FILE", "no TLS", "our certificate, PEM"},                                 \
        {"tls-key", 0, FLAG_TEXT, &(tls).key, "FILE", "no TLS", "its key, PEM, without a passphrase"}, {               \
        "tls-ca", 0, FLAG_TEXT, &(tls).ca, "FILE", "no TLS", "the CA whose certificates are accepted"                  \
    }

enum { CLUSTER_FLAG_COUNT = 7 };
/* --coordinator, --token-file, --tls-cert, --tls-key, --tls-ca, --json and, where an answer may take time, --timeout-s;
 * how many. */
size_t cluster_flags_table(cluster_flags *f, flag *out);
clink_cluster cluster_of(const cluster_flags *f, int64_t timeout_ms);
/* A row of a table of flags, for what cluster_open is given. */
#define CLUSTER_LOG_FLAG(level)                                                                                        \
    { "log-level", 0, FLAG_TEXT, &(level), "L", "warn", "debug, info, warn, error or off" }
/* An engine for asking: one thread, nothing runs in it. memory_bytes: of the job it submits, or of the worker it is; 0:
 * none is said. log_level: NULL: warnings. */
clink_status cluster_open(uint64_t memory_bytes, const char *log_level, clink_engine **engine, clink_error *e);
/* Objects as they came, or a table for people. */
void cluster_print_jobs(const char *json, bool as_json);
/* The text or number under a key of one object; "" when it is not there. Control characters become spaces. */
void cluster_text(const char *json, const char *key, char *to, size_t room);

#endif
