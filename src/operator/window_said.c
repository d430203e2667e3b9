/* Groups of windows that are over, until there is a batch of them. A hop of many slides says few groups at a time; what
 * it says waits as copies of the groups' rows, since the next window goes on with them, and results are made of a batch
 * of copies. Long texts do not stand in rows: those of keys are built at once, groups with other such fields do not
 * wait. */
#include "operator/window_int.h"

static bool is_var(ck_phys p) { return p == CK_PHYS_VIEW || p == CK_PHYS_LIST || p == CK_PHYS_STRUCT; }

void ck_window_said_open(ck_window_agg *op) {
    const ck_row_layout *l = ck_table_layout(op->table);
    ck_window_said *w = &op->said;
    w->entry_bytes = l->row_bytes + (uint32_t)sizeof(int64_t);
    w->on = op->window.kind != CK_WINDOW_ATTACHED && !op->rolled.on;
    for (uint32_t i = 0; i < op->plan.acc_count; i++) {
        const ck_acc *a = op->plan.accs[i];
        w->on = w->on && !a->plugin && (!a->side || a->side->hashed); /* values in order stand beside the group */
    }
    for (uint32_t i = l->value_first; i < l->field_count; i++) w->on = w->on && !is_var(l->fields[i].phys);
}

void ck_window_said_close(ck_window_agg *op) {
    ck_window_said *w = &op->said;
    ck_free(op->mem, w->entries, (size_t)w->room * w->entry_bytes);
    *w = (ck_window_said){0};
}

bool ck_window_said_takes(const ck_window_agg *op) {
    bool takes = op->said.on && !op->behind.watermarks;
    for (uint32_t i = 0; takes && i < op->plan.acc_count; i++) /* carries of sums stand beside it, too */
        takes = !op->plan.accs[i]->side || ck_table_row_count(op->plan.accs[i]->side_table) == 0;
    return takes;
}

static ck_status make_room(ck_window_agg *op, uint32_t n, ck_op_ctx *ctx) {
    ck_window_said *w = &op->said;
    uint32_t room = w->room ? w->room : 64;
    if (n <= w->room - w->n) return CK_OK;
    while (room - w->n < n) room *= 2;
    size_t bytes = (size_t)room * w->entry_bytes;
    uint8_t *more = ck_realloc(op->mem, w->entries, (size_t)w->room * w->entry_bytes, bytes);
    if (!more) return ck_nomem(ctx->error, op->mem, bytes);
    w->entries = more, w->room = room;
    return CK_OK;
}

/* Texts of keys: their column has as many rows as wait. */
static ck_status build_texts(ck_window_agg *op, const ck_table *bucket, ck_row *const *rows, uint32_t n,
                             ck_op_ctx *ctx) {
    const ck_row_layout *l = ck_table_layout(bucket);
    for (uint32_t i = 0; i < op->plan.keys.count; i++) {
        if (!is_var(l->fields[i].phys)) continue;
        if (ck_table_gather_field(bucket, (const ck_row *const *)rows, n, i, &op->out.columns[i]) != CK_OK)
            return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
    }
    return CK_OK;
}

ck_status ck_window_said_add(ck_window_agg *op, int64_t end, const ck_table *bucket, ck_row *const *rows, uint32_t n,
                             ck_op_ctx *ctx) {
    ck_window_said *w = &op->said;
    const ck_acc *count = op->plan.row_count;
    ck_row **live = ck_arena_alloc(ctx->arena, (n + 1u) * sizeof *live);
    uint32_t m = 0;
    if (!live) return ck_nomem(ctx->error, ctx->mem, n * sizeof *live);
    for (uint32_t i = 0; i < n; i++)
        if (!count || ck_row_i64(rows[i], count->offset[0]) > 0) live[m++] = rows[i];
    CK_TRY(make_room(op, m, ctx));
    CK_TRY(build_texts(op, bucket, live, m, ctx));
    uint8_t *to = w->entries + (size_t)w->n * w->entry_bytes;
    for (uint32_t i = 0; i < m; i++, to += w->entry_bytes) {
        memcpy(to, &end, sizeof end);
        memcpy(to + sizeof end, live[i], w->entry_bytes - sizeof end);
    }
    w->n += m;
    return CK_OK;
}

/* ---- a batch of them ---- */

static int64_t end_of(const ck_window_said *w, uint32_t i) {
    int64_t end;
    memcpy(&end, w->entries + (size_t)i * w->entry_bytes, sizeof end);
    return end;
}

