/* Rows come back into memory, before a call that looks for them looks. The keys of a batch that memory does not have
 * are asked for together; what is found is decoded into a row like any other and leaves the database. */
#include "state/cold_int.h"

#include "state/find_int.h"

/* ---- one row ---- */

static bool split_rest(const ck_shape *s, ck_view rest, ck_view *user_key, ck_view *order_key) {
    *user_key = rest, *order_key = (ck_view){0};
    if (s->order_count == 0) return true;
    if (rest.n < 4) return false;
    ck_view group = ck_cold_group(rest);
    if (group.n > rest.n) return false;
    *user_key = (ck_view){rest.p + 4, group.n - 4};
    *order_key = (ck_view){rest.p + group.n, rest.n - group.n};
    return true;
}

static ck_status loose_of_rest(ck_table *t, ck_view rest, ck_loose_row *l) {
    ck_view user_key, order_key;
    CK_TRY(ck_loose_of(t, l));
    if (!split_rest(t->shape, rest, &user_key, &order_key)) return CK_CORRUPT;
    if (!ck_user_key_decode(t->shape, user_key, l)) return CK_CORRUPT;
    return t->shape->order_count ? ck_order_key_decode(t->shape, order_key, l) : CK_OK;
}

void ck_cold_set_changed(ck_table *t, uint32_t ref, bool changed) {
    uint32_t id = ck_ref_page(t, ref), slot = ck_ref_slot(t, ref);
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    ck_bit_clear(ck_page_bits(t->shape, h, 2), slot);
    if (changed)
        ck_bit_set(ck_page_bits(t->shape, h, 1), slot);
    else
        ck_bit_clear(ck_page_bits(t->shape, h, 1), slot);
}

static ck_status into_indexes(ck_table *t, const ck_loose_row *l, uint32_t ref) {
    bool keyed = !t->shape->listed || t->shape->schema->hashed || !t->lists_ready;
    uint64_t hash = ck_loose_hash(t, l);
    if (t->shape->ordered) return CK_OK;
    if (keyed) CK_TRY(ck_index_insert(&t->index, hash, ref));
    if (!t->shape->listed) return CK_OK;
    ck_status s = ck_list_link_row(t, ref);
    if (s != CK_OK && keyed) ck_index_erase(&t->index, hash, ref);
    return s;
}

ck_status ck_cold_insert(ck_table *t, ck_view rest, ck_view value, bool unchanged, uint32_t *ref) {
    ck_loose_row l;
    ck_row *row;
    uint64_t changes = t->changed_now;
    if (value.n < 4) return CK_CORRUPT;
    uint32_t epoch = 0;
    for (unsigned i = 0; i < 4; i++) epoch |= (uint32_t)(uint8_t)value.p[i] << (8 * i);
    CK_TRY(loose_of_rest(t, rest, &l));
    if (!ck_value_decode(t->shape, (ck_view){value.p + 4, value.n - 4}, &l)) return CK_CORRUPT;
    CK_TRY(ck_row_add(t, ref, &row));
    ck_status s = ck_loose_store(t, &l, 0, t->shape->field_count, row);
    if (s == CK_OK) s = into_indexes(t, &l, *ref);
    bool changed = s == CK_OK && !unchanged && epoch > t->epochs->completed;
    if (s == CK_OK)
        ck_cold_set_changed(t, *ref, changed);
    else
        ck_row_drop(t, *ref);
    t->changed_now = changes + (changed && epoch < t->epochs->epoch); /* from here on it has changed in this epoch */
    return s;
}

static ck_status leaves_database(ck_table *t, ck_view key) {
    ck_cold *c = t->cold;
    ck_rocks_delete(c->db, c->batch, key);
    t->out_rows--;
    c->rows--;
    return ck_cold_written(c, key.n);
}

/* ---- keys of a batch ---- */

