/* For tests: runs one instance of an operator or a source without the runtime, with a state store of its own, and keeps
 * what it emits as lines of text. Included by *_test.c only, which bring the ck_proc. */
#ifndef CK_OPERATOR_HARNESS_TEST_SUPPORT_H
#define CK_OPERATOR_HARNESS_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "data/builder.h"
#include "data/text.h"
#include "os/modules.h"
#include "state/mark.h"
#include "state/rocks.h"
#include "state/state.h"
#include "stream/descriptor.h"

#define HARNESS_FN static __attribute__((unused))

enum { HARNESS_INPUTS = 4, HARNESS_COUNTERS = 16 };

typedef struct harness_line { /* one emitted row: "1|alice|NULL" */
    char *text;
    int weight;
} harness_line;

typedef struct harness harness;
struct harness {
    ck_proc *proc;
    ck_mem mem;
    ck_job_settings settings;
    ck_arena plan;  /* schemas, parameters */
    ck_arena calls; /* what operators see as ctx->arena */
    ck_op_input inputs[HARNESS_INPUTS];
    ck_op_spec spec;
    const ck_op_desc *desc;
    void *self;
    ck_op_ctx ctx;
    ck_error error;
    ck_state_store *store;
    int64_t said_watermark; /* by the operator itself */
    int64_t now_us;
    bool closed[HARNESS_INPUTS], held[HARNESS_INPUTS];
    harness_line *lines;
    size_t line_count, line_capacity;
    size_t batch_count; /* emitted */
    uint32_t largest_batch;
    bool weighted; /* some emitted batch had weights */
    struct {
        const char *name;
        uint64_t value;
    } counters[HARNESS_COUNTERS];
    unsigned holds, releases;
    ck_status release_status;
    bool woken;
    void (*submit)(harness *h, struct ck_io_job *job); /* NULL: the operator must not do I/O */
    void (*run_io)(harness *h);                        /* runs what was submitted */
    void *io;
    bool keep_batches;     /* instead of lines */
    const ck_schema *side; /* what side ports emit, as lines with a '!' in front; NULL: nothing */
    ck_batch **batches;
};

/* ---- the context ---- */

HARNESS_FN void harness_keep(harness *h, const char *text, int weight) {
    if (h->line_count == h->line_capacity) {
        h->line_capacity = h->line_capacity ? h->line_capacity * 2 : 64;
        h->lines = realloc(h->lines, h->line_capacity * sizeof *h->lines);
        assert_non_null(h->lines);
    }
    h->lines[h->line_count++] = (harness_line){strdup(text), weight};
}

HARNESS_FN void harness_row_text(const ck_schema *s, const ck_batch *b, uint32_t row, ck_bytes *out) {
    ck_bytes_clear(out);
    for (uint32_t c = 0; c < s->field_count; c++) {
        if (c) assert_int_equal(ck_bytes_char(out, '|'), CK_OK);
        const ck_column *col = b->columns[c];
        assert_non_null(col);
        assert_true(col->length >= b->row_count);
        assert_null(col->err); /* marks never cross an edge */
        assert_true(col->phys == ck_type_phys(s->fields[c].type) || col->phys == CK_PHYS_NULL);
        assert_int_equal(ck_print_value(s->fields[c].type, col, row, out), CK_OK);
    }
    assert_int_equal(ck_bytes_terminate(out), CK_OK);
}

HARNESS_FN ck_status harness_emit(ck_op_ctx *ctx, uint32_t port, ck_batch **pb) {
    harness *h = (harness *)(void *)ctx->rt;
    ck_batch *b = *pb;
    *pb = NULL;
    const ck_schema *schema = port == 0 ? h->spec.schema : h->side;
    assert_true(port == 0 || ((port == 1 || port <= h->spec.input_count) && h->side)); /* a source has one too */
    assert_int_equal(b->column_count, schema->field_count);
    h->batch_count++;
    if (b->sel_count > h->largest_batch) h->largest_batch = b->sel_count;
    h->weighted = h->weighted || b->weights;
    if (h->keep_batches) {
        h->batches = realloc(h->batches, h->batch_count * sizeof(ck_batch *));
        assert_non_null(h->batches);
        h->batches[h->batch_count - 1] = b;
        return CK_OK;
    }
    ck_bytes text;
    ck_bytes_init(&text, h->mem, 1 << 28);
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        if (k) assert_true(row > ck_batch_row(b, k - 1));
        harness_row_text(schema, b, row, &text);
        if (port) {
            char marked[4096];
            snprintf(marked, sizeof marked, "!%s", text.p);
            harness_keep(h, marked, ck_batch_weight(b, row));
        } else {
            harness_keep(h, text.p, ck_batch_weight(b, row));
        }
    }
    ck_bytes_destroy(&text);
    ck_batch_unref(&b);
    return CK_OK;
}

