/* In-flight files: what goes in comes out, and damage of any kind is named. */
#include "runtime/inflight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "runtime/test_kit.h"

enum { CHECKPOINT = 7, ROWS = 10 };

typedef struct fixture {
    ck_test_proc t;
    ck_field field;
    ck_schema schema;
    ck_inflight_input inputs[2];
    ck_inflight_place place;
    ck_manifest_file file;
    char log[2048];
    size_t n;
} fixture;

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    f.field = (ck_field){"v", ck_type_simple(CK_TYPE_BIGINT), false};
    f.schema = (ck_schema){&f.field, 1};
    f.inputs[0] = (ck_inflight_input){&f.schema, false};
    f.inputs[1] = (ck_inflight_input){&f.schema, true};
    f.place = (ck_inflight_place){&f.t.proc, ck_proc_mem(&f.t.proc, CK_MEM_SNAPSHOT), ck_test_dir(&f.t), f.inputs, 2};
    f.file = (ck_manifest_file){.path = "5/0/inflight-7.cap", .vertex = 5, .kind = CK_FILE_INFLIGHT};
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    ck_test_proc_destroy(&((fixture *)*state)->t);
    return 0;
}

/* Three channels: one with rows, a watermark and rows; one with nothing; one with changes. */
static ck_status fill(fixture *f, ck_inflight **out) {
    ck_mem mem = f->place.mem;
    CK_TRY(ck_inflight_new(mem, 3, out));
    ck_inflight_set_channel(*out, &(ck_inflight_channel){0, 0, 100, false, false});
    ck_inflight_set_channel(*out, &(ck_inflight_channel){0, 1, CK_WATERMARK_MIN, true, true});
    ck_inflight_set_channel(*out, &(ck_inflight_channel){1, 2, 50, true, false});
    for (uint32_t i = 0; i < 3; i++) {
        ck_batch *b = ck_batch_new(mem, 1, ROWS, false, true);
        ck_column *c = b ? ck_column_new(mem, CK_PHYS_I64, ROWS) : NULL;
        for (uint32_t r = 0; c && r < ROWS; r++) c->i64[r] = i * 100 + r, b->weights[r] = r % 3 ? 1 : -1;
        if (c) ck_batch_set_column(b, 0, &c);
        ck_event ev = ck_event_batch(b), mark = ck_event_watermark(200, true);
        ck_status s = b && b->columns[0] ? ck_inflight_add(*out, i < 2 ? 0 : 2, &ev) : CK_NOMEM;
        ck_batch_unref(&b);
        CK_TRY(s);
        if (i == 0) CK_TRY(ck_inflight_add(*out, 0, &mark));
    }
    return CK_OK;
}

static ck_status write(fixture *f, ck_error *err) {
    ck_inflight *in = NULL;
    ck_status s = fill(f, &in);
    if (s == CK_OK) s = ck_inflight_write(&f->place, in, CHECKPOINT, &f->file, err);
    ck_inflight_free(in);
    return s;
}

static void note(fixture *f, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    f->n += (size_t)vsnprintf(f->log + f->n, sizeof f->log - f->n, fmt, ap);
    va_end(ap);
}

static ck_status on_channel(void *arg, const ck_inflight_channel *c, ck_error *err) {
    (void)err;
    note(arg, "c%u/%u %lld%s%s ", c->input, c->number, (long long)c->watermark, c->idle ? "i" : "",
         c->ended ? "e" : "");
    return CK_OK;
}

static ck_status on_event(void *arg, const ck_event *ev, ck_error *err) {
    (void)err;
    if (ev->kind == CK_EVENT_WATERMARK) {
        note(arg, "w%lld%s ", (long long)ev->watermark.value, ev->watermark.idle ? "i" : "");
        return CK_OK;
    }
    ck_batch *b = ev->batch;
    int64_t sum = 0, weight = 0;
    for (uint32_t r = 0; r < b->sel_count; r++) sum += b->columns[0]->i64[r], weight += ck_batch_weight(b, r);
    note(arg, "b%u:%lld:%lld ", b->sel_count, (long long)sum, (long long)weight);
    ck_batch_unref(&b);
    return CK_OK;
}

static ck_status read(fixture *f, ck_error *err) {
    const ck_inflight_reader reader = {f, on_channel, on_event};
    f->n = 0;
    return ck_inflight_read(&f->place, &f->file, CHECKPOINT, &reader, err);
}

