/* What GROUP BY says. Outside `final`, a group's first touch after a flush keeps its result as last emitted; the flush
 * compares it with the result now and emits the old one with -1 before the new one with +1, nothing where they are
 * equal, only the -1 where the group is gone, only the +1 where it is new. In `final` every group is emitted once. */
#include "operator/group_int.h"

/* ---- remembering ---- */

/* The values of a column at these rows, strings copied, so that the batch's buffers can go. */
static ck_status copy_rows(const ck_column *c, const ck_type *type, const uint16_t *at, uint32_t n, ck_column **out,
                           ck_op_ctx *ctx) {
    ck_column_builder b;
    CK_TRY(ck_column_builder_init(&b, ctx->mem, type, n));
    ck_column_builder_take_with(&b, ctx->proc->cpu);
    ck_status s = CK_OK;
    if (b.phys == CK_PHYS_VIEW) {
        for (uint32_t i = 0; s == CK_OK && i < n; i++) {
            if (ck_column_is_null(c, at[i])) {
                s = ck_build_null(&b);
            } else {
                ck_view v = ck_column_str(c, at[i]);
                s = ck_build_str(&b, v.p, v.n);
            }
        }
    } else {
        s = ck_build_gather(&b, c, at, n);
    }
    *out = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

static void drop_columns(ck_column **columns, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) ck_column_unref(&columns[i]);
}

/* The groups of the batch's rows newly[0..n) and their results, before the batch is counted, as a segment. */
static ck_status remember(ck_group *op, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    uint32_t columns_n = op->touched.column_count;
    uint16_t *at = ck_arena_alloc(ctx->arena, n * sizeof *at);
    const ck_row **rows = ck_arena_alloc(ctx->arena, n * sizeof *rows);
    uint8_t *existed = ck_arena_alloc(ctx->arena, n);
    ck_column **columns = ck_arena_array(ctx->arena, columns_n + 1u, sizeof(ck_column *));
    if (!at || !rows || !existed || !columns) return ck_nomem(ctx->error, ctx->mem, n * sizeof *rows);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = op->newly[i];
        at[i] = (uint16_t)ck_batch_row(b, k);
        rows[i] = op->rows[k];
        existed[i] = !op->fresh[k] && ck_group_is_there(p, rows[i]);
    }
    ck_batch *some = ck_batch_select(b, at, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *at);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < p->keys.count; i++)
        s = copy_rows(b->columns[p->keys.columns[i]], p->keys.types[i], at, n, &columns[i], ctx);
    ck_groups g = {rows, n, some, &p->keys, NULL};
    if (s == CK_OK) s = ck_group_results(p, &g, columns + p->keys.count, ctx);
    if (s == CK_OK && (s = ck_touched_add_segment(&op->touched, columns, existed, n)) != CK_OK)
        ck_nomem(ctx->error, ctx->mem, n);
    drop_columns(columns, columns_n);
    ck_batch_unref(&some);
    return s;
}

ck_status ck_group_touch(ck_group *op, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n = ck_group_is_global(&op->plan) ? 1 : b->sel_count, newly;
    if (ck_touched_enter(&op->touched, &op->plan.keys, b, op->hashes, n, op->newly, &newly) != CK_OK)
        return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_touched_entry));
    return newly ? remember(op, b, newly, ctx) : CK_OK;
}

ck_status ck_group_touch_global(ck_group *op, ck_op_ctx *ctx) {
    uint32_t owner = ck_key_group_for_key((ck_view){NULL, 0}, ctx->settings->key_groups);
    if (!ck_key_group_in(ctx->key_groups, owner)) return CK_OK;
    bool fresh = false;
    CK_TRY(ck_table_single(op->table, true, &op->rows[0], &fresh, ctx->error));
    if (!fresh) return CK_OK; /* was emitted, or is touched */
    ck_batch *b = ck_batch_new(ctx->mem, 0, 1, false, false);
    if (!b) return ck_nomem(ctx->error, ctx->mem, sizeof *b);
    op->hashes[0] = 0;
    op->fresh[0] = 1;
    ck_status s = ck_group_touch(op, b, ctx);
    ck_batch_unref(&b);
    return s;
}

