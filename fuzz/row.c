/* Packed values. The input is a type text (a ROW), a newline, and the bytes of one value of it. What is accepted
 * encodes and decodes again to equal values, and the second encoding is the same as the first. */
#include "fuzz.h"

#include <string.h>

#include "data/row.h"

enum { FIELDS_MAX = 64 };

typedef struct values {
    ck_column_builder builders[FIELDS_MAX], *list[FIELDS_MAX];
    ck_column *columns[FIELDS_MAX];
} values;

static ck_status decode(const ck_type *t, ck_view bytes, ck_mem mem, values *v) {
    memset(v, 0, sizeof *v);
    for (uint32_t i = 0; i < t->field_count; i++) {
        CK_ASSERT(ck_column_builder_init(&v->builders[i], mem, t->fields[i].type, 1) == CK_OK);
        v->list[i] = &v->builders[i];
    }
    ck_status s = ck_row_decode(t->fields, t->field_count, bytes, v->list);
    for (uint32_t i = 0; i < t->field_count; i++) {
        CK_ASSERT(v->builders[i].length == (s == CK_OK));
        if (s == CK_OK) v->columns[i] = ck_column_builder_finish(&v->builders[i]);
        ck_column_builder_destroy(&v->builders[i]);
    }
    return s;
}

static void again(const ck_type *t, ck_mem mem, const values *first) {
    values second;
    ck_bytes a, b;
    ck_bytes_init(&a, mem, 64 << 20);
    ck_bytes_init(&b, mem, 64 << 20);
    CK_ASSERT(ck_row_encode(t->fields, t->field_count, (const ck_column *const *)first->columns, 0, &a) == CK_OK);
    CK_ASSERT(decode(t, ck_bytes_as_view(&a), mem, &second) == CK_OK);
    for (uint32_t i = 0; i < t->field_count; i++)
        CK_ASSERT(ck_column_rows_equal(first->columns[i], 0, second.columns[i], 0));
    CK_ASSERT(ck_row_encode(t->fields, t->field_count, (const ck_column *const *)second.columns, 0, &b) == CK_OK);
    CK_ASSERT(ck_view_eq(ck_bytes_as_view(&a), ck_bytes_as_view(&b)));
    for (uint32_t i = 0; i < t->field_count; i++) ck_column_unref(&second.columns[i]);
    ck_bytes_destroy(&a);
    ck_bytes_destroy(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    if (!newline) return 0;
    ck_view text = {(const char *)data, (size_t)(newline - data)};
    ck_view bytes = {(const char *)newline + 1, size - text.n - 1};
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_mem mem = {&budget, CK_MEM_QUEUE};
    ck_arena arena;
    ck_arena_init(&arena, mem, 16 << 20);
    const ck_type *t = NULL;
    if (ck_type_parse(&arena, text, &t, NULL) == CK_OK && t->kind == CK_TYPE_ROW && t->field_count <= FIELDS_MAX) {
        values v;
        ck_status s = decode(t, bytes, mem, &v);
        CK_ASSERT(s == CK_OK || s == CK_CORRUPT);
        if (s == CK_OK) again(t, mem, &v);
        for (uint32_t i = 0; i < t->field_count; i++) ck_column_unref(&v.columns[i]);
    }
    ck_arena_destroy(&arena);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
