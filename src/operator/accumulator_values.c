/* Values of a group in an order, with counts: a slot beside the group's own, in a window behind what names it. MIN and
 * MAX are read from it where rows are taken back, and what takes all values: STRING_AGG, ARRAY_AGG, PERCENTILE_CONT.
 * FIRST_VALUE and LAST_VALUE over append input keep one row a group of it. */
#include "operator/accumulator.h"

#include <stdlib.h>

enum { WITHIN_MAX = 2, ORDER_MAX = WITHIN_MAX + CK_ACC_ORDER_MAX };

static ck_key_spec key_of(const ck_acc *a, const ck_key_spec *keys) {
    return (ck_key_spec){keys->columns, keys->types, keys->count - a->within};
}

/* What stands in front of the values of a group; keys: with the columns of the scope behind those of the key. */
static uint32_t scope_order(const ck_acc *a, const ck_key_spec *keys, ck_order_spec *out) {
    for (uint32_t i = 0; i < a->within; i++) {
        uint32_t k = keys->count - a->within + i;
        out[i] = (ck_order_spec){keys->columns[k], keys->types[k], false, false, false};
    }
    return a->within;
}

/* The first key behind all that begin so; empty: there is none. */
static void next_prefix(ck_bytes *key) {
    while (key->n > 0 && ++key->p[key->n - 1] == 0) key->n--;
}

/* The order keys of a group's values are in [lo, hi); empty: all of the partition. */
static ck_status scope_range(const ck_acc *a, const ck_groups *g, uint32_t i, ck_bytes *lo, ck_bytes *hi,
                             ck_op_ctx *ctx) {
    ck_order_spec order[WITHIN_MAX];
    uint32_t n = scope_order(a, g->spec, order);
    ck_bytes_clear(lo);
    ck_bytes_clear(hi);
    ck_status s = n ? ck_order_encode(order, n, g->batch, ck_batch_row(g->batch, i), lo) : CK_OK;
    if (s == CK_OK) s = ck_bytes_view(hi, ck_bytes_as_view(lo));
    if (s == CK_OK) next_prefix(hi);
    return s == CK_OK ? CK_OK : ck_nomem(ctx->error, ctx->mem, lo->capacity);
}

enum { AHEAD = 6 }; /* rows, to have their partitions in the cache */

typedef struct gone { /* a value whose count came to zero in this batch */
    ck_partition partition;
    uint32_t key_at, key_bytes;
} gone;

static int gone_order(const void *x, const void *y) {
    const gone *a = x, *b = y;
    return (a->partition > b->partition) - (a->partition < b->partition);
}

/* Not where the value has come back, or was listed twice. */
static ck_status erase_one(ck_acc *a, const gone *g, const ck_bytes *order_keys, bool *erased, ck_op_ctx *ctx) {
    ck_view key = {order_keys->p + g->key_at, g->key_bytes};
    ck_row *row;
    ck_status s = ck_partition_find(a->side_table, g->partition, key, &row);
    *erased = s == CK_OK && ck_row_i64(row, a->side_offset) == 0;
    if (*erased) return ck_partition_erase(a->side_table, g->partition, key, ctx->error);
    return s == CK_NOTFOUND ? CK_OK : s;
}

/* Erasing may end a partition, so it waits until the batch is counted. Partitions that are down to one value come after
 * the others, in their order: one that has ended is not asked again. */
static ck_status erase_gone(ck_acc *a, gone *list, uint32_t n, const ck_bytes *order_keys, ck_op_ctx *ctx) {
    uint32_t ends = 0;
    bool erased;
    for (uint32_t i = 0; i < n; i++) {
        if (ck_partition_rows(a->side_table, list[i].partition) == 1)
            list[ends++] = list[i];
        else
            CK_TRY(erase_one(a, &list[i], order_keys, &erased, ctx));
    }
    qsort(list, ends, sizeof *list, gone_order);
    for (uint32_t i = 0; i < ends; i++) {
        CK_TRY(erase_one(a, &list[i], order_keys, &erased, ctx));
        while (erased && i + 1 < ends && list[i + 1].partition == list[i].partition) i++;
    }
    return CK_OK;
}

/* The order key of row `at`, that of the scope in front, behind what is in keys. */
static ck_status append_key(const ck_acc *a, const ck_order_spec *order, uint32_t columns, const ck_batch *b,
                            uint32_t at, ck_bytes *keys, ck_op_ctx *ctx) {
    ck_status s = ck_order_encode(order, columns, b, at, keys);
    if (s == CK_NOMEM) return ck_nomem(ctx->error, ctx->mem, keys->n);
    return s == CK_OK ? CK_OK
                      : ck_fail(ctx->error, CK_DATA, "%s: a value is longer than an ordered key may be", a->field);
}