static const char *path_of(fixture *f) {
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", ck_test_dir(&f->t), f->file.path);
    return path;
}

static void comes_back(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(write(f, &err), CK_OK);
    assert_true(f->file.bytes > 0);
    assert_int_equal(read(f, &err), CK_OK);
    assert_string_equal(f->log,
                        "c0/0 100 b10:45:10 w200i b10:1045:10 c0/1 -9223372036854775808ie c1/2 50i b10:2045:2 ");
}

/* A file names inputs by a byte; the barriers of those behind are waited for, so it need not. */
static void inputs_it_cannot_name_are_left_out(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    ck_inflight_input inputs[CK_INFLIGHT_INPUTS_MAX + 44];
    ck_inflight *in;
    for (size_t i = 0; i < CK_ARRAY_COUNT(inputs); i++) inputs[i] = f->inputs[0];
    f->place.inputs = inputs;
    f->place.input_count = CK_ARRAY_COUNT(inputs);
    assert_int_equal(ck_inflight_new(f->place.mem, 3, &in), CK_OK);
    ck_inflight_set_channel(in, &(ck_inflight_channel){43, 0, 1, false, false});
    ck_inflight_set_channel(in, &(ck_inflight_channel){CK_INFLIGHT_INPUTS_MAX - 1, 1, 2, false, false});
    ck_inflight_set_channel(in, &(ck_inflight_channel){CK_INFLIGHT_INPUTS_MAX + 43, 2, 3, false, false});
    assert_int_equal(ck_inflight_write(&f->place, in, CHECKPOINT, &f->file, &err), CK_OK);
    ck_inflight_free(in);
    assert_int_equal(read(f, &err), CK_OK);
    assert_string_equal(f->log, "c43/0 1 c255/1 2 ");
}

/* Not durably: a thousand times of that wait for the disk. */
static void overwrite(fixture *f, ck_view text) {
    FILE *file = fopen(path_of(f), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text.p, 1, text.n, file), text.n);
    assert_int_equal(fclose(file), 0);
}

/* Whatever bytes stand there and whatever the manifest says of them: refused with the file's name, or as written. */
static void damage_is_named(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    ck_arena a;
    ck_view good;
    assert_int_equal(write(f, &err), CK_OK);
    assert_int_equal(read(f, &err), CK_OK);
    char want[sizeof f->log];
    memcpy(want, f->log, sizeof want);
    ck_arena_init(&a, f->place.mem, SIZE_MAX);
    assert_int_equal(ck_fs_read_all(&f->t.proc, path_of(f), 1 << 20, &a, &good, &err), CK_OK);
    ck_manifest_file whole = f->file;
    for (size_t i = 0; i < 2 * good.n; i++) {
        bool cut = i >= good.n;
        size_t at = i % good.n;
        char *bad = ck_arena_strndup(&a, good.p, good.n);
        bad[at] = (char)(bad[at] ^ (1 << (at % 8)));
        ck_view text = cut ? (ck_view){good.p, at} : (ck_view){bad, good.n};
        overwrite(f, text);
        f->file = whole;
        ck_error why = CK_ERROR_INIT;
        assert_int_equal(read(f, &why), CK_CORRUPT);
        assert_non_null(strstr(why.msg, "inflight-7.cap"));
        f->file.bytes = text.n; /* a manifest that would believe it */
        f->file.crc32c = ck_crc32c(0, text.p, text.n);
        why = CK_ERROR_INIT;
        ck_status s = read(f, &why);
        if (s == CK_OK)
            assert_true(!cut); /* a byte nobody needs */
        else
            assert_non_null(strstr(why.msg, "inflight-7.cap"));
    }
    ck_arena_destroy(&a);
}

static void any_allocation_may_fail(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    for (uint64_t n = 1;; n++) {
        char path[64];
        snprintf(path, sizeof path, "5/0/inflight-%llu.cap", (unsigned long long)n + 10);
        f->file.path = path;
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status s = write(f, &err);
        if (s == CK_OK) s = read(f, &err);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        assert_int_equal(ck_tracked_heap_live_blocks(f->t.heap), 0);
        if (!fired) return;
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {T(comes_back), T(inputs_it_cannot_name_are_left_out), T(damage_is_named),
                                       T(any_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
