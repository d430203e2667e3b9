/* See epoch_int.h. */
#include "state/epoch_int.h"

#include <string.h>

ck_status ck_epochs_reserve(ck_epochs *e, uint32_t n) {
    if (!e->live) return CK_OK;
    ck_retired_list *r = e->retired;
    if (n <= r->capacity - r->count) return CK_OK;
    uint32_t capacity = r->capacity ? r->capacity * 2 : 64;
    while (capacity - r->count < n) capacity *= 2;
    ck_retired *more =
        ck_realloc(ck_mem_as(e->mem, CK_MEM_SNAPSHOT), r->items, r->capacity * sizeof *more, capacity * sizeof *more);
    if (!more) return CK_NOMEM;
    r->items = more, r->capacity = capacity;
    return CK_OK;
}

void ck_retired_free(ck_epochs *e, const ck_retired *r) {
    if (r->page)
        ck_page_free(e->pool, r->p, r->bytes, CK_MEM_SNAPSHOT);
    else
        ck_free(ck_mem_as(e->mem, CK_MEM_SNAPSHOT), r->p, r->bytes);
}

static void retire(ck_epochs *e, ck_retired item) {
    ck_retired_list *r = e->retired;
    CK_ASSERT(r->count < r->capacity);
    if (item.page)
        ck_page_move(e->pool, item.p, item.bytes, CK_MEM_STATE, CK_MEM_SNAPSHOT);
    else
        ck_mem_move(e->mem, CK_MEM_SNAPSHOT, item.bytes);
    r->items[r->count++] = item;
}

void ck_epochs_retire_page(ck_epochs *e, void *p, size_t bytes, uint32_t birth) {
    if (!p) return;
    if (ck_epochs_private(e, birth))
        ck_page_free(e->pool, p, bytes, CK_MEM_STATE);
    else
        retire(e, (ck_retired){p, bytes, birth, true});
}

void ck_epochs_retire_block(ck_epochs *e, void *p, size_t bytes, uint32_t birth) {
    if (!p) return;
    if (ck_epochs_private(e, birth))
        ck_free(e->mem, p, bytes);
    else
        retire(e, (ck_retired){p, bytes, birth, false});
}

/* ---- directory ---- */

static size_t leaf_bytes(uint32_t capacity) { return sizeof(ck_dir_leaf) + capacity * sizeof(void *); }
static size_t root_bytes(uint32_t capacity) { return sizeof(ck_dir_root) + capacity * sizeof(ck_dir_leaf *); }

static uint32_t enough(uint32_t capacity, uint32_t need, uint32_t max) {
    if (capacity == 0) capacity = 1;
    while (capacity < need) capacity *= 4;
    return capacity > max && need <= max ? max : capacity;
}

/* The root with room for leaf index need - 1, private. */
static ck_status root_writable(ck_dir *d, ck_epochs *e, uint32_t need) {
    ck_dir_root *was = d->root;
    uint32_t had = was ? was->capacity : 0;
    if (was && need <= had && ck_epochs_private(e, was->birth)) return CK_OK;
    uint32_t capacity = enough(had, need, UINT32_MAX);
    CK_TRY(ck_epochs_reserve(e, 1));
    ck_dir_root *r = ck_alloc_zero(e->mem, root_bytes(capacity));
    if (!r) return CK_NOMEM;
    r->birth = e->epoch, r->capacity = capacity;
    if (was) memcpy(r->leaf, was->leaf, had * sizeof(ck_dir_leaf *));
    d->bytes += root_bytes(capacity);
    if (was) {
        d->bytes -= root_bytes(had);
        ck_epochs_retire_block(e, was, root_bytes(had), was->birth);
    }
    d->root = r;
    return CK_OK;
}

static ck_status leaf_writable(ck_dir *d, ck_epochs *e, uint32_t index, uint32_t need) {
    ck_dir_leaf *was = d->root->leaf[index];
    uint32_t had = was ? was->capacity : 0;
    if (was && need <= had && ck_epochs_private(e, was->birth)) return CK_OK;
    uint32_t capacity = index ? CK_DIR_LEAF : enough(had, need, CK_DIR_LEAF);
    CK_TRY(ck_epochs_reserve(e, 1));
    ck_dir_leaf *l = ck_alloc_zero(e->mem, leaf_bytes(capacity));
    if (!l) return CK_NOMEM;
    l->birth = e->epoch, l->capacity = capacity;
    if (was) memcpy(l->page, was->page, had * sizeof(void *));
    d->bytes += leaf_bytes(capacity);
    if (was) {
        d->bytes -= leaf_bytes(had);
        ck_epochs_retire_block(e, was, leaf_bytes(had), was->birth);
    }
    d->root->leaf[index] = l;
    return CK_OK;
}

ck_status ck_dir_set(ck_dir *d, ck_epochs *e, uint32_t id, void *page) {
    uint32_t index = id / CK_DIR_LEAF;
    CK_TRY(root_writable(d, e, index + 1));
    CK_TRY(leaf_writable(d, e, index, id % CK_DIR_LEAF + 1));
    d->root->leaf[index]->page[id % CK_DIR_LEAF] = page;
    return CK_OK;
}

uint32_t ck_dir_blocks(const ck_dir *d) {
    uint32_t n = d->root ? 1 : 0;
    for (uint32_t i = 0; d->root && i < d->root->capacity; i++) n += d->root->leaf[i] != NULL;
    return n;
}

void ck_dir_destroy(ck_dir *d, ck_epochs *e) {
    ck_dir_root *r = d->root;
    if (!r) return;
    for (uint32_t i = 0; i < r->capacity; i++)
        if (r->leaf[i]) ck_epochs_retire_block(e, r->leaf[i], leaf_bytes(r->leaf[i]->capacity), r->leaf[i]->birth);
    ck_epochs_retire_block(e, r, root_bytes(r->capacity), r->birth);
    *d = (ck_dir){0};
}