static uint32_t whole_order(const ck_acc *a, const ck_key_spec *spec, ck_order_spec *out) {
    uint32_t n = scope_order(a, spec, out);
    memcpy(out + n, a->by, a->by_count * sizeof *out);
    return n + a->by_count;
}

static ck_status count_values(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *spec,
                              const ck_partition *partitions, gone *list, ck_bytes *keys, ck_op_ctx *ctx) {
    ck_order_spec order[ORDER_MAX];
    uint32_t gone_count = 0, columns = whole_order(a, spec, order);
    for (uint32_t i = 0; i < lane->n; i++) {
        if (i + 2 * AHEAD < lane->n) ck_partition_prefetch(a->side_table, partitions[i + 2 * AHEAD], 0);
        if (i + AHEAD < lane->n) ck_partition_prefetch(a->side_table, partitions[i + AHEAD], 1);
        size_t at = keys->n;
        CK_TRY(append_key(a, order, columns, b, ck_lane_at(lane, i), keys, ctx));
        ck_row *row;
        bool fresh;
        ck_view key = {keys->p + at, keys->n - at};
        CK_TRY(ck_partition_upsert(a->side_table, partitions[i], key, &row, &fresh, ctx->error));
        int64_t count = ck_row_i64(row, a->side_offset) + ck_lane_weight(lane, i);
        ck_row_set_i64(row, a->side_offset, count);
        if (count == 0)
            list[gone_count++] = (gone){partitions[i], (uint32_t)at, (uint32_t)key.n};
        else
            keys->n = at;
    }
    return erase_gone(a, list, gone_count, keys, ctx);
}

/* ---- the first or the last alone: over append input nobody asks for the others again ---- */

/* The one that is kept of those whose order key begins with `scope`; row NULL: none yet. */
static ck_status kept(ck_acc *a, ck_partition p, ck_view scope, ck_bytes *hi, ck_row **row, ck_op_ctx *ctx) {
    ck_range r;
    *row = NULL;
    ck_bytes_clear(hi);
    if (ck_bytes_view(hi, scope) != CK_OK) return ck_nomem(ctx->error, ctx->mem, scope.n);
    next_prefix(hi);
    ck_range_open(&r, a->side_table, p, scope, ck_bytes_as_view(hi));
    if (!ck_range_next(&r, row)) *row = NULL;
    return r.status == CK_NOMEM ? ck_nomem(ctx->error, ctx->mem, scope.n) : r.status;
}

typedef struct keeper {
    ck_acc *acc;
    ck_bytes hi, had; /* scratch */
} keeper;

/* A row of order key `key`, whose first scope_bytes are of the scope: it stays if it comes before (after) the one that
 * is there. The new one goes in before the old one goes, so that the partition does not end. */
static ck_status keep(keeper *k, ck_partition p, ck_view key, size_t scope_bytes, ck_op_ctx *ctx) {
    ck_acc *a = k->acc;
    ck_row *row;
    bool fresh;
    CK_TRY(kept(a, p, (ck_view){key.p, scope_bytes}, &k->hi, &row, ctx));
    ck_bytes_clear(&k->had);
    if (row) {
        if (ck_row_order_key(a->side_table, row, &k->had) != CK_OK) return ck_nomem(ctx->error, ctx->mem, key.n);
        int order = ck_view_cmp(key, ck_bytes_as_view(&k->had));
        if (a->name[0] == 'f' ? order >= 0 : order <= 0) return CK_OK;
    }
    CK_TRY(ck_partition_upsert(a->side_table, p, key, &row, &fresh, ctx->error));
    ck_row_set_i64(row, a->side_offset, 1);
    return k->had.n ? ck_partition_erase(a->side_table, p, ck_bytes_as_view(&k->had), ctx->error) : CK_OK;
}

static void keeper_init(keeper *k, ck_acc *a, ck_mem mem) {
    k->acc = a;
    ck_bytes_init(&k->hi, mem, SIZE_MAX);
    ck_bytes_init(&k->had, mem, SIZE_MAX);
}
static void keeper_destroy(keeper *k) {
    ck_bytes_destroy(&k->hi);
    ck_bytes_destroy(&k->had);
}

