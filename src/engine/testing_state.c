/* State of a test: copied as a checkpoint and a restore would, and printed. */
#include <stdlib.h>

#include "engine/testing_int.h"
#include "data/row.h"
#include "state/mark.h"

enum { PRINTED_MAX = 128 };

ck_status ck_test_store_new(clink_test *t, ck_state_store **out) {
    ck_state_config cfg = {&t->engine->proc,
                           ck_proc_mem(&t->engine->proc, CK_MEM_STATE),
                           t->settings.key_groups,
                           ck_key_group_range_for_subtask(0, 1, t->settings.key_groups),
                           12345,
                           true};
    return ck_state_store_new(&cfg, out, &t->error);
}

static ck_status copy_rows(clink_test *t, ck_state_mark *m, ck_state_store *to) {
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t n = 0;
    CK_TRY(ck_mark_scan_new(m, CK_MARK_BASE, &scan, &t->error));
    ck_status s;
    while ((s = ck_mark_scan_next(scan, &rows, &n, &t->error)) == CK_OK && n)
        for (uint32_t i = 0; s == CK_OK && i < n; i++)
            s = ck_state_restore_put(to, rows[i].op_id, (ck_stored_row){rows[i].key, rows[i].value}, &t->error);
    ck_mark_scan_free(scan);
    return s;
}

ck_status ck_test_store_copy(clink_test *t, ck_state_store *from, ck_state_store *to) {
    ck_state_mark *m;
    const ck_marked_slot *slots;
    CK_TRY(ck_state_mark_take(from, 0, &m, &t->error));
    uint32_t n = ck_state_mark_slots(m, &slots);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < n; i++)
        s = ck_state_restore_slot(to, slots[i].op_id, slots[i].uid, slots[i].op_type, slots[i].schema, &t->error);
    if (s == CK_OK) s = copy_rows(t, m, to);
    ck_state_mark_release(m);
    return s == CK_OK ? ck_state_restore_end(to, &t->error) : s;
}

/* ---- printing ---- */

/* Key, order and value fields in a row. */
static const ck_schema *fields_of(ck_arena *a, const ck_slot_schema *s) {
    uint32_t n = s->partition_count + s->order_count + s->value_count, at = 0;
    ck_schema *out = CK_ARENA_NEW(a, ck_schema);
    ck_field *fields = ck_arena_array(a, n + 1u, sizeof *fields);
    if (!out || !fields) return NULL;
    for (uint32_t i = 0; i < s->partition_count; i++) fields[at++] = s->partition[i];
    for (uint32_t i = 0; i < s->order_count; i++) fields[at++] = s->order[i].field;
    for (uint32_t i = 0; i < s->value_count; i++) fields[at++] = s->values[i];
    *out = (ck_schema){fields, n};
    return out;
}

/* docs/formats.md, "Stored key": behind the key group, '<slot>|', and with order columns the length of the user key. */
static ck_status decode(clink_test *t, const ck_slot_schema *s, const ck_mark_row *row, ck_batch_builder *out) {
    uint32_t groups = t->settings.key_groups <= 128 ? 1 : 2, n = s->partition_count + s->order_count;
    size_t head = groups + strlen(s->slot) + 1;
    ck_column_builder *to[PRINTED_MAX];
    const ck_type *types[PRINTED_MAX];
    ck_order_spec order[PRINTED_MAX];
    if (out->schema->field_count > PRINTED_MAX || row->key.n < head) return CK_CORRUPT;
    for (uint32_t i = 0; i < out->schema->field_count; i++) to[i] = &out->columns[i];
    for (uint32_t i = 0; i < s->partition_count; i++) types[i] = s->partition[i].type;
    ck_view key = {row->key.p + head, row->key.n - head}, by = {0};
    if (s->order_count) {
        if (key.n < 4) return CK_CORRUPT;
        const uint8_t *p = (const uint8_t *)key.p;
        size_t bytes = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
        if (bytes > key.n - 4) return CK_CORRUPT;
        by = (ck_view){key.p + 4 + bytes, key.n - 4 - bytes};
        key = (ck_view){key.p + 4, bytes};
    }
    CK_TRY(ck_key_decode(types, s->partition_count, key, to));
    for (uint32_t i = 0; i < s->order_count; i++) {
        const ck_order_field *f = &s->order[i];
        order[i] = (ck_order_spec){i, f->field.type, f->field.nullable, f->descending, f->nulls_first};
    }
    if (s->order_count) CK_TRY(ck_order_decode(order, s->order_count, by, to + s->partition_count));
    CK_TRY(ck_row_decode(s->values, s->value_count, row->value, to + n));
    ck_batch_builder_row(out, 1);
    return CK_OK;
}

