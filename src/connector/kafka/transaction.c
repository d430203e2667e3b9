/* Transactions of one transactional id. Every failure ends the producer: it is closed and opened anew, since what the
 * brokers know of the transaction is only certain once they have been asked under a new epoch. */
#include <stdio.h>
#include <yyjson.h>

#include "base/json.h"
#include "connector/kafka/commit_int.h"
#include "os/clock.h"

enum { POLL_MS = 100, ABORT_MS = 3000, TOKEN_BYTES_MAX = 4096 };

/* What does not go away by trying again. Being shut out is found out by reading who commits now. */
static bool is_lasting(rd_kafka_resp_err_t code) {
    return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED || code == RD_KAFKA_RESP_ERR_INVALID_RECORD ||
           code == RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
           code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE;
}

static ck_status fail(ck_kafka_producer *p, rd_kafka_resp_err_t code, const char *what, ck_error *err) {
    const ck_kafka_options *o = p->options;
    ck_status s = ck_kafka_hopeless(&p->client, o, err);
    if (s != CK_OK) return s;
    s = ck_kafka_fail(&p->client, code, err, "Kafka at %s, topic %s: %s", o->brokers, o->topic, what);
    if (err) err->retriable = !is_lasting(code);
    return s;
}

static ck_status fail_error(ck_kafka_producer *p, rd_kafka_error_t *e, const char *what, ck_error *err) {
    rd_kafka_resp_err_t code = p->client.lib->rd_kafka_error_code(e);
    p->client.lib->rd_kafka_error_destroy(e);
    if (p->undelivered) code = p->undelivered; /* the reason why it has to be aborted */
    return fail(p, code, what, err);
}

static void delivered(void *opaque, const rd_kafka_message_t *m) { /* thread: who polls */
    ck_kafka_producer *p = opaque;
    if (m->err && !p->undelivered) p->undelivered = m->err;
}

/* ---- opening ---- */

static ck_status start(ck_kafka_producer *p, ck_proc *proc, ck_error *err) {
    const ck_kafka_options *o = p->options;
    char id[128], timeout[24], batch[24];
    size_t topic_bytes_max;
    CK_TRY(ck_kafka_topic_bytes_max(proc, o, &p->arena, &topic_bytes_max, err));
    snprintf(id, sizeof id, "clink-%.64s-%016llx", p->owner->job, (unsigned long long)p->owner->op_id);
    snprintf(timeout, sizeof timeout, "%lld", (long long)o->transaction_ms);
    /* Keys go to the partition they go to with Kafka's own clients. */
    const char *pairs[] = {"transactional.id",
                           id,
                           "transaction.timeout.ms",
                           timeout,
                           "partitioner",
                           "murmur2_random",
                           "linger.ms",
                           "5",
                           "queue.buffering.max.kbytes",
                           "65536",
                           "batch.size",
                           ck_kafka_batch_size(topic_bytes_max, batch),
                           NULL};
    p->client.opaque = p;
    p->client.delivered = delivered;
    CK_TRY(ck_kafka_client_new(proc, o, RD_KAFKA_PRODUCER, pairs, &p->arena, &p->client, err));
    const ck_kafka_lib *lib = p->client.lib;
    p->rows = lib->rd_kafka_topic_new(p->client.rk, o->topic, NULL);
    p->tokens = lib->rd_kafka_topic_new(p->client.rk, o->token_topic, NULL);
    if (!p->rows || !p->tokens) return fail(p, lib->rd_kafka_last_error(), "opening it", err);
    return ck_kafka_tokens_make(&p->client, o, err);
}

static ck_status fence(ck_kafka_producer *p, ck_error *err) {
    rd_kafka_error_t *e = p->client.lib->rd_kafka_init_transactions(p->client.rk, (int)p->options->timeout_ms);
    return e ? fail_error(p, e, "beginning to write exactly once", err) : CK_OK;
}

