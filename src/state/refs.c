/* References to rows: numbers that stay what they are while pages are copied under a mark. */
#include "state/cold_int.h"

bool ck_table_rows_stay(const ck_table *t) { return !t->cold; }

/* As ck_ref_of, with what that asks the table for each row asked once. */
void ck_table_refs(const ck_table *t, ck_row *const *rows, uint32_t n, uint32_t *refs) {
    const ck_shape *s = t->shape;
    const ck_page_form *form = &s->forms[CK_SMALL_PAGES];
    uint32_t row_bytes = s->row_bytes, slot_bits = s->slot_bits;
    uintptr_t small[CK_SMALL_PAGES];
    bool stale = false;
    for (uint32_t k = 0; k < CK_SMALL_PAGES; k++) {
        small[k] = k < t->page_count ? (uintptr_t)t->at[k].rows : 0;
        stale = stale || t->stale[k];
    }
    for (uint32_t i = 0; i < n; i++) {
        uintptr_t row = (uintptr_t)rows[i], page = 0;
        uint32_t id = 0;
        if (CK_UNLIKELY(stale)) {
            refs[i] = ck_ref_of(t, rows[i]);
            continue;
        }
        for (uint32_t k = 0; k < CK_SMALL_PAGES && !page; k++)
            if (row - small[k] < s->forms[k].bytes) page = small[k], id = k;
        if (!page) {
            page = row & ~(uintptr_t)(form->bytes - 1);
            id = ((const ck_page_head *)(page + form->head_at))->id;
        }
        refs[i] = id << slot_bits | (uint32_t)(row - page) / row_bytes;
    }
}

ck_status ck_table_rows_of(ck_table *t, const uint32_t *refs, uint32_t n, ck_row **rows, ck_error *err) {
    uint32_t epoch = t->epochs->epoch, slot_bits = t->shape->slot_bits, mask = (1u << slot_bits) - 1;
    uint32_t row_bytes = t->shape->row_bytes;
    const ck_page_at *at = t->at;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = refs[i] >> slot_bits, slot = refs[i] & mask;
        if (CK_UNLIKELY(at[id].prepared != epoch) && ck_page_prepare(t, id) != CK_OK)
            return ck_table_nomem(t, t->shape->forms[CK_SMALL_PAGES].bytes, err);
        rows[i] = at[id].rows + (size_t)slot * row_bytes;
        __builtin_prefetch(rows[i], 1);
    }
    for (uint32_t i = 0; t->epochs->tracking && i < n; i++) ck_row_changed(t, refs[i] >> slot_bits, refs[i] & mask);
    return CK_OK;
}
