/* Memory of results, used again from batch to batch. A column comes back when the step that read it last is done, or,
 * if it was handed out, at a later batch when nobody else holds it any more. */
#include "expr/eval_int.h"

/* Who reads 1 is the only holder, so nobody can add a reference meanwhile. */
static bool sole(_Atomic uint32_t *refs) { return atomic_load_explicit(refs, memory_order_acquire) == 1; }

static uint32_t capacity_for(uint32_t rows) {
    uint32_t c = 64;
    while (c < rows) c *= 2;
    return c;
}

ck_column *ck_eval_column(ck_eval *ev, ck_phys phys, uint32_t row_count) {
    ck_column_pool *p = &ev->pool;
    while (p->free_count[phys]) {
        ck_column *c = p->free[phys][--p->free_count[phys]];
        if (ck_column_reset(c, row_count)) return c;
        ck_column_unref(&c);
    }
    ck_column *c = ck_column_new(ev->mem, phys, capacity_for(row_count));
    if (c && !ck_column_reset(c, row_count)) CK_ASSERT(false && "a new column can be reset");
    return c;
}

ck_status ck_eval_result(ck_eval *ev, ck_phys phys, const ck_rows *rows, ck_vec *out, ck_error *err) {
    out->col = ck_eval_column(ev, phys, rows->row_count);
    out->constant = false; /* the caller knows */
    return out->col ? CK_OK : ck_nomem(err, ev->mem, rows->row_count * sizeof(int64_t));
}

static void spare_buffers(ck_eval *ev, ck_column *c) {
    ck_column_pool *p = &ev->pool;
    ck_heaps *h = c->heaps;
    if (!h || !sole(&h->refs)) return;
    for (uint32_t i = 0; i < h->count && p->spare_count < CK_SPARE_BUFFERS; i++) {
        ck_buffer *b = h->buffers[i];
        if (b->release || b->bytes > CK_SPARE_BYTES_MAX || !sole(&b->refs) || b->mem.budget != ev->mem.budget) continue;
        p->spare[p->spare_count++] = ck_buffer_ref(b);
    }
}

void ck_eval_recycle(ck_eval *ev, ck_column **pc) {
    ck_column *c = *pc;
    *pc = NULL;
    if (!c) return;
    ck_column_pool *p = &ev->pool;
    bool keep = sole(&c->refs) && p->free_count[c->phys] < CK_POOL_DEPTH && c->mem.budget == ev->mem.budget;
    if (keep) spare_buffers(ev, c);
    if (keep && ck_column_reset(c, 0))
        p->free[c->phys][p->free_count[c->phys]++] = c;
    else
        ck_column_unref(&c);
}

ck_status ck_pool_lend(ck_eval *ev, ck_column *c) {
    ck_column_pool *p = &ev->pool;
    if (p->lent_count == p->lent_capacity) {
        uint32_t more = p->lent_capacity ? p->lent_capacity * 2 : 8;
        ck_column **bigger = ck_realloc(ev->mem, p->lent, p->lent_capacity * sizeof *bigger, more * sizeof *bigger);
        if (!bigger) {
            ck_column_unref(&c);
            return CK_NOMEM;
        }
        p->lent = bigger, p->lent_capacity = more;
    }
    p->lent[p->lent_count++] = c;
    return CK_OK;
}

void ck_pool_collect(ck_eval *ev) {
    ck_column_pool *p = &ev->pool;
    while (p->lent_count) ck_eval_recycle(ev, &p->lent[--p->lent_count]);
}

ck_buffer *ck_eval_buffer(ck_eval *ev, size_t bytes) {
    ck_column_pool *p = &ev->pool;
    while (p->spare_count) {
        ck_buffer *b = p->spare[--p->spare_count];
        if (b->bytes >= bytes && sole(&b->refs)) return b;
        ck_buffer_unref(&b);
    }
    size_t want = 16 << 10;
    while (want < bytes && want < (1U << 30)) want *= 2;
    return ck_buffer_new(ev->mem, want < bytes ? bytes : want);
}

void ck_pool_destroy(ck_eval *ev) {
    ck_column_pool *p = &ev->pool;
    while (p->lent_count) ck_column_unref(&p->lent[--p->lent_count]);
    ck_free(ev->mem, p->lent, p->lent_capacity * sizeof *p->lent);
    for (uint32_t k = 0; k < CK_POOL_KINDS; k++)
        while (p->free_count[k]) ck_column_unref(&p->free[k][--p->free_count[k]]);
    while (p->spare_count) ck_buffer_unref(&p->spare[--p->spare_count]);
    p->lent = NULL, p->lent_capacity = 0;
}
