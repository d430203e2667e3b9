/* Entries as a batch. Where rows of the batch appear at most once and in order, its columns are passed on under a
 * selection and only the other side's are made, at the rows selected; elsewhere all are gathered. */
#include "operator/join_int.h"

enum { SPARSE = 8 }; /* a selection under this share of the rows is not worth keeping them */

static ck_status no_memory(uint32_t rows, ck_op_ctx *ctx) {
    return ck_nomem(ctx->error, ctx->mem, rows * sizeof(ck_strview));
}

/* Values of a column of the run's batch by entry; NULL where an entry has no row of it. */
static ck_status gather_batch_column(const ck_join *j, const ck_column *c, const ck_type *type, ck_column **out,
                                     ck_op_ctx *ctx) {
    const ck_join_entries *e = &j->entries;
    ck_column_builder b;
    ck_status s = ck_column_builder_init(&b, ctx->mem, type, e->n);
    if (s == CK_OK) ck_column_builder_take_with(&b, ctx->proc->cpu);
    for (uint32_t i = 0, end; i < e->n && s == CK_OK; i = end) {
        bool missing = e->key[i] == CK_JOIN_NO_ROW;
        for (end = i + 1; end < e->n && (e->key[end] == CK_JOIN_NO_ROW) == missing;) end++;
        if (!missing) s = ck_build_gather(&b, c, j->at + i, end - i);
        for (uint32_t k = i; missing && k < end && s == CK_OK; k++) s = ck_build_null(&b);
    }
    *out = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return *out ? CK_OK : no_memory(e->n, ctx);
}

static ck_status batch_columns(const ck_join *j, ck_batch *out, uint32_t first, bool selected, ck_op_ctx *ctx) {
    const ck_join_run *r = &j->run;
    const ck_schema *schema = j->plan.sides[r->side].schema;
    for (uint32_t c = 0; c < schema->field_count; c++) {
        ck_column *col;
        if (selected)
            col = ck_column_ref(r->batch->columns[c]);
        else
            CK_TRY(gather_batch_column(j, r->batch->columns[c], schema->fields[c].type, &col, ctx));
        ck_batch_set_column(out, first + c, &col);
    }
    return CK_OK;
}

static ck_status table_columns(const ck_join *j, ck_batch *out, uint32_t first, bool selected, ck_op_ctx *ctx) {
    const ck_join_table *other = &j->tables[!j->run.side];
    const ck_join_entries *e = &j->entries;
    CK_ASSERT(!other->side->counted);
    for (uint32_t c = 0; c < other->side->width; c++) {
        ck_column *col;
        ck_status s = ck_table_gather_column(other->table, e->row, e->n, selected ? j->at : NULL, out->row_count,
                                             other->side->field_of[c], ctx->mem, &col);
        if (s != CK_OK) return no_memory(e->n, ctx);
        ck_batch_set_column(out, first + c, &col);
    }
    return CK_OK;
}

/* left columns, then right; of semi and anti the left ones. */
static ck_status fill(const ck_join *j, ck_batch *out, bool selected, ck_op_ctx *ctx) {
    uint32_t side = j->run.side, left = j->plan.sides[0].width;
    bool left_only = ck_join_left_only(j->plan.type);
    if (!left_only || side == 0) CK_TRY(batch_columns(j, out, side ? left : 0, selected, ctx));
    return !left_only || side == 1 ? table_columns(j, out, side ? 0 : left, selected, ctx) : CK_OK;
}

ck_status ck_join_emit(ck_join *j, ck_op_ctx *ctx) {
    const ck_join_run *r = &j->run;
    const ck_join_entries *e = &j->entries;
    if (e->n == 0) return CK_OK;
    bool selected = !e->no_key && !e->repeated && e->n >= r->batch->row_count / SPARSE &&
                    (ck_join_left_only(j->plan.type) || !j->plan.sides[!r->side].nested);
    uint32_t rows = selected ? r->batch->row_count : e->n;
    for (uint32_t i = 0; i < e->n; i++) j->at[i] = e->key[i] == CK_JOIN_NO_ROW ? 0 : r->row[e->key[i]];
    ck_batch *out = ck_batch_new(ctx->mem, j->plan.output->field_count, rows, selected, e->minus);
    if (!out) return no_memory(rows, ctx);
    ck_status s = fill(j, out, selected, ctx);
    if (s != CK_OK) {
        ck_batch_unref(&out);
        return s;
    }
    if (selected) {
        memcpy(out->sel, j->at, e->n * sizeof *out->sel);
        out->sel_count = e->n;
    }
    for (uint32_t i = 0; e->minus && i < e->n; i++) out->weights[selected ? j->at[i] : i] = e->weight[i];
    return ck_op_emit(ctx, 0, &out);
}

/* ---- the residual ---- */

static ck_status pair_columns(ck_join *j, ck_batch *pairs, ck_op_ctx *ctx) {
    const ck_join_run *r = &j->run;
    const ck_join_table *other = &j->tables[!r->side];
    uint32_t left = j->plan.sides[0].width;
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t c = 0; c < j->plan.sides[side].width; c++) {
            if (!j->plan.residual_uses[side][c]) continue;
            ck_column *col = NULL;
            if (side == r->side) {
                ck_column_builder b;
                ck_status s =
                    ck_column_builder_init(&b, ctx->mem, j->plan.sides[side].schema->fields[c].type, r->pair_count);
                if (s == CK_OK) s = ck_build_gather(&b, r->batch->columns[c], j->at, r->pair_count);
                if (s == CK_OK) col = ck_column_builder_finish(&b);
                ck_column_builder_destroy(&b);
            } else if (ck_table_gather_column(other->table, r->pair_row, r->pair_count, NULL, r->pair_count,
                                              other->side->field_of[c], ctx->mem, &col) != CK_OK) {
                col = NULL;
            }
            if (!col) return no_memory(r->pair_count, ctx);
            ck_batch_set_column(pairs, side ? left + c : c, &col);
        }
    return CK_OK;
}

ck_status ck_join_check_pairs(ck_join *j, ck_op_ctx *ctx) {
    ck_join_run *r = &j->run;
    for (uint32_t i = 0; i < r->pair_count; i++) j->at[i] = r->row[r->pair_key[i]];
    ck_batch *pairs =
        ck_batch_new(ctx->mem, j->plan.sides[0].width + j->plan.sides[1].width, r->pair_count, false, false);
    if (!pairs) return no_memory(r->pair_count, ctx);
    uint32_t n = 0;
    ck_status s = pair_columns(j, pairs, ctx);
    if (s == CK_OK) {
        ck_eval_set_now(j->eval, ck_op_now_us(ctx));
        s = ck_eval_filter(j->eval, pairs, j->sel, &n, ctx->error);
    }
    ck_batch_unref(&pairs);
    if (s != CK_OK) return s;
    for (uint32_t i = 0; i < n; i++) {
        r->pair_key[i] = r->pair_key[j->sel[i]];
        r->pair_row[i] = r->pair_row[j->sel[i]];
    }
    r->pair_count = n;
    return CK_OK;
}
