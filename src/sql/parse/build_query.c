/* Constructors of queries and FROM. See parser_int.h. */
#include "sql/parse/depth_int.h"

static unsigned depth_of_select(const ck_ast_select *s) {
    unsigned d = deeper(deeper(depth_of(s->where), depth_of(s->having)), depth_of_list(&s->group_by));
    d = deeper(d, depth_of_list(&s->distinct_on));
    for (const ck_ast_item *i = s->items.first; i; i = i->next) d = deeper(d, depth_of(i->expr));
    for (const ck_ast_from *f = s->from; f; f = f->next) d = deeper(d, f->depth);
    for (const ck_ast_window *w = s->windows; w; w = w->next)
        d = deeper(d, deeper(depth_of_list(&w->partition_by), depth_of_orders(&w->order_by)));
    return d;
}

bool ck_ast_build_query_done(ck_parser *ps, ck_ast_query *q) {
    unsigned d = q->select ? depth_of_select(q->select) : depth_of_list(&q->rows);
    d = deeper(d, deeper(depth_of_orders(&q->order_by), deeper(depth_of(q->limit), depth_of(q->offset))));
    for (const ck_ast_query *a = q->arms; a; a = a->next) d = deeper(d, a->depth);
    for (const ck_ast_cte *c = q->ctes; c; c = c->next) d = deeper(d, c->query->depth);
    return set_depth(ps, &q->depth, d, q->pos);
}

static ck_ast_query *new_query(ck_parser *ps, ck_pos pos, ck_ast_query_kind kind) {
    ck_ast_query *q = CK_PARSER_NEW(ps, ck_ast_query);
    if (q) q->kind = kind, q->pos = pos;
    return q;
}

ck_ast_query *ck_ast_build_select(ck_parser *ps, ck_pos pos, ck_ast_select *select) {
    ck_ast_query *q = new_query(ps, pos, CK_QUERY_SELECT);
    if (!q) return NULL;
    q->select = select;
    return ck_ast_build_query_done(ps, q) ? q : NULL;
}

ck_ast_query *ck_ast_build_values(ck_parser *ps, ck_pos pos, ck_ast_exprs rows) {
    ck_ast_query *q = new_query(ps, pos, CK_QUERY_VALUES);
    if (!q) return NULL;
    q->rows = rows;
    return ck_ast_build_query_done(ps, q) ? q : NULL;
}

static void add_arm(ck_ast_query *q, ck_ast_query *arm) {
    if (q->arms_last) {
        q->arms_last->next = arm;
    } else {
        q->arms = arm;
    }
    q->arms_last = arm;
}

/* a UNION b UNION c is one node with three arms, so that a long chain is wide and not deep. */
ck_ast_query *ck_ast_build_set_operation(ck_parser *ps, ck_pos pos, ck_ast_query_kind kind, bool all, ck_ast_query *a,
                                         ck_ast_query *b) {
    if (a->kind == kind && a->all == all && !a->parenthesised) {
        add_arm(a, b);
        a->pos = pos;
        return set_depth(ps, &a->depth, deeper(a->depth - 1u, b->depth), pos) ? a : NULL;
    }
    ck_ast_query *q = new_query(ps, pos, kind);
    if (!q) return NULL;
    q->all = all;
    add_arm(q, a);
    add_arm(q, b);
    return ck_ast_build_query_done(ps, q) ? q : NULL;
}

ck_ast_query *ck_ast_build_query_tail(ck_parser *ps, ck_ast_query *q, ck_pos pos) {
    if (!q->parenthesised) {
        q->pos = pos;
        return q;
    }
    ck_ast_query *outer = new_query(ps, pos, CK_QUERY_UNION); /* of one arm */
    if (!outer) return NULL;
    outer->all = true;
    add_arm(outer, q);
    return ck_ast_build_query_done(ps, outer) ? outer : NULL;
}

/* ---- FROM ---- */

ck_ast_from *ck_ast_build_from(ck_parser *ps, ck_ast_from_kind kind, ck_pos pos) {
    ck_ast_from *f = CK_PARSER_NEW(ps, ck_ast_from);
    if (f) f->kind = kind, f->pos = pos, f->depth = 1;
    return f;
}

bool ck_ast_build_from_done(ck_parser *ps, ck_ast_from *f) {
    unsigned d = deeper(depth_of(f->as_of), deeper(depth_of(f->call), depth_of(f->on)));
    if (f->query) d = deeper(d, f->query->depth);
    if (f->left) d = deeper(d, deeper(f->left->depth, f->right->depth));
    return set_depth(ps, &f->depth, d, f->pos);
}

ck_ast_from *ck_ast_build_join(ck_parser *ps, ck_pos pos, ck_ast_join_kind kind, ck_ast_from *left,
                               ck_ast_from *right) {
    ck_ast_from *f = ck_ast_build_from(ps, CK_FROM_JOIN, pos);
    if (!f) return NULL;
    f->join = kind, f->left = left, f->right = right;
    return ck_ast_build_from_done(ps, f) ? f : NULL;
}
