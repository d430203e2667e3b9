/* Time to live: entries that have not been written for their slot's time go. Each row of such a slot carries, behind
 * its fields, the millisecond at which it expires; slots without it have neither the bytes nor the work. Expired rows
 * go in sweeps over the whole slot, one whenever the clock has come on by a 64th of the time to live, so that reading
 * needs not ask, and a row lives at least as long as it should and at most a 64th longer. */
#include "state/state_int.h"

#include "state/stored_int.h"

enum { SWEEPS = 64, PIECE = 256, ORDER_KEYS = 64 };

/* Restored from a time when the slot had none: counts from the first sweep. */
#define NEVER_WRITTEN 0

static int64_t expiry_of(const ck_table *t, const ck_row *row) { return ck_row_i64(row, t->shape->ttl_at); }

void ck_ttl_stamp(ck_table *t, ck_row *const *rows, uint32_t n) {
    uint32_t at = t->shape->ttl_at;
    for (uint32_t i = 0; i < n; i++) ck_row_set_i64(rows[i], at, t->expiry_ms);
}

/* Rows that got no time yet get one; of the others those that are over are moved to the front. */
static ck_status look_at(ck_table *t, ck_row **rows, uint32_t n, int64_t now_ms, uint32_t *over) {
    *over = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t expiry = expiry_of(t, rows[i]);
        if (expiry == NEVER_WRITTEN) {
            ck_row *row;
            CK_TRY(ck_row_writable(t, ck_ref_of(t, rows[i]), &row));
            ck_row_set_i64(row, t->shape->ttl_at, t->expiry_ms);
        } else if (expiry <= now_ms) {
            rows[(*over)++] = rows[i];
        }
    }
    return CK_OK;
}

static ck_status sweep_hash(ck_table *t, int64_t now_ms, uint64_t *gone, ck_error *err) {
    ck_table_scan scan = {0};
    ck_row *rows[PIECE];
    for (uint32_t n, over; (n = ck_table_scan_next(t, &scan, rows, PIECE)) > 0;) {
        if (look_at(t, rows, n, now_ms, &over) != CK_OK) return ck_nomem(err, t->mem, PIECE);
        CK_TRY(ck_table_erase(t, rows, over, err));
        *gone += over;
    }
    t->single = 0; /* it may have gone */
    return CK_OK;
}

/* Order keys of up to ORDER_KEYS rows of p that are over. */
static ck_status over_keys(ck_table *t, ck_partition p, int64_t now_ms, ck_bytes *keys, size_t *ends, uint32_t *n) {
    ck_range r;
    ck_row *row;
    *n = 0;
    ck_bytes_clear(keys);
    ck_range_open(&r, t, p, (ck_view){0}, (ck_view){0});
    while (*n < ORDER_KEYS && ck_range_next(&r, &row)) {
        uint32_t over;
        CK_TRY(look_at(t, &row, 1, now_ms, &over));
        if (!over) continue;
        CK_TRY(ck_row_order_key(t, row, keys));
        ends[(*n)++] = keys->n;
    }
    return CK_OK;
}

static ck_status sweep_partition(ck_table *t, ck_partition p, int64_t now_ms, ck_bytes *keys, uint64_t *gone,
                                 ck_error *err) {
    size_t ends[ORDER_KEYS];
    uint32_t n;
    do {
        if (over_keys(t, p, now_ms, keys, ends, &n) != CK_OK) return ck_nomem(err, t->mem, keys->n);
        uint64_t left = ck_partition_rows(t, p) - n;
        for (uint32_t i = 0; i < n; i++) {
            size_t from = i ? ends[i - 1] : 0;
            CK_TRY(ck_partition_erase(t, p, (ck_view){keys->p + from, ends[i] - from}, err));
        }
        *gone += n;
        if (left == 0) return CK_OK; /* the partition has ended */
    } while (n == ORDER_KEYS);
    return CK_OK;
}

static ck_status sweep_ordered(ck_table *t, int64_t now_ms, uint64_t *gone, ck_error *err) {
    ck_table_scan scan = {0};
    ck_partition partitions[PIECE];
    ck_bytes keys;
    ck_status s = CK_OK;
    ck_bytes_init(&keys, t->mem, SIZE_MAX);
    for (uint32_t n; s == CK_OK && (n = ck_table_partition_scan(t, &scan, partitions, PIECE)) > 0;) {
        for (uint32_t i = 0; s == CK_OK && i < n; i++) s = sweep_partition(t, partitions[i], now_ms, &keys, gone, err);
        if (s == CK_OK) s = ck_table_let_go(t, err);
    }
    ck_bytes_destroy(&keys);
    return s;
}

static ck_status table_comes_to(ck_table *t, int64_t now_us, uint64_t *gone, ck_error *err) {
    int64_t ttl_us = t->shape->schema->ttl_us, now_ms = now_us >= 0 ? now_us / 1000 : -((-now_us + 999) / 1000);
    int64_t expiry_ms = now_ms + (ttl_us + 999) / 1000;
    if (expiry_ms == NEVER_WRITTEN) expiry_ms++;
    if (t->swept && expiry_ms <= t->expiry_ms) return CK_OK; /* a clock that went back is waited for */
    t->expiry_ms = expiry_ms;
    if (t->swept && now_us - t->swept_us < ttl_us / SWEEPS) return CK_OK;
    CK_TRY(t->shape->ordered ? sweep_ordered(t, now_ms, gone, err) : sweep_hash(t, now_ms, gone, err));
    t->swept_us = now_us;
    t->swept = true;
    return CK_OK;
}

ck_status ck_state_come_to(ck_state *st, int64_t now_us, uint64_t *expired, ck_error *err) {
    *expired = 0;
    if (now_us == INT64_MIN) return CK_OK;
    for (ck_state_slot *slot = st->slots; slot; slot = slot->next)
        if (!slot->raw && slot->shape->ttl_at) CK_TRY(table_comes_to(slot->table, now_us, expired, err));
    return CK_OK;
}

/* ---- stored ---- */

ck_status ck_ttl_convert(const ck_slot_schema *from, const ck_slot_schema *to, ck_bytes *value) {
    int64_t expiry = NEVER_WRITTEN;
    uint8_t b[8];
    if (from->ttl_us) {
        memcpy(&expiry, value->p, 8);
        memmove(value->p, value->p + 8, value->n - 8);
        value->n -= 8;
    }
    if (!to->ttl_us) return CK_OK;
    if (from->ttl_us && expiry != NEVER_WRITTEN) expiry += (to->ttl_us - from->ttl_us) / 1000;
    memcpy(b, &expiry, 8); /* little-endian, as everything we run on */
    CK_TRY(ck_bytes_append(value, b, 8));
    memmove(value->p + 8, value->p, value->n - 8);
    memcpy(value->p, b, 8);
    return CK_OK;
}
