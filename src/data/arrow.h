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
/* A struct array of the live rows; *out keeps what it needs of b alive until released, on any thread. Weights are left
 * out: the caller adds a column for them where wanted. */
CK_NODISCARD ck_status ck_arrow_export_batch(const ck_batch *b, const ck_schema *s, ck_arrow_flavour f,
                                             struct ArrowArray *out, ck_error *err);
/* From an Arrow schema (types we have; others are CK_INVALID with their name), and arrays of that schema. Takes over
 * *array. More rows than a batch holds: call with growing `offset` until *out covers all. */
CK_NODISCARD ck_status ck_arrow_import_schema(ck_arena *a, const struct ArrowSchema *schema, const ck_schema **out,
                                              ck_error *err);
CK_NODISCARD ck_status ck_arrow_import_batch(ck_mem mem, const struct ArrowSchema *schema,
                                             const struct ArrowArray *array, const ck_schema *s, int64_t offset,
                                             int64_t rows, ck_batch **out, ck_error *err); /* copies */

#endif
