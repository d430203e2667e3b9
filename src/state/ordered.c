/* Slots with order columns: the partitions' side of table.h. A hidden table maps the user key to a ck_partition_head in
 * the extra bytes of its rows; a ck_partition is the reference of that row plus one. */
#include "state/cold_int.h"

enum { PREFETCH = 10 }; /* rows of a range ahead of the one in hand */

static ck_row *hidden_row(const ck_table *t, ck_partition p) { return ck_row_of(t->partitions, p - 1); }

static ck_partition_head head_load(const ck_table *t, ck_partition p) {
    ck_partition_head h;
    memcpy(&h, hidden_row(t, p) + t->partitions->shape->extra_at, sizeof h);
    return h;
}

/* Of a partition whose rows are about to be looked at. */
static ck_status head_with_rows(ck_table *t, ck_partition p, ck_partition_head *h) {
    *h = head_load(t, p);
    if (CK_LIKELY(!ck_head_is_out(h))) return CK_OK;
    CK_TRY(ck_cold_bring_partitions(t, &p, 1));
    *h = head_load(t, p);
    return CK_OK;
}

static void head_store(const ck_table *t, ck_partition p, const ck_partition_head *h) {
    memcpy(hidden_row(t, p) + t->partitions->shape->extra_at, h, sizeof *h);
}

void ck_partitions_free(ck_table *t) {
    if (!t->partitions) return;
    ck_table_scan scan = {0};
    ck_row *rows[64];
    for (uint32_t n; (n = ck_table_scan_next(t->partitions, &scan, rows, 64)) > 0;)
        for (uint32_t i = 0; i < n; i++) {
            ck_partition_head h;
            memcpy(&h, rows[i] + t->partitions->shape->extra_at, sizeof h);
            if (!ck_head_is_out(&h)) ck_tree_free(t, &h);
        }
    ck_table_free(t->partitions);
    t->partitions = NULL;
}

ck_status ck_table_partitions(ck_table *t, const ck_keys *keys, bool create, ck_partition *out, ck_error *err) {
    CK_ASSERT(t->shape->ordered);
    ck_row *rows[CK_BATCH_ROWS_MAX];
    if (create)
        CK_TRY(ck_table_upsert(t->partitions, keys, rows, NULL, err));
    else
        CK_TRY(ck_table_find(t->partitions, keys, (const ck_row **)rows, err));
    for (uint32_t k = 0; k < keys->n; k++) out[k] = rows[k] ? ck_ref_of(t->partitions, rows[k]) + 1 : 0;
    if (CK_UNLIKELY(t->out_rows) && ck_cold_bring_partitions(t, out, keys->n) != CK_OK)
        return ck_cold_check(t->cold, err);
    return CK_OK;
}

void ck_partition_prefetch(const ck_table *t, ck_partition p, unsigned stage) {
    const ck_row *row = ck_row_of(t->partitions, p - 1) + t->partitions->shape->extra_at;
    if (stage == 0) {
        __builtin_prefetch(row);
        return;
    }
    ck_partition_head h = head_load(t, p);
    if (h.count > 1) ck_tree_prefetch_root(&h);
}

uint64_t ck_partition_rows(const ck_table *t, ck_partition p) { return head_load(t, p).count; }

uint32_t ck_table_partition_scan(ck_table *t, ck_table_scan *s, ck_partition *out, uint32_t max) {
    CK_ASSERT(t->shape->ordered);
    ck_row *rows[CK_BATCH_ROWS_MAX];
    if (max > CK_BATCH_ROWS_MAX) max = CK_BATCH_ROWS_MAX;
    uint32_t n = ck_table_scan_next(t->partitions, s, rows, max);
    for (uint32_t i = 0; i < n; i++) out[i] = ck_ref_of(t->partitions, rows[i]) + 1;
    return n;
}

static ck_status failed(ck_table *t, ck_status s, ck_error *err) {
    if (t->cold && ck_cold_check(t->cold, NULL) != CK_OK) return ck_cold_check(t->cold, err);
    if (s == CK_CORRUPT)
        return ck_fail(err, CK_INVALID, "slot \"%s\": an order key that does not fit its order columns",
                       t->shape->schema->slot);
    if (s == CK_FULL)
        return ck_fail(err, CK_FULL, "slot \"%s\": a key over %d bytes, or full at %llu rows in one subtask",
                       t->shape->schema->slot, CK_KEY_BYTES_MAX, (unsigned long long)t->rows);
    return ck_table_nomem(t, t->shape->forms[CK_SMALL_PAGES].bytes, err);
}

