/* The shape of a table: how its rows and pages are laid out, made once from the slot's schema. Immutable; buckets of
 * one slot and the marks that read it share it.
 *
 * A row:   null bits (one per nullable field), partition, order and value fields in schema order, then `extra` bytes of
 *          the owner's. Integers, times, doubles 8 bytes, BOOLEAN 1, DECIMAL 16; strings and nested values a 16-byte
 *          reference: length, then up to 12 bytes in place or prefix, variable page, offset. A nested value (ARRAY,
 * MAP, ROW) is held as its packed bytes (data/row.h, without the leading length).
 *
 * A page:  rows from the start, ck_page_head at the end, behind it three bitmaps of `words` words: live rows, rows
 *          changed in the page's present epoch, rows changed before it. */
#ifndef CK_STATE_SHAPE_INT_H
#define CK_STATE_SHAPE_INT_H

#include "base/proc.h"
#include "state/table.h"

enum { CK_SMALL_PAGES = 4, CK_ROW_BYTES_MAX = 1 << 20 };

/* In the extra bytes of a listed row: references + 1 of its neighbours, 0 = none. Not part of what a mark shows. */
typedef struct ck_list_link {
    uint32_t next, prev;
} ck_list_link;

typedef enum ck_key_path {
    CK_PATH_NONE,
    CK_PATH_I64,
    CK_PATH_STR,
    CK_PATH_I64X2,
    CK_PATH_PAIR, /* two, a text at least among them and nothing but integers beside */
    CK_PATH_ANY
} ck_key_path;

typedef struct ck_page_head {
    uint32_t id;
    uint32_t birth;          /* epoch in which this copy was made */
    uint32_t prepared;       /* epoch `changed` belongs to */
    uint32_t changed_before; /* newest epoch in `before`; 0 = none */
    uint32_t used;           /* slots handed out from the start */
    uint32_t live;
    uint32_t class;
    uint32_t listed; /* on the table's list of pages with room */
} ck_page_head;

typedef struct ck_page_form { /* of one size */
    uint32_t bytes, rows, words, head_at;
} ck_page_form;

typedef struct ck_shape_field {
    const char *name;
    const ck_type *type;
    bool nullable, descending, nulls_first;
    uint32_t offset, null_bit, width;
    ck_phys phys;
} ck_shape_field;

typedef struct ck_shape {
    ck_arena *arena; /* the store's: schema, arrays */
    const ck_slot_schema *schema;
    ck_row_layout layout;
    ck_shape_field *fields;
    uint32_t partition_count, order_count, value_count, value_first, field_count;
    uint32_t *key_fields; /* numbers of the fields of the hash key */
    uint32_t key_count;
    ck_key_path path;
    ck_key_path list_path; /* of the partition fields, which are the first of key_fields then */
    bool ordered;          /* order columns that sort, not hash */
    bool listed;           /* extra bytes: ck_list_link */
    bool plain; /* keyed by one 8-byte or text column, values of fixed width, no order: rows without a NULL and
                   their stored bytes have fast ways between them */
    uint32_t stored_nulls; /* bytes of the bitmap a stored value begins with; 0: no value is nullable */
    bool is_hidden;        /* of partitions */
    uint32_t row_bytes, extra_at, extra_bytes;
    uint32_t ttl_at;    /* when a row expires: ms, the last of the extra bytes; 0: rows live for ever */
    uint32_t var_count; /* fields held by reference */
    uint32_t *var_fields;
    uint8_t *blank; /* a new row: zeros, nullable value fields NULL */
    uint32_t slot_bits;
    ck_page_form forms[CK_SMALL_PAGES + 1];
} ck_shape;

/* Copies the schema into the arena. keep_fields = false for the hidden table of partitions: partition fields only, with
 * extra bytes behind. CK_REFUSED: a schema that no table can hold, with the reason. */
CK_NODISCARD ck_status ck_shape_new(ck_arena *a, const ck_slot_schema *schema, ck_shape **out, ck_error *err);
CK_NODISCARD ck_status ck_shape_partitions(ck_arena *a, const ck_shape *of, uint32_t extra_bytes, ck_shape **out,
                                           ck_error *err);
CK_NODISCARD ck_status ck_slot_schema_copy(ck_arena *a, const ck_slot_schema *s, const ck_slot_schema **out);

static inline bool ck_phys_is_var(ck_phys p) { return p == CK_PHYS_VIEW || p == CK_PHYS_LIST || p == CK_PHYS_STRUCT; }
static inline uint32_t ck_class_of_page(uint32_t id) { return id < CK_SMALL_PAGES ? id : CK_SMALL_PAGES; }
static inline ck_page_head *ck_head_of(const ck_shape *s, uint32_t class, void *page) {
    return (ck_page_head *)(void *)((uint8_t *)page + s->forms[class].head_at);
}
static inline bool ck_row_any_null(const ck_shape *s, const ck_row *row) {
    uint8_t any = 0;
    for (uint32_t i = 0; i < s->layout.null_bytes; i++) any |= row[i];
    return any != 0;
}
/* which: 0 live, 1 changed in `prepared`, 2 changed before. */
static inline uint64_t *ck_page_bits(const ck_shape *s, ck_page_head *h, unsigned which) {
    return (uint64_t *)(void *)(h + 1) + (size_t)which * s->forms[h->class].words;
}

#endif
