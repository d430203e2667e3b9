/* See evolve.h. */
#include "runtime/evolve.h"

#include <yyjson.h>

#include "base/json.h"
#include "checkpoint/restore.h"

typedef struct evolving {
    const ck_evolve_config *cfg;
    ck_arena *arena;
    ck_error *err;
    const ck_graph *stored;
    bool changed;          /* the graphs differ */
    ck_stored_state state; /* of all stored operators */
    ck_evolve_op *ops;
    uint32_t count;
    const ck_rewound *rewound;
    uint64_t **was_columns, **now_columns; /* what those of both graphs are made of */
    ck_seen_columns was_seen, now_seen;    /* by the operator that is compared */
} evolving;

const char *ck_evolve_name(ck_evolve_verdict v) {
    static const char *const names[] = {"reuse", "migrate", "new", "backfill", "rebuild", "drop"};
    return names[v];
}

static ck_status nomem(evolving *e) { return ck_nomem(e->err, e->arena->mem, 0); }

/* ---- what an operator keeps ---- */

bool ck_evolve_is_source(const ck_evolve_config *cfg, const ck_graph_op *op) {
    const ck_op_desc *d;
    return ck_registry_op(cfg->registry, op->type, &d, NULL) == CK_OK ? d->source != NULL : op->input_count == 0;
}
static bool is_source(const evolving *e, const ck_graph_op *op) { return ck_evolve_is_source(e->cfg, op); }
static bool is_sink(const ck_graph_op *op) { return strncmp(op->type, "sink.", 5) == 0; }

static bool keeps(const evolving *e, const ck_graph_op *op) {
    return op->state_fingerprint != 0 || is_source(e, op) || is_sink(op);
}

static ck_status described_slots(evolving *e, const ck_graph *g, const ck_graph_op *op, const ck_slot_schema **out,
                                 uint32_t *count) {
    return ck_described_slots(e->cfg, e->arena, g, op, out, count, e->err);
}

static const ck_slot_schema *find_slot(const ck_slot_schema *slots, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(slots[i].slot, name) == 0) return &slots[i];
    return NULL;
}

/* ---- comparing ---- */

static bool add_why(evolving *e, ck_evolve_op *to, const char *why) {
    to->why = to->why[0] ? ck_arena_printf(e->arena, "%s; %s", to->why, why) : why;
    return to->why != NULL;
}

/* A slot that is not in the checkpoint as it is described there: one that never held anything is in no snapshot. */
static ck_status plan_slot(evolving *e, const ck_slot_schema *described, const ck_expected_slot *want,
                           ck_slot_plan *plan, bool *there) {
    const ck_state_migrations *m = &e->cfg->registry->migrations;
    if (ck_slot_plan_expected(e->arena, &e->state, m, want, plan, there) != CK_OK) return nomem(e);
    if (*there || !described) return CK_OK;
    *there = true;
    ck_status s = ck_slot_plan_of(e->arena, m, described, described->version, want->schema, plan);
    return s == CK_OK ? CK_OK : nomem(e);
}

static bool has_order_field(const ck_slot_schema *s, const ck_order_field *f) {
    for (uint32_t i = 0; i < s->order_count; i++)
        if (strcmp(s->order[i].field.name, f->field.name) == 0 && ck_type_eq(s->order[i].field.type, f->field.type))
            return true;
    return false;
}

/* Rows that are kept in the order of all their columns (top-N): a column more is a place more in that order. */
static bool lacks_order(const ck_slot_schema *was, const ck_slot_schema *now) {
    bool same = was && was->mode == now->mode && was->partition_count == now->partition_count &&
                was->order_count < now->order_count && strcmp(was->state_type, now->state_type) == 0;
    for (uint32_t i = 0; same && i < now->partition_count; i++)
        same = ck_type_eq(was->partition[i].type, now->partition[i].type);
    for (uint32_t i = 0; same && i < was->order_count; i++) same = has_order_field(now, &was->order[i]);
    return same;
}

