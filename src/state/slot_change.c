/* See slot_change.h. */
#include "state/slot_change.h"

#include "state/schema_additive.h"
#include "state/shape_int.h"

typedef struct change {
    ck_arena *arena;
    ck_bytes done, refused; /* "; "-separated */
    bool no_memory;
} change;

/* Appends to a list of clauses; NULL: there was no memory for the text. */
static void say(change *c, ck_bytes *to, const char *text) {
    if (!text || (to->n && ck_bytes_str(to, "; ") != CK_OK) || ck_bytes_str(to, text) != CK_OK) c->no_memory = true;
}

static const char *typed(change *c, const ck_field *f) {
    const char *s = ck_arena_printf(c->arena, "%s%s", ck_type_name(c->arena, f->type), f->nullable ? "" : " NOT NULL");
    return s ? s : "?";
}

static void compare_field(change *c, const ck_field *s, const ck_field *w, bool integers_only) {
    bool same_type = ck_type_eq(s->type, w->type);
    bool wider = integers_only ? ck_integer_widens(s->type, w->type) : ck_type_widens(s->type, w->type);
    if (same_type && s->nullable == w->nullable) return;
    if ((same_type || wider) && (w->nullable || !s->nullable))
        say(c, &c->done, ck_arena_printf(c->arena, "'%s' %s -> %s", w->name, typed(c, s), typed(c, w)));
    else
        say(c, &c->refused,
            ck_arena_printf(c->arena, "'%s' is stored as %s, this job has %s", w->name, typed(c, s), typed(c, w)));
}

static void compare_keys(change *c, const ck_slot_schema *s, const ck_slot_schema *w) {
    if (s->partition_count != w->partition_count || s->order_count != w->order_count) {
        say(c, &c->refused,
            ck_arena_printf(c->arena, "it is stored with %u key fields, this job has %u",
                            s->partition_count + s->order_count, w->partition_count + w->order_count));
        return;
    }
    for (uint32_t i = 0; i < s->partition_count; i++) compare_field(c, &s->partition[i], &w->partition[i], true);
    for (uint32_t i = 0; i < s->order_count; i++) {
        const ck_order_field *x = &s->order[i], *y = &w->order[i];
        /* A nullable order field has a byte in front. */
        if (x->field.nullable != y->field.nullable)
            say(c, &c->refused,
                ck_arena_printf(c->arena, "'%s' is stored as %s, this job has %s", y->field.name, typed(c, &x->field),
                                typed(c, &y->field)));
        else
            compare_field(c, &x->field, &y->field, true);
        if (x->descending != y->descending || (x->field.nullable && x->nulls_first != y->nulls_first))
            say(c, &c->refused, ck_arena_printf(c->arena, "it is stored in another order of '%s'", y->field.name));
    }
}

static uint32_t find_value(const ck_slot_schema *s, const char *name) {
    uint32_t i = 0;
    while (i < s->value_count && strcmp(s->values[i].name, name) != 0) i++;
    return i;
}

static void compare_values(change *c, const ck_slot_schema *s, const ck_slot_schema *w, uint32_t *value_of,
                           bool *kept) {
    bool moved = false;
    for (uint32_t i = 0; i < w->value_count; i++) {
        const ck_slot_origin *origin = w->origins ? &w->origins[i] : NULL;
        uint32_t at = find_value(s, origin && origin->was ? origin->was : w->values[i].name);
        if (at == s->value_count && origin && (origin->fresh || origin->from_now) &&
            (w->values[i].nullable || !ck_phys_is_var(ck_type_phys(w->values[i].type)))) {
            say(c, &c->done,
                ck_arena_printf(c->arena, "adds '%s'%s", w->values[i].name, origin->fresh ? "" : " from now on"));
            value_of[i] = CK_FIELD_IS_NEW;
            moved = true;
            continue;
        }
        if (at < s->value_count && origin && origin->was)
            say(c, &c->done, ck_arena_printf(c->arena, "'%s' is '%s' now", origin->was, w->values[i].name));
        if (at == s->value_count) {
            say(c, &c->refused, ck_arena_printf(c->arena, "'%s' is not in the checkpoint", w->values[i].name));
            continue;
        }
        value_of[i] = at;
        kept[at] = true;
        moved |= at != i;
        compare_field(c, &s->values[at], &w->values[i], false);
    }
    size_t before = c->done.n;
    for (uint32_t i = 0; i < s->value_count; i++)
        if (!kept[i]) say(c, &c->done, ck_arena_printf(c->arena, "drops '%s'", s->values[i].name));
    if (moved && before == 0 && c->done.n == 0) say(c, &c->done, "another order of fields");
}

static void compare_all(change *c, const ck_slot_schema *s, const ck_slot_schema *w, uint32_t *value_of, bool *kept) {
    const char *wanted_type = w->state_type ? w->state_type : "";
    if (s->mode != w->mode) say(c, &c->refused, "it is stored as another kind of state");
    if (strcmp(s->state_type, wanted_type) != 0)
        say(c, &c->refused,
            ck_arena_printf(c->arena, "it is stored as type '%s', this job has '%s'", s->state_type, wanted_type));
    else if (s->version && s->version != w->version)
        say(c, &c->refused,
            ck_arena_printf(c->arena, "type '%s' is stored in version %u, this job has %u", s->state_type, s->version,
                            w->version));
    compare_keys(c, s, w);
    compare_values(c, s, w, value_of, kept);
}

ck_status ck_slot_compare(ck_arena *a, const ck_slot_schema *stored, const ck_slot_schema *wanted,
                          ck_slot_change *out) {
    change c = {.arena = a};
    uint32_t *value_of = ck_arena_array(a, wanted->value_count + 1u, sizeof *value_of);
    bool *kept = ck_arena_array(a, stored->value_count + 1u, sizeof *kept);
    if (!value_of || !kept) return CK_NOMEM;
    ck_bytes_init(&c.done, a->mem, SIZE_MAX);
    ck_bytes_init(&c.refused, a->mem, SIZE_MAX);
    compare_all(&c, stored, wanted, value_of, kept);
    const ck_bytes *text = c.refused.n ? &c.refused : &c.done;
    *out = (ck_slot_change){.verdict = c.refused.n ? CK_SLOT_REFUSED
                                       : c.done.n  ? CK_SLOT_CONVERTS
                                                   : CK_SLOT_SAME,
                            .what = ck_arena_strndup(a, text->n ? text->p : "", text->n),
                            .value_of = value_of};
    ck_bytes_destroy(&c.done);
    ck_bytes_destroy(&c.refused);
    return c.no_memory || !out->what ? CK_NOMEM : CK_OK;
}
