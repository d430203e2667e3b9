/* Windows: columns of them, and GROUP BY them behind a hash edge on the other keys. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

static bool add_window(yyjson_mut_doc *doc, yyjson_mut_val *root, const ck_plan_window *w) {
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, root, "window");
    if (!v || !yyjson_mut_obj_add_str(doc, v, "kind", ck_plan_window_word(w->kind))) return false;
    if (w->kind == CK_PLAN_WINDOW_ATTACHED)
        return yyjson_mut_obj_add_uint(doc, v, "start", w->start) && yyjson_mut_obj_add_uint(doc, v, "end", w->end);
    return (w->processing ? yyjson_mut_obj_add_str(doc, v, "time", "processing")
                          : yyjson_mut_obj_add_uint(doc, v, "time", w->time)) &&
           yyjson_mut_obj_add_uint(doc, v, "size_us", (uint64_t)w->size_us) &&
           yyjson_mut_obj_add_uint(doc, v, "slide_us", (uint64_t)w->slide_us) &&
           yyjson_mut_obj_add_sint(doc, v, "offset_us", w->offset_us);
}

static const char *window_label(ck_lower_state *s, const ck_plan_node *n) {
    const ck_plan_window *w = &n->window.of;
    const ck_schema *in = n->inputs[0]->schema;
    if (w->kind == CK_PLAN_WINDOW_ATTACHED) return "WINDOW";
    static const char *const words[] = {"TUMBLE", "HOP", "CUMULATE", "", "SESSION"};
    const char *size = ck_label_duration(s, w->size_us),
               *slide = w->slide_us != w->size_us ? ck_label_duration(s, w->slide_us) : "";
    const char *offset = w->offset_us ? ck_label_duration(s, w->offset_us) : "";
    if (!size || !slide || !offset) return NULL;
    const char *time = w->processing ? "PROCTIME()" : in->fields[w->time].name;
    return ck_arena_printf(s->arena, "%s(%s, %s%s%s%s%s)", words[w->kind], time, slide, *slide ? ", " : "", size,
                           *offset ? ", offset " : "", offset);
}

static bool holds(ck_columns list, uint32_t column) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.at[i] == column) return true;
    return false;
}

ck_status ck_lower_window(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    ck_lower_params p;
    const char *params;
    if (n->window.of.kind == CK_PLAN_WINDOW_SESSION) {
        ck_fail(s->err, CK_REFUSED,
                "a SESSION window is made by GROUP BY window_start, window_end and what it is partitioned by");
        return n->window.of.source ? ck_source_place(n->window.of.source, n->window.of.at, CK_REFUSED, s->err)
                                   : CK_REFUSED;
    }
    CK_TRY(ck_lower_node(s, n->inputs[0], out));
    CK_TRY(ck_lower_params_begin(s, &p));
    if (!add_window(p.doc, p.root, &n->window.of)) return ck_lower_nomem(s);
    if (n->window.of.processing && !yyjson_mut_obj_add_uint(p.doc, p.root, "stamp", n->window.of.time))
        return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_end(s, &p, &params));
    CK_TRY(ck_lower_chained(s, n, "window_assign", params, window_label(s, n), n->inputs[0], out, &out->op));
    s->ops[out->op].stateful = n->window.of.processing; /* how far its clock has come */
    if (out->hashed && n->window.of.processing) out->hashed = !holds(out->hash, n->window.of.time);
    return CK_OK;
}

static ck_status params_of(ck_lower_state *s, const ck_plan_node *n, const char **out) {
    const ck_plan_window *w = &n->window.of;
    ck_lower_params p;
    CK_TRY(ck_lower_params_begin(s, &p));
    bool fine = w->kind == CK_PLAN_WINDOW_SESSION
                    ? (w->processing ? yyjson_mut_obj_add_str(p.doc, p.root, "time", "processing")
                                     : yyjson_mut_obj_add_uint(p.doc, p.root, "time", w->time)) &&
                          yyjson_mut_obj_add_uint(p.doc, p.root, "gap_us", (uint64_t)w->size_us)
                    : add_window(p.doc, p.root, w);
    if (!fine) return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_columns(s, &p, "keys", n->window.keys));
    CK_TRY(ck_lower_params_calls(s, &p, n->window.calls, n->window.call_count));
    if (!yyjson_mut_obj_add_uint(p.doc, p.root, "lateness_us", (uint64_t)w->lateness_us)) return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_late(s, &p, n));
    return ck_lower_params_end(s, &p, out);
}

static const char *agg_label(ck_lower_state *s, const ck_plan_node *n) {
    const char *window = window_label(s, n), *keys = ck_label_columns(s, n->inputs[0]->schema, n->window.keys);
    if (!window || !keys) return NULL;
    const char *text = ck_arena_printf(s->arena, "%s%s%s", window, *keys ? " BY " : "", keys);
    return text ? ck_label_calls(s, text, n->window.calls, n->window.call_count) : NULL;
}

ck_status ck_lower_window_agg(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    ck_columns keys = n->window.keys;
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    uint32_t *own = CK_LOWER_ARRAY(s, keys.count, uint32_t);
    if (!in || !own) return CK_NOMEM;
    CK_TRY(ck_lower_node(s, input, out));
    bool together = ck_lower_is_hashed_by(out, keys);
    *in = (ck_planned_input){.op = out->op,
                             .kind = together ? CK_EDGE_FORWARD : CK_EDGE_HASH,
                             .key = together ? (ck_columns){0} : keys,
                             .mode = input->mode,
                             .bounded = input->bounded};
    for (uint32_t i = 0; i < keys.count; i++) own[i] = i;
    ck_planned_op op = {.base = n->identity,
                        .canonical = n->canonical,
                        .type = n->window.of.kind == CK_PLAN_WINDOW_SESSION ? "session_agg" : "window_agg",
                        .label = agg_label(s, n),
                        .inputs = in,
                        .input_count = 1,
                        .schema = n->schema,
                        .key = n->keys[0],
                        .has_key = true,
                        .stateful = true};
    if (!op.label) return ck_lower_nomem(s);
    CK_TRY(params_of(s, n, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    CK_TRY(ck_lower_late(s, n, out->op));
    out->hashed = true, out->hash = (ck_columns){own, keys.count};
    return CK_OK;
}
