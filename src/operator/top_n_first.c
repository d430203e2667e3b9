/* Keeping the first row of each partition over append input: limit 1. One row a key in a hash slot; a batch is compared
 * with the rows that are there on the order columns, then what may win among itself, and only winners are written, so
 * that a string is copied once a batch and key at most. */
#include "operator/top_n_int.h"

enum { SLOT_MASK = 2 * CK_BATCH_ROWS_MAX - 1 };

ck_status ck_first_new(const ck_top_plan *plan, ck_mem mem, ck_first **out, ck_error *err) {
    ck_first *f = ck_alloc_zero(mem, sizeof *f);
    if (!f) return ck_nomem(err, mem, sizeof *f);
    f->mem = mem;
    f->plan = plan;
    for (uint32_t i = 0; i < CK_BATCH_ROWS_MAX; i++) f->identity[i] = (uint16_t)i;
    bool nullable = false;
    for (uint32_t i = 0; i < plan->partition.count; i++) nullable = nullable || plan->slot.partition[i].nullable;
    ck_touched_init(&f->touched, mem, nullable, plan->partition.count + plan->order_count);
    *out = f;
    return CK_OK;
}

void ck_first_free(ck_first *f) {
    if (!f) return;
    ck_touched_destroy(&f->touched);
    ck_free(f->mem, f, sizeof *f);
}

ck_status ck_first_open(ck_first *f, ck_op_ctx *ctx) {
    return ck_state_table(ctx->state, &f->plan->slot, &f->table, ctx->error);
}

bool ck_first_is_full(const ck_first *f) { return ck_touched_is_full(&f->touched); }

/* ---- comparing: below zero, the first comes first ---- */

#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

static int order_f64(double x, double y) { /* NaN greatest, zeros equal */
    bool nx = x != x, ny = y != y;
    return nx || ny ? nx - ny : ORDER(x, y);
}

static int order_nulls(const ck_order_spec *o, bool a, bool b) { return a == b ? 0 : a == o->nulls_first ? -1 : 1; }

/* A value of the batch with one of a stored row, neither NULL. */
static int with_stored(const ck_first *f, const ck_column *c, uint32_t row, const ck_row *stored, uint32_t field) {
    uint32_t at = ck_table_layout(f->table)->fields[field].offset;
    switch (c->phys) {
    case CK_PHYS_BOOL: return (int)ck_bit_get(c->bits, row) - (int)ck_row_bool(stored, at);
    case CK_PHYS_I64: return ORDER(c->i64[row], ck_row_i64(stored, at));
    case CK_PHYS_F64: return order_f64(c->f64[row], ck_row_f64(stored, at));
    case CK_PHYS_I128: return ORDER(c->i128[row], ck_row_i128(stored, at));
    case CK_PHYS_VIEW: return ck_view_cmp(ck_column_str(c, row), ck_table_str(f->table, stored, field));
    default: return 0; /* nothing nested comes here */
    }
}

static int with_other(const ck_column *c, uint32_t a, uint32_t b) {
    switch (c->phys) {
    case CK_PHYS_BOOL: return (int)ck_bit_get(c->bits, a) - (int)ck_bit_get(c->bits, b);
    case CK_PHYS_I64: return ORDER(c->i64[a], c->i64[b]);
    case CK_PHYS_F64: return order_f64(c->f64[a], c->f64[b]);
    case CK_PHYS_I128: return ORDER(c->i128[a], c->i128[b]);
    case CK_PHYS_VIEW: return ck_view_cmp(ck_column_str(c, a), ck_column_str(c, b));
    default: return 0;
    }
}

/* From the order column `first` on. */
static int compare_stored(const ck_first *f, const ck_batch *b, uint32_t row, const ck_row *stored, uint32_t first) {
    const ck_top_plan *p = f->plan;
    const ck_row_layout *layout = ck_table_layout(f->table);
    for (uint32_t i = first; i < p->order_count; i++) {
        const ck_column *c = b->columns[p->order[i].column];
        uint32_t field = p->partition.count + i;
        bool null = ck_column_is_null(c, row), other = ck_row_null(stored, layout->fields[field].null_bit);
        int d = null || other ? order_nulls(&p->order[i], null, other) : with_stored(f, c, row, stored, field);
        if (d) return p->order[i].descending && !(null || other) ? -d : d;
    }
    return 0;
}

static int compare_rows(const ck_first *f, const ck_batch *b, uint32_t x, uint32_t y) {
    const ck_top_plan *p = f->plan;
    for (uint32_t i = 0; i < p->order_count; i++) {
        const ck_column *c = b->columns[p->order[i].column];
        bool nx = ck_column_is_null(c, x), ny = ck_column_is_null(c, y);
        int d = nx || ny ? order_nulls(&p->order[i], nx, ny) : with_other(c, x, y);
        if (d) return p->order[i].descending && !(nx || ny) ? -d : d;
    }
    return 0;
}

/* ---- who may win, who wins ---- */

static uint32_t slot_of(const ck_first *f, const ck_row *row, uint64_t hash) {
    uint32_t slot = (uint32_t)hash & SLOT_MASK;
    while (f->slots[slot] && f->rows[f->slots[slot] - 1] != row) slot = (slot + 1) & SLOT_MASK;
    return slot;
}

/* Enters the rows this batch has made: until it is written there is nothing in them to compare with. */
static bool enter_fresh(ck_first *f, uint32_t n) {
    bool any = false;
    for (uint32_t k = 0; k < n; k++) {
        if (!f->fresh[k]) continue;
        if (!any) memset(f->slots, 0, sizeof f->slots);
        any = true;
        f->slots[slot_of(f, f->rows[k], f->hashes[k])] = (uint16_t)(k + 1);
    }
    return any;
}