static ck_status keep_best(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *spec,
                           const ck_partition *partitions, ck_bytes *key, ck_op_ctx *ctx) {
    ck_order_spec order[ORDER_MAX];
    uint32_t within = scope_order(a, spec, order);
    keeper k;
    ck_status s = CK_OK;
    keeper_init(&k, a, ctx->mem);
    for (uint32_t i = 0; s == CK_OK && i < lane->n; i++) {
        uint32_t at = ck_lane_at(lane, i);
        ck_bytes_clear(key);
        s = within ? append_key(a, order, within, b, at, key, ctx) : CK_OK;
        size_t scope_bytes = key->n;
        if (s == CK_OK) s = append_key(a, a->by, a->by_count, b, at, key, ctx);
        if (s == CK_OK) s = keep(&k, partitions[i], ck_bytes_as_view(key), scope_bytes, ctx);
    }
    keeper_destroy(&k);
    return s;
}

static bool keeps_one(const ck_acc *a) { return a->name[0] == 'f' || a->name[0] == 'l'; }

static ck_status values_update(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys,
                               ck_op_ctx *ctx) {
    if (lane->n == 0) return CK_OK;
    ck_partition *partitions = ck_arena_alloc(ctx->arena, lane->n * sizeof *partitions);
    gone *list = ck_arena_alloc(ctx->arena, lane->n * sizeof *list);
    ck_batch *some =
        lane->at && lane->at != b->sel ? ck_batch_select(b, lane->at, lane->n) : ck_batch_ref((ck_batch *)(uintptr_t)b);
    if (!partitions || !list || !some) {
        ck_batch_unref(&some);
        return ck_nomem(ctx->error, ctx->mem, lane->n * sizeof *list);
    }
    ck_key_spec key = key_of(a, keys);
    uint64_t *hashes = ck_keys_hash(&key, some, a->side_table, ctx);
    ck_keys k = {&key, some, hashes, lane->n};
    ck_status s = hashes ? ck_table_partitions(a->side_table, &k, true, partitions, ctx->error) : CK_NOMEM;
    ck_bytes order_keys;
    ck_bytes_init(&order_keys, ctx->mem, UINT32_MAX);
    if (s == CK_OK)
        s = keeps_one(a) ? keep_best(a, lane, b, keys, partitions, &order_keys, ctx)
                         : count_values(a, lane, b, keys, partitions, list, &order_keys, ctx);
    ck_bytes_destroy(&order_keys);
    ck_batch_unref(&some);
    return s;
}

ck_status ck_acc_erase_values(ck_acc *a, const ck_groups *g, ck_op_ctx *ctx) {
    ck_partition *of = ck_arena_alloc(ctx->arena, g->n * sizeof *of + 1);
    ck_key_spec key = key_of(a, g->spec);
    uint64_t *hashes = ck_keys_hash(&key, g->batch, a->side_table, ctx);
    if (!of || !hashes) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof *of);
    ck_keys k = {&key, g->batch, hashes, g->n};
    CK_TRY(ck_table_partitions(a->side_table, &k, false, of, ctx->error));
    ck_bytes lo, hi;
    ck_bytes_init(&lo, ctx->mem, SIZE_MAX);
    ck_bytes_init(&hi, ctx->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < g->n; i++) {
        if (of[i] == 0) continue;
        uint64_t erased = 0, had = ck_partition_rows(a->side_table, of[i]);
        s = scope_range(a, g, i, &lo, &hi, ctx);
        if (s == CK_OK)
            s = ck_partition_erase_range(a->side_table, of[i], ck_bytes_as_view(&lo), ck_bytes_as_view(&hi), &erased,
                                         ctx->error);
        /* It has ended. Sessions of one key stand together; in windows that rows carry it may be in several that end at
         * once. */
        for (uint32_t other = i + 1; erased == had && other < g->n; other++) {
            if (a->within <= 1 && of[other] != of[i]) break;
            if (of[other] == of[i]) of[other] = 0;
        }
    }
    ck_bytes_destroy(&lo);
    ck_bytes_destroy(&hi);
    return s;
}

/* ---- reading ---- */

ck_status ck_values_begin(ck_values_walk *w, ck_acc *a, const ck_groups *g, ck_op_ctx *ctx) {
    *w = (ck_values_walk){.acc = a, .groups = g};
    ck_bytes_init(&w->lo, ctx->mem, SIZE_MAX);
    ck_bytes_init(&w->hi, ctx->mem, SIZE_MAX);
    w->partitions = ck_arena_alloc(ctx->arena, g->n * sizeof *w->partitions + 1);
    ck_key_spec key = key_of(a, g->spec);
    uint64_t *hashes = ck_keys_hash(&key, g->batch, a->side_table, ctx);
    if (!w->partitions || !hashes) return ck_nomem(ctx->error, ctx->mem, g->n * sizeof *w->partitions);
    ck_keys k = {&key, g->batch, hashes, g->n};
    return ck_table_partitions(a->side_table, &k, false, w->partitions, ctx->error);
}

