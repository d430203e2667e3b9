/* Which field of a message is which column, for both directions, and whether one has a place for what the other holds.
 */
#include "format/message_int.h"

typedef struct planner {
    ck_arena *a;
    bool for_writing, lenient;
    const char *path;
    unsigned depth;
    ck_error *err;
} planner;

static ck_status plan_message(planner *p, const ck_proto *m, const ck_field *fields, uint32_t count,
                              const ck_proto_plan **out);

static ck_status nomem(planner *p) { return ck_nomem(p->err, p->a->mem, sizeof(ck_proto_plan)); }

/* Protobuf has no integer of less than 32 bits: what a narrow column can take is seen row by row. */
static bool scalar_reads(ck_proto_kind from, const ck_type *t) {
    ck_kind k = t->kind;
    switch (from) {
    case CK_PROTO_DOUBLE: return k == CK_TYPE_DOUBLE;
    case CK_PROTO_FLOAT: return ck_kind_is_float(k);
    case CK_PROTO_INT32:
    case CK_PROTO_SINT32:
    case CK_PROTO_SFIXED32: return ck_kind_is_integer(k) || k == CK_TYPE_DOUBLE;
    case CK_PROTO_UINT32:
    case CK_PROTO_FIXED32: return k == CK_TYPE_BIGINT || k == CK_TYPE_DOUBLE;
    case CK_PROTO_INT64:
    case CK_PROTO_SINT64:
    case CK_PROTO_SFIXED64: return k == CK_TYPE_BIGINT;
    case CK_PROTO_UINT64:
    case CK_PROTO_FIXED64: return k == CK_TYPE_BIGINT || (k == CK_TYPE_DECIMAL && t->precision - t->scale >= 20);
    case CK_PROTO_BOOL: return k == CK_TYPE_BOOLEAN;
    case CK_PROTO_STRING: return k == CK_TYPE_VARCHAR;
    case CK_PROTO_BYTES: return k == CK_TYPE_BYTES;
    case CK_PROTO_ENUM: return k == CK_TYPE_VARCHAR || k == CK_TYPE_INTEGER || k == CK_TYPE_BIGINT;
    case CK_PROTO_MESSAGE: break;
    }
    return false;
}

static bool scalar_writes(ck_proto_kind to, const ck_type *t) {
    ck_kind k = t->kind;
    bool narrow = ck_kind_is_integer(k) && k != CK_TYPE_BIGINT;
    switch (to) {
    case CK_PROTO_DOUBLE: return ck_kind_is_float(k) || narrow;
    case CK_PROTO_FLOAT: return k == CK_TYPE_REAL;
    case CK_PROTO_INT32:
    case CK_PROTO_SINT32:
    case CK_PROTO_SFIXED32:
    case CK_PROTO_UINT32:
    case CK_PROTO_FIXED32: return narrow;
    case CK_PROTO_INT64:
    case CK_PROTO_SINT64:
    case CK_PROTO_SFIXED64:
    case CK_PROTO_UINT64:
    case CK_PROTO_FIXED64: return ck_kind_is_integer(k);
    case CK_PROTO_BOOL: return k == CK_TYPE_BOOLEAN;
    case CK_PROTO_STRING: return k == CK_TYPE_VARCHAR;
    case CK_PROTO_BYTES: return k == CK_TYPE_BYTES;
    case CK_PROTO_ENUM: return k == CK_TYPE_VARCHAR || narrow;
    case CK_PROTO_MESSAGE: break;
    }
    return false;
}

static bool scalar_fits(const planner *p, ck_proto_kind k, const ck_type *t) {
    return p->for_writing ? scalar_writes(k, t) : scalar_reads(k, t);
}

static ck_status misfit(planner *p, const ck_proto_field *from, const ck_field *f) {
    return ck_fail(p->err, CK_DATA, "field \"%.200s\" of the schema is %s, and the table has %s there", p->path,
                   ck_proto_print(p->a, from), ck_type_name(p->a, f->type));
}