static ck_status set_times(ck_window_agg *op, ck_batch *b, ck_op_ctx *ctx) {
    const ck_window_said *w = &op->said;
    for (uint32_t i = 0; i < CK_WINDOW_COLUMNS; i++) {
        ck_column *c = ck_column_new(ctx->mem, CK_PHYS_I64, w->n);
        if (!c) return ck_nomem(ctx->error, ctx->mem, w->n * sizeof(int64_t));
        for (uint32_t k = 0; k < w->n; k++) c->i64[k] = end_of(w, k);
        if (i != 1)
            for (uint32_t k = 0; k < w->n; k++)
                c->i64[k] = i == 0 ? ck_window_start_of(&op->window, c->i64[k]) : ck_window_time_of(c->i64[k]);
        ck_batch_set_column(b, op->plan.keys.count + i, &c);
    }
    return CK_OK;
}

static ck_status set_keys(ck_window_agg *op, ck_batch *b, ck_row *const *rows, ck_op_ctx *ctx) {
    const ck_row_layout *l = ck_table_layout(op->table);
    for (uint32_t i = 0; i < op->plan.keys.count; i++) {
        ck_column *c = NULL;
        if (is_var(l->fields[i].phys))
            c = ck_column_builder_finish(&op->out.columns[i]);
        else if (ck_table_gather_column(op->table, rows, op->said.n, NULL, op->said.n, i, ctx->mem, &c) != CK_OK)
            c = NULL;
        if (!c) return ck_nomem(ctx->error, ctx->mem, op->said.n * sizeof(ck_strview));
        ck_batch_set_column(b, i, &c);
    }
    return CK_OK;
}

/* What errors call the groups: their keys and the ends of their windows. Nothing stands beside them under that name. */
static ck_status name_groups(const ck_window_agg *op, const ck_batch *b, ck_batch **out, ck_op_ctx *ctx) {
    uint32_t keys = op->plan.keys.count;
    *out = ck_batch_new(ctx->mem, keys + 1, b->row_count, false, false);
    if (!*out) return ck_nomem(ctx->error, ctx->mem, b->row_count);
    for (uint32_t i = 0; i <= keys; i++) {
        ck_column *c = ck_column_ref(b->columns[i < keys ? i : keys + 1]);
        ck_batch_set_column(*out, i, &c);
    }
    return CK_OK;
}

static ck_status set_results(ck_window_agg *op, ck_batch *b, ck_row *const *rows, ck_op_ctx *ctx) {
    const ck_group_plan *p = &op->plan;
    ck_batch *named;
    ck_column **results = ck_arena_array(ctx->arena, p->result_count + 1u, sizeof(ck_column *));
    if (!results) return ck_nomem(ctx->error, ctx->mem, p->result_count * sizeof(ck_column *));
    CK_TRY(name_groups(op, b, &named, ctx));
    for (uint32_t i = 0; i < p->acc_count; i++) p->accs[i]->table = op->table; /* buckets may be gone; one layout */
    ck_groups g = {(const ck_row *const *)rows, op->said.n, named, &p->own_side_keys, NULL};
    ck_status s = ck_group_results(p, &g, results, ctx);
    for (uint32_t i = 0; s == CK_OK && i < p->result_count; i++)
        ck_batch_set_column(b, p->keys.count + CK_WINDOW_COLUMNS + i, &results[i]);
    ck_batch_unref(&named);
    return s;
}

ck_status ck_window_said_emit(ck_window_agg *op, ck_op_ctx *ctx) {
    ck_window_said *w = &op->said;
    if (w->n == 0) return CK_OK;
    uint32_t columns = op->plan.keys.count + CK_WINDOW_COLUMNS + op->plan.result_count;
    ck_row **rows = ck_arena_alloc(ctx->arena, w->n * sizeof *rows);
    ck_batch *b = rows ? ck_batch_new(ctx->mem, columns, w->n, false, false) : NULL;
    if (!b) return ck_nomem(ctx->error, ctx->mem, w->n * sizeof *rows);
    for (uint32_t i = 0; i < w->n; i++) rows[i] = w->entries + (size_t)i * w->entry_bytes + sizeof(int64_t);
    ck_status s = set_keys(op, b, rows, ctx);
    if (s == CK_OK) s = set_times(op, b, ctx);
    if (s == CK_OK) s = set_results(op, b, rows, ctx);
    if (s != CK_OK) {
        ck_batch_unref(&b);
        return s;
    }
    w->n = 0;
    return ck_op_emit(ctx, 0, &b);
}