/* Whether all that keeps the state from going on is what the checkpoint has not. */
static ck_status only_lacks(evolving *e, const ck_slot_schema *described, const ck_expected_slot *want, bool *out) {
    ck_slot_schema empty = *want->schema;
    ck_slot_origin *origins = ck_arena_array(e->arena, empty.value_count + 1u, sizeof *origins);
    ck_field *values = ck_arena_array(e->arena, empty.value_count + 1u, sizeof *values);
    ck_slot_plan plan;
    bool there;
    if (!origins || !values) return nomem(e);
    for (uint32_t i = 0; i < empty.value_count; i++) {
        if (empty.origins) origins[i] = empty.origins[i];
        origins[i].from_now = true;
        values[i] = empty.values[i];
        values[i].nullable = true; /* of any field: what is asked is what else is in the way */
    }
    empty.origins = origins;
    empty.values = values;
    const ck_expected_slot as = {want->op_id, want->uid, &empty};
    CK_TRY(plan_slot(e, described, &as, &plan, &there));
    const ck_stored_slot *stored = ck_stored_slot_of(&e->state, &e->cfg->registry->migrations, want);
    *out = !there || plan.verdict != CK_SLOT_REFUSED || lacks_order(stored ? stored->schema : described, want->schema);
    return CK_OK;
}

/* What rows of a version are, by what the stored graph says of them. */
static const char *kept_as(const ck_slot_schema *described, uint32_t version) {
    if (!described) return NULL;
    return version < described->version ? described->kept_before : described->kept;
}

static bool in_list(const char *list, const char *item, size_t n) {
    for (const char *z = list; z; z = strstr(z, ", ")) {
        if (z != list) z += 2;
        if (strncmp(z, item, n) == 0 && (z[n] == 0 || z[n] == ',')) return true;
    }
    return false;
}

/* Whether all that this job wants kept, a list with commas, is. */
static bool keeps_all(const char *kept, const char *want) {
    for (const char *z = want;; z += 2) {
        size_t n = strcspn(z, ",");
        if (!in_list(kept, z, n)) return false;
        z += n;
        if (*z == 0) return true;
    }
}

static bool reads_kept(const ck_slot_schema *want, const char *kept) {
    if (!kept || !want->kept || keeps_all(kept, want->kept)) return true;
    return want->kept_before && strcmp(kept, want->kept_before) == 0;
}

/* A column of the key that stands in another place of it now: rows would be found under each other's keys. Types do not
 * tell where they are the same. NULL: none; a column that only got another name is none. */
static const char *moved_key(const ck_slot_schema *was, const ck_slot_schema *now) {
    if (was->partition_count != now->partition_count) return NULL;
    for (uint32_t i = 0; i < now->partition_count; i++) {
        const char *name = now->partition[i].name;
        if (strcmp(was->partition[i].name, name) == 0) continue;
        for (uint32_t k = 0; k < now->partition_count; k++)
            if (strcmp(was->partition[k].name, name) == 0) return name;
    }
    return NULL;
}

/* Whether a name stands for other columns, or other expressions of them, than it did; false where nobody knows. */
static bool means_other(const evolving *e, const char *slot, const char *was, const char *now) {
    uint64_t before = ck_field_meaning(&e->was_seen, slot, was), after = ck_field_meaning(&e->now_seen, slot, now);
    return before && after && before != after;
}

static bool has_value(const ck_slot_schema *s, const char *name) {
    for (uint32_t i = 0; i < s->value_count; i++)
        if (strcmp(s->values[i].name, name) == 0) return true;
    return false;
}

/* The part of a slot's name that names columns: "values:y". */
static const char *columns_text(const char *slot) {
    const char *colon = strchr(slot, ':');
    return colon ? colon + 1 : "";
}

/* The first name of a slot that means something else; NULL: none. */
static const char *other_meaning(const evolving *e, const ck_slot_schema *described, const ck_slot_schema *want) {
    const char *was = columns_text(want->origin.was ? want->origin.was : want->slot), *now = columns_text(want->slot);
    if (means_other(e, want->slot, was, now)) return now;
    for (uint32_t i = 0; i < want->value_count; i++) {
        now = want->values[i].name;
        was = want->origins && want->origins[i].was ? want->origins[i].was : now;
        if (has_value(described, was) && means_other(e, want->slot, was, now)) return now;
    }
    return NULL;
}

