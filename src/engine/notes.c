/* What a step left out or put aside, in a sentence for each operator that did: for people, once the step has ended. And
 * the names people know operators by, for errors. */
#include <stdio.h>
#include <yyjson.h>

#include "base/json.h"
#include "engine/engine_int.h"
#include "sql/catalog/catalog.h"

enum { ORIGIN_STEPS_MAX = 1000 };

/* The table of a source, or of a lookup, and where its dead letters go; "" where there is none. */
static void tables_of(ck_arena *a, const ck_graph_op *op, const char **table, const char **letters) {
    yyjson_doc *doc;
    *table = *letters = "";
    if (ck_json_read(a, ck_view_of(op->params), &doc, NULL) != CK_OK) return;
    yyjson_val *root = yyjson_doc_get_root(doc), *looked_up = yyjson_obj_get(root, "source");
    if (yyjson_is_obj(looked_up)) root = looked_up;
    yyjson_val *options = yyjson_obj_get(root, "options");
    const char *t = yyjson_get_str(yyjson_obj_get(root, "table")),
               *l = yyjson_get_str(yyjson_obj_get(options, "dead_letter_table"));
    if (t) *table = t;
    if (l) *letters = l;
}

static ck_status add(clink_job *j, const char *text) {
    if (!text) return CK_NOMEM;
    uint32_t n = j->note_count;
    if ((n & (n - 1)) == 0) { /* room doubles at each power of two */
        const char **more = ck_arena_array(&j->arena, n ? n * 2u : 1u, sizeof *more);
        if (!more) return CK_NOMEM;
        if (n) memcpy(more, j->notes, n * sizeof *more);
        j->notes = more;
    }
    j->notes[j->note_count++] = text;
    return CK_OK;
}

static ck_status note_bad_rows(clink_job *j, const ck_graph_op *op, uint64_t bad, uint64_t letters) {
    const char *table, *to;
    tables_of(&j->arena, op, &table, &to);
    uint64_t skipped = bad - letters;
    if (letters)
        CK_TRY(add(j, ck_arena_printf(&j->arena, "%llu record%s of %s did not fit and went to %s",
                                      (unsigned long long)letters, letters == 1 ? "" : "s", table, to)));
    if (!skipped) return CK_OK;
    return add(j, ck_arena_printf(&j->arena, "%llu record%s of %s did not fit and %s left out",
                                  (unsigned long long)skipped, skipped == 1 ? "" : "s", table,
                                  skipped == 1 ? "was" : "were"));
}

/* The first that takes what leaves an operator: by its side output, or by any. NULL: nobody. */
static const ck_graph_op *taker_of(const ck_graph *g, const ck_graph_op *op, bool side) {
    for (uint32_t i = 0; i < g->op_count; i++)
        for (uint32_t k = 0; k < g->ops[i].input_count; k++)
            if (strcmp(g->ops[i].inputs[k].uid, op->uid) == 0 && (!side || g->ops[i].inputs[k].port > 0))
                return &g->ops[i];
    return NULL;
}

/* The table that rows of a side output end in; NULL: they are dropped. */
static const char *table_beside(const ck_graph *g, const ck_graph_op *op) {
    const ck_graph_op *to = taker_of(g, op, true);
    while (to && strncmp(to->type, "sink.", 5) != 0) to = taker_of(g, to, false);
    return to ? to->label : NULL;
}

static bool is_any_of(const char *type, const char *const *types, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(type, types[i]) == 0) return true;
    return false;
}

/* Whether what leaves op are rows of *table, "" before the first is known, as far as late_table brings them back:
 * behind a join or an aggregate they are rows of no table. Nobody counts paths without end: after *steps it is not
 * known. */
static bool are_rows_of(ck_arena *a, const ck_graph *g, const ck_graph_op *op, const char **table, uint32_t *steps) {
    static const char *const passing[] = {"project", "filter", "union", "unnest", "window_assign"};
    const char *found, *letters;
    if (strncmp(op->type, "source.", 7) == 0) {
        tables_of(a, op, &found, &letters);
        bool same = !**table || strcmp(found, *table) == 0;
        *table = found;
        return same && *found;
    }
    if (!is_any_of(op->type, passing, CK_ARRAY_COUNT(passing)) || (*steps)-- == 0) return false;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_graph_op *from = ck_graph_find(g, op->inputs[i].uid);
        if (!from || !are_rows_of(a, g, from, table, steps)) return false;
    }
    return op->input_count > 0;
}

