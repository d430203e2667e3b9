#include "runtime/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "data/builder.h"
#include "os/test_proc.h"

typedef struct fixture {
    ck_test_proc t;
    ck_field fields[4];
    ck_schema schema;
    ck_mem mem;
} fixture;

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    f.mem = ck_proc_mem(&f.t.proc, CK_MEM_QUEUE);
    f.fields[0] = (ck_field){"k", ck_type_simple(CK_TYPE_BIGINT), true};
    f.fields[1] = (ck_field){"s", ck_type_simple(CK_TYPE_VARCHAR), true};
    f.fields[2] = (ck_field){"b", ck_type_simple(CK_TYPE_BOOLEAN), false};
    f.fields[3] = (ck_field){"d", ck_type_simple(CK_TYPE_DOUBLE), true};
    f.schema = (ck_schema){f.fields, 4};
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_test_proc_destroy(&f->t);
    return 0;
}

static ck_batch *rows_of(fixture *f, uint32_t n, size_t string_bytes, bool weights) {
    ck_batch_builder b;
    char *text = ck_alloc(f->mem, string_bytes + 32);
    assert_int_equal(ck_batch_builder_init(&b, f->mem, &f->schema, n), CK_OK);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(i % 5 ? ck_build_i64(&b.columns[0], (int64_t)i * 1000003) : ck_build_null(&b.columns[0]),
                         CK_OK);
        int len = snprintf(text, 32, "row %u", i);
        memset(text + len, 'x', string_bytes);
        size_t bytes = i % 3 ? (size_t)len : (size_t)len + string_bytes;
        assert_int_equal(i % 7 ? ck_build_str(&b.columns[1], text, bytes) : ck_build_null(&b.columns[1]), CK_OK);
        assert_int_equal(ck_build_bool(&b.columns[2], i % 2), CK_OK);
        assert_int_equal(ck_build_f64(&b.columns[3], i / 4.0), CK_OK);
        ck_batch_builder_row(&b, weights && i % 4 == 1 ? -1 : 1);
    }
    ck_batch *out = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    ck_free(f->mem, text, string_bytes + 32);
    assert_non_null(out);
    return out;
}

static void same_rows(fixture *f, const ck_batch *a, uint32_t from, const ck_batch *b) {
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t x = ck_batch_row(a, from + i), y = ck_batch_row(b, i);
        assert_int_equal(ck_batch_weight(a, x), ck_batch_weight(b, y));
        for (uint32_t c = 0; c < f->schema.field_count; c++)
            assert_true(ck_column_rows_equal(a->columns[c], x, b->columns[c], y));
    }
}

typedef struct pair {
    ck_wire_codec *up, *down;
} pair;
static pair make_pair(fixture *f, bool weights) {
    pair p;
    ck_error err = CK_ERROR_INIT;
    if (ck_wire_codec_new(f->mem, &f->schema, weights, &p.up, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_wire_codec_new(f->mem, &f->schema, weights, &p.down, &err), CK_OK);
    return p;
}
static void free_pair(pair *p) {
    ck_wire_codec_free(p->up);
    ck_wire_codec_free(p->down);
}
static void send_schema(pair *p) {
    ck_frame *frame;
    uint32_t edge;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_wire_schema_frame(p->up, 9, &frame, &err), CK_OK);
    assert_int_equal(ck_wire_edge(frame, &edge, &err), CK_OK);
    assert_int_equal(edge, 9);
    if (ck_wire_read_schema(p->down, frame, &err) != CK_OK) fail_msg("%s", err.msg);
    ck_frame_free(&frame);
    assert_int_equal(ck_wire_schema_frame(p->up, 9, &frame, &err), CK_OK);
    assert_null(frame); /* once */
}

/* Everything of b through the wire; how many frames it took. */
static uint32_t through(fixture *f, pair *p, const ck_batch *b) {
    uint32_t frames = 0;
    for (uint32_t from = 0, used; from < b->sel_count; from += used, frames++) {
        ck_frame *frame;
        ck_batch *got;
        uint32_t backlog = 0;
        ck_error err = CK_ERROR_INIT;
        if (ck_wire_batch_frame(p->up, 9, 77, b, from, &used, &frame, &err) != CK_OK) fail_msg("%s", err.msg);
        assert_true(frame->n < CK_FRAME_BYTES_MAX);
        if (ck_wire_read_batch(p->down, frame, &backlog, &got, &err) != CK_OK) fail_msg("%s", err.msg);
        assert_int_equal(backlog, 77);
        assert_int_equal(got->sel_count, used);
        same_rows(f, b, from, got);
        ck_batch_unref(&got);
        ck_frame_free(&frame);
    }
    return frames;
}

