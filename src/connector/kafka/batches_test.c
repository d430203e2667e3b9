/* Record batches: what is written by hand or by the codecs' own libraries is read back; what is cut, damaged or of
 * another format is said to be. */
#include "connector/kafka/batches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include "os/test_proc.h"

enum { NONE, GZIP, SNAPPY, LZ4, ZSTD, BROKER_TIME = 8, MARK = 32 };

/* ---- writing ---- */

typedef struct written {
    char p[1 << 18];
    size_t n;
} written;

static void put(written *w, const void *p, size_t n) {
    assert_true(w->n + n <= sizeof w->p);
    if (n) memcpy(w->p + w->n, p, n);
    w->n += n;
}

static void put_be(written *w, uint64_t v, size_t n) {
    for (size_t i = n; i > 0; i--) {
        char byte = (char)(unsigned char)(v >> (8 * (i - 1)));
        put(w, &byte, 1);
    }
}

static void put_number(written *w, int64_t v) {
    uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
    for (; z > 127; z >>= 7) put_be(w, (z & 127) | 128, 1);
    put_be(w, z, 1);
}

static void put_text(written *w, const char *text) { /* NULL: none */
    put_number(w, text ? (int64_t)strlen(text) : -1);
    if (text) put(w, text, strlen(text));
}

static void put_record(written *w, int64_t offset, int64_t ms, const char *key, const char *value, int headers) {
    static written r;
    r.n = 0;
    put_be(&r, 0, 1);
    put_number(&r, ms);
    put_number(&r, offset);
    put_text(&r, key);
    put_text(&r, value);
    put_number(&r, headers);
    for (int i = 0; i < headers; i++) {
        put_text(&r, i ? "second" : "first");
        put_text(&r, i ? NULL : "1");
    }
    put_number(w, (int64_t)r.n);
    put(w, r.p, r.n);
}

static size_t gzip_of(const written *w, char *out, size_t room) {
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)w->p, z.avail_in = (uInt)w->n;
    z.next_out = (Bytef *)out, z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static void put_batch(written *w, int64_t first, uint32_t count, unsigned attributes, const written *records) {
    static char packed[1 << 18];
    size_t n = records->n;
    switch (attributes & 7) {
    case GZIP: n = gzip_of(records, packed, sizeof packed); break;
    case LZ4: n = LZ4F_compressFrame(packed, sizeof packed, records->p, records->n, NULL); break;
    case ZSTD: n = ZSTD_compress(packed, sizeof packed, records->p, records->n, 3); break;
    default: memcpy(packed, records->p, n); break;
    }
    put_be(w, (uint64_t)first, 8);
    put_be(w, n + CK_KAFKA_BATCH_HEAD_BYTES - 12, 4);
    put_be(w, 7, 4);
    put_be(w, 2, 1);
    put_be(w, 0, 4);
    put_be(w, attributes, 2);
    put_be(w, count ? count - 1 : 0, 4);
    put_be(w, 1000, 8);
    put_be(w, 5000, 8);
    put_be(w, UINT64_MAX, 8);
    put_be(w, UINT16_MAX, 2);
    put_be(w, UINT32_MAX, 4);
    put_be(w, count, 4);
    put(w, packed, n);
}

static void put_three(written *w, int64_t first, unsigned attributes) {
    static written r;
    r.n = 0;
    put_record(&r, 0, 0, NULL, "zero", 0);
    put_record(&r, 1, 30, "key", "", 2);
    put_record(&r, 2, -2000, "", NULL, 0);
    put_batch(w, first, 3, attributes, &r);
}

/* ---- reading ---- */

typedef struct reading {
    ck_test_proc t;
    ck_kafka_batches b;
    ck_kafka_unpacker u;
    ck_kafka_record r;
} reading;

