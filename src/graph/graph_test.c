#include "graph/graph.h"
#include "graph/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct fixture {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_arena arena;
} fixture;

static int setup(void **state) {
    static fixture f;
    if (ck_tracked_heap_new(&f.heap) != CK_OK) return -1;
    ck_budget_init(&f.budget, ck_tracked_heap_base(f.heap), 0);
    ck_arena_init(&f.arena, (ck_mem){&f.budget, CK_MEM_PLAN}, 256 << 20);
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_arena_destroy(&f->arena);
    size_t left = ck_tracked_heap_live_blocks(f->heap);
    ck_tracked_heap_free(f->heap);
    return left ? -1 : 0;
}

static ck_schema schema_of(fixture *f) {
    ck_field *fields = ck_arena_array(&f->arena, 2, sizeof *fields);
    fields[0] = (ck_field){"usr", ck_type_simple(CK_TYPE_VARCHAR), true};
    fields[1] = (ck_field){"amount", ck_type_decimal(&f->arena, 10, 2), false};
    return (ck_schema){fields, 2};
}

static const uint32_t key0[] = {0};

/* source -> filter -(hash)-> agg -> sink; added in the order of `order`. */
static void add_pipeline(fixture *f, ck_graph_builder *b, const char *order) {
    ck_schema *schema = CK_ARENA_NEW(&f->arena, ck_schema);
    *schema = schema_of(f);
    ck_graph_input *in = ck_arena_array(&f->arena, 3, sizeof *in);
    in[0] = (ck_graph_input){.uid = "source:orders", .kind = CK_EDGE_FORWARD, .bounded = true};
    in[1] = (ck_graph_input){.uid = "filter(x)", .kind = CK_EDGE_HASH, .key = key0, .key_count = 1, .bounded = true};
    in[2] = (ck_graph_input){.uid = "agg(usr)<-orders", .kind = CK_EDGE_FORWARD, .mode = CK_MODE_RETRACT};
    ck_graph_op ops[4] = {
        {.uid = "source:orders",
         .type = "source.file",
         .params = "{\"path\":\"a.ndjson\",\"x\":1.50}",
         .schema = schema},
        {.uid = "filter(x)",
         .type = "filter",
         .label = "WHERE x",
         .inputs = &in[0],
         .input_count = 1,
         .schema = schema},
        {.uid = "agg(usr)<-orders",
         .type = "group_agg",
         .inputs = &in[1],
         .input_count = 1,
         .schema = schema,
         .key = key0,
         .key_count = 1,
         .final = true,
         .state_fingerprint = 0xfedcba9876543210},
        {.uid = "sink:out",
         .type = "sink.print",
         .inputs = &in[2],
         .input_count = 1,
         .schema = schema,
         .min_parallelism = CK_PARALLELISM_DEFAULT,
         .max_parallelism = CK_PARALLELISM_DEFAULT},
    };
    for (; *order; order++) assert_int_equal(ck_graph_add(b, &ops[*order - '0'], NULL), CK_OK);
}

static ck_graph *pipeline(fixture *f, const char *order) {
    ck_graph_builder b;
    ck_graph *g = NULL;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_graph_builder_init(&b, &f->arena, "orders"), CK_OK);
    add_pipeline(f, &b, order);
    if (ck_graph_check(&b, &g, &err) != CK_OK) fail_msg("%s", err.msg);
    return g;
}

static void sorts_inputs_before_users(void **state) {
    fixture *f = *state;
    ck_graph *g = pipeline(f, "3210");
    assert_int_equal(g->op_count, 4);
    assert_string_equal(g->ops[0].uid, "source:orders");
    assert_string_equal(g->ops[1].uid, "filter(x)");
    assert_string_equal(g->ops[3].uid, "sink:out");
    assert_string_equal(g->ops[1].params, "{}");
    assert_string_equal(g->timezone, "UTC");
    assert_true(g->ops[0].semantic_fingerprint != 0);
    assert_int_equal(ck_graph_hash(g), ck_graph_hash(pipeline(f, "0123")));
    assert_ptr_equal(ck_graph_find(g, "filter(x)"), &g->ops[1]);
    assert_null(ck_graph_find(g, "filter"));
}

