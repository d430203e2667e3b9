/* SQL/JSON paths: an optional "lax" or "strict", then $ with .name, ."name", [n], [last], .* and [*]. Lax (the
 * default): what is not there is nothing; strict: it is an error. */
#ifndef CK_EXPR_JSON_PATH_H
#define CK_EXPR_JSON_PATH_H

#include "base/arena.h"

struct yyjson_val;
typedef struct ck_json_path ck_json_path;

CK_NODISCARD ck_status ck_json_path_compile(ck_arena *a, ck_view text, const ck_json_path **out, ck_error *err);
bool ck_json_path_is_strict(const ck_json_path *p);
/* Calls found for each value at the path, in order, until it returns false. Returns false when strict and a step found
 * nothing of its kind. */
bool ck_json_path_walk(const ck_json_path *p, struct yyjson_val *root, bool (*found)(void *arg, struct yyjson_val *v),
                       void *arg);

#endif