typedef struct wanted { /* what memory does not have */
    ck_table *t;
    ck_bytes bytes; /* database keys, of lists their prefix */
    ck_view keys[CK_BATCH_ROWS_MAX];
    uint32_t count, first; /* first: of the keys being got */
} wanted;

static ck_status want(wanted *w, ck_view key) {
    size_t at = w->bytes.n;
    CK_TRY(ck_bytes_view(&w->bytes, key));
    w->keys[w->count++] = (ck_view){(const char *)at, key.n}; /* an offset: the bytes move as they grow */
    return CK_OK;
}

static void place(wanted *w) {
    for (uint32_t i = 0; i < w->count; i++) w->keys[i].p = w->bytes.p + (size_t)(uintptr_t)w->keys[i].p;
}

static void blank(ck_table *t, ck_row *row) {
    for (uint32_t i = 0; i < t->shape->var_count; i++) ck_var_drop(t, row, &t->shape->fields[t->shape->var_fields[i]]);
    memcpy(row, t->shape->blank, t->shape->row_bytes);
}

/* Keys of rows are encoded from rows, as everywhere: from one that is in no index and does not stay. */
static ck_status want_missing(wanted *w, const ck_key_source *s, ck_row *const *rows) {
    ck_table *t = w->t;
    ck_cold *c = t->cold;
    uint32_t ref, user_key_bytes;
    ck_row *row;
    uint64_t changes = t->changed_now;
    CK_TRY(ck_row_add(t, &ref, &row));
    ck_status st = CK_OK;
    bool by_list = t->shape->listed && s->index != &t->lists; /* whole keys, and lists come whole */
    for (uint32_t k = 0; st == CK_OK && k < s->keys->n; k++) {
        if (rows[k] || (!by_list && !ck_cold_filter_has(t, s->keys->hashes[k]))) continue;
        blank(t, row);
        st = ck_key_set(t, s, k, row);
        if (st == CK_OK && by_list && !ck_cold_filter_has(t, ck_row_list_hash(t, row))) continue;
        if (st == CK_OK) st = ck_cold_key_begin(t, &c->key);
        size_t rest = c->key.n;
        if (st == CK_OK)
            st = ck_key_rest_encode(t->shape, (ck_var_source){.pages = t->var.pages}, row, &c->key, &user_key_bytes);
        if (st == CK_OK && t->shape->listed) c->key.n = rest + 4 + user_key_bytes;
        if (st == CK_OK) st = want(w, ck_bytes_as_view(&c->key));
    }
    ck_cold_set_changed(t, ref, false);
    ck_row_drop(t, ref);
    t->changed_now = changes;
    place(w);
    return st;
}

/* ---- rows of a hash table or bucket ---- */

/* A key may stand twice in a batch. */
static bool is_in_memory(ck_table *t, ck_view rest) {
    ck_loose_row l;
    uint32_t ref;
    return loose_of_rest(t, rest, &l) == CK_OK && ck_table_loose_find(t, &l, &ref);
}

static ck_status found(void *arg, uint32_t i, ck_view value) {
    wanted *w = arg;
    ck_view key = w->keys[w->first + i];
    size_t head = ck_cold_head(w->t);
    ck_view rest = {key.p + head, key.n - head};
    uint32_t ref;
    if (is_in_memory(w->t, rest)) return CK_OK;
    CK_TRY(ck_cold_insert(w->t, rest, value, false, &ref));
    return leaves_database(w->t, key);
}

static ck_status bring_rows(wanted *w) {
    ck_cold *c = w->t->cold;
    for (w->first = 0; w->first < w->count; w->first += CK_ROCKS_MANY) {
        uint32_t n = w->count - w->first < CK_ROCKS_MANY ? w->count - w->first : CK_ROCKS_MANY;
        CK_TRY(ck_rocks_get_many(c->db, NULL, w->keys + w->first, n, found, w, &c->failed));
    }
    return CK_OK;
}

/* ---- lists ---- */