static void begin(reading *x, const char *p, size_t n) {
    ck_test_proc_init(&x->t);
    x->u = (ck_kafka_unpacker){0};
    ck_kafka_batches_init(&x->b, ck_proc_mem(&x->t.proc, CK_MEM_DECODE));
    ck_kafka_batches_give(&x->b, (ck_view){p, n});
}

static ck_status next(reading *x) { return ck_kafka_batches_next(&x->b, &x->u, &x->r); }

static void end(reading *x) {
    ck_kafka_batches_destroy(&x->b);
    ck_kafka_unpacker_destroy(&x->u);
    ck_test_proc_destroy(&x->t);
}

static void expect(reading *x, int64_t offset, int64_t ms, const char *key, const char *value) {
    assert_int_equal(next(x), CK_OK);
    assert_int_equal(x->r.offset, offset);
    assert_int_equal(x->r.time_ms, ms);
    assert_null(x->r.message);
    assert_int_equal(key == NULL, x->r.key.p == NULL);
    assert_int_equal(value == NULL, x->r.value.p == NULL);
    if (key) assert_true(ck_view_is(x->r.key, key));
    if (value) assert_true(ck_view_is(x->r.value, value));
}

static void expect_three(reading *x, int64_t first, bool broker_time) {
    expect(x, first, broker_time ? 5000 : 1000, NULL, "zero");
    expect(x, first + 1, broker_time ? 5000 : 1030, "key", "");
    ck_cursor left = ck_cursor_of(x->r.headers.p, x->r.headers.n);
    ck_view name, value;
    assert_int_equal(x->r.header_count, 2);
    assert_true(ck_kafka_header_next(&left, &name, &value) && ck_view_is(name, "first") && ck_view_is(value, "1"));
    assert_true(ck_kafka_header_next(&left, &name, &value) && ck_view_is(name, "second") && !value.p);
    assert_false(ck_kafka_header_next(&left, &name, &value));
    expect(x, first + 2, broker_time ? 5000 : -1000, "", NULL);
}

/* ---- tests ---- */

static written w;

static void test_codecs(void **state) {
    (void)state;
    static const unsigned codecs[] = {NONE, GZIP, LZ4, ZSTD};
    w.n = 0;
    for (size_t i = 0; i < CK_ARRAY_COUNT(codecs); i++) {
        put_three(&w, 100 + 3 * (int64_t)i, codecs[i] | (i == 1 ? BROKER_TIME : 0));
        put_batch(&w, 1000, 1, MARK, &(written){.n = 6}); /* the mark of a transaction has a record that is none */
    }
    assert_int_equal(ck_kafka_batches_end((ck_view){w.p, w.n}, 100), 1001);
    reading x;
    begin(&x, w.p, w.n);
    for (size_t i = 0; i < CK_ARRAY_COUNT(codecs); i++) expect_three(&x, 100 + 3 * (int64_t)i, i == 1);
    assert_int_equal(next(&x), CK_NOTFOUND);
    ck_kafka_batches_give(&x.b, (ck_view){w.p, w.n}); /* the same reader for the next answer */
    expect_three(&x, 100, false);
    end(&x);
}

/* More than the first guess of how large it becomes, in frames whose blocks go on in one another. */
static void test_much_in_little(void **state) {
    (void)state;
    static written r;
    static char long_value[100001];
    memset(long_value, 'x', sizeof long_value - 1);
    for (unsigned codec = GZIP; codec <= ZSTD; codec++) {
        if (codec == SNAPPY) continue;
        r.n = w.n = 0;
        put_record(&r, 0, 0, NULL, long_value, 0);
        put_record(&r, 1, 0, NULL, long_value, 0);
        put_batch(&w, 0, 2, codec, &r);
        assert_true(w.n < 10000);
        reading x;
        begin(&x, w.p, w.n);
        expect(&x, 0, 1000, NULL, long_value);
        expect(&x, 1, 1000, NULL, long_value);
        assert_int_equal(next(&x), CK_NOTFOUND);
        end(&x);
        begin(&x, w.p, w.n);
        x.b.unpacked.bytes_max = 200000; /* there is a ceiling */
        assert_int_equal(next(&x), CK_FULL);
        end(&x);
        for (uint64_t nth = 1;; nth++) { /* without memory it says so, and can be asked again */
            begin(&x, w.p, w.n);
            ck_tracked_heap_fail_nth(x.t.heap, nth);
            ck_status s = next(&x);
            bool fired = ck_tracked_heap_fired(x.t.heap);
            end(&x);
            assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
            if (!fired) break;
        }
    }
}

