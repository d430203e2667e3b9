/* The committer of the Kafka sink from the inside: tokens, and the transactions that write them with rows.
 *
 * A token topic holds, all in partition 0 and compacted,
 *
 *   key                                value
 *   <job uuid>/<op id>                 {"life":"<16 hex>","job":NAME,"sink":UID}   who commits now; the last one wins
 *   <job uuid>/<op id>/<writer>        {"checkpoint":N}                            what that writer's rows are
 * committed up to
 *
 * and a sink has one transactional id, clink-<job uuid>-<op id>, at any parallelism and in every life. */
#ifndef CK_CONNECTOR_KAFKA_COMMIT_INT_H
#define CK_CONNECTOR_KAFKA_COMMIT_INT_H

#include "connector/kafka/kafka_int.h"
#include "connector/write_ahead.h"

/* Whose tokens and transactions. */
typedef struct ck_kafka_owner {
    const char *job; /* UUID */
    uint64_t op_id;
} ck_kafka_owner;

/* ---- tokens (tokens.c) ---- */

typedef struct ck_kafka_tokens {
    uint64_t *checkpoints; /* by writer; 0: none */
    uint32_t count, capacity;
    char life[17]; /* "": this owner has never committed and never begun to */
    ck_mem mem;
} ck_kafka_tokens;

void ck_kafka_tokens_destroy(ck_kafka_tokens *t); /* safe on zero */
uint64_t ck_kafka_token(const ck_kafka_tokens *t, uint32_t writer);
CK_NODISCARD ck_status ck_kafka_token_set(ck_kafka_tokens *t, uint32_t writer, uint64_t checkpoint, ck_error *err);
/* What is committed of this owner, read anew. settled: everything that was in the topic when it was asked is taken into
 * account, whoever's transaction has to end first; otherwise what can be seen at once. Blocks. */
CK_NODISCARD ck_status ck_kafka_tokens_read(ck_proc *proc, const ck_kafka_options *o, const ck_kafka_owner *owner,
                                            bool settled, ck_mem mem, ck_kafka_tokens *out, ck_error *err);
/* Makes the token topic where there is none. Blocks. */
CK_NODISCARD ck_status ck_kafka_tokens_make(ck_kafka_client *c, const ck_kafka_options *o, ck_error *err);

/* ---- a producer with a transactional id (transaction.c) ---- */

typedef struct ck_kafka_producer {
    ck_kafka_client client;
    const ck_kafka_options *options;
    const ck_kafka_owner *owner;
    rd_kafka_topic_t *rows, *tokens;
    bool in_transaction;
    rd_kafka_resp_err_t undelivered;
    int64_t give_up_us;
    ck_arena arena;
} ck_kafka_producer;

/* From here on who had this transactional id before can commit nothing, and what it had begun is aborted. Options and
 * owner are borrowed. Failures that may pass are retriable. Blocks. */
CK_NODISCARD ck_status ck_kafka_producer_open(ck_kafka_producer *p, ck_proc *proc, const ck_kafka_options *o,
                                              const ck_kafka_owner *owner, ck_mem mem, ck_error *err);
void ck_kafka_producer_close(ck_kafka_producer *p); /* aborts what is open; safe on zero */
CK_NODISCARD ck_status ck_kafka_begin(ck_kafka_producer *p, ck_error *err);
CK_NODISCARD ck_status ck_kafka_send(ck_kafka_producer *p, ck_view key, ck_view value, ck_error *err);
CK_NODISCARD ck_status ck_kafka_send_token(ck_kafka_producer *p, uint32_t writer, uint64_t checkpoint, ck_error *err);
CK_NODISCARD ck_status ck_kafka_send_life(ck_kafka_producer *p, const char *life, const char *job, const char *sink,
                                          ck_error *err);
/* Everything sent is with the brokers, in the open transaction. */
CK_NODISCARD ck_status ck_kafka_flush(ck_kafka_producer *p, ck_error *err);
/* After a failure it is not known whether it has happened: close, open, and read the tokens. */
CK_NODISCARD ck_status ck_kafka_commit(ck_kafka_producer *p, ck_error *err);

#endif
