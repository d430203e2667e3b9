/* How fast state tables are: nanoseconds a row for upserts into cold (1M and 10M groups) and hot tables, by kind of
 * key; bytes a group; a mark; scanning a mark; restoring stored rows. Prints a line each. Usage: state_bench [groups].
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "data/builder.h"
#include "state/mark.h"
#include "state/state.h"

enum { ROWS = 4096 };

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define OK(e)                                                                                                          \
    do {                                                                                                               \
        if ((e) != CK_OK) {                                                                                            \
            fprintf(stderr, "%s: %s\n", #e, err.msg);                                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static ck_error err;
static ck_budget budget, queue_budget;
static const ck_mem queue = {&queue_budget, CK_MEM_QUEUE};

typedef struct key_kind {
    const char *name;
    ck_field fields[2];
    uint32_t count;
    const char *form; /* of strings */
} key_kind;

static ck_batch *keys_batch(const key_kind *k, uint64_t groups, uint64_t *seed, bool sequential) {
    ck_batch *b = ck_batch_new(queue, k->count, ROWS, false, false);
    uint64_t ids[ROWS];
    for (uint32_t i = 0; i < ROWS; i++) ids[i] = (sequential ? (*seed)++ : (*seed = ck_mix64(*seed + 1))) % groups;
    for (uint32_t c = 0; c < k->count; c++) {
        ck_column_builder cb;
        OK(ck_column_builder_init(&cb, queue, k->fields[c].type, ROWS));
        for (uint32_t i = 0; i < ROWS; i++) {
            char text[64];
            if (k->fields[c].type->kind == CK_TYPE_VARCHAR) {
                int n = snprintf(text, sizeof text, k->form, (unsigned long long)ids[i]);
                OK(ck_build_str(&cb, text, (size_t)n));
            } else {
                OK(ck_build_i64(&cb, (int64_t)(c ? ids[i] % 1000 : ids[i])));
            }
        }
        ck_column *col = ck_column_builder_finish(&cb);
        ck_batch_set_column(b, c, &col);
        ck_column_builder_destroy(&cb);
    }
    return b;
}

typedef struct bench {
    ck_state_store *store;
    ck_table *table;
    ck_key_spec spec;
    uint32_t columns[2];
    const ck_type *types[2];
} bench;

static void open_bench(bench *w, const key_kind *k) {
    static ck_proc proc;
    const ck_type *bigint = ck_type_simple(CK_TYPE_BIGINT);
    const ck_field values[] = {{"sum", bigint, false}, {"count", bigint, false}};
    const ck_slot_schema schema = {.slot = "agg",
                                   .state_type = "agg",
                                   .version = 1,
                                   .partition = k->fields,
                                   .partition_count = k->count,
                                   .values = values,
                                   .value_count = 2};
    const ck_state_config cfg = {&proc, {&budget, CK_MEM_STATE}, 128, {0, 127}, 0x1234567, false};
    ck_state *st;
    ck_budget_init(&budget, ck_heap_system(), 0);
    OK(ck_state_store_new(&cfg, &w->store, &err));
    OK(ck_state_of(w->store, "agg", "group_agg", &st, &err));
    OK(ck_state_table(st, &schema, &w->table, &err));
    for (uint32_t i = 0; i < k->count; i++) w->columns[i] = i, w->types[i] = k->fields[i].type;
    w->spec = (ck_key_spec){w->columns, w->types, k->count};
}

/* Hash, upsert, add: what GROUP BY does. */
static void aggregate(bench *w, const ck_batch *b) {
    uint64_t hashes[ROWS];
    ck_row *rows[ROWS];
    ck_key_hash(&w->spec, b, ck_table_seed(w->table), hashes);
    const ck_keys keys = {&w->spec, b, hashes, b->sel_count};
    OK(ck_table_upsert(w->table, &keys, rows, NULL, &err));
    const ck_row_layout *l = ck_table_layout(w->table);
    uint32_t sum = l->fields[l->value_first].offset, count = l->fields[l->value_first + 1].offset;
    for (uint32_t i = 0; i < b->sel_count; i++) {
        ck_row_set_i64(rows[i], sum, ck_row_i64(rows[i], sum) + (int64_t)i);
        ck_row_set_i64(rows[i], count, ck_row_i64(rows[i], count) + 1);
    }
}

static double per_row(bench *w, const key_kind *k, uint64_t groups, uint32_t batches, bool sequential) {
    enum { POOL = 64 };
    ck_batch *pool[POOL];
    uint64_t seed = sequential ? 0 : 77;
    double best = 1e9; /* of the pools: the machine may be busy */
    for (uint32_t done = 0; done < batches;) {
        uint32_t n = batches - done < POOL ? batches - done : POOL;
        for (uint32_t i = 0; i < n; i++) pool[i] = keys_batch(k, groups, &seed, sequential);
        double start = now_s();
        for (uint32_t i = 0; i < n; i++) aggregate(w, pool[i]);
        double spent = (now_s() - start) / ((double)n * ROWS) * 1e9;
        if (spent < best || sequential) best = sequential && done ? best + spent : spent;
        for (uint32_t i = 0; i < n; i++) ck_batch_unref(&pool[i]);
        done += n;
    }
    return sequential ? best / ((batches + POOL - 1) / POOL) : best;
}