static ck_status compare_slot(evolving *e, ck_evolve_op *to, const ck_slot_schema *described,
                              const ck_expected_slot *want) {
    ck_slot_plan plan;
    bool there, lacks = false;
    CK_TRY(plan_slot(e, described, want, &plan, &there));
    if (!there && (want->schema->origin.fresh || want->schema->origin.from_now)) return CK_OK;
    const char *kept = there ? kept_as(described, plan.from) : NULL;
    bool readable = reads_kept(want->schema, kept);
    const char *moved = described ? moved_key(described, want->schema) : NULL;
    const char *other = described ? other_meaning(e, described, want->schema) : NULL;
    bool refused = !there || plan.verdict == CK_SLOT_REFUSED || !readable || moved || other;
    if (refused && e->cfg->added == CK_ADDED_BACKFILL) CK_TRY(only_lacks(e, described, want, &lacks));
    if (readable && !moved && !other && there && plan.verdict == CK_SLOT_SAME) return CK_OK;
    const char *why =
        !readable ? ck_arena_printf(e->arena, "it is stored %s, this job keeps it %s", kept, want->schema->kept)
        : moved   ? ck_arena_printf(e->arena, "its key has '%s' in another place", moved)
        : other   ? ck_arena_printf(e->arena, "'%s' is of another column or expression now", other)
        : there   ? plan.what
                  : ck_arena_printf(e->arena, "its state \"%s\" is not in the checkpoint", want->schema->slot);
    if (refused && is_sink(to->wanted))
        why = ck_arena_printf(e->arena, "the rows of its table are state (mode = 'upsert'): %s", why ? why : "");
    if (refused)
        to->verdict = lacks && to->verdict != CK_EVOLVE_REBUILD ? CK_EVOLVE_BACKFILL : CK_EVOLVE_REBUILD;
    else if (to->verdict == CK_EVOLVE_REUSE)
        to->verdict = CK_EVOLVE_MIGRATE;
    return add_why(e, to, why) ? CK_OK : nomem(e);
}

/* Whether a slot of the stored job is one of these, perhaps under a name it got since. */
static bool goes_on(const evolving *e, const ck_slot_schema *was, const ck_slot_schema *now, uint32_t now_count) {
    for (uint32_t i = 0; i < now_count; i++) {
        const char *name = now[i].origin.was ? now[i].origin.was : now[i].slot;
        for (uint32_t n = 0; name && n < CK_MIGRATIONS_MAX; n++) {
            if (strcmp(name, was->slot) == 0) return true;
            name = ck_state_slot_before(&e->cfg->registry->migrations, now[i].state_type, name);
        }
    }
    return false;
}

/* A state that begins now, and of which the files have rows all the same: of a job before the stored one, which did
 * without. They know nothing of what that one has read. */
static ck_status compare_stale(evolving *e, ck_evolve_op *to, const ck_slot_schema *described,
                               const ck_expected_slot *want) {
    bool begins = want->schema->origin.fresh || want->schema->origin.from_now;
    if (!begins || described || !ck_stored_slot_of(&e->state, &e->cfg->registry->migrations, want)) return CK_OK;
    to->verdict = CK_EVOLVE_REBUILD;
    return add_why(e, to,
                   ck_arena_printf(e->arena, "its state \"%s\" is of a job before the last, which did without it",
                                   want->schema->slot))
               ? CK_OK
               : nomem(e);
}

/* What stands in the way of one slot beside its own layout. */
static ck_status compare_rivals(evolving *e, ck_evolve_op *to, const ck_expected_slot *want, uint32_t count) {
    const ck_state_migrations *m = &e->cfg->registry->migrations;
    for (uint32_t i = 0; i < count; i++) {
        const ck_expected_slot *rival = ck_expected_slot_rival(&e->state, m, want, count, &want[i]);
        if (!rival) continue;
        to->verdict = CK_EVOLVE_REBUILD;
        return add_why(e, to,
                       ck_arena_printf(e->arena, "its states \"%s\" and \"%s\" go on from the same stored one",
                                       want[i].schema->slot, rival->schema->slot))
                   ? CK_OK
                   : nomem(e);
    }
    return CK_OK;
}

/* Where the code of the operator has changed nobody knows what it kept but the files. State in them that no slot goes
 * on from would be given up in silence, beside one that may be the same under another name and begin empty. */
