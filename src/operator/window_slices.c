/* Which buckets are slices. Where windows have none of their own that is every bucket; else the slices stand in an
 * array beside the table, so that what is said of a window does not depend on how many are kept. */
#include "operator/window_int.h"

/* Index of the first slice at or behind a bucket. */
static uint32_t lower(const ck_window_slices *s, int64_t bucket) {
    uint32_t lo = s->first, hi = s->first + s->count;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->names[mid] < bucket)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool ck_window_next_slice(const ck_window_agg *op, int64_t from, int64_t to, int64_t *slice) {
    const ck_window_slices *s = &op->slices;
    if (!op->window.apart_us)
        return ck_table_first_bucket(op->table, from, slice) && *slice <= to && *slice <= CK_WINDOW_END_MAX;
    uint32_t at = lower(s, from);
    if (at == s->first + s->count) return false;
    *slice = s->names[at];
    return *slice <= to;
}

bool ck_window_next_counted(const ck_window_agg *op, int64_t from, int64_t *end) {
    while (from <= op->slices.windows_to && ck_table_first_bucket(op->table, from, end) &&
           *end <= op->slices.windows_to) {
        if (!ck_window_is_slice(&op->window, *end)) return true;
        from = *end + 1;
    }
    return false;
}

void *ck_window_row_room(void *row, size_t size, uint32_t *first, uint32_t count, uint32_t *capacity, ck_mem mem) {
    char *at = row;
    if (*first + count < *capacity) return row;
    if (*first > count) {
        memmove(at, at + *first * size, count * size);
        *first = 0;
        return row;
    }
    uint32_t more = *capacity ? *capacity * 2 : 64;
    void *grown = ck_alloc_array(mem, more, size);
    if (!grown) return NULL;
    if (count) memcpy(grown, at + *first * size, count * size);
    ck_free(mem, row, *capacity * size);
    *first = 0, *capacity = more;
    return grown;
}

ck_status ck_window_slices_add(ck_window_agg *op, int64_t bucket, ck_op_ctx *ctx) {
    ck_window_slices *s = &op->slices;
    if (!ck_window_is_slice(&op->window, bucket)) return CK_OK;
    uint32_t at = lower(s, bucket);
    if (at < s->first + s->count && s->names[at] == bucket) return CK_OK;
    uint32_t behind = s->first + s->count - at, before = s->count - behind;
    int64_t *names = ck_window_row_room(s->names, sizeof *names, &s->first, s->count, &s->capacity, op->mem);
    if (!names) return ck_nomem(ctx->error, op->mem, s->capacity * 2 * sizeof *names);
    s->names = names;
    int64_t *place = s->names + s->first + before;
    memmove(place + 1, place, behind * sizeof *place);
    *place = bucket;
    s->count++;
    return CK_OK;
}

void ck_window_slices_drop(ck_window_agg *op, int64_t bucket) {
    ck_window_slices *s = &op->slices;
    uint32_t at = lower(s, bucket), end = s->first + s->count;
    if (at == end || s->names[at] != bucket) return;
    if (at == s->first)
        s->first++;
    else
        memmove(s->names + at, s->names + at + 1, (end - at - 1) * sizeof *s->names);
    s->count--;
}

ck_status ck_window_slices_open(ck_window_agg *op, ck_op_ctx *ctx) {
    int64_t bucket = INT64_MIN;
    op->slices.windows_to = INT64_MIN;
    for (; op->window.apart_us && ck_table_first_bucket(op->table, bucket, &bucket); bucket++) {
        if (ck_window_is_slice(&op->window, bucket))
            CK_TRY(ck_window_slices_add(op, bucket, ctx));
        else
            op->slices.windows_to = bucket;
    }
    return CK_OK;
}

void ck_window_slices_close(ck_window_agg *op) {
    ck_free(op->mem, op->slices.names, op->slices.capacity * sizeof *op->slices.names);
    op->slices = (ck_window_slices){0};
}
