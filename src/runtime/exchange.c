/* See exchange.h. Splitting a batch by target is a counting sort of its live rows: hash them all, find the target of
 * each key group, count, place; then one gather per target and column. */
#include "runtime/exchange.h"

#include "os/clock.h"
#include "stream/key_groups.h"

enum { GATHER_ROWS_MIN = 64, SHARED_TARGETS_MAX = 3, SHARED_ROWS_MIN = 256 };

typedef struct target {
    ck_channel *channel;
    bool closed;
    bool has_builder;
    ck_batch_builder builder; /* HASH with several targets */
    size_t bytes;             /* gathered */
} target;

struct ck_exchange {
    ck_exchange *next;
    ck_exchange_group *group;
    ck_exchange_config cfg;
    const ck_type **types;     /* of the key columns */
    uint16_t *target_of_group; /* where the number of key groups is no power of two */
    uint32_t *counts;          /* scratch, target_count + 1 */
    uint32_t gather_rows;
    uint32_t open_count;
    uint32_t turn; /* REBALANCE */
    uint32_t channel_count;
    target targets[];
};

/* ---- making ---- */

ck_status ck_exchange_group_init(ck_exchange_group *g, ck_proc *proc, ck_mem mem) {
    *g = (ck_exchange_group){.proc = proc, .mem = mem, .since_us = INT64_MAX, .fnv16 = ck_key_fnv16_for(proc->cpu)};
    return CK_OK;
}

static bool is_power_of_two(uint32_t n) { return (n & (n - 1)) == 0; }

static ck_status reserve_scratch(ck_exchange_group *g, uint32_t key_groups) {
    bool whole = !is_power_of_two(key_groups);
    if (whole && !g->hashes) g->hashes = ck_alloc(g->mem, CK_BATCH_ROWS_MAX * sizeof *g->hashes);
    if (!g->targets) g->targets = ck_alloc(g->mem, CK_BATCH_ROWS_MAX * sizeof *g->targets);
    if (!g->rows) g->rows = ck_alloc(g->mem, CK_BATCH_ROWS_MAX * sizeof *g->rows);
    return (!whole || g->hashes) && g->targets && g->rows ? CK_OK : CK_NOMEM;
}

static size_t exchange_bytes(uint32_t channels) { return sizeof(ck_exchange) + channels * sizeof(target); }

static void free_exchange(ck_exchange *x) {
    ck_mem mem = x->group->mem;
    for (uint32_t t = 0; t < x->channel_count; t++)
        if (x->targets[t].has_builder) ck_batch_builder_destroy(&x->targets[t].builder);
    ck_free(mem, x->types, x->cfg.key_count * sizeof *x->types);
    ck_free(mem, x->target_of_group, x->cfg.key_groups * sizeof *x->target_of_group);
    ck_free(mem, x->counts, (x->channel_count + 1) * sizeof *x->counts);
    ck_free(mem, x, exchange_bytes(x->channel_count));
}

void ck_exchange_group_destroy(ck_exchange_group *g) {
    if (!g->mem.budget) return;
    for (ck_exchange *x = g->exchanges, *next; x; x = next) {
        next = x->next;
        free_exchange(x);
    }
    ck_free(g->mem, g->hashes, CK_BATCH_ROWS_MAX * sizeof *g->hashes);
    ck_free(g->mem, g->targets, CK_BATCH_ROWS_MAX * sizeof *g->targets);
    ck_free(g->mem, g->rows, CK_BATCH_ROWS_MAX * sizeof *g->rows);
    memset(g, 0, sizeof *g);
}

static size_t row_bytes(const ck_schema *s) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < s->field_count; i++) {
        ck_phys p = ck_type_phys(s->fields[i].type);
        bytes += p == CK_PHYS_BOOL ? 1 : p == CK_PHYS_I64 || p == CK_PHYS_F64 ? 8 : 16;
    }
    return bytes ? bytes : 1;
}