ck_status ck_kafka_producer_open(ck_kafka_producer *p, ck_proc *proc, const ck_kafka_options *o,
                                 const ck_kafka_owner *owner, ck_mem mem, ck_error *err) {
    *p = (ck_kafka_producer){.options = o, .owner = owner};
    ck_arena_init(&p->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = start(p, proc, err);
    if (s == CK_OK) s = fence(p, err);
    if (s == CK_OK) s = ck_fault_hit(proc->faults, CK_FAULT_KAFKA_FENCED);
    if (s != CK_OK) ck_kafka_producer_close(p);
    return s;
}

void ck_kafka_producer_close(ck_kafka_producer *p) {
    if (!p->options) return;
    const ck_kafka_lib *lib = p->client.lib;
    if (p->client.rk && p->in_transaction) { /* readers need not wait until it times out */
        rd_kafka_error_t *e = lib->rd_kafka_abort_transaction(p->client.rk, ABORT_MS);
        if (e) lib->rd_kafka_error_destroy(e);
    }
    if (p->client.rk) lib->rd_kafka_purge(p->client.rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    if (p->rows) lib->rd_kafka_topic_destroy(p->rows);
    if (p->tokens) lib->rd_kafka_topic_destroy(p->tokens);
    ck_kafka_client_destroy(&p->client);
    ck_arena_destroy(&p->arena);
    *p = (ck_kafka_producer){0};
}

/* ---- a transaction ---- */

ck_status ck_kafka_begin(ck_kafka_producer *p, ck_error *err) {
    rd_kafka_error_t *e = p->client.lib->rd_kafka_begin_transaction(p->client.rk);
    if (e) return fail_error(p, e, "beginning a transaction", err);
    p->in_transaction = true;
    p->give_up_us = ck_mono_us(p->client.proc) + p->options->transaction_ms * 1000;
    return ck_fault_hit(p->client.proc->faults, CK_FAULT_KAFKA_BEGUN);
}

static ck_status produce(ck_kafka_producer *p, rd_kafka_topic_t *to, int32_t partition, ck_view key, ck_view value,
                         ck_error *err) {
    const ck_kafka_lib *lib = p->client.lib;
    rd_kafka_vu_t vus[5] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = to},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {(void *)(uintptr_t)value.p, value.n}},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {(void *)(uintptr_t)key.p, key.n}},
    };
    for (;;) {
        rd_kafka_error_t *e = lib->rd_kafka_produceva(p->client.rk, vus, key.p ? 5 : 4);
        if (!e) break;
        if (lib->rd_kafka_error_code(e) != RD_KAFKA_RESP_ERR__QUEUE_FULL || p->undelivered ||
            ck_mono_us(p->client.proc) >= p->give_up_us)
            return fail_error(p, e, "sending", err);
        lib->rd_kafka_error_destroy(e);
        lib->rd_kafka_poll(p->client.rk, POLL_MS);
    }
    return CK_OK;
}

ck_status ck_kafka_send(ck_kafka_producer *p, ck_view key, ck_view value, ck_error *err) {
    return produce(p, p->rows, RD_KAFKA_PARTITION_UA, key, value, err);
}

ck_status ck_kafka_send_token(ck_kafka_producer *p, uint32_t writer, uint64_t checkpoint, ck_error *err) {
    char key[128], value[48];
    int k = snprintf(key, sizeof key, "%.64s/%016llx/%u", p->owner->job, (unsigned long long)p->owner->op_id, writer);
    int v = snprintf(value, sizeof value, "{\"checkpoint\":%llu}", (unsigned long long)checkpoint);
    return produce(p, p->tokens, 0, (ck_view){key, (size_t)k}, (ck_view){value, (size_t)v}, err);
}

static ck_status life_print(ck_arena *a, const char *life, const char *job, const char *sink, ck_view *out,
                            ck_error *err) {
    struct yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(a, &doc, err));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    if (!yyjson_mut_obj_add_str(doc, root, "life", life) || !yyjson_mut_obj_add_str(doc, root, "job", job) ||
        !yyjson_mut_obj_add_str(doc, root, "sink", sink))
        return ck_nomem(err, a->mem, TOKEN_BYTES_MAX);
    return ck_json_write(a, doc, out, err);
}

ck_status ck_kafka_send_life(ck_kafka_producer *p, const char *life, const char *job, const char *sink, ck_error *err) {
    char key[128];
    ck_view value;
    int k = snprintf(key, sizeof key, "%.64s/%016llx", p->owner->job, (unsigned long long)p->owner->op_id);
    CK_TRY(life_print(&p->arena, life, job, sink, &value, err));
    return produce(p, p->tokens, 0, (ck_view){key, (size_t)k}, value, err);
}

ck_status ck_kafka_flush(ck_kafka_producer *p, ck_error *err) {
    const ck_kafka_lib *lib = p->client.lib;
    while (lib->rd_kafka_outq_len(p->client.rk) > 0 && !p->undelivered) {
        lib->rd_kafka_flush(p->client.rk, POLL_MS);
        ck_status s = ck_kafka_hopeless(&p->client, p->options, err);
        if (s != CK_OK) return s;
        if (ck_mono_us(p->client.proc) >= p->give_up_us)
            return fail(p, RD_KAFKA_RESP_ERR__TIMED_OUT, "sending in a transaction", err);
    }
    if (p->undelivered) return fail(p, p->undelivered, "sending in a transaction", err);
    return ck_fault_hit(p->client.proc->faults, CK_FAULT_KAFKA_SENT);
}

ck_status ck_kafka_commit(ck_kafka_producer *p, ck_error *err) {
    rd_kafka_error_t *e = p->client.lib->rd_kafka_commit_transaction(p->client.rk, (int)p->options->timeout_ms);
    if (e) return fail_error(p, e, "committing a transaction", err);
    p->in_transaction = false;
    if (ck_fault_hit(p->client.proc->faults, CK_FAULT_KAFKA_COMMITTED) == CK_OK) return CK_OK;
    /* As if the answer had been lost. */
    return fail(p, RD_KAFKA_RESP_ERR__TIMED_OUT, "committing a transaction", err);
}
