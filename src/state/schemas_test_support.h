/* For tests of schemas and what becomes of them: a process, an arena, a registry of migrations. */
#ifndef CK_STATE_SCHEMAS_TEST_SUPPORT_H
#define CK_STATE_SCHEMAS_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/test_proc.h"
#include "state/state_migrations.h"

typedef struct fixture {
    ck_test_proc t;
    ck_mem mem;
    ck_arena arena;
    ck_state_migrations m;
} fixture;

static inline int setup(void **state) {
    static fixture f;
    ck_test_proc_init(&f.t);
    f.mem = ck_proc_mem(&f.t.proc, CK_MEM_STATE);
    ck_arena_init(&f.arena, f.mem, SIZE_MAX);
    ck_state_migrations_init(&f.m, &f.arena);
    *state = &f;
    return 0;
}

static inline int teardown(void **state) {
    fixture *f = *state;
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

#endif
