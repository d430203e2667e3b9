/* What all nodes have in common. See plan.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "expr/function.h"
#include "sql/plan/plan_int.h"

ck_status ck_plan_nomem(ck_plan *p) { return ck_nomem(p->err, p->arena->mem, 0); }

void *ck_plan_array(ck_plan *p, size_t count, size_t size) {
    void *a = ck_arena_array(p->arena, count ? count : 1, size);
    if (!a) ck_plan_nomem(p);
    return a;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static ck_status unite_ancestors(ck_plan *p, ck_plan_node *n) {
    uint32_t total = 0, kept = 0;
    for (uint32_t i = 0; i < n->input_count; i++) total += n->inputs[i]->ancestor_count;
    const char **all = CK_PLAN_ARRAY(p, total, const char *);
    if (!all) return CK_NOMEM;
    total = 0;
    for (uint32_t i = 0; i < n->input_count; i++)
        for (uint32_t k = 0; k < n->inputs[i]->ancestor_count; k++) all[total++] = n->inputs[i]->ancestors[k];
    if (total) qsort(all, total, sizeof *all, by_text);
    for (uint32_t i = 0; i < total; i++)
        if (kept == 0 || strcmp(all[kept - 1], all[i]) != 0) all[kept++] = all[i];
    n->ancestors = all, n->ancestor_count = kept;
    return CK_OK;
}

ck_status ck_plan_new(ck_plan *p, ck_plan_kind kind, ck_plan_node *const *inputs, uint32_t count, ck_plan_node **out) {
    if (p->node_count >= CK_PLAN_NODES_MAX)
        return ck_fail(p->err, CK_INVALID, "the plan has more than %d operators", CK_PLAN_NODES_MAX);
    ck_plan_node *n = CK_PLAN_ARRAY(p, 1, ck_plan_node);
    ck_plan_node **copy = CK_PLAN_ARRAY(p, count, ck_plan_node *);
    if (!n || !copy) return CK_NOMEM;
    n->kind = kind, n->id = p->node_count++, n->inputs = copy, n->input_count = count;
    n->mode = CK_MODE_APPEND, n->bounded = true;
    for (uint32_t i = 0; i < count; i++) {
        copy[i] = inputs[i];
        if (inputs[i]->mode == CK_MODE_RETRACT) n->mode = CK_MODE_RETRACT;
        if (!inputs[i]->bounded) n->bounded = false;
        if (inputs[i]->depth > n->depth) n->depth = inputs[i]->depth;
        if (i < 2) n->input_ttl_us[i] = inputs[i]->ttl_us;
        if (inputs[i]->ttl_us > n->ttl_us) n->ttl_us = inputs[i]->ttl_us;
    }
    for (uint32_t i = 0; i < count; i++)
        if (inputs[i]->ttl_us == 0) n->ttl_us = 0;
    if (++n->depth > CK_PLAN_DEPTH_MAX)
        return ck_fail(p->err, CK_INVALID, "the plan has more than %d operators on top of each other",
                       CK_PLAN_DEPTH_MAX);
    *out = n;
    return unite_ancestors(p, n);
}

ck_status ck_plan_schema_new(ck_plan *p, uint32_t count, ck_schema **out, ck_field **fields) {
    if (count > CK_SQL_COLUMNS_MAX)
        return ck_fail(p->err, CK_INVALID, "%u columns are too many; at most %d are allowed", count,
                       CK_SQL_COLUMNS_MAX);
    *out = CK_PLAN_ARRAY(p, 1, ck_schema);
    *fields = CK_PLAN_ARRAY(p, count, ck_field);
    if (!*out || !*fields) return CK_NOMEM;
    (*out)->fields = *fields, (*out)->field_count = count;
    return CK_OK;
}

/* ---- keys ---- */

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

bool ck_plan_add_key(ck_plan *p, ck_plan_node *n, const uint32_t *columns, uint32_t count) {
    if (n->key_count == CK_PLAN_KEYS_MAX) return true; /* one key less is only a plan less */
    uint32_t *copy = CK_PLAN_ARRAY(p, count, uint32_t);
    if (!copy) return false;
    if (count) {
        memcpy(copy, columns, count * sizeof *copy);
        qsort(copy, count, sizeof *copy, by_number);
    }
    n->keys[n->key_count++] = (ck_columns){copy, count};
    return true;
}

