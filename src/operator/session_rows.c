/* Rows of a batch into sessions. By key, and in the order of their time, rows with less than a gap between them are one
 * piece; a piece joins every session of its key that it overlaps, and is late when what comes out has been closed
 * already. */
#include "operator/session_int.h"

#include <stdlib.h>

static int by_time(const void *x, const void *y) {
    const ck_session_row *a = x, *b = y;
    if (a->us != b->us) return a->us < b->us ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Rows of one key side by side, in the order they came: op->unsorted into op->rows. */
static void group_rows(ck_session_agg *op, uint32_t n) {
    enum { SLOTS = CK_ARRAY_COUNT(op->slots) };
    memset(op->slots, 0, sizeof op->slots);
    for (uint32_t k = 0; k < n; k++) {
        ck_partition p = op->unsorted[k].partition;
        uint32_t slot = (uint32_t)(ck_mix64(p) % SLOTS);
        while (op->slots[slot] && op->unsorted[op->slots[slot] - 1].partition != p)
            slot = slot + 1 == SLOTS ? 0 : slot + 1;
        if (!op->slots[slot]) {
            op->slots[slot] = (uint16_t)(k + 1);
            op->place[k] = 0;
        }
        op->first_of[k] = (uint16_t)(op->slots[slot] - 1);
        op->place[op->first_of[k]]++;
    }
    for (uint32_t k = 0, at = 0; k < n; k++) {
        if (op->first_of[k] != k) continue;
        uint32_t count = op->place[k];
        op->place[k] = at;
        at += count;
    }
    for (uint32_t k = 0; k < n; k++) op->rows[op->place[op->first_of[k]]++] = op->unsorted[k];
}

/* Rows mostly come in the order of their time. */
static void sort_by_time(ck_session_row *r, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        if (r[i].us >= r[i - 1].us) continue;
        if (n > 64) {
            qsort(r, n, sizeof *r, by_time);
            return;
        }
        ck_session_row x = r[i];
        uint32_t k = i;
        for (; k > 0 && r[k - 1].us > x.us; k--) r[k] = r[k - 1];
        r[k] = x;
    }
}

static ck_status partitions_of(ck_session_agg *op, const ck_batch *b, bool create, ck_op_ctx *ctx) {
    ck_key_hash(&op->plan.keys, b, ck_table_seed(op->table), op->hashes);
    ck_keys keys = {&op->plan.keys, b, op->hashes, b->sel_count};
    return ck_table_partitions(op->table, &keys, create, op->partitions, ctx->error);
}

/* Whether a session with this end takes no more rows. */
static bool is_closed(const ck_session_agg *op, int64_t end) {
    return ck_event_clock_passed(op->clock.watermark, end + op->lateness_us);
}

/* Rows with a time into op->sel; rows that are surely late - closed by themselves, of a key without sessions - are left
 * out, so that they leave no trace of their key. */
static ck_status choose_rows(ck_session_agg *op, const ck_batch *b, uint32_t *count, ck_op_ctx *ctx) {
    const ck_window *w = &op->window;
    uint32_t bad = 0;
    *count = op->late_count = 0;
    CK_TRY(partitions_of(op, b, false, ctx));
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us;
        if (!ck_window_row_time(w, ck_window_times(w, b), row, &us)) {
            bad++;
        } else if (op->partitions[k] == 0 && is_closed(op, us + w->size_us)) {
            op->late_rows[op->late_count++] = (uint16_t)row;
        } else {
            op->sel[(*count)++] = (uint16_t)row;
        }
    }
    if (bad) ck_op_count(ctx, "bad_time_rows", bad);
    return CK_OK;
}

/* ---- one piece ---- */

typedef struct piece {
    int64_t start, end;
    ck_partition partition;
    const ck_session_row *rows;
    uint32_t n;
} piece;

enum { OVERLAPS_MAX = 64 }; /* taken at a time */