static bool list_is_in_memory(ck_table *t, ck_view group) {
    ck_loose_row l;
    if (ck_loose_of(t, &l) != CK_OK) return false;
    if (!ck_user_key_decode(t->shape, (ck_view){group.p + 4, group.n - 4}, &l)) return false;
    return ck_list_of_loose(t, &l) != 0;
}

static ck_status bring_group(ck_table *t, ck_rocks_iterator *it, ck_view prefix) {
    ck_cold *c = t->cold;
    bool any;
    ck_view key, value;
    uint32_t ref;
    ck_rocks_seek(c->db, it, prefix);
    for (;; ck_rocks_next(c->db, it)) {
        CK_TRY(ck_rocks_at(c->db, it, &any, &key, &value, &c->failed));
        if (!any || key.n < prefix.n || memcmp(key.p, prefix.p, prefix.n) != 0) return CK_OK;
        CK_TRY(ck_cold_insert(t, (ck_view){key.p + CK_ROCKS_HEAD, key.n - CK_ROCKS_HEAD}, value, false, &ref));
        CK_TRY(leaves_database(t, key));
    }
}

static ck_status bring_lists(wanted *w) {
    ck_table *t = w->t;
    ck_rocks_iterator *it = ck_rocks_iterate(t->cold->db, NULL, true);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < w->count; i++) {
        ck_view key = w->keys[i];
        if (!list_is_in_memory(t, (ck_view){key.p + CK_ROCKS_HEAD, key.n - CK_ROCKS_HEAD})) s = bring_group(t, it, key);
    }
    ck_rocks_iterator_free(t->cold->db, it);
    return s;
}

/* ---- calls with a batch ---- */

static ck_status bring(wanted *w, const ck_key_source *s) {
    ck_table *t = w->t;
    ck_row *rows[CK_BATCH_ROWS_MAX];
    ck_table_find_keys(t, s, (const ck_row **)rows);
    bool missing = false;
    for (uint32_t k = 0; k < s->keys->n && !missing; k++) missing = !rows[k];
    if (!missing) return CK_OK;
    CK_TRY(want_missing(w, s, rows));
    CK_TRY(t->shape->listed ? bring_lists(w) : bring_rows(w));
    return ck_cold_flush(t->cold);
}

static ck_status ready(ck_table *t) {
    CK_TRY(ck_cold_check(t->cold, NULL));
    CK_TRY(ck_cold_settle(t));
    return ck_cold_flush(t->cold);
}

/* A sentence for what went wrong, for who asked and for who asks later. */
static ck_status told(ck_table *t, ck_status s, ck_error *err) {
    if (s == CK_OK) return CK_OK;
    if (s == CK_INVALID || (s == CK_FULL && err && err->status == s)) return s; /* about the keys; said already */
    s = ck_cold_broken_by(t, s);
    return ck_cold_check(t->cold, err) != CK_OK ? ck_cold_check(t->cold, err) : s;
}

ck_status ck_cold_bring(ck_table *t, const ck_keys *keys, bool list, ck_error *err) {
    wanted *w = ck_alloc(t->cold->mem, sizeof *w);
    if (!w) return ck_nomem(err, t->cold->mem, sizeof *w);
    w->t = t, w->count = 0;
    ck_bytes_init(&w->bytes, t->cold->mem, SIZE_MAX);
    ck_status st = ready(t);
    if (st == CK_OK) {
        ck_key_source s;
        st = ck_key_source_init(&s, t, keys, list, err);
        if (st == CK_OK) st = bring(w, &s);
        ck_key_source_destroy(&s, t);
    }
    ck_bytes_destroy(&w->bytes);
    ck_free(t->cold->mem, w, sizeof *w);
    return told(t, st, err);
}

/* ---- one key ---- */