static void json_goes_both_ways(void **state) {
    fixture *f = *state;
    ck_graph *g = pipeline(f, "0123"), *h;
    ck_bytes text, again;
    ck_error err = CK_ERROR_INIT;
    ck_bytes_init(&text, f->arena.mem, 1 << 20);
    ck_bytes_init(&again, f->arena.mem, 1 << 20);
    assert_int_equal(ck_graph_encode(g, &text), CK_OK);
    if (ck_graph_decode(&f->arena, ck_bytes_as_view(&text), &h, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_graph_encode(h, &again), CK_OK);
    assert_int_equal(text.n, again.n);
    assert_memory_equal(text.p, again.p, text.n);
    assert_int_equal(ck_graph_hash(g), ck_graph_hash(h));
    assert_int_equal(h->ops[2].state_fingerprint, 0xfedcba9876543210);
    assert_string_equal(h->ops[0].params, "{\"path\":\"a.ndjson\",\"x\":1.50}"); /* numbers keep their text */
    assert_int_equal(h->ops[3].max_parallelism, CK_PARALLELISM_DEFAULT);
    assert_int_equal(h->ops[0].max_parallelism, 0);
    assert_int_equal(h->ops[2].inputs[0].kind, CK_EDGE_HASH);
    assert_true(ck_type_eq(h->ops[0].schema->fields[1].type, g->ops[0].schema->fields[1].type));
    ck_bytes_destroy(&text);
    ck_bytes_destroy(&again);
}

static void the_hash_knows_what_the_job_is(void **state) {
    fixture *f = *state;
    uint64_t base = ck_graph_hash(pipeline(f, "0123")), x = 0;
    ck_graph_builder b;
    ck_graph *g;
    for (int change = -2; change < 5; change++) {
        assert_int_equal(ck_graph_builder_init(&b, &f->arena, "another name"), CK_OK);
        add_pipeline(f, &b, "0123");
        if (change == -2) b.ops[1]->params = "{\"x\":[{}]}";
        if (change == -1) b.ops[1]->params = "{\"ttl_us\":5,\"ttl_time\":\"event\",\"x\":[{\"at\":[1,2]}]}";
        if (change == 1) b.ops[1]->parallelism = 4, b.ops[0]->parallelism = 4, b.ops[1]->label = "other";
        if (change == 2) b.ops[1]->params = "{\"conjuncts\":[1]}";
        if (change == 3) b.ops[2]->final = false;
        if (change == 4) b.graph->timezone = "Europe/Vienna";
        assert_int_equal(ck_graph_check(&b, &g, NULL), CK_OK);
        if (change == -2)
            x = ck_graph_hash(g);
        else if (change == -1) /* how long state is kept, and where something is written */
            assert_int_equal(ck_graph_hash(g), x);
        else if (change < 2)
            assert_int_equal(ck_graph_hash(g), base);
        else
            assert_int_not_equal(ck_graph_hash(g), base);
    }
}

typedef void break_fn(ck_graph_builder *b);
static void bad_uid(ck_graph_builder *b) { b->ops[0]->uid = ""; }
static void twice(ck_graph_builder *b) { b->ops[1]->uid = "source:orders"; }
static void unknown(ck_graph_builder *b) { b->ops[1]->inputs[0].uid = "nobody"; }
static void cycle(ck_graph_builder *b) { b->ops[1]->inputs[0].uid = "agg(usr)<-orders"; }
static void params(ck_graph_builder *b) { b->ops[1]->params = "[1]"; }
static void hash_key(ck_graph_builder *b) {
    static const uint32_t k[] = {2};
    b->ops[2]->inputs[0].key = k;
}
static void out_key(ck_graph_builder *b) {
    static const uint32_t k[] = {7};
    b->ops[2]->key = k;
}
static void rebalance(ck_graph_builder *b) { b->ops[3]->inputs[0].kind = CK_EDGE_REBALANCE; }
static void gather(ck_graph_builder *b) { b->ops[3]->inputs[0].kind = CK_EDGE_GATHER, b->ops[3]->parallelism = 2; }
static void wide(ck_graph_builder *b) { b->ops[2]->parallelism = 129; }
static void bounds(ck_graph_builder *b) { b->ops[2]->min_parallelism = 3, b->ops[2]->max_parallelism = 2; }
static void groups(ck_graph_builder *b) { b->graph->key_groups = 15; }
static void forward_key(ck_graph_builder *b) { b->ops[1]->inputs[0].key_count = 1, b->ops[1]->inputs[0].key = key0; }
static void side(ck_graph_builder *b) { b->ops[2]->inputs[0].port = 1; }
static void not_utf8(ck_graph_builder *b) { b->ops[1]->uid = "\xff\xfe", b->ops[2]->inputs[0].uid = "\xff\xfe"; }

static void what_does_not_fit_is_named(void **state) {
    fixture *f = *state;
    static const struct {
        break_fn *fn;
        const char *says;
    } cases[] = {
        {bad_uid, "no uid"},
        {twice, "two operators have the uid source:orders"},
        {unknown, "input nobody is not in the graph"},
        {cycle, "waits for its own output"},
        {params, "filter(x): params is not a JSON object"},
        {hash_key, "column 2 of 2"},
        {out_key, "key column 7"},
        {rebalance, "retract edge from agg(usr)<-orders cannot be rebalanced"},
        {gather, "must have parallelism 1, not 2"},
        {wide, "parallelism 129 is above the 128 key groups"},
        {bounds, "min_parallelism 3 is above max_parallelism 2"},
        {groups, "key_groups 15"},
        {forward_key, "forward edge from source:orders has a key"},
        {side, "side output"},
        {not_utf8, "not UTF-8"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_graph_builder b;
        ck_graph *g;
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_graph_builder_init(&b, &f->arena, "orders"), CK_OK);
        add_pipeline(f, &b, "0123");
        cases[i].fn(&b);
        assert_int_equal(ck_graph_check(&b, &g, &err), CK_INVALID);
        if (!strstr(err.msg, cases[i].says)) fail_msg("case %zu says \"%s\"", i, err.msg);
    }
}

static void bad_json_names_its_member(void **state) {
    fixture *f = *state;
#define OP(more) "{\"ops\":[{\"uid\":\"a\",\"type\":\"t\",\"schema\":[{\"name\":\"x\",\"type\":\"BIGINT\"}]" more "}]}"
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"", "job graph: it is not JSON"},
        {"[]", "job graph: it is not an object"},
        {"{}", "job graph: member ops is missing"},
        {"{\"ops\":[]}", "no operator"},
        {"{\"ops\":[3]}", "ops[0]: is not an object"},
        {"{\"ops\":[{\"uid\":\"a\"}]}", "ops[0]: member type is missing"},
        {"{\"key_groups\":-1,\"ops\":[]}", "member key_groups is not an integer"},
        {"{\"name\":\"a\\u0000b\",\"ops\":[]}", "member name has a NUL"},
        {OP(",\"parallelism\":\"4\""), "ops[0]: member parallelism is not a number"},
        {OP(",\"parallelism\":4294967296"), "member parallelism is not an integer"},
        {OP(",\"params\":[]"), "ops[0]: member params is not an object"},
        {OP(",\"final\":1"), "member final is not true or false"},
        {OP(",\"state_fingerprint\":\"xyz\""), "16 lower-case hex digits"},
        {OP(",\"branches\":[\"xyz\"]"), "member branches is not 16 lower-case hex digits"},
        {OP(",\"branches\":[1]"), "member branches is not 16 lower-case hex digits"},
        {OP(",\"branches\":{}"), "branches"},
        {OP(",\"inputs\":[{\"uid\":\"b\",\"kind\":\"hashed\"}]"), "ops[0]: inputs[0]: kind \"hashed\""},
        {OP(",\"inputs\":[{\"uid\":\"b\",\"kind\":\"hash\",\"key\":[-1]}]"), "not a list of column numbers"},
        {OP(",\"inputs\":[{\"uid\":\"b\",\"kind\":\"forward\"}]"), "input b is not in the graph"},
        {"{\"ops\":[{\"uid\":\"a\",\"type\":\"t\",\"schema\":[{\"name\":\"x\",\"type\":\"BIGNT\"}]}]}", "schema[0]"},
    };
