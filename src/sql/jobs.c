/* Which outputs of a script run together, and each group as a job. */
#include "sql/bind/bind_int.h"
#include "sql/lower/lower.h"
#include "sql/optimise/optimise.h"
#include "sql/script_int.h"

/* ---- one job ---- */

/* Several INSERTs into one table are one sink behind a UNION ALL. */
static ck_status unite(ck_script *s, const ck_script_output *from, uint32_t count, ck_output *out,
                       uint32_t *out_count) {
    ck_binder *b = &s->b;
    ck_plan_node **arms = CK_BIND_ARRAY(b, count, ck_plan_node *);
    bool *done = CK_BIND_ARRAY(b, count, bool);
    if (!arms || !done) return CK_NOMEM;
    *out_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = 0;
        if (done[i]) continue;
        ck_output *o = &out[(*out_count)++];
        *o = from[i].output;
        for (uint32_t k = i; k < count; k++) {
            if (k != i && (!o->table || from[k].output.table != o->table)) continue;
            done[k] = true;
            arms[n++] = from[k].output.node;
        }
        if (n > 1) CK_TRY(ck_plan_union(&b->plan, arms, n, &o->node));
        CK_TRY(ck_script_sink_keys(s, o));
    }
    return CK_OK;
}

/* Ranks of rows that change all the time, without an end: every new row would move all behind it. */
static ck_status ranks_end(ck_script *s, const ck_plan_node *n, bool *seen) {
    if (seen[n->id]) return CK_OK;
    seen[n->id] = true;
    for (uint32_t i = 0; i < n->input_count; i++) CK_TRY(ranks_end(s, n->inputs[i], seen));
    if (n->kind != CK_PLAN_TOP_N || n->top.limit != UINT64_MAX) return CK_OK;
    bool once = n->final || n->top.timed || (n->top.windowed && n->mode == CK_MODE_APPEND);
    if (once) return CK_OK;
    ck_fail(s->b.err, CK_REFUSED,
            "a rank without an upper bound over input that does not end would change with every "
            "row; bound it outside: WHERE rank <= n");
    return ck_source_place(n->top.source, n->top.at, CK_REFUSED, s->b.err);
}

/* ---- what one table has for itself ---- */

typedef struct claim {
    const char *what;
    const ck_catalog_entry *table;
    struct claim *next;
} claim;

static ck_status claim_for(ck_script *s, const ck_catalog_entry *table, bool as_sink, ck_pos at, claim **claims) {
    const ck_connector_desc *c = table->table.connector;
    const char *what = NULL;
    if (c && c->exclusive && c->exclusive(&table->table.decl, as_sink, s->b.plan.arena, &what) != CK_OK)
        return ck_bind_nomem(&s->b);
    if (!what) return CK_OK;
    for (const claim *k = *claims; k; k = k->next) {
        if (strcmp(k->what, what) != 0) continue;
        if (k->table == table) return CK_OK;
        return ck_bind_fail(&s->b, at, "tables \"%s\" and \"%s\" both %s %s; one job gives it to one table",
                            k->table->name, table->name, as_sink ? "write" : "read", what);
    }
    claim *mine = CK_BIND_ARRAY(&s->b, 1, claim);
    if (!mine) return CK_NOMEM;
    *mine = (claim){what, table, *claims};
    *claims = mine;
    return CK_OK;
}

static ck_status claims_of_scans(ck_script *s, const ck_plan_node *n, ck_pos at, bool *seen, claim **claims) {
    if (seen[n->id]) return CK_OK;
    seen[n->id] = true;
    if (n->kind == CK_PLAN_SCAN) CK_TRY(claim_for(s, n->scan.table, false, at, claims));
    for (uint32_t i = 0; i < n->input_count; i++) CK_TRY(claims_of_scans(s, n->inputs[i], at, seen, claims));
    return CK_OK;
}

