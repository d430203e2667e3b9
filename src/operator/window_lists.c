/* Values of DISTINCT in a hop that rolls over append input. Each value stands once, in one set, and a slice has the
 * list of where: a row looks its value up once, as in a window without slides, and what goes into a window and out of
 * it is a walk over a list. The set is in the scratch bucket, which no snapshot has: before one, what lists have and
 * the sets of their slices do not is put there, and the lists are made of those again when they are needed.
 *
 * A row of the set counts, where others have how often a value came: in which list it was put last, so that it is not
 * put there twice; in how many lists it is; and in how many of those that are in the window. A value may be in a list
 * more than once, since rows come out of order: it then goes in and out as often. */
#include "operator/window_int.h"

enum { COUNT_BITS = 20, LIST_BITS = 24, TIGHT_BEFORE = 4 * CK_BATCH_ROWS_MAX, AGAIN_FROM = 1024 };
#define COUNT_MASK ((1ULL << COUNT_BITS) - 1)
#define IN_LIST    (1ULL << COUNT_BITS)
#define LIST_SHIFT (2 * COUNT_BITS)

static uint32_t counts_at(const ck_table *set) {
    const ck_row_layout *layout = ck_table_layout(set);
    return layout->fields[layout->value_first].offset;
}
static uint64_t counts_of(const ck_row *row, uint32_t at) { return (uint64_t)ck_row_i64(row, at); }
static void set_counts(ck_row *row, uint32_t at, uint64_t counts) { ck_row_set_i64(row, at, (int64_t)counts); }
static uint64_t list_of(uint64_t counts) { return counts >> LIST_SHIFT; }
static uint64_t lists_of(uint64_t counts) { return counts >> COUNT_BITS & COUNT_MASK; }

static ck_status nomem(const ck_window_agg *op, size_t n, ck_op_ctx *ctx) {
    return ck_nomem(ctx->error, op->mem, n * sizeof(uint32_t));
}

/* ---- the lists of a set, by slice ---- */

static uint32_t lower(const ck_window_lists *l, int64_t slice) {
    uint32_t lo = l->first, hi = l->first + l->count;
    if (l->count && l->at[hi - 1].slice < slice) return hi;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (l->at[mid].slice < slice)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static ck_window_list *find(const ck_window_lists *l, int64_t slice) {
    uint32_t at = lower(l, slice);
    return at < l->first + l->count && l->at[at].slice == slice ? &l->at[at] : NULL;
}

static void list_drop(ck_window_agg *op, ck_window_lists *l, ck_window_list *list) {
    uint32_t at = (uint32_t)(list - l->at), end = l->first + l->count;
    ck_free(op->mem, list->refs, list->capacity * sizeof *list->refs);
    if (at == l->first)
        l->first++;
    else
        memmove(list, list + 1, (end - at - 1) * sizeof *list);
    if (--l->count == 0) l->first = 0;
}

static bool make_room(ck_window_list *list, uint32_t n, ck_mem mem) {
    if (n <= list->capacity - list->n) return true;
    if (n > UINT32_MAX / 4 - list->n) return false;
    uint32_t capacity = list->n ? list->capacity * 2 : 64;
    while (capacity - list->n < n) capacity *= 2;
    uint32_t *refs = ck_realloc(mem, list->refs, list->capacity * sizeof *refs, capacity * sizeof *refs);
    if (refs) list->refs = refs, list->capacity = capacity;
    return refs != NULL;
}

/* ---- values into a list ---- */

/* Those that were not put there last. */
static ck_status append(ck_window_agg *op, ck_window_lists *l, ck_window_list *list, ck_table *set, ck_row **rows,
                        uint32_t n, ck_op_ctx *ctx) {
    uint32_t at = counts_at(set), m = 0;
    uint64_t id = list->id, most = 0;
    if (!make_room(list, n, op->mem)) return nomem(op, n, ctx);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t counts = counts_of(rows[i], at);
        if (list_of(counts) == id) continue;
        counts = id << LIST_SHIFT | ((counts & ((1ULL << LIST_SHIFT) - 1)) + IN_LIST);
        set_counts(rows[i], at, counts);
        most = lists_of(counts) > most ? lists_of(counts) : most;
        rows[m++] = rows[i];
    }
    ck_table_refs(set, rows, m, list->refs + list->n);
    list->n += m;
    l->tight = l->tight || most > op->lists_most;
    return CK_OK;
}

static uint32_t next_id(ck_window_lists *l) {
    l->tight = l->tight || l->last_id > (1u << LIST_BITS) - TIGHT_BEFORE;
    return ++l->last_id;
}

