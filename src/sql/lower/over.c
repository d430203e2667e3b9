/* OVER behind a hash edge on what it is partitioned by; and ranks by event time, which are the same operator with one
 * call, cut at the bound of the rank. */
#include <yyjson.h>

#include "sql/lower/lower_int.h"

static bool add_call(yyjson_mut_doc *doc, yyjson_mut_val *list, const ck_plan_over_call *c) {
    yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
    bool fine = v && yyjson_mut_obj_add_str(doc, v, "fn", c->fn);
    if (fine && c->arg != CK_NO_COLUMN)
        fine =
            yyjson_mut_obj_add_uint(doc, v, "arg", c->arg) && yyjson_mut_obj_add_str(doc, v, "arg_text", c->arg_text);
    if (fine && strcmp(c->fn, "lag") == 0) fine = yyjson_mut_obj_add_uint(doc, v, "offset", c->offset);
    return fine;
}

static ck_status params_of(ck_lower_state *s, const ck_plan_node *n, const ck_plan_over *o, uint64_t limit, bool hide,
                           const char **out) {
    static const char *const by[] = {"event", "processing", "end"};
    ck_lower_params p;
    CK_TRY(ck_lower_params_begin(s, &p));
    CK_TRY(ck_lower_params_columns(s, &p, "keys", o->partition));
    bool fine = yyjson_mut_obj_add_str(p.doc, p.root, "by", by[o->by]) &&
                ck_lower_add_order(p.doc, p.root, "order", o->order, o->order_count) &&
                yyjson_mut_obj_add_str(p.doc, p.root, "unit", o->range ? "range" : "rows") &&
                (o->bounded ? yyjson_mut_obj_add_uint(p.doc, p.root, "preceding", o->preceding)
                            : yyjson_mut_obj_add_null(p.doc, p.root, "preceding"));
    if (fine && o->whole) fine = yyjson_mut_obj_add_bool(p.doc, p.root, "whole", true);
    if (fine && o->ties_reversed) fine = yyjson_mut_obj_add_bool(p.doc, p.root, "ties_desc", true);
    if (fine && limit != UINT64_MAX) fine = yyjson_mut_obj_add_uint(p.doc, p.root, "limit", limit);
    if (fine && hide) fine = yyjson_mut_obj_add_bool(p.doc, p.root, "hide", true);
    yyjson_mut_val *list = fine ? yyjson_mut_obj_add_arr(p.doc, p.root, "calls") : NULL;
    for (uint32_t i = 0; list && i < o->call_count; i++)
        if (!add_call(p.doc, list, &o->calls[i])) list = NULL;
    if (!list) return ck_lower_nomem(s);
    CK_TRY(ck_lower_params_late(s, &p, n));
    return ck_lower_params_end(s, &p, out);
}

/* How far a RANGE over time goes back, in words; NULL: it is over numbers. */
static const char *range_of(ck_lower_state *s, const ck_schema *in, const ck_plan_over *o, ck_status *st) {
    if (!o->range || o->order_count == 0 || o->preceding == 0) return NULL;
    ck_kind k = in->fields[o->order[0].column].type->kind;
    bool stamp = k == CK_TYPE_TIMESTAMP || k == CK_TYPE_TIMESTAMP_LTZ;
    if (!stamp && o->by != CK_BY_EVENT_TIME) return NULL; /* a BIGINT is milliseconds there */
    const char *text = ck_label_duration(s, (int64_t)o->preceding * (stamp ? 1 : 1000));
    if (!text) *st = CK_NOMEM;
    return text;
}

static ck_status put_frame(ck_lower_state *s, const ck_schema *in, const ck_plan_over *o, const char *before,
                           ck_bytes *text) {
    ck_status st = CK_OK;
    if (!o->bounded && !o->range) return ck_bytes_printf(text, "%sROWS UNBOUNDED PRECEDING", before);
    if (!o->bounded) return o->whole ? ck_bytes_printf(text, "%sall rows", before) : CK_OK;
    const char *range = range_of(s, in, o, &st);
    if (st != CK_OK) return st;
    if (range) return ck_bytes_printf(text, "%sRANGE %s PRECEDING", before, range);
    return ck_bytes_printf(text, "%s%s %llu PRECEDING", before, o->range ? "RANGE" : "ROWS",
                           (unsigned long long)o->preceding);
}