/* Tables that take late rows are written too. */
static ck_status claims_of_late(ck_script *s, const ck_plan_node *n, const ck_output *outputs, uint32_t count,
                                ck_pos at, bool *seen, claim **claims) {
    if (seen[n->id]) return CK_OK;
    seen[n->id] = true;
    for (uint32_t i = 0; i < n->input_count; i++)
        CK_TRY(claims_of_late(s, n->inputs[i], outputs, count, at, seen, claims));
    for (uint32_t k = 0; k < CK_ARRAY_COUNT(n->late); k++) {
        const ck_catalog_entry *late = n->late[k].table;
        if (!late) continue;
        for (uint32_t i = 0; i < count; i++)
            if (outputs[i].table == late)
                return ck_bind_refuse(
                    &s->b, outputs[i].pos,
                    "\"%s\" takes late rows in this job, which an INSERT cannot write too; insert into "
                    "another table",
                    late->name);
        CK_TRY(claim_for(s, late, true, at, claims));
    }
    return CK_OK;
}

/* Two sinks over one directory would write each other's files; two sources of standard input would share its rows. */
static ck_status check_claims(ck_script *s, const ck_output *outputs, uint32_t count) {
    claim *read = NULL, *written = NULL;
    bool *seen = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, bool);
    bool *late = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, bool);
    if (!seen || !late) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) {
        CK_TRY(claims_of_scans(s, outputs[i].node, outputs[i].pos, seen, &read));
        if (outputs[i].table) CK_TRY(claim_for(s, outputs[i].table, true, outputs[i].pos, &written));
    }
    for (uint32_t i = 0; i < count; i++)
        CK_TRY(claims_of_late(s, outputs[i].node, outputs, count, outputs[i].pos, late, &written));
    return CK_OK;
}

ck_status ck_script_job(ck_script *s, const ck_script_output *from, uint32_t from_count, ck_sql_step *step) {
    ck_binder *b = &s->b;
    ck_output *outputs = CK_BIND_ARRAY(b, from_count, ck_output);
    uint32_t count;
    if (!outputs) return CK_NOMEM;
    CK_TRY(unite(s, from, from_count, outputs, &count));
    for (uint32_t i = 0; i < count; i++) {
        CK_TRY(ck_plan_mean(&b->plan, outputs[i].node));
        CK_TRY(ck_plan_branches(&b->plan, outputs[i].node, &outputs[i].branches, &outputs[i].branch_count));
    }
    CK_TRY(ck_optimise_rows(&b->plan, outputs, count));
    CK_TRY(ck_script_late_rows(s, outputs, count));
    CK_TRY(ck_optimise_columns(&b->plan, outputs, count));
    CK_TRY(check_claims(s, outputs, count));
    bool *ranked = CK_BIND_ARRAY(b, b->plan.node_count, bool);
    if (!ranked) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) CK_TRY(ranks_end(s, outputs[i].node, ranked));
    CK_TRY(ck_script_warn_of_growth(s, outputs, count));
    ck_lowering l = {b->catalog, b->options, &b->plan, b->warnings, b->warning_count};
    return ck_lower(&l, outputs, count, step);
}

/* ---- which run together ---- */

static bool reads(const ck_plan_node *n, const ck_catalog_entry *table, bool *seen) {
    if (seen[n->id]) return false;
    seen[n->id] = true;
    if (n->kind == CK_PLAN_SCAN && n->scan.table->lineage == table->lineage) return true;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (reads(n->inputs[i], table, seen)) return true;
    return false;
}

static ck_status read_somewhere(ck_script *s, const ck_catalog_entry *written, bool *out) {
    bool *seen = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, bool);
    if (!seen) return CK_NOMEM;
    *out = false;
    for (uint32_t r = 0; r < s->output_count; r++) *out = reads(s->outputs[r].output.node, written, seen) || *out;
    return CK_OK;
}

/* A table that takes late rows and is read. */
static ck_status find_late_conflict(ck_script *s, const ck_plan_node *n, bool *seen, const ck_catalog_entry **table) {
    if (seen[n->id] || *table) return CK_OK;
    seen[n->id] = true;
    for (uint32_t i = 0; i < n->input_count; i++) {
        const ck_catalog_entry *late = ck_script_late_table(s, n, i);
        bool read = false;
        CK_TRY(find_late_conflict(s, n->inputs[i], seen, table));
        if (late) CK_TRY(read_somewhere(s, late, &read));
        if (read) *table = late;
    }
    return CK_OK;
}