/* Values that are in a list of no window more than once, once. */
static ck_status unite(ck_window_lists *l, ck_window_list *list, ck_table *set, ck_op_ctx *ctx) {
    ck_row *rows[256];
    uint32_t at = counts_at(set), to = 0;
    list->id = next_id(l);
    for (uint32_t from = 0; from < list->n; from += 256) {
        uint32_t n = list->n - from < 256 ? list->n - from : 256;
        CK_TRY(ck_table_rows_of(set, list->refs + from, n, rows, ctx->error));
        for (uint32_t i = 0; i < n; i++) {
            uint64_t counts = counts_of(rows[i], at), low = counts & ((1ULL << LIST_SHIFT) - 1);
            bool again = list_of(counts) == list->id;
            set_counts(rows[i], at, (uint64_t)list->id << LIST_SHIFT | (again ? low - IN_LIST : low));
            if (!again) list->refs[to++] = list->refs[from + i];
        }
    }
    list->n = to;
    return CK_OK;
}

/* What the set of a slice has, of an earlier snapshot. */
static ck_status load(ck_window_agg *op, uint32_t number, ck_window_list *list, ck_table *set, ck_op_ctx *ctx) {
    ck_table *from;
    ck_table_scan scan = {0};
    CK_TRY(ck_table_bucket(op->sets[number], list->slice, false, &from, ctx->error));
    if (!from) return CK_OK;
    ck_row **rows = ck_arena_alloc(ctx->arena, CK_BATCH_ROWS_MAX * sizeof *rows);
    ck_row **there = ck_arena_alloc(ctx->arena, CK_BATCH_ROWS_MAX * sizeof *there);
    if (!rows || !there) return nomem(op, CK_BATCH_ROWS_MAX, ctx);
    for (uint32_t n; (n = ck_table_scan_next(from, &scan, rows, CK_BATCH_ROWS_MAX)) > 0;) {
        CK_TRY(ck_table_upsert_rows(set, from, rows, n, there, NULL, ctx->error));
        CK_TRY(append(op, &op->lists[number], list, set, there, n, ctx));
    }
    list->stored = list->n;
    return CK_OK;
}

static ck_status list_for(ck_window_agg *op, uint32_t number, int64_t slice, ck_table *set, ck_window_list **out,
                          ck_op_ctx *ctx) {
    ck_window_lists *l = &op->lists[number];
    if ((*out = find(l, slice))) return CK_OK;
    ck_window_list *room = ck_window_row_room(l->at, sizeof *room, &l->first, l->count, &l->capacity, op->mem);
    if (!room) return nomem(op, l->capacity, ctx);
    l->at = room;
    uint32_t at = lower(l, slice), end = l->first + l->count;
    *out = &l->at[at];
    memmove(*out + 1, *out, (end - at) * sizeof **out);
    **out = (ck_window_list){.slice = slice, .id = next_id(l)};
    l->count++;
    return load(op, number, *out, set, ctx);
}

static ck_status add_values(ck_window_agg *op, uint32_t number, int64_t slice, const ck_batch *b, ck_op_ctx *ctx) {
    const ck_distinct_plan *d = &op->plan.distincts[number];
    const ck_lane *lane;
    ck_table *set;
    ck_window_list *list;
    CK_TRY(ck_lanes_get(&op->lanes, d->lane, b, &lane, ctx));
    if (lane->n == 0) return CK_OK;
    CK_TRY(ck_table_bucket(op->sets[number], CK_WINDOW_SCRATCH, true, &set, ctx->error));
    CK_TRY(list_for(op, number, slice, set, &list, ctx));
    if (list->n > 2 * ck_table_row_count(set) + op->lists_again) CK_TRY(unite(&op->lists[number], list, set, ctx));
    ck_row **rows = ck_arena_alloc(ctx->arena, lane->n * sizeof *rows);
    ck_batch *some =
        lane->at && lane->at != b->sel ? ck_batch_select(b, lane->at, lane->n) : ck_batch_ref((ck_batch *)(uintptr_t)b);
    ck_status s = rows && some ? CK_OK : nomem(op, lane->n, ctx);
    if (s == CK_OK) ck_key_hash(&d->spec, some, ck_table_seed(set), op->hashes);
    ck_keys keys = {&d->spec, some, op->hashes, lane->n};
    if (s == CK_OK) s = ck_table_upsert(set, &keys, rows, NULL, ctx->error);
    if (s == CK_OK) s = append(op, &op->lists[number], list, set, rows, lane->n, ctx);
    ck_batch_unref(&some);
    return s;
}