HARNESS_FN ck_status harness_emit_watermark(ck_op_ctx *ctx, int64_t value, bool idle) {
    harness *h = (harness *)(void *)ctx->rt;
    (void)idle;
    assert_true(value > h->said_watermark);
    h->said_watermark = value;
    return CK_OK;
}
HARNESS_FN void harness_close_input(ck_op_ctx *ctx, uint32_t input) {
    ((harness *)(void *)ctx->rt)->closed[input] = true;
}
HARNESS_FN void harness_hold_input(ck_op_ctx *ctx, uint32_t input, bool hold) {
    ((harness *)(void *)ctx->rt)->held[input] = hold;
}
HARNESS_FN int64_t harness_now(const ck_op_ctx *ctx) { return ((const harness *)(const void *)ctx->rt)->now_us; }
HARNESS_FN void harness_submit_io(ck_op_ctx *ctx, struct ck_io_job *job) {
    harness *h = (harness *)(void *)ctx->rt;
    assert_non_null(h->submit);
    h->submit(h, job);
}
HARNESS_FN void harness_wake(struct ck_op_runtime *rt) {
    __atomic_store_n(&((harness *)(void *)rt)->woken, true, __ATOMIC_SEQ_CST);
}
HARNESS_FN void harness_count(ck_op_ctx *ctx, const char *name, uint64_t add) {
    harness *h = (harness *)(void *)ctx->rt;
    for (int i = 0; i < HARNESS_COUNTERS; i++) {
        if (h->counters[i].name && strcmp(h->counters[i].name, name) != 0) continue;
        h->counters[i].name = name;
        h->counters[i].value += add;
        return;
    }
    fail_msg("too many counters");
}
HARNESS_FN uint64_t harness_counter(const harness *h, const char *name) {
    for (int i = 0; i < HARNESS_COUNTERS && h->counters[i].name; i++)
        if (strcmp(h->counters[i].name, name) == 0) return h->counters[i].value;
    return 0;
}
HARNESS_FN void harness_hold(ck_op_ctx *ctx) { ((harness *)(void *)ctx->rt)->holds++; }
HARNESS_FN void harness_release(struct ck_op_runtime *rt, uint64_t checkpoint, ck_status s, const ck_error *e) {
    harness *h = (harness *)(void *)rt;
    (void)checkpoint;
    h->releases++;
    if (s != CK_OK && h->release_status == CK_OK) {
        h->release_status = s;
        if (e) h->error = *e;
    }
}

/* ---- life ---- */

HARNESS_FN void harness_init(harness *h, ck_proc *proc) {
    *h = (harness){.proc = proc};
    h->mem = ck_proc_mem(proc, CK_MEM_QUEUE);
    h->settings = (ck_job_settings){.batch_rows = CK_BATCH_ROWS_MAX,
                                    .key_groups = CK_KEY_GROUPS_DEFAULT,
                                    .flush_us = 5000,
                                    .timezone = "UTC",
                                    .job_name = "test",
                                    .job_uuid = "0a1b2c3d-0000-4000-8000-000000000001"};
    ck_arena_init(&h->plan, ck_proc_mem(proc, CK_MEM_PLAN), 1 << 28);
    ck_arena_init(&h->calls, h->mem, 1 << 28);
    h->spec = (ck_op_spec){.proc = proc, .uid = "op", .settings = &h->settings, .parallelism = 1, .inputs = h->inputs};
    h->error = CK_ERROR_INIT;
}

