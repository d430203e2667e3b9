/* Lanes: for each condition an aggregate puts on rows (filter, argument not NULL, DISTINCT), the rows of the batch that
 * meet it with their groups. Made once a batch whatever the number of accumulators. */
#include "operator/group_int.h"

ck_status ck_lanes_open(ck_lanes *l, const ck_group_plan *plan, ck_mem mem, ck_op_ctx *ctx) {
    l->plan = plan;
    l->mem = mem;
    l->lanes = ck_arena_array(plan->arena, plan->lane_count + 1u, sizeof *l->lanes);
    l->made = ck_arena_array(plan->arena, plan->lane_count + 1u, sizeof *l->made);
    l->buffers = ck_arena_array(plan->arena, plan->lane_count + 1u, sizeof *l->buffers);
    l->sets = ck_arena_array(plan->arena, plan->distinct_count + 1u, sizeof(ck_table *));
    if (!l->lanes || !l->made || !l->buffers || !l->sets) {
        l->buffers = NULL;
        return ck_nomem(ctx->error, plan->arena->mem, plan->lane_count * sizeof *l->lanes);
    }
    for (uint32_t i = 0; i < plan->distinct_count; i++)
        CK_TRY(ck_state_table(ctx->state, plan->distincts[i].slot, &l->sets[i], ctx->error));
    return CK_OK;
}

void ck_lanes_destroy(ck_lanes *l) {
    for (uint32_t i = 0; l->buffers && i < l->plan->lane_count; i++)
        if (l->buffers[i]) ck_free(l->mem, l->buffers[i], sizeof *l->buffers[i]);
    l->buffers = NULL;
}

static ck_lane_buffers *buffers_of(ck_lanes *l, uint32_t lane, ck_op_ctx *ctx) {
    if (!l->buffers[lane]) l->buffers[lane] = ck_alloc(l->mem, sizeof *l->buffers[lane]);
    if (!l->buffers[lane]) ck_nomem(ctx->error, l->mem, sizeof *l->buffers[lane]);
    return l->buffers[lane];
}

/* All rows are lane number lane_count: what the others are cut from. */
ck_status ck_lanes_begin(ck_lanes *l, const ck_batch *b, ck_row **rows, ck_op_ctx *ctx) {
    memset(l->made, 0, l->plan->lane_count * sizeof *l->made);
    ck_lane *all = &l->lanes[l->plan->lane_count];
    *all = (ck_lane){rows, b->sel, b->weights, b->sel_count};
    if (!b->weights || !b->sel) return CK_OK;
    int8_t *weights = ck_arena_alloc(ctx->arena, b->sel_count + 1u);
    if (!weights) return ck_nomem(ctx->error, ctx->mem, b->sel_count);
    for (uint32_t k = 0; k < b->sel_count; k++) weights[k] = b->weights[b->sel[k]];
    all->weights = weights;
    return CK_OK;
}

/* Rows where a column without NULLs is TRUE, none of them with a weight: the common case. */
static uint32_t keep_true(const ck_column *filter, const ck_lane *all, ck_lane_buffers *restrict out) {
    ck_row *const *rows = all->rows;
    const uint64_t *bits = filter->bits;
    const uint16_t *at = all->at;
    uint32_t n = 0;
    for (uint32_t k = 0; k < all->n; k++) {
        uint32_t row = at ? at[k] : k;
        out->rows[n] = rows[k];
        out->at[n] = (uint16_t)row;
        n += ck_bit_get(bits, row);
    }
    return n;
}