/* Partition fields, from the hidden row. */
static ck_status set_partition_fields(ck_table *t, ck_partition p, ck_row *row) {
    const ck_table *hidden = t->partitions;
    const ck_row *from = hidden_row(t, p);
    for (uint32_t i = 0; i < t->shape->partition_count; i++) {
        const ck_shape_field *f = &t->shape->fields[i], *hf = &hidden->shape->fields[i];
        if (f->null_bit != UINT32_MAX && ck_row_null(from, hf->null_bit))
            ck_row_set_null(row, f->null_bit, true);
        else if (ck_phys_is_var(f->phys))
            CK_TRY(ck_var_set(t, row, f, ck_var_get(hidden, from, hf->offset)));
        else
            memcpy(row + f->offset, from + hf->offset, f->width);
    }
    return CK_OK;
}

/* Partition fields, and order fields from the key. */
static ck_status set_key_fields(ck_table *t, ck_partition p, ck_view order_key, ck_row *row) {
    CK_TRY(set_partition_fields(t, p, row));
    ck_loose_row l;
    CK_TRY(ck_loose_of(t, &l));
    CK_TRY(ck_order_key_decode(t->shape, order_key, &l));
    return ck_loose_store(t, &l, t->shape->partition_count, t->shape->value_first, row);
}

/* The common order column, without the general decoder: one integer, NOT NULL. */
static ck_status set_key_fast(ck_table *t, ck_partition p, ck_view order_key, ck_row *row) {
    const ck_shape *s = t->shape;
    if (!ck_order_is_prefix(s) || order_key.n != 8) return set_key_fields(t, p, order_key, row);
    for (uint32_t i = 0; i < s->partition_count; i++)
        if (ck_phys_is_var(s->fields[i].phys)) return set_key_fields(t, p, order_key, row);
    const ck_row *from = hidden_row(t, p);
    for (uint32_t i = 0; i < s->partition_count; i++) {
        const ck_shape_field *f = &s->fields[i], *hf = &t->partitions->shape->fields[i];
        memcpy(row + f->offset, from + hf->offset, f->width);
        if (f->null_bit != UINT32_MAX) ck_row_set_null(row, f->null_bit, ck_row_null(from, hf->null_bit));
    }
    const ck_shape_field *o = &s->fields[s->partition_count];
    uint64_t v = ck_order_prefix(order_key);
    if (o->descending) v = ~v;
    ck_row_set_i64(row, o->offset, (int64_t)(v ^ 1ULL << 63));
    return CK_OK;
}

/* from: sets the order fields; NULL: they come from the key, which is whole. */
static ck_status insert_row(ck_table *t, ck_partition p, ck_partition_head *h, ck_tree_key *key,
                            const ck_order_source *from, uint32_t *ref) {
    ck_row *row;
    CK_TRY(ck_row_add(t, ref, &row));
    ck_status s = from ? set_partition_fields(t, p, row) : set_key_fast(t, p, key->bytes, row);
    if (s == CK_OK && from) s = from->fill(from->arg, row);
    if (s == CK_OK) {
        s = ck_tree_insert(t, h, key, *ref);
        head_store(t, p, h); /* also when it failed: blocks may have been split on the way */
    }
    if (s != CK_OK) ck_row_drop(t, *ref);
    return s;
}

static ck_status upsert(ck_table *t, ck_partition p, ck_tree_key *key, const ck_order_source *from, ck_row **row,
                        bool *fresh) {
    ck_table_tidy(t);
    ck_partition_head h;
    CK_TRY(head_with_rows(t, p, &h));
    ck_tree_at at;
    bool equal = false;
    uint32_t ref = 0;
    ck_status s = ck_tree_lower(t, &h, key, &at, &equal);
    if (s == CK_OK && equal)
        ck_tree_ref(&h, at, &ref);
    else if (s == CK_OK)
        s = insert_row(t, p, &h, key, from, &ref);
    if (s == CK_OK) s = ck_row_writable(t, ref, row);
    if (s == CK_OK) ck_ttl_written(t, row, 1);
    if (fresh) *fresh = s == CK_OK && !equal;
    return s;
}

