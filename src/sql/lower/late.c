/* Rows that come too late: side outputs of the operators that would drop them, into the tables that take them. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

ck_status ck_lower_params_late(ck_lower_state *s, ck_lower_params *p, const ck_plan_node *n) {
    static const char *const sides[] = {"left_late", "right_late"};
    for (uint32_t k = 0; k < n->input_count; k++) {
        const ck_columns *columns = &n->late[k].columns;
        if (!n->late[k].table) continue;
        yyjson_mut_val *list = yyjson_mut_obj_add_arr(p->doc, p->root, n->input_count == 1 ? "late" : sides[k]);
        for (uint32_t i = 0; list && i < columns->count; i++)
            if (!(columns->at[i] == CK_NO_COLUMN ? yyjson_mut_arr_add_null(p->doc, list)
                                                 : yyjson_mut_arr_add_uint(p->doc, list, columns->at[i])))
                list = NULL;
        if (!list) return ck_lower_nomem(s);
    }
    return CK_OK;
}

ck_status ck_lower_late(ck_lower_state *s, const ck_plan_node *n, uint32_t op) {
    for (uint32_t k = 0; k < n->input_count; k++) {
        if (!n->late[k].table) continue;
        ck_late_output *o = CK_LOWER_ARRAY(s, 1, ck_late_output), **end = &s->late;
        if (!o) return CK_NOMEM;
        *o = (ck_late_output){n->late[k].table, op, k, n, NULL};
        while (*end) end = &(*end)->next;
        *end = o;
    }
    return CK_OK;
}

static ck_planned_input side_output(const ck_late_output *o) {
    return (ck_planned_input){.op = o->op,
                              .port = 1 + o->input,
                              .kind = CK_EDGE_FORWARD,
                              .mode = CK_MODE_APPEND,
                              .bounded = o->node->bounded};
}

/* What several operators put into one table. */
static ck_status unite(ck_lower_state *s, const ck_late_output *first, uint32_t count, ck_planned_input *out) {
    ck_planned_input *in = CK_LOWER_ARRAY(s, count, ck_planned_input);
    uint32_t n = 0;
    if (!in) return CK_NOMEM;
    *out = (ck_planned_input){.kind = CK_EDGE_FORWARD, .mode = CK_MODE_APPEND, .bounded = true};
    for (const ck_late_output *o = first; o; o = o->next) {
        if (o->table != first->table) continue;
        in[n++] = side_output(o);
        out->bounded = out->bounded && o->node->bounded;
    }
    ck_planned_op op = {.base = ck_arena_printf(s->arena, "union()<-late rows:%s", first->table->name),
                        .canonical = first->node->canonical,
                        .type = "union",
                        .params = "{}",
                        .label = "UNION ALL",
                        .inputs = in,
                        .input_count = n,
                        .schema = first->table->table.decl.schema};
    return op.base ? ck_lower_add(s, &op, &out->op) : ck_lower_nomem(s);
}

ck_status ck_lower_late_sinks(ck_lower_state *s) {
    for (const ck_late_output *o = s->late; o; o = o->next) {
        uint32_t count = 0;
        bool done = false;
        for (const ck_late_output *k = s->late; k != o; k = k->next) done |= k->table == o->table;
        if (done) continue;
        for (const ck_late_output *k = o; k; k = k->next) count += k->table == o->table;
        ck_planned_input in = side_output(o);
        if (count > 1) CK_TRY(unite(s, o, count, &in));
        CK_TRY(ck_lower_side_sink(s, o->table, o->node, &in));
    }
    return CK_OK;
}
