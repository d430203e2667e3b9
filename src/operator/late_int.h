/* Rows that come too late: counted, and where the plan says so handed on with the columns a late table wants, those of
 * the first input by port 1, of the second by port 2. One mechanism for every operator that drops rows so.
 *
 * Parameter "late" (of two inputs "left_late", "right_late"): an array of input columns, null where the kind of change
 * ("+I", "-D") stands; absent: rows are counted and dropped. */
#ifndef CK_OPERATOR_LATE_INT_H
#define CK_OPERATOR_LATE_INT_H

#include "stream/descriptor.h"

struct yyjson_val;

enum { CK_PORT_LATE = 1 }; /* of the first input */

typedef struct ck_late { /* zero: counted only */
    bool routed;
    uint32_t port;
    const int64_t *columns; /* -1: the kind of change */
    const ck_type *const *types;
    uint32_t count;
    uint32_t time; /* input column that says how late a row is */
    bool millis;   /* it is BIGINT */
    int64_t behind_ms; /* the latest so far: behind the watermark */
} ck_late;

/* The member of root that is about an input, in `a`. */
CK_NODISCARD ck_status ck_late_read(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                                    uint32_t input, ck_late *out, ck_error *err);
static inline void ck_late_timed_by(ck_late *l, uint32_t time, bool millis) { l->time = time, l->millis = millis; }
/* These physical rows of b are late: counts `late_rows` and, as a greatest, `late_by_ms`; emits them where they are
 * routed. */
CK_NODISCARD ck_status ck_late_drop(ck_late *l, const ck_batch *b, const uint16_t *rows, uint32_t n, int64_t watermark,
                                    ck_op_ctx *ctx);

#endif