/* Rows a target gathers before they are sent: 2,048 or 64 KiB of fixed-width parts, less when there are so many targets
 * that their builders would pass the subtask's share. */
static uint32_t gather_rows(const ck_exchange_config *cfg) {
    size_t row = row_bytes(cfg->schema), rows = CK_EXCHANGE_GATHER_ROWS;
    if (rows > CK_EXCHANGE_GATHER_BYTES / row) rows = CK_EXCHANGE_GATHER_BYTES / row;
    if (rows > CK_EXCHANGE_SUBTASK_BYTES / row / cfg->target_count)
        rows = CK_EXCHANGE_SUBTASK_BYTES / row / cfg->target_count;
    if (rows < GATHER_ROWS_MIN) rows = GATHER_ROWS_MIN;
    return rows > cfg->batch_rows ? cfg->batch_rows : (uint32_t)rows;
}

static ck_status init_hash(ck_exchange *x) {
    const ck_exchange_config *cfg = &x->cfg;
    ck_mem mem = x->group->mem;
    x->types = ck_alloc_array(mem, cfg->key_count, sizeof *x->types);
    x->counts = ck_alloc_array(mem, x->channel_count + 1, sizeof *x->counts);
    if (!x->types || !x->counts) return CK_NOMEM;
    for (uint32_t k = 0; k < cfg->key_count; k++) x->types[k] = cfg->schema->fields[cfg->key[k]].type;
    if (!is_power_of_two(cfg->key_groups)) {
        x->target_of_group = ck_alloc_array(mem, cfg->key_groups, sizeof *x->target_of_group);
        if (!x->target_of_group) return CK_NOMEM;
        for (uint32_t g = 0; g < cfg->key_groups; g++)
            x->target_of_group[g] = (uint16_t)ck_subtask_for_key_group(g, cfg->target_count, cfg->key_groups);
    }
    x->gather_rows = gather_rows(cfg);
    for (uint32_t t = 0; t < x->channel_count && cfg->target_count > 1; t++) {
        CK_TRY(ck_batch_builder_init(&x->targets[t].builder, mem, cfg->schema, x->gather_rows));
        ck_batch_builder_take_with(&x->targets[t].builder, x->group->proc->cpu);
        x->targets[t].has_builder = true;
    }
    return reserve_scratch(x->group, cfg->key_groups);
}

ck_status ck_exchange_new(ck_exchange_group *g, const ck_exchange_config *cfg, ck_exchange **out, ck_error *err) {
    uint32_t channels = cfg->kind == CK_EDGE_FORWARD ? 1 : cfg->target_count;
    ck_exchange *x = ck_alloc_zero(g->mem, exchange_bytes(channels));
    if (!x) return ck_nomem(err, g->mem, exchange_bytes(channels));
    x->group = g;
    x->cfg = *cfg;
    x->channel_count = x->open_count = channels;
    x->turn = channels ? cfg->producer % channels : 0; /* producers do not all begin at the first */
    if (cfg->kind == CK_EDGE_HASH && init_hash(x) != CK_OK) {
        free_exchange(x);
        return ck_nomem(err, g->mem, CK_BATCH_ROWS_MAX * 12);
    }
    x->next = g->exchanges;
    g->exchanges = x;
    *out = x;
    return CK_OK;
}

void ck_exchange_connect(ck_exchange *x, uint32_t t, ck_channel *ch) { x->targets[t].channel = ch; }
uint32_t ck_exchange_channels(const ck_exchange *x) { return x->channel_count; }
ck_exchange *ck_exchange_next(const ck_exchange *x) { return x->next; }

/* ---- sending ---- */

static void target_closed(ck_exchange *x, target *t) {
    if (t->closed) return;
    t->closed = true;
    x->open_count--;
}

/* Takes ev's batch. */
static ck_status send(ck_exchange *x, target *t, const ck_event *ev) {
    ck_status s = ck_channel_push(t->channel, ev);
    if (s == CK_FULL) x->group->full = true;
    if (s == CK_CLOSED) target_closed(x, t);
    return s == CK_NOMEM ? s : CK_OK;
}

