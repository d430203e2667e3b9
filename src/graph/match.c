/* See match.h. It runs once a start: operators are told by numbers (match_evidence.c), and whoever is alone with one on
 * both sides is a pair, which may tell more of others. */
#include "graph/match.h"

#include <stdlib.h>

#include "base/hash.h"
#include "graph/match_int.h"

typedef struct entry {
    uint64_t key;
    uint32_t op;
    bool wanted;
} entry;

typedef struct matching {
    ck_arena *arena;
    ck_match_side stored, wanted;
    uint32_t *stored_of; /* by wanted operator: 1 + its stored one */
    entry *entries;
    uint32_t entry_count;
    const char **undecided[2]; /* of the stored ones, of the wanted ones */
} matching;

static void pair(matching *m, uint32_t stored, uint32_t wanted) {
    m->stored_of[wanted] = stored + 1;
    m->stored.mate[stored] = m->wanted.mate[wanted] = wanted + 1;
}

/* ---- groups ---- */

static int by_key(const void *x, const void *y) {
    const entry *a = x, *b = y;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    if (a->wanted != b->wanted) return a->wanted - b->wanted;
    return a->op < b->op ? -1 : a->op > b->op;
}

static void enter(matching *m, const ck_match_side *s, ck_match_class class, bool everybody) {
    for (uint32_t i = 0; i < s->graph->op_count; i++) {
        uint64_t told = everybody ? s->places.keeps[i] : s->told[i];
        if (!told || !s->classes[class][i] || (!everybody && !ck_match_is_free(s, i))) continue;
        m->entries[m->entry_count++] = (entry){ck_hash_combine(s->classes[class][i], told), i, s == &m->wanted};
    }
}

static void sort_entries(matching *m) {
    if (m->entry_count) qsort(m->entries, m->entry_count, sizeof *m->entries, by_key);
}

/* Those of a class that an evidence tells the same, stored ones first, in the order of their graph. */
static void group_by(matching *m, ck_match_class class, uint32_t evidence) {
    m->entry_count = 0;
    ck_match_tell(&m->stored, evidence);
    ck_match_tell(&m->wanted, evidence);
    enter(m, &m->stored, class, false);
    enter(m, &m->wanted, class, false);
    sort_entries(m);
}

/* The group from `at` on: *stored of it, then wanted ones up to the end. */
static uint32_t group_end(const matching *m, uint32_t at, uint32_t *stored) {
    uint32_t end = at;
    for (*stored = 0; end < m->entry_count && m->entries[end].key == m->entries[at].key; end++)
        *stored += !m->entries[end].wanted;
    return end;
}

static bool pair_alone(matching *m) {
    bool any = false;
    for (uint32_t at = 0, end, stored; at < m->entry_count; at = end) {
        end = group_end(m, at, &stored);
        if (stored != 1 || end - at != 2) continue;
        uint32_t s = m->entries[at].op, w = m->entries[at + 1].op;
        if (!ck_match_is_free(&m->stored, s) || !ck_match_is_free(&m->wanted, w)) continue;
        pair(m, s, w);
        any = true;
    }
    return any;
}

/* One on either side of all there are. */
static void pair_unique(matching *m, ck_match_class class) {
    m->entry_count = 0;
    enter(m, &m->stored, class, true);
    enter(m, &m->wanted, class, true);
    sort_entries(m);
    (void)pair_alone(m);
}

/* ---- what tells ---- */

/* The surest first; the last says nothing, and is for what is told beside it. */
static const uint32_t places[] = {
    CK_TELLS_USERS | CK_TELLS_PATH | CK_TELLS_INPUTS,
    CK_TELLS_USERS | CK_TELLS_INPUTS,
    CK_TELLS_USERS | CK_TELLS_PATH,
    CK_TELLS_USERS,
    CK_TELLS_SINKS | CK_TELLS_INPUTS,
    CK_TELLS_SINKS,
    CK_TELLS_INPUTS,
    0,
};

static bool pair_told(matching *m, const ck_match_class *classes, uint32_t count, uint32_t beside) {
    for (size_t p = 0; p < CK_ARRAY_COUNT(places) && (places[p] | beside); p++)
        for (uint32_t i = 0; i < count; i++) {
            group_by(m, classes[i], places[p] | beside);
            if (pair_alone(m)) return true;
        }
    return false;
}