static void batches_come_as_they_were(void **state) {
    fixture *f = *state;
    for (int weights = 0; weights < 2; weights++) {
        pair p = make_pair(f, weights);
        send_schema(&p);
        for (uint32_t n = 1; n <= 4096; n = n * 5 + 1) {
            ck_batch *b = rows_of(f, n, 40, weights);
            assert_int_equal(through(f, &p, b), 1);
            uint16_t sel[4096];
            uint32_t m = 0;
            for (uint32_t i = 0; i < n; i += 3) sel[m++] = (uint16_t)i;
            ck_batch *some = ck_batch_select(b, sel, m);
            assert_int_equal(through(f, &p, some), 1);
            ck_batch_unref(&some);
            ck_batch_unref(&b);
        }
        free_pair(&p);
    }
}

static void large_batches_go_in_parts(void **state) {
    fixture *f = *state;
    pair p = make_pair(f, false);
    send_schema(&p);
    ck_batch *b = rows_of(f, 300, 1 << 20, false); /* 100 MB of strings */
    assert_true(through(f, &p, b) > 2);
    ck_batch_unref(&b);
    free_pair(&p);
}

static void one_row_too_large_is_a_data_error(void **state) {
    fixture *f = *state;
    pair p = make_pair(f, false);
    ck_error err = CK_ERROR_INIT;
    ck_batch *b = rows_of(f, 4, 65 << 20, false); /* row 3 has it, row 0 is NULL */
    ck_frame *frame;
    uint32_t used;
    uint16_t last = 3;
    ck_batch *one = ck_batch_select(b, &last, 1);
    assert_int_equal(ck_wire_batch_frame(p.up, 9, 0, one, 0, &used, &frame, &err), CK_DATA);
    ck_batch_unref(&one);
    ck_batch_unref(&b);
    free_pair(&p);
}

static void controls_go_both_ways(void **state) {
    fixture *f = *state;
    ck_event events[] = {ck_event_watermark(-5, true),
                         ck_event_watermark(CK_WATERMARK_MAX, false),
                         ck_event_barrier(1ULL << 40, CK_BARRIER_SAVEPOINT),
                         {.kind = CK_EVENT_BARRIER, .barrier = {.checkpoint = 7, .after = 5, .overtakes = true}},
                         {.kind = CK_EVENT_CANCEL_BARRIER, .barrier = {.checkpoint = 3}},
                         ck_event_flush(UINT64_MAX),
                         ck_event_end()};
    for (size_t i = 0; i < CK_ARRAY_COUNT(events); i++) {
        ck_frame *frame = ck_wire_control_frame(f->mem, 0xfffffffe, &events[i]);
        ck_event got;
        uint32_t edge;
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_wire_edge(frame, &edge, &err), CK_OK);
        assert_int_equal(edge, 0xfffffffe);
        assert_int_equal(ck_wire_read_control(frame, &got, &err), CK_OK);
        assert_int_equal(got.kind, events[i].kind);
        assert_int_equal(got.barrier.checkpoint, events[i].barrier.checkpoint);
        if (got.kind == CK_EVENT_WATERMARK) assert_int_equal(got.watermark.idle, events[i].watermark.idle);
        if (got.kind == CK_EVENT_BARRIER) {
            assert_int_equal(got.barrier.kind, events[i].barrier.kind);
            assert_int_equal(got.barrier.after, events[i].barrier.after);
            assert_true(got.barrier.overtakes == events[i].barrier.overtakes);
        }
        for (size_t n = frame->n; n-- > 0;) { /* cut short anywhere */
            frame->n = n;
            bool edge_ok = ck_wire_edge(frame, &edge, &err) == CK_OK;
            if (edge_ok) assert_int_equal(ck_wire_read_control(frame, &got, &err), CK_CORRUPT);
        }
        ck_frame_free(&frame);
    }
    uint32_t count;
    ck_frame *credit = ck_wire_credit_frame(f->mem, 3, 12);
    assert_int_equal(ck_wire_read_credit(credit, &count, NULL), CK_OK);
    assert_int_equal(count, 12);
    credit->n--;
    assert_int_equal(ck_wire_read_credit(credit, &count, NULL), CK_CORRUPT);
    ck_frame_free(&credit);
}

