/* Where a partition's records come from: from what we have fetched ourselves, or from the library, which fetches ahead
 * on threads of its own. It begins with the former where it can, and the library goes on where it cannot. */
#include "connector/kafka/source_int.h"

/* ---- the library ---- */

static void has_records(rd_kafka_t *rk, void *opaque) { /* thread: the library's */
    (void)rk;
    ck_kafka_partition *p = opaque;
    ck_op_ctx *ctx = p->of->ctx;
    if (!atomic_exchange(&p->woken, true)) ck_op_wake(ctx, ctx->rt);
}

/* Behind what has been copied. */
static ck_status start_library(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    const ck_kafka_lib *lib = s->client.lib;
    int64_t from = p->behind > p->split.position ? p->behind : p->split.position;
    p->fetched = false;
    if (!p->messages) p->messages = ck_alloc(s->mem, CK_KAFKA_FETCH_RECORDS * sizeof(void *));
    if (!p->messages) return ck_nomem(ctx->error, s->mem, CK_KAFKA_FETCH_RECORDS * sizeof(void *));
    if (lib->rd_kafka_consume_start(s->topic, p->split.partition, from) != 0)
        return ck_kafka_fail(&s->client, lib->rd_kafka_last_error(), ctx->error, "reading partition %d of topic %s",
                             p->split.partition, p->split.topic);
    p->started = true;
    rd_kafka_queue_t *q = lib->rd_kafka_queue_get_partition(s->client.rk, p->split.topic, p->split.partition);
    if (!q) return ck_kafka_fail(&s->client, lib->rd_kafka_last_error(), ctx->error, "topic %s", p->split.topic);
    lib->rd_kafka_queue_cb_event_enable(q, has_records, p);
    lib->rd_kafka_queue_destroy(q); /* our reference to it */
    return CK_OK;
}

/* What it says in place of a record. */
static ck_status take_event(ck_kafka_source *s, ck_kafka_partition *p, const rd_kafka_message_t *m, ck_op_ctx *ctx) {
    if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        p->at_end = true;
        if (m->offset > p->behind) p->behind = m->offset;
        if (m->offset >= p->split.end) p->finished = true; /* behind the last one there may be only markers */
        return CK_OK;
    }
    if (m->err == RD_KAFKA_RESP_ERR__TRANSPORT || m->err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
        m->err == RD_KAFKA_RESP_ERR__TIMED_OUT)
        return CK_OK; /* the library tries again by itself */
    const char *more =
        m->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || m->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE
            ? "; records it had not read are gone, or the topic was made anew under its name (--fresh begins "
              "with what is there)"
            : "";
    return ck_kafka_fail(&s->client, m->err, ctx->error, "topic %s, partition %d, offset %lld%s", p->split.topic,
                         p->split.partition, (long long)p->split.position, more);
}

static void hold_message(const ck_kafka_lib *lib, ck_kafka_partition *p, rd_kafka_message_t *m) {
    rd_kafka_timestamp_type_t type;
    p->record = (ck_kafka_record){.value = {m->payload, m->len},
                                  .key = {m->key, m->key_len},
                                  .offset = m->offset,
                                  .time_ms = lib->rd_kafka_message_timestamp(m, &type),
                                  .message = m};
    if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) p->record.time_ms = -1;
    p->held = true;
}

static ck_status take_messages(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    atomic_store(&p->woken, false); /* before the look: what comes behind it wakes again */
    ssize_t n =
        s->client.lib->rd_kafka_consume_batch(s->topic, p->split.partition, 0, p->messages, CK_KAFKA_FETCH_RECORDS);
    if (n < 0)
        return ck_kafka_fail(&s->client, s->client.lib->rd_kafka_last_error(), ctx->error,
                             "reading partition %d of topic %s", p->split.partition, p->split.topic);
    p->message_at = 0;
    p->message_count = (size_t)n;
    if (n) p->at_end = false;
    return CK_OK;
}

