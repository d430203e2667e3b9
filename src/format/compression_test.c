/* gzip and zstd back to bytes in pieces of every size; members and frames in a row; cut and damaged files. */
#include "format/expect_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/vector.h"
#include "format/compression.h"

enum { TEXT_BYTES = 60000, PACKED_BYTES_MAX = 200000 };

typedef struct fixture {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_mem mem;
    uint8_t text[TEXT_BYTES], packed[PACKED_BYTES_MAX];
    size_t packed_bytes;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_int_equal(ck_tracked_heap_new(&f->heap), CK_OK);
    ck_budget_init(&f->budget, ck_tracked_heap_base(f->heap), 0);
    f->mem = (ck_mem){&f->budget, CK_MEM_DECODE};
    uint64_t seed = 5;
    for (size_t i = 0; i < TEXT_BYTES; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        f->text[i] = seed >> 62 ? (uint8_t) "abcdefgh"[seed >> 40 & 7] : (uint8_t)(seed >> 33);
    }
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    assert_int_equal(ck_tracked_heap_live_blocks(f->heap), 0);
    ck_tracked_heap_free(f->heap);
    free(f);
    return 0;
}

/* Appends text[from, from + n) as one member or frame. */
static void pack(fixture *f, ck_compression c, size_t from, size_t n) {
    uint8_t *to = f->packed + f->packed_bytes;
    size_t room = PACKED_BYTES_MAX - f->packed_bytes;
    if (c == CK_COMPRESSION_ZSTD) {
        ZSTD_CCtx *z = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
        size_t made = ZSTD_compress2(z, to, room, f->text + from, n);
        assert_false(ZSTD_isError(made));
        ZSTD_freeCCtx(z);
        f->packed_bytes += made;
        return;
    }
    z_stream z = {.next_in = f->text + from, .avail_in = (unsigned)n, .next_out = to, .avail_out = (unsigned)room};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    f->packed_bytes += z.total_out;
    deflateEnd(&z);
}

/* All of packed through pieces of in_step and out_step bytes. The status of what failed, or of the end. */
static ck_status unpack(fixture *f, ck_compression c, size_t in_step, size_t out_step, uint8_t *out, size_t *out_n,
                        ck_error *err) {
    ck_inflater *i;
    ck_status s = ck_inflater_new(c, f->mem, &i, err);
    if (s != CK_OK) return s;
    *out_n = 0;
    for (size_t at = 0; s == CK_OK && at < f->packed_bytes;) {
        size_t end = f->packed_bytes - at < in_step ? f->packed_bytes : at + in_step;
        do {
            size_t room = TEXT_BYTES + 1 - *out_n < out_step ? TEXT_BYTES + 1 - *out_n : out_step, taken = 0, made = 0;
            s = ck_inflater_run(i, f->packed + at, end - at, &taken, out + *out_n, room, &made, err);
            at += taken;
            *out_n += made;
            assert_true(*out_n <= TEXT_BYTES);
        } while (s == CK_MORE);
        if (s == CK_OK) assert_int_equal(at, end);
    }
    if (s == CK_OK) s = ck_inflater_end(i, err);
    ck_inflater_free(i);
    return s;
}

static void expect_text(fixture *f, ck_compression c, size_t n) {
    static uint8_t out[TEXT_BYTES + 1];
    static const size_t steps[] = {1, 2, 7, 100, 4096, 1 << 20};
    for (size_t a = 0; a < CK_ARRAY_COUNT(steps); a++)
        for (size_t b = 0; b < CK_ARRAY_COUNT(steps); b++) {
            size_t made = 0;
            ck_error err = CK_ERROR_INIT;
            if (unpack(f, c, steps[a], steps[b], out, &made, &err) != CK_OK) fail_msg("%s", err.msg);
            assert_int_equal(made, n);
            assert_memory_equal(out, f->text, n);
        }
}

static const ck_compression kinds[] = {CK_COMPRESSION_GZIP, CK_COMPRESSION_ZSTD};

static void test_pieces(void **state) {
    fixture *f = *state;
    for (int k = 0; k < 2; k++) {
        static const size_t sizes[] = {0, 1, 1000, TEXT_BYTES};
        for (size_t i = 0; i < CK_ARRAY_COUNT(sizes); i++) {
            f->packed_bytes = 0;
            pack(f, kinds[k], 0, sizes[i]);
            expect_text(f, kinds[k], sizes[i]);
        }
    }
}

static void test_members_in_a_row(void **state) {
    fixture *f = *state;
    for (int k = 0; k < 2; k++) {
        f->packed_bytes = 0;
        pack(f, kinds[k], 0, 10);
        pack(f, kinds[k], 10, 0);
        pack(f, kinds[k], 10, 20000);
        pack(f, kinds[k], 20010, 1);
        expect_text(f, kinds[k], 20011);
    }
    f->packed_bytes = 0; /* zeros behind gzip are padding, anything else is not */
    pack(f, CK_COMPRESSION_GZIP, 0, 100);
    memset(f->packed + f->packed_bytes, 0, 600);
    f->packed_bytes += 600;
    expect_text(f, CK_COMPRESSION_GZIP, 100);
    static uint8_t out[TEXT_BYTES + 1];
    size_t made;
    ck_error err = CK_ERROR_INIT;
    f->packed[f->packed_bytes++] = 0x1F;
    assert_int_equal(unpack(f, CK_COMPRESSION_GZIP, 9, 9, out, &made, &err), CK_CORRUPT);
    assert_string_equal(err.msg, "reading gzip: other bytes follow its end");
}

