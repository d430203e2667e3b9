#include "plugin/registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static ck_status nothing_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self, (void)input, (void)ev, (void)ctx;
    return CK_OK;
}
static ck_status nothing_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)spec, (void)mem, (void)err;
    *self = NULL;
    return CK_OK;
}
static const ck_operator_vtbl vtbl = {.struct_bytes = sizeof vtbl, .on_event = nothing_event};
static const ck_op_desc filter = {.type = "filter", .op = &vtbl, .create = nothing_create};
static const ck_op_desc project = {.type = "project", .op = &vtbl, .create = nothing_create};
static const ck_op_desc neither = {.type = "neither", .create = nothing_create};
static const ck_op_desc mute = {.type = "mute", .op = &vtbl};
static const ck_connector_desc file = {.name = "file"};

static void names_lead_to_descriptors(void **state) {
    (void)state;
    ck_budget budget;
    ck_arena arena;
    ck_registry r;
    ck_error err = CK_ERROR_INIT;
    const ck_op_desc *d;
    const ck_connector_desc *c;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_arena_init(&arena, (ck_mem){&budget, CK_MEM_PLAN}, 1 << 20);
    ck_registry_init(&r, &arena);
    assert_int_equal(ck_registry_add_op(&r, &filter, &err), CK_OK);
    assert_int_equal(ck_registry_add_op(&r, &project, &err), CK_OK);
    assert_int_equal(ck_registry_add_connector(&r, &file, &err), CK_OK);

    assert_int_equal(ck_registry_op(&r, "project", &d, &err), CK_OK);
    assert_ptr_equal(d, &project);
    assert_int_equal(ck_registry_connector(&r, "FILE", &c, &err), CK_OK);
    assert_ptr_equal(c, &file);

    assert_int_equal(ck_registry_op(&r, "fliter", &d, &err), CK_INVALID);
    assert_string_equal(err.msg, "unknown operator type fliter, did you mean filter?");
    assert_int_equal(ck_registry_connector(&r, "kafka", &c, &err), CK_INVALID);
    assert_string_equal(err.msg, "unknown connector kafka; there are file, and those of --plugin FILE.so");

    assert_int_equal(ck_registry_add_op(&r, &filter, &err), CK_EXISTS);
    assert_int_equal(ck_registry_add_op(&r, &neither, &err), CK_INVALID);
    assert_int_equal(ck_registry_add_op(&r, &mute, &err), CK_INVALID);
    assert_non_null(strstr(err.msg, "mute"));
    ck_arena_destroy(&arena);
    assert_int_equal(ck_budget_total(&budget), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_lead_to_descriptors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