/* One value, not a list of them. */
static ck_status plan_single(planner *p, const ck_proto_field *from, const ck_field *f, ck_proto_part *part) {
    const ck_type *t = f->type;
    const ck_proto *m = from->message;
    if (!m) return scalar_fits(p, from->kind, t) ? CK_OK : misfit(p, from, f);
    if (ck_proto_is_time(m) && (t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ)) return CK_OK;
    if (ck_proto_is_wrapper(m) && scalar_fits(p, m->fields[0].kind, t)) return CK_OK;
    if (t->kind != CK_TYPE_ROW) return misfit(p, from, f);
    return plan_message(p, m, t->fields, t->field_count, &part->inner);
}

static ck_status plan_map(planner *p, const ck_proto_field *from, const ck_field *f, ck_proto_part *part) {
    const ck_proto *entry = from->message;
    ck_proto_plan *plan = CK_ARENA_NEW(p->a, ck_proto_plan);
    ck_proto_part *parts = ck_arena_array(p->a, 2, sizeof *parts);
    if (!plan || !parts) return nomem(p);
    if (f->type->kind != CK_TYPE_MAP) return misfit(p, from, f);
    for (uint32_t i = 0; i < 2; i++) {
        parts[i] = (ck_proto_part){.from = &entry->fields[i], .field = &f->type->fields[i], .to = i};
        CK_TRY(plan_single(p, parts[i].from, parts[i].field, &parts[i]));
    }
    *plan = (ck_proto_plan){.message = entry, .parts = parts};
    part->inner = plan;
    return CK_OK;
}

static ck_status plan_part(planner *p, const ck_proto_field *from, const ck_field *f, ck_proto_part *part) {
    if (from->message && from->message->map_entry) return plan_map(p, from, f, part);
    if (!from->repeated) return plan_single(p, from, f, part);
    if (f->type->kind != CK_TYPE_ARRAY) return misfit(p, from, f);
    ck_status s = plan_single(p, from, &f->type->fields[0], part);
    return s == CK_DATA && !part->inner ? misfit(p, from, f) : s;
}

static ck_status plan_fields(planner *p, const ck_proto *m, const ck_field *fields, uint32_t count,
                             ck_proto_plan *plan) {
    bool *seen = ck_arena_array(p->a, count + 1, sizeof *seen);
    ck_proto_part *parts = ck_arena_array(p->a, m->field_count + 1, sizeof *parts);
    const char *around = p->path;
    if (!seen || !parts) return nomem(p);
    for (uint32_t i = 0; i < m->field_count; i++) {
        const ck_proto_field *from = &m->fields[i];
        uint32_t to = 0;
        while (to < count && strcmp(fields[to].name, from->name) != 0) to++;
        parts[i].from = from;
        if (to == count) {
            if (p->for_writing && from->required)
                return ck_fail(p->err, CK_DATA,
                               "field \"%.200s\" of the schema is required, and the table has no such column",
                               from->name);
            continue;
        }
        p->path = around ? ck_arena_printf(p->a, "%s.%s", around, from->name) : from->name;
        if (!p->path) return nomem(p);
        parts[i].field = &fields[to];
        parts[i].to = to;
        CK_TRY(plan_part(p, from, &fields[to], &parts[i]));
        seen[to] = true;
    }
    p->path = around;
    *plan = (ck_proto_plan){.message = m, .parts = parts};
    return ck_message_missing(p->a, fields, count, seen, p->lenient, around, &plan->missing, &plan->missing_count,
                              p->err);
}

static ck_status plan_message(planner *p, const ck_proto *m, const ck_field *fields, uint32_t count,
                              const ck_proto_plan **out) {
    ck_proto_plan *plan = CK_ARENA_NEW(p->a, ck_proto_plan);
    if (!plan) return nomem(p);
    if (++p->depth > CK_MESSAGE_NESTED_MAX) return ck_fail(p->err, CK_DATA, "the schema is nested too deeply");
    *out = plan;
    ck_status s = plan_fields(p, m, fields, count, plan);
    p->depth--;
    return s;
}

ck_status ck_proto_plan_new(ck_arena *a, const ck_proto *m, const ck_schema *table, bool for_writing, bool lenient,
                            const ck_proto_plan **out, ck_error *err) {
    planner p = {.a = a, .for_writing = for_writing, .lenient = lenient, .err = err};
    return plan_message(&p, m, table->fields, table->field_count, out);
}
