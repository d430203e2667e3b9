#include "net/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct feed {
    const uint8_t *p;
    size_t n;
    size_t step; /* at most so many bytes at a time; 0 = as many as fit */
} feed;

/* Gives the reader more bytes; false when there are none. */
static bool feed_some(feed *in, ck_frame_reader *r) {
    if (in->n == 0) return false;
    void *p;
    size_t room;
    OK(ck_frame_reader_space(r, &p, &room, NULL));
    assert_true(room > 0);
    size_t n = in->n < room ? in->n : room;
    if (in->step && n > in->step) n = in->step;
    memcpy(p, in->p, n);
    ck_frame_reader_filled(r, n);
    in->p += n, in->n -= n;
    return true;
}

static ck_frame *next_frame(feed *in, ck_frame_reader *r) {
    for (;;) {
        ck_frame *f;
        ck_status s = ck_frame_reader_next(r, &f, NULL);
        if (s == CK_OK) return f;
        assert_int_equal(s, CK_AGAIN);
        if (!feed_some(in, r)) return NULL;
    }
}

static void test_header_layout(void **state) {
    (void)state;
    uint8_t h[CK_FRAME_HEADER_BYTES];
    ck_frame_header(h, 9, 0x010203);
    static const uint8_t wanted[] = {0x00, 0x01, 0x02, 0x04, 9}; /* length counts the kind */
    assert_memory_equal(h, wanted, 5);
    ck_frame_header(h, 255, 0);
    static const uint8_t empty[] = {0, 0, 0, 1, 255};
    assert_memory_equal(h, empty, 5);
}

static void test_frames_come_out_as_they_went_in(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 5, 100, 16383, 16384, 65530, 65536, 70000, 1 << 20, (1 << 20) + 1, 3000000, 7};
    static const size_t steps[] = {0, 1000, 65536, 4099};
    size_t total = 0;
    for (size_t i = 0; i < CK_ARRAY_COUNT(sizes); i++) total += sizes[i] + CK_FRAME_HEADER_BYTES;
    uint8_t *stream = malloc(total), *at = stream;
    for (size_t i = 0; i < CK_ARRAY_COUNT(sizes); i++) {
        ck_frame_header(at, (uint8_t)i, sizes[i]);
        at += CK_FRAME_HEADER_BYTES;
        for (size_t k = 0; k < sizes[i]; k++) *at++ = (uint8_t)(k * 31 + i);
    }
    for (size_t s = 0; s < CK_ARRAY_COUNT(steps); s++) {
        ck_test_proc t;
        ck_test_proc_init(&t);
        ck_frame_reader r;
        ck_frame_reader_init(&r, ck_proc_mem(&t.proc, CK_MEM_QUEUE), CK_FRAME_BYTES_MAX);
        feed in = {stream, total, steps[s]};
        for (size_t i = 0; i < CK_ARRAY_COUNT(sizes); i++) {
            ck_frame *f = next_frame(&in, &r);
            assert_non_null(f);
            assert_int_equal(f->kind, i);
            assert_int_equal(f->n, sizes[i]);
            assert_int_equal((uintptr_t)f->p % 16, 0);
            for (size_t k = 0; k < f->n; k++)
                if (f->p[k] != (uint8_t)(k * 31 + i)) fail_msg("frame %zu differs at %zu", i, k);
            for (size_t k = 0; k < CK_FRAME_PADDING; k++) assert_int_equal(f->p[f->n + k], 0);
            ck_frame_free(&f);
            assert_null(f);
        }
        assert_null(next_frame(&in, &r));
        assert_true(ck_frame_reader_between(&r));
        ck_frame_reader_destroy(&r);
        ck_frame_reader_destroy(&r);
        ck_test_proc_destroy(&t);
    }
    free(stream);
}

static void test_byte_by_byte(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    uint8_t stream[64];
    ck_frame_header(stream, 1, 3);
    memcpy(stream + 5, "abc", 3);
    ck_frame_header(stream + 8, 2, 0);
    ck_frame_reader r;
    ck_frame_reader_init(&r, ck_proc_mem(&t.proc, CK_MEM_QUEUE), 100);
    feed in = {stream, 13, 1};
    ck_frame *f = next_frame(&in, &r);
    assert_memory_equal(f->p, "abc", 3);
    ck_frame_free(&f);
    assert_true(ck_frame_reader_between(&r));
    assert_true(feed_some(&in, &r));
    assert_false(ck_frame_reader_between(&r));
    f = next_frame(&in, &r);
    assert_int_equal(f->kind, 2);
    assert_int_equal(f->n, 0);
    ck_frame_free(&f);
    ck_frame_reader_destroy(&r);
    ck_test_proc_destroy(&t);
}

