/* Rows leave memory: encoded as they would be in a snapshot, put into the batch, dropped from their page. Whole pages
 * are taken in turn, so that their memory goes back: those filled long ago first, since what is asked for again comes
 * back into a new page. */
#include "state/cold_int.h"

enum { PAGES_TIDIED = 64 };

/* The newest epoch a row may have changed in, as its page remembers it; 0: none that a delta will ask for. */
static uint32_t changed_in(const ck_table *t, uint32_t ref) {
    const ck_epochs *e = t->epochs;
    uint32_t id = ck_ref_page(t, ref), slot = ck_ref_slot(t, ref), epoch = 0;
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    if (e->epoch == 1) return 0;
    if (h->prepared > e->completed && ck_bit_get(ck_page_bits(t->shape, h, 1), slot))
        epoch = h->prepared;
    else if (h->changed_before > e->completed && ck_bit_get(ck_page_bits(t->shape, h, 2), slot))
        epoch = h->changed_before;
    return epoch > 1 ? epoch : 0;
}

/* [family][store][epoch][the row's key from the slot on]; overwrites c->value. */
ck_status ck_cold_put_changed(ck_cold *c, uint32_t epoch) {
    const uint8_t head[7] = {CK_ROCKS_CHANGED,       (uint8_t)(c->store >> 8), (uint8_t)c->store,
                             (uint8_t)(epoch >> 24), (uint8_t)(epoch >> 16),   (uint8_t)(epoch >> 8),
                             (uint8_t)epoch};
    ck_bytes_clear(&c->value);
    CK_TRY(ck_bytes_append(&c->value, head, sizeof head));
    CK_TRY(ck_bytes_append(&c->value, c->key.p + 3, c->key.n - 3));
    ck_rocks_put(c->db, c->batch, ck_bytes_as_view(&c->value), (ck_view){"", 0});
    return ck_cold_written(c, c->value.n);
}

static ck_status put_row(ck_table *t, const ck_row *row, uint32_t epoch) {
    ck_cold *c = t->cold;
    ck_var_source v = {.pages = t->var.pages};
    uint32_t user_key_bytes;
    CK_TRY(ck_cold_key_begin(t, &c->key));
    CK_TRY(ck_key_rest_encode(t->shape, v, row, &c->key, &user_key_bytes));
    ck_bytes_clear(&c->value);
    CK_TRY(ck_bytes_u32le(&c->value, epoch));
    CK_TRY(ck_value_encode(t->shape, v, row, &c->value));
    ck_rocks_put(c->db, c->batch, ck_bytes_as_view(&c->key), ck_bytes_as_view(&c->value));
    size_t bytes = c->key.n + c->value.n;
    if (epoch) CK_TRY(ck_cold_put_changed(c, epoch));
    return ck_cold_written(c, bytes);
}

static void note_number(ck_table *t, const ck_row *row) {
    if (!t->shape->listed || t->shape->schema->hashed) return;
    int64_t number = ck_row_i64(row, t->shape->fields[t->shape->partition_count].offset);
    if (number >= t->next_number) t->next_number = number + 1;
}

/* It is in no tree any more. A change that was counted when it was made is not counted again. */
static ck_status row_leaves(ck_table *t, uint32_t ref) {
    uint64_t changed = t->changed_now;
    uint32_t epoch = changed_in(t, ref);
    CK_TRY(ck_row_drop_prepare(t, ref)); /* may copy the page, which forgets in what epoch */
    const ck_row *row = ck_row_of(t, ref);
    CK_TRY(put_row(t, row, epoch));
    note_number(t, row);
    if (!t->shape->ordered) {
        ck_cold_filter_add(t, t->shape->listed ? ck_row_list_hash(t, row) : ck_row_hash(t, row));
        ck_table_leave_indexes(t, ref, row);
    }
    ck_cold_set_changed(t, ref, false);
    ck_row_drop(t, ref);
    t->changed_now = changed;
    t->out_rows++;
    t->cold->rows++;
    return CK_OK;
}

/* ---- what goes together ---- */

static ck_list_link link_of(const ck_table *t, uint32_t ref) {
    ck_list_link l;
    memcpy(&l, ck_row_of(t, ref) + t->shape->extra_at, sizeof l);
    return l;
}

/* The first row last, so that the index is changed once. */
static ck_status list_leaves(ck_table *t, uint32_t ref) {
    ck_list_link l = link_of(t, ref);
    while (l.prev) ref = l.prev - 1, l = link_of(t, ref);
    for (uint32_t head = ref; (l = link_of(t, head)).next;) CK_TRY(row_leaves(t, l.next - 1));
    return row_leaves(t, ref);
}