static ck_status cut(ck_lanes *l, uint32_t lane, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_lane_plan *p = &l->plan->lanes[lane];
    const ck_lane *all = &l->lanes[l->plan->lane_count];
    const ck_column *filter = p->filter >= 0 ? b->columns[p->filter] : NULL;
    const ck_column *value = p->not_null >= 0 ? b->columns[p->not_null] : NULL;
    if (value && value->phys == CK_PHYS_NULL) {
        l->lanes[lane] = (ck_lane){0};
        return CK_OK;
    }
    if (value && !value->validity) value = NULL;
    if (!filter && !value) {
        l->lanes[lane] = *all;
        return CK_OK;
    }
    ck_lane_buffers *out = buffers_of(l, lane, ctx);
    if (!out) return CK_NOMEM;
    uint32_t n = 0;
    if (filter && !value && !all->weights && filter->phys == CK_PHYS_BOOL && !filter->validity) {
        n = keep_true(filter, all, out);
        l->lanes[lane] = (ck_lane){out->rows, out->at, NULL, n};
        return CK_OK;
    }
    for (uint32_t k = 0; k < all->n; k++) {
        uint32_t at = ck_lane_at(all, k);
        bool pass = !value || ck_bit_get(value->validity, at);
        if (filter) pass = pass && !ck_column_is_null(filter, at) && ck_bit_get(filter->bits, at);
        out->rows[n] = all->rows[k];
        out->at[n] = (uint16_t)at;
        if (all->weights) out->weights[n] = all->weights[k];
        n += pass;
    }
    l->lanes[lane] = (ck_lane){out->rows, out->at, all->weights ? out->weights : NULL, n};
    return CK_OK;
}

/* Values into a set in order: of each key by scope, then value (sessions), so that those of one scope are a range. */
static ck_status put_in_order(const ck_lanes *l, const ck_distinct_plan *d, ck_table *set, const ck_batch *b,
                              uint8_t *fresh, ck_op_ctx *ctx) {
    uint32_t n = b->sel_count, keys = l->plan->keys.count;
    ck_partition *partitions = ck_arena_alloc(ctx->arena, n * sizeof *partitions);
    uint64_t *hashes = ck_keys_hash(&l->plan->keys, b, set, ctx);
    if (!partitions || !hashes) return ck_nomem(ctx->error, ctx->mem, n * sizeof *hashes);
    ck_order_spec order[2] = {{l->plan->side_keys.columns[keys], l->plan->side_keys.types[keys], false, false, false},
                              {d->spec.columns[keys], d->spec.types[keys], false, false, false}};
    ck_keys k = {&l->plan->keys, b, hashes, n};
    ck_bytes key;
    ck_bytes_init(&key, ctx->mem, SIZE_MAX);
    ck_status s = ck_table_partitions(set, &k, true, partitions, ctx->error);
    for (uint32_t i = 0; s == CK_OK && i < n; i++) {
        ck_row *row;
        bool is_new = false;
        ck_bytes_clear(&key);
        s = ck_order_encode(order, 2, b, ck_batch_row(b, i), &key);
        if (s == CK_FULL)
            s = ck_fail(ctx->error, CK_FULL, "%s: a value is over %d bytes, more than DISTINCT keeps in a SESSION",
                        ctx->uid, (int)CK_KEY_BYTES_MAX);
        if (s == CK_NOMEM) s = ck_nomem(ctx->error, ctx->mem, key.capacity);
        if (s == CK_OK) s = ck_partition_upsert(set, partitions[i], ck_bytes_as_view(&key), &row, &is_new, ctx->error);
        fresh[i] = is_new;
    }
    ck_bytes_destroy(&key);
    return s;
}

/* The rows of a set that these rows' values have, made where they are missing. */
static ck_status set_rows(const ck_lanes *l, const ck_distinct_plan *d, ck_table *set, const ck_batch *b,
                          const ck_lane *in, ck_row ***values, uint8_t **fresh, ck_op_ctx *ctx) {
    *values = ck_arena_alloc(ctx->arena, in->n * sizeof **values);
    *fresh = ck_arena_alloc(ctx->arena, in->n);
    ck_batch *some =
        in->at && in->at != b->sel ? ck_batch_select(b, in->at, in->n) : ck_batch_ref((ck_batch *)(uintptr_t)b);
    if (!*values || !*fresh || !some) {
        ck_batch_unref(&some);
        return ck_nomem(ctx->error, ctx->mem, in->n * sizeof **values);
    }
    bool in_order = !d->slot->hashed && !d->slot->bucketed;
    uint64_t *hashes = in_order ? NULL : ck_keys_hash(&d->spec, some, set, ctx);
    ck_keys keys = {&d->spec, some, hashes, in->n};
    ck_status s = in_order ? put_in_order(l, d, set, some, *fresh, ctx)
                  : hashes ? ck_table_upsert(set, &keys, *values, *fresh, ctx->error)
                           : CK_NOMEM;
    ck_batch_unref(&some);
    return s;
}

