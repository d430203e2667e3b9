/* Rows one at a time, from stored bytes: what restores and operator rows use. */
#include "state/tree_int.h"

#include "base/cursor.h"
#include "state/stored_int.h"
#include "stream/key_groups.h"

static bool find(const ck_table *t, const ck_loose_row *l, uint64_t hash, uint32_t *ref) {
    ck_index_probe p = ck_index_probe_begin(&t->index, hash);
    while (ck_index_probe_next(&p, ref))
        if (ck_loose_equal(t, l, ck_row_of(t, *ref))) return true;
    return false;
}

bool ck_table_loose_find(const ck_table *t, const ck_loose_row *l, uint32_t *ref) {
    return find(t, l, ck_loose_hash(t, l), ref);
}

static ck_status add_row(ck_table *t, const ck_loose_row *l, uint64_t hash, uint32_t *ref, ck_row **row) {
    CK_TRY(ck_row_add(t, ref, row));
    ck_status s = ck_loose_store(t, l, 0, t->shape->value_first, *row);
    if (s == CK_OK) s = ck_index_insert(&t->index, hash, *ref);
    if (s != CK_OK) ck_row_drop(t, *ref);
    return s;
}

ck_status ck_table_loose_upsert(ck_table *t, const ck_loose_row *l, ck_row **row, bool *fresh) {
    uint64_t hash = ck_loose_hash(t, l);
    uint32_t ref;
    ck_table_tidy(t);
    *fresh = !find(t, l, hash, &ref);
    return *fresh ? add_row(t, l, hash, &ref, row) : ck_row_writable(t, ref, row);
}

/* ---- stored bytes ---- */

typedef struct split_key {
    ck_view user_key, order_key;
} split_key;

static bool split_rest(const ck_shape *s, ck_view rest, split_key *out) {
    *out = (split_key){.user_key = rest};
    if (s->order_count == 0) return true;
    ck_cursor c = ck_cursor_of(rest.p, rest.n);
    uint32_t n;
    if (!ck_cursor_u32be(&c, &n) || !ck_cursor_take(&c, n, &out->user_key)) return false;
    return ck_cursor_take(&c, c.left, &out->order_key);
}

/* Partition of a user key; 0 when it is missing and not to be made. */
static ck_status partition_of(ck_table *t, ck_view user_key, bool create, ck_partition *p) {
    ck_table *hidden = t->partitions;
    ck_loose_row l;
    uint32_t ref;
    CK_TRY(ck_loose_of(hidden, &l));
    if (!ck_user_key_decode(hidden->shape, user_key, &l)) return CK_CORRUPT;
    *p = 0;
    uint64_t hash = ck_loose_hash(hidden, &l);
    bool there = find(hidden, &l, hash, &ref);
    if (!there && create) {
        ck_row *row;
        CK_TRY(add_row(hidden, &l, hash, &ref, &row));
        there = true;
    }
    if (there) *p = ref + 1;
    return CK_OK;
}

static ck_status put_ordered(ck_table *t, const split_key *k, ck_view value) {
    ck_partition p;
    CK_TRY(partition_of(t, k->user_key, true, &p));
    ck_row *row;
    ck_status s = ck_partition_upsert(t, p, k->order_key, &row, NULL, NULL);
    if (s == CK_INVALID) return CK_CORRUPT;
    CK_TRY(s);
    ck_loose_row l;
    CK_TRY(ck_loose_of(t, &l));
    if (!ck_value_decode(t->shape, value, &l)) return CK_CORRUPT;
    return ck_loose_store(t, &l, t->shape->value_first, t->shape->field_count, row);
}

/* The hash table a row belongs to, with the key decoded into *l. */
static ck_status hash_table_of(ck_table *t, const split_key *k, bool create, ck_table **out, ck_loose_row *l) {
    const ck_shape *s = t->shape;
    CK_TRY(ck_loose_of(t, l));
    if (!ck_user_key_decode(s, k->user_key, l)) return CK_CORRUPT;
    if (s->order_count) CK_TRY(ck_order_key_decode(s, k->order_key, l));
    *out = t;
    if (!s->schema->bucketed) return CK_OK;
    return ck_table_bucket(t, ck_row_i64(l->row, s->fields[s->partition_count].offset), create, out, NULL);
}

