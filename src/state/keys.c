/* Key fields: hashing those of stored rows, comparing rows with the keys of a batch, setting them in new rows. The
 * specialised paths for common keys are in batch.c; what is here works for every type. */
#include "state/table_int.h"

#include "base/hash.h"
#include "data/row.h"
#include "state/stored_int.h"

enum { PREFETCH_AHEAD = 12 };

/* ---- hashes of stored rows ---- */

static uint64_t field_hash(const ck_table *t, const ck_row *row, const ck_shape_field *f) {
    uint64_t seed = t->seed;
    if (ck_row_null(row, f->null_bit)) return ck_value_hash_null(seed);
    switch (f->phys) {
    case CK_PHYS_NULL: return ck_value_hash_null(seed);
    case CK_PHYS_BOOL: return ck_value_hash_i64(seed, ck_row_bool(row, f->offset));
    case CK_PHYS_I64: return ck_value_hash_i64(seed, ck_row_i64(row, f->offset));
    case CK_PHYS_F64: return ck_value_hash_f64(seed, ck_row_f64(row, f->offset));
    case CK_PHYS_I128: return ck_value_hash_i128(seed, ck_row_i128(row, f->offset), f->type->scale);
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return ck_value_hash_str(seed, ck_var_get(t, row, f->offset));
}

/* Of the first `count` key fields. */
static uint64_t hash_of(const ck_table *t, const ck_row *row, uint32_t count) {
    const ck_shape *s = t->shape;
    if (count == 0) return ck_hash_u64(t->seed, 0);
    if (count == 1) return field_hash(t, row, &s->fields[s->key_fields[0]]);
    uint64_t h = t->seed;
    for (uint32_t i = 0; i < count; i++) h = ck_hash_combine(h, field_hash(t, row, &s->fields[s->key_fields[i]]));
    return h;
}

uint64_t ck_row_hash(const ck_table *t, const ck_row *row) { return hash_of(t, row, t->shape->key_count); }
uint64_t ck_row_list_hash(const ck_table *t, const ck_row *row) { return hash_of(t, row, t->shape->partition_count); }

static void hash_refs_i64(const ck_table *t, const uint32_t *refs, uint32_t n, uint64_t *hashes) {
    const ck_shape_field *f = &t->shape->fields[t->shape->key_fields[0]];
    for (uint32_t i = 0; i < n; i++) __builtin_prefetch(ck_row_of(t, refs[i]));
    for (uint32_t i = 0; i < n; i++) {
        const ck_row *row = ck_row_of(t, refs[i]);
        hashes[i] = ck_row_null(row, f->null_bit) ? ck_value_hash_null(t->seed)
                                                  : ck_value_hash_i64(t->seed, ck_row_i64(row, f->offset));
    }
}

static void hash_refs(const ck_table *t, ck_key_path path, uint32_t count, const uint32_t *refs, uint32_t n,
                      uint64_t *hashes) {
    if (path == CK_PATH_I64) {
        hash_refs_i64(t, refs, n, hashes);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i + PREFETCH_AHEAD < n) __builtin_prefetch(ck_row_of(t, refs[i + PREFETCH_AHEAD]));
        hashes[i] = hash_of(t, ck_row_of(t, refs[i]), count);
    }
}

void ck_table_hash_refs(void *table, const uint32_t *refs, uint32_t n, uint64_t *hashes) {
    const ck_table *t = table;
    hash_refs(t, t->shape->path, t->shape->key_count, refs, n, hashes);
}

void ck_table_list_hash_refs(void *table, const uint32_t *refs, uint32_t n, uint64_t *hashes) {
    const ck_table *t = table;
    hash_refs(t, t->shape->list_path, t->shape->partition_count, refs, n, hashes);
}

/* ---- keys of a batch ---- */

/* Nested key values are compared and stored as packed bytes: made here for all live rows at once. */
static ck_status pack_nested(ck_key_source *s, const ck_key_column *kc, uint32_t *ends) {
    const ck_batch *b = s->keys->batch;
    ck_field f = {.name = "key", .type = kc->f->type, .nullable = false};
    for (uint32_t k = 0; k < s->keys->n; k++) {
        uint32_t row = ck_batch_row(b, k);
        if (!ck_column_is_null(kc->c, row)) CK_TRY(ck_row_encode(&f, 1, &kc->c, row, &s->packed_values));
        if (s->packed_values.n > UINT32_MAX) return CK_FULL;
        ends[k] = (uint32_t)s->packed_values.n;
    }
    return CK_OK;
}

