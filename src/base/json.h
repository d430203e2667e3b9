/* JSON through yyjson, with its memory from an arena: parameters, graphs, manifests, split and committable specs. What
 * is read lives as long as the arena; nothing is freed one by one. Include <yyjson.h> to walk documents. */
#ifndef CK_BASE_JSON_H
#define CK_BASE_JSON_H

#include "base/arena.h"

struct yyjson_alc;
struct yyjson_doc;
struct yyjson_mut_doc;

/* yyjson's allocator over an arena (which outlives every document made with it). */
void ck_json_alc(ck_arena *a, struct yyjson_alc *out);
/* Strict JSON, nothing behind it. Bad text is CK_CORRUPT with the byte offset; CK_NOMEM at the arena's end. */
CK_NODISCARD ck_status ck_json_read(ck_arena *a, ck_view text, struct yyjson_doc **out, ck_error *err);
/* An empty document to build in. */
CK_NODISCARD ck_status ck_json_new(ck_arena *a, struct yyjson_mut_doc **out, ck_error *err);
/* Compact text in the arena with a NUL behind it that is not counted. NaN or infinities in it are CK_INVALID. */
CK_NODISCARD ck_status ck_json_write(ck_arena *a, const struct yyjson_mut_doc *doc, ck_view *out, ck_error *err);

#endif