static bool plain_equal(const ck_table *t, ck_view key, const ck_row *row) {
    uint32_t at = t->shape->fields[0].offset;
    return t->shape->var_count ? ck_view_eq(key, ck_var_get(t, row, at)) : memcmp(row + at, key.p, 8) == 0;
}

static ck_status plain_add(ck_table *t, ck_view key, uint64_t hash, ck_row **row) {
    uint32_t ref;
    CK_TRY(ck_row_add(t, &ref, row));
    ck_status s = CK_OK;
    if (t->shape->var_count)
        s = ck_var_set(t, *row, &t->shape->fields[0], key);
    else
        memcpy(*row + t->shape->fields[0].offset, key.p, 8);
    if (s == CK_OK) s = ck_index_insert(&t->index, hash, ref);
    if (s != CK_OK) ck_row_drop(t, ref);
    return s;
}

/* A plain shape without a loose row in between. */
static ck_status put_plain(ck_table *t, ck_view key, ck_view value) {
    const ck_shape *s = t->shape;
    uint32_t values_at = s->value_count ? s->fields[1].offset : s->extra_at;
    if (value.n != s->extra_at - values_at || (!s->var_count && key.n != 8) || key.n > CK_KEY_BYTES_MAX)
        return CK_CORRUPT;
    for (uint32_t i = 1; i < s->field_count; i++)
        if (s->fields[i].phys == CK_PHYS_BOOL && (uint8_t)value.p[s->fields[i].offset - values_at] > 1)
            return CK_CORRUPT;
    uint64_t hash = s->var_count ? ck_value_hash_str(t->seed, key)
                                 : ck_value_hash_i64(t->seed, ck_row_i64((const ck_row *)key.p, 0));
    uint32_t ref;
    ck_row *row;
    bool there = false;
    ck_table_tidy(t);
    ck_index_probe p = ck_index_probe_begin(&t->index, hash);
    while (!there && ck_index_probe_next(&p, &ref)) there = plain_equal(t, key, ck_row_of(t, ref));
    CK_TRY(there ? ck_row_writable(t, ref, &row) : plain_add(t, key, hash, &row));
    if (value.n) memcpy(row + values_at, value.p, value.n);
    return CK_OK;
}

ck_status ck_table_stored_put(ck_table *t, ck_view rest, ck_view value, uint32_t key_group, uint32_t key_groups) {
    split_key k;
    if (!split_rest(t->shape, rest, &k)) return CK_CORRUPT;
    if (key_groups != UINT32_MAX && ck_key_group_for_key(k.user_key, key_groups) != key_group) return CK_CORRUPT;
    if (t->shape->listed) CK_TRY(ck_lists_suspend(t));
    if (t->shape->plain) return put_plain(t, rest, value);
    if (t->shape->ordered) return put_ordered(t, &k, value);
    ck_table *to;
    ck_loose_row l;
    ck_row *row;
    bool fresh;
    CK_TRY(hash_table_of(t, &k, true, &to, &l));
    if (!ck_value_decode(t->shape, value, &l)) return CK_CORRUPT;
    CK_TRY(ck_table_loose_upsert(to, &l, &row, &fresh));
    return ck_loose_store(to, &l, t->shape->value_first, t->shape->field_count, row);
}

static ck_status erase_ref(ck_table *t, uint32_t ref) {
    ck_row *row = ck_row_of(t, ref);
    return ck_table_erase(t, &row, 1, NULL);
}

ck_status ck_table_stored_erase(ck_table *t, ck_view rest) {
    split_key k;
    if (!split_rest(t->shape, rest, &k)) return CK_CORRUPT;
    if (t->shape->listed) CK_TRY(ck_lists_suspend(t));
    if (t->shape->ordered) {
        ck_partition p;
        CK_TRY(partition_of(t, k.user_key, false, &p));
        return p ? ck_partition_erase(t, p, k.order_key, NULL) : CK_OK;
    }
    ck_table *from;
    ck_loose_row l;
    uint32_t ref;
    CK_TRY(hash_table_of(t, &k, false, &from, &l));
    return from && ck_table_loose_find(from, &l, &ref) ? erase_ref(from, ref) : CK_OK;
}