static bool holds(const uint32_t *columns, uint32_t count, uint32_t c) {
    for (uint32_t i = 0; i < count; i++)
        if (columns[i] == c) return true;
    return false;
}

bool ck_plan_is_unique(const ck_plan_node *n, const uint32_t *columns, uint32_t count) {
    for (uint32_t k = 0; k < n->key_count; k++) {
        bool all = true;
        for (uint32_t i = 0; all && i < n->keys[k].count; i++) all = holds(columns, count, n->keys[k].at[i]);
        if (all) return true;
    }
    return false;
}

/* ---- identity ---- */

enum { ANCESTORS_BYTES_MAX = 200 };

static const char *join_ancestors(ck_plan *p, const ck_plan_node *n) {
    size_t bytes = 0;
    uint64_t h = CK_FNV_OFFSET;
    for (uint32_t i = 0; i < n->ancestor_count; i++) {
        size_t len = strlen(n->ancestors[i]);
        bytes += len + 1;
        if (i) h = ck_fnv1a_more(h, ",", 1);
        h = ck_fnv1a_more(h, n->ancestors[i], len);
    }
    if (bytes > ANCESTORS_BYTES_MAX) return ck_arena_printf(p->arena, "#%016llx", (unsigned long long)h);
    char *text = ck_arena_alloc(p->arena, bytes + 1), *at = text;
    if (!text) return NULL;
    for (uint32_t i = 0; i < n->ancestor_count; i++) {
        size_t len = strlen(n->ancestors[i]);
        if (i) *at++ = ',';
        memcpy(at, n->ancestors[i], len), at += len;
    }
    *at = 0;
    return text;
}

ck_status ck_plan_identify_as(ck_plan *p, ck_plan_node *n, const char *identity, const char *ancestor) {
    const char **one = CK_PLAN_ARRAY(p, 1, const char *);
    if (!one) return CK_NOMEM;
    one[0] = ancestor;
    n->identity = identity, n->ancestors = one, n->ancestor_count = 1;
    return CK_OK;
}

ck_status ck_plan_identify(ck_plan *p, ck_plan_node *n, const char *kind, const char *key) {
    const char *ancestors = join_ancestors(p, n);
    if (!ancestors) return ck_plan_nomem(p);
    size_t key_bytes = strlen(key);
    const char *identity = key_bytes <= ANCESTORS_BYTES_MAX
                               ? ck_arena_printf(p->arena, "%s(%s)<-%s", kind, key, ancestors)
                               : ck_arena_printf(p->arena, "%s(#%016llx)<-%s", kind,
                                                 (unsigned long long)ck_fnv1a(key, key_bytes), ancestors);
    return identity ? ck_plan_identify_as(p, n, identity, identity) : ck_plan_nomem(p);
}

void ck_plan_canonical(ck_plan_node *n, ck_view text) {
    const char *kind = ck_plan_kind_name(n->kind);
    uint64_t h = ck_fnv1a_more(ck_fnv1a(kind, strlen(kind)), text.p, text.n);
    for (uint32_t i = 0; i < n->input_count; i++) h = ck_hash_combine(h, n->inputs[i]->canonical);
    n->canonical = h;
}

ck_status ck_plan_canonical_exprs(ck_plan *p, ck_plan_node *n, ck_expr *const *exprs, uint32_t count,
                                  const char *const *names) {
    ck_bytes text;
    ck_bytes_init(&text, p->arena->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < count; i++) {
        s = ck_expr_print(exprs[i], names, &text);
        if (s == CK_OK) s = ck_bytes_char(&text, ';');
    }
    if (s == CK_OK) ck_plan_canonical(n, ck_bytes_as_view(&text));
    ck_bytes_destroy(&text);
    return s == CK_OK ? CK_OK : ck_plan_nomem(p);
}

void ck_plan_keep_identity(ck_plan_node *made, const ck_plan_node *bound) {
    made->identity = bound->identity;
    made->ancestors = bound->ancestors;
    made->ancestor_count = bound->ancestor_count;
    made->canonical = bound->canonical;
    made->meaning = bound->meaning;
    made->ttl_us = bound->ttl_us;
    memcpy(made->input_ttl_us, bound->input_ttl_us, sizeof made->input_ttl_us);
    memcpy(made->late, bound->late, sizeof made->late);
    if (made->kind == CK_PLAN_JOIN && bound->kind == CK_PLAN_JOIN)
        memcpy(made->join.unread, bound->join.unread, sizeof made->join.unread);
}

