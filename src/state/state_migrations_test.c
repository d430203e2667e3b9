/* The registry: chains, what goes before what, names that changed, what is not taken. */
#include "state/state_migrations.h"

#include "state/schemas_test_support.h"

/* user is one letter, which the step puts behind the value. */
static ck_status append(void *user, ck_view value, ck_bytes *out, ck_error *err) {
    (void)err;
    CK_TRY(ck_bytes_view(out, value));
    return ck_bytes_char(out, *(const char *)user);
}
static ck_status fail_it(void *user, ck_view value, ck_bytes *out, ck_error *err) {
    (void)value, (void)out;
    return ck_fail(err, CK_DATA, "%s", (const char *)user);
}

static void step(fixture *f, const char *type, uint32_t from, uint32_t to, const char *letter) {
    ck_error err = CK_ERROR_INIT;
    if (ck_state_migrations_step(&f->m, type, from, to, append, (void *)(uintptr_t)letter, &err) != CK_OK)
        fail_msg("%s", err.msg);
}

/* What becomes of ">" on the way; "-": there is none. */
static void check_way(fixture *f, const char *type, uint32_t from, uint32_t to, const char *want) {
    ck_migration_chain c;
    ck_bytes scratch[2];
    ck_view out;
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_state_migrations_plan(&f->m, &f->arena, type, from, to, &c);
    if (s == CK_NOTFOUND) {
        assert_string_equal(want, "-");
        return;
    }
    assert_int_equal(s, CK_OK);
    for (int i = 0; i < 2; i++) ck_bytes_init(&scratch[i], f->mem, SIZE_MAX);
    assert_int_equal(ck_migration_run(&c, type, ck_view_of(">"), scratch, &out, &err), CK_OK);
    if (!ck_view_is(out, want)) fail_msg("%s %u to %u: %.*s, not %s", type, from, to, (int)out.n, out.p, want);
    for (int i = 0; i < 2; i++) ck_bytes_destroy(&scratch[i]);
}

static void single_steps_make_the_shortest_chain(void **state) {
    fixture *f = *state;
    step(f, "t", 1, 2, "a");
    step(f, "t", 2, 3, "b");
    step(f, "t", 3, 4, "c");
    step(f, "t", 4, 6, "d");
    step(f, "t", 2, 4, "e");
    step(f, "u", 5, 7, "x");
    check_way(f, "t", 1, 1, ">");
    check_way(f, "t", 1, 3, ">ab");
    check_way(f, "t", 1, 6, ">aed");
    check_way(f, "t", 1, 5, "-");
    check_way(f, "t", 1, 7, "-");
    check_way(f, "t", 3, 2, "-"); /* nothing goes back */
    check_way(f, "t", 9, 10, "-");
    check_way(f, "none", 1, 2, "-");
    check_way(f, "none", 4, 4, ">");
    ck_migration_chain c;
    assert_int_equal(ck_state_migrations_plan(NULL, &f->arena, "t", 1, 2, &c), CK_NOTFOUND);
    assert_int_equal(ck_state_migrations_plan(NULL, &f->arena, "t", 2, 2, &c), CK_OK);
}

static const ck_type bigint = {.kind = CK_TYPE_BIGINT}, small = {.kind = CK_TYPE_SMALLINT};

static void schema(fixture *f, const char *type, uint32_t version, const ck_field *fields, uint32_t count) {
    ck_error err = CK_ERROR_INIT;
    if (ck_state_migrations_schema(&f->m, type, version, (ck_value_fields){fields, count}, &err) != CK_OK)
        fail_msg("%s", err.msg);
}

/* Kinds of steps of a chain: e explicit, a additive. */
static void check_kinds(fixture *f, uint32_t from, uint32_t to, const char *want) {
    ck_migration_chain c;
    char kinds[16] = "";
    ck_status s = ck_state_migrations_plan(&f->m, &f->arena, "t", from, to, &c);
    for (uint32_t i = 0; s == CK_OK && i < c.count; i++) kinds[i] = c.steps[i].fn ? 'e' : 'a';
    assert_string_equal(s == CK_OK ? kinds : "-", want);
}

static void additive_steps_join_chains(void **state) {
    fixture *f = *state;
    const ck_field one[] = {{"n", &small, false}}, two[] = {{"n", &bigint, false}, {"m", &bigint, true}},
                   narrow[] = {{"n", &small, false}, {"m", &bigint, true}};
    schema(f, "t", 1, one, 1);
    schema(f, "t", 2, two, 2);
    schema(f, "t", 3, narrow, 2); /* not additive from 2, but from 1 */
    check_kinds(f, 1, 2, "a");
    check_kinds(f, 2, 3, "-");
    check_kinds(f, 1, 3, "a");
    step(f, "t", 3, 4, "x");
    check_kinds(f, 1, 4, "ae"); /* a mixture, where steps alone do not lead there */
    check_kinds(f, 2, 4, "-");
    step(f, "t", 1, 2, "y");
    check_kinds(f, 1, 2, "e");
    step(f, "t", 2, 3, "z");
    check_kinds(f, 1, 3, "ee"); /* two steps of the author's before one of ours */
}

