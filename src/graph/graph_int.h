/* Inside graph/: what the builder's check shares with the JSON reader and writer. */
#ifndef CK_GRAPH_GRAPH_INT_H
#define CK_GRAPH_GRAPH_INT_H

#include <yyjson.h>

#include "base/json.h"
#include "graph/graph.h"

/* -1 for a name that is none. */
int ck_edge_kind_parse(ck_view name);
int ck_edge_mode_parse(ck_view name);

/* Whether text is a JSON object; the message names `what`. */
CK_NODISCARD ck_status ck_graph_check_object(ck_arena *a, const char *text, const char *uid, const char *what,
                                             ck_error *err);
/* FNV-1a over the canonical JSON of the graph, and of one operator without its uid and ancestors. CK_NOMEM, or
 * CK_INVALID when a name is not UTF-8. */
CK_NODISCARD ck_status ck_graph_canonical_hash(ck_arena *a, const ck_graph *g, uint64_t *out);
CK_NODISCARD ck_status ck_graph_semantic_hash(ck_arena *a, const ck_graph *g, const ck_graph_op *op, uint64_t *out);

/* As ck_json_read, but numbers keep their text; the error is yyjson's. */
yyjson_doc *ck_graph_json_read(ck_arena *a, ck_view text, yyjson_read_err *err);

#endif