static ck_status compare_unknown(evolving *e, ck_evolve_op *to, const ck_expected_slot *want, uint32_t count,
                                 const ck_slot_schema *now) {
    uint64_t id = ck_op_id(to->stored->uid);
    for (uint32_t i = 0; i < count; i++) {
        if (ck_stored_slot_of(&e->state, &e->cfg->registry->migrations, &want[i])) continue;
        const char *text =
            ck_arena_printf(e->arena, "its state \"%s\" is not in the checkpoint and begins empty", now[i].slot);
        if (!text || !add_why(e, to, text)) return nomem(e);
        if (to->verdict == CK_EVOLVE_REUSE) to->verdict = CK_EVOLVE_MIGRATE;
    }
    for (uint32_t i = 0; i < e->state.slot_count; i++) {
        const ck_stored_slot *s = &e->state.slots[i];
        if (s->op_id != id || s->schema->mode != CK_SLOT_KEYED || goes_on(e, s->schema, now, count)) continue;
        const char *text = ck_arena_printf(e->arena,
                                           "its state \"%s\" goes on as none of what it keeps now (where it got "
                                           "another name, a rename has to say so)",
                                           s->schema->slot);
        if (!text || !add_why(e, to, text)) return nomem(e);
        if (to->verdict == CK_EVOLVE_REUSE) to->verdict = CK_EVOLVE_MIGRATE;
        to->refused = true;
    }
    return CK_OK;
}

/* Of an operator whose code is as it was, the slots that it had and has no more. */
static ck_status compare_dropped(evolving *e, ck_evolve_op *to, const ck_slot_schema *was, uint32_t was_count,
                                 const ck_slot_schema *now, uint32_t now_count) {
    for (uint32_t i = 0; i < was_count; i++) {
        if (goes_on(e, &was[i], now, now_count)) continue;
        if (to->verdict == CK_EVOLVE_REUSE) to->verdict = CK_EVOLVE_MIGRATE;
        if (!add_why(e, to, ck_arena_printf(e->arena, "drops its state \"%s\"", was[i].slot))) return nomem(e);
    }
    return CK_OK;
}

/* The layout of what is kept. The snapshot says what was stored. */
static ck_status compare_slots(evolving *e, ck_evolve_op *to) {
    const ck_slot_schema *was, *now;
    uint32_t was_count, now_count;
    uint64_t id = ck_op_id(to->stored->uid);
    bool known;
    CK_TRY(described_slots(e, e->stored, to->stored, &was, &was_count));
    CK_TRY(described_slots(e, e->cfg->wanted, to->wanted, &now, &now_count));
    CK_TRY(ck_described_as_stored(e->cfg, e->arena, e->stored, to->stored, &known, e->err));
    CK_TRY(ck_trace_slots(e->arena, e->stored, e->cfg->wanted, to->wanted, e->cfg->added == CK_ADDED_FROM_NOW, &now,
                          now_count, e->err));
    ck_expected_slot *want = ck_arena_array(e->arena, now_count + 1u, sizeof *want);
    if (!want) return nomem(e);
    CK_TRY(ck_seen_columns_of(e->arena, e->stored, e->was_columns, to->stored, &e->was_seen, e->err));
    CK_TRY(ck_seen_columns_of(e->arena, e->cfg->wanted, e->now_columns, to->wanted, &e->now_seen, e->err));
    for (uint32_t i = 0; i < now_count; i++) {
        const char *name = now[i].origin.was ? now[i].origin.was : now[i].slot;
        want[i] = (ck_expected_slot){id, to->wanted->uid, &now[i]};
        CK_TRY(compare_slot(e, to, find_slot(was, was_count, name), &want[i]));
        if (known) CK_TRY(compare_stale(e, to, find_slot(was, was_count, name), &want[i]));
    }
    CK_TRY(compare_rivals(e, to, want, now_count));
    CK_TRY(known ? compare_dropped(e, to, was, was_count, now, now_count)
                 : compare_unknown(e, to, want, now_count, now));
    to->refused |= to->verdict == CK_EVOLVE_REBUILD;
    return CK_OK;
}

/* A member of the operator's parameters; NULL: there is none. */
static ck_status member_of(evolving *e, const ck_graph_op *op, const char *name, yyjson_val **out) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(e->arena, ck_view_of(op->params), &doc, e->err));
    *out = yyjson_obj_get(yyjson_doc_get_root(doc), name);
    return CK_OK;
}

