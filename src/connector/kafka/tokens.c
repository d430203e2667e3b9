/* The token topic: made where it is missing, read where a committer begins or is in doubt. Others write to it in
 * transactions of their own, and what stands behind an open one is not shown to a reader of what is committed: a reader
 * that must know waits until that has ended. */
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/json.h"
#include "connector/kafka/commit_int.h"
#include "os/clock.h"

enum { POLL_MS = 100, WRITERS_MAX = 1 << 20, SETTLE_SLACK_MS = 20000 };

/* ---- the list ---- */

void ck_kafka_tokens_destroy(ck_kafka_tokens *t) {
    if (t->checkpoints) ck_free(t->mem, t->checkpoints, t->capacity * sizeof *t->checkpoints);
    *t = (ck_kafka_tokens){0};
}

uint64_t ck_kafka_token(const ck_kafka_tokens *t, uint32_t writer) {
    return writer < t->count ? t->checkpoints[writer] : 0;
}

ck_status ck_kafka_token_set(ck_kafka_tokens *t, uint32_t writer, uint64_t checkpoint, ck_error *err) {
    if (writer >= t->capacity) {
        uint32_t capacity = writer < 8 ? 16 : writer * 2;
        void *list =
            ck_realloc(t->mem, t->checkpoints, t->capacity * sizeof *t->checkpoints, capacity * sizeof *t->checkpoints);
        if (!list) return ck_nomem(err, t->mem, capacity * sizeof *t->checkpoints);
        t->checkpoints = list;
        memset(t->checkpoints + t->capacity, 0, (capacity - t->capacity) * sizeof *t->checkpoints);
        t->capacity = capacity;
    }
    if (writer >= t->count) t->count = writer + 1;
    t->checkpoints[writer] = checkpoint;
    return CK_OK;
}

/* ---- records ---- */

static ck_status bad_token(const ck_kafka_options *o, const rd_kafka_message_t *m, ck_error *err) {
    return ck_fail(err, CK_CORRUPT, "topic %s, offset %lld: this is no token of a job", o->token_topic,
                   (long long)m->offset);
}

