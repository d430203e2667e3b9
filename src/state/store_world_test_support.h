/* For store_test.c and conformance_test.c: a store on one of the backends, and the model of what it must hold. */
#ifndef CK_STATE_STORE_WORLD_TEST_SUPPORT_H
#define CK_STATE_STORE_WORLD_TEST_SUPPORT_H

#include "state/model_int.h"
#include "state/state_int.h"

#include "os/modules.h"
#include "state/rocks.h"

enum { GROUPS = 128 };

typedef struct backend {
    const char *name;
    bool spills;
    size_t above;   /* bytes in the account */
    unsigned often; /* rows leave for RocksDB after one step of so many; 0: never */
    size_t aim_at;  /* so many bytes stay, if that is not more than what is needed */
} backend;
static const backend backends[] = {
    {.name = "memory"},
    {.name = "all in a file", .spills = true},
    {.name = "some in a file", .spills = true, .above = 96 << 10},
    {.name = "all in RocksDB after each step", .often = 1},
    {.name = "all in RocksDB now and then", .often = 7},
    {.name = "some in RocksDB", .often = 2, .aim_at = 400 << 10},
    {.name = "some in RocksDB, some in a file", .spills = true, .above = 96 << 10, .often = 3, .aim_at = 300 << 10}};

typedef struct live_mark {
    ck_state_mark *mark;
    model want, base, delta_puts, delta_erases; /* what it must hold; what the reader found */
    uint64_t checkpoint, parent;
    bool has_delta;
    pthread_t reader;
    ck_status status;
} live_mark;

typedef struct world {
    const backend *backend;
    ck_tracked_heap *heap;
    ck_budget budget, own_budget;
    ck_mem mem, own;
    ck_arena arena;
    ck_proc proc;
    ck_state_store *store;
    const ck_slot_schema *slots;
    ck_table *tables[MODEL_SLOTS];
    model now;
    model stored; /* of the last completed checkpoint, from base and deltas */
    uint64_t seed, domain;
    uint64_t leaving; /* a seed of its own: what is done to the state is the same on all backends */
    uint64_t next_checkpoint, completed;
    uint32_t groups, rows_max;
    size_t most_cold; /* rows in RocksDB at one time */
} world;

/* One database for the stores of all tests, as it is for those of a job. */
typedef struct one_rocks {
    ck_budget budget;
    ck_proc proc;
    ck_rocks *db;
} one_rocks;
static one_rocks rocks;

static int make_rocks(void **state) {
    (void)state;
    ck_error err = CK_ERROR_INIT;
    ck_budget_init(&rocks.budget, ck_heap_system(), 0);
    if (ck_modules_new(ck_heap_system(), &rocks.proc.modules, &err) != CK_OK) return -1;
    if (ck_rocks_new(&rocks.proc, (ck_mem){&rocks.budget, CK_MEM_STATE}, "/tmp", &rocks.db, &err) == CK_OK) return 0;
    print_error("%s\n", err.msg);
    return -1;
}

static int free_rocks(void **state) {
    (void)state;
    ck_rocks_free(rocks.db);
    ck_modules_free(rocks.proc.modules);
    return ck_budget_total(&rocks.budget) ? -1 : 0;
}

static ck_state *op_of(world *w, uint32_t slot, ck_error *err) {
    ck_state *st;
    assert_int_equal(ck_state_of(w->store, slot % 3 ? "agg(a)<-t" : "join(b)<-t", "group_agg", &st, err), CK_OK);
    return st;
}

static void open_store(world *w, ck_key_group_range range, uint64_t hash_seed) {
    ck_error err = CK_ERROR_INIT;
    const ck_state_config cfg = {
        .proc = &w->proc, .mem = w->mem, .key_groups = w->groups, .range = range, .hash_seed = hash_seed};
    assert_int_equal(ck_state_store_new(&cfg, &w->store, &err), CK_OK);
    if (w->backend->spills) {
        assert_int_equal(ck_state_spill_to(w->store, "/tmp", &err), CK_OK);
        w->store->pool.spill_above = w->backend->above;
    }
    if (!w->backend->often) return;
    assert_int_equal(ck_state_evict_to(w->store, rocks.db, &err), CK_OK);
    w->store->cold->least = 0;
}

/* As the runtime does between two inputs. */
static void between_inputs(world *w) {
    ck_error err = CK_ERROR_INIT;
    if (!w->store->cold) return;
    w->store->cold->evict_above = model_below(&w->leaving, w->backend->often) == 0 ? 2 * w->backend->aim_at : SIZE_MAX;
    if (ck_state_trim(w->store, &err) != CK_OK) fail_msg("%s", err.msg);
    if (ck_state_cold_rows(w->store) > w->most_cold) w->most_cold = ck_state_cold_rows(w->store);
}

static void open_tables(world *w) {
    ck_error err = CK_ERROR_INIT;
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        ck_status s = ck_state_table(op_of(w, i, &err), &w->slots[i], &w->tables[i], &err);
        if (s != CK_OK) fail_msg("%s", err.msg);
    }
}

static void world_open(world *w, const backend *b, uint64_t seed, uint64_t domain, uint32_t groups) {
    *w = (world){.backend = b, .seed = seed, .leaving = seed, .domain = domain, .next_checkpoint = 1, .groups = groups, .rows_max = 40};
    assert_int_equal(ck_tracked_heap_new(&w->heap), CK_OK);
    ck_budget_init(&w->budget, ck_tracked_heap_base(w->heap), 0);
    ck_budget_init(&w->own_budget, ck_heap_system(), 0);
    w->mem = (ck_mem){&w->budget, CK_MEM_STATE};
    w->own = (ck_mem){&w->own_budget, CK_MEM_QUEUE};
    ck_arena_init(&w->arena, w->own, SIZE_MAX);
    w->slots = model_slots(&w->arena);
    open_store(w, (ck_key_group_range){0, groups - 1}, seed * 31);
}

static void world_close(world *w) {
    ck_state_store_free(w->store);
    model_clear(&w->now);
    model_clear(&w->stored);
    ck_arena_destroy(&w->arena);
    assert_int_equal(ck_budget_total(&w->own_budget), 0);
    assert_int_equal(ck_budget_total(&w->budget), 0);
    assert_int_equal(ck_tracked_heap_live_bytes(w->heap), 0);
    ck_tracked_heap_free(w->heap);
}

/* Stored keys of two operators must not mix in the model: the operator's number stands in front. */
static void prefixed(world *w, uint32_t slot, const ck_batch *b, uint32_t row, ck_bytes *key) {
    ck_bytes_clear(key);
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_bytes_u64le(key, op_of(w, slot, &err)->op_id), CK_OK);
    model_key(&w->slots[slot], w->groups, b, row, key, w->own);
}

#endif