static bool all_alike(const matching *m, const ck_match_side *s, uint32_t at, uint32_t end) {
    for (uint32_t i = at; i < end; i++)
        if (s->like[m->entries[i].op] != s->like[m->entries[at].op]) return false;
    return at < end;
}

/* New ones that stand for each other: whoever goes on as which of them, the answer is the same. Where fewer are left
 * than were there the old ones have to stand for each other, too, and nobody else may go on from them. */
static bool pair_alike(matching *m, ck_match_class class) {
    ck_match_find_alike(&m->stored);
    ck_match_find_alike(&m->wanted);
    for (size_t i = 0; i < CK_ARRAY_COUNT(places); i++) {
        group_by(m, class, places[i]);
        for (uint32_t at = 0, end, stored; at < m->entry_count; at = end) {
            end = group_end(m, at, &stored);
            if (!stored || !all_alike(m, &m->wanted, at + stored, end)) continue;
            bool fewer = stored > end - at - stored, all_of_class = class == CK_MATCH_MEANT && !places[i];
            if (fewer && (!all_of_class || !all_alike(m, &m->stored, at, at + stored))) continue;
            pair(m, m->entries[at].op, m->entries[at + stored].op);
            return true;
        }
    }
    return false;
}

static bool pair_left(matching *m, ck_match_class class) {
    group_by(m, class, 0);
    return pair_alone(m);
}

/* ---- branches ---- */

static bool has_branch(const ck_graph_op *op, uint64_t branch) {
    for (uint32_t i = 0; i < op->branch_count; i++)
        if (op->branches[i] == branch) return true;
    return false;
}

/* It keeps rows of one table more, or of one statement more. */
static bool more_branches(const ck_graph_op *s, const ck_graph_op *w) {
    uint32_t count = s->branch_count ? s->branch_count : 1;
    if (strcmp(s->type, w->type) != 0 || !s->state_fingerprint || w->branch_count <= count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!has_branch(w, s->branch_count ? s->branches[i] : s->semantic_fingerprint)) return false;
    return true;
}

/* Of the free stored ones those that this one has more branches than; *first of them. */
static uint32_t stored_with_less(const matching *m, const ck_graph_op *w, uint32_t *first) {
    uint32_t n = 0;
    for (uint32_t i = m->stored.graph->op_count; i-- > 0;)
        if (ck_match_is_free(&m->stored, i) && more_branches(&m->stored.graph->ops[i], w)) *first = i, n++;
    return n;
}

static uint32_t wanted_with_more(const matching *m, const ck_graph_op *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->wanted.graph->op_count; i++)
        n += ck_match_is_free(&m->wanted, i) && more_branches(s, &m->wanted.graph->ops[i]);
    return n;
}

static bool pair_branches(matching *m) {
    bool any = false;
    for (uint32_t i = 0; i < m->wanted.graph->op_count; i++) {
        const ck_graph_op *w = &m->wanted.graph->ops[i];
        uint32_t first = 0;
        if (w->branch_count == 0 || !ck_match_is_free(&m->wanted, i) || stored_with_less(m, w, &first) != 1) continue;
        if (wanted_with_more(m, &m->stored.graph->ops[first]) != 1) continue;
        pair(m, first, i);
        any = true;
    }
    return any;
}

/* ---- what cannot be told ---- */

/* "uid (of sink:out)": the first table its rows come to. */
static const char *with_table(const matching *m, const ck_match_side *s, uint32_t op) {
    uint32_t at = op;
    for (bool on = true; on;) {
        on = false;
        for (uint32_t i = 0; i < s->places.count && !on; i++)
            if (s->places.edges[i].from == at) at = s->places.edges[i].to, on = true;
    }
    const char *uid = s->graph->ops[op].uid;
    return at == op ? uid : ck_arena_printf(m->arena, "%s (of %s)", uid, s->graph->ops[at].uid);
}

