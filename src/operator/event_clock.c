#include "operator/event_clock_int.h"

#include <inttypes.h>
#include <stdio.h>

#include "data/builder.h"
#include "stream/event.h"

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

/* ---- its row: "watermark FIRST-LAST", the key groups of who wrote it ---- */

enum { NAME_BYTES = 48 };

static const char all_groups[] = "watermark"; /* of earlier releases: of every subtask */

static void name_of(ck_key_group_range r, char name[NAME_BYTES]) {
    (void)snprintf(name, NAME_BYTES, "%s %" PRIu32 "-%" PRIu32, all_groups, r.first, r.last);
}

static uint32_t value_at(const ck_table *t) {
    return ck_table_layout(t)->fields[ck_table_layout(t)->value_first].offset;
}

/* false: no row of ours, or one of an earlier release. */
static bool range_of(ck_view name, ck_key_group_range *out) {
    char text[NAME_BYTES], again[NAME_BYTES];
    if (name.n >= sizeof text) return false;
    memcpy(text, name.p, name.n);
    text[name.n] = 0;
    if (sscanf(text, "watermark %" SCNu32 "-%" SCNu32, &out->first, &out->last) != 2) return false;
    if (out->first > out->last || out->last == UINT32_MAX) return false;
    name_of(*out, again);
    return strcmp(text, again) == 0;
}

typedef struct told {
    ck_key_group_range of;
    int64_t watermark;
} told;

static bool next_told(ck_table *t, ck_table_scan *scan, told *out) {
    ck_row *row;
    while (ck_table_scan_next(t, scan, &row, 1) > 0) {
        ck_view name = ck_table_str(t, row, 0);
        *out = (told){{0, UINT32_MAX - 1}, ck_row_i64(row, value_at(t))};
        if (range_of(name, &out->of) || ck_view_is(name, all_groups)) return true;
    }
    return false;
}

/* The greatest that is told of *group, which becomes the next group of which more or less may be told. */
static int64_t watermark_from(ck_table *t, uint32_t *group, uint32_t last) {
    ck_table_scan scan = {0};
    uint32_t next = last + 1;
    int64_t greatest = CK_WATERMARK_MIN;
    for (told r; next_told(t, &scan, &r);) {
        if (r.of.first > *group && r.of.first < next) next = r.of.first;
        if (!ck_key_group_in(r.of, *group)) continue;
        if (r.of.last + 1 < next) next = r.of.last + 1;
        if (r.watermark > greatest) greatest = r.watermark;
    }
    *group = next;
    return greatest;
}

/* What other subtasks wrote is theirs to go on with. */
static ck_status forget_others(ck_event_clock *c, ck_table *t, const char *own, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    ck_row *row;
    while (ck_table_scan_next(t, &scan, &row, 1) > 0) {
        if (ck_view_is(ck_table_str(t, row, 0), own))
            c->stored = ck_row_i64(row, value_at(t));
        else
            CK_TRY(ck_table_erase(t, &row, 1, ctx->error));
    }
    return CK_OK;
}

/* least and greatest over its key groups; each: of each of them, NULL where nobody asks. */
static ck_status restore(ck_event_clock *c, int64_t *least, int64_t *greatest, int64_t *each, ck_op_ctx *ctx) {
    ck_table *t;
    char own[NAME_BYTES];
    ck_key_group_range range = ck_state_range(ctx->state);
    *least = *greatest = CK_WATERMARK_MIN;
    *c = (ck_event_clock){CK_WATERMARK_MIN, CK_WATERMARK_MIN};
    CK_TRY(ck_state_table(ctx->state, ck_event_clock_slot(), &t, ctx->error));
    if (ck_table_row_count(t) == 0) return CK_OK;
    *least = CK_WATERMARK_MAX;
    for (uint32_t group = range.first, next = group; group <= range.last; group = next) {
        int64_t watermark = watermark_from(t, &next, range.last);
        if (watermark < *least) *least = watermark;
        if (watermark > *greatest) *greatest = watermark;
        for (uint32_t i = group; each && i < next; i++) each[i - range.first] = watermark;
    }
    name_of(range, own);
    return forget_others(c, t, own, ctx);
}

ck_status ck_event_clock_open(ck_event_clock *c, bool by_wall_clock, ck_op_ctx *ctx) {
    int64_t least, greatest;
    CK_TRY(restore(c, &least, &greatest, NULL, ctx));
    c->watermark = by_wall_clock ? greatest : least;
    return CK_OK;
}

ck_status ck_event_clock_open_each(ck_event_clock *c, ck_mem mem, ck_event_clock_each *each, ck_op_ctx *ctx) {
    ck_key_group_range range = ck_state_range(ctx->state);
    int64_t least;
    *each = (ck_event_clock_each){.first = range.first, .count = range.last + 1 - range.first};
    each->watermarks = ck_alloc_array(mem, each->count, sizeof *each->watermarks);
    if (!each->watermarks) return ck_nomem(ctx->error, mem, each->count * sizeof *each->watermarks);
    CK_TRY(restore(c, &least, &each->greatest, each->watermarks, ctx));
    c->watermark = least;
    if (least == each->greatest) ck_event_clock_each_close(each, mem);
    return CK_OK;
}

void ck_event_clock_each_close(ck_event_clock_each *each, ck_mem mem) {
    ck_free(mem, each->watermarks, each->count * sizeof *each->watermarks);
    *each = (ck_event_clock_each){0};
}

ck_status ck_event_clock_store(ck_event_clock *c, ck_op_ctx *ctx) {
    if (c->stored == c->watermark) return CK_OK;
    char name[NAME_BYTES];
    name_of(ck_state_range(ctx->state), name);
    ck_column *value = ck_column_new(ctx->mem, CK_PHYS_I64, 1);
    if (!value) return ck_nomem(ctx->error, ctx->mem, sizeof(int64_t));
    value->i64[0] = c->watermark;
    const ck_column *const values[] = {value};
    ck_status s = ck_state_row_put(ctx->state, ck_event_clock_slot(), name, values, 0, ctx->error);
    ck_column_unref(&value);
    if (s == CK_OK) c->stored = c->watermark;
    return s;
}

/* ---- processing time ---- */

static int64_t floor_ms(int64_t us) { return us - (us % 1000 + 1000) % 1000; }

int64_t ck_event_clock_tick(int64_t now_us) { return floor_ms(now_us) - 1; }

int64_t ck_event_clock_now_ms(const ck_event_clock *c, int64_t now_us) {
    if (now_us < CK_EVENT_TIME_MIN) now_us = CK_EVENT_TIME_MIN;
    if (now_us > CK_EVENT_TIME_MAX) now_us = CK_EVENT_TIME_MAX;
    int64_t us = floor_ms(now_us);
    bool over = c->watermark != CK_WATERMARK_MAX && us <= c->watermark;
    return over ? floor_ms(c->watermark) + 1000 : us;
}
