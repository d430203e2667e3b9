/* The warning that state grows without end: what is kept, how much of memory each takes, and what would bound it. */
#include "sql/bind/bind_int.h"
#include "sql/script_int.h"

/* What a thing that is kept takes beside its columns, about: its place in the index, in an order, in a list. */
enum { INDEX_BYTES = 8, ORDER_BYTES = 32, LIST_BYTES = 16, COUNT_BYTES = 8 };

typedef struct size { /* of one */
    uint32_t columns;
    uint64_t bytes;
    bool texts; /* which take more, beyond twelve bytes */
} size;

static void add_type(size *s, const ck_type *t) {
    static const uint8_t bytes[] = {
        [CK_PHYS_NULL] = 0,  [CK_PHYS_BOOL] = 1,  [CK_PHYS_I64] = 8,   [CK_PHYS_F64] = 8,
        [CK_PHYS_I128] = 16, [CK_PHYS_VIEW] = 16, [CK_PHYS_LIST] = 16, [CK_PHYS_STRUCT] = 16};
    ck_phys p = ck_type_phys(t);
    s->bytes += bytes[p];
    s->columns++;
    s->texts |= p == CK_PHYS_VIEW || p == CK_PHYS_LIST || p == CK_PHYS_STRUCT;
}

static void add_columns(size *s, const ck_schema *schema, ck_columns c) {
    for (uint32_t i = 0; i < c.count; i++) add_type(s, schema->fields[c.at[i]].type);
}

static void add_all(size *s, const ck_schema *schema) {
    for (uint32_t i = 0; i < schema->field_count; i++) add_type(s, schema->fields[i].type);
}

/* A group: its keys, and what its aggregates have come to. */
static size of_group(const ck_plan_node *n) {
    size s = {.bytes = INDEX_BYTES};
    bool changes = n->inputs[0]->mode == CK_MODE_RETRACT;
    add_columns(&s, n->inputs[0]->schema, n->aggregate.keys);
    if (changes) s.bytes += COUNT_BYTES;
    for (uint32_t i = 0; i < n->aggregate.call_count; i++) {
        const ck_plan_aggregate *c = &n->aggregate.calls[i];
        bool count = strcmp(c->fn->name, "count") == 0;
        if (count && c->arg == CK_NO_COLUMN && changes) continue; /* the one that is there anyhow */
        add_type(&s, c->type);
        if (!count && changes) s.bytes += COUNT_BYTES;
        if (strcmp(c->fn->name, "avg") == 0) s.bytes += COUNT_BYTES;
    }
    return s;
}

/* What is kept of a row beside its group: the key again, its values, what they are in order of. */
static size of_values(const ck_plan_node *n) {
    const ck_plan_node *input = n->inputs[0];
    size s = {.bytes = INDEX_BYTES + COUNT_BYTES};
    add_columns(&s, input->schema, n->aggregate.keys);
    for (uint32_t i = 0; i < n->aggregate.call_count; i++) {
        const ck_plan_aggregate *c = &n->aggregate.calls[i];
        if (!ck_plan_call_keeps(input, c)) continue;
        add_type(&s, input->schema->fields[c->arg].type);
        for (uint32_t k = 0; k < c->order_count; k++)
            if (c->order[k].column != c->arg) add_type(&s, input->schema->fields[c->order[k].column].type);
    }
    return s;
}

static size of_row(const ck_plan_node *input, uint64_t beside) {
    size s = {.bytes = INDEX_BYTES + beside};
    add_all(&s, input->schema);
    return s;
}

static size of_key(const ck_plan_node *n) {
    size s = {.bytes = INDEX_BYTES + COUNT_BYTES + 8};
    bool over = n->kind == CK_PLAN_OVER;
    add_columns(&s, n->inputs[0]->schema, over ? n->over.partition : n->top.partition);
    for (uint32_t i = 0; over && i < n->over.call_count; i++) add_type(&s, n->over.calls[i].type);
    return s;
}

static size size_of(const ck_plan_node *n) {
    switch (n->kind) {
    case CK_PLAN_AGGREGATE: return ck_plan_keeps_values(n) ? of_values(n) : of_group(n);
    case CK_PLAN_SET_OP: return of_row(n, 2 * COUNT_BYTES);
    case CK_PLAN_OVER: return of_key(n);
    case CK_PLAN_TOP_N: return n->top.timed ? of_key(n) : of_row(n->inputs[0], ORDER_BYTES + COUNT_BYTES);
    default: return of_row(n->inputs[0], LIST_BYTES);
    }
}

