/* Stored rows (docs/formats.md, "Stored key", "User key", "Value") from and to packed rows. Row by row without columns
 * in between, since snapshots and restores move whole tables; data/key.h and data/row.h define the same bytes for
 * batches, and a test holds the two against each other. */
#ifndef CK_STATE_STORED_INT_H
#define CK_STATE_STORED_INT_H

#include "state/table_int.h"

/* Where the strings of a row are: the owner's pages, or a mark's directory. */
typedef struct ck_var_source {
    const ck_var_page *pages;
    const ck_dir_root *root;
} ck_var_source;

static inline ck_view ck_var_source_get(ck_var_source v, const ck_row *row, uint32_t offset) {
    ck_strview s = ck_row_ref(row, offset);
    if (s.length <= CK_STRVIEW_INLINE) return (ck_view){(const char *)row + offset + 4, (size_t)s.length};
    uint32_t id = (uint32_t)s.ref.buffer;
    const uint8_t *p = v.root ? ck_dir_get(v.root, id) : v.pages[id].p;
    return (ck_view){(const char *)p + s.ref.offset, (size_t)s.length};
}

/* Append to out. CK_FULL past CK_KEY_BYTES_MAX, CK_NOMEM. */
CK_NODISCARD ck_status ck_user_key_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out);
CK_NODISCARD ck_status ck_order_key_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out);
CK_NODISCARD ck_status ck_value_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out);
/* The value of a row of shape s as one of `to`, whose value field i is field value_first + value_of[i] of s, or as in a
 * new row (CK_FIELD_IS_NEW); of equal physical kinds, and not NULL where `to` lets none through. The time to live is that of s. */
CK_NODISCARD ck_status ck_value_encode_as(const ck_shape *s, ck_var_source v, const ck_row *row, const ck_shape *to,
                                          const uint32_t *value_of, ck_bytes *out);
/* Everything behind the slot's '|': the user key, or its length, itself and the order key. */
CK_NODISCARD ck_status ck_key_rest_encode(const ck_shape *s, ck_var_source v, const ck_row *row, ck_bytes *out,
                                          uint32_t *user_key_bytes);

/* Takes what stands behind the slot's '|' apart: *rest becomes the user key. */
bool ck_rest_split(const ck_shape *s, ck_view *rest, ck_view *order_key);

/* A row outside of any table: fixed fields in row form, variable ones as views. */
struct ck_loose_row {
    uint8_t *row;    /* row_bytes */
    ck_view *views;  /* by field number */
    ck_bytes *bytes; /* unescaped order strings; cleared by decoding an order key. Views may point into it */
};
typedef struct ck_loose_row ck_loose_row;

/* The table's own loose row, or n of them, blank; valid until the next call of either. They share `bytes`. */
CK_NODISCARD ck_status ck_loose_of(ck_table *t, ck_loose_row *out);
CK_NODISCARD ck_status ck_loose_run(ck_table *t, uint32_t n, ck_loose_row *out);
size_t ck_loose_bytes(const ck_shape *s); /* that one takes */
/* Decoding sets the fields of its part of the loose row. false: the bytes do not parse exactly. */
bool ck_user_key_decode(const ck_shape *s, ck_view key, ck_loose_row *out);
/* CK_CORRUPT or CK_NOMEM. */
CK_NODISCARD ck_status ck_order_key_decode(const ck_shape *s, ck_view key, ck_loose_row *out);
bool ck_value_decode(const ck_shape *s, ck_view value, ck_loose_row *out);

uint64_t ck_loose_hash(const ck_table *t, const ck_loose_row *l);
bool ck_loose_equal(const ck_table *t, const ck_loose_row *l, const ck_row *row); /* key fields */
/* The same of the partition fields. */
uint64_t ck_loose_list_hash(const ck_table *t, const ck_loose_row *l);
bool ck_loose_list_equal(const ck_table *t, const ck_loose_row *l, const ck_row *row);
/* Fields [first, end) of a writable row from the loose one. */
CK_NODISCARD ck_status ck_loose_store(ck_table *t, const ck_loose_row *l, uint32_t first, uint32_t end, ck_row *row);

/* The order key's first eight bytes as a number that compares like them: what trees sort by first. */
static inline uint64_t ck_order_prefix(ck_view key) {
    uint64_t v = 0;
    uint8_t b[8] = {0};
    if (key.n) memcpy(b, key.p, key.n < 8 ? key.n : 8);
    for (unsigned i = 0; i < 8; i++) v = v << 8 | b[i];
    return v;
}
/* The prefix is the whole key: one integer-like order column, NOT NULL. */
bool ck_order_is_prefix(const ck_shape *s);

#endif
