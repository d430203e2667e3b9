/* Regions of graphs: which operators belong together, how they are numbered, and what the graph of one is. */
#include "graph/regions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "os/test_proc.h"

enum { OPS_MAX = 40 };

typedef struct fixture {
    ck_test_proc t;
    ck_arena a;
    ck_schema schema;
    ck_field field;
    ck_error err;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->t);
    ck_arena_init(&f->a, ck_proc_mem(&f->t.proc, CK_MEM_PLAN), SIZE_MAX);
    f->field = (ck_field){"x", ck_type_simple(CK_TYPE_BIGINT), false};
    f->schema = (ck_schema){&f->field, 1};
    f->err = CK_ERROR_INIT;
    *state = f;
    return 0;
}
static int tear_down(void **state) {
    fixture *f = *state;
    ck_arena_destroy(&f->a);
    ck_test_proc_destroy(&f->t);
    free(f);
    return 0;
}

static const char *uid_of(fixture *f, uint32_t i) { return ck_arena_printf(&f->a, "op%02u", i); }

/* Operator i with those of its inputs that from[i] has bits for. */
static const ck_graph *make(fixture *f, const uint64_t *from, uint32_t n) {
    ck_graph_builder b;
    ck_graph *g;
    assert_int_equal(ck_graph_builder_init(&b, &f->a, "orders"), CK_OK);
    b.graph->key_groups = 64;
    b.graph->timezone = "Europe/Berlin";
    for (uint32_t i = 0; i < n; i++) {
        ck_graph_input *in = ck_arena_array(&f->a, OPS_MAX, sizeof *in);
        uint32_t count = 0;
        for (uint32_t k = 0; k < i; k++)
            if (from[i] >> k & 1) in[count++] = (ck_graph_input){.uid = uid_of(f, k), .kind = CK_EDGE_REBALANCE};
        const ck_graph_op op = {.uid = uid_of(f, i),
                                .type = count ? "filter" : "source.file",
                                .label = "for people",
                                .inputs = in,
                                .input_count = count,
                                .schema = &f->schema,
                                .parallelism = 1 + i % 3,
                                .state_fingerprint = i,
                                .min_parallelism = CK_PARALLELISM_DEFAULT,
                                .max_parallelism = CK_PARALLELISM_DEFAULT};
        assert_int_equal(ck_graph_add(&b, &op, NULL), CK_OK);
    }
    if (ck_graph_check(&b, &g, &f->err) != CK_OK) fail_msg("%s", f->err.msg);
    return g;
}

static void expect(fixture *f, const uint64_t *from, uint32_t n, const uint32_t *want, uint32_t count) {
    ck_graph_regions r;
    const ck_graph *g = make(f, from, n);
    assert_int_equal(ck_graph_regions_of(&f->a, g, &r, &f->err), CK_OK);
    assert_int_equal(r.count, count);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(g->ops[i].uid, uid_of(f, i)); /* in the order they were added */
        assert_int_equal(r.of_op[i], want[i]);
        assert_int_equal(r.op_ids[i], ck_op_id(g->ops[i].uid));
    }
}

static void by_what_is_connected(void **state) {
    fixture *f = *state;
    expect(f, (uint64_t[]){0}, 1, (uint32_t[]){0}, 1);
    expect(f, (uint64_t[]){0, 0, 0}, 3, (uint32_t[]){0, 1, 2}, 3);
    expect(f, (uint64_t[]){0, 0, 2, 1}, 4, (uint32_t[]){0, 1, 1, 0}, 2);
    expect(f, (uint64_t[]){0, 0, 0, 6}, 4, (uint32_t[]){0, 1, 1, 1}, 2);       /* a join */
    expect(f, (uint64_t[]){0, 0, 0, 6, 5}, 5, (uint32_t[]){0, 0, 0, 0, 0}, 1); /* and one over both */
    expect(f, (uint64_t[]){0, 1, 1, 0, 8, 2, 4}, 7, (uint32_t[]){0, 0, 0, 1, 1, 0, 0},
           2); /* one table, several sinks */
}

