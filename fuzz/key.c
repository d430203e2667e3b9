/* User keys and order keys. The input is a type text (a ROW of the key columns), a newline, a byte that says which kind
 * of key and how it is ordered, and the bytes of one key. What is accepted encodes and decodes again to equal values,
 * and hashes as its bytes do. */
#include "fuzz.h"

#include <string.h>

#include "data/key.h"

enum { FIELDS_MAX = 16 };

typedef struct target {
    const ck_type *t;
    ck_mem mem;
    uint8_t mode; /* 1: order key; 2: descending; 4: NULLs first; 8: nullable is turned around */
    const ck_type *types[FIELDS_MAX];
    uint32_t columns[FIELDS_MAX];
    ck_order_spec order[FIELDS_MAX];
} target;

static void open_target(target *x) {
    for (uint32_t i = 0; i < x->t->field_count; i++) {
        const ck_field *f = &x->t->fields[i];
        x->types[i] = f->type;
        x->columns[i] = i;
        bool nullable = (f->nullable ^ (x->mode >> 3 & 1)) || f->type->kind == CK_TYPE_NULL;
        x->order[i] = (ck_order_spec){i, f->type, nullable, x->mode & 2, x->mode & 4};
    }
}

/* One row, or NULL when the bytes are refused. */
static ck_batch *decode(const target *x, ck_view key) {
    ck_batch_builder b;
    ck_column_builder *list[FIELDS_MAX];
    ck_schema schema = {x->t->fields, x->t->field_count};
    CK_ASSERT(ck_batch_builder_init(&b, x->mem, &schema, 1) == CK_OK);
    for (uint32_t i = 0; i < schema.field_count; i++) list[i] = &b.columns[i];
    ck_status s = x->mode & 1 ? ck_order_decode(x->order, schema.field_count, key, list)
                              : ck_key_decode(x->types, schema.field_count, key, list);
    CK_ASSERT(s == CK_OK || s == CK_CORRUPT);
    for (uint32_t i = 0; i < schema.field_count; i++) CK_ASSERT(b.columns[i].length == (s == CK_OK));
    if (s == CK_OK) ck_batch_builder_row(&b, 1);
    ck_batch *out = s == CK_OK ? ck_batch_builder_finish(&b) : NULL;
    ck_batch_builder_destroy(&b);
    return out;
}

static void again(const target *x, const ck_batch *b) {
    ck_key_spec spec = {x->columns, x->types, x->t->field_count};
    ck_bytes bytes;
    ck_bytes_init(&bytes, x->mem, 4 << 20);
    ck_status s =
        x->mode & 1 ? ck_order_encode(x->order, x->t->field_count, b, 0, &bytes) : ck_key_encode(&spec, b, 0, &bytes);
    CK_ASSERT(s == CK_OK || s == CK_FULL); /* a key that was not canonical may be longer as such */
    if (s == CK_OK) {
        ck_batch *second = decode(x, ck_bytes_as_view(&bytes));
        uint64_t fnv, one, two;
        uint16_t low;
        CK_ASSERT(second);
        for (uint32_t i = 0; i < x->t->field_count; i++)
            CK_ASSERT(ck_column_rows_equal(b->columns[i], 0, second->columns[i], 0));
        ck_key_fnv(&spec, b, &fnv);
        ck_key_fnv16(&spec, b, &low);
        CK_ASSERT(low == (uint16_t)fnv);
        if (!(x->mode & 1)) CK_ASSERT(fnv == ck_fnv1a(bytes.p, bytes.n));
        ck_key_hash(&spec, b, 7, &one);
        ck_key_hash(&spec, second, 7, &two);
        CK_ASSERT(one == two);
        ck_batch_unref(&second);
    }
    ck_bytes_destroy(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    if (!newline || (size_t)(newline - data) + 2 > size) return 0;
    ck_view text = {(const char *)data, (size_t)(newline - data)};
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    target x = {.mem = {&budget, CK_MEM_QUEUE}, .mode = newline[1]};
    ck_arena arena;
    ck_arena_init(&arena, x.mem, 16 << 20);
    if (ck_type_parse(&arena, text, &x.t, NULL) == CK_OK && x.t->kind == CK_TYPE_ROW &&
        x.t->field_count <= FIELDS_MAX) {
        open_target(&x);
        ck_batch *b = decode(&x, (ck_view){(const char *)newline + 2, size - text.n - 2});
        if (b) {
            again(&x, b);
            ck_batch_unref(&b);
        }
    }
    ck_arena_destroy(&arena);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