/* Starts of the sessions of the key that the piece overlaps, in order. */
static uint32_t overlaps(ck_session_agg *op, const piece *p, int64_t *starts, int64_t *ends) {
    ck_range r;
    ck_row *row;
    uint32_t n = 0;
    ck_range_open(&r, op->table, p->partition, (ck_view){0}, (ck_view){0});
    while (n < OVERLAPS_MAX && ck_range_next(&r, &row)) {
        int64_t start = ck_row_i64(row, op->start_at), end = ck_row_i64(row, op->end_at);
        if (start >= p->end) break;
        if (end <= p->start) continue;
        starts[n] = start;
        ends[n++] = end;
    }
    return n;
}

static ck_status session_row(ck_session_agg *op, ck_partition p, int64_t start, ck_row **row, bool *fresh,
                             ck_op_ctx *ctx) {
    char key[CK_INSTANT_KEY_BYTES];
    return ck_partition_upsert(op->table, p, ck_instant_key(start, key), row, fresh, ctx->error);
}

/* What the session that starts at `from` holds goes to the one that starts at `to`, and it is gone. */
static ck_status absorb(ck_session_agg *op, ck_partition p, int64_t to, int64_t from, ck_op_ctx *ctx) {
    char from_key[CK_INSTANT_KEY_BYTES];
    ck_row *dst, *src;
    bool fresh;
    CK_TRY(session_row(op, p, to, &dst, &fresh, ctx));
    CK_TRY(ck_partition_find(op->table, p, ck_instant_key(from, from_key), &src));
    const ck_row *rows[1] = {src}, *to_rows[1] = {dst};
    ck_batch *src_keys = NULL, *dst_keys = NULL;
    ck_status s = ck_instant_keys(op, rows, 1, &src_keys, ctx);
    if (s == CK_OK) s = ck_instant_keys(op, to_rows, 1, &dst_keys, ctx);
    ck_groups g = {rows, 1, src_keys, &op->plan.own_side_keys, NULL};
    for (uint32_t i = 0; s == CK_OK && i < op->plan.acc_count; i++) {
        ck_acc *a = op->plan.accs[i];
        if (!a->shares_side && a->distinct < 0) s = a->merge(a, &dst, op->table, &g, dst_keys, ctx);
    }
    if (s == CK_OK) s = ck_session_sets_move(op, src_keys, to, dst, ctx);
    if (s == CK_OK) s = ck_session_erase_beside(op, src_keys, 1, ctx);
    ck_batch_unref(&src_keys);
    ck_batch_unref(&dst_keys);
    CK_TRY(s);
    return ck_partition_erase(op->table, p, ck_instant_key(from, from_key), ctx->error);
}

/* The session the piece belongs to, made of all it overlaps; *late: it was closed before. */
static ck_status settle(ck_session_agg *op, piece *p, bool *late, ck_op_ctx *ctx) {
    int64_t starts[OVERLAPS_MAX], ends[OVERLAPS_MAX];
    *late = false;
    for (;;) {
        uint32_t n = overlaps(op, p, starts, ends);
        int64_t start = n && starts[0] < p->start ? starts[0] : p->start, end = p->end;
        if (n && ends[n - 1] > end) end = ends[n - 1];
        if (n == 0 && is_closed(op, end)) {
            *late = true;
            return CK_OK;
        }
        ck_row *row;
        bool fresh;
        CK_TRY(ck_session_take_back(op, p->partition, starts, n, ctx));
        CK_TRY(session_row(op, p->partition, start, &row, &fresh, ctx));
        ck_row_set_i64(row, op->end_at, end);
        if (op->lateness_us) ck_row_set_bool(row, op->said_at, false);
        for (uint32_t i = 0; i < n; i++)
            if (starts[i] != start) CK_TRY(absorb(op, p->partition, start, starts[i], ctx));
        p->start = start;
        p->end = end;
        if (n < OVERLAPS_MAX) return CK_OK;
    }
}

