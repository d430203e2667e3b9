/* Frames of the data wire between the processes of a job: the first byte is the frame's kind, the rest its payload.
 * What must hold: what is read can be written again, and means the same. Batches have the columns k BIGINT, s VARCHAR,
 * with weights; that one was read is all that is asked of it beside its bounds. */
#include "fuzz.h"

#include <string.h>

#include "data/batch.h"
#include "runtime/wire.h"
#include "runtime/wire_job.h"

enum { SUBTASKS = 64 };

static bool same(const ck_frame *a, const ck_frame *b) { return a->n == b->n && memcmp(a->p, b->p, a->n) == 0; }

static void check_batch(const ck_batch *b) {
    CK_ASSERT(b->row_count > 0 && b->row_count <= CK_BATCH_ROWS_MAX && b->column_count == 2);
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t row = ck_batch_row(b, i);
        CK_ASSERT(row < b->row_count && (ck_batch_weight(b, row) == 1 || ck_batch_weight(b, row) == -1));
        (void)ck_column_rows_equal(b->columns[1], row, b->columns[1], 0);
    }
}

static void read_batch(ck_mem mem, const ck_frame *f) {
    ck_field fields[] = {{"k", ck_type_simple(CK_TYPE_BIGINT), false}, {"s", ck_type_simple(CK_TYPE_VARCHAR), true}};
    ck_schema schema = {fields, 2};
    ck_wire_codec *codec;
    ck_frame *head;
    CK_ASSERT(ck_wire_codec_new(mem, &schema, true, &codec, NULL) == CK_OK);
    ck_status s = f->kind == CK_WIRE_SCHEMA ? ck_wire_read_schema(codec, f, NULL) : CK_OK;
    if (f->kind == CK_WIRE_BATCH) {
        uint32_t backlog;
        ck_batch *b;
        CK_ASSERT(ck_wire_schema_frame(codec, 1, &head, NULL) == CK_OK);
        ck_frame_free(&head);
        s = ck_wire_read_batch(codec, f, &backlog, &b, NULL);
        if (s == CK_OK) check_batch(b);
        ck_batch_unref(&b);
    }
    CK_ASSERT(s == CK_OK || s == CK_CORRUPT || s == CK_NOMEM);
    ck_wire_codec_free(codec);
}

static void read_control(ck_mem mem, const ck_frame *f, uint32_t edge) {
    ck_event ev;
    if (ck_wire_read_control(f, &ev, NULL) != CK_OK) return;
    ck_frame *again = ck_wire_control_frame(mem, edge, &ev);
    CK_ASSERT(again && again->kind == f->kind && same(again, f));
    ck_frame_free(&again);
}

static void read_report(ck_mem mem, const ck_frame *f) {
    ck_report *r, *twice;
    ck_frame *again, *third;
    if (ck_wire_read_report(mem, f, SUBTASKS, &r, NULL) != CK_OK) return;
    CK_ASSERT(ck_wire_report_frame(mem, r, &again) == CK_OK);
    CK_ASSERT(ck_wire_read_report(mem, again, SUBTASKS, &twice, NULL) == CK_OK);
    CK_ASSERT(ck_wire_report_frame(mem, twice, &third) == CK_OK && same(again, third));
    ck_report_free(r);
    ck_report_free(twice);
    ck_frame_free(&again);
    ck_frame_free(&third);
}

static void read_any(ck_mem mem, const ck_frame *f) {
    ck_wire_hello hello;
    ck_tell tell;
    uint32_t edge, count;
    if (f->kind == CK_WIRE_HELLO && ck_wire_read_hello(f, &hello, NULL) == CK_OK)
        CK_ASSERT(hello.secret.n <= CK_WIRE_SECRET_BYTES_MAX && hello.uuid[CK_WIRE_UUID_BYTES] == 0);
    if (f->kind == CK_WIRE_TELL && ck_wire_read_tell(f, SUBTASKS, &edge, &tell, NULL) == CK_OK) {
        ck_frame *again = ck_wire_tell_frame(mem, edge, &tell);
        CK_ASSERT(again && same(again, f));
        ck_frame_free(&again);
    }
    if (f->kind == CK_WIRE_REPORT) read_report(mem, f);
    if (ck_wire_edge(f, &edge, NULL) != CK_OK) return;
    if (f->kind == CK_WIRE_CREDIT)
        (void)(ck_wire_read_credit(f, &count, NULL) == CK_OK);
    else if (f->kind == CK_WIRE_SCHEMA || f->kind == CK_WIRE_BATCH)
        read_batch(mem, f);
    else
        read_control(mem, f, edge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 64 << 20);
    ck_mem mem = {&budget, CK_MEM_QUEUE};
    ck_frame *f = ck_frame_new(mem, data[0], size - 1);
    if (!f) return 0;
    if (size > 1) memcpy(f->p, data + 1, size - 1);
    read_any(mem, f);
    ck_frame_free(&f);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
