/* The operator that joins rows with what a connector finds for them. Each connector that can is an operator of its own,
 * `lookup.<connector>`, made of this and of its table:
 *
 *   {"kind":"inner"|"left","left_keys":[col, ...],"right_keys":[col, ...],"residual":[expr, ...],"source":{the
 * source's}}
 */
#ifndef CK_OPERATOR_LOOKUP_JOIN_H
#define CK_OPERATOR_LOOKUP_JOIN_H

#include "stream/lookup.h"

CK_NODISCARD ck_status ck_lookup_join_create(const ck_op_spec *spec, const ck_lookup_vtbl *vtbl, ck_mem mem,
                                             void **self, ck_error *err);
extern const ck_operator_vtbl ck_lookup_join_vtbl;

#endif
