/* A scalar function of a plugin as one of the table. */
#ifndef CK_EXPR_PLUGIN_FUNCTION_INT_H
#define CK_EXPR_PLUGIN_FUNCTION_INT_H

#include "expr/library.h"
#include "expr/plugin_column.h"

typedef struct ck_plugin_overload {
    ck_impl impl; /* first: a call is of its impl */
    const clink_function *face;
    const char *plugin;
    const ck_type *const *types;
    uint32_t count;
    const ck_type *returns;
    struct ck_plugin_overload *next;
} ck_plugin_overload;

typedef struct ck_plugin_function {
    ck_function base; /* first: found by name */
    const char *plugin;
    ck_plugin_overload *overloads;
} ck_plugin_function;

/* Types are set. */
void ck_plugin_overload_init(ck_plugin_overload *o, const clink_function *face, const char *plugin);
CK_NODISCARD ck_status ck_plugin_function_bind(ck_bind_call *call, ck_error *err);

#endif
