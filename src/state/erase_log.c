/* Keys of erased rows, kept for deltas until the checkpoint that carries them is completed. Chunks only grow at the
 * end, so that a mark's reader may follow them up to the last one it saw; chunks are freed when no mark reads them. A
 * log that outgrows half the state is given up: the next snapshot is a base then. */
#include "state/stored_int.h"

enum { CHUNK_MIN = 4096, CHUNK_MAX = 256 * 1024, LOG_FLOOR = 4 << 20 };

static size_t chunk_bytes(uint32_t data) { return sizeof(ck_log_chunk) + data; }

static void drop_first(ck_table *t, ck_erase_log *log) {
    ck_log_chunk *c = log->first;
    log->first = c->next;
    if (!log->first) log->last = NULL;
    log->bytes -= chunk_bytes(c->bytes);
    log->entries -= c->entries;
    ck_free(t->mem, c, chunk_bytes(c->bytes));
}

/* Everything up to now; what a live mark may be reading goes later (ck_log_forget). */
static void give_up(ck_table *t, ck_erase_log *log) {
    log->lost = t->epochs->epoch;
    if (t->epochs->live) return;
    while (log->first) drop_first(t, log);
}

static uint8_t *reserve(ck_table *t, ck_erase_log *log, uint32_t need) {
    ck_log_chunk *c = log->last;
    if (c && c->epoch == t->epochs->epoch && c->bytes - c->used >= need) return c->data + c->used;
    uint32_t bytes = log->bytes < CHUNK_MIN ? CHUNK_MIN : log->bytes > CHUNK_MAX ? CHUNK_MAX : (uint32_t)log->bytes;
    if (bytes < need) bytes = need;
    c = ck_alloc(t->mem, chunk_bytes(bytes));
    if (!c) return NULL;
    *c = (ck_log_chunk){.epoch = t->epochs->epoch, .bytes = bytes};
    if (log->last)
        log->last->next = c;
    else
        log->first = c;
    log->last = c;
    log->bytes += chunk_bytes(bytes);
    return c->data;
}

static bool is_logging(const ck_table *t, const ck_erase_log *log) {
    return t->epochs->tracking && t->epochs->epoch > 1 && log->lost != t->epochs->epoch; /* epoch 1: no mark yet */
}

static bool has_room(const ck_table *t, const ck_erase_log *log) {
    size_t half = t->epochs->pool->used_bytes / 2;
    return log->bytes < (half > LOG_FLOOR ? half : LOG_FLOOR);
}

void ck_log_erase_key(ck_table *t, ck_view rest, uint32_t user_key_bytes) {
    ck_erase_log *log = t->log;
    if (!is_logging(t, log)) return;
    uint8_t *p = has_room(t, log) ? reserve(t, log, (uint32_t)(8 + rest.n)) : NULL;
    if (!p) {
        give_up(t, log);
        return;
    }
    uint32_t n = (uint32_t)rest.n;
    memcpy(p, &n, 4);
    memcpy(p + 4, &user_key_bytes, 4);
    if (n) memcpy(p + 8, rest.p, n);
    log->last->used += 8 + n;
    log->last->entries++;
    log->entries++;
}

void ck_log_erase(ck_table *t, const ck_row *row) {
    if (!is_logging(t, t->log)) return;
    ck_bytes_clear(&t->scratch);
    uint32_t user_key_bytes = 0;
    ck_var_source v = {.pages = t->var.pages};
    if (ck_key_rest_encode(t->shape, v, row, &t->scratch, &user_key_bytes) == CK_OK)
        ck_log_erase_key(t, ck_bytes_as_view(&t->scratch), user_key_bytes);
    else
        give_up(t, t->log);
}

/* Only when no mark reads it. */
void ck_log_forget(ck_table *t, uint32_t completed) {
    ck_erase_log *log = &t->own_log;
    while (log->first && (log->first->epoch <= completed || log->first->epoch <= log->lost)) drop_first(t, log);
}

void ck_log_free(ck_table *t) {
    while (t->own_log.first) drop_first(t, &t->own_log);
}