ck_status ck_values_open(ck_values_walk *w, uint32_t group, ck_op_ctx *ctx) {
    w->partition = w->partitions[group];
    if (w->partition == 0) return CK_OK;
    if (w->acc->within) CK_TRY(scope_range(w->acc, w->groups, group, &w->lo, &w->hi, ctx));
    ck_range_open(&w->range, w->acc->side_table, w->partition, ck_bytes_as_view(&w->lo), ck_bytes_as_view(&w->hi));
    ck_status s = w->range.status;
    return s == CK_NOMEM ? ck_nomem(ctx->error, ctx->mem, w->lo.capacity) : s;
}

bool ck_values_next(ck_values_walk *w, ck_row **row, int64_t *count) {
    if (w->partition == 0) return false;
    while (ck_range_next(&w->range, row)) {
        *count = ck_row_i64(*row, w->acc->side_offset);
        if (*count > 0) return true;
    }
    return false;
}

bool ck_values_last(ck_values_walk *w, ck_row **row) {
    const ck_acc *a = w->acc;
    ck_row *at;
    int64_t count;
    bool found = false;
    if (w->partition == 0) return false;
    if (!a->within && ck_partition_last(a->side_table, w->partition, row) && ck_row_i64(*row, a->side_offset) > 0)
        return true;
    while (ck_values_next(w, &at, &count)) *row = at, found = true;
    return found;
}

void ck_values_end(ck_values_walk *w) {
    ck_bytes_destroy(&w->lo);
    ck_bytes_destroy(&w->hi);
}

/* ---- merging ---- */

enum { PIECE_ROWS = 1024, PIECE_BYTES = 256 << 10 };

typedef struct moving { /* some values of a group, under the order keys they come to */
    ck_bytes keys, lo, hi, last;
    size_t scope_bytes; /* in front of each */
    uint32_t n, ends[PIECE_ROWS];
    int64_t counts[PIECE_ROWS];
} moving;

/* Reads the next values of [lo, hi), which then begins behind them. */
static ck_status take_piece(ck_acc *a, ck_table *from, ck_partition p, ck_view prefix, moving *m) {
    ck_range r;
    ck_row *row;
    ck_status s = CK_OK;
    m->n = 0;
    ck_bytes_clear(&m->keys);
    ck_range_open(&r, from, p, ck_bytes_as_view(&m->lo), ck_bytes_as_view(&m->hi));
    CK_TRY(r.status);
    while (s == CK_OK && m->n < PIECE_ROWS && m->keys.n < PIECE_BYTES && ck_range_next(&r, &row)) {
        ck_bytes_clear(&m->last);
        s = ck_row_order_key(from, row, &m->last);
        if (s == CK_OK) s = ck_bytes_view(&m->keys, prefix);
        if (s == CK_OK) s = ck_bytes_append(&m->keys, m->last.p + m->scope_bytes, m->last.n - m->scope_bytes);
        m->counts[m->n] = ck_row_i64(row, a->side_offset);
        m->ends[m->n++] = (uint32_t)m->keys.n;
    }
    if (s != CK_OK || m->n == 0) return s;
    ck_bytes_clear(&m->lo);
    s = ck_bytes_view(&m->lo, ck_bytes_as_view(&m->last));
    return s == CK_OK ? ck_bytes_char(&m->lo, 0) : s;
}

static ck_status put_piece(keeper *k, ck_partition p, const moving *m, ck_op_ctx *ctx) {
    ck_acc *a = k->acc;
    for (uint32_t i = 0, from = 0; i < m->n; from = m->ends[i++]) {
        ck_view key = {m->keys.p + from, m->ends[i] - from};
        ck_row *row;
        bool fresh;
        if (keeps_one(a)) {
            CK_TRY(keep(k, p, key, m->scope_bytes, ctx));
            continue;
        }
        CK_TRY(ck_partition_upsert(a->side_table, p, key, &row, &fresh, ctx->error));
        ck_row_set_i64(row, a->side_offset, ck_row_i64(row, a->side_offset) + m->counts[i]);
    }
    return CK_OK;
}

