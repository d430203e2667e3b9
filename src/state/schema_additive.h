/* A state type whose versions have schemas: which changes of the value's fields migrate by themselves, and the packed
 * value of one schema as one of the other.
 *
 * Fields are found by name, their order is free. A field may come when it is nullable (it is NULL in old values), an
 * integer may become a wider one, a length or a decimal's precision greater, NOT NULL may be dropped. No field goes: a
 * value that has lost one is not what it was. Pure. */
#ifndef CK_STATE_SCHEMA_ADDITIVE_H
#define CK_STATE_SCHEMA_ADDITIVE_H

#include "base/bytes.h"
#include "data/type.h"

#define CK_FIELD_IS_NEW UINT32_MAX

/* The fields of a value. */
typedef struct ck_value_fields {
    const ck_field *fields;
    uint32_t count;
} ck_value_fields;

typedef struct ck_additive {
    ck_value_fields from, to;
    const uint32_t *value_of; /* by field of `to`: number in `from`, or CK_FIELD_IS_NEW */
} ck_additive;

/* Of two kinds of integers the later is the wider one. */
bool ck_integer_widens(const ck_type *from, const ck_type *to);
/* Every value of `from` is one of `to`, of the same bytes: an integer no narrower, a length or precision no smaller. */
bool ck_type_widens(const ck_type *from, const ck_type *to);
/* The same names, types and NOT NULLs in the same order. */
bool ck_value_fields_eq(ck_value_fields a, ck_value_fields b);

/* *why "": it is additive, and *out tells how; else a sentence that names the field. CK_NOMEM only. The fields are
 * borrowed. */
CK_NODISCARD ck_status ck_additive_of(ck_arena *a, ck_value_fields from, ck_value_fields to, ck_additive *out,
                                      const char **why);
/* Appends. CK_CORRUPT: the bytes are no packed value of `from`. */
CK_NODISCARD ck_status ck_additive_value(const ck_additive *c, ck_view value, ck_bytes *out);

#endif