/* With CLINK_TEST_ROCKS=1 every row of every operator that is tested is in RocksDB whenever an event comes. */
HARNESS_FN ck_rocks *harness_rocks(void) {
    static ck_rocks *db;
    static ck_budget budget;
    static ck_proc proc;
    ck_error err = CK_ERROR_INIT;
    if (db || !getenv("CLINK_TEST_ROCKS")) return db;
    ck_budget_init(&budget, ck_heap_system(), 0);
    assert_int_equal(ck_modules_new(ck_heap_system(), &proc.modules, &err), CK_OK);
    if (ck_rocks_new(&proc, (ck_mem){&budget, CK_MEM_STATE}, "/tmp", &db, &err) != CK_OK) fail_msg("%s", err.msg);
    return db;
}

HARNESS_FN void harness_new_store(harness *h) {
    ck_state_config cfg = {h->proc,
                           ck_proc_mem(h->proc, CK_MEM_STATE),
                           h->settings.key_groups,
                           ck_key_group_range_for_subtask(h->spec.subtask, h->spec.parallelism, h->settings.key_groups),
                           12345,
                           false};
    assert_int_equal(ck_state_store_new(&cfg, &h->store, &h->error), CK_OK);
    ck_rocks *rocks = harness_rocks();
    if (rocks) assert_int_equal(ck_state_evict_to(h->store, rocks, &h->error), CK_OK);
}

/* Schema from "name TYPE [NOT NULL], ...". */
HARNESS_FN const ck_schema *harness_schema(harness *h, const char *text) {
    char copy[4096], *save = NULL;
    ck_field fields[128];
    uint32_t n = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *f = strtok_r(copy, ";", &save); f; f = strtok_r(NULL, ";", &save)) {
        while (*f == ' ') f++;
        char *space = strchr(f, ' '), *not_null = strstr(f, " NOT NULL");
        assert_non_null(space);
        fields[n].nullable = !not_null;
        if (not_null) *not_null = 0;
        *space = 0;
        fields[n].name = ck_arena_strdup(&h->plan, f);
        assert_int_equal(ck_type_parse(&h->plan, ck_view_of(space + 1), &fields[n].type, &h->error), CK_OK);
        n++;
    }
    ck_schema s = {fields, n};
    return ck_schema_copy(&h->plan, &s);
}

HARNESS_FN void harness_input(harness *h, const char *schema, ck_edge_mode mode) {
    h->inputs[h->spec.input_count++] = (ck_op_input){harness_schema(h, schema), mode, false};
}

/* Creates (not: opens). output NULL: the first input's schema. */
HARNESS_FN ck_status harness_create(harness *h, const ck_op_desc *desc, const char *params, const char *output) {
    h->desc = desc;
    h->spec.type = desc->type;
    h->spec.params = ck_arena_strdup(&h->plan, params);
    h->spec.schema = output ? harness_schema(h, output) : h->spec.input_count ? h->inputs[0].schema : h->spec.schema;
    return desc->create(&h->spec, h->mem, &h->self, &h->error);
}

HARNESS_FN void harness_context(harness *h) {
    ck_state *state = NULL;
    if (!h->store) harness_new_store(h);
    assert_int_equal(ck_state_of(h->store, h->spec.uid, h->spec.type, &state, &h->error), CK_OK);
    h->ctx = (ck_op_ctx){
        .proc = h->proc,
        .settings = &h->settings,
        .uid = h->spec.uid,
        .op_id = ck_op_id(h->spec.uid),
        .subtask = h->spec.subtask,
        .parallelism = h->spec.parallelism,
        .key_groups = ck_key_group_range_for_subtask(h->spec.subtask, h->spec.parallelism, h->settings.key_groups),
        .input_count = h->spec.input_count,
        .mem = h->mem,
        .arena = &h->calls,
        .state = state,
        .watermark = CK_WATERMARK_MIN,
        .error = &h->error,
        .rt = (struct ck_op_runtime *)(void *)h,
        .emit_fn = harness_emit,
        .emit_watermark_fn = harness_emit_watermark,
        .close_input_fn = harness_close_input,
        .hold_input_fn = harness_hold_input,
        .now_us_fn = harness_now,
        .submit_io_fn = harness_submit_io,
        .wake_fn = harness_wake,
        .count_fn = harness_count,
        .hold_ack_fn = harness_hold,
        .release_ack_fn = harness_release};
}

