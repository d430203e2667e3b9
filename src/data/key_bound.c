/* Keys beyond their bound, found without encoding any where nothing long is about: a text cannot be longer than the
 * largest of the buffers it may be in. */
#include "data/key.h"

enum { PLAIN_BYTES = 32 }; /* of a value of fixed width or an inline text, with what stands before it */

/* What nested values of a column take together at most. */
static size_t all_bytes(const ck_column *c) {
    size_t n = (size_t)c->length * PLAIN_BYTES;
    for (uint32_t i = 0; c->phys == CK_PHYS_VIEW && c->heaps && i < c->heaps->count; i++)
        n += c->heaps->buffers[i]->bytes;
    for (uint32_t i = 0; i < c->child_count; i++) n += all_bytes(c->children[i]);
    return n;
}

static bool is_nested(const ck_column *c) { return c->phys == CK_PHYS_LIST || c->phys == CK_PHYS_STRUCT; }

static size_t longest(const ck_column *c) {
    size_t n = 0;
    if (is_nested(c)) return all_bytes(c);
    for (uint32_t i = 0; c->phys == CK_PHYS_VIEW && c->heaps && i < c->heaps->count; i++)
        if (c->heaps->buffers[i]->bytes > n) n = c->heaps->buffers[i]->bytes;
    return n + PLAIN_BYTES;
}

/* Of one row; SIZE_MAX: only its bytes tell. */
static size_t most_bytes(const ck_key_spec *k, const ck_batch *b, uint32_t row) {
    size_t n = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        const ck_column *c = b->columns[k->columns[i]];
        if (is_nested(c)) return SIZE_MAX;
        n += PLAIN_BYTES;
        if (c->phys == CK_PHYS_VIEW && !ck_column_is_null(c, row)) n += (size_t)c->views[row].length;
    }
    return n;
}

static __attribute__((noinline)) ck_status find(const ck_key_spec *k, const ck_batch *b, ck_mem mem, bool *any,
                                                uint32_t *row) {
    ck_bytes key;
    ck_status s = CK_OK;
    ck_bytes_init(&key, mem, SIZE_MAX);
    for (uint32_t i = 0; i < b->sel_count && s == CK_OK; i++) {
        *row = ck_batch_row(b, i);
        if (most_bytes(k, b, *row) <= CK_KEY_BYTES_MAX) continue;
        ck_bytes_clear(&key);
        s = ck_key_encode(k, b, *row, &key);
    }
    ck_bytes_destroy(&key);
    *any = s == CK_FULL;
    return s == CK_FULL ? CK_OK : s;
}

ck_status ck_key_find_too_long(const ck_key_spec *k, const ck_batch *b, ck_mem mem, bool *any, uint32_t *row) {
    size_t n = 0;
    *any = false;
    for (uint32_t i = 0; i < k->count; i++) n += longest(b->columns[k->columns[i]]);
    return CK_LIKELY(n <= CK_KEY_BYTES_MAX) ? CK_OK : find(k, b, mem, any, row);
}
