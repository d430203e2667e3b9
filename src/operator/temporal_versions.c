/* The right side of an as-of join: versions by event time, or the row of each key that stands now. */
#include "operator/temporal_int.h"

/* NULL comes first. Texts are compared where they stand, however long they are. */
static ck_status compare_column(ck_temporal_join *op, uint32_t c, const ck_batch *b, uint32_t at, const ck_batch *old,
                                uint32_t old_at, int *out) {
    const ck_type *t = op->right.schema->fields[c].type;
    const ck_order_spec order = {c, t, true, false, true};
    bool null = ck_column_is_null(b->columns[c], at), was_null = ck_column_is_null(old->columns[c], old_at);
    if (null || was_null || ck_type_phys(t) == CK_PHYS_VIEW) {
        *out = null || was_null ? (int)was_null - (int)null
                                : ck_view_cmp(ck_column_str(b->columns[c], at), ck_column_str(old->columns[c], old_at));
        return CK_OK;
    }
    ck_bytes_clear(&op->is);
    ck_bytes_clear(&op->was);
    CK_TRY(ck_order_encode(&order, 1, b, at, &op->is));
    CK_TRY(ck_order_encode(&order, 1, old, old_at, &op->was));
    *out = ck_view_cmp(ck_bytes_as_view(&op->is), ck_bytes_as_view(&op->was));
    return CK_OK;
}

/* How row `at` of b stands to a row of `old`, by all columns of the right side. */
static ck_status compare(ck_temporal_join *op, const ck_batch *b, uint32_t at, const ck_batch *old, uint32_t old_at,
                         int *out, ck_op_ctx *ctx) {
    const ck_schema *schema = op->right.schema;
    *out = 0;
    for (uint32_t c = 0; *out == 0 && c < schema->field_count; c++) {
        ck_status s = compare_column(op, c, b, at, old, old_at, out);
        if (s == CK_NOMEM) return ck_nomem(ctx->error, ctx->mem, op->is.n);
        if (s == CK_FULL)
            return ck_fail(ctx->error, CK_FULL, "%s: column \"%s\" is over %d bytes, more than rows are told apart by",
                           ctx->uid, schema->fields[c].name, (int)CK_KEY_BYTES_MAX);
        if (s != CK_OK) return s;
    }
    return CK_OK;
}

/* Stored rows of the right side as they are now. */
static ck_status stored_rows(const ck_temporal_join *op, ck_row *const *rows, uint32_t n, ck_batch **out,
                             ck_op_ctx *ctx) {
    *out = ck_batch_new(ctx->mem, op->right.schema->field_count, n, false, false);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, n);
    ck_status s = ck_time_side_gather(&op->right, rows, n, *out, 0, ctx);
    if (s != CK_OK) ck_batch_unref(out);
    return s;
}

/* A version; of two with one time the greater one, whichever came first. */
static ck_status add_version(ck_temporal_join *op, ck_partition p, const ck_batch *b, uint32_t at, int64_t us,
                             ck_op_ctx *ctx) {
    char key[CK_TIME_KEY_BYTES];
    ck_row *row;
    int order = 1;
    if (ck_partition_find(op->right.table, p, ck_time_key(us, 0, key), &row) == CK_OK) {
        ck_batch *old;
        CK_TRY(stored_rows(op, &row, 1, &old, ctx));
        ck_status st = compare(op, b, at, old, 0, &order, ctx);
        ck_batch_unref(&old);
        CK_TRY(st);
    }
    if (order <= 0) return CK_OK;
    CK_TRY(ck_time_side_keep(&op->right, p, b, at, us, 0, false, ctx));
    if (ck_partition_rows(op->right.table, p) < 2 || !ck_partition_first(op->right.table, p, &row)) return CK_OK;
    int64_t first = ck_row_i64(row, op->right.time_at);
    return ck_time_side_timer(&op->right, p, us > first ? us : first, ctx);
}

