/* References to rows: numbers that stay what they are while pages are copied under a mark. */
#include "state/cold_int.h"

bool ck_table_rows_stay(const ck_table *t) { return !t->cold; }

void ck_table_refs(const ck_table *t, ck_row *const *rows, uint32_t n, uint32_t *refs) {
    for (uint32_t i = 0; i < n; i++) refs[i] = ck_ref_of(t, rows[i]);
}

ck_status ck_table_rows_of(ck_table *t, const uint32_t *refs, uint32_t n, ck_row **rows, ck_error *err) {
    for (uint32_t i = 0; i < n; i++) __builtin_prefetch(ck_row_of(t, refs[i]), 1);
    for (uint32_t i = 0; i < n; i++)
        if (ck_row_writable(t, refs[i], &rows[i]) != CK_OK)
            return ck_table_nomem(t, t->shape->forms[CK_SMALL_PAGES].bytes, err);
    return CK_OK;
}
