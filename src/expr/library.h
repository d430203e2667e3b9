/* The functions that are not built in: those of the plugins a process has loaded (clink/plugin.h). Filled when the
 * process starts and read-only afterwards, so that any thread may look things up. */
#ifndef CK_EXPR_LIBRARY_H
#define CK_EXPR_LIBRARY_H

#include "clink/plugin.h"
#include "expr/aggregate.h"
#include "expr/function.h"

struct ck_plugin_operator;
struct ck_plugin_connector;

typedef struct ck_library_item {
    const ck_function *function; /* one of these */
    const ck_aggregate *aggregate;
    const struct ck_plugin_operator *operator_;
    const struct ck_plugin_connector *connector;
    struct ck_library_item *next;
} ck_library_item;

typedef struct ck_library {
    ck_library_item *items;
} ck_library;

/* Built in, or of the library (NULL: none). Case is ignored. */
const ck_function *ck_library_function(const ck_library *l, const char *name);
const ck_aggregate *ck_library_aggregate(const ck_library *l, const char *name);

/* Enters what a plugin has; f and a live as long as the library, what is made of them in the arena. A name that is
 * taken, a type that is none and what is missing are CK_INVALID, with the plugin's name. Overloads of one name are of
 * one plugin. */
CK_NODISCARD ck_status ck_library_add_function(ck_library *l, ck_arena *arena, const char *plugin,
                                               const clink_function *f, ck_error *err);
CK_NODISCARD ck_status ck_library_add_aggregate(ck_library *l, ck_arena *arena, const char *plugin,
                                                const clink_aggregate *a, ck_error *err);

CK_NODISCARD ck_status ck_library_add_operator(ck_library *l, ck_arena *arena, const char *plugin,
                                               const clink_operator *o, ck_error *err);
/* As an operator's plugin says it: for messages where none is found. NULL: there is none. The case counts. */
const struct ck_plugin_operator *ck_library_operator(const ck_library *l, const char *name);

CK_NODISCARD ck_status ck_library_add_connector(ck_library *l, ck_arena *arena, const char *plugin,
                                                const clink_connector *c, ck_error *err);
/* NULL: there is none. */
const struct ck_plugin_connector *ck_library_connector(const ck_library *l, const char *name);

/* A connector of a plugin, for who runs it: connector/plugin/. */
typedef struct ck_plugin_connector {
    const clink_connector *face;
    const char *plugin;
    uint32_t option_count;
} ck_plugin_connector;

/* An operator of a plugin, for who runs it: operator/process_int.h. */
typedef struct ck_plugin_operator {
    const clink_operator *face;
    const char *plugin;
    const ck_schema **inputs; /* face->input_count of them (at least one); NULL: all columns, as they come */
    uint32_t input_count;
    const ck_schema *output;
    const ck_schema *sides;  /* face->side_count */
    const ck_schema *states; /* fields of face->states */
    bool timers, ttl;
} ck_plugin_operator;

/* An aggregate of a plugin, for who runs it: operator/accumulator_plugin.c. */
typedef struct ck_plugin_aggregate {
    ck_aggregate base; /* first: found by name */
    const clink_aggregate *face;
    const char *plugin;
    const ck_type *argument, *returns; /* argument NULL: none */
    const ck_type **state;             /* types of the face's fields */
} ck_plugin_aggregate;

#endif
