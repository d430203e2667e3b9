#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <yyjson.h>
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
    ck_arena_init(&f.arena, (ck_mem){&f.budget, CK_MEM_PLAN}, 1 << 20);
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

static void reads_and_writes(void **state) {
    fixture *f = *state;
    struct yyjson_doc *doc;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_json_read(&f->arena, CK_VIEW("{\"a\":[1,\"x\\u00e9\"]} "), &doc, &err), CK_OK);
    yyjson_val *a = yyjson_obj_get(yyjson_doc_get_root(doc), "a");
    assert_int_equal(yyjson_arr_size(a), 2);

    struct yyjson_mut_doc *out;
    assert_int_equal(ck_json_new(&f->arena, &out, &err), CK_OK);
    yyjson_mut_val *root = yyjson_mut_obj(out);
    yyjson_mut_doc_set_root(out, root);
    assert_true(yyjson_mut_obj_add_val(out, root, "copy", yyjson_val_mut_copy(out, a)));
    ck_view text;
    assert_int_equal(ck_json_write(&f->arena, out, &text, &err), CK_OK);
    assert_string_equal(text.p, "{\"copy\":[1,\"x\xc3\xa9\"]}");
    assert_int_equal(text.n, strlen(text.p));
}

static void bad_text_names_its_place(void **state) {
    fixture *f = *state;
    struct yyjson_doc *doc;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_json_read(&f->arena, CK_VIEW("{\"a\":}"), &doc, &err), CK_CORRUPT);
    assert_non_null(strstr(err.msg, "byte 5"));
    assert_int_equal(ck_json_read(&f->arena, CK_VIEW("1 2"), &doc, &err), CK_CORRUPT);
    assert_int_equal(ck_json_read(&f->arena, CK_VIEW(""), &doc, &err), CK_CORRUPT);
    assert_non_null(strstr(err.msg, "empty"));
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    for (uint64_t n = 1;; n++) {
        ck_arena a;
        ck_arena_init(&a, (ck_mem){&f->budget, CK_MEM_PLAN}, 1 << 20);
        ck_tracked_heap_fail_nth(f->heap, n);
        struct yyjson_doc *doc;
        struct yyjson_mut_doc *out;
        ck_view text;
        ck_status s = ck_json_read(&a, CK_VIEW("[1,2,3]"), &doc, NULL);
        if (s == CK_OK) s = ck_json_new(&a, &out, NULL);
        if (s == CK_OK) {
            yyjson_mut_doc_set_root(out, yyjson_val_mut_copy(out, yyjson_doc_get_root(doc)));
            s = ck_json_write(&a, out, &text, NULL);
        }
        bool fired = ck_tracked_heap_fired(f->heap);
        ck_tracked_heap_fail_nth(f->heap, 0);
        ck_arena_destroy(&a);
        if (!fired) {
            assert_int_equal(s, CK_OK);
            return;
        }
        assert_int_equal(s, CK_NOMEM);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_and_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_text_names_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