/* Of the inputs whose rows op judges: of a join with versions the left one. */
static bool could_keep_late_rows(ck_arena *a, const ck_graph *g, const ck_graph_op *op) {
    uint32_t count = strcmp(op->type, "temporal_join") == 0 && op->input_count ? 1 : op->input_count;
    for (uint32_t i = 0; i < count; i++) {
        const char *table = "";
        uint32_t steps = ORIGIN_STEPS_MAX;
        const ck_graph_op *from = ck_graph_find(g, op->inputs[i].uid);
        if (!from || !are_rows_of(a, g, from, &table, &steps)) return false;
    }
    return count > 0;
}

/* "up to 2 days 3 h", in the two largest units. */
static void lateness_text(uint64_t ms, char *out, size_t size) {
    static const struct {
        uint64_t ms;
        const char *one, *many;
    } units[] = {
        {86400000, "day", "days"}, {3600000, "h", "h"}, {60000, "min", "min"}, {1000, "s", "s"}, {1, "ms", "ms"}};
    size_t i = 0;
    while (units[i].ms > 1 && ms < units[i].ms) i++;
    uint64_t n = ms / units[i].ms, rest = units[i].ms > 1 ? ms % units[i].ms / units[i + 1].ms : 0;
    int at = snprintf(out, size, "%llu %s", (unsigned long long)n, n == 1 ? units[i].one : units[i].many);
    if (rest) (void)snprintf(out + at, size - (size_t)at, " %llu %s", (unsigned long long)rest, units[i + 1].many);
}

static ck_status note_late_rows(clink_job *j, ck_job *done, const ck_graph *g, const ck_graph_op *op, uint64_t late) {
    const char *to = table_beside(g, op), *label = op->label ? op->label : op->type;
    const char *end = to ? "went to " : late == 1 ? "was dropped" : "were dropped";
    bool windows = strcmp(op->type, "window_agg") == 0 || strcmp(op->type, "session_agg") == 0;
    const char *for_what = !windows ? "" : late == 1 ? " for its window" : " for their windows";
    char by[64];
    uint64_t all = ck_job_rows_into(done, op->uid);
    lateness_text(ck_job_greatest_of(done, op->uid, "late_by_ms"), by, sizeof by);
    const char *keeps = !to && could_keep_late_rows(&j->arena, g, op) ? ", late_table keeps them" : "";
    return add(j, ck_arena_printf(
                      &j->arena, "%llu of %llu row%s came too late%s, up to %s behind the watermark, and %s%s (%s)%s%s",
                      (unsigned long long)late, (unsigned long long)all, all == 1 ? "" : "s", for_what, by, end,
                      to ? to : "", label, to ? "" : "; a longer delay of the watermark waits for them", keeps));
}

