/* The bridge to Arrow's C data interface. Export shares memory where the layout agrees and copies where it must narrow;
 * import widens. Flavour plain writes utf8 and binary (snapshots, wire, most readers); flavour view hands out string
 * views as they are. */
#ifndef CK_DATA_ARROW_H
#define CK_DATA_ARROW_H

#include "data/builder.h"

struct ArrowSchema;
struct ArrowArray;

typedef enum ck_arrow_flavour { CK_ARROW_PLAIN, CK_ARROW_VIEW } ck_arrow_flavour;

/* A struct schema with one child a field. The caller releases *out. */
CK_NODISCARD ck_status ck_arrow_export_schema(const ck_schema *s, ck_arrow_flavour f, struct ArrowSchema *out,
                                              ck_error *err);
/* A struct array of the live rows; *out keeps what it needs of b alive until released, on any thread, and its memory
 * counts against b's account. Weights are left out: the caller adds a column for them where wanted. Every column must
 * be there (CK_INVALID). CK_DATA: a value its declared type has no room for; CK_FULL: strings of 2 GiB in one plain
 * column. */
CK_NODISCARD ck_status ck_arrow_export_batch(const ck_batch *b, const ck_schema *s, ck_arrow_flavour f,
                                             struct ArrowArray *out, ck_error *err);
/* From an Arrow schema: types we have, or can hold by widening (unsigned integers, large and fixed-size layouts, other
 * time units, cut to microseconds); others are CK_INVALID with their name. */
CK_NODISCARD ck_status ck_arrow_import_schema(ck_arena *a, const struct ArrowSchema *schema, const ck_schema **out,
                                              ck_error *err);
/* Copies `rows` rows (at most CK_BATCH_ROWS_MAX) from row `offset` of a struct array of that Arrow schema; s is what
 * ck_arrow_import_schema made of it, or the same kinds under other names. The array is borrowed, and checked:
 * CK_CORRUPT when offsets go astray. CK_DATA: NULL in a field of s that is not nullable, or a time beyond our range. */
CK_NODISCARD ck_status ck_arrow_import_batch(ck_mem mem, const struct ArrowSchema *schema,
                                             const struct ArrowArray *array, const ck_schema *s, int64_t offset,
                                             int64_t rows, ck_batch **out, ck_error *err);

#endif
