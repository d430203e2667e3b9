/* What keeping the first row says. Only a row that comes before the one that is kept is written, so that every touched
 * partition has something to say at a flush: the row as it was emitted with -1, if there was one, then the row as it
 * is with +1. In `final` every row is emitted once. */
#include "operator/top_n_int.h"

static const ck_type *type_of(const ck_top_plan *p, uint32_t field) {
    uint32_t keys = p->partition.count;
    return field < keys ? p->partition.types[field] : p->order[field - keys].type;
}

static void drop_columns(ck_column **columns, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) ck_column_unref(&columns[i]);
}

static ck_status gather_rows(ck_first *f, ck_row *const *rows, uint32_t n, uint32_t field, ck_column **out,
                             ck_op_ctx *ctx) {
    ck_column_builder b;
    CK_TRY(ck_column_builder_init(&b, ctx->mem, type_of(f->plan, field), n));
    ck_status s = ck_table_gather_field(f->table, (const ck_row *const *)rows, n, field, &b);
    *out = s == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return *out ? CK_OK : CK_NOMEM;
}

/* ---- remembering ---- */

static ck_status remember(ck_first *f, uint32_t n, ck_op_ctx *ctx) {
    uint32_t count = f->touched.column_count;
    ck_row **rows = ck_arena_array(ctx->arena, n, sizeof(ck_row *));
    uint8_t *existed = ck_arena_alloc(ctx->arena, n);
    ck_column **columns = ck_arena_array(ctx->arena, count + 1u, sizeof(ck_column *));
    if (!rows || !existed || !columns) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = f->rows[f->newly[i]];
        existed[i] = !f->fresh[f->newly[i]];
    }
    ck_status s = CK_OK;
    for (uint32_t c = 0; s == CK_OK && c < count; c++) s = gather_rows(f, rows, n, c, &columns[c], ctx);
    if (s == CK_OK) s = ck_touched_add_segment(&f->touched, columns, existed, n);
    drop_columns(columns, count);
    return s;
}