static ck_status bring_one(ck_table *t, ck_view rest) {
    ck_cold *c = t->cold;
    CK_TRY(ck_cold_key_begin(t, &c->key));
    CK_TRY(ck_bytes_view(&c->key, rest));
    wanted *w = ck_alloc(c->mem, sizeof *w);
    if (!w) return CK_NOMEM;
    w->t = t, w->count = 0;
    ck_bytes_init(&w->bytes, c->mem, SIZE_MAX);
    ck_status s = want(w, ck_bytes_as_view(&c->key));
    place(w);
    if (s == CK_OK) s = bring_rows(w);
    ck_bytes_destroy(&w->bytes);
    ck_free(c->mem, w, sizeof *w);
    return s == CK_OK ? ck_cold_flush(c) : s;
}

ck_status ck_cold_bring_rest(ck_table *t, ck_view rest) {
    ck_status s = ready(t);
    if (s == CK_OK && !is_in_memory(t, rest)) s = bring_one(t, rest);
    return s == CK_CORRUPT && ck_cold_check(t->cold, NULL) == CK_OK ? s : told(t, s, NULL);
}

ck_status ck_cold_bring_single(ck_table *t, ck_error *err) {
    ck_status s = ready(t);
    return told(t, s == CK_OK ? bring_one(t, (ck_view){"", 0}) : s, err);
}

/* ---- ordered tables ---- */

static ck_row *head_at(const ck_table *t, ck_partition p) {
    return ck_row_of(t->partitions, p - 1) + t->partitions->shape->extra_at;
}

static ck_partition_head head_of(const ck_table *t, ck_partition p) {
    ck_partition_head h;
    memcpy(&h, head_at(t, p), sizeof h);
    return h;
}

static void set_head(const ck_table *t, ck_partition p, ck_partition_head h) { memcpy(head_at(t, p), &h, sizeof h); }

/* Of a partition that is out, by one row more or less. */
static uint32_t count_row(const ck_table *t, ck_partition p, int by) {
    ck_partition_head h = head_of(t, p);
    h.count += (uint32_t)by;
    set_head(t, p, h);
    return h.count;
}

/* [head][u32 BE n][user key], from the hidden row. */
static ck_status partition_prefix(ck_table *t, ck_partition p, ck_bytes *out) {
    const ck_table *hidden = t->partitions;
    CK_TRY(ck_cold_key_begin(t, out));
    CK_TRY(ck_bytes_u32be(out, 0));
    size_t at = out->n;
    CK_TRY(
        ck_user_key_encode(hidden->shape, (ck_var_source){.pages = hidden->var.pages}, ck_row_of(hidden, p - 1), out));
    size_t n = out->n - at;
    for (unsigned i = 0; i < 4; i++) out->p[at - 4 + i] = (char)(n >> (24 - 8 * i));
    return CK_OK;
}

static ck_status bring_into_tree(ck_table *t, ck_rocks_iterator *it, ck_view prefix, ck_partition_head *h) {
    ck_cold *c = t->cold;
    bool any;
    ck_view key, value;
    uint32_t ref;
    ck_rocks_seek(c->db, it, prefix);
    for (;; ck_rocks_next(c->db, it)) {
        CK_TRY(ck_rocks_at(c->db, it, &any, &key, &value, &c->failed));
        if (!any || key.n < prefix.n || memcmp(key.p, prefix.p, prefix.n) != 0) return CK_OK;
        CK_TRY(ck_cold_insert(t, (ck_view){key.p + CK_ROCKS_HEAD, key.n - CK_ROCKS_HEAD}, value, false, &ref));
        ck_tree_key order = ck_tree_key_of((ck_view){key.p + prefix.n, key.n - prefix.n});
        ck_status s = ck_tree_insert(t, h, &order, ref);
        if (s != CK_OK) {
            ck_row_drop(t, ref);
            return s;
        }
        CK_TRY(leaves_database(t, key));
    }
}