/* "a, b and 3 more" of a group without one of it. */
static const char *names_of(const matching *m, const ck_match_side *s, uint32_t at, uint32_t end, uint32_t without) {
    enum { NAMED = 3 };
    const char *text = NULL;
    uint32_t n = 0;
    for (uint32_t i = at; i < end; i++) {
        if (i == without || n++ >= NAMED) continue;
        const char *one = with_table(m, s, m->entries[i].op);
        if (!one || !(text = text ? ck_arena_printf(m->arena, "%s or %s", text, one) : one)) return NULL;
    }
    return n > NAMED ? ck_arena_printf(m->arena, "%s or %u more", text, n - NAMED) : text;
}

static const char *tell_wanted(const matching *m, uint32_t at, uint32_t stored, uint32_t end, uint32_t i) {
    const char *from = names_of(m, &m->stored, at, at + stored, UINT32_MAX);
    const char *rivals = end - at - stored > 1 ? names_of(m, &m->wanted, at + stored, end, i) : NULL;
    const char *table = with_table(m, &m->wanted, m->entries[i].op);
    if (!from || !table || (end - at - stored > 1 && !rivals)) return NULL;
    table += strlen(m->wanted.graph->ops[m->entries[i].op].uid);
    return ck_arena_printf(
        m->arena,
        "it%s may go on from %s of the checkpoint%s%s, and nothing tells: change the tables that are "
        "written, or their keys, in a start before this one or after it, or have it computed again "
        "(--added-state backfill)",
        table, from, rivals ? ", as may " : "", rivals ? rivals : "");
}

/* Several of one name and meaning are left: they take no part in what follows. Readers that keep nothing else are told
 * by nobody, and nobody is asked: their tables are read anew, which evolve_new.c knows. */
static ck_status freeze_undecided(matching *m) {
    group_by(m, CK_MATCH_MEANT, 0);
    for (uint32_t at = 0, end, stored; at < m->entry_count; at = end) {
        end = group_end(m, at, &stored);
        if (stored == 0 || stored == end - at) continue;
        if (!m->stored.graph->ops[m->entries[at].op].state_fingerprint) continue;
        for (uint32_t i = at; i < end; i++) {
            bool wanted = i >= at + stored;
            const char *why =
                wanted ? tell_wanted(m, at, stored, end, i) : "nothing tells which of those that do the same it is";
            if (!why) return CK_NOMEM;
            m->undecided[wanted][m->entries[i].op] = why;
        }
    }
    for (uint32_t i = 0; i < m->entry_count; i++) {
        const entry *e = &m->entries[i];
        (e->wanted ? m->wanted : m->stored).frozen[e->op] = m->undecided[e->wanted][e->op] != NULL;
    }
    return CK_OK;
}

/* ---- the whole ---- */

static const ck_graph_op *find(const ck_graph *g, const char *uid, const char *type) {
    const ck_graph_op *op = ck_graph_find(g, uid);
    return op && strcmp(op->type, type) == 0 ? op : NULL;
}

/* Tables that are written are one operator each, and their names are the script's. */
static void pair_tables(matching *m, const ck_graph_pair *sure, uint32_t count) {
    const ck_graph *stored = m->stored.graph, *wanted = m->wanted.graph;
    for (uint32_t i = 0; i < count; i++)
        pair(m, (uint32_t)(sure[i].stored - stored->ops), (uint32_t)(sure[i].wanted - wanted->ops));
    for (uint32_t i = 0; i < wanted->op_count; i++) {
        const ck_graph_op *w = &wanted->ops[i], *s = find(stored, w->uid, w->type);
        bool table = strncmp(w->type, "sink.", 5) == 0 || !m->wanted.places.keeps[i];
        if (s && table && !m->wanted.mate[i] && !m->stored.mate[s - stored->ops])
            pair(m, (uint32_t)(s - stored->ops), i);
    }
}

static bool pair_same_meaning(matching *m) {
    static const ck_match_class classes[] = {CK_MATCH_EXACT, CK_MATCH_MEANT, CK_MATCH_MEANING, CK_MATCH_SOURCE};
    uint32_t n = CK_ARRAY_COUNT(classes);
    if (pair_told(m, classes, n, 0) || pair_left(m, CK_MATCH_EXACT) || pair_told(m, classes, n, CK_TELLS_FIELDS))
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (pair_alike(m, classes[i])) return true;
    for (uint32_t i = 1; i < n; i++)
        if (pair_left(m, classes[i])) return true;
    return false;
}