ck_status ck_partition_upsert(ck_table *t, ck_partition p, ck_view order_key, ck_row **row, bool *fresh,
                              ck_error *err) {
    ck_tree_key key = ck_tree_key_of(order_key);
    ck_status s = order_key.n ? upsert(t, p, &key, NULL, row, fresh) : CK_CORRUPT;
    return s == CK_OK ? CK_OK : failed(t, s, err);
}

ck_status ck_partition_upsert_from(ck_table *t, ck_partition p, const ck_order_source *from, ck_row **row, bool *fresh,
                                   ck_error *err) {
    CK_DASSERT(from->first.n >= 8);
    ck_tree_key key = {ck_order_prefix(from->first), {0}, from};
    ck_status s = upsert(t, p, &key, from, row, fresh);
    return s == CK_OK ? CK_OK : failed(t, s, err);
}

ck_status ck_partition_find(ck_table *t, ck_partition p, ck_view order_key, ck_row **row) {
    ck_partition_head h;
    CK_TRY(head_with_rows(t, p, &h));
    ck_tree_at at;
    bool equal;
    uint32_t ref;
    ck_tree_key key = ck_tree_key_of(order_key);
    CK_TRY(ck_tree_lower(t, &h, &key, &at, &equal));
    if (!equal) return CK_NOTFOUND;
    ck_tree_ref(&h, at, &ref);
    *row = ck_row_of(t, ref);
    return CK_OK;
}

/* ---- erasing ---- */

void ck_partition_end(ck_table *t, ck_partition p) {
    ck_table *hidden = t->partitions;
    uint32_t ref = p - 1;
    ck_index_erase(&hidden->index, ck_row_hash(hidden, ck_row_of(hidden, ref)), ref);
    ck_row_drop(hidden, ref); /* not marked: its pages are always private */
}

/* The row at `at`, whose key is `key`; NULL: the last. */
static ck_status erase_at(ck_table *t, ck_partition p, ck_partition_head *h, uint32_t ref, ck_tree_key *key) {
    CK_TRY(ck_row_drop_prepare(t, ref));
    if (key)
        CK_TRY(ck_tree_erase(t, h, key));
    else
        ck_tree_erase_last(t, h);
    ck_log_erase(t, ck_row_of(t, ref));
    ck_row_drop(t, ref);
    head_store(t, p, h);
    if (h->count == 0) ck_partition_end(t, p);
    return CK_OK;
}

ck_status ck_partition_erase(ck_table *t, ck_partition p, ck_view order_key, ck_error *err) {
    ck_partition_head h;
    ck_tree_at at;
    bool equal;
    uint32_t ref = 0;
    ck_tree_key key = ck_tree_key_of(order_key);
    ck_status s = head_with_rows(t, p, &h);
    if (s == CK_OK) s = ck_tree_lower(t, &h, &key, &at, &equal);
    if (s == CK_OK && !equal) return CK_OK;
    if (s == CK_OK) {
        ck_tree_ref(&h, at, &ref);
        s = erase_at(t, p, &h, ref, &key);
    }
    return s == CK_OK ? CK_OK : failed(t, s, err);
}

ck_status ck_partition_erase_last(ck_table *t, ck_partition p, ck_error *err) {
    ck_partition_head h;
    uint32_t ref = 0;
    ck_status s = head_with_rows(t, p, &h);
    if (s == CK_OK) {
        ck_tree_ref(&h, ck_tree_last(&h), &ref);
        s = erase_at(t, p, &h, ref, NULL);
    }
    return s == CK_OK ? CK_OK : failed(t, s, err);
}