static void mark_and_scan(bench *w) {
    ck_state_mark *m;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t n;
    double start = now_s();
    OK(ck_state_mark_take(w->store, 1, &m, &err));
    double took = now_s() - start;
    uint64_t count = 0, bytes = 0;
    start = now_s();
    OK(ck_mark_scan_new(m, CK_MARK_BASE, &scan, &err));
    do {
        OK(ck_mark_scan_next(scan, &rows, &n, &err));
        for (uint32_t i = 0; i < n; i++) bytes += rows[i].key.n + rows[i].value.n;
        count += n;
    } while (n);
    double spent = now_s() - start;
    ck_mark_scan_free(scan);
    printf("    mark %.1f us; scan of it %.1f ns a row, %.2f GB/s\n", took * 1e6, spent / (double)count * 1e9,
           (double)bytes / spent * 1e-9);
    ck_state_completed(w->store, 1);
    ck_state_mark_release(m);
}

static void restore(bench *from, const key_kind *k) {
    ck_state_mark *m;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t n;
    bench to;
    ck_budget was = budget;
    OK(ck_state_mark_take(from->store, 2, &m, &err));
    OK(ck_mark_scan_new(m, CK_MARK_BASE, &scan, &err));
    static ck_budget own;
    ck_budget_init(&own, ck_heap_system(), 0);
    static ck_proc proc;
    const ck_state_config cfg = {&proc, {&own, CK_MEM_STATE}, 128, {0, 127}, 0x7654321, false};
    ck_state *st;
    OK(ck_state_store_new(&cfg, &to.store, &err));
    OK(ck_state_of(to.store, "agg", "group_agg", &st, &err));
    OK(ck_state_table(st, ck_table_schema(from->table), &to.table, &err));
    double spent = 0;
    uint64_t count = 0;
    do {
        OK(ck_mark_scan_next(scan, &rows, &n, &err));
        double start = now_s();
        for (uint32_t at = 0, some = 0; at < n; at += some) {
            ck_stored_row stored[256];
            for (some = 0; some < CK_ARRAY_COUNT(stored) && at + some < n; some++)
                stored[some] = (ck_stored_row){rows[at + some].key, rows[at + some].value};
            OK(ck_state_restore_puts(to.store, rows[at].op_id, stored, some, &err));
        }
        spent += now_s() - start;
        count += n;
    } while (n);
    printf("    restore %.1f ns a row\n", spent / (double)count * 1e9);
    ck_mark_scan_free(scan);
    ck_state_mark_release(m);
    ck_state_store_free(to.store);
    (void)was, (void)k;
}

static void run(const key_kind *k, uint64_t groups) {
    bench w;
    open_bench(&w, k);
    uint32_t fill = (uint32_t)((groups + ROWS - 1) / ROWS);
    double build = per_row(&w, k, groups, fill, true);
    uint64_t n = ck_table_row_count(w.table);
    printf("%s, %llu groups: %.1f bytes a group\n", k->name, (unsigned long long)n,
           (double)ck_table_bytes(w.table) / (double)n);
    printf("    build %.1f ns a row", build);
    printf("; random upserts %.1f ns", per_row(&w, k, groups, 500, false));
    mark_and_scan(&w);
    printf("    random upserts after a mark, changes tracked %.1f ns\n", per_row(&w, k, groups, 500, false));
    restore(&w, k);
    ck_state_store_free(w.store);
}

int main(int argc, char **argv) {
    const ck_type *bigint = ck_type_simple(CK_TYPE_BIGINT), *varchar = ck_type_simple(CK_TYPE_VARCHAR);
    const key_kind kinds[] = {
        {"one BIGINT", {{"k", bigint, false}}, 1, ""},
        {"one nullable BIGINT", {{"k", bigint, true}}, 1, ""},
        {"one short VARCHAR", {{"k", varchar, false}}, 1, "u%llu"},
        {"one long VARCHAR", {{"k", varchar, false}}, 1, "customer-number-%llu"},
        {"two BIGINT", {{"a", bigint, false}, {"b", bigint, false}}, 2, ""},
        {"VARCHAR and BIGINT", {{"a", varchar, false}, {"b", bigint, true}}, 2, "u%llu"},
    };
    ck_budget_init(&queue_budget, ck_heap_system(), 0);
    uint64_t groups = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    size_t only = argc > 2 ? strtoull(argv[2], NULL, 10) : SIZE_MAX;
    for (size_t i = 0; i < CK_ARRAY_COUNT(kinds); i++) {
        if (only != SIZE_MAX && only != i) continue;
        run(&kinds[i], 1000);
        run(&kinds[i], groups);
    }
    return 0;
}
