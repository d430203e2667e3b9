#include "stream/source.h"

#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

static void splits_keep_their_order_and_are_copied(void **state) {
    (void)state;
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_arena arena;
    ck_arena_init(&arena, (ck_mem){&budget, CK_MEM_PLAN}, 1 << 20);
    ck_split_list list = {.arena = &arena};
    char id[24], spec[24];
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "id%d", i);
        snprintf(spec, sizeof spec, "{\"n\":%d}", i);
        assert_int_equal(ck_split_list_add(&list, id, spec), CK_OK);
    }
    assert_int_equal(list.count, 100);
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "id%u", i);
        assert_string_equal(list.splits[i].id, id);
        assert_int_equal(list.splits[i].order, i);
    }
    ck_arena_destroy(&arena);
}

static void no_memory_is_said(void **state) {
    (void)state;
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_arena arena;
    ck_arena_init(&arena, (ck_mem){&budget, CK_MEM_PLAN}, 256);
    ck_split_list list = {.arena = &arena};
    ck_status s = CK_OK;
    uint32_t added = 0;
    while (s == CK_OK && added < 1000) {
        s = ck_split_list_add(&list, "id", "{}");
        added += s == CK_OK;
    }
    assert_int_equal(s, CK_NOMEM);
    assert_int_equal(list.count, added);
    ck_arena_destroy(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_keep_their_order_and_are_copied),
        cmocka_unit_test(no_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
