#include "operator/event_clock_int.h"

#include "data/builder.h"
#include "stream/event.h"

static const char row_name[] = "watermark";

const ck_slot_schema *ck_event_clock_slot(void) {
    static const ck_type name_type = {.kind = CK_TYPE_VARCHAR}, value_type = {.kind = CK_TYPE_BIGINT};
    static const ck_field name = {"name", &name_type, false}, value = {"value", &value_type, false};
    static const ck_slot_schema slot = {.slot = CK_TIME_SLOT,
                                        .state_type = "watermark",
                                        .version = 1,
                                        .mode = CK_SLOT_UNION,
                                        .partition = &name,
                                        .partition_count = 1,
                                        .values = &value,
                                        .value_count = 1};
    return &slot;
}

ck_status ck_event_clock_open(ck_event_clock *c, ck_op_ctx *ctx) {
    ck_table *t;
    ck_table_scan scan = {0};
    ck_row *row;
    *c = (ck_event_clock){CK_WATERMARK_MIN, CK_WATERMARK_MIN};
    CK_TRY(ck_state_table(ctx->state, ck_event_clock_slot(), &t, ctx->error));
    uint32_t at = ck_table_layout(t)->fields[ck_table_layout(t)->value_first].offset;
    while (ck_table_scan_next(t, &scan, &row, 1) > 0)
        if (ck_row_i64(row, at) > c->watermark) c->watermark = ck_row_i64(row, at);
    c->stored = c->watermark;
    return CK_OK;
}

ck_status ck_event_clock_store(ck_event_clock *c, ck_op_ctx *ctx) {
    if (c->stored == c->watermark) return CK_OK;
    ck_column *value = ck_column_new(ctx->mem, CK_PHYS_I64, 1);
    if (!value) return ck_nomem(ctx->error, ctx->mem, sizeof(int64_t));
    value->i64[0] = c->watermark;
    const ck_column *const values[] = {value};
    ck_status s = ck_state_row_put(ctx->state, ck_event_clock_slot(), row_name, values, 0, ctx->error);
    ck_column_unref(&value);
    if (s == CK_OK) c->stored = c->watermark;
    return s;
}

static int64_t floor_ms(int64_t us) { return us - (us % 1000 + 1000) % 1000; }

int64_t ck_event_clock_now_ms(const ck_event_clock *c, int64_t now_us) {
    if (now_us < CK_EVENT_TIME_MIN) now_us = CK_EVENT_TIME_MIN;
    if (now_us > CK_EVENT_TIME_MAX) now_us = CK_EVENT_TIME_MAX;
    int64_t us = floor_ms(now_us);
    bool over = c->watermark != CK_WATERMARK_MAX && us <= c->watermark;
    return over ? floor_ms(c->watermark) + 1000 : us;
}