#undef OP
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_graph *g;
        ck_error err = CK_ERROR_INIT;
        assert_int_not_equal(ck_graph_decode(&f->arena, ck_view_of(cases[i].json), &g, &err), CK_OK);
        if (!strstr(err.msg, cases[i].says)) fail_msg("case %zu says \"%s\"", i, err.msg);
    }
}

static void vertices_are_forward_trees(void **state) {
    fixture *f = *state;
    ck_graph *g = pipeline(f, "0123");
    ck_vertex_plan plan;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_graph_fuse(&f->arena, g, 4, &plan, &err), CK_OK);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.vertices[0].op_count, 2);
    assert_int_equal(plan.vertices[1].op_count, 2);
    assert_int_equal(plan.vertices[0].id, ck_op_id("source:orders"));
    assert_string_equal(plan.vertices[1].ops[0]->uid, "agg(usr)<-orders");
    assert_int_equal(plan.vertex_of_op[3], 1);
    assert_int_equal(plan.vertices[1].parallelism, 4);
    /* one subtask each: the hash edge counts as forward */
    assert_int_equal(ck_graph_fuse(&f->arena, g, 1, &plan, &err), CK_OK);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.vertices[0].op_count, 4);
    assert_int_equal(ck_graph_fuse(&f->arena, g, 129, &plan, &err), CK_INVALID);
    assert_int_equal(ck_graph_fuse(&f->arena, g, 0, &plan, &err), CK_INVALID);
}