/* Puts the values into the set; the lane is the rows whose value appeared (+1) or vanished (-1). */
static ck_status cut_distinct(ck_lanes *l, uint32_t lane, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_distinct_plan *d = &l->plan->distincts[l->plan->lanes[lane].distinct];
    ck_table *set = l->sets[l->plan->lanes[lane].distinct];
    const ck_lane *in;
    CK_TRY(ck_lanes_get(l, d->lane, b, &in, ctx));
    l->lanes[lane] = (ck_lane){0};
    if (in->n == 0) return CK_OK;
    ck_lane_buffers *out = buffers_of(l, lane, ctx);
    ck_row **values;
    uint8_t *fresh;
    if (!out) return CK_NOMEM;
    CK_TRY(set_rows(l, d, set, b, in, &values, &fresh, ctx));

    uint32_t n = 0;
    if (!l->plan->retract) {
        for (uint32_t k = 0; k < in->n; k++) {
            out->rows[n] = in->rows[k];
            out->at[n] = (uint16_t)ck_lane_at(in, k);
            n += fresh[k];
        }
        l->lanes[lane] = (ck_lane){out->rows, out->at, NULL, n};
        return CK_OK;
    }
    const ck_row_layout *layout = ck_table_layout(set);
    uint32_t count_at = layout->fields[layout->value_first].offset;
    for (uint32_t k = 0; k < in->n; k++) {
        int64_t old = ck_row_i64(values[k], count_at), now = old + ck_lane_weight(in, k);
        ck_row_set_i64(values[k], count_at, now);
        if ((old > 0) == (now > 0)) continue;
        out->rows[n] = in->rows[k];
        out->at[n] = (uint16_t)ck_lane_at(in, k);
        out->weights[n++] = now > 0 ? 1 : -1;
    }
    l->lanes[lane] = (ck_lane){out->rows, out->at, out->weights, n};
    return ck_rows_erase_zero(set, values, in->n, count_at, ctx);
}

/* ---- one set for several filters, over append input ---- */

/* Which members each row passes, a bit each; *none: some pass no filter. */
static void member_bits(const ck_distinct_plan *d, const ck_batch *b, const ck_lane *in, uint64_t *bits, bool *none) {
    uint64_t always = 0, least = UINT64_MAX;
    for (uint32_t m = 0; m < d->member_count; m++) always |= (uint64_t)(d->members[m].filter < 0) << m;
    for (uint32_t k = 0; k < in->n; k++) bits[k] = always;
    for (uint32_t m = 0; m < d->member_count; m++) {
        const ck_column *filter = d->members[m].filter >= 0 ? b->columns[d->members[m].filter] : NULL;
        if (!filter || filter->phys == CK_PHYS_NULL) continue;
        for (uint32_t k = 0; k < in->n; k++) {
            uint32_t at = ck_lane_at(in, k);
            bool pass = ck_bit_get(filter->bits, at) && !ck_column_is_null(filter, at);
            bits[k] |= (uint64_t)pass << m;
        }
    }
    for (uint32_t k = 0; k < in->n; k++) least = bits[k] < least ? bits[k] : least;
    *none = least == 0;
}

/* Without the rows that pass no filter: their values are in nobody's set. */
static ck_status drop_passing_none(ck_lane *in, uint64_t *bits, ck_op_ctx *ctx) {
    ck_row **rows = ck_arena_alloc(ctx->arena, in->n * sizeof *rows);
    uint16_t *at = ck_arena_alloc(ctx->arena, in->n * sizeof *at);
    if (!rows || !at) return ck_nomem(ctx->error, ctx->mem, in->n * sizeof *rows);
    uint32_t n = 0;
    for (uint32_t k = 0; k < in->n; k++) {
        rows[n] = in->rows[k];
        at[n] = (uint16_t)ck_lane_at(in, k);
        bits[n] = bits[k];
        n += bits[k] != 0;
    }
    *in = (ck_lane){rows, at, NULL, n};
    return CK_OK;
}

