#include "graph/match.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct fixture {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_arena arena;
    ck_error err;
} fixture;

static int setup(void **state) {
    static fixture f;
    if (ck_tracked_heap_new(&f.heap) != CK_OK) return -1;
    ck_budget_init(&f.budget, ck_tracked_heap_base(f.heap), 0);
    ck_arena_init(&f.arena, (ck_mem){&f.budget, CK_MEM_PLAN}, 64 << 20);
    f.err = CK_ERROR_INIT;
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

/* "1,2,3": what an operator would be over each branch of a UNION ALL alone. */
static void read_branches(fixture *f, const char *text, ck_graph_op *op) {
    uint64_t *branches = ck_arena_array(&f->arena, 8, sizeof *branches);
    char *end;
    op->branches = branches;
    for (; *text == ',' || *text == ':'; text = end) branches[op->branch_count++] = strtoull(text + 1, &end, 10);
}

/* "uid=meaning uid=meaning:branch,branch ...": operators with state; a type per first letter. */
static ck_graph *graph_of(fixture *f, const char *text) {
    static const ck_schema none;
    ck_graph *g = CK_ARENA_NEW(&f->arena, ck_graph);
    g->ops = ck_arena_array(&f->arena, 8, sizeof *g->ops);
    while (*text) {
        size_t n = strcspn(text, "=");
        const char *uid = ck_arena_strndup(&f->arena, text, n);
        text += n + 1;
        g->ops[g->op_count++] = (ck_graph_op){.uid = uid,
                                              .type = ck_arena_strndup(&f->arena, uid, 1),
                                              .schema = &none,
                                              .state_fingerprint = 1,
                                              .semantic_fingerprint = (uint64_t)strtoull(text, NULL, 10)};
        text += strspn(text, "0123456789");
        read_branches(f, text, &g->ops[g->op_count - 1]);
        while (*text && *text != ' ') text++;
        if (*text) text++;
    }
    return g;
}

/* "wanted<-stored" with '!' behind where the meaning changed, '+' where branches came, '-' for nobody, separated by
 * spaces. */
static const char *match(fixture *f, const char *stored, const char *wanted) {
    ck_graph_pair *pairs;
    uint32_t n;
    const char *out = "";
    ck_error_reset(&f->err);
    if (ck_graph_match(&f->arena, graph_of(f, stored), graph_of(f, wanted), &pairs, &n, &f->err) != CK_OK)
        return "refused";
    for (uint32_t i = 0; i < n; i++)
        out =
            ck_arena_printf(&f->arena, "%s%s%s<-%s%s", out, i ? " " : "", pairs[i].wanted ? pairs[i].wanted->uid : "-",
                            pairs[i].stored ? pairs[i].stored->uid : "-",
                            !pairs[i].stored || !pairs[i].wanted || pairs[i].same_meaning ? ""
                            : pairs[i].more_branches                                      ? "+"
                                                                                          : "!");
    return out;
}

static void operators_find_their_own(void **state) {
    fixture *f = *state;
    static const struct {
        const char *what, *stored, *wanted, *pairs;
    } cases[] = {
        {"the same", "a=1 b=2", "b=2 a=1", "b<-b a<-a"},
        {"one more", "a=1", "a=1 c=3", "a<-a c<--"},
        {"one less", "a=1 c=3", "a=1", "a<-a -<-c"},
        {"another meaning", "a=1", "a=2", "a<-a!"},
        {"it got a hash behind its name", "a=1", "a~00000001=1 a~00000002=2", "a~00000001<-a a~00000002<--"},
        {"and lost it again", "a~00000001=1 a~00000002=2", "a=2", "a<-a~00000002 -<-a~00000001"},
        {"a meaning goes before a name", "a=1 a~1=2", "a=2 a~3=1", "a<-a~1 a~3<-a"},
        {"the one that is left", "a~1=1 a~2=2", "a~1=1 a~3=3", "a~1<-a~1 a~3<-a~2!"},
        {"another name of the same meaning", "ab=1 b=2", "ac=1 b=2", "ac<-ab b<-b"},
        {"another type is another operator", "ab=1", "bb=1", "bb<-- -<-ab"},
        {"two that changed in one way each", "a~1=1 a~2=1", "a~1=1 a~4=1", "a~1<-a~1 a~4<-a~2"},
        {"two candidates", "a~1=1 a~2=1", "a~3=1 a~4=1", "refused"},
        {"two candidates of the checkpoint", "a~1=1 a~2=1", "a=1", "refused"},
        {"a branch more than none", "ab=1", "ac=9:2,1", "ac<-ab+"},
        {"a branch more than two", "ab=8:1,2", "ab=9:1,3,2", "ab<-ab+"},
        {"a branch less", "ab=8:1,2,3", "ab=9:1,2", "ab<-ab!"},
        {"another branch", "ab=8:1,2", "ac=9:1,3,4", "ac<-- -<-ab"},
        {"branches in another order are others", "ab=8:1,2", "ab=9:2,1", "ab<-ab!"},
        {"a branch that two could go on in", "ab=1 ac=1", "ad=9:1,2", "ad<-- -<-ab -<-ac"},
        {"several of other meanings are nobody's", "a~1=1 a~2=2", "a~3=3 a~4=4", "a~3<-- a~4<-- -<-a~1 -<-a~2"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        const char *got = match(f, cases[i].stored, cases[i].wanted);
        if (strcmp(got, cases[i].pairs) != 0) fail_msg("%s: %s", cases[i].what, got);
    }
}

static void several_candidates_are_named(void **state) {
    fixture *f = *state;
    assert_string_equal(match(f, "a~1=1 a~2=1", "a~3=1 a~4=1"), "refused");
    assert_int_equal(f->err.status, CK_REFUSED);
    assert_non_null(strstr(f->err.msg, "2 operators of this script and 2 of the checkpoint are called a"));
    assert_non_null(strstr(f->err.msg, "'a~3'"));
}

/* Operators without state are interchangeable. */
static void what_keeps_nothing_is_not_asked_about(void **state) {
    fixture *f = *state;
    ck_graph *stored = graph_of(f, "a~1=1 a~2=1"), *wanted = graph_of(f, "a~3=1 a~4=1");
    ck_graph_pair *pairs;
    uint32_t n;
    for (int i = 0; i < 2; i++) stored->ops[i].state_fingerprint = wanted->ops[i].state_fingerprint = 0;
    assert_int_equal(ck_graph_match(&f->arena, stored, wanted, &pairs, &n, &f->err), CK_OK);
    assert_int_equal(n, 2);
    assert_true(pairs[0].same_meaning && pairs[1].same_meaning && pairs[0].stored != pairs[1].stored);
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    ck_graph *stored = graph_of(f, "a=1"), *wanted = graph_of(f, "a=1");
    ck_arena small;
    ck_graph_pair *pairs;
    uint32_t n;
    ck_arena_init(&small, (ck_mem){&f->budget, CK_MEM_PLAN}, 16);
    assert_int_equal(ck_graph_match(&small, stored, wanted, &pairs, &n, &f->err), CK_NOMEM);
    ck_arena_destroy(&small);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(operators_find_their_own),
        T(several_candidates_are_named),
        T(what_keeps_nothing_is_not_asked_about),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