static void hello_says_who(void **state) {
    fixture *f = *state;
    ck_wire_hello h = {CK_WIRE_VERSION,
                       3,
                       0x123456789abcdef0,
                       17,
                       "01234567-89ab-cdef-0123-456789abcdef",
                       CK_VIEW("secret"),
                       CK_VIEW("splits")},
                  got;
    ck_frame *frame = ck_wire_hello_frame(f->mem, &h);
    assert_int_equal(ck_wire_read_hello(frame, &got, NULL), CK_OK);
    assert_int_equal(got.process, 3);
    assert_int_equal(got.graph_hash, h.graph_hash);
    assert_true(ck_view_eq(got.secret, h.secret));
    assert_int_equal(got.restored, 17);
    assert_true(ck_view_eq(got.splits, h.splits));
    assert_string_equal(got.uuid, h.uuid);
    frame->p[71] = 7; /* more bytes of splits than there are */
    assert_int_equal(ck_wire_read_hello(frame, &got, NULL), CK_CORRUPT);
    frame->p[71] = 6;
    frame->p[61] = 200; /* a longer secret than there is */
    assert_int_equal(ck_wire_read_hello(frame, &got, NULL), CK_CORRUPT);
    frame->n = 10;
    assert_int_equal(ck_wire_read_hello(frame, &got, NULL), CK_CORRUPT);
    ck_frame_free(&frame);
}

static void another_schema_is_refused(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    pair p = make_pair(f, false);
    ck_field other[4];
    memcpy(other, f->fields, sizeof other);
    other[3].type = ck_type_simple(CK_TYPE_VARCHAR);
    ck_schema schema = {other, 4};
    ck_wire_codec *c;
    ck_frame *frame;
    assert_int_equal(ck_wire_codec_new(f->mem, &schema, false, &c, &err), CK_OK);
    assert_int_equal(ck_wire_schema_frame(p.up, 1, &frame, &err), CK_OK);
    assert_int_equal(ck_wire_read_schema(c, frame, &err), CK_CORRUPT);
    assert_non_null(strstr(err.msg, "other columns"));
    ck_frame_free(&frame);
    /* and a batch before any schema */
    ck_batch *b = rows_of(f, 3, 3, false), *got;
    uint32_t used, backlog;
    assert_int_equal(ck_wire_batch_frame(p.up, 1, 0, b, 0, &used, &frame, &err), CK_OK);
    assert_int_equal(ck_wire_read_batch(c, frame, &backlog, &got, &err), CK_CORRUPT);
    assert_null(got);
    ck_frame_free(&frame);
    ck_batch_unref(&b);
    ck_wire_codec_free(c);
    free_pair(&p);
}

static void damaged_batches_never_crash(void **state) {
    fixture *f = *state;
    pair p = make_pair(f, true);
    send_schema(&p);
    ck_batch *b = rows_of(f, 40, 30, true);
    for (int i = 0; i < 20000; i++) {
        ck_frame *frame;
        ck_batch *got;
        uint32_t used, backlog;
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_wire_batch_frame(p.up, 9, 0, b, 0, &used, &frame, &err), CK_OK);
        for (uint64_t flips = 1 + ck_random_below(&f->t.proc, 4); flips > 0; flips--)
            frame->p[4 + ck_random_below(&f->t.proc, frame->n - 4)] ^= (uint8_t)(1u << ck_random_below(&f->t.proc, 8));
        if (i % 3 == 0) frame->n = 4 + ck_random_below(&f->t.proc, frame->n - 4);
        ck_status s = ck_wire_read_batch(p.down, frame, &backlog, &got, &err);
        if (s == CK_OK) ck_batch_unref(&got); /* some flips only change values */
        assert_null(got);
        ck_frame_free(&frame);
    }
    ck_batch_unref(&b);
    free_pair(&p);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(batches_come_as_they_were),
        T(large_batches_go_in_parts),
        T(one_row_too_large_is_a_data_error),
        T(controls_go_both_ways),
        T(hello_says_who),
        T(another_schema_is_refused),
        T(damaged_batches_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