ck_status ck_partition_erase_range(ck_table *t, ck_partition p, ck_view lo, ck_view hi, uint64_t *erased,
                                   ck_error *err) {
    ck_bytes key;
    ck_bytes_init(&key, t->mem, (size_t)CK_KEY_BYTES_MAX * 2 + 64);
    ck_status s = CK_OK;
    uint64_t n = 0;
    ck_tree_key from = ck_tree_key_of(lo);
    for (;;) {
        ck_partition_head h;
        ck_tree_at at;
        uint32_t ref;
        s = head_with_rows(t, p, &h);
        if (s == CK_OK) s = ck_tree_lower(t, &h, &from, &at, NULL);
        if (s != CK_OK || !ck_tree_ref(&h, at, &ref)) break;
        ck_bytes_clear(&key);
        s = ck_row_order_key(t, ck_row_of(t, ref), &key);
        if (s != CK_OK || (hi.n && ck_view_cmp(ck_bytes_as_view(&key), hi) >= 0)) break;
        bool last = h.count == 1;
        ck_tree_key whole = ck_tree_key_of(ck_bytes_as_view(&key));
        s = erase_at(t, p, &h, ref, &whole);
        if (s != CK_OK) break;
        n++;
        if (last) break; /* the partition has ended */
    }
    ck_bytes_destroy(&key);
    if (erased) *erased = n;
    return s == CK_OK ? CK_OK : failed(t, s, err);
}

/* ---- reading in order ---- */

/* at[0], at[1]: node and index of the next row; at[2], at[3]: of the end. */
void ck_range_open(ck_range *r, ck_table *t, ck_partition p, ck_view lo, ck_view hi) {
    *r = (ck_range){.table = t, .partition = p, .hi = hi};
    ck_partition_head h = {0};
    if (p) r->status = head_with_rows(t, p, &h);
    if (r->status != CK_OK) h = (ck_partition_head){0}; /* remembered: ck_cold_check */
    ck_tree_at from = {NULL, 1}, to = {NULL, 1};
    ck_tree_key low = ck_tree_key_of(lo), high = ck_tree_key_of(hi);
    if (h.count > 0) r->status = ck_tree_lower(t, &h, &low, &from, NULL);
    bool ok = h.count > 0 && r->status == CK_OK;
    if (ok && hi.n)
        ok = (r->status = ck_tree_lower(t, &h, &high, &to, NULL)) == CK_OK;
    else if (ok && h.count > 1)
        to = ck_tree_next(&h, ck_tree_last(&h));
    if (!ok || (hi.n && ck_view_cmp(lo, hi) >= 0)) from = to = (ck_tree_at){NULL, 1};
    ck_tree_prefetch(t, from, PREFETCH);
    r->at[0] = (uint64_t)(uintptr_t)from.node, r->at[1] = from.index;
    r->at[2] = (uint64_t)(uintptr_t)to.node, r->at[3] = to.index;
}

bool ck_range_next(ck_range *r, ck_row **row) {
    if (r->at[0] == r->at[2] && r->at[1] == r->at[3]) return false;
    ck_partition_head h = head_load(r->table, r->partition);
    ck_tree_at at = {(ck_tree_node *)(uintptr_t)r->at[0], (uint32_t)r->at[1]};
    uint32_t ref;
    if (!ck_tree_ref(&h, at, &ref)) return false;
    *row = ck_row_of(r->table, ref);
    ck_tree_prefetch(r->table, (ck_tree_at){at.node, at.index + PREFETCH}, 1);
    at = ck_tree_next(&h, at);
    r->at[0] = (uint64_t)(uintptr_t)at.node, r->at[1] = at.index;
    return true;
}

ck_status ck_row_order_key(ck_table *t, const ck_row *row, ck_bytes *out) {
    return ck_order_key_encode(t->shape, (ck_var_source){.pages = t->var.pages}, row, out);
}

bool ck_partition_first(ck_table *t, ck_partition p, ck_row **row) {
    ck_range r;
    ck_range_open(&r, t, p, (ck_view){0}, (ck_view){0});
    return ck_range_next(&r, row);
}

bool ck_partition_last(ck_table *t, ck_partition p, ck_row **row) {
    ck_partition_head h = {0};
    if (p && head_with_rows(t, p, &h) != CK_OK) return false; /* remembered: ck_cold_check */
    uint32_t ref;
    if (h.count == 0 || !ck_tree_ref(&h, ck_tree_last(&h), &ref)) return false;
    *row = ck_row_of(t, ref);
    return true;
}