/* Options of `a` that are other in `b`, or absent there; their values may be secrets and are not said. */
static ck_status options_that_differ(evolving *e, ck_evolve_op *to, yyjson_val *a, yyjson_val *b, bool only_absent,
                                     const char *how) {
    size_t i, n;
    yyjson_val *key, *value;
    if (!a) return CK_OK;
    yyjson_obj_foreach(a, i, n, key, value) {
        if (yyjson_equals_str(key, "state_ttl") || yyjson_equals_str(key, "rate_limit")) continue; /* free to change */
        yyjson_val *other = b ? yyjson_obj_get(b, yyjson_get_str(key)) : NULL;
        if (other ? only_absent || yyjson_equals(value, other) : false) continue;
        const char *text = ck_arena_printf(e->arena, "option '%s' %s", yyjson_get_str(key), other ? "is another" : how);
        if (!text || !add_why(e, to, text)) return nomem(e);
        to->refused = true;
    }
    return CK_OK;
}

static bool has_text(yyjson_val *list, const char *z) {
    size_t i, n;
    yyjson_val *v;
    yyjson_arr_foreach(list, i, n, v) if (yyjson_equals_str(v, z)) return true;
    return false;
}

/* Rows over some branches of a UNION ALL are among those over these and more. over NULL or empty: over one alone. */
static bool is_among(yyjson_val *rows, yyjson_val *over, yyjson_val *more) {
    size_t i, n;
    yyjson_val *v;
    if (yyjson_arr_size(more) <= (yyjson_arr_size(over) ? yyjson_arr_size(over) : 1)) return false;
    if (yyjson_arr_size(over) == 0) return has_text(more, yyjson_get_str(rows));
    yyjson_arr_foreach(over, i, n, v) if (!yyjson_is_str(v) || !has_text(more, yyjson_get_str(v))) return false;
    return true;
}

static bool is_among_some(yyjson_val *rows, yyjson_val *over, yyjson_val *now_over) {
    size_t i, n;
    yyjson_val *more;
    yyjson_arr_foreach(now_over, i, n, more) if (is_among(rows, over, more)) return true;
    return false;
}

/* Every branch a table was filled by still fills it; another one may have come, also below a GROUP BY. */
static ck_status compare_rows(evolving *e, ck_evolve_op *to) {
    yyjson_val *was, *now, *was_over, *now_over, *v;
    size_t i, n;
    CK_TRY(member_of(e, to->stored, "rows", &was));
    CK_TRY(member_of(e, to->wanted, "rows", &now));
    CK_TRY(member_of(e, to->stored, "over", &was_over));
    CK_TRY(member_of(e, to->wanted, "over", &now_over));
    if (!yyjson_is_arr(was) || !yyjson_is_arr(now)) return CK_OK;
    yyjson_arr_foreach(was, i, n, v) {
        if (!yyjson_is_str(v) || has_text(now, yyjson_get_str(v))) continue;
        if (is_among_some(v, yyjson_arr_get(was_over, i), now_over)) continue;
        to->refused = true;
        return add_why(e, to, "the rows it gets are chosen otherwise: another filter, key or join") ? CK_OK : nomem(e);
    }
    return CK_OK;
}

static ck_status compare_options(evolving *e, ck_evolve_op *to) {
    yyjson_val *was, *now;
    CK_TRY(member_of(e, to->stored, "options", &was));
    CK_TRY(member_of(e, to->wanted, "options", &now));
    CK_TRY(options_that_differ(e, to, was, now, false, "is gone"));
    return options_that_differ(e, to, now, was, true, "is new");
}

static ck_status compare(evolving *e, ck_evolve_op *to, const ck_graph_pair *p) {
    to->verdict = CK_EVOLVE_REUSE;
    CK_TRY(compare_slots(e, to));
    if (is_sink(to->wanted)) CK_TRY(compare_rows(e, to));
    if (is_source(e, to->wanted) || is_sink(to->wanted)) return compare_options(e, to);
    if (p->same_meaning) return CK_OK;
    if (p->more_branches) return add_why(e, to, "a further branch of its UNION ALL begins empty") ? CK_OK : nomem(e);
    to->refused = true;
    return add_why(e, to, "its input, filters or keys mean something else") ? CK_OK : nomem(e);
}

/* ---- all operators ---- */