/* The wanted columns of a source that no record had a key for, as "a", "b"; their number. */
static size_t name_unmet(yyjson_val *params, uint64_t met, char *out, size_t room) {
    enum { NAMED_MAX = 8 };
    yyjson_val *schema = yyjson_obj_get(params, "table_schema"), *column;
    size_t i, n, count = 0, used = 0;
    yyjson_arr_foreach(yyjson_obj_get(params, "columns"), i, n, column) {
        uint64_t at = yyjson_get_uint(column);
        const char *name = yyjson_get_str(yyjson_obj_get(yyjson_arr_get(schema, at), "name"));
        if (!name || at >= 64 || (met >> at & 1) || ++count > NAMED_MAX) continue;
        int wrote = snprintf(out + used, room - used, "%s\"%.60s\"", count > 1 ? ", " : "", name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (count > NAMED_MAX) (void)snprintf(out + used, room - used, " and %zu more", count - NAMED_MAX);
    return count;
}

/* A misspelt column of a table of JSON is NULL in every row, which no error says. */
static ck_status note_unmet_keys(clink_job *j, ck_job *done, const ck_graph_op *op) {
    ck_keys_note keys;
    yyjson_doc *doc;
    char names[8 * 72], there[96] = "";
    if (!ck_job_keys_of(done, op->uid, &keys)) return CK_OK;
    if (ck_json_read(&j->arena, ck_view_of(op->params), &doc, NULL) != CK_OK) return CK_OK;
    yyjson_val *params = yyjson_doc_get_root(doc);
    const char *table = yyjson_get_str(yyjson_obj_get(params, "table"));
    size_t n = name_unmet(params, keys.met, names, sizeof names);
    if (!n || !table) return CK_OK;
    if (keys.spelled) (void)snprintf(there, sizeof there, "; case counts, and there is \"%s\"", keys.spelled);
    return add(j, ck_arena_printf(&j->arena, "no record of %s that was read has a key %s: NULL in every row%s", table,
                                  names, there));
}

static ck_status note_op(clink_job *j, ck_job *done, const ck_graph *g, const ck_graph_op *op) {
    uint64_t bad = ck_job_count_of(done, op->uid, "bad_rows"), letters = ck_job_count_of(done, op->uid, "dead_letters");
    uint64_t late = ck_job_count_of(done, op->uid, "late_rows"), odd = ck_job_count_of(done, op->uid, "bad_time_rows");
    const char *label = op->label ? op->label : op->type;
    CK_TRY(note_unmet_keys(j, done, op));
    if (bad) CK_TRY(note_bad_rows(j, op, bad, letters));
    if (late) CK_TRY(note_late_rows(j, done, g, op, late));
    if (odd)
        CK_TRY(
            add(j, ck_arena_printf(&j->arena, "%llu row%s without a time between the years 1 and 9999 %s left out (%s)",
                                   (unsigned long long)odd, odd == 1 ? "" : "s", odd == 1 ? "was" : "were", label)));
    return CK_OK;
}

ck_status engine_note_step(clink_job *j, ck_job *done, const ck_graph *graph, ck_error *err) {
    for (uint32_t i = 0; i < graph->op_count; i++)
        if (note_op(j, done, graph, &graph->ops[i]) != CK_OK) return ck_nomem(err, j->arena.mem, 0);
    return CK_OK;
}

const char *clink_job_note(const clink_job *j, size_t i) {
    const char *note = NULL;
    if (!j) return NULL;
    clink_job *m = (clink_job *)(uintptr_t)j;
    pthread_mutex_lock(&m->lock);
    if (m->ended && i < m->note_count) note = m->notes[i];
    pthread_mutex_unlock(&m->lock);
    return note;
}

/* Memory that state has taken, and that somebody else wants. */
static void advise_backend(const clink_job *j, ck_error *err) {
    static const char advice[] = "; --state-backend file:DIR lets state outgrow it";
    if (err->status != CK_NOMEM || j->run.spill_dir || !strstr(err->msg, ") for state") || strstr(err->msg, advice))
        return;
    size_t n = strlen(err->msg);
    (void)snprintf(err->msg + n, sizeof err->msg - n, "%s", advice);
}

/* What a table's files or server refuse is placed where its definition says it: at the option that is spoken of, else
 * at the path, else at the connector. */
void engine_place_table(clink_job *j, ck_status s, ck_error *err) {
    const char *table, *letters;
    if (s == CK_NOMEM || s == CK_CANCELLED || !err->place.object[0] || err->place.line > 0) return;
    const ck_graph *g = j->plan->steps[j->step].graph;
    const ck_graph_op *op = g ? ck_graph_find(g, err->place.object) : NULL;
    if (!op || (strncmp(op->type, "source.", 7) != 0 && strncmp(op->type, "sink.", 5) != 0)) return;
    tables_of(&j->arena, op, &table, &letters);
    pthread_mutex_lock(&j->engine->lock);
    const ck_catalog_entry *e = ck_catalog_find(j->engine->catalog, ck_view_of(table), true);
    if (e && e->kind == CK_ENTRY_TABLE) {
        const char *option = ck_table_option_said(&e->table.decl.options, err->msg);
        if (!option && ck_table_decl_option(&e->table.decl, "path")) option = "path";
        (void)ck_table_place(&e->table, option, s, err);
    }
    pthread_mutex_unlock(&j->engine->lock);
}

/* "filter x > 1" instead of "filter()<-orders": as EXPLAIN shows it. */
void engine_name_operator(const clink_job *j, ck_error *err) {
    advise_backend(j, err);
    if (!err->place.object[0] || err->place.subtask < 0 || j->step >= j->plan->step_count) return;
    const ck_graph *g = j->plan->steps[j->step].graph;
    const ck_graph_op *op = g ? ck_graph_find(g, err->place.object) : NULL;
    size_t n = strlen(err->msg), room = sizeof err->msg - n;
    if (!op) { /* of a file, which the sentence may name already */
        if (err->place.byte_offset >= 0 && !strstr(err->msg, err->place.object))
            (void)snprintf(err->msg + n, room, "; the row is at %s %lld of %s",
                           err->place.of_records ? "offset" : "byte", (long long)err->place.byte_offset,
                           err->place.object);
        err->place.subtask = -1;
    }
    if (!op || !op->label) return;
    if (j->run.parallelism > 1)
        (void)snprintf(err->msg + n, room, " (in %s %s, subtask %d)", op->type, op->label, err->place.subtask);
    else
        (void)snprintf(err->msg + n, room, " (in %s %s)", op->type, op->label);
    err->place.subtask = -1; /* said */
}
