#include "runtime/wire_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "os/test_proc.h"
#include "runtime/wire.h"

enum { SUBTASKS = 9 };

typedef struct fixture {
    ck_test_proc t;
    ck_mem mem;
} fixture;

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    f.mem = ck_proc_mem(&f.t.proc, CK_MEM_PLAN);
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_test_proc_destroy(&f->t);
    return 0;
}

/* ---- tells ---- */

static void tells_go_over(void **state) {
    fixture *f = *state;
    for (int kind = CK_TELL_TRIGGER; kind <= CK_TELL_OVERTAKE; kind++) {
        ck_tell t = {.kind = (ck_tell_kind)kind,
                     .barrier = CK_BARRIER_FINAL,
                     .stop = kind & 1,
                     .overtakes = kind & 2,
                     .anew = kind & 1,
                     .checkpoint = 1ULL << 40},
                got;
        uint32_t subtask;
        ck_frame *frame = ck_wire_tell_frame(f->mem, 8, &t);
        assert_int_equal(ck_wire_read_tell(frame, SUBTASKS, &subtask, &got, NULL), CK_OK);
        assert_int_equal(subtask, 8);
        assert_int_equal(got.kind, kind);
        assert_int_equal(got.barrier, CK_BARRIER_FINAL);
        assert_true(got.stop == t.stop && got.overtakes == t.overtakes && got.anew == t.anew);
        assert_int_equal(got.checkpoint, 1ULL << 40);
        assert_int_equal(ck_wire_read_tell(frame, 8, &subtask, &got, NULL), CK_CORRUPT); /* nobody has number 8 */
        for (size_t n = frame->n; n-- > 0;) {
            frame->n = n;
            assert_int_equal(ck_wire_read_tell(frame, SUBTASKS, &subtask, &got, NULL), CK_CORRUPT);
        }
        ck_frame_free(&frame);
    }
}

/* ---- reports ---- */

static const uint64_t ops[] = {1, UINT64_MAX};
static ck_manifest_file files[] = {
    {.path = "v1/0/1.base",
     .bytes = 1ULL << 33,
     .crc32c = 7,
     .vertex = 3,
     .subtask = 2,
     .ops = ops,
     .op_count = 2,
     .key_groups = {5, 9},
     .kind = CK_FILE_BASE},
    {.path = "v1/0/2.delta", .bytes = 1, .crc32c = 0xffffffff, .kind = CK_FILE_DELTA, .base = "v1/0/1.base"},
};
static ck_committable items[] = {{"out/part-1", 2, "{\"a\":1}"}, {"", 0, ""}};
static ck_op_committables lists[] = {{3, items, 2}, {0, items, 0}};

static ck_report an_ack(ck_subtask_files *of) {
    *of = (ck_subtask_files){.files = files, .file_count = 2};
    return (ck_report){.kind = CK_REPORT_ACK,
                       .subtask = 4,
                       .checkpoint = 77,
                       .had_ended = true,
                       .files = of,
                       .committables = lists,
                       .committables_count = 2};
}

static void same_file(const ck_manifest_file *a, const ck_manifest_file *b) {
    assert_string_equal(a->path, b->path);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->crc32c, b->crc32c);
    assert_int_equal(a->vertex, b->vertex);
    assert_int_equal(a->subtask, b->subtask);
    assert_int_equal(a->key_groups.first, b->key_groups.first);
    assert_int_equal(a->key_groups.last, b->key_groups.last);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->op_count, b->op_count);
    if (a->op_count) assert_memory_equal(a->ops, b->ops, a->op_count * sizeof *a->ops);
    assert_int_equal(a->base == NULL, b->base == NULL);
    if (a->base) assert_string_equal(a->base, b->base);
}

static void acknowledgements_go_over(void **state) {
    fixture *f = *state;
    ck_subtask_files of;
    ck_report r = an_ack(&of), *got;
    ck_frame *frame;
    assert_int_equal(ck_wire_report_frame(f->mem, &r, &frame), CK_OK);
    assert_int_equal(ck_wire_read_report(f->mem, frame, SUBTASKS, &got, NULL), CK_OK);
    assert_int_equal(got->kind, CK_REPORT_ACK);
    assert_int_equal(got->subtask, 4);
    assert_int_equal(got->checkpoint, 77);
    assert_true(got->had_ended);
    assert_int_equal(got->files->file_count, 2);
    for (int i = 0; i < 2; i++) same_file(&files[i], &got->files->files[i]);
    assert_int_equal(got->committables_count, 2);
    assert_int_equal(got->committables[0].op, 3);
    assert_int_equal(got->committables[0].count, 2);
    assert_int_equal(got->committables[1].count, 0);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(got->committables[0].items[i].name, items[i].name);
        assert_string_equal(got->committables[0].items[i].payload, items[i].payload);
        assert_int_equal(got->committables[0].items[i].checkpoint, items[i].checkpoint);
    }
    ck_report_free(got);
    ck_frame_free(&frame);
}

static void failures_go_over_with_their_words(void **state) {
    fixture *f = *state;
    for (int kind = CK_REPORT_NACK; kind <= CK_REPORT_FAILED; kind++) {
        ck_report r = {.kind = (ck_report_kind)kind, .subtask = 1, .error = CK_ERROR_INIT}, *got;
        bool words = kind == CK_REPORT_NACK || kind == CK_REPORT_FAILED;
        ck_frame *frame;
        ck_fail(&r.error, CK_DATA, "a record that does not fit");
        r.error.fatal = true;
        assert_int_equal(ck_wire_report_frame(f->mem, &r, &frame), CK_OK);
        assert_int_equal(ck_wire_read_report(f->mem, frame, SUBTASKS, &got, NULL), CK_OK);
        assert_int_equal(got->kind, kind);
        assert_int_equal(got->error.status, words ? CK_DATA : CK_OK);
        assert_int_equal(got->error.fatal, words);
        assert_false(got->error.retriable);
        assert_string_equal(got->error.msg, words ? r.error.msg : "");
        ck_report_free(got);
        ck_frame_free(&frame);
    }
}

static void damaged_reports_are_refused(void **state) {
    fixture *f = *state;
    ck_subtask_files of;
    ck_report r = an_ack(&of), *got;
    ck_frame *frame;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_wire_report_frame(f->mem, &r, &frame), CK_OK);
    size_t whole = frame->n;
    for (frame->n = 0; frame->n < whole; frame->n++) { /* cut short anywhere */
        assert_int_equal(ck_wire_read_report(f->mem, frame, SUBTASKS, &got, &err), CK_CORRUPT);
        assert_null(got);
    }
    for (size_t i = 0; i < whole * 8; i++) { /* any bit */
        frame->p[i / 8] ^= (uint8_t)(1u << i % 8);
        ck_status s = ck_wire_read_report(f->mem, frame, SUBTASKS, &got, &err);
        assert_true(s == CK_OK || s == CK_CORRUPT);
        ck_report_free(got);
        frame->p[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    ck_frame_free(&frame);
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    ck_subtask_files of;
    ck_report r = an_ack(&of), *got = NULL;
    ck_frame *frame = NULL;
    for (uint64_t n = 1;; n++) {
        ck_error err = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status s = ck_wire_report_frame(f->mem, &r, &frame);
        if (s == CK_OK) s = ck_wire_read_report(f->mem, frame, SUBTASKS, &got, &err);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        ck_report_free(got);
        ck_frame_free(&frame);
        if (!fired) break;
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(tells_go_over),
        T(acknowledgements_go_over),
        T(failures_go_over_with_their_words),
        T(damaged_reports_are_refused),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
