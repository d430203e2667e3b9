/* What the data room costs on one core: nanoseconds of CPU a row (or value), the best of several runs.
 *   data_bench [NAME]     only what begins with NAME: gather, fnv, hash, compact, build, text */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/key.h"
#include "data/text.h"

enum { ROWS = CK_BATCH_ROWS_MAX, TARGETS = 4, TARGET_ROWS = 2048, RUNS = 40 };

static ck_budget budget;
static ck_mem mem;
static uint64_t seed = 42;
static const char *wanted = "";
static volatile uint64_t sink;

static uint64_t next(void) { return ck_mix64(seed += 0x9E3779B97F4A7C15ULL); }
static void must(bool ok) {
    if (!ok) exit(3);
}

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Calls fn(arg) so often that a run takes about a millisecond; prints the best run over `items` a call. */
static void measure(const char *name, double items, void (*fn)(void *arg), void *arg) {
    if (strncmp(name, wanted, strlen(wanted)) != 0) return;
    double best = 1e300, start = cpu_ns();
    unsigned calls = 0;
    do fn(arg), calls++;
    while (cpu_ns() - start < 1e6);
    for (int r = 0; r < RUNS; r++) {
        start = cpu_ns();
        for (unsigned i = 0; i < calls; i++) fn(arg);
        double ns = (cpu_ns() - start) / calls / items;
        if (ns < best) best = ns;
    }
    printf("%-44s %8.2f ns\n", name, best);
}

/* ---- batches to work on ---- */

typedef enum shape { SMALL_INT, WIDE_INT, DOUBLE, DECIMAL, CODE, SHORT_TEXT, LONG_TEXT } shape;

static const ck_type *type_of(shape s) {
    static const ck_type decimal = {.kind = CK_TYPE_DECIMAL, .precision = 12, .scale = 2};
    if (s == DECIMAL) return &decimal;
    return ck_type_simple(s <= WIDE_INT ? CK_TYPE_BIGINT : s == DOUBLE ? CK_TYPE_DOUBLE : CK_TYPE_VARCHAR);
}

static void append_value(ck_column_builder *b, ck_buffer *text, shape s) {
    uint64_t r = next();
    ck_status st = CK_OK;
    switch (s) {
    case SMALL_INT: st = ck_build_i64(b, (int64_t)(r % 1000000)); break;
    case WIDE_INT: st = ck_build_i64(b, (int64_t)r); break;
    case DOUBLE: st = ck_build_f64(b, (double)(r % 100000) / 100); break;
    case DECIMAL: st = ck_build_i128(b, (ck_i128)(r % 1000000)); break;
    case CODE: st = ck_build_str_in(b, text, (char *)text->p + r % 1000, 2); break;
    case SHORT_TEXT: st = ck_build_str_in(b, text, (char *)text->p + r % 1000, 3 + (r >> 32) % 10); break;
    case LONG_TEXT: st = ck_build_str_in(b, text, (char *)text->p + r % 1000, 16 + (r >> 32) % 32); break;
    }
    must(st == CK_OK);
}

static ck_column *column(shape s, bool nulls) {
    ck_column_builder b;
    ck_buffer *text = ck_buffer_new(mem, 256 * 1024);
    must(text && ck_column_builder_init(&b, mem, type_of(s), ROWS) == CK_OK);
    for (size_t i = 0; i < text->bytes; i++) text->p[i] = (uint8_t)('a' + next() % 26);
    for (uint32_t i = 0; i < ROWS; i++) {
        if (nulls && next() % 10 == 0)
            must(ck_build_null(&b) == CK_OK);
        else
            append_value(&b, text, s);
    }
    ck_column *c = ck_column_builder_finish(&b);
    must(c);
    ck_column_builder_destroy(&b);
    ck_buffer_unref(&text);
    return c;
}

/* ---- gathering: a batch dealt to four targets, as an exchange does ---- */

typedef struct gather_case {
    ck_column *c;
    ck_column_builder out[TARGETS];
    uint16_t rows[TARGETS][ROWS];
    uint32_t count[TARGETS];
} gather_case;

static void gather(void *arg) {
    gather_case *g = arg;
    for (int t = 0; t < TARGETS; t++) {
        if (g->out[t].length + g->count[t] > TARGET_ROWS) {
            ck_column *done = ck_column_builder_finish(&g->out[t]);
            must(done);
            ck_column_unref(&done);
        }
        must(ck_build_gather(&g->out[t], g->c, g->rows[t], g->count[t]) == CK_OK);
    }
}

static void bench_gather(const char *name, shape s, bool nulls) {
    static gather_case g;
    memset(&g, 0, sizeof g);
    g.c = column(s, nulls);
    for (uint32_t i = 0; i < ROWS; i++) {
        uint64_t t = next() % TARGETS;
        g.rows[t][g.count[t]++] = (uint16_t)i;
    }
    for (int t = 0; t < TARGETS; t++) {
        must(ck_column_builder_init(&g.out[t], mem, type_of(s), TARGET_ROWS) == CK_OK);
        ck_column_builder_take_with(&g.out[t], ck_cpu_detect());
    }
    measure(name, ROWS, gather, &g);
    for (int t = 0; t < TARGETS; t++) ck_column_builder_destroy(&g.out[t]);
    ck_column_unref(&g.c);
}