static bool pair_other_meaning(matching *m) {
    static const ck_match_class classes[] = {CK_MATCH_UID, CK_MATCH_NAME};
    if (pair_branches(m)) return true;
    for (uint32_t i = 0; i < CK_ARRAY_COUNT(classes); i++)
        if (pair_told(m, &classes[i], 1, 0) || pair_told(m, &classes[i], 1, CK_TELLS_FIELDS) ||
            pair_left(m, classes[i]))
            return true;
    return false;
}

static ck_status init(matching *m, ck_arena *a, const ck_graph *stored, const ck_graph *wanted) {
    const ck_graph *graphs[] = {stored, wanted};
    *m = (matching){.arena = a};
    CK_TRY(ck_match_side_init(a, stored, &m->stored));
    CK_TRY(ck_match_side_init(a, wanted, &m->wanted));
    m->stored_of = ck_arena_array(a, wanted->op_count + 1u, sizeof *m->stored_of);
    m->entries = ck_arena_array(a, (size_t)stored->op_count + wanted->op_count + 1u, sizeof *m->entries);
    for (int i = 0; i < 2; i++) m->undecided[i] = ck_arena_array(a, graphs[i]->op_count + 1u, sizeof(const char *));
    return m->stored_of && m->entries && m->undecided[0] && m->undecided[1] ? CK_OK : CK_NOMEM;
}

static void find_lost(matching *m, ck_graph_pair *p) {
    const ck_graph *stored = m->stored.graph, *wanted = m->wanted.graph;
    uint32_t lost =
        ck_match_lost(&m->stored, &m->wanted, (uint32_t)(p->stored - stored->ops), (uint32_t)(p->wanted - wanted->ops));
    if (lost == UINT32_MAX) return;
    p->lost = &stored->ops[lost];
    p->lost_to = &wanted->ops[m->stored.mate[lost] - 1];
}

static ck_status fill(matching *m, ck_graph_matched *out) {
    const ck_graph *stored = m->stored.graph, *wanted = m->wanted.graph;
    ck_graph_pair *pairs = ck_arena_array(m->arena, (size_t)stored->op_count + wanted->op_count + 1u, sizeof *pairs);
    uint32_t n = 0;
    if (!pairs) return CK_NOMEM;
    for (uint32_t i = 0; i < wanted->op_count; i++) {
        const ck_graph_op *w = &wanted->ops[i], *s = m->stored_of[i] ? &stored->ops[m->stored_of[i] - 1] : NULL;
        bool same = s && s->semantic_fingerprint == w->semantic_fingerprint;
        ck_graph_pair *p = &pairs[n++];
        *p = (ck_graph_pair){.stored = s, .wanted = w, .same_meaning = same};
        if (!s) p->undecided = m->undecided[1][i];
        p->more_branches = s && !same && more_branches(s, w);
        if (s && m->wanted.places.keeps[i]) find_lost(m, p);
    }
    for (uint32_t i = 0; i < stored->op_count; i++)
        if (!m->stored.mate[i])
            pairs[n++] = (ck_graph_pair){.stored = &stored->ops[i], .undecided = m->undecided[0][i]};
    *out = (ck_graph_matched){pairs, n};
    return CK_OK;
}

ck_status ck_graph_match(ck_arena *a, const ck_graph *stored, const ck_graph *wanted, const ck_graph_pair *sure,
                         uint32_t sure_count, ck_graph_matched *out) {
    matching m;
    CK_TRY(init(&m, a, stored, wanted));
    pair_tables(&m, sure, sure_count);
    pair_unique(&m, CK_MATCH_MEANT);
    ck_match_find_sinks(&m.stored);
    ck_match_find_sinks(&m.wanted);
    while (pair_same_meaning(&m)) {
    }
    CK_TRY(freeze_undecided(&m));
    while (pair_other_meaning(&m)) {
    }
    return fill(&m, out);
}
