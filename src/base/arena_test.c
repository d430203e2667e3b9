#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct fixture {
    ck_tracked_heap *heap;
    ck_budget budget;
    ck_arena arena;
} fixture;

static void init(fixture *f, size_t bytes_max) {
    assert_int_equal(ck_tracked_heap_new(&f->heap), CK_OK);
    ck_budget_init(&f->budget, ck_tracked_heap_base(f->heap), 0);
    ck_arena_init(&f->arena, (ck_mem){&f->budget, CK_MEM_PLAN}, bytes_max);
}
static void destroy(fixture *f) {
    ck_arena_destroy(&f->arena);
    ck_arena_destroy(&f->arena);
    assert_int_equal(ck_tracked_heap_live_blocks(f->heap), 0);
    assert_int_equal(f->arena.bytes, 0);
    ck_tracked_heap_free(f->heap);
}

static void test_pieces_do_not_overlap(void **state) {
    (void)state;
    fixture f;
    init(&f, 1 << 20);
    unsigned char *p[200];
    for (size_t i = 0; i < 200; i++) {
        p[i] = ck_arena_alloc(&f.arena, i * 7);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        memset(p[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7; k++) assert_int_equal(p[i][k], (unsigned char)i);
    destroy(&f);
}

static void test_a_long_piece_gets_a_block_of_its_own(void **state) {
    (void)state;
    fixture f;
    init(&f, 10 << 20);
    assert_non_null(ck_arena_alloc(&f.arena, 5 << 20));
    assert_non_null(ck_arena_alloc(&f.arena, 10));
    assert_in_range(f.arena.bytes, 5 << 20, 6 << 20);
    destroy(&f);
}

static void test_nothing_is_no_failure(void **state) {
    (void)state;
    fixture f;
    init(&f, 4096);
    assert_non_null(ck_arena_alloc(&f.arena, 0)); /* also from a fresh arena */
    assert_non_null(ck_arena_array(&f.arena, 0, 8));
    destroy(&f);
}

static void test_the_ceiling(void **state) {
    (void)state;
    fixture f;
    init(&f, 10000);
    size_t got = 0;
    while (ck_arena_alloc(&f.arena, 100)) got += 100;
    assert_in_range(got, 5000, 10000); /* not wasted by doubling near the ceiling */
    assert_true(f.arena.bytes <= 10000);
    assert_null(ck_arena_alloc(&f.arena, SIZE_MAX));
    assert_null(ck_arena_alloc(&f.arena, SIZE_MAX - 20));
    assert_null(ck_arena_array(&f.arena, SIZE_MAX / 2, 4));
    assert_null(ck_arena_strndup(&f.arena, "", SIZE_MAX));
    destroy(&f);
}

static void test_mark_and_reset_do_not_allocate(void **state) {
    (void)state;
    fixture f;
    init(&f, 1 << 20);
    for (int round = 0; round < 100; round++) { /* from an empty mark: one block is kept */
        ck_arena_mark m = ck_arena_mark_now(&f.arena);
        assert_non_null(ck_arena_alloc(&f.arena, 1000));
        ck_arena_reset_to(&f.arena, m);
        assert_int_equal(ck_tracked_heap_live_blocks(f.heap), 1);
    }
    char *kept = ck_arena_strdup(&f.arena, "kept");
    ck_arena_mark m = ck_arena_mark_now(&f.arena);
    size_t bytes = f.arena.bytes;
    for (int i = 0; i < 100; i++) assert_non_null(ck_arena_alloc(&f.arena, 1000));
    assert_true(f.arena.bytes > bytes);
    ck_arena_reset_to(&f.arena, m);
    assert_int_equal(f.arena.bytes, bytes);
    assert_string_equal(kept, "kept");
    char *again = ck_arena_alloc(&f.arena, 16);
    assert_ptr_equal(again, m.at);
    destroy(&f);
}

static char order[8];
static void note(void *arg) { strcat(order, arg); }

static void test_cleanups_run_newest_first_and_once(void **state) {
    (void)state;
    fixture f;
    init(&f, 1 << 20);
    char a[] = "a", b[] = "b", c[] = "c";
    order[0] = 0;
    assert_int_equal(ck_arena_on_reset(&f.arena, note, a), CK_OK);
    ck_arena_mark m = ck_arena_mark_now(&f.arena);
    assert_int_equal(ck_arena_on_reset(&f.arena, note, b), CK_OK);
    assert_int_equal(ck_arena_on_reset(&f.arena, note, c), CK_OK);
    ck_arena_reset_to(&f.arena, m);
    assert_string_equal(order, "cb");
    ck_arena_destroy(&f.arena);
    assert_string_equal(order, "cba");
    destroy(&f);
    assert_string_equal(order, "cba");
    init(&f, 0);
    assert_int_equal(ck_arena_on_reset(&f.arena, note, a), CK_NOMEM); /* not registered: run at once */
    assert_string_equal(order, "cbaa");
    destroy(&f);
}

static void test_text(void **state) {
    (void)state;
    fixture f;
    init(&f, 1 << 20);
    assert_string_equal(ck_arena_strndup(&f.arena, "abcdef", 3), "abc");
    assert_string_equal(ck_arena_strndup(&f.arena, NULL, 0), "");
    assert_string_equal(ck_arena_printf(&f.arena, "%s-%d", "x", 42), "x-42");
    char *longest = ck_arena_printf(&f.arena, "%05000d", 1);
    assert_int_equal(strlen(longest), 5000);
    typedef struct thing {
        int a, b;
    } thing;
    thing *t = CK_ARENA_NEW(&f.arena, thing);
    assert_true(t->a == 0 && t->b == 0);
    destroy(&f);
}

static void test_a_failing_heap(void **state) {
    (void)state;
    fixture f;
    init(&f, 1 << 20);
    ck_tracked_heap_fail_nth(f.heap, 1);
    assert_null(ck_arena_alloc(&f.arena, 10));
    assert_non_null(ck_arena_alloc(&f.arena, 10)); /* and the arena is still good */
    destroy(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_do_not_overlap),
        cmocka_unit_test(test_a_long_piece_gets_a_block_of_its_own),
        cmocka_unit_test(test_nothing_is_no_failure),
        cmocka_unit_test(test_the_ceiling),
        cmocka_unit_test(test_mark_and_reset_do_not_allocate),
        cmocka_unit_test(test_cleanups_run_newest_first_and_once),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_a_failing_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