/* Against the plain definition: who reaches whom, whichever way the edges go. */
static void of_any_graph(void **state) {
    fixture *f = *state;
    uint64_t seed = 88172645463325252;
    for (int round = 0; round < 200; round++) {
        uint64_t from[OPS_MAX] = {0};
        bool joined[OPS_MAX][OPS_MAX] = {{false}};
        ck_graph_regions r;
        uint32_t n = 1 + (uint32_t)round % OPS_MAX, roots = 0;
        for (uint32_t i = 0; i < n; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            if (i && seed % 3) from[i] |= 1ull << (seed >> 8) % i;
            if (i && seed % 7 == 1) from[i] |= 1ull << (seed >> 16) % i;
            joined[i][i] = true;
            for (uint32_t k = 0; k < i; k++)
                if (from[i] >> k & 1) joined[i][k] = joined[k][i] = true;
        }
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t j = 0; j < n && joined[i][k]; j++) joined[i][j] |= joined[k][j];
        const ck_graph *g = make(f, from, n);
        assert_int_equal(ck_graph_regions_of(&f->a, g, &r, &f->err), CK_OK);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t first = 0;
            while (!joined[i][first]) first++;
            if (first == i) assert_int_equal(r.of_op[i], roots++); /* numbered by the first */
            assert_int_equal(r.of_op[i], r.of_op[first]);
        }
        assert_int_equal(r.count, roots);
        uint32_t ops = 0;
        for (uint32_t region = 0; region < r.count; region++) {
            const ck_graph *part;
            assert_int_equal(ck_graph_region(&f->a, g, &r, region, &part, &f->err), CK_OK);
            for (uint32_t i = 0; i < part->op_count; i++, ops++) {
                const ck_graph_op *op = ck_graph_find(g, part->ops[i].uid);
                assert_int_equal(r.of_op[op - g->ops], region);
                if (i) assert_true(op > ck_graph_find(g, part->ops[i - 1].uid)); /* in the same order */
            }
        }
        assert_int_equal(ops, n);
    }
}

static void a_part_says_what_the_graph_says(void **state) {
    fixture *f = *state;
    ck_graph_regions r;
    const ck_graph *g = make(f, (uint64_t[]){0, 0, 2, 1, 4}, 5), *part, *one;
    assert_int_equal(ck_graph_regions_of(&f->a, g, &r, &f->err), CK_OK);
    assert_int_equal(ck_graph_region(&f->a, g, &r, 1, &part, &f->err), CK_OK);
    assert_int_equal(part->op_count, 3);
    assert_string_equal(part->name, g->name);
    assert_string_equal(part->timezone, "Europe/Berlin");
    assert_int_equal(part->key_groups, 64);
    assert_string_equal(part->settings, g->settings);
    for (uint32_t i = 0; i < part->op_count; i++) {
        const ck_graph_op *is = &part->ops[i], *was = ck_graph_find(g, is->uid);
        assert_int_equal(is->semantic_fingerprint, was->semantic_fingerprint);
        assert_int_equal(is->state_fingerprint, was->state_fingerprint);
        assert_int_equal(is->parallelism, was->parallelism);
        assert_string_equal(is->label, was->label);
        assert_string_equal(is->params, was->params);
    }
    g = make(f, (uint64_t[]){0, 1, 2}, 3); /* a graph that is one region is its own */
    assert_int_equal(ck_graph_regions_of(&f->a, g, &r, &f->err), CK_OK);
    assert_int_equal(ck_graph_region(&f->a, g, &r, 0, &one, &f->err), CK_OK);
    assert_ptr_equal(one, g);
}

static void without_memory(void **state) {
    fixture *f = *state;
    const ck_graph *g = make(f, (uint64_t[]){0, 0, 2, 1}, 4);
    for (uint64_t nth = 1;; nth++) {
        ck_arena a;
        ck_graph_regions r;
        const ck_graph *part;
        ck_arena_init(&a, ck_proc_mem(&f->t.proc, CK_MEM_PLAN), SIZE_MAX);
        ck_tracked_heap_fail_nth(f->t.heap, nth);
        ck_status s = ck_graph_regions_of(&a, g, &r, &f->err);
        if (s == CK_OK) s = ck_graph_region(&a, g, &r, 1, &part, &f->err);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        ck_arena_destroy(&a);
        if (!fired) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_what_is_connected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_any_graph, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_part_says_what_the_graph_says, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
