/* OVER: results beside each row; and ranks that time settles, which are OVER too. */
#include "sql/plan/plan_int.h"

static ck_status text_of(ck_plan *p, const ck_plan_node *input, const ck_plan_over *o, bool with_calls,
                         const char **out) {
    static const char *const by[] = {"", "proctime", ""};
    ck_bytes text;
    ck_bytes_init(&text, p->arena->mem, SIZE_MAX);
    ck_status s = CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < o->partition.count; i++)
        s = ck_bytes_printf(&text, "%s%s", i ? "," : "", input->schema->fields[o->partition.at[i]].name);
    if (s == CK_OK) s = ck_bytes_printf(&text, ";%s", by[o->by]);
    for (uint32_t i = 0; s == CK_OK && i < o->order_count; i++)
        s = ck_bytes_printf(&text, "%s%s%s", i ? "," : "", input->schema->fields[o->order[i].column].name,
                            o->order[i].descending ? " desc" : "");
    if (s == CK_OK)
        s = ck_bytes_printf(&text, ";%s%s", o->range ? "range" : "rows",
                            o->whole           ? " whole"
                            : o->ties_reversed ? " reversed"
                                               : "");
    if (s == CK_OK && o->bounded) s = ck_bytes_printf(&text, " %llu", (unsigned long long)o->preceding);
    for (uint32_t i = 0; s == CK_OK && with_calls && i < o->call_count; i++)
        s = ck_bytes_printf(&text, ";%s(%s,%llu)", o->calls[i].fn, o->calls[i].arg_text ? o->calls[i].arg_text : "",
                            (unsigned long long)o->calls[i].offset);
    *out = s == CK_OK ? ck_arena_strndup(p->arena, text.p ? text.p : "", text.n) : NULL;
    ck_bytes_destroy(&text);
    return *out ? CK_OK : ck_plan_nomem(p);
}

ck_status ck_plan_over_node(ck_plan *p, ck_plan_node *input, const ck_plan_over *over, const char *const *names,
                            ck_plan_node **out) {
    ck_plan_node *n;
    ck_schema *schema;
    ck_field *fields;
    const char *text, *key;
    uint32_t width = input->schema->field_count;
    CK_TRY(ck_plan_new(p, CK_PLAN_OVER, &input, 1, &n));
    CK_TRY(ck_plan_schema_new(p, width + over->call_count, &schema, &fields));
    if (width) memcpy(fields, input->schema->fields, width * sizeof *fields);
    for (uint32_t i = 0; i < over->call_count; i++)
        fields[width + i] = (ck_field){names[i], over->calls[i].type, over->calls[i].nullable};
    n->schema = schema;
    n->over = *over;
    n->mode = CK_MODE_APPEND;
    n->final = over->by == CK_BY_END;
    memcpy(n->keys, input->keys, sizeof n->keys);
    n->key_count = input->key_count;
    CK_TRY(text_of(p, input, over, true, &text));
    CK_TRY(text_of(p, input, over, false, &key));
    ck_plan_canonical(n, ck_view_of(text));
    CK_TRY(ck_plan_identify(p, n, "over", key));
    *out = n;
    return CK_OK;
}

bool ck_plan_over_keeps(const ck_plan_node *n) {
    const ck_plan_over *o = &n->over;
    if (!o->bounded || !o->range) return true; /* a few rows or numbers a key */
    for (uint32_t i = 0; i < o->call_count; i++)
        if (strcmp(o->calls[i].fn, "lag") == 0 || strstr(o->calls[i].fn, "rank") ||
            strcmp(o->calls[i].fn, "row_number") == 0)
            return true;
    return false;
}

bool ck_plan_top_is_timed(const ck_plan_node *input, const ck_plan_top *top) {
    return input->mode == CK_MODE_APPEND && top->order_count > 0 && !top->order[0].descending && top->offset == 0 &&
           ck_plan_time_of(input, top->order[0].column).role == CK_TIME_ROW;
}