/* Marks in `better` what comes before the stored row, or meets none. */
static void mark_better(ck_first *f, const ck_batch *b, uint8_t *better) {
    const ck_top_plan *p = f->plan;
    const ck_column *c = p->order_count ? b->columns[p->order[0].column] : NULL;
    const ck_row_field *field = &ck_table_layout(f->table)->fields[p->partition.count];
    bool plain = c && c->phys == CK_PHYS_I64 && !c->validity, descending = plain && p->order[0].descending;
    bool any_fresh = enter_fresh(f, b->sel_count);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        const ck_row *stored = f->rows[k];
        better[k] = f->fresh[k] || (any_fresh && f->slots[slot_of(f, stored, f->hashes[k])]);
        if (better[k]) continue;
        if (plain && !ck_row_null(stored, field->null_bit)) {
            int64_t x = c->i64[row], y = ck_row_i64(stored, field->offset);
            better[k] = x == y ? compare_stored(f, b, row, stored, 1) < 0 : descending ? x > y : x < y;
        } else {
            better[k] = compare_stored(f, b, row, stored, 0) < 0;
        }
    }
}

/* Moves what may win to the front of rows, hashes, fresh and at; returns how many. */
static uint32_t keep_better(ck_first *f, const ck_batch *b) {
    uint8_t better[CK_BATCH_ROWS_MAX];
    uint32_t n = 0;
    mark_better(f, b, better);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        f->rows[n] = f->rows[k];
        f->hashes[n] = f->hashes[k];
        f->fresh[n] = f->fresh[k];
        f->at[n] = (uint16_t)ck_batch_row(b, k);
        n += better[k];
    }
    return n;
}

/* Of rows that may win, the best of each key, in front. The first of a key that is new says so (fresh). */
static uint32_t keep_winners(ck_first *f, const ck_batch *b, uint32_t n) {
    uint32_t winners = 0;
    if (n <= 1) return n;
    memset(f->slots, 0, sizeof f->slots);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t slot = slot_of(f, f->rows[k], f->hashes[k]);
        if (f->slots[slot]) {
            uint32_t w = f->slots[slot] - 1u;
            if (compare_rows(f, b, f->at[k], f->at[w]) < 0) f->at[w] = f->at[k];
            continue;
        }
        f->rows[winners] = f->rows[k];
        f->hashes[winners] = f->hashes[k];
        f->fresh[winners] = f->fresh[k];
        f->at[winners++] = f->at[k];
        f->slots[slot] = (uint16_t)winners;
    }
    return winners;
}

/* ---- writing ---- */

static ck_status write_column(ck_first *f, uint32_t field, const ck_column *c, uint32_t n) {
    const ck_row_field *at = &ck_table_layout(f->table)->fields[field];
    bool nullable = at->null_bit != UINT32_MAX, nulls = c->validity != NULL;
    if (c->phys == CK_PHYS_I64) {
        for (uint32_t i = 0; i < n; i++) {
            bool null = nulls && !ck_bit_get(c->validity, f->at[i]);
            ck_row_set_i64(f->rows[i], at->offset, null ? 0 : c->i64[f->at[i]]);
            if (nullable) ck_row_set_null(f->rows[i], at->null_bit, null);
        }
        return CK_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        ck_row *row = f->rows[i];
        if (c->phys == CK_PHYS_VIEW && !(nulls && !ck_bit_get(c->validity, f->at[i])))
            CK_TRY(ck_table_set_str(f->table, row, field, ck_column_str(c, f->at[i])));
        else
            CK_TRY(ck_table_set_field(f->table, row, field, c, f->at[i]));
    }
    return CK_OK;
}

static ck_status write_winners(ck_first *f, const ck_batch *b, uint32_t n, ck_op_ctx *ctx) {
    const ck_top_plan *p = f->plan;
    for (uint32_t i = 0; i < p->order_count; i++) {
        ck_status s = write_column(f, p->partition.count + i, b->columns[p->order[i].column], n);
        if (s == CK_INVALID)
            return ck_fail(ctx->error, CK_INVALID, "%s: NULL in the column \"%s\", which is NOT NULL", ctx->uid,
                           p->input->fields[p->order[i].column].name);
        if (s == CK_FULL)
            return ck_fail(ctx->error, CK_FULL, "%s: a value of the column \"%s\" is too long to be kept", ctx->uid,
                           p->input->fields[p->order[i].column].name);
        if (s != CK_OK) return ck_nomem(ctx->error, f->mem, n * sizeof(ck_strview));
    }
    return CK_OK;
}

static ck_status find_rows(ck_first *f, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_key_spec *spec = &f->plan->partition;
    if (spec->count > 0) {
        ck_key_hash(spec, b, ck_table_seed(f->table), f->hashes);
        ck_keys keys = {spec, b, f->hashes, b->sel_count};
        return ck_table_upsert(f->table, &keys, f->rows, f->fresh, ctx->error);
    }
    bool fresh = false;
    CK_TRY(ck_table_single(f->table, true, &f->rows[0], &fresh, ctx->error));
    for (uint32_t k = 0; k < b->sel_count; k++) {
        f->rows[k] = f->rows[0];
        f->hashes[k] = 0;
        f->fresh[k] = fresh && k == 0;
    }
    return CK_OK;
}

ck_status ck_first_batch(ck_first *f, const ck_batch *b, ck_op_ctx *ctx) {
    if (b->sel_count == 0) return CK_OK;
    CK_TRY(find_rows(f, b, ctx));
    uint32_t n = keep_winners(f, b, keep_better(f, b));
    if (n == 0) return CK_OK;
    if (!f->plan->final) CK_TRY(ck_first_touch(f, b, n, ctx));
    return write_winners(f, b, n, ctx);
}