static ck_view packed_value(const ck_key_source *s, const ck_key_column *kc, uint32_t k) {
    uint32_t begin = kc->packed[k], end = kc->packed[k + 1];
    return (ck_view){s->packed_values.p + begin + 4, end - begin - 4}; /* without the length in front */
}

static ck_status check_nulls(const ck_table *t, const ck_key_source *s, const ck_key_column *kc, ck_error *err) {
    if (kc->f->null_bit != UINT32_MAX || (kc->c->phys != CK_PHYS_NULL && !kc->c->validity)) return CK_OK;
    for (uint32_t k = 0; k < s->keys->n; k++)
        if (ck_column_is_null(kc->c, ck_batch_row(s->keys->batch, k)))
            return ck_fail(err, CK_INVALID, "slot \"%s\": NULL in the key column \"%s\", which is NOT NULL",
                           t->shape->schema->slot, kc->f->name);
    return CK_OK;
}

static ck_status pack_all(ck_key_source *s, ck_table *t, uint32_t nested) {
    uint32_t n = s->keys->n;
    s->packed_bytes = (size_t)nested * (n + 1) * sizeof(uint32_t);
    s->packed = ck_alloc(t->mem, s->packed_bytes);
    if (!s->packed) return CK_NOMEM;
    uint32_t *ends = s->packed;
    for (uint32_t i = 0; i < s->count; i++) {
        ck_key_column *kc = &s->columns[i];
        if (kc->f->phys != CK_PHYS_LIST && kc->f->phys != CK_PHYS_STRUCT) continue;
        ends[0] = (uint32_t)s->packed_values.n;
        kc->packed = ends;
        CK_TRY(pack_nested(s, kc, ends + 1));
        ends += n + 1;
    }
    return CK_OK;
}

ck_status ck_key_source_init(ck_key_source *s, ck_table *t, const ck_keys *keys, bool list, ck_error *err) {
    const ck_shape *shape = t->shape;
    s->keys = keys, s->count = list ? shape->partition_count : shape->key_count;
    s->path = list ? shape->list_path : shape->path, s->index = list ? &t->lists : &t->index;
    CK_DASSERT(keys->spec->count == s->count && keys->n == keys->batch->sel_count);
    s->columns = s->inline_columns;
    s->columns_bytes = 0, s->packed = NULL, s->packed_bytes = 0;
    ck_bytes_init(&s->packed_values, t->mem, UINT32_MAX);
    if (s->count > CK_KEY_COLUMNS_INLINE) {
        s->columns_bytes = s->count * sizeof *s->columns;
        s->columns = ck_alloc(t->mem, s->columns_bytes);
        if (!s->columns) return ck_nomem(err, t->mem, s->columns_bytes);
    }
    uint32_t nested = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const ck_shape_field *f = &shape->fields[shape->key_fields[i]];
        const ck_column *c = keys->batch->columns[keys->spec->columns[i]];
        bool nullable = f->null_bit != UINT32_MAX;
        s->columns[i] = (ck_key_column){.c = c, .f = f, .nullable = nullable};
        nested += f->phys == CK_PHYS_LIST || f->phys == CK_PHYS_STRUCT;
        CK_TRY(check_nulls(t, s, &s->columns[i], err));
    }
    if (nested && pack_all(s, t, nested) != CK_OK) return ck_nomem(err, t->mem, s->packed_bytes);
    return CK_OK;
}

void ck_key_source_destroy(ck_key_source *s, ck_table *t) {
    if (s->columns != s->inline_columns) ck_free(t->mem, s->columns, s->columns_bytes);
    ck_free(t->mem, s->packed, s->packed_bytes);
    ck_bytes_destroy(&s->packed_values);
    s->columns = s->inline_columns, s->packed = NULL;
}

static ck_view key_string(const ck_key_source *s, const ck_key_column *kc, uint32_t k, uint32_t row) {
    return kc->f->phys == CK_PHYS_VIEW ? ck_column_str(kc->c, row) : packed_value(s, kc, k);
}