static ck_status read_length(uint32_t length, size_t max, ck_error *err, size_t *peak) {
    ck_test_proc t;
    ck_test_proc_init(&t);
    uint8_t stream[5] = {(uint8_t)(length >> 24), (uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length, 1};
    ck_frame_reader r;
    ck_frame_reader_init(&r, ck_proc_mem(&t.proc, CK_MEM_QUEUE), max);
    feed in = {stream, 5, 0};
    assert_true(feed_some(&in, &r));
    ck_frame *f;
    ck_status s = ck_frame_reader_next(&r, &f, err);
    ck_frame_free(&f);
    ck_frame_reader_destroy(&r);
    *peak = t.proc.budget.peak;
    ck_test_proc_destroy(&t);
    return s;
}

static void test_lengths_at_the_ceiling(void **state) {
    (void)state;
    ck_error err = CK_ERROR_INIT;
    size_t peak;
    assert_int_equal(read_length(0, 100, &err, &peak), CK_CORRUPT);
    assert_int_equal(read_length(1, 100, &err, &peak), CK_OK);
    assert_int_equal(read_length(100, 100, &err, &peak), CK_AGAIN);
    assert_int_equal(read_length(101, 100, &err, &peak), CK_FULL);
    assert_non_null(strstr(err.msg, "101"));
    assert_int_equal(read_length(UINT32_MAX, CK_FRAME_BYTES_MAX, &err, &peak), CK_FULL);
    assert_true(peak < 100000); /* nothing was allocated for it */
    assert_int_equal(read_length(CK_FRAME_CONTROL_BYTES_MAX + 1, CK_FRAME_CONTROL_BYTES_MAX, &err, &peak), CK_FULL);
    assert_int_equal(read_length(CK_FRAME_BYTES_MAX, CK_FRAME_BYTES_MAX, &err, &peak), CK_AGAIN);
    assert_true(peak < (2 << 20)); /* nor all of one that is announced and does not come */
}

static void test_allocation_failures_and_budget(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    size_t n = 5000000;
    uint8_t *stream = calloc(1, n + CK_FRAME_HEADER_BYTES);
    ck_frame_header(stream, 1, n);
    for (uint64_t nth = 1;; nth++) {
        ck_tracked_heap_fail_nth(t.heap, nth);
        ck_frame_reader r;
        ck_frame_reader_init(&r, ck_proc_mem(&t.proc, CK_MEM_QUEUE), CK_FRAME_BYTES_MAX);
        const uint8_t *at = stream;
        size_t left = n + CK_FRAME_HEADER_BYTES;
        ck_frame *f = NULL;
        ck_status s = CK_AGAIN;
        while (s == CK_AGAIN) {
            void *p;
            size_t room;
            s = ck_frame_reader_space(&r, &p, &room, NULL);
            if (s != CK_OK) break;
            if (room > left) room = left;
            memcpy(p, at, room);
            at += room, left -= room;
            ck_frame_reader_filled(&r, room);
            s = ck_frame_reader_next(&r, &f, NULL);
        }
        ck_frame_free(&f);
        ck_frame_reader_destroy(&r);
        assert_int_equal(ck_tracked_heap_live_blocks(t.heap), 0);
        if (!ck_tracked_heap_fired(t.heap)) {
            OK(s);
            assert_true(nth > 3);
            break;
        }
        assert_int_equal(s, CK_NOMEM);
    }
    ck_tracked_heap_fail_nth(t.heap, 0);
    t.proc.budget.limit = 200000;
    ck_frame_reader r;
    ck_frame_reader_init(&r, ck_proc_mem(&t.proc, CK_MEM_QUEUE), CK_FRAME_BYTES_MAX);
    feed in = {stream, 100, 0};
    assert_true(feed_some(&in, &r));
    ck_frame *f;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_frame_reader_next(&r, &f, &err), CK_NOMEM);
    assert_non_null(strstr(err.msg, "queue"));
    ck_frame_reader_destroy(&r);
    t.proc.budget.limit = 0;
    free(stream);
    ck_test_proc_destroy(&t);
}

static void test_impossible_lengths(void **state) {
    (void)state;
    ck_test_proc t;
    ck_test_proc_init(&t);
    assert_null(ck_frame_new(ck_proc_mem(&t.proc, CK_MEM_QUEUE), 1, SIZE_MAX - 10));
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_layout),
        cmocka_unit_test(test_frames_come_out_as_they_went_in),
        cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_lengths_at_the_ceiling),
        cmocka_unit_test(test_allocation_failures_and_budget),
        cmocka_unit_test(test_impossible_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
