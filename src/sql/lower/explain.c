/* EXPLAIN: the job from its sinks to its sources, with edges, modes, boundedness, state, keys; then what each sink
 * promises, and warnings.
 *
 *     sink.print result
 *       <- gather, append, bounded
 *       group_agg GROUP BY usr: sum(amount)
 *         final, key (usr), uid group_agg(usr)<-orders
 *         state agg (usr) -> sum(amount)
 *         <- hash (usr), append, bounded
 *         source.file orders (usr, amount)
 */
#include <stdio.h>

#include "sql/lower/lower_int.h"

typedef struct printer {
    ck_lower_state *s;
    ck_bytes text;
    bool *shown;
    ck_status status;
} printer;

static void put(printer *p, const char *fmt, ...) CK_PRINTF(2, 3);
static void put(printer *p, const char *fmt, ...) {
    char line[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (p->status == CK_OK) p->status = ck_bytes_str(&p->text, line);
}

enum { INDENT_MAX = 60 }; /* deeper ones stand there too */
static void indent(printer *p, uint32_t depth) {
    put(p, "%*s", 2 * (int)(depth < INDENT_MAX ? depth : INDENT_MAX), "");
}

static void put_columns(printer *p, const ck_schema *schema, ck_columns columns) {
    const char *text = ck_label_columns(p->s, schema, columns);
    if (!text) p->status = CK_NOMEM;
    put(p, "(%s)", text ? text : "");
}

static void put_fields(printer *p, const ck_field *fields, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) put(p, "%s%s", i ? ", " : "", fields[i].name);
}

static void put_slots(printer *p, const ck_planned_op *op, uint32_t depth) {
    for (uint32_t i = 0; i < op->slot_count; i++) {
        const ck_slot_schema *slot = &op->slots[i];
        if (slot->mode != CK_SLOT_KEYED) continue;
        indent(p, depth);
        put(p, "state %s (", slot->slot);
        put_fields(p, slot->partition, slot->partition_count);
        for (uint32_t k = 0; k < slot->order_count; k++)
            put(p, "%s%s", k || slot->partition_count ? ", " : "", slot->order[k].field.name);
        put(p, ")");
        if (slot->value_count) put(p, " -> ");
        put_fields(p, slot->values, slot->value_count);
        const char *ttl = slot->ttl_us ? ck_label_duration(p->s, slot->ttl_us) : NULL;
        if (ttl) put(p, ", kept %s after it was written", ttl);
        put(p, "\n");
    }
}

static bool is_sink(const ck_planned_op *op) { return strncmp(op->type, "sink.", 5) == 0; }

static void put_facts(printer *p, const ck_planned_op *op, uint32_t depth) {
    if (is_sink(op) || !op->stateful) return;
    indent(p, depth);
    if (op->final) put(p, "final, ");
    if (op->has_key && op->key.count) {
        put(p, "key ");
        put_columns(p, op->schema, op->key);
        put(p, ", ");
    }
    if (op->has_key && !op->key.count) put(p, "one row, ");
    put(p, "uid %s\n", op->uid);
    if (op->growth) {
        indent(p, depth);
        put(p, "growth: %s\n", op->growth);
    }
    put_slots(p, op, depth);
}

static void put_op(printer *p, uint32_t number, uint32_t depth) {
    const ck_planned_op *op = &p->s->ops[number];
    indent(p, depth);
    put(p, "%s %s", op->type, op->label);
    if (is_sink(op)) {
        put(p, " ");
        put_columns(p, op->schema, (ck_columns){NULL, op->schema->field_count});
    }
    if (p->shown[number] && op->input_count) {
        put(p, " (as above)\n");
        return;
    }
    put(p, "\n");
    p->shown[number] = true;
    if (op->facts) {
        indent(p, depth + 1);
        put(p, "%s\n", op->facts);
    }
    put_facts(p, op, depth + 1);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_planned_input *in = &op->inputs[i];
        indent(p, depth + 1);
        put(p, "<- %s%s", in->port ? "side output, " : "", ck_edge_kind_name(in->kind));
        if (in->kind == CK_EDGE_HASH) {
            put(p, " ");
            put_columns(p, p->s->ops[in->op].schema, in->key);
        }
        put(p, ", %s, %s\n", ck_edge_mode_name(in->mode), in->bounded ? "bounded" : "unbounded");
        put_op(p, in->op, depth + 1);
    }
}

ck_status ck_lower_explain(ck_lower_state *s, const ck_sql_step *step, const char **out) {
    printer p = {.s = s, .shown = CK_LOWER_ARRAY(s, s->op_count, bool)};
    bool *used = CK_LOWER_ARRAY(s, s->op_count, bool);
    if (!p.shown || !used) return CK_NOMEM;
    ck_bytes_init(&p.text, s->arena->mem, SIZE_MAX);
    for (uint32_t i = 0; i < s->op_count; i++)
        for (uint32_t k = 0; k < s->ops[i].input_count; k++) used[s->ops[i].inputs[k].op] = true;
    for (uint32_t i = 0; i < s->op_count; i++)
        if (!used[i]) put_op(&p, i, 0);
    for (uint32_t i = 0; i < step->guarantee_count; i++) put(&p, "guarantee: %s\n", step->guarantees[i]);
    for (uint32_t i = 0; i < step->warning_count; i++) put(&p, "warning: %s\n", step->warnings[i]);
    *out = p.status == CK_OK ? ck_arena_strndup(s->arena, p.text.p ? p.text.p : "", p.text.n) : NULL;
    ck_bytes_destroy(&p.text);
    return *out ? CK_OK : ck_lower_nomem(s);
}
