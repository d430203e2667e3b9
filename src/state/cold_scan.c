/* Walks over all rows of a table that has some out: after those in memory, the database's in pieces. The rows of a
 * piece are borrowed: they stand in the table like any other, so that they may be touched and erased, and stay in the
 * database too, so that putting back one that was only read costs nothing. Those of an ordered table are in no tree:
 * they may be read and touched. */
#include "state/cold_int.h"

enum { PIECE = 256 };

typedef struct ck_cold_scan {
    uint64_t serial; /* of the walk the piece belongs to */
    ck_bytes last;   /* key the walk goes on behind; at the beginning what all begin with, which may be a key */
    bool begun;
    ck_bytes keys; /* of the piece's rows, to ends[i] */
    size_t ends[PIECE], prefix_bytes;
    uint32_t refs[PIECE], count, given;
} cold_scan;

static cold_scan *scan_of(ck_table *t) {
    if (t->scan) return t->scan;
    cold_scan *s = ck_alloc_zero(t->cold->mem, sizeof *s);
    if (!s) return NULL;
    ck_bytes_init(&s->last, t->cold->mem, SIZE_MAX);
    ck_bytes_init(&s->keys, t->cold->mem, SIZE_MAX);
    return t->scan = s;
}

void ck_cold_scan_free(ck_table *t) {
    cold_scan *s = t->scan;
    if (!s) return;
    ck_bytes_destroy(&s->last);
    ck_bytes_destroy(&s->keys);
    ck_free(t->cold->mem, s, sizeof *s);
    t->scan = NULL;
}

static ck_view key_of(const cold_scan *s, uint32_t i) {
    size_t from = i ? s->ends[i - 1] : 0;
    return (ck_view){s->keys.p + from, s->ends[i] - from};
}

/* ---- settling ---- */

static bool row_bit(const ck_table *t, uint32_t ref, unsigned which) {
    uint32_t id = ck_ref_page(t, ref);
    if (!t->at[id].rows) return false;
    ck_page_head *h = ck_head_of(t->shape, ck_class_of_page(id), t->at[id].rows);
    return ck_bit_get(ck_page_bits(t->shape, h, which), ck_ref_slot(t, ref));
}

static ck_status out_of_database(ck_table *t, ck_view key) {
    ck_cold *c = t->cold;
    ck_rocks_delete(c->db, c->batch, key);
    t->out_rows--;
    c->rows--;
    return ck_cold_written(c, key.n);
}

static ck_status drop(ck_table *t, uint32_t ref) {
    uint64_t changes = t->changed_now;
    CK_TRY(ck_row_drop_prepare(t, ref));
    if (!t->shape->ordered) ck_table_leave_indexes(t, ref, ck_row_of(t, ref));
    ck_cold_set_changed(t, ref, false);
    ck_row_drop(t, ref);
    t->changed_now = changes;
    return CK_OK;
}

/* A row that cannot stay alone, in no tree or without the rest of its list, goes back with what was written. */
static ck_status write_back(ck_table *t, uint32_t ref, ck_view key) {
    ck_cold *c = t->cold;
    uint32_t epoch = t->epochs->epoch > 1 ? t->epochs->epoch : 0;
    ck_bytes_clear(&c->value);
    CK_TRY(ck_bytes_u32le(&c->value, epoch));
    CK_TRY(ck_value_encode(t->shape, (ck_var_source){.pages = t->var.pages}, ck_row_of(t, ref), &c->value));
    ck_rocks_put(c->db, c->batch, key, ck_bytes_as_view(&c->value));
    size_t bytes = key.n + c->value.n;
    ck_bytes_clear(&c->key);
    CK_TRY(ck_bytes_view(&c->key, key));
    if (epoch) CK_TRY(ck_cold_put_changed(c, epoch));
    return ck_cold_written(c, bytes);
}

static ck_status settle_row(ck_table *t, uint32_t ref, ck_view key) {
    if (!row_bit(t, ref, 0)) return out_of_database(t, key); /* erased */
    bool written = row_bit(t, ref, 1);
    if (ck_cold_kind(t) == CK_ROCKS_GROUPED) {
        if (written) CK_TRY(write_back(t, ref, key));
        return drop(t, ref);
    }
    return written || drop(t, ref) != CK_OK ? out_of_database(t, key) : CK_OK;
}