/* ---- hashing ---- */

typedef struct key_case {
    ck_batch *batch;
    ck_key_spec spec;
    uint32_t columns[2];
    const ck_type *types[2];
    uint64_t out[ROWS];
    uint16_t low[ROWS];
} key_case;

static void fnv(void *arg) {
    key_case *k = arg;
    ck_key_fnv(&k->spec, k->batch, k->out);
    sink += k->out[7];
}
static void fnv16(void *arg) {
    key_case *k = arg;
    ck_key_fnv16_for(ck_cpu_detect())(&k->spec, k->batch, k->low);
    sink += k->low[7];
}
static void hash(void *arg) {
    key_case *k = arg;
    ck_key_hash(&k->spec, k->batch, 99, k->out);
    sink += k->out[7];
}

static void bench_key(const char *name, const shape *shapes, uint32_t count, bool nulls, bool selected) {
    static key_case k;
    char title[100];
    k.batch = ck_batch_new(mem, count, ROWS, selected, false);
    must(k.batch);
    for (uint32_t i = 0; i < count; i++) {
        ck_column *c = column(shapes[i], nulls);
        ck_batch_set_column(k.batch, i, &c);
        k.columns[i] = i;
        k.types[i] = type_of(shapes[i]);
    }
    if (selected) {
        k.batch->sel_count = 0;
        for (uint32_t i = 0; i < ROWS; i++)
            if (next() % 2) k.batch->sel[k.batch->sel_count++] = (uint16_t)i;
    }
    k.spec = (ck_key_spec){k.columns, k.types, count};
    snprintf(title, sizeof title, "fnv %s", name);
    measure(title, k.batch->sel_count, fnv, &k);
    snprintf(title, sizeof title, "fnv16 %s", name);
    measure(title, k.batch->sel_count, fnv16, &k);
    snprintf(title, sizeof title, "hash %s", name);
    measure(title, k.batch->sel_count, hash, &k);
    ck_batch_unref(&k.batch);
}

/* ---- compaction ---- */

static void compact(void *arg) {
    ck_batch *b = ck_batch_compact(arg, mem);
    must(b);
    ck_batch_unref(&b);
}
static void weigh(void *arg) { sink += ck_batch_pinned_bytes(arg) + ck_batch_live_bytes(arg); }

static void bench_compact(void) {
    static const shape shapes[] = {SMALL_INT, DOUBLE, SHORT_TEXT, LONG_TEXT};
    ck_batch *b = ck_batch_new(mem, 4, ROWS, true, false);
    must(b);
    for (uint32_t i = 0; i < 4; i++) {
        ck_column *c = column(shapes[i], false);
        ck_batch_set_column(b, i, &c);
    }
    b->sel_count = 0;
    for (uint32_t i = 0; i < ROWS; i++)
        if (next() % 12 == 0) b->sel[b->sel_count++] = (uint16_t)i;
    measure("compact 4 columns, a twelfth live", b->sel_count, compact, b);
    measure("compact: weighing only, a twelfth live", b->sel_count, weigh, b);
    ck_batch_unref(&b);
}

/* ---- building value by value ---- */

typedef struct build_case {
    ck_column_builder b;
    ck_buffer *text;
    bool give;
} build_case;

static void build_ints(void *arg) {
    build_case *c = arg;
    for (int64_t i = 0; i < ROWS; i++) must(ck_build_i64(&c->b, i) == CK_OK);
    ck_column *done = ck_column_builder_finish(&c->b);
    must(done);
    ck_column_unref(&done);
}
static void build_strings(void *arg) {
    build_case *c = arg;
    for (size_t i = 0; i < ROWS; i++) {
        const char *p = (const char *)c->text->p + i;
        must((c->give ? ck_build_str_in(&c->b, c->text, p, 4 + i % 24) : ck_build_str(&c->b, p, 4 + i % 24)) == CK_OK);
    }
    ck_column *done = ck_column_builder_finish(&c->b);
    must(done);
    ck_column_unref(&done);
}

static void bench_build(void) {
    build_case c = {.text = ck_buffer_new(mem, 8192)};
    must(c.text);
    memset(c.text->p, 'x', 8192);
    must(ck_column_builder_init(&c.b, mem, type_of(SMALL_INT), ROWS) == CK_OK);
    measure("build i64", ROWS, build_ints, &c);
    ck_column_builder_destroy(&c.b);
    must(ck_column_builder_init(&c.b, mem, type_of(SHORT_TEXT), ROWS) == CK_OK);
    measure("build strings, copied", ROWS, build_strings, &c);
    c.give = true;
    measure("build strings in a read buffer", ROWS, build_strings, &c);
    ck_column_builder_destroy(&c.b);
    ck_buffer_unref(&c.text);
}