/* The last batch of an answer may be cut: its records come with the next one. */
static void test_cuts(void **state) {
    (void)state;
    for (unsigned codec = NONE; codec <= ZSTD; codec++) {
        w.n = 0;
        put_three(&w, 10, NONE);
        size_t whole = w.n;
        if (codec == SNAPPY) continue;
        put_three(&w, 13, codec);
        for (size_t n = whole; n < w.n; n++) {
            char *exact = malloc(n); /* a byte behind it is another's */
            memcpy(exact, w.p, n);
            reading x;
            begin(&x, exact, n);
            expect_three(&x, 10, false);
            assert_int_equal(next(&x), CK_NOTFOUND);
            end(&x);
            assert_int_equal(ck_kafka_batches_end((ck_view){exact, n}, 10), 13);
            free(exact);
        }
    }
    assert_int_equal(ck_kafka_batches_end((ck_view){w.p, 20}, 10), 10);
    assert_int_equal(ck_kafka_batches_end((ck_view){0}, 10), 10);
}

static bool is_an_answer(ck_status s) {
    return s == CK_OK || s == CK_NOTFOUND || s == CK_CORRUPT || s == CK_REFUSED || s == CK_FULL;
}

/* Any byte may be any other: reading ends, within the bytes there are. */
static void test_damage(void **state) {
    (void)state;
    for (unsigned codec = NONE; codec <= ZSTD; codec++) {
        if (codec == SNAPPY) continue;
        w.n = 0;
        put_three(&w, 10, codec);
        for (size_t at = 0; at < w.n; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                char *exact = malloc(w.n);
                memcpy(exact, w.p, w.n);
                exact[at] = (char)(exact[at] ^ (1 << bit));
                reading x;
                begin(&x, exact, w.n);
                ck_status s;
                while ((s = next(&x)) == CK_OK) {
                }
                assert_true(is_an_answer(s));
                (void)ck_kafka_batches_end((ck_view){exact, w.n}, 10);
                end(&x);
                free(exact);
            }
        }
    }
}

static void expect_first(ck_status want) {
    reading x;
    begin(&x, w.p, w.n);
    assert_int_equal(next(&x), want);
    end(&x);
}

static void test_what_is_not_read(void **state) {
    (void)state;
    w.n = 0;
    put_three(&w, 10, SNAPPY);
    expect_first(CK_REFUSED);
    w.n = 0;
    put_three(&w, 10, NONE);
    w.p[16] = 1; /* the format before */
    expect_first(CK_REFUSED);
    assert_int_equal(ck_kafka_batches_end((ck_view){w.p, w.n}, 10), 10);
    w.p[16] = 2;
    w.p[11] = 48; /* shorter than its head */
    memset(w.p + 8, 0, 3);
    expect_first(CK_CORRUPT);
    static written r;
    r.n = w.n = 0;
    put_record(&r, 0, 0, NULL, "zero", 0);
    put_batch(&w, 0, 2, NONE, &r); /* says two and has one */
    reading x;
    begin(&x, w.p, w.n);
    expect(&x, 0, 1000, NULL, "zero");
    assert_int_equal(next(&x), CK_CORRUPT);
    end(&x);
    w.n = 0;
    r.n -= 3; /* and one that goes past its end */
    put_batch(&w, 0, 1, NONE, &r);
    expect_first(CK_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codecs), cmocka_unit_test(test_much_in_little),   cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_what_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