ck_status ck_cold_settle(ck_table *t) {
    cold_scan *s = t->scan;
    if (!s || s->count == 0) return CK_OK;
    uint32_t count = s->count;
    if (s->given > 0) {
        ck_view last = key_of(s, s->given - 1);
        ck_bytes_clear(&s->last);
        CK_TRY(ck_bytes_view(&s->last, last));
        s->begun = true;
    }
    s->count = s->given = 0;
    t->borrowed = 0;
    for (uint32_t i = 0; i < count; i++) CK_TRY(settle_row(t, s->refs[i], key_of(s, i)));
    ck_bytes_clear(&s->keys);
    return CK_OK;
}

/* ---- walking ---- */

static ck_status begin(ck_table *t, cold_scan *s, uint64_t *position) {
    CK_TRY(ck_cold_settle(t));
    CK_TRY(ck_cold_key_begin(t, &s->last));
    s->prefix_bytes = s->last.n;
    s->begun = false;
    *position = CK_SCAN_OUT | ++s->serial;
    return CK_OK;
}

static ck_status borrow(ck_table *t, cold_scan *s, ck_view key, ck_view value) {
    ck_view rest = {key.p + s->prefix_bytes, key.n - s->prefix_bytes};
    CK_TRY(ck_bytes_view(&s->keys, key));
    ck_status st = ck_cold_insert(t, rest, value, true, &s->refs[s->count]);
    if (st != CK_OK) return st;
    s->ends[s->count++] = s->keys.n;
    t->borrowed++;
    return CK_OK;
}

static ck_status next_piece(ck_table *t, cold_scan *s) {
    ck_cold *c = t->cold;
    CK_TRY(ck_cold_settle(t));
    CK_TRY(ck_cold_flush(c));
    ck_rocks_iterator *it = ck_rocks_iterate(c->db, NULL, false);
    ck_view key = {0}, value, last = ck_bytes_as_view(&s->last);
    bool any = true;
    ck_status st = CK_OK;
    for (ck_rocks_seek(c->db, it, last); st == CK_OK && s->count < PIECE; ck_rocks_next(c->db, it)) {
        st = ck_rocks_at(c->db, it, &any, &key, &value, &c->failed);
        if (st != CK_OK || !any || key.n < s->prefix_bytes || memcmp(key.p, last.p, s->prefix_bytes) != 0) break;
        if (s->begun && ck_view_eq(key, last)) continue;
        st = borrow(t, s, key, value);
    }
    ck_rocks_iterator_free(c->db, it);
    return st;
}

uint32_t ck_cold_scan(ck_table *t, uint64_t *position, ck_row **rows, uint32_t max) {
    cold_scan *s = scan_of(t);
    ck_status st = s ? ck_cold_check(t->cold, NULL) : CK_NOMEM;
    if (st == CK_OK && *position != (CK_SCAN_OUT | s->serial)) st = begin(t, s, position);
    if (st == CK_OK && s->given == s->count) st = next_piece(t, s);
    if (st != CK_OK) {
        ck_cold_broken(t->cold, st);
        return 0;
    }
    uint32_t n = 0;
    while (n < max && s->given < s->count) rows[n++] = ck_row_of(t, s->refs[s->given++]);
    return n;
}

/* ---- a bucket that goes ---- */

ck_status ck_cold_log_rows(ck_table *t) {
    ck_cold *c = t->cold;
    CK_TRY(ck_cold_flush(c));
    CK_TRY(ck_cold_key_begin(t, &c->key));
    ck_view prefix = ck_bytes_as_view(&c->key), key, value;
    ck_rocks_iterator *it = ck_rocks_iterate(c->db, NULL, false);
    bool any;
    ck_status st;
    for (ck_rocks_seek(c->db, it, prefix);; ck_rocks_next(c->db, it)) {
        st = ck_rocks_at(c->db, it, &any, &key, &value, &c->failed);
        if (st != CK_OK || !any || key.n < prefix.n || memcmp(key.p, prefix.p, prefix.n) != 0) break;
        ck_view rest = {key.p + prefix.n, key.n - prefix.n};
        ck_log_erase_key(t, rest, (uint32_t)ck_cold_group(rest).n - 4);
    }
    ck_rocks_iterator_free(c->db, it);
    return st;
}