HARNESS_FN void harness_end_call(harness *h) { ck_arena_reset_to(&h->calls, (ck_arena_mark){0}); }

HARNESS_FN ck_status harness_open(harness *h) {
    harness_context(h);
    ck_status s = CK_OK;
    if (h->desc->op && CK_HAS(h->desc->op, open)) s = h->desc->op->open(h->self, &h->ctx);
    if (h->desc->source && CK_HAS(h->desc->source, open)) s = h->desc->source->open(h->self, &h->ctx);
    harness_end_call(h);
    return s;
}

HARNESS_FN void harness_start(harness *h, const ck_op_desc *desc, const char *params, const char *output) {
    ck_status s = harness_create(h, desc, params, output);
    if (s == CK_OK) s = harness_open(h);
    if (s != CK_OK) fail_msg("start: %s", h->error.msg);
}

HARNESS_FN void harness_close(harness *h) {
    if (!h->self) return;
    if (h->run_io) h->run_io(h);
    if (h->desc->op) h->desc->op->close(h->self, &h->ctx);
    if (h->desc->source) h->desc->source->close(h->self, &h->ctx);
    h->self = NULL;
}

HARNESS_FN void harness_forget_lines(harness *h) {
    for (size_t i = 0; i < h->line_count; i++) free(h->lines[i].text);
    h->line_count = 0;
    if (h->keep_batches)
        for (size_t i = 0; i < h->batch_count; i++) ck_batch_unref(&h->batches[i]);
    h->batch_count = 0;
}

HARNESS_FN void harness_destroy(harness *h) {
    harness_close(h);
    harness_forget_lines(h);
    free(h->lines);
    free(h->batches);
    if (h->store) ck_state_store_free(h->store);
    ck_arena_destroy(&h->calls);
    ck_arena_destroy(&h->plan);
}

/* ---- events ---- */

/* Until it is taken; CK_AGAIN runs the I/O that is waiting. */
HARNESS_FN ck_status harness_event(harness *h, uint32_t input, ck_event ev) {
    if (h->store && ck_state_evict(h->store, SIZE_MAX, &h->error) != CK_OK) fail_msg("%s", h->error.msg);
    for (unsigned calls = 0;; calls++) {
        assert_true(calls < 1000000);
        ck_status s = h->desc->op->on_event(h->self, input, &ev, &h->ctx);
        harness_end_call(h);
        if (s == CK_AGAIN) {
            assert_non_null(h->run_io);
            h->run_io(h);
        } else if (s != CK_MORE) {
            return s;
        }
    }
}
HARNESS_FN void harness_ok(harness *h, ck_status s) {
    if (s != CK_OK) fail_msg("%s: %s", ck_status_name(s), h->error.msg);
}
HARNESS_FN void harness_flush(harness *h) { harness_ok(h, harness_event(h, 0, ck_event_flush(1))); }
HARNESS_FN void harness_end(harness *h) { harness_ok(h, harness_event(h, 0, ck_event_end())); }

/* The clock comes to `us`, and the operator is woken when it asked to be. */
HARNESS_FN void harness_clock(harness *h, int64_t us) {
    const ck_operator_vtbl *op = h->desc->op;
    h->now_us = us;
    if (h->store && ck_state_evict(h->store, SIZE_MAX, &h->error) != CK_OK) fail_msg("%s", h->error.msg);
    for (int wakes = 0; op->next_wake_us(h->self, &h->ctx) <= us; wakes++) {
        ck_status s;
        assert_true(wakes < 100); /* or it would never rest */
        while ((s = op->on_wake(h->self, us, &h->ctx)) == CK_MORE) harness_end_call(h);
        harness_end_call(h);
        harness_ok(h, s);
    }
}