static void test_cut_files(void **state) {
    fixture *f = *state;
    static uint8_t out[TEXT_BYTES + 1];
    for (int k = 0; k < 2; k++) {
        f->packed_bytes = 0;
        pack(f, kinds[k], 0, 300);
        for (size_t whole = f->packed_bytes, n = 0; n < whole; n++) {
            size_t made;
            ck_error err = CK_ERROR_INIT;
            f->packed_bytes = n;
            assert_int_equal(unpack(f, kinds[k], 50, 50, out, &made, &err), CK_CORRUPT);
            assert_non_null(strstr(err.msg, n ? "the file ends in the middle" : "the file is empty"));
            f->packed_bytes = whole;
        }
    }
}

/* Any one changed byte is noticed, or changes nothing (a name or time in gzip's header). */
static void test_damaged_files(void **state) {
    fixture *f = *state;
    static uint8_t out[TEXT_BYTES + 1];
    for (int k = 0; k < 2; k++) {
        f->packed_bytes = 0;
        pack(f, kinds[k], 0, 300);
        int noticed = 0;
        for (size_t i = 0; i < f->packed_bytes; i++) {
            size_t made;
            f->packed[i] ^= 0x55;
            ck_status s = unpack(f, kinds[k], 64, 64, out, &made, NULL);
            if (s == CK_OK)
                assert_true(made == 300 && memcmp(out, f->text, 300) == 0);
            else
                assert_true(s == CK_CORRUPT || s == CK_REFUSED || s == CK_NOMEM);
            noticed += s != CK_OK;
            f->packed[i] ^= 0x55;
        }
        assert_true(noticed + 12 > (int)f->packed_bytes);
    }
    size_t made;
    ck_error err = CK_ERROR_INIT;
    f->packed_bytes = 100;
    memset(f->packed, 'x', 100);
    assert_int_equal(unpack(f, CK_COMPRESSION_GZIP, 10, 10, out, &made, &err), CK_CORRUPT);
    assert_string_equal(err.msg, "reading gzip: this is not gzip");
    assert_int_equal(unpack(f, CK_COMPRESSION_ZSTD, 10, 10, out, &made, &err), CK_CORRUPT);
}

/* A frame that asks for a window of 256 MiB. */
static void test_window_limit(void **state) {
    fixture *f = *state;
    static uint8_t out[TEXT_BYTES + 1];
    static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, (28 - 10) << 3, 1, 0, 0};
    memcpy(f->packed, frame, sizeof frame);
    f->packed_bytes = sizeof frame;
    size_t made;
    assert_int_equal(unpack(f, CK_COMPRESSION_ZSTD, 100, 100, out, &made, NULL), CK_REFUSED);
    f->budget.limit = 1 << 20; /* 128 MiB would be allowed, but the budget says no */
    f->packed[5] = (27 - 10) << 3;
    assert_int_equal(unpack(f, CK_COMPRESSION_ZSTD, 100, 100, out, &made, NULL), CK_NOMEM);
}

static void test_without_memory(void **state) {
    fixture *f = *state;
    static uint8_t out[TEXT_BYTES + 1];
    for (int k = 0; k < 2; k++) {
        f->packed_bytes = 0;
        pack(f, kinds[k], 0, TEXT_BYTES);
        for (uint64_t nth = 1;; nth++) {
            size_t made;
            ck_tracked_heap_fail_nth(f->heap, nth);
            ck_status s = unpack(f, kinds[k], 10000, 10000, out, &made, NULL);
            if (!ck_tracked_heap_fired(f->heap)) {
                assert_int_equal(s, CK_OK);
                break;
            }
            assert_int_equal(s, CK_NOMEM);
            assert_int_equal(ck_tracked_heap_live_blocks(f->heap), 0);
        }
        ck_tracked_heap_fail_nth(f->heap, 0);
    }
}

/* Or whatever this thread does afterwards is slow. */
static void test_no_vector_state_stays(void **state) {
    fixture *f = *state;
    static uint8_t out[TEXT_BYTES + 1];
    for (int k = 0; k < 2; k++) {
        size_t made = 0;
        ck_error err = CK_ERROR_INIT;
        f->packed_bytes = 0;
        pack(f, kinds[k], 0, TEXT_BYTES);
        ck_vector_uppers_clear();
        assert_int_equal(unpack(f, kinds[k], PACKED_BYTES_MAX, TEXT_BYTES, out, &made, &err), CK_OK);
        assert_false(ck_vector_uppers_in_use());
    }
}

static void test_which(void **state) {
    (void)state;
    static const struct {
        const char *option, *path;
        ck_compression c;
    } cases[] = {{NULL, "a/b.json.gz", CK_COMPRESSION_GZIP}, {"auto", "b.zst", CK_COMPRESSION_ZSTD},
                 {"auto", "b.zstd", CK_COMPRESSION_ZSTD},    {NULL, "b.json", CK_COMPRESSION_NONE},
                 {NULL, "gz", CK_COMPRESSION_NONE},          {"none", "b.gz", CK_COMPRESSION_NONE},
                 {"gzip", "b", CK_COMPRESSION_GZIP},         {"zstd", "b.gz", CK_COMPRESSION_ZSTD}};
    ck_compression c;
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        assert_int_equal(ck_compression_of(cases[i].option, cases[i].path, &c, NULL), CK_OK);
        assert_int_equal(c, cases[i].c);
    }
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_compression_of("lz4", "a", &c, &err), CK_INVALID);
    assert_string_equal(err.msg, "compression 'lz4' is not one of auto, none, gzip, zstd");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_members_in_a_row, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_window_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_vector_state_stays, setup, teardown),
        cmocka_unit_test(test_which),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