/* ---- helpers ---- */

ck_expr *ck_plan_column(ck_plan *p, const ck_plan_node *n, uint32_t column) {
    const ck_field *f = &n->schema->fields[column];
    ck_expr *e = ck_expr_column(p->arena, column, f->type, f->nullable);
    if (!e) ck_plan_nomem(p);
    return e;
}

const char *const *ck_plan_names(ck_plan *p, const ck_plan_node *n) {
    const char **names = CK_PLAN_ARRAY(p, n->schema->field_count, const char *);
    for (uint32_t i = 0; names && i < n->schema->field_count; i++) names[i] = n->schema->fields[i].name;
    return names;
}

static bool tests_not_null(const ck_plan_node *filter, uint32_t column) {
    for (uint32_t i = 0; i < filter->filter.count; i++) {
        const ck_expr *e = filter->filter.conjuncts[i];
        if (e->kind == CK_EXPR_CALL && strcmp(e->fn->name, "is_not_null") == 0 && e->args[0]->kind == CK_EXPR_COLUMN &&
            e->args[0]->column == column)
            return true;
    }
    return false;
}

bool ck_plan_is_not_null(const ck_plan_node *n, uint32_t column) {
    for (;;) {
        if (!n->schema->fields[column].nullable) return true;
        switch (n->kind) {
        case CK_PLAN_FILTER:
            if (tests_not_null(n, column)) return true;
            break;
        case CK_PLAN_PROJECT:
            if (n->project.exprs[column]->kind != CK_EXPR_COLUMN) return false;
            column = n->project.exprs[column]->column;
            break;
        case CK_PLAN_AGGREGATE:
            if (column >= n->aggregate.keys.count) return false;
            column = n->aggregate.keys.at[column];
            break;
        case CK_PLAN_LIMIT:
        case CK_PLAN_SORT: break;
        default: return false;
        }
        n = n->inputs[0];
    }
}

const char *ck_plan_type_text(ck_plan *p, const ck_type *t) {
    ck_bytes text;
    ck_bytes_init(&text, p->arena->mem, SIZE_MAX);
    ck_status s = ck_type_print(t, &text);
    const char *out = s == CK_OK ? ck_arena_strndup(p->arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    if (!out) ck_plan_nomem(p);
    return out;
}

bool ck_plan_is_identity(const ck_plan_node *n) {
    if (n->schema->field_count != n->inputs[0]->schema->field_count) return false;
    for (uint32_t i = 0; i < n->schema->field_count; i++) {
        const ck_expr *e = n->project.exprs[i];
        if (e->kind != CK_EXPR_COLUMN || e->column != i) return false;
    }
    return true;
}

const char *ck_plan_kind_name(ck_plan_kind k) {
    static const char *const names[] = {"scan",   "values", "filter", "project",    "aggregate",
                                        "union",  "limit",  "sort",   "top_n",      "join",
                                        "set_op", "unnest", "window", "window_agg", "over"};
    return names[k];
}

bool ck_plan_grows(const ck_plan_node *n) {
    switch (n->kind) {
    case CK_PLAN_AGGREGATE: /* the one row without keys has no state_ttl */
        return !n->bounded && (n->aggregate.keys.count > 0 ? !n->input_ttl_us[0] : ck_plan_keeps_values(n));
    case CK_PLAN_JOIN: return ck_plan_join_grows(n, 0) || ck_plan_join_grows(n, 1);
    case CK_PLAN_SET_OP: return !n->bounded && !n->ttl_us;
    case CK_PLAN_OVER:
        return n->over.by != CK_BY_END && !n->bounded && n->over.partition.count > 0 && ck_plan_over_keeps(n);
    case CK_PLAN_TOP_N:
        return !n->bounded && !n->input_ttl_us[0] && !n->top.windowed &&
               (n->top.partition.count > 0 || n->inputs[0]->mode == CK_MODE_RETRACT);
    default: return false;
    }
}
