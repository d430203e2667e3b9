/* What operators are told by. See match_int.h. */
#include <stdlib.h>

#include "base/hash.h"
#include "graph/match_int.h"

/* ---- classes ---- */

/* Equal ones have "~2", "~3" behind the hash that they share, in the order of the script. */
static size_t without_ordinal(const char *uid) {
    const char *end = strrchr(uid, '~');
    size_t digits = end ? strspn(end + 1, "0123456789") : 0;
    bool ordinal = end && memchr(uid, '~', (size_t)(end - uid)) && digits && digits < 8 && !end[1 + digits];
    return ordinal ? (size_t)(end - uid) : strlen(uid);
}

static uint64_t of_text(uint64_t h, const char *z, size_t n) { return ck_hash_combine(h, ck_fnv1a(z, n)); }
static uint64_t some(uint64_t h) { return h ? h : 1; }

static void classify(ck_match_side *s, uint32_t i) {
    const ck_graph_op *op = &s->graph->ops[i];
    uint64_t type = of_text(1, op->type, strlen(op->type)), meaning = op->semantic_fingerprint;
    uint64_t uid = of_text(type, op->uid, without_ordinal(op->uid));
    uint64_t name = of_text(type, op->uid, strcspn(op->uid, "~"));
    s->classes[CK_MATCH_EXACT][i] = some(ck_hash_combine(uid, meaning));
    s->classes[CK_MATCH_MEANT][i] = some(ck_hash_combine(name, meaning));
    s->classes[CK_MATCH_MEANING][i] = op->state_fingerprint ? some(ck_hash_combine(type, meaning)) : 0;
    s->classes[CK_MATCH_SOURCE][i] = op->input_count || op->state_fingerprint ? 0 : some(name);
    s->classes[CK_MATCH_UID][i] = some(uid);
    s->classes[CK_MATCH_NAME][i] = some(name);
}

ck_status ck_match_side_init(ck_arena *a, const ck_graph *g, ck_match_side *out) {
    *out = (ck_match_side){.graph = g};
    CK_TRY(ck_graph_places_of(a, g, &out->places));
    out->mate = ck_arena_array(a, g->op_count + 1u, sizeof *out->mate);
    out->frozen = ck_arena_array(a, g->op_count + 1u, sizeof *out->frozen);
    uint64_t **const numbers[] = {&out->sinks, &out->told, &out->like, &out->users, &out->inputs};
    out->users_known = ck_arena_array(a, g->op_count + 1u, 1);
    out->inputs_known = ck_arena_array(a, g->op_count + 1u, 1);
    bool ok = out->mate && out->frozen && out->users_known && out->inputs_known;
    for (size_t i = 0; i < CK_ARRAY_COUNT(numbers); i++)
        ok &= (*numbers[i] = ck_arena_array(a, g->op_count + 1u, sizeof **numbers[i])) != NULL;
    for (size_t i = 0; i < CK_MATCH_CLASSES; i++)
        ok &= (out->classes[i] = ck_arena_array(a, g->op_count + 1u, sizeof *out->classes[i])) != NULL;
    if (!ok) return CK_NOMEM;
    for (uint32_t i = 0; i < g->op_count; i++) classify(out, i);
    return CK_OK;
}

/* ---- places ---- */

enum { NOTHING, KNOWN, UNKNOWN };

static void note(uint64_t *sum, uint8_t *known, uint32_t mate, uint64_t what) {
    if (!mate) *known = UNKNOWN;
    if (*known == NOTHING) *known = KNOWN;
    *sum += ck_mix64(ck_hash_combine(mate, what));
}

static void look_around(ck_match_side *s, bool paths) {
    uint32_t n = s->graph->op_count;
    memset(s->users, 0, n * sizeof *s->users), memset(s->users_known, NOTHING, n);
    memset(s->inputs, 0, n * sizeof *s->inputs), memset(s->inputs_known, NOTHING, n);
    for (uint32_t i = 0; i < s->places.count; i++) {
        const ck_graph_edge *e = &s->places.edges[i];
        uint64_t what = ck_hash_combine(e->from_port, e->input);
        note(&s->inputs[e->to], &s->inputs_known[e->to], s->mate[e->from], what);
        if (paths) what = ck_hash_combine(what, e->path);
        note(&s->users[e->from], &s->users_known[e->from], s->mate[e->to], what);
    }
}

