/* How deep a tree is: every recursion over it is bounded because its construction was. */
#ifndef CK_SQL_PARSE_DEPTH_INT_H
#define CK_SQL_PARSE_DEPTH_INT_H

#include "sql/parse/parser_int.h"

static inline unsigned deeper(unsigned a, unsigned b) { return a > b ? a : b; }
static inline unsigned depth_of(const ck_ast_expr *e) { return e ? e->depth : 0; }
static inline unsigned depth_of_list(const ck_ast_exprs *l) {
    unsigned d = 0;
    for (const ck_ast_expr *e = l->first; e; e = e->next) d = deeper(d, e->depth);
    return d;
}
static inline unsigned depth_of_orders(const ck_ast_orders *l) {
    unsigned d = 0;
    for (const ck_ast_order *o = l->first; o; o = o->next) d = deeper(d, depth_of(o->expr));
    return d;
}
/* depth = 1 + deepest; false, recorded, past the limit. */
static inline bool set_depth(ck_parser *ps, uint16_t *depth, unsigned deepest, ck_pos at) {
    *depth = (uint16_t)(deepest + 1);
    if (*depth <= CK_SQL_DEPTH_MAX) return true;
    ck_parser_too_deep(ps, at);
    return false;
}

#endif