static ck_status same_options(evolving *e, const ck_graph_op *a, const ck_graph_op *b, bool *same) {
    yyjson_val *x, *y;
    *same = false;
    if (strcmp(a->type, b->type) != 0) return CK_OK;
    CK_TRY(member_of(e, a, "options", &x));
    CK_TRY(member_of(e, b, "options", &y));
    *same = x && y && yyjson_equals(x, y);
    return CK_OK;
}

static bool is_table_of(const ck_graph *g, const ck_graph_op *op) {
    const ck_graph_op *other = ck_graph_find(g, op->uid);
    return other && strcmp(other->type, op->type) == 0;
}

/* A table that is written to as before is the same sink under another name. */
static ck_status find_renamed_sinks(evolving *e, ck_graph_pair *pairs, uint32_t *count) {
    const ck_graph *stored = e->stored, *wanted = e->cfg->wanted;
    bool *taken = ck_arena_array(e->arena, stored->op_count + 1u, sizeof *taken);
    if (!taken) return nomem(e);
    for (uint32_t i = 0; i < wanted->op_count; i++) {
        const ck_graph_op *w = &wanted->ops[i];
        bool same = !is_sink(w) || is_table_of(stored, w);
        for (uint32_t k = 0; k < stored->op_count && !same; k++) {
            const ck_graph_op *s = &stored->ops[k];
            if (taken[k] || !is_sink(s) || is_table_of(wanted, s)) continue;
            CK_TRY(same_options(e, s, w, &same));
            if (!same) continue;
            taken[k] = true;
            pairs[(*count)++] = (ck_graph_pair){.stored = s, .wanted = w};
        }
    }
    return CK_OK;
}

static ck_status match(evolving *e, ck_graph_matched *out) {
    const ck_graph *wanted = e->cfg->wanted;
    uint32_t count = 0;
    if (!e->changed) return ck_pair_by_uid(e->arena, e->stored, wanted, &out->pairs, &out->count, e->err);
    ck_graph_pair *sure = ck_arena_array(e->arena, wanted->op_count + 1u, sizeof *sure);
    if (!sure) return nomem(e);
    CK_TRY(find_renamed_sinks(e, sure, &count));
    return ck_graph_match(e->arena, e->stored, wanted, sure, count, out) == CK_OK ? CK_OK : nomem(e);
}

/* One of several that do the same: whose state it has, or who has its state, nobody knows. */
static void judge_undecided(evolving *e, ck_evolve_op *to, const ck_graph_pair *p) {
    bool again = e->cfg->added == CK_ADDED_BACKFILL;
    to->why = p->undecided;
    to->refused = !again;
    to->verdict = p->stored ? CK_EVOLVE_DROP : again ? CK_EVOLVE_BACKFILL : CK_EVOLVE_REBUILD;
}

/* Its state, or what it has written, came from state that goes on elsewhere now. */
static ck_status judge_lost(evolving *e, ck_evolve_op *to, const ck_graph_pair *p) {
    if (!p->lost || to->refused) return CK_OK;
    to->refused = true;
    return add_why(
               e, to,
               ck_arena_printf(e->arena, "%s fed it, and goes on as %s, which does not", p->lost->uid, p->lost_to->uid))
               ? CK_OK
               : nomem(e);
}

static ck_status judge(evolving *e, const ck_graph_pair *p) {
    const ck_graph_op *op = p->wanted ? p->wanted : p->stored;
    if (!op || !(keeps(e, op) || (p->stored && keeps(e, p->stored)))) return CK_OK;
    ck_evolve_op *to = &e->ops[e->count++];
    *to = (ck_evolve_op){.stored = p->stored, .wanted = p->wanted, .why = ""};
    if (p->undecided) {
        judge_undecided(e, to, p);
        return CK_OK;
    }
    if (p->stored && p->wanted) {
        CK_TRY(compare(e, to, p));
        return judge_lost(e, to, p);
    }
    if (p->wanted) {
        to->verdict = CK_EVOLVE_NEW;
        to->why = op->state_fingerprint && !is_sink(op) ? "starts empty: it sees rows from this checkpoint on" : "";
        return CK_OK;
    }
    to->verdict = CK_EVOLVE_DROP;
    to->refused = true;
    to->why = is_source(e, op) ? "its place in the input is given up"
              : is_sink(op)    ? "what it has written stays as it is"
                               : "its state is given up";
    return CK_OK;
}