static ck_status next_message(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    const ck_kafka_lib *lib = s->client.lib;
    if (p->message_at == p->message_count && !p->finished) CK_TRY(take_messages(s, p, ctx));
    while (p->message_at < p->message_count) {
        rd_kafka_message_t *m = p->messages[p->message_at];
        if (!m->err) {
            hold_message(lib, p, m);
            return CK_OK;
        }
        CK_TRY(take_event(s, p, m, ctx));
        p->message_at++;
        lib->rd_kafka_message_destroy(m);
    }
    return CK_NOTFOUND;
}

/* ---- what we fetch ---- */

/* All that is in the chunk has been copied, or is no row. */
static void end_chunk(ck_kafka_source *s, ck_kafka_partition *p) {
    if (p->chunk->end > p->behind) p->behind = p->chunk->end;
    if (p->chunk->end >= p->split.end) p->finished = true;
    ck_kafka_fetcher_give_back(s->fetcher, p->chunk);
    p->chunk = NULL;
}

static void drop_fetched(ck_kafka_source *s, ck_kafka_partition *p) {
    if (p->chunk) ck_kafka_fetcher_give_back(s->fetcher, p->chunk);
    p->chunk = NULL;
    p->held = false;
    ck_kafka_fetcher_drop(s->fetcher, &p->feed);
}

/* CK_NOTFOUND: nothing now. */
static ck_status next_chunk(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    ck_kafka_ready ready;
    CK_TRY(ck_kafka_fetcher_take(s->fetcher, &p->feed, &ready, ctx->error));
    p->high = ready.high;
    p->at_end = ready.at_end && !ready.chunk;
    p->chunk = ready.chunk;
    if (p->chunk) {
        ck_kafka_batches_give(&p->batches, p->chunk->batches);
        return CK_OK;
    }
    if (ready.refused) CK_TRY(start_library(s, p, ctx));
    return CK_NOTFOUND;
}

static ck_status next_fetched(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    for (;;) {
        if (p->finished) return CK_NOTFOUND;
        if (!p->chunk) CK_TRY(next_chunk(s, p, ctx));
        ck_status status = ck_kafka_batches_next(&p->batches, &s->unpacker, &p->record);
        p->held = status == CK_OK;
        if (status == CK_OK) return CK_OK;
        if (status == CK_NOMEM) return ck_nomem(ctx->error, s->mem, 0);
        if (status == CK_NOTFOUND) {
            end_chunk(s, p);
            continue;
        }
        /* It is not what we read: the library says what it is, or reads it. */
        drop_fetched(s, p);
        CK_TRY(start_library(s, p, ctx));
        return CK_NOTFOUND;
    }
}

/* ---- either ---- */

ck_status ck_kafka_records_start(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    p->high = -1;
    ck_kafka_batches_init(&p->batches, s->mem);
    if (!s->fetcher) return start_library(s, p, ctx);
    CK_TRY(ck_kafka_fetcher_add(s->fetcher, &p->feed, p->split.partition, p->split.position, p->split.end, ctx->error));
    p->fetched = p->started = true;
    return CK_OK;
}

void ck_kafka_records_stop(ck_kafka_source *s, ck_kafka_partition *p) {
    /* The library is not told to stop first: 2.0 waits for ever where a topic that is gone was. */
    for (size_t i = p->message_at; i < p->message_count; i++) s->client.lib->rd_kafka_message_destroy(p->messages[i]);
    p->message_at = p->message_count = 0;
    if (p->messages) ck_free(s->mem, p->messages, CK_KAFKA_FETCH_RECORDS * sizeof(void *));
    p->messages = NULL;
    ck_kafka_batches_destroy(&p->batches);
}

ck_status ck_kafka_records_next(ck_kafka_source *s, ck_kafka_partition *p, ck_op_ctx *ctx) {
    if (p->held) return CK_OK;
    return p->fetched ? next_fetched(s, p, ctx) : next_message(s, p, ctx);
}

void ck_kafka_records_let_go(ck_kafka_source *s, ck_kafka_partition *p) {
    p->held = false;
    if (!p->record.message) {
        if (p->finished) drop_fetched(s, p);
        return;
    }
    s->client.lib->rd_kafka_message_destroy(p->record.message);
    p->message_at++;
}