static ck_status send_as_it_is(ck_exchange *x, target *t, ck_batch **b) {
    if (t->closed) {
        ck_batch_unref(b);
        return CK_OK;
    }
    ck_event ev = ck_event_batch(*b);
    *b = NULL;
    return send(x, t, &ev);
}

static ck_status send_batch(ck_exchange *x, target *t, ck_batch **b) {
    /* Without memory for a compact copy the sparse batch goes as it is. */
    if (!t->closed) (void)!ck_batch_compact_if_sparse(b, x->group->mem);
    return send_as_it_is(x, t, b);
}

/* ---- gathering ---- */

static ck_status send_gathered(ck_exchange *x, target *t) {
    if (!t->has_builder || t->builder.row_count == 0) return CK_OK;
    x->group->gathered_bytes -= t->bytes;
    if (!x->group->gathered_bytes) x->group->since_us = INT64_MAX;
    t->bytes = 0;
    ck_batch *b = ck_batch_builder_finish(&t->builder);
    return b ? send_batch(x, t, &b) : CK_NOMEM;
}

static ck_status send_all_gathered(ck_exchange *x) {
    if (x->cfg.kind != CK_EDGE_HASH) return CK_OK;
    for (uint32_t t = 0; t < x->channel_count; t++) CK_TRY(send_gathered(x, &x->targets[t]));
    return CK_OK;
}

ck_status ck_exchange_flush(ck_exchange_group *g) {
    g->since_us = INT64_MAX;
    for (ck_exchange *x = g->exchanges; x; x = x->next) CK_TRY(send_all_gathered(x));
    return CK_OK;
}

static ck_status send_largest(ck_exchange_group *g) {
    ck_exchange *from = NULL;
    target *largest = NULL;
    for (ck_exchange *x = g->exchanges; x; x = x->next)
        for (uint32_t t = 0; t < x->channel_count; t++)
            if (x->targets[t].has_builder && (!largest || x->targets[t].bytes > largest->bytes))
                largest = &x->targets[t], from = x;
    return send_gathered(from, largest);
}

/* rows[0..n) of b to a target, sending whenever the builder is full. */
static ck_status gather(ck_exchange *x, target *t, const ck_batch *b, const uint16_t *rows, uint32_t n) {
    if (t->closed) return CK_OK;
    while (n > 0) {
        uint32_t room = x->gather_rows - t->builder.row_count, take = n < room ? n : room;
        CK_TRY(ck_batch_builder_gather(&t->builder, b, rows, take));
        rows += take, n -= take;
        if (t->builder.row_count == x->gather_rows) CK_TRY(send_gathered(x, t));
    }
    size_t bytes = t->builder.row_count ? ck_batch_builder_bytes(&t->builder) : 0;
    x->group->gathered_bytes += bytes - t->bytes;
    t->bytes = bytes;
    return bytes >= CK_EXCHANGE_GATHER_BYTES * 2 ? send_gathered(x, t) : CK_OK; /* long strings */
}

/* targets[k] for the k-th live row. */
static void find_targets(ck_exchange *x, const ck_batch *b) {
    ck_exchange_group *g = x->group;
    ck_key_spec spec = {x->cfg.key, x->types, x->cfg.key_count};
    uint32_t n = b->sel_count, groups = x->cfg.key_groups, count = x->cfg.target_count;
    uint16_t *targets = g->targets;
    if (x->target_of_group) {
        ck_key_fnv(&spec, b, g->hashes);
        for (uint32_t k = 0; k < n; k++) targets[k] = x->target_of_group[ck_key_group_of_hash(g->hashes[k], groups)];
        return;
    }
    /* The usual number, a power of two: low bits of the hash are the group, and vectors make targets of them. */
    uint32_t shift = (uint32_t)__builtin_ctz(groups);
    g->fnv16(&spec, b, targets);
    for (uint32_t k = 0; k < n; k++) targets[k] = (uint16_t)((targets[k] & (groups - 1)) * count >> shift);
}

