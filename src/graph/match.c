/* See match.h. Graphs have hundreds of operators at most, and this runs once: every pair is looked at. */
#include "graph/match.h"

typedef struct matching {
    const ck_graph *stored, *wanted;
    const ck_graph_op **of_wanted; /* by wanted operator: its stored one */
    bool *taken;                   /* by stored operator */
    ck_error *err;
} matching;

static ck_view name_of(const ck_graph_op *op) {
    const char *end = strchr(op->uid, '~');
    return (ck_view){op->uid, end ? (size_t)(end - op->uid) : strlen(op->uid)};
}

static bool same_kind(const ck_graph_op *a, const ck_graph_op *b) { return strcmp(a->type, b->type) == 0; }
static bool same_uid(const ck_graph_op *a, const ck_graph_op *b) {
    return same_kind(a, b) && strcmp(a->uid, b->uid) == 0;
}
static bool same_name(const ck_graph_op *a, const ck_graph_op *b) {
    return same_kind(a, b) && ck_view_eq(name_of(a), name_of(b));
}
static bool same_meaning(const ck_graph_op *a, const ck_graph_op *b) {
    return a->semantic_fingerprint == b->semantic_fingerprint;
}

typedef bool candidate_fn(const ck_graph_op *stored, const ck_graph_op *wanted);
static bool uid_and_meaning(const ck_graph_op *s, const ck_graph_op *w) { return same_uid(s, w) && same_meaning(s, w); }
static bool name_and_meaning(const ck_graph_op *s, const ck_graph_op *w) {
    return same_name(s, w) && same_meaning(s, w);
}

/* A column in its key has another name now. */
static bool meaning_alone(const ck_graph_op *s, const ck_graph_op *w) {
    return same_kind(s, w) && s->state_fingerprint && w->state_fingerprint && same_meaning(s, w);
}

static bool has_branch(const ck_graph_op *op, uint64_t branch) {
    for (uint32_t i = 0; i < op->branch_count; i++)
        if (op->branches[i] == branch) return true;
    return false;
}

/* It keeps rows of one table more, or of one statement more. */
static bool more_branches(const ck_graph_op *s, const ck_graph_op *w) {
    uint32_t count = s->branch_count ? s->branch_count : 1;
    if (!same_kind(s, w) || !s->state_fingerprint || w->branch_count <= count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!has_branch(w, s->branch_count ? s->branches[i] : s->semantic_fingerprint)) return false;
    return true;
}

/* Free stored candidates of a wanted operator, and free wanted ones that would have its first. */
static uint32_t stored_for(const matching *m, const ck_graph_op *w, candidate_fn *fits, uint32_t *first) {
    uint32_t n = 0;
    for (uint32_t i = m->stored->op_count; i-- > 0;)
        if (!m->taken[i] && fits(&m->stored->ops[i], w)) *first = i, n++;
    return n;
}
static uint32_t wanted_for(const matching *m, const ck_graph_op *s, candidate_fn *fits) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->wanted->op_count; i++)
        if (!m->of_wanted[i] && fits(s, &m->wanted->ops[i])) n++;
    return n;
}

/* Operators without state may be taken for each other: nothing is lost by it. */
static bool matters(const ck_graph_op *op) { return op->state_fingerprint != 0; }

static ck_status ambiguous(matching *m, const ck_graph_op *w, uint32_t stored, uint32_t wanted) {
    ck_view name = name_of(w);
    return ck_fail(
        m->err, CK_REFUSED,
        "%u operators of this script and %u of the checkpoint are called %.*s and do the same: which of them "
        "continues as '%s' cannot be told",
        wanted, stored, (int)name.n, name.p, w->uid);
}

static ck_status pass(matching *m, candidate_fn *fits, bool one_only) {
    for (uint32_t i = 0; i < m->wanted->op_count; i++) {
        const ck_graph_op *w = &m->wanted->ops[i];
        uint32_t first = 0;
        if (m->of_wanted[i]) continue;
        uint32_t stored = stored_for(m, w, fits, &first);
        if (stored == 0) continue;
        uint32_t wanted = wanted_for(m, &m->stored->ops[first], fits);
        bool one = stored == 1 && wanted == 1;
        if (!one && one_only) {
            if (matters(w) && fits == name_and_meaning) return ambiguous(m, w, stored, wanted);
            if (matters(w)) continue;
        }
        m->of_wanted[i] = &m->stored->ops[first];
        m->taken[first] = true;
    }
    return CK_OK;
}

ck_status ck_graph_match(ck_arena *a, const ck_graph *stored, const ck_graph *wanted, ck_graph_pair **out,
                         uint32_t *count, ck_error *err) {
    matching m = {.stored = stored, .wanted = wanted, .err = err};
    uint32_t n = 0;
    m.of_wanted = ck_arena_array(a, wanted->op_count + 1u, sizeof(const ck_graph_op *));
    m.taken = ck_arena_array(a, stored->op_count + 1u, sizeof *m.taken);
    ck_graph_pair *pairs = ck_arena_array(a, (size_t)stored->op_count + wanted->op_count + 1u, sizeof *pairs);
    if (!m.of_wanted || !m.taken || !pairs) return ck_nomem(err, a->mem, 0);
    CK_TRY(pass(&m, uid_and_meaning, false));
    CK_TRY(pass(&m, name_and_meaning, true));
    CK_TRY(pass(&m, meaning_alone, true));
    CK_TRY(pass(&m, more_branches, true));
    CK_TRY(pass(&m, same_uid, false));
    CK_TRY(pass(&m, same_name, true));
    for (uint32_t i = 0; i < wanted->op_count; i++) {
        const ck_graph_op *s = m.of_wanted[i], *w = &wanted->ops[i];
        bool same = s && same_meaning(s, w);
        pairs[n++] = (ck_graph_pair){s, w, same, s && !same && more_branches(s, w)};
    }
    for (uint32_t i = 0; i < stored->op_count; i++)
        if (!m.taken[i]) pairs[n++] = (ck_graph_pair){.stored = &stored->ops[i]};
    *out = pairs, *count = n;
    return CK_OK;
}
