/* Rows one at a time, from stored bytes: operator rows, and what restores cannot put in runs (put_run.c). */
#include "state/cold_int.h"

#include "base/cursor.h"
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

ck_status ck_table_hashed_upsert(ck_table *t, const ck_loose_row *l, uint64_t hash, ck_row **row, bool *fresh) {
    uint32_t ref;
    *fresh = !find(t, l, hash, &ref);
    return *fresh ? add_row(t, l, hash, &ref, row) : ck_row_writable(t, ref, row);
}

ck_status ck_table_loose_upsert(ck_table *t, const ck_loose_row *l, ck_row **row, bool *fresh) {
    ck_table_tidy(t);
    return ck_table_hashed_upsert(t, l, ck_loose_hash(t, l), row, fresh);
}

/* ---- stored bytes ---- */

typedef struct split_key {
    ck_view user_key, order_key;
} split_key;

bool ck_rest_split(const ck_shape *s, ck_view *rest, ck_view *order_key) {
    *order_key = (ck_view){"", 0};
    if (s->order_count == 0) return true;
    ck_cursor c = ck_cursor_of(rest->p, rest->n);
    uint32_t n;
    if (!ck_cursor_u32be(&c, &n) || !ck_cursor_take(&c, n, rest)) return false;
    return ck_cursor_take(&c, c.left, order_key);
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

static bool is_out(const ck_table *t, ck_partition p) {
    ck_partition_head h;
    memcpy(&h, ck_row_of(t->partitions, p - 1) + t->partitions->shape->extra_at, sizeof h);
    return ck_head_is_out(&h);
}

static ck_status put_ordered(ck_table *t, ck_view rest, const split_key *k, ck_view value) {
    ck_partition p;
    CK_TRY(partition_of(t, k->user_key, true, &p));
    if (CK_UNLIKELY(is_out(t, p))) return ck_cold_put_out(t, p, rest, value);
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

ck_status ck_table_stored_put(ck_table *t, const ck_stored_put *p, uint32_t key_groups) {
    split_key k = {.user_key = p->rest};
    ck_table *to;
    ck_loose_row l;
    ck_row *row;
    bool fresh;
    if (!ck_rest_split(t->shape, &k.user_key, &k.order_key)) return CK_CORRUPT;
    if (key_groups != UINT32_MAX && ck_key_group_for_key(k.user_key, key_groups) != p->key_group) return CK_CORRUPT;
    if (t->shape->listed) CK_TRY(ck_lists_suspend(t));
    if (t->shape->ordered) return put_ordered(t, p->rest, &k, p->value);
    CK_TRY(hash_table_of(t, &k, true, &to, &l));
    if (CK_UNLIKELY(to->out_rows)) {
        CK_TRY(ck_cold_bring_rest(to, p->rest));
        CK_TRY(hash_table_of(t, &k, true, &to, &l)); /* bringing used the loose row */
    }
    if (!ck_value_decode(t->shape, p->value, &l)) return CK_CORRUPT;
    CK_TRY(ck_table_loose_upsert(to, &l, &row, &fresh));
    return ck_loose_store(to, &l, t->shape->value_first, t->shape->field_count, row);
}

static ck_status erase_ref(ck_table *t, uint32_t ref) {
    ck_row *row = ck_row_of(t, ref);
    return ck_table_erase(t, &row, 1, NULL);
}

static ck_status erase_out(ck_table *t, ck_partition p, ck_view rest) {
    bool ended;
    CK_TRY(ck_cold_erase_out(t, p, rest, &ended));
    if (ended) ck_partition_end(t, p);
    return CK_OK;
}

ck_status ck_table_stored_erase(ck_table *t, ck_view rest) {
    split_key k = {.user_key = rest};
    if (!ck_rest_split(t->shape, &k.user_key, &k.order_key)) return CK_CORRUPT;
    if (t->shape->listed) CK_TRY(ck_lists_suspend(t));
    if (t->shape->ordered) {
        ck_partition p;
        CK_TRY(partition_of(t, k.user_key, false, &p));
        if (p && CK_UNLIKELY(is_out(t, p))) return erase_out(t, p, rest);
        return p ? ck_partition_erase(t, p, k.order_key, NULL) : CK_OK;
    }
    ck_table *from;
    ck_loose_row l;
    uint32_t ref;
    CK_TRY(hash_table_of(t, &k, false, &from, &l));
    if (from && CK_UNLIKELY(from->out_rows)) {
        CK_TRY(ck_cold_bring_rest(from, rest));
        CK_TRY(hash_table_of(t, &k, false, &from, &l)); /* bringing used the loose row */
    }
    return from && ck_table_loose_find(from, &l, &ref) ? erase_ref(from, ref) : CK_OK;
}
