#include "connector/lookup_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "os/test_proc.h"

enum { SECOND = 1000000 };

typedef struct fixture {
    ck_test_proc t;
    ck_lookup_cache c;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->t);
    ck_lookup_cache_init(&f->c, ck_proc_mem(&f->t.proc, CK_MEM_STATE));
    f->c.ttl_us = 10 * SECOND;
    f->c.bytes_max = 1 << 20;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_lookup_cache_destroy(&f->c);
    ck_test_proc_destroy(&f->t);
    free(f);
    return 0;
}

static ck_kept_answer *find(fixture *f, const char *key, int64_t now_us) {
    return ck_lookup_cache_find(&f->c, ck_view_of(key), now_us);
}

static ck_kept_answer *ask(fixture *f, const char *key) {
    ck_kept_answer *a = ck_lookup_cache_ask(&f->c, ck_view_of(key), sizeof *a);
    assert_non_null(a);
    assert_true(a->at_us == CK_ANSWER_PENDING);
    return a;
}

/* More than half of what there is: the next turn begins a generation. */
static void fill(fixture *f) { assert_non_null(ck_arena_alloc(ck_lookup_cache_arena(&f->c), 600 << 10)); }

static void an_answer_is_pending_then_fresh_then_old(void **state) {
    fixture *f = *state;
    assert_null(find(f, "a", 0));
    ck_kept_answer *a = ask(f, "a");
    assert_ptr_equal(find(f, "a", 99 * SECOND), a); /* nobody asks twice */
    a->at_us = SECOND;
    assert_ptr_equal(find(f, "a", 11 * SECOND - 1), a);
    assert_null(find(f, "a", 11 * SECOND));
    assert_null(find(f, "b", 0));
    ck_kept_answer *again = ask(f, "a");
    assert_ptr_equal(find(f, "a", 11 * SECOND), again);
}

static void without_a_time_it_is_good_where_it_was_asked(void **state) {
    fixture *f = *state;
    f->c.ttl_us = 0;
    ck_kept_answer *a = ask(f, "a");
    a->at_us = 5;
    assert_ptr_equal(find(f, "a", 5), a);
    assert_null(find(f, "a", 6));
    a->at_us = CK_ANSWER_STALE;
    assert_null(find(f, "a", 5));
}

static void the_older_generation_goes(void **state) {
    fixture *f = *state;
    ask(f, "a")->at_us = SECOND;
    ck_lookup_cache_turn_over(&f->c); /* it has room */
    fill(f);
    ck_lookup_cache_turn_over(&f->c);
    assert_non_null(find(f, "a", 2 * SECOND));
    assert_null(find(f, "a", 11 * SECOND)); /* too old there, too */
    ask(f, "b")->at_us = SECOND;
    fill(f);
    ck_lookup_cache_turn_over(&f->c);
    assert_null(find(f, "a", 2 * SECOND));
    assert_non_null(find(f, "b", 2 * SECOND));
}

static void a_batch_that_takes_too_much_is_refused(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    fill(f);
    assert_int_equal(ck_lookup_cache_check(&f->c, "t", "raise it", &err), CK_OK);
    fill(f);
    fill(f);
    assert_int_equal(ck_lookup_cache_check(&f->c, "t", "raise it", &err), CK_REFUSED);
    assert_string_equal(err.msg, "table \"t\": what is found for one batch of rows takes more than lookup.max_bytes "
                                 "(1048576); raise it");
}

int main(void) {
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_answer_is_pending_then_fresh_then_old),
        T(without_a_time_it_is_good_where_it_was_asked),
        T(the_older_generation_goes),
        T(a_batch_that_takes_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
