/* See cold_int.h: the life of a store's cold rows, their keys, the batch they wait in, what could not be said. */
#include "state/cold_int.h"

#include "state/state_int.h"

enum { BATCH_BYTES = 1 << 20, SLOTS_MAX = UINT16_MAX, STORES_MAX = UINT16_MAX + 1 };

/* State has what the others leave of the account before pages spill to a file (pages.c), less an eighth, and at least a
 * half of that; when it has more, rows leave until an eighth of it is free again. */
size_t ck_cold_over(const ck_cold *c) {
    const ck_budget *b = c->mem.budget;
    size_t state = ck_budget_used(b, CK_MEM_STATE), total = ck_budget_total(b),
           others = total > state ? total - state : 0;
    size_t least = c->evict_above / 2, may = c->evict_above > others ? c->evict_above - others : 0;
    if (may < least) may = least;
    return CK_LIKELY(state <= may) ? 0 : state - may / 8 * 7;
}

ck_status ck_cold_new(ck_rocks *db, ck_mem mem, ck_epochs *e, ck_cold **out, ck_error *err) {
    ck_cold *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    if (!ck_rocks_store_number(db, &c->store)) {
        ck_free(mem, c, sizeof *c);
        return ck_fail(err, CK_FULL, "more than %d subtasks keep state in one RocksDB", STORES_MAX);
    }
    c->db = db, c->mem = mem, c->epochs = e;
    size_t all = e->pool->spill ? e->pool->spill_above : mem.budget->limit ? mem.budget->limit : SIZE_MAX;
    c->evict_above = all / 8 * 7, c->least = CK_PAGE_CHUNK;
    if (ck_rocks_takes_all(db)) c->evict_above = c->least = 0;
    ck_bytes_init(&c->key, mem, SIZE_MAX);
    ck_bytes_init(&c->value, mem, SIZE_MAX);
    *out = c;
    return CK_OK;
}

void ck_cold_free(ck_cold *c) {
    if (!c) return;
    ck_rocks_batch_free(c->db, c->batch);
    ck_bytes_destroy(&c->key);
    ck_bytes_destroy(&c->value);
    ck_free(c->mem, c, sizeof *c);
}

ck_status ck_cold_adopt(ck_cold *c, ck_table *t, ck_error *err) {
    if (t->shape->schema->mode != CK_SLOT_KEYED) return CK_OK; /* a few rows, put and read one by one */
    if (c->slots == SLOTS_MAX) return ck_fail(err, CK_FULL, "more than %d slots in RocksDB", SLOTS_MAX);
    t->cold = c, t->cold_slot = c->slots++;
    return CK_OK;
}

/* ---- what could not be said ---- */

ck_status ck_cold_broken(ck_cold *c, ck_status s) {
    if (c->failed.status == CK_OK && s == CK_NOMEM)
        ck_page_nomem(c->epochs->pool, 0, &c->failed);
    else if (c->failed.status == CK_OK)
        ck_fail(&c->failed, s, "state in RocksDB: a row that does not parse came back");
    return s;
}

ck_status ck_cold_broken_by(const ck_table *t, ck_status s) {
    if (t->cold->failed.status == CK_OK && s == CK_FULL)
        ck_fail(&t->cold->failed, s,
                "state in RocksDB: slot \"%s\" of %s: a key of over %d bytes, which is not kept there",
                t->shape->schema->slot, t->shape->schema->state_type, CK_KEY_BYTES_MAX);
    return ck_cold_broken(t->cold, s);
}

ck_status ck_cold_check(const ck_cold *c, ck_error *err) {
    if (c->failed.status == CK_OK) return CK_OK;
    if (err) *err = c->failed;
    return c->failed.status;
}

/* ---- keys ---- */

ck_status ck_cold_key_begin(const ck_table *t, ck_bytes *out) {
    const uint8_t head[CK_ROCKS_HEAD] = {CK_ROCKS_ROWS,           (uint8_t)(t->cold->store >> 8),
                                         (uint8_t)t->cold->store, (uint8_t)(t->cold_slot >> 8),
                                         (uint8_t)t->cold_slot,   (uint8_t)ck_cold_kind(t)};
    ck_bytes_clear(out);
    CK_TRY(ck_bytes_append(out, head, sizeof head));
    return t->is_bucket ? ck_bytes_u64be(out, (uint64_t)t->bucket ^ 1ULL << 63) : CK_OK;
}

void ck_cold_after(ck_bytes *prefix) {
    while (prefix->n && (uint8_t)prefix->p[prefix->n - 1] == 0xFF) prefix->n--;
    CK_ASSERT(prefix->n > 0); /* the family stands in front */
    prefix->p[prefix->n - 1]++;
}

/* ---- the batch ---- */

ck_status ck_cold_flush(ck_cold *c) {
    if (!c->batch || c->batch_bytes == 0) return CK_OK;
    c->batch_bytes = 0;
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_rocks_write(c->db, c->batch, &err);
    if (s != CK_OK && c->failed.status == CK_OK) c->failed = err;
    return s;
}

