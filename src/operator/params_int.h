/* Reading an operator's parameters: the JSON object of its graph node, checked against the input. Errors name the
 * operator and the member. All results live in the arena given. */
#ifndef CK_OPERATOR_PARAMS_INT_H
#define CK_OPERATOR_PARAMS_INT_H

#include "expr/tree.h"
#include "stream/descriptor.h"

struct yyjson_val;

/* The object; members outside `known` (NULL-terminated) are refused by name. */
CK_NODISCARD ck_status ck_params_read(ck_arena *a, const ck_op_spec *spec, const char *const *known,
                                      struct yyjson_val **root, ck_error *err);
/* An array of input column numbers. */
CK_NODISCARD ck_status ck_params_columns(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root,
                                         const char *member, uint32_t **out, uint32_t *count, ck_error *err);
/* An array of expressions over the first input; every column number is in range. */
CK_NODISCARD ck_status ck_params_exprs(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                                       ck_expr ***out, uint32_t *count, ck_error *err);
/* One such expression. */
CK_NODISCARD ck_status ck_params_expr(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                                      ck_expr **out, ck_error *err);
/* A column number or null (-1). */
CK_NODISCARD ck_status ck_params_column(const ck_op_spec *spec, struct yyjson_val *object, const char *member,
                                        int64_t *out, ck_error *err);
/* A string or null. */
CK_NODISCARD ck_status ck_params_text(const ck_op_spec *spec, struct yyjson_val *object, const char *member,
                                      const char **out, ck_error *err);
/* Not negative; *has says whether it is there and not null. */
CK_NODISCARD ck_status ck_params_u64(const ck_op_spec *spec, struct yyjson_val *object, const char *member,
                                     uint64_t *out, bool *has, ck_error *err);
/* Names of the first input's columns, for messages. NULL without memory. */
const char *const *ck_params_input_names(ck_arena *a, const ck_op_spec *spec);
/* Exactly `count` inputs (0: one or more), none of a mode in `refused` (bits 1 << ck_edge_mode). */
CK_NODISCARD ck_status ck_params_inputs(const ck_op_spec *spec, uint32_t count, uint32_t refused, ck_error *err);

/* ck_op_desc.again (again.c): of operators whose state is a function of the rows, unless their parameters say
 * otherwise; and of those that ask how far event time has come. */
CK_NODISCARD ck_status ck_op_again_by_rows(const ck_op_spec *spec, ck_arena *a, ck_again *out, ck_error *err);
CK_NODISCARD ck_status ck_op_again_by_time(const ck_op_spec *spec, ck_arena *a, ck_again *out, ck_error *err);

#endif