/* Of two targets, without a counter in memory a row; counts[0] and counts[1] become the ends. */
static void place_in_two(ck_exchange *x, const ck_batch *b) {
    const uint16_t *targets = x->group->targets, *sel = b->sel;
    uint16_t *rows = x->group->rows;
    uint32_t n = b->sel_count, low = 0, high = x->counts[1];
    for (uint32_t k = 0; k < n; k++) {
        uint32_t t = targets[k];
        rows[t ? high : low] = sel ? sel[k] : (uint16_t)k;
        high += t;
        low += 1 - t;
    }
    x->counts[0] = low;
    x->counts[1] = high;
}

/* targets[k], counts (as starts) and rows of the live rows of b; the number of targets hit. */
static uint32_t split(ck_exchange *x, const ck_batch *b, uint32_t *only) {
    ck_exchange_group *g = x->group;
    uint32_t n = b->sel_count, hit = 0;
    find_targets(x, b);
    memset(x->counts, 0, (x->channel_count + 1) * sizeof *x->counts);
    if (x->channel_count == 2) {
        uint32_t second = 0;
        for (uint32_t k = 0; k < n; k++) second += g->targets[k];
        x->counts[1] = n - second;
        x->counts[2] = second;
    } else {
        for (uint32_t k = 0; k < n; k++) x->counts[g->targets[k] + 1]++;
    }
    for (uint32_t t = 0; t < x->channel_count; t++) {
        if (x->counts[t + 1]) hit++, *only = t;
        x->counts[t + 1] += x->counts[t];
    }
    if (hit <= 1) return hit;
    if (x->channel_count == 2)
        place_in_two(x, b);
    else
        for (uint32_t k = 0; k < n; k++) g->rows[x->counts[g->targets[k]]++] = (uint16_t)ck_batch_row(b, k);
    return hit; /* counts[t] is now the end of target t */
}

/* With two or three targets each gets its rows as a selection of the batch itself: nothing is copied, unless the rows
 * of all of them are few for what they pin together. With more targets, or where few of the rows are live, copies are
 * smaller. */
static bool is_worth_sharing(const ck_exchange *x, const ck_batch *b) {
    return x->channel_count <= SHARED_TARGETS_MAX && x->gather_rows >= SHARED_ROWS_MIN &&
           b->sel_count >= x->gather_rows / 2 && b->sel_count >= b->row_count / 2;
}

static ck_status share(ck_exchange *x, target *t, const ck_batch *b, bool sparse, const uint16_t *rows, uint32_t n) {
    if (t->closed) return CK_OK;
    if (n < SHARED_ROWS_MIN) return gather(x, t, b, rows, n);
    CK_TRY(send_gathered(x, t)); /* in order */
    ck_batch *some = ck_batch_select(b, rows, n);
    return !some ? CK_NOMEM : sparse ? send_batch(x, t, &some) : send_as_it_is(x, t, &some);
}

static ck_status send_hashed(ck_exchange *x, ck_batch **pb) {
    ck_batch *b = *pb;
    uint32_t only = 0, hit = split(x, b, &only);
    if (hit == 1 && b->sel_count >= x->gather_rows / 2) { /* in order, and not worth a copy */
        CK_TRY(send_gathered(x, &x->targets[only]));
        return send_batch(x, &x->targets[only], pb);
    }
    if (hit == 1) {
        for (uint32_t k = 0; k < b->sel_count; k++) x->group->rows[k] = (uint16_t)ck_batch_row(b, k);
        CK_TRY(gather(x, &x->targets[only], b, x->group->rows, b->sel_count));
    } else {
        uint32_t from = 0;
        bool shares = is_worth_sharing(x, b), sparse = shares && ck_batch_is_sparse(b);
        for (uint32_t t = 0; t < x->channel_count; t++) {
            uint32_t n = x->counts[t] - from;
            const uint16_t *rows = x->group->rows + from;
            if (n > 0)
                CK_TRY(shares ? share(x, &x->targets[t], b, sparse, rows, n) : gather(x, &x->targets[t], b, rows, n));
            from = x->counts[t];
        }
    }
    ck_exchange_group *g = x->group;
    while (g->gathered_bytes > CK_EXCHANGE_SUBTASK_BYTES) CK_TRY(send_largest(g));
    if (g->since_us == INT64_MAX && g->gathered_bytes) g->since_us = ck_mono_us(g->proc);
    return CK_OK;
}