ck_status ck_temporal_take_versions(ck_temporal_join *op, const ck_batch *b, ck_op_ctx *ctx) {
    ck_time_side *s = &op->right;
    uint32_t n = 0, bad_times = 0, late = 0;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us;
        if (!ck_window_row_time(&s->time, b->columns[s->time.time], row, &us)) {
            bad_times++;
            continue;
        }
        late += us <= op->clock.watermark;
        op->us[n] = us;
        op->sel[n] = (uint16_t)row;
        n += !ck_time_side_null_key(&s->keys, b, row);
    }
    if (bad_times) ck_op_count(ctx, "bad_time_rows", bad_times);
    if (late) ck_op_count(ctx, "late_versions", late); /* rows that were before it have been said without it */
    if (n == 0) return CK_OK;
    ck_batch *some = ck_batch_select(b, op->sel, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->sel);
    ck_status st = ck_time_side_partitions(s, &s->keys, some, true, op->hashes, op->partitions, ctx);
    for (uint32_t k = 0; st == CK_OK && k < n; k++)
        st = add_version(op, op->partitions[k], b, op->sel[k], op->us[k], ctx);
    ck_batch_unref(&some);
    return st;
}

/* Whether k is the last row of its key in the batch; asked from the last row to the first. */
static bool is_last(ck_temporal_join *op, uint32_t k) {
    uint32_t at = (op->partitions[k] * 2654435761u) % CK_TEMPORAL_LAST_SLOTS;
    for (; op->last[at]; at = (at + 1) % CK_TEMPORAL_LAST_SLOTS)
        if (op->partitions[op->last[at] - 1] == op->partitions[k]) return false;
    op->last[at] = (uint16_t)(k + 1);
    return true;
}

/* A key's row goes when the last that is said of it is that it goes; -1 of a row that another has replaced is nothing.
 */
static ck_status take_back(ck_temporal_join *op, const ck_batch *b, ck_op_ctx *ctx) {
    char key[CK_TIME_KEY_BYTES];
    ck_view place = ck_time_key(0, 0, key);
    uint32_t n = 0;
    memset(op->last, 0, sizeof op->last);
    for (uint32_t k = b->sel_count; k-- > 0;) {
        if (!op->partitions[k] || !is_last(op, k) || ck_batch_weight(b, ck_batch_row(b, k)) > 0) continue;
        op->lone[n] = (uint16_t)k;
        n += ck_partition_find(op->right.table, op->partitions[k], place, &op->waited[n]) == CK_OK;
    }
    if (n == 0) return CK_OK;
    ck_batch *old;
    CK_TRY(stored_rows(op, op->waited, n, &old, ctx));
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < n; i++) {
        int order;
        s = compare(op, b, ck_batch_row(b, op->lone[i]), old, i, &order, ctx);
        if (s == CK_OK && order == 0)
            s = ck_partition_erase(op->right.table, op->partitions[op->lone[i]], place, ctx->error);
    }
    ck_batch_unref(&old);
    return s;
}

ck_status ck_temporal_take_current(ck_temporal_join *op, const ck_batch *b, ck_op_ctx *ctx) {
    ck_time_side *s = &op->right;
    CK_TRY(ck_time_side_partitions(s, &s->keys, b, !b->weights, op->hashes, op->partitions, ctx));
    if (b->weights) { /* keys that only go are not made */
        uint32_t n = 0;
        for (uint32_t k = 0; k < b->sel_count; k++) {
            op->sel[n] = (uint16_t)ck_batch_row(b, k);
            n += ck_batch_weight(b, op->sel[n]) > 0;
        }
        ck_batch *puts = n ? ck_batch_select(b, op->sel, n) : NULL;
        if (n && !puts) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->sel);
        ck_status made = n ? ck_time_side_partitions(s, &s->keys, puts, true, op->hashes, op->partitions, ctx) : CK_OK;
        ck_batch_unref(&puts);
        if (made == CK_OK) made = ck_time_side_partitions(s, &s->keys, b, false, op->hashes, op->partitions, ctx);
        if (made != CK_OK) return made;
    }
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        if (ck_batch_weight(b, row) > 0) CK_TRY(ck_time_side_keep(s, op->partitions[k], b, row, 0, 0, false, ctx));
    }
    return b->weights ? take_back(op, b, ctx) : CK_OK;
}