static void operators_with_two_inputs_head_a_vertex(void **state) {
    fixture *f = *state;
    ck_schema schema = schema_of(f);
    ck_graph_input to_a[] = {{.uid = "s"}}, to_b[] = {{.uid = "s", .port = 1}}, to_u[] = {{.uid = "a"}, {.uid = "b"}};
    ck_graph_op ops[] = {
        {.uid = "s", .type = "source.x", .schema = &schema},
        {.uid = "a", .type = "filter", .schema = &schema, .inputs = to_a, .input_count = 1},
        {.uid = "b", .type = "filter", .schema = &schema, .inputs = to_b, .input_count = 1},
        {.uid = "u", .type = "union", .schema = &schema, .inputs = to_u, .input_count = 2},
    };
    ck_graph_builder b;
    ck_graph *g;
    ck_vertex_plan plan;
    assert_int_equal(ck_graph_builder_init(&b, &f->arena, "u"), CK_OK);
    for (size_t i = 0; i < 4; i++) assert_int_equal(ck_graph_add(&b, &ops[i], NULL), CK_OK);
    assert_int_equal(ck_graph_check(&b, &g, NULL), CK_OK);
    assert_int_equal(ck_graph_fuse(&f->arena, g, 2, &plan, NULL), CK_OK);
    assert_int_equal(plan.count, 2);
    assert_int_equal(plan.vertices[0].op_count, 3);
    assert_string_equal(plan.vertices[1].ops[0]->uid, "u");
    /* a forward edge between different parallelisms is refused by name */
    g->ops[3].parallelism = 1;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_graph_fuse(&f->arena, g, 2, &plan, &err), CK_INVALID);
    assert_non_null(strstr(err.msg, "cannot be forwarded to u with 1"));
}

static void state_fingerprints_follow_the_layout(void **state) {
    fixture *f = *state;
    ck_field k = {"usr", ck_type_simple(CK_TYPE_VARCHAR), false}, v = {"n", ck_type_simple(CK_TYPE_BIGINT), false};
    ck_field w = {"n", ck_type_simple(CK_TYPE_DOUBLE), false};
    ck_slot_schema s[2] = {{.slot = "agg",
                            .state_type = "group_agg",
                            .version = 1,
                            .partition = &k,
                            .partition_count = 1,
                            .values = &v,
                            .value_count = 1},
                           {.slot = "distinct", .state_type = "set", .partition = &k, .partition_count = 1}};
    ck_slot_schema swapped[2] = {s[1], s[0]};
    uint64_t a, b;
    assert_int_equal(ck_slots_fingerprint(&f->arena, NULL, 0, &a), CK_OK);
    assert_int_equal(a, 0);
    assert_int_equal(ck_slots_fingerprint(&f->arena, s, 2, &a), CK_OK);
    assert_int_equal(ck_slots_fingerprint(&f->arena, swapped, 2, &b), CK_OK);
    assert_int_equal(a, b);
    s[0].version = 2, s[0].ttl_us = 5;
    assert_int_equal(ck_slots_fingerprint(&f->arena, s, 2, &b), CK_OK);
    assert_int_equal(a, b);
    s[0].values = &w;
    assert_int_equal(ck_slots_fingerprint(&f->arena, s, 2, &b), CK_OK);
    assert_int_not_equal(a, b);
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    ck_bytes text;
    ck_bytes_init(&text, f->arena.mem, 1 << 20);
    assert_int_equal(ck_graph_encode(pipeline(f, "0123"), &text), CK_OK);
    for (uint64_t n = 1;; n++) {
        ck_arena a;
        ck_graph *g;
        ck_vertex_plan plan;
        ck_error err = CK_ERROR_INIT;
        ck_arena_init(&a, f->arena.mem, 1 << 20);
        ck_tracked_heap_fail_nth(f->heap, n);
        ck_status s = ck_graph_decode(&a, ck_bytes_as_view(&text), &g, &err);
        if (s == CK_OK) s = ck_graph_fuse(&a, g, 2, &plan, &err);
        bool fired = ck_tracked_heap_fired(f->heap);
        ck_tracked_heap_fail_nth(f->heap, 0);
        ck_arena_destroy(&a);
        if (!fired) {
            assert_int_equal(s, CK_OK);
            break;
        }
        assert_int_equal(s, CK_NOMEM);
    }
    ck_bytes_destroy(&text);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(sorts_inputs_before_users),
        T(json_goes_both_ways),
        T(the_hash_knows_what_the_job_is),
        T(what_does_not_fit_is_named),
        T(bad_json_names_its_member),
        T(vertices_are_forward_trees),
        T(operators_with_two_inputs_head_a_vertex),
        T(state_fingerprints_follow_the_layout),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