HARNESS_FN ck_status harness_pre_snapshot(harness *h, uint64_t checkpoint) {
    if (!h->desc->op || !CK_HAS(h->desc->op, pre_snapshot)) return CK_OK;
    for (;;) {
        ck_status s = h->desc->op->pre_snapshot(h->self, checkpoint, &h->ctx);
        harness_end_call(h);
        if (s == CK_AGAIN) {
            assert_non_null(h->run_io);
            h->run_io(h);
        } else if (s != CK_MORE) {
            return s;
        }
    }
}

/* Cells of one row, '|' between: "1|alice|NULL", in a batch with the other rows given. */
HARNESS_FN void harness_cell(ck_column_builder *b, const char *text) {
    ck_view v = ck_view_of(text);
    int64_t i = 0;
    double d = 0;
    ck_i128 w = 0;
    bool t = false, overflow, zoned;
    ck_status s = CK_NOMEM;
    if (strcmp(text, "NULL") == 0) {
        s = ck_build_null(b);
    } else if (b->phys == CK_PHYS_BOOL) {
        assert_true(ck_parse_bool(v, &t));
        s = ck_build_bool(b, t);
    } else if (b->phys == CK_PHYS_I64) {
        assert_true(ck_parse_i64(v, &i) || ck_parse_timestamp(v, &i, &zoned));
        s = ck_build_i64(b, i);
    } else if (b->phys == CK_PHYS_F64) {
        assert_true(ck_parse_f64(v, &d));
        s = ck_build_f64(b, d);
    } else if (b->phys == CK_PHYS_I128) {
        assert_true(ck_parse_decimal(v, b->type->precision, b->type->scale, &w, &overflow));
        s = ck_build_i128(b, w);
    } else {
        s = ck_build_str(b, v.p, v.n);
    }
    assert_int_equal(s, CK_OK);
}

/* Rows as text, a line each; a line that begins with '-' weighs -1 ("\-" for a minus sign in the first cell). */
HARNESS_FN ck_batch *harness_batch(harness *h, uint32_t input, const char *const *rows, uint32_t n) {
    const ck_schema *s = h->inputs[input].schema;
    ck_batch_builder b;
    assert_int_equal(ck_batch_builder_init(&b, h->mem, s, n ? n : 1), CK_OK);
    for (uint32_t r = 0; r < n; r++) {
        int weight = rows[r][0] == '-' ? -1 : 1;
        const char *text = rows[r] + (rows[r][0] == '-' || rows[r][0] == '+' || rows[r][0] == '\\');
        char *copy = strdup(text), *at = copy;
        for (uint32_t c = 0; c < s->field_count; c++) {
            assert_non_null(at);
            char *bar = strchr(at, '|');
            if (bar) *bar = 0;
            harness_cell(&b.columns[c], at);
            at = bar ? bar + 1 : NULL;
        }
        free(copy);
        ck_batch_builder_row(&b, weight);
    }
    ck_batch *out = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    assert_non_null(out);
    return out;
}

