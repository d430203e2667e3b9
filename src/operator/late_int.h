/* Rows that come too late for their window: counted, and where the plan says so handed on by port 1 with the columns a
 * late table wants. One mechanism for every operator that drops rows so.
 *
 * Parameter "late": an array of input columns, null where the kind of change ("+I", "-D") stands; absent: rows are
 * counted and dropped. */
#ifndef CK_OPERATOR_LATE_INT_H
#define CK_OPERATOR_LATE_INT_H

#include "stream/descriptor.h"

struct yyjson_val;

enum { CK_PORT_LATE = 1 };

typedef struct ck_late { /* zero: counted only */
    bool routed;
    const int64_t *columns; /* -1: the kind of change */
    const ck_type *const *types;
    uint32_t count;
} ck_late;

/* Member "late" of root, in `a`. */
CK_NODISCARD ck_status ck_late_read(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, ck_late *out,
                                    ck_error *err);
/* These physical rows of b are late: counts `late_rows`, and emits them where they are routed. */
CK_NODISCARD ck_status ck_late_drop(const ck_late *l, const ck_batch *b, const uint16_t *rows, uint32_t n,
                                    ck_op_ctx *ctx);

#endif