/* ---- flushing ---- */

typedef struct slice { /* some touched groups, before and now */
    uint32_t n;
    ck_column **before; /* keys, results */
    uint8_t *existed;
    ck_batch *keys;
    const ck_row **rows; /* NULL: gone */
    const ck_row **live;
    uint16_t *live_of; /* index in live, for those that are there */
    uint32_t live_count;
    ck_column **now; /* results of live */
    uint16_t *pick;  /* rows of the output: row of before or now */
    uint8_t *after;  /* 1: of now */
    uint16_t *key;   /* and of the keys */
    uint32_t picks;
    bool minus;
} slice;

static ck_status slice_alloc(slice *s, uint32_t n, uint32_t columns, ck_op_ctx *ctx) {
    ck_arena *a = ctx->arena;
    *s = (slice){.n = n};
    s->before = ck_arena_array(a, columns + 1u, sizeof(ck_column *));
    s->now = ck_arena_array(a, columns + 1u, sizeof(ck_column *));
    s->existed = ck_arena_alloc(a, n);
    s->rows = ck_arena_alloc(a, n * sizeof(ck_row *));
    s->live = ck_arena_alloc(a, n * sizeof(ck_row *));
    s->live_of = ck_arena_alloc(a, n * sizeof *s->live_of);
    s->pick = ck_arena_alloc(a, 2u * n * sizeof *s->pick);
    s->after = ck_arena_alloc(a, 2u * n);
    s->key = ck_arena_alloc(a, 2u * n * sizeof *s->key);
    bool all = s->before && s->now && s->existed && s->rows && s->live && s->live_of && s->pick && s->after && s->key;
    return all ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_row *));
}

static ck_status gather_before(ck_group *op, slice *s, ck_op_ctx *ctx) {
    const ck_touched *t = &op->touched;
    for (uint32_t c = 0; c < t->column_count; c++) {
        uint32_t keys = op->plan.keys.count;
        const ck_type *type = c < keys ? op->plan.keys.types[c] : op->plan.results[c - keys].type;
        ck_column_builder b;
        CK_TRY(ck_column_builder_init(&b, ctx->mem, type, s->n));
        ck_status status = ck_touched_gather(t, op->flushed, s->n, c, op->identity, &b);
        s->before[c] = status == CK_OK ? ck_column_builder_finish(&b) : NULL;
        ck_column_builder_destroy(&b);
        if (!s->before[c]) return ck_nomem(ctx->error, ctx->mem, s->n * sizeof(ck_strview));
    }
    for (uint32_t i = 0; i < s->n; i++) s->existed[i] = ck_touched_existed(t, op->flushed + i);
    return CK_OK;
}

static ck_batch *batch_of(ck_column *const *columns, uint32_t count, uint32_t rows, bool weights, ck_op_ctx *ctx) {
    ck_batch *b = ck_batch_new(ctx->mem, count, rows, false, weights);
    for (uint32_t c = 0; b && c < count; c++) {
        ck_column *ref = ck_column_ref(columns[c]);
        ck_batch_set_column(b, c, &ref);
    }
    return b;
}