ck_status ck_cold_written(ck_cold *c, size_t bytes) {
    c->batch_bytes += bytes + 1;
    return c->batch_bytes >= BATCH_BYTES ? ck_cold_flush(c) : CK_OK;
}

void ck_cold_completed(ck_cold *c, uint32_t epoch) {
    if (!c->batch || epoch == UINT32_MAX) return;
    epoch++;
    const uint8_t from[3] = {CK_ROCKS_CHANGED, (uint8_t)(c->store >> 8), (uint8_t)c->store};
    const uint8_t to[7] = {
        from[0],       from[1], from[2], (uint8_t)(epoch >> 24), (uint8_t)(epoch >> 16), (uint8_t)(epoch >> 8),
        (uint8_t)epoch};
    ck_rocks_delete_range(c->db, c->batch, (ck_view){(const char *)from, sizeof from},
                          (ck_view){(const char *)to, sizeof to});
    ck_status s = ck_cold_written(c, sizeof from + sizeof to);
    if (s != CK_OK) ck_cold_broken(c, s);
}

/* ---- a table goes ---- */

ck_status ck_cold_forget(ck_table *t) {
    ck_cold *c = t->cold;
    if (!c || !c->batch || t->out_rows == 0) return CK_OK;
    ck_bytes to;
    ck_bytes_init(&to, c->mem, SIZE_MAX);
    ck_status s = ck_cold_key_begin(t, &c->key);
    if (s == CK_OK) s = ck_bytes_view(&to, ck_bytes_as_view(&c->key));
    if (s == CK_OK) {
        ck_cold_after(&to);
        ck_rocks_delete_range(c->db, c->batch, ck_bytes_as_view(&c->key), ck_bytes_as_view(&to));
        s = ck_cold_written(c, to.n * 2);
    }
    ck_bytes_destroy(&to);
    c->rows -= t->out_rows;
    t->out_rows = 0;
    return s;
}

/* ---- the store's side ---- */

ck_status ck_state_evict_to(ck_state_store *s, ck_rocks *db, ck_error *err) {
    CK_ASSERT(!s->cold && !s->ops);
    return ck_cold_new(db, s->mem, &s->epochs, &s->cold, err);
}

size_t ck_state_cold_rows(const ck_state_store *s) { return s->cold ? s->cold->rows : 0; }

static void settle(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t) {
    (void)st, (void)slot;
    ck_status *s = arg;
    if (*s == CK_OK && t->borrowed) *s = ck_cold_settle(t);
}

ck_status ck_cold_settle_all(ck_state_store *s, ck_error *err) {
    ck_status st = ck_cold_check(s->cold, err);
    if (st != CK_OK || s->cold->rows == 0) return st;
    ck_state_each_table(s, settle, &st);
    if (st == CK_OK) st = ck_cold_flush(s->cold);
    if (st != CK_OK) ck_cold_broken(s->cold, st);
    return ck_cold_check(s->cold, err);
}

typedef struct share { /* what each table gives */
    size_t want, all, least;
    ck_status status;
} share;

static size_t bytes_of(const ck_table *t) { return t->page_bytes + t->var.bytes; }

static void add_bytes(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t) {
    (void)st, (void)slot;
    ((share *)arg)->all += bytes_of(t);
}

static void give(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t) {
    (void)st, (void)slot;
    share *s = arg;
    size_t gone, mine = bytes_of(t);
    if (s->status != CK_OK || mine < s->least) return;
    size_t part = s->want == SIZE_MAX ? SIZE_MAX : (size_t)((double)s->want * (double)mine / (double)s->all) + 1;
    s->status = ck_cold_evict(t, part, &gone);
}

ck_status ck_state_evict(ck_state_store *s, size_t bytes, ck_error *err) {
    if (!s->cold) return CK_OK;
    CK_TRY(ck_cold_settle_all(s, err));
    share all = {.want = bytes, .least = bytes == SIZE_MAX ? 0 : s->cold->least};
    ck_state_each_table(s, add_bytes, &all);
    if (all.all == 0) return CK_OK;
    ck_state_each_table(s, give, &all);
    if (all.status == CK_OK) all.status = ck_cold_flush(s->cold);
    if (all.status != CK_OK) ck_cold_broken(s->cold, all.status);
    return ck_cold_check(s->cold, err);
}

/* Each subtask gives of its own what the job has too much, by what it has of it. */
ck_status ck_state_trim(ck_state_store *s, ck_error *err) {
    ck_cold *c = s->cold;
    if (!c) return CK_OK;
    if (c->rows) CK_TRY(ck_cold_settle_all(s, err));
    size_t bytes = ck_cold_over(c), state = ck_budget_used(s->mem.budget, CK_MEM_STATE);
    if (CK_LIKELY(bytes == 0)) return ck_cold_check(c, err);
    if (s->pool.used_bytes < state) bytes = (size_t)((double)bytes * (double)s->pool.used_bytes / (double)state);
    return bytes >= c->least ? ck_state_evict(s, bytes, err) : CK_OK;
}
