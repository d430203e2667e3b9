#include "operator/partition_timers_int.h"

#include "data/batch.h"

void ck_partition_timers_init(ck_partition_timers *t, ck_mem mem) { *t = (ck_partition_timers){.mem = mem}; }

void ck_partition_timers_destroy(ck_partition_timers *t) {
    if (t->heap) ck_free(t->mem, t->heap, t->capacity * sizeof *t->heap);
    if (t->due) ck_free(t->mem, t->due, t->due_count * sizeof *t->due);
    *t = (ck_partition_timers){.mem = t->mem};
}

static ck_status room_for(ck_partition_timers *t, ck_partition p) {
    if (p >= t->due_count) {
        uint32_t count = t->due_count ? t->due_count : 1024;
        while (count <= p) count *= 2;
        void *due = ck_realloc(t->mem, t->due, t->due_count * sizeof *t->due, count * sizeof *t->due);
        if (!due) return CK_NOMEM;
        t->due = due;
        for (uint32_t i = t->due_count; i < count; i++) t->due[i] = INT64_MAX;
        t->due_count = count;
    }
    if (t->count < t->capacity) return CK_OK;
    uint32_t capacity = t->capacity ? t->capacity * 2 : 256;
    void *heap = ck_realloc(t->mem, t->heap, t->capacity * sizeof *t->heap, capacity * sizeof *t->heap);
    if (!heap) return CK_NOMEM;
    t->heap = heap;
    t->capacity = capacity;
    return CK_OK;
}

ck_status ck_partition_timers_set(ck_partition_timers *t, ck_partition p, int64_t us) {
    if (p < t->due_count && t->due[p] <= us) return CK_OK; /* looked at again when that time comes */
    CK_TRY(room_for(t, p));
    t->due[p] = us;
    uint32_t i = t->count++;
    for (; i > 0 && t->heap[(i - 1) / 2].us > us; i = (i - 1) / 2) t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = (ck_partition_timer){us, p};
    return CK_OK;
}

static void pop(ck_partition_timers *t) {
    ck_partition_timer last = t->heap[--t->count];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < t->count; i = child) {
        if (child + 1 < t->count && t->heap[child + 1].us < t->heap[child].us) child++;
        if (t->heap[child].us >= last.us) break;
        t->heap[i] = t->heap[child];
    }
    if (t->count) t->heap[i] = last;
}

int64_t ck_partition_timers_first(const ck_partition_timers *t) { return t->count ? t->heap[0].us : INT64_MAX; }

bool ck_partition_timers_take(ck_partition_timers *t, int64_t us, ck_partition *p) {
    while (t->count && t->heap[0].us <= us) {
        ck_partition_timer top = t->heap[0];
        pop(t);
        if (t->due[top.partition] != top.us) continue; /* an earlier one took its place */
        t->due[top.partition] = INT64_MAX;
        *p = top.partition;
        return true;
    }
    return false;
}

ck_status ck_partition_timers_restore(ck_partition_timers *t, ck_table *table, ck_partition *room, ck_first_due_fn due,
                                      const void *arg, ck_op_ctx *ctx) {
    ck_table_scan scan = {0};
    ck_row *first;
    for (uint32_t n; (n = ck_table_partition_scan(table, &scan, room, CK_BATCH_ROWS_MAX)) > 0;) {
        for (uint32_t i = 0; i < n; i++)
            if (ck_partition_first(table, room[i], &first) &&
                ck_partition_timers_set(t, room[i], due(arg, first)) != CK_OK)
                return ck_nomem(ctx->error, t->mem, sizeof(ck_partition_timer));
        CK_TRY(ck_table_let_go(table, ctx->error));
    }
    return CK_OK;
}

ck_view ck_instant_key(int64_t us, char out[CK_INSTANT_KEY_BYTES]) {
    uint64_t v = (uint64_t)us ^ 1ULL << 63;
    for (int i = 0; i < CK_INSTANT_KEY_BYTES; i++) out[i] = (char)(v >> (56 - 8 * i));
    return (ck_view){out, CK_INSTANT_KEY_BYTES};
}