static ck_status look_up(ck_group *op, slice *s, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    s->keys = batch_of(s->before, p->keys.count, s->n, false, ctx);
    if (!s->keys) return ck_nomem(ctx->error, ctx->mem, s->n);
    if (ck_group_is_global(p)) {
        ck_row *row;
        CK_TRY(ck_table_single(op->table, true, &row, NULL, ctx->error));
        s->rows[0] = row;
    } else {
        uint64_t *hashes = ck_arena_alloc(ctx->arena, s->n * sizeof *hashes);
        if (!hashes) return ck_nomem(ctx->error, ctx->mem, s->n * sizeof *hashes);
        for (uint32_t i = 0; i < s->n; i++) hashes[i] = op->touched.entries[op->flushed + i].hash;
        ck_keys keys = {&p->own_keys, s->keys, hashes, s->n};
        CK_TRY(ck_table_find(op->table, &keys, s->rows, ctx->error));
    }
    uint16_t *sel = ck_arena_alloc(ctx->arena, s->n * sizeof *sel);
    if (!sel) return ck_nomem(ctx->error, ctx->mem, s->n * sizeof *sel);
    for (uint32_t i = 0; i < s->n; i++) {
        s->live_of[i] = (uint16_t)s->live_count;
        if (!ck_group_is_there(p, s->rows[i])) continue;
        sel[s->live_count] = (uint16_t)i;
        s->live[s->live_count++] = s->rows[i];
    }
    if (s->live_count == 0) return CK_OK;
    ck_batch *live = s->live_count == s->n ? ck_batch_ref(s->keys) : ck_batch_select(s->keys, sel, s->live_count);
    if (!live) return ck_nomem(ctx->error, ctx->mem, s->n * sizeof *sel);
    ck_groups g = {s->live, s->live_count, live, &p->own_keys, NULL};
    ck_status status = ck_group_results(p, &g, s->now, ctx);
    ck_batch_unref(&live);
    return status;
}

static bool differs(const ck_column *before, uint32_t i, const ck_column *now, uint32_t j) {
    if (before->phys == CK_PHYS_I64 && !before->validity && !now->validity) return before->i64[i] != now->i64[j];
    return !ck_column_rows_equal(before, i, now, j);
}

/* Which rows to emit. */
static void choose(ck_group *op, slice *s) {
    const ck_group_plan *p = &op->plan;
    for (uint32_t i = 0; i < s->n; i++) {
        bool live = ck_group_is_there(p, s->rows[i]), changed = !live || !s->existed[i];
        for (uint32_t c = 0; !changed && c < p->result_count; c++)
            changed = differs(s->before[p->keys.count + c], i, s->now[c], s->live_of[i]);
        if (!changed) continue;
        if (s->existed[i]) {
            s->pick[s->picks] = s->key[s->picks] = (uint16_t)i;
            s->after[s->picks++] = 0;
            s->minus = true;
        }
        if (live) {
            s->pick[s->picks] = s->live_of[i];
            s->key[s->picks] = (uint16_t)i;
            s->after[s->picks++] = 1;
        }
    }
}

#define MERGE(member)                                                                                                  \
    for (uint32_t i = 0; i < s->picks; i++)                                                                            \
    out->member[i] = s->after[i] ? now->member[s->pick[i]] : before->member[s->pick[i]]

static ck_status merge_views(const slice *s, const ck_column *before, const ck_column *now, ck_column *out,
                             ck_op_ctx *ctx) {
    uint32_t shift = before->heaps ? before->heaps->count : 0, more = now->heaps ? now->heaps->count : 0;
    for (uint32_t i = 0; i < s->picks; i++) {
        ck_strview v = s->after[i] ? now->views[s->pick[i]] : before->views[s->pick[i]];
        if (s->after[i] && v.length > CK_STRVIEW_INLINE) v.ref.buffer += (int32_t)shift;
        out->views[i] = v;
    }
    if (shift + more == 0) return CK_OK;
    ck_buffer **buffers = ck_arena_array(ctx->arena, shift + more, sizeof(ck_buffer *));
    if (!buffers) return CK_NOMEM;
    if (shift) memcpy(buffers, before->heaps->buffers, shift * sizeof *buffers);
    if (more) memcpy(buffers + shift, now->heaps->buffers, more * sizeof *buffers);
    ck_heaps *heaps = ck_heaps_new(ctx->mem, buffers, shift + more);
    if (!heaps) return CK_NOMEM;
    ck_column_set_heaps(out, heaps);
    ck_heaps_unref(&heaps);
    return CK_OK;
}

/* Arrays, maps and rows. */
static ck_column *merge_nested(const slice *s, const ck_type *type, const ck_column *before, const ck_column *now,
                               ck_op_ctx *ctx) {
    ck_column_builder b;
    ck_status status = ck_column_builder_init(&b, ctx->mem, type, s->picks);
    for (uint32_t i = 0; status == CK_OK && i < s->picks; i++)
        status = ck_build_from(&b, s->after[i] ? now : before, s->pick[i]);
    ck_column *out = status == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return out;
}