static bool is_of(const ck_slot_schema *s, uint32_t groups, ck_view key) {
    size_t n = strlen(s->slot);
    return key.n > groups + n && memcmp(key.p + groups, s->slot, n) == 0 && key.p[groups + n] == '|';
}

static int line_order(const void *x, const void *y) { return strcmp(*(char *const *)x, *(char *const *)y); }

/* A table has no order. */
static ck_status sort_lines(clink_test *t) {
    size_t n = 0, at = 0;
    char *copy = ck_arena_strndup(&t->calls, t->text.p ? t->text.p : "", t->text.n);
    if (!copy) return CK_NOMEM;
    for (char *p = copy; *p; p++) n += *p == '\n';
    char **lines = ck_arena_array(&t->calls, n + 1, sizeof *lines);
    if (!lines) return CK_NOMEM;
    for (char *p = copy; at < n; p += strlen(p) + 1) {
        *strchr(p, '\n') = 0;
        lines[at++] = p;
    }
    qsort(lines, n, sizeof *lines, line_order);
    ck_bytes_clear(&t->text);
    for (size_t i = 0; i < n; i++) {
        CK_TRY(ck_bytes_str(&t->text, lines[i]));
        CK_TRY(ck_bytes_char(&t->text, '\n'));
    }
    return CK_OK;
}

static ck_status print(clink_test *t, ck_batch_builder *b, ck_encoder *e) {
    ck_batch *batch = ck_batch_builder_finish(b);
    if (!batch) return CK_NOMEM;
    ck_status s = ck_encoder_rows(e, batch, NULL, &t->text, NULL);
    ck_batch_unref(&batch);
    return s;
}

static ck_status print_rows(clink_test *t, ck_state_mark *m, uint64_t op_id, const ck_slot_schema *schema,
                            ck_batch_builder *b, ck_encoder *e) {
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t n = 0, groups = t->settings.key_groups <= 128 ? 1 : 2;
    CK_TRY(ck_mark_scan_new(m, CK_MARK_BASE, &scan, &t->error));
    ck_status s;
    while ((s = ck_mark_scan_next(scan, &rows, &n, &t->error)) == CK_OK && n)
        for (uint32_t i = 0; s == CK_OK && i < n; i++) {
            if (rows[i].op_id != op_id || !is_of(schema, groups, rows[i].key)) continue;
            s = decode(t, schema, &rows[i], b);
            if (s == CK_OK && b->row_count == b->capacity) s = print(t, b, e);
        }
    if (s == CK_OK && b->row_count) s = print(t, b, e);
    ck_mark_scan_free(scan);
    return s == CK_OK ? sort_lines(t) : s;
}

static ck_status print_schema(clink_test *t, ck_state_mark *m, uint64_t op_id, const ck_slot_schema *schema) {
    const ck_schema *fields = fields_of(&t->calls, schema);
    const ck_encoder_spec spec = {.format = "json", .schema = fields};
    ck_batch_builder b;
    ck_encoder *e;
    if (!fields || ck_batch_builder_init(&b, t->mem, fields, 1024) != CK_OK) return ck_nomem(&t->error, t->mem, 1024);
    ck_status s = ck_encoder_new(&spec, t->mem, &e, &t->error);
    if (s == CK_OK) {
        s = print_rows(t, m, op_id, schema, &b, e);
        if (s == CK_NOMEM) s = ck_nomem(&t->error, t->mem, 0);
        ck_encoder_free(e);
    }
    ck_batch_builder_destroy(&b);
    return s;
}

ck_status ck_test_print_slot(clink_test *t, const char *uid, const char *slot) {
    ck_state_mark *m;
    const ck_marked_slot *slots;
    ck_bytes_clear(&t->text);
    CK_TRY(ck_state_mark_take(t->store, 0, &m, &t->error));
    uint32_t n = ck_state_mark_slots(m, &slots), i = 0;
    while (i < n && (strcmp(slots[i].uid, uid) != 0 || strcmp(slots[i].schema->slot, slot) != 0 ||
                     slots[i].schema->mode != CK_SLOT_KEYED))
        i++;
    ck_status s = i < n ? print_schema(t, m, slots[i].op_id, slots[i].schema)
                        : ck_fail(&t->error, CK_INVALID, "operator \"%s\" keeps nothing in a slot \"%s\"", uid, slot);
    ck_state_mark_release(m);
    ck_arena_reset_to(&t->calls, (ck_arena_mark){0});
    return s;
}