/* Slots beside a group are one table, and a group's key is the same wherever it goes: its values come under another
 * scope of one partition. */
static ck_status values_merge(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src,
                              const ck_batch *dst_keys, ck_op_ctx *ctx) {
    (void)dst, (void)from;
    ck_order_spec order[WITHIN_MAX];
    ck_values_walk w;
    keeper k;
    moving *m = ck_arena_alloc(ctx->arena, sizeof *m);
    ck_bytes prefix;
    if (!m) return ck_nomem(ctx->error, ctx->mem, sizeof *m);
    uint32_t within = scope_order(a, src->spec, order);
    keeper_init(&k, a, ctx->mem);
    ck_bytes *all[] = {&prefix, &m->keys, &m->lo, &m->hi, &m->last};
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) ck_bytes_init(all[i], ctx->mem, SIZE_MAX);
    ck_status s = ck_values_begin(&w, a, src, ctx);
    for (uint32_t i = 0; s == CK_OK && i < src->n; i++) {
        if (w.partitions[i] == 0) continue;
        ck_bytes_clear(&prefix);
        s = ck_order_encode(order, within, dst_keys, ck_batch_row(dst_keys, i), &prefix);
        if (s == CK_OK) s = scope_range(a, src, i, &m->lo, &m->hi, ctx);
        m->scope_bytes = m->lo.n;
        for (m->n = 1; s == CK_OK && m->n > 0;) {
            s = take_piece(a, a->side_table, w.partitions[i], ck_bytes_as_view(&prefix), m);
            if (s == CK_NOMEM) s = ck_nomem(ctx->error, ctx->mem, m->keys.capacity);
            if (s == CK_OK) s = put_piece(&k, w.partitions[i], m, ctx);
        }
    }
    ck_values_end(&w);
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) ck_bytes_destroy(all[i]);
    keeper_destroy(&k);
    return s;
}

/* ---- planning ---- */

/* "price ORDER BY ts DESC", with the filter behind. */
static const char *order_name(const ck_acc *a, ck_arena *arena) {
    return a->order_text ? ck_arena_printf(arena, "%s ORDER BY %s", a->set_name, a->order_text) : a->set_name;
}

/* A slot of the argument's values alone serves MIN and MAX, too. */
static ck_status plan_slot(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    const ck_order_spec *value = &a->by[a->value_at];
    bool alone = a->by_count == 1 && !value->nullable && !value->descending && !keeps_one(a);
    const char *prefix = alone ? "values:" : keeps_one(a) ? (a->name[0] == 'f' ? "first:" : "last:") : "ordered:";
    const char *text = order_name(a, arena);
    const char *slot = text ? ck_slot_name(arena, prefix, text, err) : NULL;
    ck_order_field *order = ck_arena_array(arena, a->by_count, sizeof *order);
    if (!order || !slot) return ck_nomem(err, arena->mem, a->by_count * sizeof *order);
    for (uint32_t i = 0; i < a->by_count; i++) {
        const ck_order_spec *o = &a->by[i];
        const char *name = i == a->value_at ? "value" : ck_arena_printf(arena, "by_%u", i + 1);
        if (!name) return ck_nomem(err, arena->mem, CK_NAME_BYTES_MAX);
        order[i] = (ck_order_field){{name, o->type, o->nullable}, o->descending, o->nulls_first};
    }
    ck_slot_schema *side =
        ck_acc_side_slot(arena, slot, alone ? "ordered_values" : "ordered_rows", scope, order, a->by_count, "count");
    if (!side) return ck_nomem(err, arena->mem, sizeof *side);
    side->hashed = false;
    a->side = side;
    return CK_OK;
}

ck_status ck_acc_plan_values(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    CK_ASSERT(scope->within_count <= WITHIN_MAX && a->by_count <= CK_ACC_ORDER_MAX);
    if (keeps_one(a) && a->retract) return ck_fail(err, CK_INVALID, "%s: its input changes", a->field);
    if (!a->by) {
        ck_order_spec *by = CK_ARENA_NEW(arena, ck_order_spec);
        if (!by) return ck_nomem(err, arena->mem, sizeof *by);
        *by = (ck_order_spec){(uint32_t)a->arg, a->arg_type, false, false, false};
        a->by = by, a->by_count = 1, a->value_at = 0;
    }
    CK_TRY(plan_slot(a, arena, scope, err));
    a->within = scope->within_count;
    a->update = values_update;
    a->merge = values_merge;
    return CK_OK;
}