/* The result column of the output, its rows from before and now in the order chosen. NULL without memory. */
static ck_column *merge(const slice *s, const ck_type *type, const ck_column *before, const ck_column *now,
                        ck_op_ctx *ctx) {
    if (!now) now = before; /* nothing lives: no pick is of now */
    if (before->phys == CK_PHYS_LIST || before->phys == CK_PHYS_STRUCT) return merge_nested(s, type, before, now, ctx);
    ck_column *out = ck_column_new(ctx->mem, before->phys, s->picks);
    if (!out) return NULL;
    ck_status status = CK_OK;
    switch (before->phys) {
    case CK_PHYS_I64: MERGE(i64); break;
    case CK_PHYS_F64: MERGE(f64); break;
    case CK_PHYS_I128: MERGE(i128); break;
    case CK_PHYS_VIEW: status = merge_views(s, before, now, out, ctx); break;
    case CK_PHYS_BOOL:
        for (uint32_t i = 0; i < s->picks; i++)
            ck_bit_put(out->bits, i, ck_bit_get((s->after[i] ? now : before)->bits, s->pick[i]));
        break;
    default: CK_ASSERT(before->phys == CK_PHYS_NULL);
    }
    if (status == CK_OK && (before->validity || now->validity)) {
        uint64_t *validity = ck_column_writable_validity(out);
        if (!validity) status = CK_NOMEM;
        for (uint32_t i = 0; validity && i < s->picks; i++)
            ck_bit_put(validity, i, !ck_column_is_null(s->after[i] ? now : before, s->pick[i]));
    }
    if (status != CK_OK) ck_column_unref(&out);
    return out;
}

static ck_status assemble(ck_group *op, const slice *s, ck_batch **out, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    *out = ck_batch_new(ctx->mem, op->touched.column_count, s->picks, false, s->minus);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, s->picks);
    for (uint32_t c = 0; c < op->touched.column_count; c++) {
        ck_column *column = NULL;
        if (c < p->keys.count) {
            ck_column_builder b;
            ck_status status = ck_column_builder_init(&b, ctx->mem, p->keys.types[c], s->picks);
            if (status == CK_OK) status = ck_build_gather(&b, s->before[c], s->key, s->picks);
            if (status == CK_OK) column = ck_column_builder_finish(&b);
            ck_column_builder_destroy(&b);
        } else {
            column = merge(s, p->results[c - p->keys.count].type, s->before[c], s->now[c - p->keys.count], ctx);
        }
        if (!column) {
            ck_batch_unref(out);
            return ck_nomem(ctx->error, ctx->mem, s->picks * sizeof(ck_strview));
        }
        ck_batch_set_column(*out, c, &column);
    }
    for (uint32_t i = 0; s->minus && i < s->picks; i++) (*out)->weights[i] = s->after[i] ? 1 : -1;
    return CK_OK;
}

/* Groups without rows leave the table; those below zero wait there for what is still to come, except where it may have
 * been forgotten. */
static ck_status erase_empty(ck_group *op, const slice *s, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    if (!p->row_count || ck_group_is_global(p)) return CK_OK;
    ck_row **gone = ck_arena_alloc(ctx->arena, s->n * sizeof *gone);
    if (!gone) return ck_nomem(ctx->error, ctx->mem, s->n * sizeof *gone);
    uint32_t count = 0, negative = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->rows[i]) continue;
        int64_t rows = ck_row_i64(s->rows[i], p->row_count->offset[0]);
        negative += rows < 0;
        if (rows == 0 || (rows < 0 && p->ttl_us)) gone[count++] = (ck_row *)(uintptr_t)s->rows[i];
    }
    if (negative) ck_op_count(ctx, p->ttl_us ? "unmatched_rows" : "negative_groups", negative);
    return count ? ck_table_erase(op->table, gone, count, ctx->error) : CK_OK;
}