/* "PARTITION BY k ORDER BY ts ROWS 9 PRECEDING: avg(price)" */
static const char *label_of(ck_lower_state *s, const ck_schema *in, const ck_plan_over *o, uint64_t limit) {
    ck_bytes text;
    const char *partition = ck_label_columns(s, in, o->partition);
    ck_bytes_init(&text, s->arena->mem, SIZE_MAX);
    ck_status st = partition ? CK_OK : CK_NOMEM;
    if (st == CK_OK && *partition) st = ck_bytes_printf(&text, "PARTITION BY %s", partition);
    if (st == CK_OK && o->by == CK_BY_PROCESSING_TIME)
        st = ck_bytes_printf(&text, "%sORDER BY PROCTIME()", text.n ? " " : "");
    for (uint32_t i = 0; st == CK_OK && i < o->order_count; i++)
        st = ck_bytes_printf(&text, "%s%s%s",
                             i        ? ", "
                             : text.n ? " ORDER BY "
                                      : "ORDER BY ",
                             in->fields[o->order[i].column].name, o->order[i].descending ? " DESC" : "");
    if (st == CK_OK) st = put_frame(s, in, o, text.n ? " " : "", &text);
    for (uint32_t i = 0; st == CK_OK && i < o->call_count; i++)
        st = ck_bytes_printf(&text, "%s%s(%s)",
                             i        ? ", "
                             : text.n ? ": "
                                      : "",
                             o->calls[i].fn,
                             o->calls[i].arg != CK_NO_COLUMN        ? o->calls[i].arg_text
                             : strcmp(o->calls[i].fn, "count") == 0 ? "*"
                                                                    : "");
    if (st == CK_OK && limit != UINT64_MAX) st = ck_bytes_printf(&text, " LIMIT %llu", (unsigned long long)limit);
    return ck_label_cut(s, &text, st);
}

static ck_status lower(ck_lower_state *s, const ck_plan_node *n, const ck_plan_over *o, uint64_t limit, bool hide,
                       ck_lowered *out) {
    const ck_plan_node *input = n->inputs[0];
    ck_planned_input *in = CK_LOWER_ARRAY(s, 1, ck_planned_input);
    CK_TRY(ck_lower_node(s, input, out));
    if (!in) return CK_NOMEM;
    bool together = ck_lower_is_hashed_by(out, o->partition);
    *in = (ck_planned_input){.op = out->op,
                             .kind = together ? CK_EDGE_FORWARD : CK_EDGE_HASH,
                             .key = together ? (ck_columns){0} : o->partition,
                             .mode = input->mode,
                             .bounded = input->bounded};
    ck_planned_op op = {.base = n->identity,
                        .canonical = n->canonical,
                        .type = "over",
                        .label = label_of(s, input->schema, o, limit),
                        .inputs = in,
                        .input_count = 1,
                        .schema = n->schema,
                        .has_key = n->key_count > 0,
                        .final = n->final && o->by == CK_BY_END,
                        .stateful = true};
    if (n->key_count) op.key = n->keys[0];
    if (!op.label) return ck_lower_nomem(s);
    CK_TRY(params_of(s, n, o, limit, hide, &op.params));
    CK_TRY(ck_lower_add(s, &op, &out->op));
    CK_TRY(ck_lower_late(s, n, out->op));
    out->hashed = true, out->hash = o->partition;
    return CK_OK;
}

ck_status ck_lower_over(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    return lower(s, n, &n->over, UINT64_MAX, false, out);
}

ck_status ck_lower_timed_rank(ck_lower_state *s, const ck_plan_node *n, ck_lowered *out) {
    static const char *const ranks[] = {"row_number", "rank", "dense_rank"};
    ck_plan_over_call call = {.fn = ranks[n->top.rank], .arg = CK_NO_COLUMN, .type = ck_type_simple(CK_TYPE_BIGINT)};
    ck_plan_over over = {.by = CK_BY_EVENT_TIME,
                         .partition = n->top.partition,
                         .order = n->top.order,
                         .order_count = n->top.order_count,
                         .range = n->top.rank != CK_RANK_ROW_NUMBER,
                         .calls = &call,
                         .call_count = 1};
    return lower(s, n, &over, n->top.limit, !n->top.rank_column, out);
}