/* ---- what the chain calls ---- */

static ck_status send_to_all(ck_exchange *x, ck_batch *b) {
    for (uint32_t t = 0; t < x->channel_count; t++) {
        ck_batch *ref = ck_batch_ref(b);
        CK_TRY(send_batch(x, &x->targets[t], &ref));
    }
    return CK_OK;
}

static ck_status send_in_turn(ck_exchange *x, ck_batch **b) {
    for (uint32_t i = 0; i < x->channel_count && x->targets[x->turn].closed; i++)
        x->turn = (x->turn + 1) % x->channel_count;
    target *t = &x->targets[x->turn];
    x->turn = (x->turn + 1) % x->channel_count;
    return send_batch(x, t, b);
}

ck_status ck_exchange_check(const ck_exchange *x, const ck_batch *b, ck_error *err) {
    const ck_key_spec key = {x->cfg.key, x->types, x->cfg.key_count};
    uint32_t row = 0;
    bool any;
    if (!x->cfg.keeper) return CK_OK;
    if (ck_key_find_too_long(&key, b, x->group->mem, &any, &row) != CK_OK)
        return ck_nomem(err, x->group->mem, CK_KEY_BYTES_MAX);
    if (CK_LIKELY(!any)) return CK_OK;
    ck_status s = ck_fail(err, CK_DATA, "%s: a key of over %d bytes, and no checkpoint holds one", x->cfg.keeper,
                          CK_KEY_BYTES_MAX);
    ck_batch_place(b, row, err);
    return s;
}

ck_status ck_exchange_batch(ck_exchange *x, ck_batch **b) {
    ck_status s = CK_OK;
    if (x->open_count > 0) switch (x->cfg.kind) {
        case CK_EDGE_HASH: s = x->channel_count > 1 ? send_hashed(x, b) : send_batch(x, &x->targets[0], b); break;
        case CK_EDGE_REBALANCE: s = send_in_turn(x, b); break;
        case CK_EDGE_BROADCAST: s = send_to_all(x, *b); break;
        case CK_EDGE_FORWARD:
        case CK_EDGE_GATHER: s = send_batch(x, &x->targets[0], b); break;
        }
    ck_batch_unref(b);
    return s != CK_OK ? s : x->open_count == 0 ? CK_CLOSED : CK_OK;
}

ck_status ck_exchange_control(ck_exchange *x, const ck_event *ev) {
    CK_DASSERT(ev->kind != CK_EVENT_BATCH);
    CK_TRY(send_all_gathered(x));
    for (uint32_t t = 0; t < x->channel_count; t++)
        if (!x->targets[t].closed) CK_TRY(send(x, &x->targets[t], ev));
    return CK_OK;
}

bool ck_exchange_is_closed(ck_exchange *x) {
    for (uint32_t t = 0; t < x->channel_count && x->open_count; t++)
        if (ck_channel_is_closed(x->targets[t].channel)) target_closed(x, &x->targets[t]);
    return x->open_count == 0;
}

bool ck_exchange_any_full(const ck_exchange_group *g) {
    for (const ck_exchange *x = g->exchanges; x; x = x->next)
        for (uint32_t t = 0; t < x->channel_count; t++)
            if (!x->targets[t].closed && ck_channel_is_full(x->targets[t].channel)) return true;
    return false;
}