static ck_status flush_slice(ck_group *op, uint32_t n, ck_op_ctx *ctx) {
    slice s;
    ck_batch *out = NULL;
    CK_TRY(slice_alloc(&s, n, op->touched.column_count, ctx));
    ck_status status = gather_before(op, &s, ctx);
    if (status == CK_OK) status = look_up(op, &s, ctx);
    if (status == CK_OK) choose(op, &s);
    if (status == CK_OK && s.picks > 0) status = assemble(op, &s, &out, ctx);
    if (status == CK_OK) status = erase_empty(op, &s, ctx);
    drop_columns(s.before, op->touched.column_count);
    drop_columns(s.now, op->plan.result_count);
    ck_batch_unref(&s.keys);
    if (status == CK_OK && out) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return status;
}

ck_status ck_group_flush(ck_group *op, ck_op_ctx *ctx) {
    if (!op->flushing) {
        op->flushing = true;
        op->flushed = 0;
    }
    uint32_t most = ctx->settings->batch_rows / 2; /* a group may give two rows */
    if (most == 0) most = 1;
    size_t left = op->touched.count - op->flushed;
    uint32_t n = left < most ? (uint32_t)left : most;
    if (n > 0) CK_TRY(flush_slice(op, n, ctx));
    op->flushed += n;
    if (op->flushed < op->touched.count) return CK_MORE;
    ck_touched_clear(&op->touched);
    op->flushing = false;
    return CK_OK;
}

/* ---- final ---- */

static ck_status emit_rows(ck_group *op, uint32_t n, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    uint32_t count = p->keys.count + p->result_count;
    const ck_row *const *rows = (const ck_row *const *)op->rows;
    ck_column **columns = ck_arena_array(ctx->arena, count + 1u, sizeof(ck_column *));
    if (!columns) return ck_nomem(ctx->error, ctx->mem, count * sizeof(ck_column *));
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < p->keys.count; i++) {
        ck_column_builder b;
        s = ck_column_builder_init(&b, ctx->mem, p->keys.types[i], n);
        if (s == CK_OK) s = ck_table_gather_field(op->table, rows, n, i, &b);
        columns[i] = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
        ck_column_builder_destroy(&b);
        if (!columns[i]) s = ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    }
    ck_batch *keys = s == CK_OK ? batch_of(columns, p->keys.count, n, false, ctx) : NULL;
    if (s == CK_OK && !keys) s = ck_nomem(ctx->error, ctx->mem, n);
    ck_groups g = {rows, n, keys, &p->own_keys, NULL};
    if (s == CK_OK) s = ck_group_results(p, &g, columns + p->keys.count, ctx);
    ck_batch *out = s == CK_OK ? batch_of(columns, count, n, false, ctx) : NULL;
    if (s == CK_OK && !out) s = ck_nomem(ctx->error, ctx->mem, n);
    drop_columns(columns, count);
    ck_batch_unref(&keys);
    return s == CK_OK ? ck_op_emit(ctx, 0, &out) : s;
}

ck_status ck_group_emit_all(ck_group *op, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    if (ck_group_is_global(p)) {
        uint32_t owner = ck_key_group_for_key((ck_view){NULL, 0}, ctx->settings->key_groups);
        if (!ck_key_group_in(ctx->key_groups, owner)) return CK_OK;
        CK_TRY(ck_table_single(op->table, true, &op->rows[0], NULL, ctx->error));
        return emit_rows(op, 1, ctx);
    }
    if (!op->scanning) {
        op->scanning = true;
        op->scan = (ck_table_scan){0};
    }
    uint32_t n = ck_table_scan_next(op->table, &op->scan, op->rows, ctx->settings->batch_rows), live = 0;
    if (n == 0) {
        op->scanning = false;
        return CK_OK;
    }
    for (uint32_t i = 0; i < n; i++)
        if (ck_group_is_there(p, op->rows[i])) op->rows[live++] = op->rows[i];
    if (live > 0) CK_TRY(emit_rows(op, live, ctx));
    return CK_MORE;
}
