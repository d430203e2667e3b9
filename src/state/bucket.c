/* Slots with `bucketed`: a hash table per value of the first order column (a slice end), dropped whole when the slice
 * fires. The key inside is the partition columns and the order columns behind the first. */
#include "state/cold_int.h"

static void free_places(ck_table *t) {
    uint32_t n = t->buckets_gone + t->bucket_capacity;
    if (n == 0) return;
    ck_free(t->mem, t->buckets - t->buckets_gone, n * sizeof *t->buckets);
    ck_free(t->mem, t->bucket_keys - t->buckets_gone, n * sizeof *t->bucket_keys);
}

void ck_buckets_free(ck_table *t) {
    for (uint32_t i = 0; i < t->bucket_count; i++) ck_table_free(t->buckets[i]);
    ck_spares_free(t);
    free_places(t);
    t->buckets = NULL, t->bucket_keys = NULL;
    t->bucket_count = t->bucket_capacity = t->buckets_gone = 0;
}

/* Index of the smallest bucket >= at_least. */
static uint32_t lower(const ck_table *t, int64_t at_least) {
    uint32_t lo = 0, hi = t->bucket_count;
    if (hi == 0 || at_least <= t->bucket_keys[0]) return 0; /* the oldest, and those at the end, are asked for most */
    if (at_least > t->bucket_keys[hi - 1]) return hi;
    if (hi > 1 && at_least > t->bucket_keys[hi - 2]) return hi - 1;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (t->bucket_keys[mid] < at_least)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static ck_status make_room(ck_table *t) {
    if (t->bucket_count < t->bucket_capacity) return CK_OK;
    if (t->buckets_gone > t->bucket_count) { /* more places in front than there are buckets */
        memmove(t->buckets - t->buckets_gone, t->buckets, t->bucket_count * sizeof *t->buckets);
        memmove(t->bucket_keys - t->buckets_gone, t->bucket_keys, t->bucket_count * sizeof *t->bucket_keys);
        t->buckets -= t->buckets_gone, t->bucket_keys -= t->buckets_gone;
        t->bucket_capacity += t->buckets_gone, t->buckets_gone = 0;
        return CK_OK;
    }
    uint32_t had = t->bucket_capacity, capacity = had ? had * 2 : 4;
    ck_table **tables = ck_alloc_array(t->mem, capacity, sizeof *tables);
    int64_t *keys = ck_alloc_array(t->mem, capacity, sizeof *keys);
    if (!tables || !keys) {
        ck_free(t->mem, tables, capacity * sizeof *tables);
        ck_free(t->mem, keys, capacity * sizeof *keys);
        return CK_NOMEM;
    }
    if (t->bucket_count) {
        memcpy(tables, t->buckets, t->bucket_count * sizeof *tables);
        memcpy(keys, t->bucket_keys, t->bucket_count * sizeof *keys);
    }
    free_places(t);
    t->buckets = tables, t->bucket_keys = keys, t->bucket_capacity = capacity, t->buckets_gone = 0;
    return CK_OK;
}

static ck_status bucket_add(ck_table *t, uint32_t at, int64_t bucket, ck_error *err) {
    if (make_room(t) != CK_OK) return ck_nomem(err, t->mem, t->bucket_capacity * sizeof *t->buckets);
    ck_table *b = ck_spare_take(t);
    if (!b) CK_TRY(ck_table_new(t->epochs, t->mem, t->shape, t->seed, &b, err));
    b->is_bucket = true, b->bucket = bucket;
    b->cold = t->cold, b->cold_slot = t->cold_slot;
    b->log = &t->own_log;
    uint32_t tail = t->bucket_count - at;
    memmove(t->buckets + at + 1, t->buckets + at, tail * sizeof *t->buckets);
    memmove(t->bucket_keys + at + 1, t->bucket_keys + at, tail * sizeof *t->bucket_keys);
    t->buckets[at] = b, t->bucket_keys[at] = bucket;
    t->bucket_count++;
    return CK_OK;
}

ck_status ck_table_bucket(ck_table *t, int64_t bucket, bool create, ck_table **out, ck_error *err) {
    CK_ASSERT(t->shape->schema->bucketed && !t->is_bucket);
    uint32_t *guess = &t->bucket_guess[ck_mix64((uint64_t)bucket) % CK_BUCKET_GUESSES], at = *guess - t->buckets_gone;
    bool there = at < t->bucket_count && t->bucket_keys[at] == bucket;
    if (!there) {
        at = lower(t, bucket);
        there = at < t->bucket_count && t->bucket_keys[at] == bucket;
    }
    *out = NULL;
    if (!there && !create) return CK_OK;
    if (!there) CK_TRY(bucket_add(t, at, bucket, err));
    *guess = at + t->buckets_gone;
    *out = t->buckets[at];
    return CK_OK;
}

bool ck_table_first_bucket(const ck_table *t, int64_t at_least, int64_t *bucket) {
    uint32_t at = lower(t, at_least);
    if (at == t->bucket_count) return false;
    *bucket = t->bucket_keys[at];
    return true;
}

/* The keys of a bucket that a completed checkpoint holds are logged one by one: in the file they stand by partition. */
static void log_rows(ck_table *b) {
    uint64_t at = 0;
    ck_row *rows[256];
    for (uint32_t n; (n = ck_table_scan_pages(b, &at, rows, 256)) > 0;)
        for (uint32_t i = 0; i < n; i++) ck_log_erase(b, rows[i]);
}

/* Its rows that are not in memory. */
static ck_status drop_out(ck_table *t, ck_table *b, bool seen, ck_error *err) {
    ck_status s = ck_cold_settle(b);
    t->changed_now += seen ? b->out_rows : 0;
    if (s == CK_OK && seen) s = ck_cold_log_rows(b);
    if (s == CK_OK) s = ck_cold_forget(b);
    if (s == CK_OK) return CK_OK;
    ck_cold_broken(b->cold, s);
    return ck_cold_check(b->cold, err);
}

ck_status ck_table_drop_bucket(ck_table *t, int64_t bucket, ck_error *err) {
    uint32_t at = lower(t, bucket);
    if (at == t->bucket_count || t->bucket_keys[at] != bucket) return CK_OK;
    ck_table *b = t->buckets[at];
    bool seen = t->epochs->tracking && b->born < t->epochs->epoch; /* else no mark has seen it */
    if (b->out_rows) CK_TRY(drop_out(t, b, seen, err));
    if (ck_epochs_reserve(t->epochs, ck_table_retire_count(b)) != CK_OK)
        return ck_nomem(err, ck_mem_as(t->mem, CK_MEM_SNAPSHOT), sizeof(ck_retired));
    if (seen) {
        log_rows(b);
        t->changed_now += b->rows;
        t->changed_epoch = t->epochs->epoch;
    }
    if (!ck_spare_put(t, b)) ck_table_free(b);
    if (--t->bucket_count == 0) ck_spares_free(t);
    if (at == 0) {
        t->buckets++, t->bucket_keys++, t->buckets_gone++, t->bucket_capacity--;
        return CK_OK;
    }
    memmove(t->buckets + at, t->buckets + at + 1, (t->bucket_count - at) * sizeof *t->buckets);
    memmove(t->bucket_keys + at, t->bucket_keys + at + 1, (t->bucket_count - at) * sizeof *t->bucket_keys);
    return CK_OK;
}
