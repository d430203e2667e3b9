/* Partitions that come while the job runs: a look now and then how many there are, on an I/O thread. Each subtask takes
 * its share, from their beginning. */
#include "connector/kafka/source_int.h"
#include "os/clock.h"

static void discovery_run(ck_io_job *j) {
    ck_kafka_discovery *d = (ck_kafka_discovery *)j;
    d->call.status = ck_kafka_partitions(&d->of->client, &d->of->options, &d->found, &d->call.error);
}

/* A server that does not answer is no reason to fail: reading goes on when it is back. A topic that has gone is. */
static ck_status discovered(ck_kafka_source *s, ck_op_ctx *ctx) {
    ck_kafka_discovery *d = &s->discovery;
    if (d->call.status == CK_NOTFOUND) {
        *ctx->error = d->call.error;
        return d->call.status;
    }
    if (d->call.status != CK_OK) return CK_OK;
    for (int32_t i = d->share.known; i < d->found; i++) {
        if ((uint32_t)i % d->share.of != d->share.turn) continue;
        /* All that is in it came after the job began. */
        ck_kafka_split split = {
            .topic = s->options.topic, .partition = i, .position = 0, .end = INT64_MAX, .time_us = INT64_MIN};
        const char *id = ck_arena_printf(ctx->arena, "%s-%d", split.topic, i);
        if (!id) return ck_nomem(ctx->error, ctx->mem, 64);
        CK_TRY(ck_kafka_source_add(s, id, &split, ctx));
    }
    if (d->found > d->share.known) d->share.known = d->found;
    return CK_OK;
}

ck_status ck_kafka_discover(ck_kafka_source *s, int64_t now, int64_t *until_us, ck_op_ctx *ctx) {
    ck_kafka_discovery *d = &s->discovery;
    if (!d->on) return CK_OK;
    if (d->call.running) {
        if (!ck_background_ended(&d->call)) return CK_OK;
        CK_TRY(discovered(s, ctx));
        d->next_us = now + s->options.discover_ms * 1000;
    } else if (now >= d->next_us) {
        ck_background_begin(&d->call, discovery_run, ctx);
        return CK_OK;
    }
    if (d->next_us < *until_us) *until_us = d->next_us;
    return CK_OK;
}