static bool field_equal(const ck_table *t, const ck_key_source *s, const ck_key_column *kc, uint32_t k, uint32_t b_row,
                        const ck_row *row) {
    const ck_shape_field *f = kc->f;
    const ck_column *c = kc->c;
    if (kc->nullable) {
        bool a = ck_column_is_null(c, b_row), b = ck_row_null(row, f->null_bit);
        if (a || b) return a && b;
    }
    switch (f->phys) {
    case CK_PHYS_NULL: return true;
    case CK_PHYS_BOOL: return ck_bit_get(c->bits, b_row) == ck_row_bool(row, f->offset);
    case CK_PHYS_I64: return c->i64[b_row] == ck_row_i64(row, f->offset);
    case CK_PHYS_F64: {
        double v = ck_double_canonical(c->f64[b_row]); /* stored canonical: bits decide, NaN too */
        return memcmp(&v, row + f->offset, sizeof v) == 0;
    }
    case CK_PHYS_I128: return c->i128[b_row] == ck_row_i128(row, f->offset);
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: break;
    }
    return ck_view_eq(key_string(s, kc, k, b_row), ck_var_get(t, row, f->offset));
}

bool ck_key_equal_any(const ck_table *t, const ck_key_source *s, uint32_t k, const ck_row *row) {
    uint32_t b_row = ck_batch_row(s->keys->batch, k);
    for (uint32_t i = 0; i < s->count; i++)
        if (!field_equal(t, s, &s->columns[i], k, b_row, row)) return false;
    return true;
}

ck_status ck_key_set(ck_table *t, const ck_key_source *s, uint32_t k, ck_row *row) {
    uint32_t b_row = ck_batch_row(s->keys->batch, k);
    if (t->is_bucket) ck_row_set_i64(row, t->shape->fields[t->shape->partition_count].offset, t->bucket);
    for (uint32_t i = 0; i < s->count; i++) {
        const ck_key_column *kc = &s->columns[i];
        const ck_shape_field *f = kc->f;
        const ck_column *c = kc->c;
        if (kc->nullable && ck_column_is_null(c, b_row)) {
            ck_row_set_null(row, f->null_bit, true);
            continue;
        }
        switch (f->phys) {
        case CK_PHYS_NULL: break;
        case CK_PHYS_BOOL: ck_row_set_bool(row, f->offset, ck_bit_get(c->bits, b_row)); break;
        case CK_PHYS_I64: ck_row_set_i64(row, f->offset, c->i64[b_row]); break;
        case CK_PHYS_F64: ck_row_set_f64(row, f->offset, ck_double_canonical(c->f64[b_row])); break;
        case CK_PHYS_I128: ck_row_set_i128(row, f->offset, c->i128[b_row]); break;
        case CK_PHYS_VIEW:
        case CK_PHYS_LIST:
        case CK_PHYS_STRUCT: CK_TRY(ck_var_set(t, row, f, key_string(s, kc, k, b_row))); break;
        }
    }
    return CK_OK;
}

/* The key's fields that are set: the order fields of a list are set behind it. */
ck_status ck_key_check(const ck_table *t, const ck_row *row) {
    const ck_shape *shape = t->shape;
    bool whole = shape->schema->hashed && shape->order_count > 0;
    uint32_t fields = whole ? shape->value_first : shape->partition_count;
    size_t n = 0;
    if (!t->epochs->snapshots || !shape->var_count) return CK_OK;
    for (uint32_t i = 0; i < fields; i++) {
        const ck_shape_field *f = &shape->fields[i];
        if (ck_phys_is_var(f->phys) && !ck_row_null(row, f->null_bit)) n += ck_var_get(t, row, f->offset).n;
    }
    if (CK_LIKELY(n < CK_KEY_BYTES_MAX / 4)) return CK_OK;
    const ck_var_source vars = {.pages = t->var.pages};
    ck_bytes key; /* what stands between values counts, too */
    ck_bytes_init(&key, t->mem, SIZE_MAX);
    ck_status s = ck_user_key_encode(shape, vars, row, &key);
    if (s == CK_OK && whole) s = ck_order_key_encode(shape, vars, row, &key);
    ck_bytes_destroy(&key);
    return s == CK_FULL ? CK_DATA : s;
}