static ck_status count_piece(ck_session_agg *op, piece p, const ck_batch *b, int64_t *starts, ck_op_ctx *ctx) {
    bool late, fresh;
    ck_row *row;
    CK_TRY(settle(op, &p, &late, ctx));
    if (late) {
        for (uint32_t i = 0; i < p.n; i++) op->late_rows[op->late_count++] = p.rows[i].row;
        return CK_OK;
    }
    if (ck_partition_timers_set(&op->timers, p.partition, p.end) != CK_OK)
        return ck_nomem(ctx->error, op->mem, sizeof(ck_partition_timer));
    CK_TRY(session_row(op, p.partition, p.start, &row, &fresh, ctx));
    for (uint32_t i = 0; i < p.n; i++) {
        op->sel[i] = p.rows[i].row;
        op->found[i] = row;
        starts[p.rows[i].row] = p.start;
    }
    ck_batch *some = ck_batch_select(b, op->sel, p.n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, p.n * sizeof *op->sel);
    ck_status s = ck_lanes_begin(&op->lanes, some, op->found, ctx);
    for (uint32_t i = 0; s == CK_OK && i < op->plan.acc_count; i++) {
        ck_acc *a = op->plan.accs[i];
        const ck_lane *lane = NULL;
        if (a->shares_side) continue;
        s = ck_lanes_get(&op->lanes, a->lane, some, &lane, ctx);
        if (s == CK_OK && lane->n > 0) s = a->update(a, lane, some, &op->plan.side_keys, ctx);
    }
    ck_batch_unref(&some);
    return s == CK_OK ? ck_session_say_anew(op, p.partition, p.start, ctx) : s;
}

/* b's columns, and one for the start of each row's session. */
static ck_batch *with_starts(const ck_batch *b, ck_mem mem, int64_t **starts) {
    ck_batch *out = ck_batch_new(mem, b->column_count + 1, b->row_count, false, false);
    ck_column *c = out ? ck_column_new(mem, CK_PHYS_I64, b->row_count) : NULL;
    if (!c) {
        ck_batch_unref(&out);
        return NULL;
    }
    *starts = c->i64;
    ck_batch_set_column(out, b->column_count, &c);
    for (uint32_t i = 0; i < b->column_count; i++) {
        ck_column *ref = b->columns[i] ? ck_column_ref(b->columns[i]) : NULL;
        if (ref) ck_batch_set_column(out, i, &ref);
    }
    out->origin = ck_origin_ref(b->origin); /* for errors */
    return out;
}

static ck_status count_pieces(ck_session_agg *op, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    int64_t *starts;
    ck_batch *all = with_starts(b, ctx->mem, &starts);
    ck_status s = CK_OK;
    if (!all) return ck_nomem(ctx->error, ctx->mem, b->row_count * sizeof *starts);
    for (uint32_t from = 0, to; s == CK_OK && from < n; from = to) {
        ck_session_row *r = op->rows;
        if (from == 0 || r[from].partition != r[from - 1].partition) {
            for (to = from + 1; to < n && r[to].partition == r[from].partition;) to++;
            sort_by_time(r + from, to - from);
        }
        for (to = from + 1;
             to < n && r[to].partition == r[from].partition && r[to].us - r[to - 1].us < op->window.size_us;)
            to++;
        piece p = {r[from].us, r[to - 1].us + op->window.size_us, r[from].partition, r + from, to - from};
        s = count_piece(op, p, all, starts, ctx);
    }
    ck_batch_unref(&all);
    return s;
}

ck_status ck_session_count(ck_session_agg *op, const ck_batch *b, ck_op_ctx *ctx) {
    uint32_t n;
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(choose_rows(op, b, &n, ctx));
    if (n == 0) return ck_late_drop(&op->late, b, op->late_rows, op->late_count, op->clock.watermark, ctx);
    ck_batch *some = ck_batch_select(b, op->sel, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *op->sel);
    ck_status s = partitions_of(op, some, true, ctx);
    for (uint32_t k = 0; s == CK_OK && k < n; k++) {
        op->unsorted[k] = (ck_session_row){op->partitions[k], 0, op->sel[k]};
        (void)ck_window_row_time(&op->window, ck_window_times(&op->window, b), op->sel[k], &op->unsorted[k].us);
    }
    if (s == CK_OK) group_rows(op, n);
    if (s == CK_OK) s = count_pieces(op, some, n, ctx);
    ck_batch_unref(&some);
    if (s == CK_OK) s = ck_session_emit(op, ctx);
    return s == CK_OK ? ck_late_drop(&op->late, b, op->late_rows, op->late_count, op->clock.watermark, ctx) : s;
}
