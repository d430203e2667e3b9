/* Which operator of a stored graph continues as which of a new one. State belongs to uids; a script that changed may
 * give the same operator another uid (a second statement over the same key, and both get a hash behind their name), so
 * the semantic fingerprint decides before the name does:
 *
 *   1. equal uid and equal meaning
 *   2. equal name (the uid before '~') and equal meaning, one on either side; several are refused by name
 *   3. one on either side whose branches of a UNION ALL are those of the stored one, and more
 *   4. equal uid, another meaning
 *   5. equal name, one on either side, another meaning
 *   6. nobody: dropped, or new
 *
 * The rules: docs/formats.md, "Job graph". Pure; nothing is read. */
#ifndef CK_GRAPH_MATCH_H
#define CK_GRAPH_MATCH_H

#include "graph/graph.h"

typedef struct ck_graph_pair {
    const ck_graph_op *stored; /* NULL: the operator is new */
    const ck_graph_op *wanted; /* NULL: it is dropped */
    bool same_meaning;         /* both are there, and the semantic fingerprints are equal, */
    bool more_branches;        /* or this: the rows it got are all among those it gets */
} ck_graph_pair;

/* One pair an operator, those of `wanted` first, in its order. Only operators of one type are paired. CK_NOMEM;
 * CK_REFUSED: more than one candidate, named. */
CK_NODISCARD ck_status ck_graph_match(ck_arena *a, const ck_graph *stored, const ck_graph *wanted, ck_graph_pair **out,
                                      uint32_t *count, ck_error *err);

#endif
