/* Whether a slot restored from a snapshot is the one its operator opens: another layout is refused by name. Names of
 * partition and order columns are free to change, names of value fields say what they hold. */
#include "state/state_int.h"

static const char *mode_name(ck_slot_mode m) {
    static const char *const names[] = {"keyed", "broadcast", "union", "split"};
    return (unsigned)m < CK_ARRAY_COUNT(names) ? names[m] : "unknown";
}

typedef struct agree {
    ck_arena arena; /* of the message */
    const char *uid, *slot;
    ck_error *err;
} agree;

static const char *field_type(agree *a, const ck_field *f) {
    const char *s =
        ck_arena_printf(&a->arena, "%s%s", ck_type_name(&a->arena, f->type), f->nullable ? "" : " NOT NULL");
    return s ? s : "?";
}

static ck_status check_field(agree *a, const char *kind, const ck_field *stored, const ck_field *wanted, bool named) {
    if (named && strcmp(stored->name, wanted->name) != 0)
        return ck_fail(a->err, CK_REFUSED, "operator '%s', slot \"%s\": the stored %s field '%s' is '%s' in this job",
                       a->uid, a->slot, kind, stored->name, wanted->name);
    if (!ck_type_eq(stored->type, wanted->type) || stored->nullable != wanted->nullable)
        return ck_fail(a->err, CK_REFUSED,
                       "operator '%s', slot \"%s\": the %s field '%s' is stored as %s, this job has %s", a->uid,
                       a->slot, kind, stored->name, field_type(a, stored), field_type(a, wanted));
    return CK_OK;
}

static ck_status check_count(agree *a, const char *kind, uint32_t stored, uint32_t wanted) {
    if (stored == wanted) return CK_OK;
    return ck_fail(a->err, CK_REFUSED, "operator '%s', slot \"%s\": stored with %u %s fields, this job has %u", a->uid,
                   a->slot, stored, kind, wanted);
}

static ck_status check_all(agree *a, const ck_slot_schema *s, const ck_slot_schema *w) {
    if (s->mode != w->mode)
        return ck_fail(a->err, CK_REFUSED, "operator '%s', slot \"%s\": stored as %s state, this job has %s", a->uid,
                       a->slot, mode_name(s->mode), mode_name(w->mode));
    if (strcmp(s->state_type, w->state_type ? w->state_type : "") != 0)
        return ck_fail(a->err, CK_REFUSED, "operator '%s', slot \"%s\": stored as type '%s', this job has '%s'", a->uid,
                       a->slot, s->state_type, w->state_type ? w->state_type : "");
    if (s->version != w->version)
        return ck_fail(a->err, CK_REFUSED,
                       "operator '%s', slot \"%s\": type '%s' is stored in version %u, this job has %u", a->uid,
                       a->slot, s->state_type, s->version, w->version);
    CK_TRY(check_count(a, "partition", s->partition_count, w->partition_count));
    CK_TRY(check_count(a, "order", s->order_count, w->order_count));
    CK_TRY(check_count(a, "value", s->value_count, w->value_count));
    for (uint32_t i = 0; i < s->partition_count; i++)
        CK_TRY(check_field(a, "partition", &s->partition[i], &w->partition[i], false));
    for (uint32_t i = 0; i < s->order_count; i++) {
        const ck_order_field *x = &s->order[i], *y = &w->order[i];
        CK_TRY(check_field(a, "order", &x->field, &y->field, false));
        if (x->descending != y->descending || (x->field.nullable && x->nulls_first != y->nulls_first))
            return ck_fail(
                a->err, CK_REFUSED, "operator '%s', slot \"%s\": the order field '%s' is stored %s, NULLS %s", a->uid,
                a->slot, x->field.name, x->descending ? "descending" : "ascending", x->nulls_first ? "FIRST" : "LAST");
    }
    for (uint32_t i = 0; i < s->value_count; i++) CK_TRY(check_field(a, "value", &s->values[i], &w->values[i], true));
    return CK_OK;
}

ck_status ck_slot_agree(ck_mem mem, const char *uid, const ck_slot_schema *stored, const ck_slot_schema *wanted,
                        ck_error *err) {
    agree a = {.uid = uid, .slot = stored->slot, .err = err};
    ck_arena_init(&a.arena, mem, SIZE_MAX);
    ck_status s = check_all(&a, stored, wanted);
    ck_arena_destroy(&a.arena);
    return s;
}