ck_status ck_window_lists_add(ck_window_agg *op, int64_t slice, const ck_batch *b, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < op->plan.distinct_count; i++) CK_TRY(add_values(op, i, slice, b, ctx));
    return CK_OK;
}

/* ---- lists into the window, and out of it ---- */

static ck_window_sets set_of(const ck_window_agg *op, uint32_t number) {
    return (ck_window_sets){&op->plan, op->table, op->sets, number, number, -1};
}

/* Of some values that go into the window or out of it: those that are new in it, or gone from it; and those that are in
 * no list any more. */
typedef struct moved {
    ck_row **changed, **gone;
    uint32_t changed_count, gone_count;
} moved;

static void step_in(ck_row *const *rows, uint32_t n, uint32_t at, moved *m) {
    uint32_t changed = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t counts = counts_of(rows[i], at);
        set_counts(rows[i], at, counts + 1);
        m->changed[changed] = rows[i];
        changed += (counts & COUNT_MASK) == 0;
    }
    m->changed_count = changed;
}

static void step_out(ck_row *const *rows, uint32_t n, uint32_t at, bool in_window, moved *m) {
    uint32_t changed = 0, gone = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t counts = counts_of(rows[i], at) - IN_LIST - in_window;
        set_counts(rows[i], at, counts);
        m->changed[changed] = rows[i];
        changed += (counts & COUNT_MASK) == 0;
        m->gone[gone] = rows[i];
        gone += lists_of(counts) == 0;
    }
    m->changed_count = in_window ? changed : 0;
    m->gone_count = gone;
}

static ck_status move_values(ck_window_agg *op, uint32_t number, ck_table *set, int sign, bool in_window, uint32_t n,
                             ck_op_ctx *ctx) {
    const ck_window_sets sets = set_of(op, number);
    ck_row **rows = ck_arena_alloc(ctx->arena, 2 * n * sizeof *rows);
    if (!rows) return nomem(op, n, ctx);
    moved m = {.changed = rows, .gone = rows + n};
    if (sign > 0)
        step_in(op->found, n, counts_at(set), &m);
    else
        step_out(op->found, n, counts_at(set), in_window, &m);
    CK_TRY(ck_window_count_values(op, &sets, set, m.changed, m.changed_count, sign, CK_WINDOW_SCRATCH, ctx));
    return m.gone_count ? ck_table_erase(set, m.gone, m.gone_count, ctx->error) : CK_OK;
}

ck_status ck_window_lists_merge(ck_window_agg *op, uint32_t number, int sign, int64_t slice, uint32_t *merged,
                                ck_op_ctx *ctx) {
    ck_table *set;
    ck_window_list *list;
    uint64_t *at = &op->set_scan.position;
    CK_TRY(ck_table_bucket(op->sets[number], CK_WINDOW_SCRATCH, true, &set, ctx->error));
    CK_TRY(list_for(op, number, slice, set, &list, ctx));
    while (*at < list->n) {
        if (*merged >= CK_WINDOW_MERGED_ROWS) return CK_MORE;
        uint32_t left = list->n - (uint32_t)*at, n = left < CK_BATCH_ROWS_MAX ? left : CK_BATCH_ROWS_MAX;
        CK_TRY(ck_table_rows_of(set, list->refs + *at, n, op->found, ctx->error));
        CK_TRY(move_values(op, number, set, sign, sign > 0 || list->merged, n, ctx));
        *merged += n, *at += n;
    }
    *at = 0;
    list->merged = true;
    if (sign < 0) list_drop(op, &op->lists[number], list);
    return CK_OK;
}

/* ---- none is in the window any more ---- */

static ck_status leave_window(ck_window_agg *op, uint32_t number, ck_op_ctx *ctx) {
    ck_window_lists *l = &op->lists[number];
    ck_table *set;
    ck_table_scan scan = {0};
    if (l->count == 0) return ck_table_drop_bucket(op->sets[number], CK_WINDOW_SCRATCH, ctx->error);
    CK_TRY(ck_table_bucket(op->sets[number], CK_WINDOW_SCRATCH, true, &set, ctx->error));
    for (uint32_t i = 0; i < l->count; i++) l->at[l->first + i].merged = false;
    uint32_t at = counts_at(set);
    for (uint32_t n; (n = ck_table_scan_next(set, &scan, op->found, CK_BATCH_ROWS_MAX)) > 0;) {
        CK_TRY(ck_table_touch_rows(set, op->found, n, ctx->error));
        for (uint32_t i = 0; i < n; i++) set_counts(op->found[i], at, counts_of(op->found[i], at) & ~COUNT_MASK);
    }
    return CK_OK;
}