static ck_status judge_all(evolving *e) {
    ck_graph_matched m = {0};
    CK_TRY(match(e, &m));
    CK_TRY(ck_graph_columns(e->arena, e->stored, &e->was_columns, e->err));
    CK_TRY(ck_graph_columns(e->arena, e->cfg->wanted, &e->now_columns, e->err));
    CK_TRY(ck_manifest_stored(e->cfg->proc, e->arena, e->cfg->dir, e->cfg->manifest, &e->state, e->err));
    if (!(e->ops = ck_arena_array(e->arena, m.count + 1u, sizeof *e->ops))) return nomem(e);
    for (uint32_t i = 0; i < m.count; i++) CK_TRY(judge(e, &m.pairs[i]));
    CK_TRY(ck_judge_new(e->arena, e->cfg, e->stored, m.pairs, m.count, e->ops, e->count, e->err));
    return ck_judge_backfill(e->arena, e->cfg, e->ops, e->count, &e->rewound, e->err);
}

static ck_status reuse_all(evolving *e) {
    const ck_graph *g = e->cfg->wanted;
    if (!(e->ops = ck_arena_array(e->arena, g->op_count + 1u, sizeof *e->ops))) return nomem(e);
    for (uint32_t i = 0; i < g->op_count; i++)
        if (keeps(e, &g->ops[i]))
            e->ops[e->count++] =
                (ck_evolve_op){.stored = ck_graph_find(e->stored, g->ops[i].uid), .wanted = &g->ops[i], .why = ""};
    return CK_OK;
}

static ck_status evolve_as(ck_arena *a, const ck_evolve_config *cfg, ck_evolution *out, ck_error *err) {
    evolving e = {.cfg = cfg, .arena = a, .err = err};
    ck_graph *stored;
    ck_status s = ck_graph_decode(a, ck_view_of(cfg->manifest->graph), &stored, err);
    if (s != CK_OK) {
        (void)ck_error_prefix(
            err, "checkpoint %llu in %s: its job graph: ", (unsigned long long)cfg->manifest->checkpoint, cfg->dir);
        return s == CK_NOMEM ? s : CK_CORRUPT;
    }
    e.stored = stored;
    bool compared = e.changed = ck_graph_hash(stored) != ck_graph_hash(cfg->wanted);
    if (!e.changed && cfg->manifest->kind != CK_BARRIER_FINAL) /* what has finished goes on with nothing */
        CK_TRY(ck_state_is_kept_otherwise(cfg, a, stored, &compared, err));
    CK_TRY(compared ? judge_all(&e) : reuse_all(&e));
    *out = (ck_evolution){.stored = stored,
                          .changed = e.changed,
                          .compared = compared,
                          .ops = e.ops,
                          .count = e.count,
                          .rewound = e.rewound};
    for (uint32_t i = 0; i < e.count; i++) out->refused += e.ops[i].refused && !cfg->allow;
    return CK_OK;
}

/* Asked for another way, the same comparison says what would become of it. What it cannot look at is no way. */
static ck_status helps(ck_arena *a, ck_evolve_config cfg, ck_added_state added, bool *out, ck_error *err) {
    ck_error why = CK_ERROR_INIT;
    ck_evolution e;
    cfg.added = added;
    ck_status s = evolve_as(a, &cfg, &e, &why);
    *out = s == CK_OK && e.refused == 0;
    return s == CK_NOMEM ? ck_nomem(err, a->mem, 0) : CK_OK;
}

ck_status ck_evolve(ck_arena *a, const ck_evolve_config *cfg, ck_evolution *out, ck_error *err) {
    CK_TRY(evolve_as(a, cfg, out, err));
    if (!out->refused || cfg->added != CK_ADDED_REFUSED) return CK_OK;
    CK_TRY(helps(a, *cfg, CK_ADDED_FROM_NOW, &out->from_now_helps, err));
    return helps(a, *cfg, CK_ADDED_BACKFILL, &out->backfill_helps, err);
}

const ck_graph_op *ck_evolve_stored(const ck_evolution *e, const ck_graph_op *wanted) {
    for (uint32_t i = 0; i < e->count; i++) {
        const ck_evolve_op *op = &e->ops[i];
        if (op->wanted != wanted) continue;
        return op->verdict == CK_EVOLVE_REUSE || op->verdict == CK_EVOLVE_MIGRATE ? op->stored : NULL;
    }
    return NULL;
}
