/* Tables of buckets that are gone, kept for those that come: slices of a hop, a table each, come and go by the second,
 * and of a small one making the table is most of its cost. Only small ones that no mark can see, and few bytes; none
 * where there is no bucket any more. */
#include "state/cold_int.h"

enum { SPARES_MAX = 1024, SPARE_BYTES_MAX = 2 << 20, SHARE_OF_LIMIT = 64 };

static size_t bytes_max(const ck_table *t) {
    size_t share = t->mem.budget->limit / SHARE_OF_LIMIT;
    return share && share < SPARE_BYTES_MAX ? share : SPARE_BYTES_MAX;
}

/* Nothing of it but rows in pages that are the owner's alone. */
static bool is_kept(const ck_table *b) {
    const ck_dir_root *root = b->dir.root;
    bool kept = b->page_count && b->page_count <= CK_SMALL_PAGES && b->var.count == 0 && !b->shape->listed &&
                !b->scan && !b->filter && ck_index_is_small(&b->index);
    if (!kept || !ck_epochs_private(b->epochs, root->birth) || !ck_epochs_private(b->epochs, root->leaf[0]->birth))
        return false;
    for (uint32_t id = 0; kept && id < b->page_count; id++) {
        uint8_t *p = b->at[id].rows;
        kept = p && ck_epochs_private(b->epochs, ck_head_of(b->shape, ck_class_of_page(id), p)->birth);
    }
    return kept;
}

/* As it was made, in this epoch, but with room for rows. */
static void renew(ck_table *b) {
    uint32_t epoch = b->epochs->epoch;
    b->fill = b->fill_word = b->room = b->free_ids = b->single = 0;
    memset(b->stale, 0, sizeof b->stale);
    for (uint32_t id = b->page_count; id-- > 0;) {
        uint32_t class = ck_class_of_page(id);
        const ck_page_form *form = &b->shape->forms[class];
        uint8_t *p = b->at[id].rows;
        memset(p + form->head_at, 0, form->bytes - form->head_at);
        *ck_head_of(b->shape, class, p) =
            (ck_page_head){.id = id, .birth = epoch, .prepared = epoch, .class = class, .listed = 1};
        b->at[id] = (ck_page_at){.rows = p, .prepared = epoch, .next = b->room};
        b->room = id + 1;
    }
    b->dir.root->birth = b->dir.root->leaf[0]->birth = epoch;
    b->rows = b->changed_now = b->changed_before = 0;
    b->born = b->changed_epoch = epoch;
    ck_index_clear(&b->index);
}

ck_table *ck_spare_take(ck_table *t) {
    ck_table *b = t->spares;
    if (!b) return NULL;
    t->spares = b->next_spare, b->next_spare = NULL;
    t->spare_count--, t->spare_bytes -= ck_table_bytes(b);
    renew(b);
    return b;
}

bool ck_spare_put(ck_table *t, ck_table *b) {
    if (t->spare_count == SPARES_MAX || !is_kept(b)) return false;
    size_t bytes = ck_table_bytes(b);
    if (bytes + t->spare_bytes > bytes_max(t)) return false;
    b->next_spare = t->spares, t->spares = b;
    t->spare_count++, t->spare_bytes += bytes;
    return true;
}

void ck_spares_free(ck_table *t) {
    while (t->spares) {
        ck_table *b = ck_spare_take(t); /* of this epoch again, so that it is freed and not kept for a mark */
        ck_table_free(b);
    }
}
