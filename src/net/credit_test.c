#include "net/credit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

/* Credits told for an edge since the last look; others' are left told. */
static uint32_t told(ck_credit_pool *p, const ck_credit_edge *e) {
    uint32_t sum = 0, count;
    for (const ck_credit_edge *at; (at = ck_credit_next_untold(p, &count)) != NULL;)
        if (at == e) sum += count;
    return sum;
}

static void test_every_edge_has_its_own(void **state) {
    (void)state;
    ck_credit_pool p;
    ck_credit_edge a = {0}, b = {0};
    ck_credit_pool_init(&p, 0); /* nothing floats, and both still move */
    ck_credit_edge_open(&p, &a);
    ck_credit_edge_open(&p, &b);
    uint32_t n;
    assert_ptr_equal(ck_credit_next_untold(&p, &n), &a);
    assert_int_equal(n, 1);
    assert_ptr_equal(ck_credit_next_untold(&p, &n), &b);
    assert_null(ck_credit_next_untold(&p, &n));
    for (int i = 0; i < 5; i++) {
        OK(ck_credit_arrived(&p, &a, 100, NULL));
        assert_int_equal(told(&p, &a), 0);
        ck_credit_consumed(&p, &a);
        assert_int_equal(told(&p, &a), 1);
    }
}

static void test_a_frame_without_credit_is_refused(void **state) {
    (void)state;
    ck_credit_pool p;
    ck_credit_edge a = {0};
    ck_error err = CK_ERROR_INIT;
    ck_credit_pool_init(&p, 4);
    assert_int_equal(ck_credit_arrived(&p, &a, 0, &err), CK_CORRUPT); /* not open */
    ck_credit_edge_open(&p, &a);
    assert_int_equal(ck_credit_arrived(&p, &a, 0, &err), CK_CORRUPT); /* not told yet: it cannot know */
    told(&p, &a);
    OK(ck_credit_arrived(&p, &a, 0, NULL));
    assert_int_equal(ck_credit_arrived(&p, &a, 0, &err), CK_CORRUPT);
}

static void test_floating_credits_go_to_the_backlog_in_turn(void **state) {
    (void)state;
    ck_credit_pool p;
    ck_credit_edge a = {0}, b = {0}, idle = {0};
    ck_credit_pool_init(&p, 6);
    ck_credit_edge_open(&p, &a), ck_credit_edge_open(&p, &b), ck_credit_edge_open(&p, &idle);
    told(&p, &a);
    OK(ck_credit_arrived(&p, &a, 100, NULL));
    assert_int_equal(a.floating, 6); /* nobody else wants any */
    assert_int_equal(told(&p, &a), 6);
    OK(ck_credit_arrived(&p, &b, 100, NULL));
    assert_int_equal(b.floating, 0);
    for (int i = 0; i < 6; i++) { /* what a gives back goes round */
        OK(ck_credit_arrived(&p, &a, 100, NULL));
        ck_credit_consumed(&p, &a);
        ck_credit_consumed(&p, &b), told(&p, &b);
        OK(ck_credit_arrived(&p, &b, 100, NULL));
    }
    assert_in_range(a.floating, 2, 4);
    assert_in_range(b.floating, 2, 4);
    assert_int_equal(a.floating + b.floating + p.floating_free, 6);
    assert_int_equal(idle.floating, 0);
    ck_credit_edge_close(&p, &a);
    ck_credit_edge_close(&p, &a);
    assert_int_equal(b.floating, 6); /* the rest comes to who wants it */
    ck_credit_consumed(&p, &a);      /* its consumer comes late */
    ck_credit_edge_close(&p, &b);
    assert_int_equal(p.floating_free, 6);
    uint32_t n;
    assert_ptr_equal(ck_credit_next_untold(&p, &n), NULL);
}

static void test_a_backlog_that_is_covered_gets_no_more(void **state) {
    (void)state;
    ck_credit_pool p;
    ck_credit_edge a = {0};
    ck_credit_pool_init(&p, 10);
    ck_credit_edge_open(&p, &a);
    told(&p, &a);
    OK(ck_credit_arrived(&p, &a, 3, NULL));
    assert_int_equal(a.granted, 3);
    assert_int_equal(p.floating_free, 7);
    told(&p, &a);
    OK(ck_credit_arrived(&p, &a, 0, NULL));
    ck_credit_consumed(&p, &a);
    ck_credit_consumed(&p, &a);
    assert_int_equal(a.floating, 1); /* nothing waits there: they float on */
    assert_int_equal(a.granted, 2);
    assert_int_equal(p.floating_free, 9);
}

static void test_a_blocked_edge_gets_no_floating_credit(void **state) {
    (void)state;
    ck_credit_pool p;
    ck_credit_edge a = {0}, b = {0};
    ck_credit_pool_init(&p, 4);
    ck_credit_edge_open(&p, &a), ck_credit_edge_open(&p, &b);
    told(&p, &a);
    ck_credit_block(&p, &a, true);
    OK(ck_credit_arrived(&p, &a, 50, NULL));
    assert_int_equal(a.floating, 0);
    OK(ck_credit_arrived(&p, &b, 50, NULL));
    assert_int_equal(b.floating, 4);
    ck_credit_consumed(&p, &b); /* goes round to b itself: a may not have it */
    assert_int_equal(b.floating, 4);
    ck_credit_consumed(&p, &a); /* its own one does come back */
    assert_int_equal(told(&p, &a), 1);
    ck_credit_block(&p, &b, true);
    OK(ck_credit_arrived(&p, &b, 50, NULL));
    ck_credit_consumed(&p, &b);
    assert_int_equal(p.floating_free, 1);
    ck_credit_block(&p, &a, false); /* its old backlog counts again */
    assert_int_equal(a.floating, 1);
}

