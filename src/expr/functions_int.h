/* The function tables, one a file, gathered by function.c; and the resolution of overloads. */
#ifndef CK_EXPR_FUNCTIONS_INT_H
#define CK_EXPR_FUNCTIONS_INT_H

#include "expr/function.h"

typedef struct ck_function_table {
    const ck_function *functions;
    size_t count;
} ck_function_table;

extern const ck_function_table ck_functions_logic, ck_functions_compare, ck_functions_arith, ck_functions_conditional,
    ck_functions_cast, ck_functions_like, ck_functions_string, ck_functions_text, ck_functions_regex,
    ck_functions_number, ck_functions_round, ck_functions_time, ck_functions_time_text, ck_functions_hash,
    ck_functions_json, ck_functions_nested, ck_functions_array, ck_functions_volatile;

/* Chooses among fn->overloads by the cost of the conversions and converts the arguments. */
CK_NODISCARD ck_status ck_bind_overloads(ck_bind_call *call, ck_error *err);
/* "no function f(BIGINT); f takes SYNTAX". Returns CK_INVALID. */
ck_status ck_bind_mismatch(const ck_bind_call *call, ck_error *err);
#endif