ck_status ck_window_lists_leave(ck_window_agg *op, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < op->plan.distinct_count; i++) CK_TRY(leave_window(op, i, ctx));
    return CK_OK;
}

/* ---- into the sets of their slices ---- */

static ck_status store(ck_window_agg *op, uint32_t number, ck_window_list *list, ck_table *set, ck_row **rows,
                       ck_row **there, ck_op_ctx *ctx) {
    const ck_window_sets sets = set_of(op, number);
    ck_table *to;
    CK_TRY(ck_table_bucket(op->sets[number], list->slice, true, &to, ctx->error));
    uint32_t at = counts_at(to);
    while (list->stored < list->n) {
        uint32_t left = list->n - list->stored, n = left < CK_BATCH_ROWS_MAX ? left : CK_BATCH_ROWS_MAX, m = 0;
        CK_TRY(ck_table_rows_of(set, list->refs + list->stored, n, rows, ctx->error));
        CK_TRY(ck_table_upsert_rows(to, set, rows, n, there, NULL, ctx->error));
        for (uint32_t i = 0; i < n; i++) {
            int64_t old = ck_row_i64(there[i], at);
            ck_row_set_i64(there[i], at, old + 1);
            rows[m] = rows[i];
            m += old <= 0;
        }
        CK_TRY(ck_window_count_values(op, &sets, set, rows, m, 1, list->slice, ctx));
        list->stored += n;
    }
    return CK_OK;
}

static ck_status forget(ck_window_agg *op, uint32_t number, ck_op_ctx *ctx) {
    ck_window_lists *l = &op->lists[number];
    ck_table *set;
    CK_TRY(ck_table_bucket(op->sets[number], CK_WINDOW_SCRATCH, false, &set, ctx->error));
    ck_row **rows = ck_arena_alloc(ctx->arena, 2 * CK_BATCH_ROWS_MAX * sizeof *rows);
    if (!rows) return nomem(op, CK_BATCH_ROWS_MAX, ctx);
    for (uint32_t i = 0; i < l->count; i++) {
        ck_window_list *list = &l->at[l->first + i];
        if (list->stored < list->n) CK_TRY(store(op, number, list, set, rows, rows + CK_BATCH_ROWS_MAX, ctx));
    }
    while (l->count) list_drop(op, l, &l->at[l->first + l->count - 1]);
    l->last_id = 0, l->tight = false;
    return ck_table_drop_bucket(op->sets[number], CK_WINDOW_SCRATCH, ctx->error);
}

ck_status ck_window_lists_forget(ck_window_agg *op, ck_op_ctx *ctx) {
    if (!op->listing) return CK_OK;
    CK_TRY(ck_window_unroll(op, ctx));
    for (uint32_t i = 0; i < op->plan.distinct_count; i++) CK_TRY(forget(op, i, ctx));
    return CK_OK;
}

bool ck_window_lists_are_tight(const ck_window_agg *op) {
    bool tight = false;
    for (uint32_t i = 0; op->listing && i < op->plan.distinct_count; i++) tight = tight || op->lists[i].tight;
    return tight;
}

/* ---- life ---- */

ck_status ck_window_lists_open(ck_window_agg *op, ck_op_ctx *ctx) {
    uint32_t n = op->plan.distinct_count;
    op->listing = op->listing && n > 0;
    op->lists_most = COUNT_MASK - TIGHT_BEFORE;
    op->lists_again = AGAIN_FROM;
    for (uint32_t i = 0; op->listing && i < n; i++) op->listing = ck_table_rows_stay(op->sets[i]);
    if (!op->listing) return CK_OK;
    op->lists = ck_arena_array(&op->arena, n, sizeof *op->lists);
    if (!op->lists) return ck_nomem(ctx->error, op->arena.mem, n * sizeof *op->lists);
    memset(op->lists, 0, n * sizeof *op->lists);
    return CK_OK;
}

void ck_window_lists_close(ck_window_agg *op) {
    for (uint32_t i = 0; op->lists && i < op->plan.distinct_count; i++) {
        ck_window_lists *l = &op->lists[i];
        while (l->count) list_drop(op, l, &l->at[l->first + l->count - 1]);
        ck_free(op->mem, l->at, l->capacity * sizeof *l->at);
    }
    op->lists = NULL;
}