/* ---- text ---- */

enum { TEXTS = 1024 };
typedef struct text_case {
    char text[TEXTS][48];
    size_t n[TEXTS];
    double doubles[TEXTS];
    int64_t ints[TEXTS];
} text_case;

static void parse_doubles(void *arg) {
    text_case *t = arg;
    double d = 0, sum = 0;
    for (int i = 0; i < TEXTS; i++) sum += ck_parse_f64((ck_view){t->text[i], t->n[i]}, &d) ? d : 0;
    sink += (uint64_t)(sum > 0);
}
static void parse_decimals(void *arg) {
    text_case *t = arg;
    bool overflow;
    ck_i128 v = 0;
    for (int i = 0; i < TEXTS; i++) sink += ck_parse_decimal((ck_view){t->text[i], t->n[i]}, 38, 4, &v, &overflow);
}
static void parse_timestamps(void *arg) {
    text_case *t = arg;
    bool zoned;
    int64_t us = 0;
    for (int i = 0; i < TEXTS; i++) sink += ck_parse_timestamp((ck_view){t->text[i], t->n[i]}, &us, &zoned);
}
static void print_doubles(void *arg) {
    text_case *t = arg;
    for (int i = 0; i < TEXTS; i++) t->n[i] = ck_print_f64(t->text[i], t->doubles[i]);
}
static void print_ints(void *arg) {
    text_case *t = arg;
    for (int i = 0; i < TEXTS; i++) t->n[i] = ck_print_i64(t->text[i], t->ints[i]);
}
static void print_timestamps(void *arg) {
    text_case *t = arg;
    for (int i = 0; i < TEXTS; i++) t->n[i] = ck_print_timestamp(t->text[i], t->ints[i] * 1000, 6, 'T', true);
}
static void print_decimals(void *arg) {
    text_case *t = arg;
    for (int i = 0; i < TEXTS; i++) t->n[i] = ck_print_decimal(t->text[i], t->ints[i], 4);
}

static void bench_text(void) {
    static text_case t;
    for (int i = 0; i < TEXTS; i++)
        t.doubles[i] = (double)(next() % 10000000) / 100, t.ints[i] = (int64_t)(next() % 1600000000000);
    measure("text print double, two decimals", TEXTS, print_doubles, &t);
    measure("text parse double, two decimals", TEXTS, parse_doubles, &t);
    measure("text parse decimal", TEXTS, parse_decimals, &t);
    for (int i = 0; i < TEXTS; i++) t.doubles[i] = (double)(next() >> 11) / 9007199254740992.0;
    measure("text print double, 16 digits", TEXTS, print_doubles, &t);
    measure("text parse double, 16 digits", TEXTS, parse_doubles, &t);
    measure("text print i64", TEXTS, print_ints, &t);
    measure("text print decimal", TEXTS, print_decimals, &t);
    measure("text print timestamp", TEXTS, print_timestamps, &t);
    measure("text parse timestamp", TEXTS, parse_timestamps, &t);
}

int main(int argc, char **argv) {
    if (argc > 1) wanted = argv[1];
    ck_budget_init(&budget, ck_heap_system(), 0);
    mem = (ck_mem){&budget, CK_MEM_QUEUE};
    bench_gather("gather int64 to four targets", SMALL_INT, false);
    bench_gather("gather int64 with NULLs", SMALL_INT, true);
    bench_gather("gather decimals", DECIMAL, false);
    bench_gather("gather short strings", SHORT_TEXT, false);
    bench_gather("gather long strings", LONG_TEXT, false);
    bench_gather("gather long strings with NULLs", LONG_TEXT, true);
    bench_key("small int64", (shape[]){SMALL_INT}, 1, false, false);
    bench_key("small int64, half selected", (shape[]){SMALL_INT}, 1, false, true);
    bench_key("small int64 with NULLs", (shape[]){SMALL_INT}, 1, true, false);
    bench_key("wide int64", (shape[]){WIDE_INT}, 1, false, false);
    bench_key("two small int64", (shape[]){SMALL_INT, SMALL_INT}, 2, false, false);
    bench_key("double", (shape[]){DOUBLE}, 1, false, false);
    bench_key("decimal", (shape[]){DECIMAL}, 1, false, false);
    bench_key("codes of two letters", (shape[]){CODE}, 1, false, false);
    bench_key("short strings (3..12)", (shape[]){SHORT_TEXT}, 1, false, false);
    bench_key("long strings (16..47)", (shape[]){LONG_TEXT}, 1, false, false);
    bench_key("short string and int64", (shape[]){SHORT_TEXT, SMALL_INT}, 2, false, false);
    bench_compact();
    bench_build();
    bench_text();
    return 0;
}
