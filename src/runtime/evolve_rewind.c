/* What the sources of a checkpoint's job had read, as splits that read it again and end there: looked up when the
 * script is compared with the checkpoint, so that who only looks finds what the start would. See evolve.h. */
#include "checkpoint/restore.h"
#include "runtime/evolve.h"
#include "state/operator_rows.h"

typedef struct rewinding {
    const ck_evolve_config *cfg;
    ck_arena *arena;
    ck_error *err;
    ck_rewound *sources;        /* by operator of the wanted graph */
    const ck_graph_op **stored; /* likewise, of sources: whose places they go on from; NULL: nobody's */
    ck_restore_as *ops;         /* those */
    uint32_t op_count;
    const char *why_not;
} rewinding;

static ck_status nomem(rewinding *r) { return ck_nomem(r->err, r->arena->mem, 4096); }

static ck_status find_stored(rewinding *r, const bool *part, const ck_evolution *e) {
    const ck_graph *g = r->cfg->wanted;
    r->sources = ck_arena_array(r->arena, g->op_count + 1u, sizeof *r->sources);
    r->stored = ck_arena_array(r->arena, g->op_count + 1u, sizeof *r->stored);
    r->ops = ck_arena_array(r->arena, g->op_count + 1u, sizeof *r->ops);
    if (!r->sources || !r->stored || !r->ops) return nomem(r);
    for (uint32_t i = 0; i < g->op_count; i++) {
        r->sources[i].splits.arena = r->arena;
        if (!part[i] || g->ops[i].input_count) continue;
        r->stored[i] = ck_evolve_stored(e, &g->ops[i]);
        if (!r->stored[i]) continue; /* a table that the checkpoint's job did not read */
        r->ops[r->op_count++] = (ck_restore_as){ck_op_id(r->stored[i]->uid), r->stored[i]->uid};
    }
    return CK_OK;
}

static bool had_ended(const ck_manifest *m, const ck_graph_op *stored) {
    for (uint32_t v = 0; v < m->vertex_count; v++)
        for (uint32_t i = 0; i < m->vertices[v].op_count; i++)
            if (strcmp(m->vertices[v].ops[i], stored->uid) == 0)
                return m->vertices[v].finished_count == m->vertices[v].parallelism;
    return false;
}

static ck_status rewind_one(rewinding *r, ck_state_store *store, uint32_t number) {
    const ck_graph_op *op = &r->cfg->wanted->ops[number], *stored = r->stored[number];
    ck_rewound *to = &r->sources[number];
    ck_split_list had = {.arena = r->arena};
    const ck_op_desc *d;
    ck_state *state;
    ck_error why = CK_ERROR_INIT;
    bool known;
    CK_TRY(ck_registry_op(r->cfg->registry, op->type, &d, r->err));
    CK_TRY(ck_state_of(store, stored->uid, stored->type, &state, r->err));
    CK_TRY(ck_splits_load(state, &had, &known, r->err));
    ck_op_spec *spec = ck_graph_op_spec(r->arena, r->cfg->wanted, op);
    if (!spec) return nomem(r);
    spec->proc = r->cfg->proc;
    spec->settings = r->cfg->settings;
    to->ended = had_ended(r->cfg->manifest, stored);
    for (uint32_t i = 0; i < had.count && !r->why_not; i++) {
        ck_status s = d->rewind(spec, &had.splits[i], &to->splits, &why);
        if (s == CK_OK) continue;
        (void)ck_error_prefix(&why, "%s cannot be read again: ", op->uid);
        if (s != CK_REFUSED) {
            if (r->err) *r->err = why;
            return s;
        }
        if (!(r->why_not = ck_arena_strdup(r->arena, why.msg))) return nomem(r);
    }
    return CK_OK;
}

/* Of the stored sources all rows of operators, which are their splits. */
static ck_status load(rewinding *r, ck_state_store *store, ck_key_group_range range) {
    const ck_restore_target t = {
        .store = store, .ops = r->ops, .op_count = r->op_count, .parallelism = 1, .range = range};
    ck_restore *restore;
    CK_TRY(ck_restore_new(r->cfg->proc, r->arena->mem, r->cfg->dir, r->cfg->manifest, &restore, r->err));
    ck_status s = ck_restore_add(restore, &t, r->err);
    if (s == CK_OK) s = ck_restore_run(restore, r->err);
    ck_restore_free(restore);
    return s;
}

ck_status ck_rewind_sources(ck_arena *a, const ck_evolve_config *cfg, const ck_evolution *e, const bool *part,
                            const ck_rewound **out, const char **why_not, ck_error *err) {
    rewinding r = {.cfg = cfg, .arena = a, .err = err};
    const ck_key_group_range all = {0, cfg->manifest->key_groups - 1};
    const ck_state_config state = {.proc = cfg->proc,
                                   .mem = ck_mem_as(a->mem, CK_MEM_STATE),
                                   .key_groups = cfg->manifest->key_groups,
                                   .range = all};
    ck_state_store *store;
    CK_TRY(find_stored(&r, part, e));
    *out = r.sources;
    *why_not = NULL;
    if (r.op_count == 0) return CK_OK;
    CK_TRY(ck_state_store_new(&state, &store, err));
    ck_status s = load(&r, store, all);
    for (uint32_t i = 0; i < cfg->wanted->op_count && s == CK_OK && !r.why_not; i++)
        if (r.stored[i]) s = rewind_one(&r, store, i);
    ck_state_store_free(store);
    *why_not = r.why_not;
    return s;
}