static unsigned long long bytes_of(const size *s) { return (unsigned long long)s->bytes + (s->columns + 7) / 8; }

/* "about 33 bytes each (33 MB a million) and what their texts take" */
static const char *size_text(ck_binder *b, const ck_plan_node *n) {
    size s = size_of(n);
    if (n->kind != CK_PLAN_JOIN)
        return ck_arena_printf(b->plan.arena, "about %llu bytes each (%llu MB a million)%s", bytes_of(&s), bytes_of(&s),
                               s.texts ? " and what their texts take" : "");
    bool left = ck_plan_join_grows(n, 0), right = ck_plan_join_grows(n, 1);
    size r = of_row(n->inputs[1], LIST_BYTES);
    const char *texts = (left && s.texts) || (right && r.texts) ? " and what their texts take" : "";
    if (left != right)
        return ck_arena_printf(b->plan.arena, "about %llu bytes each (%llu MB a million)%s", bytes_of(left ? &s : &r),
                               bytes_of(left ? &s : &r), texts);
    return ck_arena_printf(b->plan.arena,
                           "about %llu bytes each on the left and %llu on the right (%llu and %llu MB a "
                           "million)%s",
                           bytes_of(&s), bytes_of(&r), bytes_of(&s), bytes_of(&r), texts);
}

static const char *what_of(const ck_plan_node *n) {
    if (n->kind == CK_PLAN_AGGREGATE && ck_plan_keeps_values(n)) return "value";
    if (n->kind == CK_PLAN_AGGREGATE && n->aggregate.call_count) return "group";
    return n->kind == CK_PLAN_OVER || (n->kind == CK_PLAN_TOP_N && n->top.timed) ? "key" : "row";
}

/* Of a join that keeps one side for ever, which. */
static const char *where_of(const ck_plan_node *n) {
    if (n->kind != CK_PLAN_JOIN || ck_plan_join_grows(n, 0) == ck_plan_join_grows(n, 1)) return "";
    return ck_plan_join_grows(n, 0) ? " on its left" : " on its right";
}

static const char *way_out(const ck_plan_node *n) {
    if (n->kind == CK_PLAN_AGGREGATE && n->aggregate.keys.count == 0)
        return "a time window would bound it, and so would APPROX_COUNT_DISTINCT or APPROX_PERCENTILE";
    if (n->kind == CK_PLAN_OVER) return "a RANGE of an INTERVAL before the row, or fewer keys, would bound it";
    if (n->kind == CK_PLAN_TOP_N && n->top.timed)
        return "a time window (PARTITION BY window_start, window_end) would bound it";
    if (ck_plan_groups_half_a_window(n))
        return "GROUP BY window_start and window_end, both, and a window goes when it is over";
    if (n->kind == CK_PLAN_JOIN && n->join.in_time)
        return "a bound on the time between them in both directions would bound it";
    return "state_ttl bounds it - the option of a table, or SET state_ttl = '1 day' -, and so does a time window";
}

static ck_status warn(ck_script *s, const ck_plan_node *n, bool *seen) {
    if (seen[n->id]) return CK_OK;
    seen[n->id] = true;
    for (uint32_t i = 0; i < n->input_count; i++) CK_TRY(warn(s, n->inputs[i], seen));
    if (!ck_plan_grows(n)) return CK_OK;
    const char *each = size_text(&s->b, n);
    if (!each) return ck_bind_nomem(&s->b);
    return ck_bind_warn(&s->b, "state grows without end: %s keeps every %s it has ever seen%s, %s; %s", n->identity,
                        what_of(n), where_of(n), each, way_out(n));
}

ck_status ck_script_warn_of_growth(ck_script *s, const ck_output *outputs, uint32_t count) {
    bool *seen = CK_BIND_ARRAY(&s->b, s->b.plan.node_count, bool);
    if (!seen) return CK_NOMEM;
    for (uint32_t i = 0; i < count; i++) CK_TRY(warn(s, outputs[i].node, seen));
    return CK_OK;
}
