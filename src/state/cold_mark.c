/* What was out of memory when a mark was taken, read under the snapshot that was taken with it. A base reads all of a
 * slot's rows in the order of their keys. A delta reads the keys that left with a change since the mark it counts from,
 * and looks up what of them was there: a row that came back since is in the marked tables, and one that left again
 * stands under the later epoch. */
#include "state/cold_int.h"

static ck_status begin_key(ck_cold_reader *r, uint8_t family, uint32_t epoch) {
    const uint8_t rows[6] = {CK_ROCKS_ROWS,           (uint8_t)(r->store >> 8), (uint8_t)r->store,
                             (uint8_t)(r->slot >> 8), (uint8_t)r->slot,         0};
    const uint8_t changed[7] = {CK_ROCKS_CHANGED,       (uint8_t)(r->store >> 8), (uint8_t)r->store,
                                (uint8_t)(epoch >> 24), (uint8_t)(epoch >> 16),   (uint8_t)(epoch >> 8),
                                (uint8_t)epoch};
    ck_bytes_clear(&r->from);
    return family == CK_ROCKS_ROWS ? ck_bytes_append(&r->from, rows, 5) : ck_bytes_append(&r->from, changed, 7);
}

ck_status ck_cold_reader_begin(ck_cold_reader *r, ck_error *err) {
    r->it = ck_rocks_iterate(r->db, r->at, false);
    r->ended = false;
    if (begin_key(r, r->delta ? CK_ROCKS_CHANGED : CK_ROCKS_ROWS, r->after + 1) != CK_OK)
        return ck_nomem(err, r->from.mem, 16);
    ck_rocks_seek(r->db, r->it, ck_bytes_as_view(&r->from));
    return CK_OK;
}

void ck_cold_reader_end(ck_cold_reader *r) {
    if (!r->db) return;
    ck_rocks_iterator_free(r->db, r->it);
    ck_bytes_destroy(&r->from);
    ck_bytes_destroy(&r->keys);
    ck_bytes_destroy(&r->rows);
    *r = (ck_cold_reader){0};
}

static bool row_of(const ck_cold_reader *r, ck_view key, ck_view stored, ck_view *rest, ck_view *value) {
    if (key.n < r->head || stored.n < 4) return false;
    *rest = (ck_view){key.p + r->head, key.n - r->head};
    *value = (ck_view){stored.p + 4, stored.n - 4};
    return true;
}

static ck_status does_not_parse(ck_error *err) {
    return ck_fail(err, CK_CORRUPT, "state in RocksDB: a row that does not parse");
}

/* The key and value stay valid until the iterator goes on: that is done first. */
static ck_status next_of_all(ck_cold_reader *r, bool *any, ck_view *rest, ck_view *value, ck_error *err) {
    ck_view key, stored;
    if (r->at_row++) ck_rocks_next(r->db, r->it);
    CK_TRY(ck_rocks_at(r->db, r->it, any, &key, &stored, err));
    *any = *any && key.n >= r->from.n && memcmp(key.p, r->from.p, r->from.n) == 0;
    if (!*any) return CK_OK;
    return row_of(r, key, stored, rest, value) ? CK_OK : does_not_parse(err);
}

/* ---- deltas ---- */