HARNESS_FN ck_status harness_try_rows(harness *h, uint32_t input, const char *const *rows, uint32_t n) {
    ck_batch *b = harness_batch(h, input, rows, n);
    ck_status s = harness_event(h, input, ck_event_batch(b));
    ck_batch_unref(&b);
    return s;
}
#define HARNESS_ROWS(h, ...)                                                                                           \
    harness_ok(h, harness_try_rows(h, 0, (const char *const[]){__VA_ARGS__},                                           \
                                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/* ---- what came out ---- */

HARNESS_FN int harness_line_order(const void *a, const void *b) {
    return strcmp(((const harness_line *)a)->text, ((const harness_line *)b)->text);
}

/* Sums the weights of equal lines, drops zeros, sorts. */
HARNESS_FN void harness_net(harness *h) {
    if (h->line_count == 0) return;
    qsort(h->lines, h->line_count, sizeof *h->lines, harness_line_order);
    size_t n = 0;
    for (size_t i = 0; i < h->line_count; i++) {
        if (n > 0 && strcmp(h->lines[n - 1].text, h->lines[i].text) == 0) {
            h->lines[n - 1].weight += h->lines[i].weight;
            free(h->lines[i].text);
        } else {
            if (n > 0 && h->lines[n - 1].weight == 0) free(h->lines[--n].text);
            h->lines[n++] = h->lines[i];
        }
    }
    if (n > 0 && h->lines[n - 1].weight == 0) free(h->lines[--n].text);
    h->line_count = n;
}

/* The lines in the order they came, with their weights as '+' or '-', and forgets them. */
HARNESS_FN void harness_expect(harness *h, const char *const *rows, size_t n, const char *file, int line) {
    for (size_t i = 0; i < h->line_count || i < n; i++) {
        char got[4096] = "(nothing)";
        if (i < h->line_count) snprintf(got, sizeof got, "%c%s", h->lines[i].weight > 0 ? '+' : '-', h->lines[i].text);
        const char *wanted = i < n ? rows[i] : "(nothing)";
        if (strcmp(got, wanted) != 0) {
            print_error("%s:%d: line %zu is %s, not %s\n", file, line, i, got, wanted);
            fail();
        }
    }
    harness_forget_lines(h);
}
#define HARNESS_EXPECT(h, ...)                                                                                         \
    harness_expect(h, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), \
                   __FILE__, __LINE__)
#define HARNESS_EXPECT_NOTHING(h) harness_expect(h, NULL, 0, __FILE__, __LINE__)

/* ---- snapshot and restore ---- */

/* Puts the store's rows as they are into a new one, also of another subtask's range, through the stored form. */
HARNESS_FN void harness_copy_store(ck_state_store *from, ck_state_store *to, uint64_t checkpoint) {
    ck_error err = CK_ERROR_INIT;
    ck_state_mark *mark;
    ck_mark_scan *scan;
    assert_int_equal(ck_state_mark_take(from, checkpoint, &mark, &err), CK_OK);
    const ck_marked_slot *slots;
    uint32_t n = ck_state_mark_slots(mark, &slots);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(
            ck_state_restore_slot(to, slots[i].op_id, slots[i].uid, slots[i].op_type, slots[i].schema, &err), CK_OK);
    assert_int_equal(ck_mark_scan_new(mark, CK_MARK_BASE, &scan, &err), CK_OK);
    const ck_mark_row *rows;
    uint32_t count;
    for (;;) {
        assert_int_equal(ck_mark_scan_next(scan, &rows, &count, &err), CK_OK);
        if (count == 0) break;
        for (uint32_t i = 0; i < count; i++) {
            ck_stored_row r = {rows[i].key, rows[i].value};
            ck_status s = ck_state_restore_put(to, rows[i].op_id, r, &err);
            if (s != CK_OK) fail_msg("restore: %s", err.msg);
        }
    }
    ck_mark_scan_free(scan);
    ck_state_mark_release(mark);
}

/* Rows a snapshot of the store would have now, how far time has come not among them. */
HARNESS_FN uint64_t harness_kept_rows(harness *h, uint64_t checkpoint) {
    ck_state_mark *mark;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t count;
    uint64_t n = 0;
    static const char clock[] = "watermark";
    harness_ok(h, harness_pre_snapshot(h, checkpoint));
    assert_int_equal(ck_state_mark_take(h->store, checkpoint, &mark, &h->error), CK_OK);
    assert_int_equal(ck_mark_scan_new(mark, CK_MARK_BASE, &scan, &h->error), CK_OK);
    do {
        assert_int_equal(ck_mark_scan_next(scan, &rows, &count, &h->error), CK_OK);
        for (uint32_t i = 0; i < count; i++) n += !memmem(rows[i].key.p, rows[i].key.n, clock, sizeof clock - 1);
    } while (count);
    ck_mark_scan_free(scan);
    ck_state_mark_release(mark);
    return n;
}

/* The whole turn: pre_snapshot, the store through its stored form, a new instance on it. */
HARNESS_FN void harness_restart(harness *h, uint64_t checkpoint) {
    harness_ok(h, harness_pre_snapshot(h, checkpoint));
    ck_state_store *old = h->store;
    harness_new_store(h);
    harness_copy_store(old, h->store, checkpoint);
    assert_int_equal(ck_state_restore_end(h->store, &h->error), CK_OK);
    harness_close(h);
    ck_state_store_free(old);
    harness_ok(h, h->desc->create(&h->spec, h->mem, &h->self, &h->error));
    harness_ok(h, harness_open(h));
}

#endif