ck_status ck_first_touch(ck_first *f, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    uint32_t newly;
    ck_batch *some = ck_batch_select(b, f->at, n);
    if (!some) return ck_nomem(ctx->error, ctx->mem, n * sizeof *f->at);
    ck_status s = ck_touched_enter(&f->touched, &f->plan->partition, some, f->hashes, n, f->newly, &newly);
    if (s == CK_OK && newly) s = remember(f, newly, ctx);
    ck_batch_unref(&some);
    return s == CK_OK ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

/* ---- flushing ---- */

typedef struct slice { /* some touched partitions */
    uint32_t n;
    ck_column **before;  /* keys, then the row as it was emitted */
    const ck_row **rows; /* as it is */
    uint16_t *pick;      /* rows of the output: i of before, n + i now */
    uint16_t *key;       /* and of the keys */
    uint32_t picks;
} slice;

static ck_status find_rows(ck_first *f, slice *s, ck_op_ctx *ctx) {
    const ck_top_plan *p = f->plan;
    if (p->partition.count == 0) {
        ck_row *row;
        CK_TRY(ck_table_single(f->table, true, &row, NULL, ctx->error));
        s->rows[0] = row;
        return CK_OK;
    }
    uint64_t *hashes = ck_arena_array(ctx->arena, s->n, sizeof *hashes);
    ck_batch *keys = ck_batch_new(ctx->mem, p->partition.count, s->n, false, false);
    ck_status status = hashes && keys ? CK_OK : ck_nomem(ctx->error, ctx->mem, s->n * sizeof *hashes);
    for (uint32_t i = 0; status == CK_OK && i < s->n; i++) hashes[i] = f->touched.entries[f->flushed + i].hash;
    for (uint32_t c = 0; status == CK_OK && c < p->partition.count; c++) {
        ck_column *ref = ck_column_ref(s->before[c]);
        ck_batch_set_column(keys, c, &ref);
    }
    ck_keys k = {&p->own_partition, keys, hashes, s->n};
    if (status == CK_OK) status = ck_table_find(f->table, &k, s->rows, ctx->error);
    ck_batch_unref(&keys);
    return status;
}

/* One column of the entries: of keys n rows, of other fields n as they were and n as they are. */
static ck_status gather_both(ck_first *f, const slice *s, uint32_t field, ck_column **out, ck_op_ctx *ctx) {
    bool key = field < f->plan->partition.count;
    ck_column_builder b;
    CK_TRY(ck_column_builder_init(&b, ctx->mem, type_of(f->plan, field), key ? s->n : 2 * s->n));
    ck_status status = ck_touched_gather(&f->touched, f->flushed, s->n, field, f->identity, &b);
    if (status == CK_OK && !key) status = ck_table_gather_field(f->table, s->rows, s->n, field, &b);
    *out = status == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return *out ? CK_OK : CK_NOMEM;
}

static bool choose(const ck_first *f, slice *s) {
    bool minus = false;
    for (uint32_t i = 0; i < s->n; i++) {
        if (ck_touched_existed(&f->touched, f->flushed + i)) {
            s->key[s->picks] = s->pick[s->picks] = (uint16_t)i;
            s->picks++;
            minus = true;
        }
        s->key[s->picks] = (uint16_t)i;
        s->pick[s->picks++] = (uint16_t)(s->n + i);
    }
    return minus;
}

/* The output's column c: a rank, or a field of the picks. */
static ck_status make_column(const ck_first *f, const slice *s, uint32_t c, ck_column **out, ck_op_ctx *ctx) {
    const ck_top_plan *p = f->plan;
    ck_column_builder b;
    CK_TRY(ck_column_builder_init(&b, ctx->mem, p->output->fields[c].type, s->picks));
    ck_status status = CK_OK;
    if (c < p->input->field_count) {
        uint32_t field = p->field_of[c];
        status = ck_build_gather(&b, s->before[field], field < p->partition.count ? s->key : s->pick, s->picks);
    }
    for (uint32_t i = 0; status == CK_OK && c == p->input->field_count && i < s->picks; i++)
        status = ck_build_i64(&b, 1);
    *out = status == CK_OK ? ck_column_builder_finish(&b) : NULL;
    ck_column_builder_destroy(&b);
    return *out ? CK_OK : CK_NOMEM;
}

static ck_status flush_slice(ck_first *f, uint32_t n, ck_op_ctx *ctx) {
    const ck_top_plan *p = f->plan;
    uint32_t count = f->touched.column_count;
    ck_arena *a = ctx->arena;
    slice s = {.n = n};
    s.before = ck_arena_array(a, count + 1u, sizeof(ck_column *));
    s.rows = ck_arena_array(a, n, sizeof(ck_row *));
    s.pick = ck_arena_array(a, 2u * n, sizeof *s.pick);
    s.key = ck_arena_array(a, 2u * n, sizeof *s.key);
    ck_status status = s.before && s.rows && s.pick && s.key ? CK_OK : CK_NOMEM;
    for (uint32_t c = 0; status == CK_OK && c < p->partition.count; c++)
        status = gather_both(f, &s, c, &s.before[c], ctx);
    bool failed = false; /* and the error is filled */
    if (status == CK_OK) failed = (status = find_rows(f, &s, ctx)) != CK_OK;
    for (uint32_t c = p->partition.count; status == CK_OK && c < count; c++)
        status = gather_both(f, &s, c, &s.before[c], ctx);
    bool minus = status == CK_OK && choose(f, &s);
    ck_batch *out = status == CK_OK ? ck_batch_new(ctx->mem, p->output->field_count, s.picks, false, minus) : NULL;
    if (status == CK_OK && !out) status = CK_NOMEM;
    for (uint32_t c = 0; status == CK_OK && c < p->output->field_count; c++) {
        ck_column *column = NULL;
        status = make_column(f, &s, c, &column, ctx);
        if (status == CK_OK) ck_batch_set_column(out, c, &column);
    }
    for (uint32_t i = 0; status == CK_OK && minus && i < s.picks; i++) out->weights[i] = s.pick[i] < n ? -1 : 1;
    if (s.before) drop_columns(s.before, count);
    if (status == CK_OK) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return failed ? status : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

ck_status ck_first_flush(ck_first *f, ck_op_ctx *ctx) {
    if (!f->flushing) {
        f->flushing = true;
        f->flushed = 0;
    }
    uint32_t most = ctx->settings->batch_rows / 2; /* a partition may give two rows */
    if (most == 0) most = 1;
    size_t left = f->touched.count - f->flushed;
    uint32_t n = left < most ? (uint32_t)left : most;
    if (n > 0) CK_TRY(flush_slice(f, n, ctx));
    f->flushed += n;
    if (f->flushed < f->touched.count) return CK_MORE;
    ck_touched_clear(&f->touched);
    f->flushing = false;
    return CK_OK;
}

/* ---- final ---- */

static ck_status emit_rows(ck_first *f, uint32_t n, ck_op_ctx *ctx) {
    const ck_top_plan *p = f->plan;
    ck_batch *out = ck_batch_new(ctx->mem, p->output->field_count, n, false, false);
    ck_status s = out ? CK_OK : CK_NOMEM;
    for (uint32_t c = 0; s == CK_OK && c < p->input->field_count; c++) {
        ck_column *column = NULL;
        s = gather_rows(f, f->rows, n, p->field_of[c], &column, ctx);
        if (s == CK_OK) ck_batch_set_column(out, c, &column);
    }
    if (s == CK_OK && p->rank_column) {
        ck_column *ones = ck_column_new(ctx->mem, CK_PHYS_I64, n);
        if (!ones) s = CK_NOMEM;
        for (uint32_t i = 0; ones && i < n; i++) ones->i64[i] = 1;
        if (ones) ck_batch_set_column(out, p->input->field_count, &ones);
    }
    if (s == CK_OK) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

ck_status ck_first_emit_all(ck_first *f, ck_op_ctx *ctx) {
    if (!f->scanning) {
        f->scanning = true;
        f->scan = (ck_table_scan){0};
    }
    uint32_t n = ck_table_scan_next(f->table, &f->scan, f->rows, ctx->settings->batch_rows);
    if (n == 0) {
        f->scanning = false;
        return CK_OK;
    }
    CK_TRY(emit_rows(f, n, ctx));
    return CK_MORE;
}