static void types_and_slots_have_had_other_names(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    step(f, "first", 1, 2, "a");
    assert_int_equal(ck_state_migrations_slot_renamed(&f->m, "first", "b", "a", &err), CK_OK);
    assert_int_equal(ck_state_migrations_type_renamed(&f->m, "second", "first", &err), CK_OK);
    assert_int_equal(ck_state_migrations_type_renamed(&f->m, "third", "second", &err), CK_OK);
    assert_int_equal(ck_state_migrations_type_renamed(&f->m, "third", "second", &err), CK_OK); /* said twice */
    step(f, "third", 2, 3, "b");
    assert_string_equal(ck_state_type_now(&f->m, "first"), "third");
    assert_string_equal(ck_state_type_now(&f->m, "other"), "other");
    assert_string_equal(ck_state_type_now(NULL, "first"), "first");
    check_way(f, "first", 1, 3, ">ab");
    check_way(f, "third", 1, 3, ">ab");
    assert_string_equal(ck_state_slot_before(&f->m, "third", "b"), "a");
    assert_null(ck_state_slot_before(&f->m, "third", "a"));
    assert_null(ck_state_slot_before(&f->m, "other", "b"));
    assert_int_equal(ck_state_migrations_type_renamed(&f->m, "first", "third", &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_type_renamed(&f->m, "fourth", "fourth", &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_type_renamed(&f->m, "another", "first", &err), CK_EXISTS);
    assert_int_equal(ck_state_migrations_slot_renamed(&f->m, "third", "b", "c", &err), CK_EXISTS);
    assert_int_equal(ck_state_migrations_slot_renamed(&f->m, "third", "c", "c", &err), CK_INVALID);
}

static void what_is_no_step_is_not_taken(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    const ck_field twice[] = {{"n", &small, false}, {"n", &bigint, false}}, once[] = {{"n", &small, false}};
    step(f, "t", 1, 2, "a");
    assert_int_equal(ck_state_migrations_step(&f->m, "t", 1, 2, append, NULL, &err), CK_EXISTS);
    assert_int_equal(ck_state_migrations_step(&f->m, "t", 0, 2, append, NULL, &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_step(&f->m, "t", 2, 2, append, NULL, &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_step(&f->m, "t", 3, 2, append, NULL, &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_step(&f->m, "t", 2, 3, NULL, NULL, &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_step(&f->m, "", 2, 3, append, NULL, &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_step(&f->m, "a|b", 2, 3, append, NULL, &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_schema(&f->m, "t", 0, (ck_value_fields){once, 1}, &err), CK_INVALID);
    assert_int_equal(ck_state_migrations_schema(&f->m, "t", 1, (ck_value_fields){twice, 2}, &err), CK_INVALID);
    schema(f, "t", 1, once, 1);
    schema(f, "t", 1, once, 1);
    assert_int_equal(ck_state_migrations_schema(&f->m, "t", 1, (ck_value_fields){twice + 1, 1}, &err), CK_EXISTS);
    assert_int_equal(ck_state_schema_of(&f->m, "t", 1)->count, 1);
    assert_null(ck_state_schema_of(&f->m, "t", 2));
    ck_status s = CK_OK;
    for (uint32_t i = 2; s == CK_OK && i < 2 * CK_MIGRATIONS_MAX; i++)
        s = ck_state_migrations_step(&f->m, "many", i, i + 1, append, "m", &err);
    assert_int_equal(s, CK_FULL);
}

static void a_failing_step_is_named(void **state) {
    fixture *f = *state;
    ck_error err = CK_ERROR_INIT;
    ck_migration_chain c;
    ck_bytes scratch[2];
    ck_view out;
    step(f, "t", 1, 2, "a");
    assert_int_equal(ck_state_migrations_step(&f->m, "t", 2, 3, fail_it, "the price is missing", &err), CK_OK);
    assert_int_equal(ck_state_migrations_plan(&f->m, &f->arena, "t", 1, 3, &c), CK_OK);
    for (int i = 0; i < 2; i++) ck_bytes_init(&scratch[i], f->mem, SIZE_MAX);
    assert_int_equal(ck_migration_run(&c, "t", ck_view_of("v"), scratch, &out, &err), CK_DATA);
    assert_string_equal(err.msg, "state type 't', version 2 to 3: the price is missing");
    for (int i = 0; i < 2; i++) ck_bytes_destroy(&scratch[i]);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(single_steps_make_the_shortest_chain), T(additive_steps_join_chains), T(types_and_slots_have_had_other_names),
        T(what_is_no_step_is_not_taken),         T(a_failing_step_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