static ck_status bring_partition(ck_table *t, ck_rocks_iterator *it, ck_partition p, ck_bytes *prefix) {
    ck_partition_head h = {0};
    CK_TRY(partition_prefix(t, p, prefix));
    ck_status s = bring_into_tree(t, it, ck_bytes_as_view(prefix), &h);
    if (s == CK_OK && h.count != head_of(t, p).count) s = CK_CORRUPT;
    if (s == CK_OK)
        set_head(t, p, h);
    else
        ck_tree_free(t, &h); /* the store is broken: its rows lie where they are */
    return s;
}

ck_status ck_cold_bring_partitions(ck_table *t, const ck_partition *p, uint32_t n) {
    ck_cold *c = t->cold;
    ck_rocks_iterator *it = NULL; /* made with the first that is out */
    ck_bytes prefix;
    ck_bytes_init(&prefix, c->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < n; i++) {
        ck_partition_head h = p[i] ? head_of(t, p[i]) : (ck_partition_head){0};
        if (!ck_head_is_out(&h)) continue; /* one that stands here twice has come */
        if (!it) s = ready(t);
        if (s == CK_OK && !it) it = ck_rocks_iterate(c->db, NULL, true);
        if (s == CK_OK) s = bring_partition(t, it, p[i], &prefix);
    }
    if (it) ck_rocks_iterator_free(c->db, it);
    if (s == CK_OK && it) s = ck_cold_flush(c);
    ck_bytes_destroy(&prefix);
    return told(t, s, NULL);
}

/* ---- restore, where a partition is out ---- */

static ck_status note_there(void *arg, uint32_t i, ck_view value) {
    (void)i, (void)value;
    *(bool *)arg = true;
    return CK_OK;
}

static ck_status is_there(ck_table *t, ck_view rest, bool *there) {
    ck_cold *c = t->cold;
    *there = false;
    CK_TRY(ready(t));
    CK_TRY(ck_cold_key_begin(t, &c->key));
    CK_TRY(ck_bytes_view(&c->key, rest));
    ck_view key = ck_bytes_as_view(&c->key);
    return ck_rocks_get_many(c->db, NULL, &key, 1, note_there, there, &c->failed);
}

ck_status ck_cold_put_out(ck_table *t, ck_partition p, ck_view rest, ck_view value) {
    ck_cold *c = t->cold;
    ck_loose_row l;
    bool there;
    CK_TRY(loose_of_rest(t, rest, &l)); /* what comes back must parse */
    if (!ck_value_decode(t->shape, value, &l)) return CK_CORRUPT;
    uint32_t epoch = t->epochs->epoch > 1 ? t->epochs->epoch : 0;
    ck_status s = is_there(t, rest, &there);
    if (s == CK_OK) {
        ck_bytes_clear(&c->value);
        s = ck_bytes_u32le(&c->value, epoch);
        if (s == CK_OK) s = ck_bytes_view(&c->value, value);
        ck_rocks_put(c->db, c->batch, ck_bytes_as_view(&c->key), ck_bytes_as_view(&c->value));
        (void)count_row(t, p, !there);
        t->out_rows += !there, c->rows += !there;
        t->changed_epoch = t->epochs->epoch;
        t->changed_now++;
        if (s == CK_OK && epoch) s = ck_cold_put_changed(c, epoch);
        if (s == CK_OK) s = ck_cold_written(c, c->key.n + c->value.n);
    }
    return told(t, s, NULL);
}

ck_status ck_cold_erase_out(ck_table *t, ck_partition p, ck_view rest, bool *ended) {
    bool there;
    ck_status s = is_there(t, rest, &there);
    *ended = false;
    if (s == CK_OK && there) {
        ck_log_erase_key(t, rest, (uint32_t)ck_cold_group(rest).n - 4);
        t->changed_epoch = t->epochs->epoch;
        t->changed_now++;
        s = leaves_database(t, ck_bytes_as_view(&t->cold->key));
        *ended = count_row(t, p, -1) == 0;
    }
    return told(t, s, NULL);
}