/* One of the owner's records; what is behind the key's prefix. */
static ck_status take_own(const ck_kafka_options *o, const rd_kafka_message_t *m, ck_view rest, ck_kafka_tokens *t,
                          ck_error *err) {
    ck_arena a;
    struct yyjson_doc *doc;
    ck_arena_init(&a, ck_mem_as(t->mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_json_read(&a, (ck_view){m->payload, m->len}, &doc, err);
    yyjson_val *root = s == CK_OK ? yyjson_doc_get_root(doc) : NULL;
    yyjson_val *life = yyjson_obj_get(root, "life"), *checkpoint = yyjson_obj_get(root, "checkpoint");
    if (s == CK_CORRUPT) {
        s = bad_token(o, m, err);
    } else if (s == CK_OK && rest.n == 0) {
        if (yyjson_is_str(life) && yyjson_get_len(life) < sizeof t->life)
            memcpy(t->life, yyjson_get_str(life), yyjson_get_len(life) + 1);
        else
            s = bad_token(o, m, err);
    } else if (s == CK_OK) {
        char number[16] = "", *end = number;
        if (rest.n - 1 < sizeof number) memcpy(number, rest.p + 1, rest.n - 1);
        unsigned long writer = strtoul(number, &end, 10);
        bool ok = number[0] >= '0' && number[0] <= '9' && !*end && writer < WRITERS_MAX && yyjson_is_uint(checkpoint);
        s = ok ? ck_kafka_token_set(t, (uint32_t)writer, yyjson_get_uint(checkpoint), err) : bad_token(o, m, err);
    }
    ck_arena_destroy(&a);
    return s;
}

static ck_status take(const ck_kafka_options *o, const char *prefix, const rd_kafka_message_t *m, ck_kafka_tokens *t,
                      ck_error *err) {
    size_t n = strlen(prefix);
    if (m->key_len < n || !m->key || memcmp(m->key, prefix, n) != 0 || !m->payload) return CK_OK;
    ck_view rest = {(const char *)m->key + n, m->key_len - n};
    return rest.n == 0 || rest.p[0] == '/' ? take_own(o, m, rest, t, err) : CK_OK;
}

/* ---- reading ---- */

static ck_status fail_io(ck_kafka_client *c, const ck_kafka_options *o, rd_kafka_resp_err_t code, ck_error *err) {
    ck_status s =
        ck_kafka_fail(c, code, err, "Kafka at %s: reading what is committed from topic %s", o->brokers, o->token_topic);
    if (err) err->retriable = true;
    return s;
}

/* Where the topic ends, open transactions counted. */
static ck_status end_of(ck_proc *proc, const ck_kafka_options *o, ck_arena *a, int64_t *end, ck_error *err) {
    static const char *const pairs[] = {"isolation.level", "read_uncommitted", NULL};
    ck_kafka_client c = {0};
    int64_t low;
    CK_TRY(ck_kafka_client_new(proc, o, RD_KAFKA_CONSUMER, pairs, a, &c, err));
    rd_kafka_resp_err_t code =
        c.lib->rd_kafka_query_watermark_offsets(c.rk, o->token_topic, 0, &low, end, (int)o->timeout_ms);
    ck_status s = code ? fail_io(&c, o, code, err) : CK_OK;
    ck_kafka_client_destroy(&c);
    return s;
}

/* Up to offset end; or with end -1 to what can be seen. */
static ck_status read_up_to(ck_kafka_client *c, const ck_kafka_options *o, rd_kafka_topic_t *topic, const char *prefix,
                            int64_t end, ck_kafka_tokens *t, ck_error *err) {
    int64_t give_up = ck_mono_us(c->proc) + (o->transaction_ms + SETTLE_SLACK_MS) * 1000;
    for (;;) {
        rd_kafka_message_t *m = c->lib->rd_kafka_consume(topic, 0, POLL_MS);
        CK_TRY(ck_kafka_hopeless(c, o, err));
        if (m) {
            rd_kafka_resp_err_t code = m->err;
            int64_t at = m->offset;
            ck_status s = code ? CK_OK : take(o, prefix, m, t, err);
            c->lib->rd_kafka_message_destroy(m);
            if (s != CK_OK) return s;
            if (code == RD_KAFKA_RESP_ERR__PARTITION_EOF && at >= end) return CK_OK;
            if (!code && end >= 0 && at + 1 >= end) return CK_OK;
            if (code && code != RD_KAFKA_RESP_ERR__PARTITION_EOF && code != RD_KAFKA_RESP_ERR__TRANSPORT &&
                code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && code != RD_KAFKA_RESP_ERR__TIMED_OUT)
                return fail_io(c, o, code, err);
        }
        if (ck_mono_us(c->proc) >= give_up) return fail_io(c, o, RD_KAFKA_RESP_ERR__TIMED_OUT, err);
    }
}

static ck_status read_topic(ck_proc *proc, const ck_kafka_options *o, const ck_kafka_owner *owner, bool settled,
                            ck_arena *a, ck_kafka_tokens *t, ck_error *err) {
    static const char *const pairs[] = {
        "isolation.level", "read_committed", "enable.partition.eof", "true", "fetch.wait.max.ms", "20", NULL};
    char prefix[128];
    int64_t end = -1;
    ck_kafka_client c = {0};
    snprintf(prefix, sizeof prefix, "%.64s/%016llx", owner->job, (unsigned long long)owner->op_id);
    if (settled) CK_TRY(end_of(proc, o, a, &end, err));
    if (end == 0) return CK_OK;
    CK_TRY(ck_kafka_client_new(proc, o, RD_KAFKA_CONSUMER, pairs, a, &c, err));
    rd_kafka_topic_t *topic = c.lib->rd_kafka_topic_new(c.rk, o->token_topic, NULL);
    ck_status s = CK_OK;
    if (!topic || c.lib->rd_kafka_consume_start(topic, 0, RD_KAFKA_OFFSET_BEGINNING) != 0) {
        s = fail_io(&c, o, c.lib->rd_kafka_last_error(), err);
    } else {
        s = read_up_to(&c, o, topic, prefix, end, t, err);
    }
    if (topic) c.lib->rd_kafka_topic_destroy(topic);
    ck_kafka_client_destroy(&c);
    return s;
}

ck_status ck_kafka_tokens_read(ck_proc *proc, const ck_kafka_options *o, const ck_kafka_owner *owner, bool settled,
                               ck_mem mem, ck_kafka_tokens *out, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_kafka_tokens_destroy(out);
    out->mem = mem;
    ck_status s = read_topic(proc, o, owner, settled, &a, out, err);
    if (s != CK_OK) ck_kafka_tokens_destroy(out);
    ck_arena_destroy(&a);
    return s;
}

/* ---- making ---- */

static ck_status create(ck_kafka_client *c, const ck_kafka_options *o, ck_error *err) {
    const ck_kafka_lib *lib = c->lib;
    char reason[256];
    rd_kafka_NewTopic_t *topic = lib->rd_kafka_NewTopic_new(o->token_topic, 1, -1, reason, sizeof reason);
    if (!topic) return ck_fail(err, CK_INVALID, "option 'token_topic': %s", reason);
    rd_kafka_resp_err_t code = lib->rd_kafka_NewTopic_set_config(topic, "cleanup.policy", "compact");
    /* Short segments: only closed ones are compacted, and a start reads the topic from its beginning. */
    if (!code) code = lib->rd_kafka_NewTopic_set_config(topic, "segment.ms", "3600000");
    if (!code) code = lib->rd_kafka_NewTopic_set_config(topic, "segment.bytes", "16777216");
    rd_kafka_queue_t *q = lib->rd_kafka_queue_new(c->rk);
    if (!code) lib->rd_kafka_CreateTopics(c->rk, &topic, 1, NULL, q);
    rd_kafka_event_t *ev = code ? NULL : lib->rd_kafka_queue_poll(q, (int)o->timeout_ms);
    if (!code) code = ev ? lib->rd_kafka_event_error(ev) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    const rd_kafka_CreateTopics_result_t *result = ev ? lib->rd_kafka_event_CreateTopics_result(ev) : NULL;
    size_t count = 0;
    const rd_kafka_topic_result_t **each = result ? lib->rd_kafka_CreateTopics_result_topics(result, &count) : NULL;
    if (!code && count == 1) code = lib->rd_kafka_topic_result_error(each[0]);
    if (ev) lib->rd_kafka_event_destroy(ev);
    lib->rd_kafka_queue_destroy(q);
    lib->rd_kafka_NewTopic_destroy(topic);
    if (!code || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) return CK_OK;
    ck_status s = ck_kafka_fail(c, code, err,
                                "Kafka at %s: making the topic %s, which says what is committed (option 'token_topic'; "
                                "one partition, cleanup.policy=compact)",
                                o->brokers, o->token_topic);
    if (err) err->retriable = code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT;
    return s;
}

ck_status ck_kafka_tokens_make(ck_kafka_client *c, const ck_kafka_options *o, ck_error *err) {
    ck_kafka_options tokens = *o;
    tokens.topic = o->token_topic;
    int32_t partitions;
    ck_status s = ck_kafka_partitions(c, &tokens, &partitions, err);
    if (s == CK_NOTFOUND) {
        ck_error_reset(err);
        CK_TRY(create(c, o, err));
        s = CK_NOTFOUND;
        /* The brokers tell each other of it. */
        for (int64_t give_up = ck_mono_us(c->proc) + o->timeout_ms * 1000;
             s == CK_NOTFOUND && ck_mono_us(c->proc) < give_up;) {
            ck_error_reset(err);
            s = ck_kafka_partitions(c, &tokens, &partitions, err);
            if (s == CK_NOTFOUND) c->lib->rd_kafka_poll(c->rk, POLL_MS);
        }
    }
    if (s == CK_IO && err) err->retriable = true;
    return s;
}
