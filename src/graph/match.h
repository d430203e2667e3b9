/* Which operator of a stored graph continues as which of a new one. State belongs to uids; a script that changed may
 * give the same operator another uid (a second statement over the same key, and both get a hash behind their name), and
 * several may do the same, so that what decides is, in this order:
 *
 *   1. equal name (the uid before '~') and equal meaning, where one on either side has it; tables that are written have
 *      their name, or the caller knows (`sure`)
 *   2. equal meaning, and the place: fed by, or feeding, operators that are told already, over the same way; writing to
 *      the same tables. Again and again, as long as that tells more
 *   3. equal uid and meaning, where one on either side has it (the uid says how the statement reads); then equal
 * meaning and the fields of what is kept, at one place and then anywhere
 *   4. those that stand for each other in the new graph (UNION ALL of one query twice), in their order
 *   5. equal name and meaning, or equal meaning alone, where one is left on either side
 *   6. one on either side whose branches of a UNION ALL are those of the stored one, and more
 *   7. another meaning: equal uid or name and the same place, then one that is left on either side
 *   8. nobody: dropped, or new
 *
 * Where several of one name and meaning are left on a side after 5. nothing is guessed: they are `undecided`.
 *
 * The rules: docs/decisions/0028-*.md. Pure; nothing is read. */
#ifndef CK_GRAPH_MATCH_H
#define CK_GRAPH_MATCH_H

#include "graph/graph.h"

typedef struct ck_graph_pair {
    const ck_graph_op *stored; /* NULL: the operator is new */
    const ck_graph_op *wanted; /* NULL: it is dropped */
    bool same_meaning;         /* both are there, and the semantic fingerprints are equal, */
    bool more_branches;        /* or this: the rows it got are all among those it gets */
    const char *undecided;     /* NULL, or of one alone: a sentence, with those it may be */
    /* NULL, or an operator of the stored graph that fed this one, goes on, and does not feed it any more: what is kept
     * here came from state that is elsewhere now. */
    const ck_graph_op *lost;
    const ck_graph_op *lost_to; /* as which it goes on */
} ck_graph_pair;

/* What keeps nothing may be paired with anything of its uid, or with nothing. */
typedef struct ck_graph_matched {
    ck_graph_pair *pairs; /* one an operator, those of `wanted` first, in its order. Only operators of one type */
    uint32_t count;
} ck_graph_matched;

/* sure: pairs that the caller knows. In the arena. CK_NOMEM. */
CK_NODISCARD ck_status ck_graph_match(ck_arena *a, const ck_graph *stored, const ck_graph *wanted,
                                      const ck_graph_pair *sure, uint32_t sure_count, ck_graph_matched *out);

#endif
