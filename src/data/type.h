/* SQL types, fields and schemas, and how each type is held in memory. Immutable once made; they live in the arena of
 * the plan that names them, which outlives every batch of that plan.
 *
 * Inside the engine every integer-like type is one 64-bit lane (docs/decisions/0001): TINYINT..BIGINT by value, DATE in
 * days, TIME and TIMESTAMP in microseconds, INTERVAL in months or microseconds; REAL and DOUBLE are a double (REAL
 * holds only float values). The Arrow bridge narrows to the declared Arrow width on the way out and widens on the way
 * in. */
#ifndef CK_DATA_TYPE_H
#define CK_DATA_TYPE_H

#include "base/arena.h"
#include "base/bytes.h"

typedef enum ck_kind {
    CK_TYPE_NULL, /* the type of a bare NULL */
    CK_TYPE_BOOLEAN,
    CK_TYPE_TINYINT,
    CK_TYPE_SMALLINT,
    CK_TYPE_INTEGER,
    CK_TYPE_BIGINT,
    CK_TYPE_REAL,
    CK_TYPE_DOUBLE,
    CK_TYPE_DECIMAL,
    CK_TYPE_VARCHAR,
    CK_TYPE_BYTES,
    CK_TYPE_DATE,
    CK_TYPE_TIME,
    CK_TYPE_TIMESTAMP,
    CK_TYPE_TIMESTAMP_LTZ,
    CK_TYPE_INTERVAL_MONTH, /* INTERVAL YEAR TO MONTH */
    CK_TYPE_INTERVAL_US,    /* INTERVAL DAY TO SECOND */
    CK_TYPE_ARRAY,
    CK_TYPE_MAP,
    CK_TYPE_ROW,
    CK_TYPE_COUNT
} ck_kind;

/* How values stand in a column. */
typedef enum ck_phys {
    CK_PHYS_NULL,   /* no data: every row is NULL */
    CK_PHYS_BOOL,   /* bitmap, 64 rows a word, least significant first */
    CK_PHYS_I64,    /* int64_t */
    CK_PHYS_F64,    /* double */
    CK_PHYS_I128,   /* __int128, unscaled decimal */
    CK_PHYS_VIEW,   /* ck_strview */
    CK_PHYS_LIST,   /* int32_t offsets, length + 1 of them, one child; MAP is a list of (key, value) structs */
    CK_PHYS_STRUCT, /* children only */
} ck_phys;

typedef struct ck_type ck_type;
typedef struct ck_field {
    const char *name;
    const ck_type *type;
    bool nullable;
} ck_field;

struct ck_type {
    ck_kind kind;
    int32_t precision; /* DECIMAL 1..38; TIME, TIMESTAMP 0..6; VARCHAR, BYTES length limit in characters, bytes (0 =
                          none) */
    int32_t scale;     /* DECIMAL 0..precision */
    const ck_field *fields; /* ARRAY: one, the element; MAP: key (not null) and value; ROW: its fields */
    uint32_t field_count;
};

typedef struct ck_schema {
    const ck_field *fields;
    uint32_t field_count;
} ck_schema;

/* Shared immutable instances of the parameterless types (TIMESTAMPs with precision 6 and 3 under their own functions).
 */
const ck_type *ck_type_simple(ck_kind kind);
/* In the arena; NULL when it has no memory. Arguments are taken as checked. */
const ck_type *ck_type_decimal(ck_arena *a, int precision, int scale);
const ck_type *ck_type_with_precision(ck_arena *a, ck_kind kind, int precision);
const ck_type *ck_type_array(ck_arena *a, const ck_type *elem, bool elem_nullable);
const ck_type *ck_type_map(ck_arena *a, const ck_type *key, const ck_type *value, bool value_nullable);
const ck_type *ck_type_row(ck_arena *a, const ck_field *fields, uint32_t field_count); /* copies fields */
const ck_type *ck_type_copy(ck_arena *a, const ck_type *t);                            /* deep */
const ck_schema *ck_schema_copy(ck_arena *a, const ck_schema *s);

ck_phys ck_type_phys(const ck_type *t);
bool ck_type_eq(const ck_type *a,
                const ck_type *b); /* deep; names of ROW fields count, nullability of children counts */
static inline bool ck_kind_is_integer(ck_kind k) { return k >= CK_TYPE_TINYINT && k <= CK_TYPE_BIGINT; }
static inline bool ck_kind_is_numeric(ck_kind k) { return k >= CK_TYPE_TINYINT && k <= CK_TYPE_DECIMAL; }
static inline bool ck_kind_is_float(ck_kind k) { return k == CK_TYPE_REAL || k == CK_TYPE_DOUBLE; }
static inline bool ck_kind_is_datetime(ck_kind k) { return k >= CK_TYPE_DATE && k <= CK_TYPE_TIMESTAMP_LTZ; }
/* Least and greatest value of an integer kind. */
void ck_kind_int_range(ck_kind k, int64_t *lo, int64_t *hi);

/* "DECIMAL(10,2)", "ROW<a BIGINT NOT NULL, b VARCHAR>": what SQL would say. Parsing accepts exactly what printing
 * writes (for graphs and slots; SQL text has its own grammar). */
CK_NODISCARD ck_status ck_type_print(const ck_type *t, ck_bytes *out);
CK_NODISCARD ck_status ck_type_parse(ck_arena *a, ck_view text, const ck_type **out, ck_error *err);
const char *ck_type_name(ck_arena *a, const ck_type *t); /* printed, in the arena; "?" without memory */

/* Index of a field by exact name, or -1. */
int ck_schema_find(const ck_schema *s, ck_view name);

#endif
