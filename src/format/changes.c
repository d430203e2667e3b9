/* Weights as changes people and other systems read. */
#include "format/encode_int.h"

ck_view ck_change_name(ck_change c) {
    static const ck_view names[] = {{"+I", 2}, {"-U", 2}, {"+U", 2}, {"-D", 2}};
    return names[c];
}

ck_view ck_change_prefix(ck_change c) {
    static const ck_view prefixes[] = {{"", 0}, {"-U ", 3}, {"+U ", 3}, {"-D ", 3}};
    return prefixes[c];
}

static bool same_key(const ck_batch *b, const uint32_t *key, uint32_t key_count, uint32_t x, uint32_t y) {
    for (uint32_t i = 0; i < key_count; i++)
        if (!ck_column_rows_equal(b->columns[key[i]], x, b->columns[key[i]], y)) return false;
    return true;
}

ck_status ck_change_kinds(const ck_batch *b, const uint32_t *key, uint32_t key_count, uint8_t *kinds) {
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        if (ck_batch_weight(b, row) > 0) {
            kinds[k] = CK_CHANGE_INSERT;
            continue;
        }
        kinds[k] = CK_CHANGE_DELETE;
        if (!key || k + 1 == b->sel_count) continue;
        uint32_t next = ck_batch_row(b, k + 1);
        if (ck_batch_weight(b, next) < 0 || !same_key(b, key, key_count, row, next)) continue;
        kinds[k] = CK_CHANGE_UPDATE_BEFORE;
        kinds[++k] = CK_CHANGE_UPDATE_AFTER;
    }
    return CK_OK;
}
