/* See places.h. Operators come behind their inputs, so each is looked at once. */
#include "graph/places.h"

#include <stdlib.h>

#include "base/hash.h"

enum { WAYS_MAX = 1024 }; /* to one operator; queries that are used twice can make many of few */

/* What comes to an operator, by where it was kept last. */
typedef struct ways {
    ck_graph_edge *list;
    uint32_t count, capacity;
} ways;

static ck_status add(ck_arena *a, ways *w, ck_graph_edge e) {
    if (w->count == w->capacity) {
        uint32_t capacity = w->capacity ? w->capacity * 2 : 4;
        ck_graph_edge *list = ck_arena_array(a, capacity, sizeof *list);
        if (!list) return CK_NOMEM;
        if (w->count) memcpy(list, w->list, w->count * sizeof *list);
        w->list = list, w->capacity = capacity;
    }
    w->list[w->count++] = e;
    return CK_OK;
}

static int by_place(const void *x, const void *y) {
    const ck_graph_edge *a = x, *b = y;
    if (a->input != b->input) return a->input < b->input ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    if (a->from_port != b->from_port) return a->from_port < b->from_port ? -1 : 1;
    return a->path < b->path ? -1 : a->path > b->path;
}

/* Too many ways are one a supplier. */
static void bound(ways *w) {
    uint32_t n = 0;
    if (w->count <= WAYS_MAX) return;
    for (uint32_t i = 0; i < w->count; i++) w->list[i].path = 0;
    qsort(w->list, w->count, sizeof *w->list, by_place);
    for (uint32_t i = 0; i < w->count; i++)
        if (n == 0 || by_place(&w->list[n - 1], &w->list[i]) != 0) w->list[n++] = w->list[i];
    w->count = n;
}

/* What leaves an operator that keeps nothing, by one of its inputs: a union does not count, it has as many as it has.
 */
static uint64_t path_over(const ck_graph_op *op, uint64_t path) {
    return op->input_count == 1 ? ck_hash_combine(op->semantic_fingerprint, path) : path;
}

static ck_status collect(ck_arena *a, const ck_graph *g, const bool *keeps, ways *all, uint32_t number) {
    const ck_graph_op *op = &g->ops[number];
    for (uint32_t i = 0; i < op->input_count; i++) {
        uint32_t from = (uint32_t)(ck_graph_find(g, op->inputs[i].uid) - g->ops), port = op->inputs[i].port;
        if (keeps[from]) {
            CK_TRY(add(a, &all[number], (ck_graph_edge){from, port, number, i, 1}));
            continue;
        }
        for (uint32_t k = 0; k < all[from].count; k++) {
            ck_graph_edge e = all[from].list[k];
            e.path = path_over(&g->ops[from], e.path);
            e.to = number, e.input = i;
            CK_TRY(add(a, &all[number], e));
        }
    }
    bound(&all[number]);
    return CK_OK;
}

static void find_keepers(const ck_graph *g, bool *keeps, bool *read) {
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < g->ops[i].input_count; k++)
            read[ck_graph_find(g, g->ops[i].inputs[k].uid) - g->ops] = true;
    for (uint32_t i = 0; i < g->op_count; i++)
        keeps[i] = g->ops[i].state_fingerprint || g->ops[i].input_count == 0 || !read[i];
}

ck_status ck_graph_places_of(ck_arena *a, const ck_graph *g, ck_graph_places *out) {
    bool *keeps = ck_arena_array(a, g->op_count + 1u, sizeof *keeps);
    bool *read = ck_arena_array(a, g->op_count + 1u, sizeof *read);
    ways *all = ck_arena_array(a, g->op_count + 1u, sizeof *all);
    uint32_t count = 0;
    if (!keeps || !read || !all) return CK_NOMEM;
    find_keepers(g, keeps, read);
    for (uint32_t i = 0; i < g->op_count; i++) {
        CK_TRY(collect(a, g, keeps, all, i));
        count += keeps[i] ? all[i].count : 0;
    }
    *out = (ck_graph_places){g, keeps, ck_arena_array(a, count + 1u, sizeof *out->edges), 0};
    if (!out->edges) return CK_NOMEM;
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; keeps[i] && k < all[i].count; k++) out->edges[out->count++] = all[i].list[k];
    return CK_OK;
}