static void test_sender(void **state) {
    (void)state;
    ck_credit_sender s = {0};
    ck_error err = CK_ERROR_INIT;
    assert_false(ck_credit_spend(&s));
    OK(ck_credit_add(&s, 2, NULL));
    assert_true(ck_credit_spend(&s) && ck_credit_spend(&s));
    assert_false(ck_credit_spend(&s));
    assert_int_equal(ck_credit_add(&s, 0, &err), CK_CORRUPT);
    assert_int_equal(ck_credit_add(&s, UINT32_MAX, &err), CK_CORRUPT);
    OK(ck_credit_add(&s, 1 << 24, NULL));
    assert_int_equal(ck_credit_add(&s, 1, &err), CK_CORRUPT);
}

/* Random traffic of many edges over a wire with delay: no credit is made or lost, nothing ever stands still. */
enum { EDGES = 9 };
typedef struct sim_edge {
    ck_credit_edge in;
    ck_credit_sender out;
    uint32_t waiting, flying, queued, credits_flying; /* frames at the sender, on the wire, unconsumed */
    uint64_t consumed;
} sim_edge;

static void sim_step(ck_credit_pool *p, sim_edge *e, const ck_proc *r, uint64_t op) {
    switch (op) {
    case 0: e->waiting += (uint32_t)ck_random_below(r, 4); break;
    case 1:
        if (e->waiting && ck_credit_spend(&e->out)) e->waiting--, e->flying++;
        break;
    case 2:
        if (e->flying == 0) break;
        e->flying--, e->queued++;
        OK(ck_credit_arrived(p, &e->in, e->waiting, NULL));
        break;
    case 3:
        if (e->queued == 0 || e->in.blocked) break;
        e->queued--, e->consumed++;
        ck_credit_consumed(p, &e->in);
        break;
    case 4: ck_credit_block(p, &e->in, ck_random_below(r, 3) == 0); break;
    default:
        if (e->credits_flying) OK(ck_credit_add(&e->out, e->credits_flying, NULL));
        e->credits_flying = 0;
    }
}

static void test_random_traffic(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        ck_seeded_random random;
        ck_seeded_random_init(&random, seed);
        ck_proc r = {.random = &random.base};
        ck_credit_pool p;
        sim_edge edges[EDGES] = {0};
        ck_credit_pool_init(&p, (uint32_t)ck_random_below(&r, 12));
        for (int i = 0; i < EDGES; i++) ck_credit_edge_open(&p, &edges[i].in);
        for (int step = 0; step < 6000; step++) {
            bool ending = step > 3000; /* nothing new and nobody blocked: all must drain */
            sim_edge *e = &edges[ck_random_below(&r, EDGES)];
            uint64_t op = ck_random_below(&r, 6);
            if (ending && step < 3001 + EDGES) ck_credit_block(&p, &edges[step - 3001].in, false);
            if (!ending || (op != 0 && op != 4)) sim_step(&p, e, &r, op);
            uint32_t n, floating = p.floating_free;
            for (ck_credit_edge *at; (at = ck_credit_next_untold(&p, &n)) != NULL;)
                ((sim_edge *)at)->credits_flying += n;
            for (int i = 0; i < EDGES; i++) {
                const sim_edge *x = &edges[i];
                floating += x->in.floating;
                assert_int_equal(x->in.granted + x->in.held, 1 + x->in.floating);
                assert_int_equal(x->in.granted, x->out.credits + x->flying + x->credits_flying);
                assert_int_equal(x->in.held, x->queued);
            }
            assert_int_equal(floating, p.floating_count);
        }
        for (int round = 0; round < 5000; round++)
            for (int i = 0; i < EDGES; i++)
                for (uint64_t op = 1; op < 6; op++) {
                    if (op == 4) continue;
                    sim_step(&p, &edges[i], &r, op);
                    uint32_t n;
                    for (ck_credit_edge *at; (at = ck_credit_next_untold(&p, &n)) != NULL;)
                        ((sim_edge *)at)->credits_flying += n;
                }
        for (int i = 0; i < EDGES; i++) {
            assert_int_equal(edges[i].waiting + edges[i].flying + edges[i].queued, 0);
            ck_credit_edge_close(&p, &edges[i].in);
        }
        assert_int_equal(p.floating_free, p.floating_count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_edge_has_its_own),
        cmocka_unit_test(test_a_frame_without_credit_is_refused),
        cmocka_unit_test(test_floating_credits_go_to_the_backlog_in_turn),
        cmocka_unit_test(test_a_backlog_that_is_covered_gets_no_more),
        cmocka_unit_test(test_a_blocked_edge_gets_no_floating_credit),
        cmocka_unit_test(test_sender),
        cmocka_unit_test(test_random_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