/* The first output that reads what the script writes; NULL: none does. */
static ck_status find_conflict(ck_script *s, const ck_catalog_entry **table) {
    bool *seen = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, bool);
    *table = NULL;
    if (!seen) return CK_NOMEM;
    for (uint32_t w = 0; w < s->output_count && !*table; w++) {
        const ck_catalog_entry *written = s->outputs[w].output.table;
        bool read = false;
        if (written) CK_TRY(read_somewhere(s, written, &read));
        if (read) *table = written;
        if (!read) CK_TRY(find_late_conflict(s, s->outputs[w].output.node, seen, table));
    }
    return CK_OK;
}

static ck_status must_be_bounded(ck_script *s, const char *why) {
    for (uint32_t i = 0; i < s->output_count; i++) {
        const ck_output *o = &s->outputs[i].output;
        if (s->b.options->checkpoints)
            return ck_bind_refuse(&s->b, o->pos, "%s, which takes a run without a checkpoint directory", why);
        if (!o->node->bounded)
            return ck_bind_refuse(&s->b, o->pos, "%s, and this one never ends; run it from a script of its own", why);
    }
    return CK_OK;
}

/* A statement that reads what it writes. What goes into a table in memory appears when the statement has ended, so
 * there it means what was in it before. */
static ck_status refuse_own_input(ck_script *s) {
    for (uint32_t w = 0; w < s->output_count; w++) {
        const ck_catalog_entry *written = s->outputs[w].output.table;
        if (!written || written->table.instance) continue;
        bool *seen = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, bool);
        if (!seen) return CK_NOMEM;
        for (uint32_t r = 0; r < s->output_count; r++)
            if (s->outputs[r].statement == s->outputs[w].statement && reads(s->outputs[r].output.node, written, seen))
                return ck_bind_refuse(&s->b, s->outputs[w].output.pos,
                                      "this reads \"%s\" and writes it; write into another table", written->name);
    }
    return CK_OK;
}

static ck_status in_sequence(ck_script *s, bool *out) {
    const ck_catalog_entry *table;
    uint32_t results = 0, statements = 1;
    for (uint32_t i = 0; i < s->output_count; i++) {
        if (!s->outputs[i].output.table) results++;
        if (i && s->outputs[i].statement != s->outputs[i - 1].statement) statements++;
    }
    *out = false;
    CK_TRY(refuse_own_input(s));
    CK_TRY(find_conflict(s, &table));
    if ((!table && results < 2) || statements == 1) return CK_OK;
    *out = true;
    const char *why =
        table ? ck_arena_printf(s->b.plan.arena,
                                "the script reads \"%s\" and writes it, so its statements run one after the "
                                "other",
                                table->name)
              : "the script has several SELECTs, so its statements run one after the other";
    return why ? must_be_bounded(s, why) : ck_bind_nomem(&s->b);
}

/* Of the outputs, those that read the table that is replayed. */
static ck_status only_replayed(ck_script *s) {
    const char *name = s->b.options->replay_table;
    if (!name) return CK_OK;
    const ck_catalog_entry *table = ck_catalog_find(s->b.catalog, ck_view_of(name), false);
    if (!table || table->kind != CK_ENTRY_TABLE)
        return ck_fail(s->b.err, CK_INVALID, "the script makes no table \"%s\"", name);
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->output_count; i++) {
        bool *seen = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, bool);
        if (!seen) return CK_NOMEM;
        if (reads(s->outputs[i].output.node, table, seen)) s->outputs[n++] = s->outputs[i];
    }
    s->output_count = n;
    return n ? CK_OK : ck_fail(s->b.err, CK_INVALID, "no statement of the script reads the table \"%s\"", name);
}

ck_status ck_script_jobs(ck_script *s) {
    bool sequence;
    CK_TRY(only_replayed(s));
    if (s->output_count == 0) return CK_OK;
    CK_TRY(in_sequence(s, &sequence));
    for (uint32_t from = 0, to; from < s->output_count; from = to) {
        ck_sql_step step = {0};
        to = sequence ? from + 1 : s->output_count;
        while (to < s->output_count && s->outputs[to].statement == s->outputs[from].statement) to++;
        CK_TRY(ck_script_job(s, s->outputs + from, to - from, &step));
        CK_TRY(ck_script_add_step(s, &step));
    }
    return CK_OK;
}