/* The head of the partition a row is in. */
static ck_status head_of_row(ck_table *t, const ck_row *row, ck_row **head) {
    ck_table *hidden = t->partitions;
    ck_loose_row l;
    uint32_t ref;
    ck_bytes *key = &t->cold->key;
    ck_bytes_clear(key);
    CK_TRY(ck_user_key_encode(t->shape, (ck_var_source){.pages = t->var.pages}, row, key));
    CK_TRY(ck_loose_of(hidden, &l));
    if (!ck_user_key_decode(hidden->shape, ck_bytes_as_view(key), &l) || !ck_table_loose_find(hidden, &l, &ref))
        return CK_CORRUPT; /* a row of no partition */
    *head = ck_row_of(hidden, ref) + hidden->shape->extra_at;
    return CK_OK;
}

static ck_status partition_leaves(ck_table *t, uint32_t of_row) {
    ck_partition_head h;
    ck_row *head;
    CK_TRY(head_of_row(t, ck_row_of(t, of_row), &head));
    memcpy(&h, head, sizeof h);
    ck_partition_head out = {.count = h.count, .ref = UINT32_MAX};
    ck_tree_at at = {.node = NULL};
    ck_tree_key beginning = ck_tree_key_of((ck_view){0});
    CK_TRY(ck_tree_lower(t, &h, &beginning, &at, NULL));
    ck_status s = CK_OK;
    uint32_t ref;
    for (; s == CK_OK && ck_tree_ref(&h, at, &ref); at = ck_tree_next(&h, at)) s = row_leaves(t, ref);
    ck_tree_free(t, &h); /* when it broke in the middle, the store is broken too */
    memcpy(head, &out, sizeof out);
    return s;
}

/* ---- whose turn it is ---- */

static ck_status with_its_own(ck_table *t, uint32_t ref) {
    if (t->shape->ordered) return partition_leaves(t, ref);
    return t->shape->listed && t->lists_ready ? list_leaves(t, ref) : row_leaves(t, ref);
}

static ck_status page_leaves(ck_table *t, uint32_t id) {
    for (uint32_t slot = 0;; slot++) {
        if (!t->at[id].rows) return CK_OK; /* its last row has gone */
        ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
        if (slot >= h->used) return CK_OK;
        if (!ck_bit_get(ck_page_bits(t->shape, h, 0), slot)) continue;
        CK_TRY(with_its_own(t, id << t->shape->slot_bits | slot));
    }
}

static ck_status open(ck_cold *c) {
    if (c->batch) return CK_OK;
    ck_status s = ck_rocks_open(c->db, &c->failed);
    if (s != CK_OK) return s;
    c->batch = ck_rocks_batch_new(c->db);
    c->epochs->tracking = true; /* whether a borrowed row was written */
    return CK_OK;
}

ck_status ck_cold_evict(ck_table *t, size_t bytes, size_t *gone) {
    *gone = 0;
    if (!t->cold || (t->shape->schema->bucketed && !t->is_bucket) || t->page_count == 0) return CK_OK;
    CK_TRY(open(t->cold));
    if (t->borrowed) CK_TRY(ck_cold_settle(t));
    size_t had = t->page_bytes + t->var.bytes;
    for (uint32_t i = 0, n = t->page_count; i < n && *gone < bytes; i++) {
        uint32_t id = t->turn >= n ? 0 : t->turn;
        t->turn = id + 1;
        if (!t->at[id].rows) continue;
        ck_status s = page_leaves(t, id);
        if (s != CK_OK) return ck_cold_broken_by(t, s);
        for (unsigned k = 0; k < PAGES_TIDIED && t->var.compact; k++) ck_var_compact(t);
        size_t have = t->page_bytes + t->var.bytes;
        *gone = have < had ? had - have : 0;
    }
    return CK_OK;
}

ck_status ck_cold_evict_all(ck_table *t) {
    size_t gone;
    t->turn = 0;
    ck_status s = ck_cold_evict(t, SIZE_MAX, &gone);
    if (s == CK_OK) s = ck_cold_flush(t->cold);
    return s == CK_OK ? CK_OK : ck_cold_broken(t->cold, s);
}

ck_status ck_table_let_go(ck_table *t, ck_error *err) {
    if (!t->cold || ck_cold_relieve(t) == CK_OK) return CK_OK;
    return ck_cold_check(t->cold, err);
}

ck_status ck_cold_relieve(ck_table *t) {
    ck_cold *c = t->cold;
    size_t bytes = ck_cold_over(c), gone;
    if (CK_LIKELY(bytes == 0)) return CK_OK;
    ck_status s = ck_cold_evict(t, bytes, &gone);
    if (s == CK_OK) s = ck_cold_flush(c);
    return s == CK_OK ? CK_OK : ck_cold_broken(c, s);
}