/* The members a row passes for which its value is new, from here on no longer. */
static inline uint64_t take_new_bits(ck_row *value, uint32_t at, uint64_t bits) {
    uint64_t fresh = 0;
    for (uint64_t left = bits; left; left &= left - 1) {
        uint32_t m = (uint32_t)__builtin_ctzll(left);
        if (!ck_row_bool(value, at + m)) fresh |= left & -left;
        ck_row_set_bool(value, at + m, true);
    }
    return fresh;
}

/* bits[k]: those of the row's members for which its value is new. Into fresh_at the numbers of the rows that have such,
 * how many is the answer: few, once values come again. */
static uint32_t keep_new(const ck_table *set, ck_row *const *values, uint32_t n, uint64_t *bits, uint16_t *fresh_at) {
    const ck_row_layout *layout = ck_table_layout(set);
    uint32_t at = layout->fields[layout->value_first].offset, found = 0; /* a byte each, in the members' order */
    for (uint32_t k = 0; k < n; k++) {
        bits[k] = take_new_bits(values[k], at, bits[k]);
        fresh_at[found] = (uint16_t)k;
        found += bits[k] != 0;
    }
    return found;
}

/* The lanes of all members at once. */
static ck_status cut_members(ck_lanes *l, uint32_t set_number, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_distinct_plan *d = &l->plan->distincts[set_number];
    const ck_lane *taken;
    CK_TRY(ck_lanes_get(l, d->lane, b, &taken, ctx));
    ck_lane in = *taken;
    uint64_t *bits = ck_arena_alloc(ctx->arena, (in.n + 1u) * sizeof *bits);
    uint16_t *fresh_at = ck_arena_alloc(ctx->arena, (in.n + 1u) * sizeof *fresh_at);
    uint32_t found = 0;
    ck_row **values;
    uint8_t *fresh;
    bool none;
    if (!bits || !fresh_at) return ck_nomem(ctx->error, ctx->mem, in.n * sizeof *bits);
    member_bits(d, b, &in, bits, &none);
    if (none) CK_TRY(drop_passing_none(&in, bits, ctx));
    if (in.n) {
        CK_TRY(set_rows(l, d, l->sets[set_number], b, &in, &values, &fresh, ctx));
        found = keep_new(l->sets[set_number], values, in.n, bits, fresh_at);
    }
    for (uint32_t m = 0; m < d->member_count; m++) {
        uint32_t lane = d->members[m].lane, n = 0;
        ck_lane_buffers *out = buffers_of(l, lane, ctx);
        if (!out) return CK_NOMEM;
        for (uint32_t i = 0; i < found; i++) {
            uint32_t k = fresh_at[i];
            out->rows[n] = in.rows[k];
            out->at[n] = (uint16_t)ck_lane_at(&in, k);
            n += (uint32_t)(bits[k] >> m & 1);
        }
        l->lanes[lane] = (ck_lane){out->rows, out->at, NULL, n};
        l->made[lane] = true;
    }
    return CK_OK;
}

ck_status ck_lanes_get(ck_lanes *l, uint32_t lane, const ck_batch *b, const ck_lane **out, ck_op_ctx *ctx) {
    if (!l->made[lane]) {
        int64_t set = l->plan->lanes[lane].distinct;
        if (set < 0)
            CK_TRY(cut(l, lane, b, ctx));
        else if (l->plan->distincts[set].member_count == 1)
            CK_TRY(cut_distinct(l, lane, b, ctx));
        else
            CK_TRY(cut_members(l, (uint32_t)set, b, ctx));
        l->made[lane] = true;
    }
    *out = &l->lanes[lane];
    return CK_OK;
}