static uint32_t u32be(const char *p) {
    const uint8_t *b = (const uint8_t *)p;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Up to CK_ROCKS_MANY keys of this slot. Within an epoch slots come one after the other: what is before this one is
 * jumped over, and so is what is behind it. */
static ck_status next_keys(ck_cold_reader *r, ck_error *err) {
    ck_view key, nothing;
    bool any;
    r->count = 0;
    ck_bytes_clear(&r->keys);
    while (r->count < CK_ROCKS_MANY) {
        CK_TRY(ck_rocks_at(r->db, r->it, &any, &key, &nothing, err));
        r->ended = !any || key.n < 10 || memcmp(key.p, r->from.p, 3) != 0 || u32be(key.p + 3) > r->until;
        if (r->ended) return CK_OK;
        uint32_t epoch = u32be(key.p + 3), slot = (uint32_t)(uint8_t)key.p[7] << 8 | (uint8_t)key.p[8];
        if (slot != r->slot) {
            if (begin_key(r, CK_ROCKS_CHANGED, slot < r->slot ? epoch : epoch + 1) != CK_OK ||
                ck_bytes_u16be(&r->from, r->slot) != CK_OK)
                return ck_nomem(err, r->from.mem, 16);
            ck_rocks_seek(r->db, r->it, ck_bytes_as_view(&r->from));
            continue;
        }
        const uint8_t head[3] = {CK_ROCKS_ROWS, (uint8_t)(r->store >> 8), (uint8_t)r->store};
        if (ck_bytes_append(&r->keys, head, sizeof head) != CK_OK ||
            ck_bytes_append(&r->keys, key.p + 7, key.n - 7) != CK_OK)
            return ck_nomem(err, r->keys.mem, key.n);
        r->epochs[r->count] = epoch;
        r->ends[r->count++] = r->keys.n;
        ck_rocks_next(r->db, r->it);
    }
    return CK_OK;
}

static ck_view wanted_key(const ck_cold_reader *r, uint32_t i) {
    size_t from = i ? r->ends[i - 1] : 0;
    return (ck_view){r->keys.p + from, r->ends[i] - from};
}

static ck_status found(void *arg, uint32_t i, ck_view stored) {
    ck_cold_reader *r = arg;
    ck_view rest, value;
    if (!row_of(r, wanted_key(r, i), stored, &rest, &value)) return CK_CORRUPT;
    uint32_t epoch = 0;
    for (unsigned b = 0; b < 4; b++) epoch |= (uint32_t)(uint8_t)stored.p[b] << (8 * b);
    if (epoch != r->epochs[i]) return CK_OK; /* it left again later */
    CK_TRY(ck_bytes_u32le(&r->rows, (uint32_t)rest.n));
    CK_TRY(ck_bytes_u32le(&r->rows, (uint32_t)value.n));
    CK_TRY(ck_bytes_view(&r->rows, rest));
    return ck_bytes_view(&r->rows, value);
}

static ck_status next_piece(ck_cold_reader *r, ck_error *err) {
    ck_view keys[CK_ROCKS_MANY];
    CK_TRY(next_keys(r, err));
    ck_bytes_clear(&r->rows);
    r->read = 0;
    for (uint32_t i = 0; i < r->count; i++) keys[i] = wanted_key(r, i);
    ck_error own = CK_ERROR_INIT;
    ck_status s = r->count ? ck_rocks_get_many(r->db, r->at, keys, r->count, found, r, &own) : CK_OK;
    if (s == CK_NOMEM) return ck_nomem(err, r->rows.mem, r->rows.n);
    if (s != CK_OK && own.status == CK_OK) return does_not_parse(err);
    if (s != CK_OK && err) *err = own;
    return s;
}

static ck_status next_of_changed(ck_cold_reader *r, bool *any, ck_view *rest, ck_view *value, ck_error *err) {
    while (r->read == r->rows.n && !(r->ended && r->at_row)) {
        r->at_row = 1;
        CK_TRY(next_piece(r, err));
    }
    *any = r->read < r->rows.n;
    if (!*any) return CK_OK;
    uint32_t n[2];
    memcpy(n, r->rows.p + r->read, sizeof n); /* little-endian, as everything we run on */
    const char *at = r->rows.p + r->read + sizeof n;
    *rest = (ck_view){at, n[0]}, *value = (ck_view){at + n[0], n[1]};
    r->read += sizeof n + n[0] + n[1];
    return CK_OK;
}

ck_status ck_cold_reader_next(ck_cold_reader *r, bool *any, ck_view *rest, ck_view *value, ck_error *err) {
    return r->delta ? next_of_changed(r, any, rest, value, err) : next_of_all(r, any, rest, value, err);
}