static uint64_t told_of(const ck_match_side *s, uint32_t op, uint32_t evidence) {
    uint64_t h = 1;
    if (evidence & CK_TELLS_USERS && s->users_known[op] != KNOWN) return 0;
    if (evidence & CK_TELLS_INPUTS && s->inputs_known[op] != KNOWN) return 0;
    if (evidence & CK_TELLS_SINKS && !s->sinks[op]) return 0;
    if (evidence & CK_TELLS_USERS) h = ck_hash_combine(h, s->users[op]);
    if (evidence & CK_TELLS_INPUTS) h = ck_hash_combine(h, s->inputs[op]);
    if (evidence & CK_TELLS_SINKS) h = ck_hash_combine(h, s->sinks[op]);
    if (evidence & CK_TELLS_FIELDS) h = ck_hash_combine(h, s->graph->ops[op].state_fingerprint);
    return some(h);
}

void ck_match_tell(ck_match_side *s, uint32_t evidence) {
    look_around(s, evidence & CK_TELLS_PATH);
    for (uint32_t i = 0; i < s->graph->op_count; i++) s->told[i] = ck_match_is_free(s, i) ? told_of(s, i, evidence) : 0;
}

/* Edges stand in the order of whom they lead to. */
static void reach_back(const ck_match_side *s, uint32_t sink, uint8_t *reached) {
    memset(reached, 0, s->graph->op_count);
    reached[sink] = 1;
    for (uint32_t i = s->places.count; i-- > 0;) reached[s->places.edges[i].from] |= reached[s->places.edges[i].to];
}

void ck_match_find_sinks(ck_match_side *s) {
    uint32_t n = s->graph->op_count;
    uint8_t *feeds = s->users_known, *reached = s->inputs_known;
    memset(s->sinks, 0, n * sizeof *s->sinks);
    memset(feeds, 0, n);
    for (uint32_t i = 0; i < s->places.count; i++) feeds[s->places.edges[i].from] = 1;
    for (uint32_t sink = 0; sink < n; sink++) {
        if (feeds[sink] || !s->mate[sink]) continue;
        reach_back(s, sink, reached);
        for (uint32_t i = 0; i < n; i++)
            if (reached[i]) s->sinks[i] += ck_mix64(s->mate[sink]);
    }
}

/* ---- what stands for each other ---- */

static int by_number(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static uint32_t kinds_of(const uint64_t *like, uint64_t *sorted, uint32_t n) {
    uint32_t kinds = 0;
    memcpy(sorted, like, n * sizeof *like);
    if (n) qsort(sorted, n, sizeof *sorted, by_number);
    for (uint32_t i = 0; i < n; i++) kinds += i == 0 || sorted[i] != sorted[i - 1];
    return kinds;
}

static void refine(const ck_match_side *s, uint64_t *next) {
    memcpy(next, s->like, s->graph->op_count * sizeof *next);
    for (uint32_t i = 0; i < s->places.count; i++) {
        const ck_graph_edge *e = &s->places.edges[i];
        uint64_t what = ck_hash_combine(ck_hash_combine(e->from_port, e->input), e->path);
        next[e->from] += ck_mix64(ck_hash_combine(what, s->like[e->to]));
        next[e->to] += ck_mix64(ck_hash_combine(~what, s->like[e->from]));
    }
    for (uint32_t i = 0; i < s->graph->op_count; i++) next[i] = ck_mix64(next[i]);
}

/* Each is what it does and keeps; then, in rounds, also what its neighbours are, until no round tells more. */
void ck_match_find_alike(ck_match_side *s) {
    uint32_t n = s->graph->op_count, kinds = 0;
    for (uint32_t i = 0; i < n; i++)
        s->like[i] = s->mate[i] ? ck_mix64(s->mate[i])
                                : ck_hash_combine(s->classes[CK_MATCH_EXACT][i], s->graph->ops[i].state_fingerprint);
    for (uint32_t was = UINT32_MAX; (kinds = kinds_of(s->like, s->users, n)) != was; was = kinds) {
        refine(s, s->inputs);
        memcpy(s->like, s->inputs, n * sizeof *s->like);
    }
}

/* ---- what does not feed any more ---- */

/* Marks whoever feeds an input, also over operators that are new. */
static void find_suppliers(const ck_match_side *s, uint32_t op, uint32_t input, uint8_t *feeds) {
    memset(feeds, 0, s->graph->op_count);
    for (uint32_t i = s->places.count; i-- > 0;) {
        const ck_graph_edge *e = &s->places.edges[i];
        bool direct = e->to == op && e->input == input, new_one = feeds[e->to] && !s->mate[e->to];
        if (direct || new_one) feeds[e->from] = 1;
    }
}

uint32_t ck_match_lost(const ck_match_side *stored, ck_match_side *wanted, uint32_t s, uint32_t w) {
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < stored->places.count; i++) {
        const ck_graph_edge *e = &stored->places.edges[i];
        if (e->to != s || !stored->mate[e->from]) continue;
        if (e->input != found) find_suppliers(wanted, w, found = e->input, wanted->users_known);
        if (!wanted->users_known[stored->mate[e->from] - 1]) return e->from;
    }
    return UINT32_MAX;
}
