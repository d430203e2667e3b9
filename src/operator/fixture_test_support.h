/* A harness and its proc, as cmocka's state. */
#ifndef CK_OPERATOR_FIXTURE_TEST_SUPPORT_H
#define CK_OPERATOR_FIXTURE_TEST_SUPPORT_H

#include "operator/harness_test_support.h"

struct ck_test_proc;

/* Expands in a test that includes os/test_proc.h: fixture, setup, teardown and T(test). */
#define HARNESS_FIXTURE                                                                                                \
    typedef struct fixture {                                                                                           \
        ck_test_proc proc;                                                                                             \
        harness h;                                                                                                     \
    } fixture;                                                                                                         \
    static int setup(void **state) {                                                                                   \
        fixture *f = calloc(1, sizeof *f);                                                                             \
        ck_test_proc_init(&f->proc);                                                                                   \
        harness_init(&f->h, &f->proc.proc);                                                                            \
        *state = f;                                                                                                    \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static int teardown(void **state) {                                                                                \
        fixture *f = *state;                                                                                           \
        harness_destroy(&f->h);                                                                                        \
        ck_test_proc_destroy(&f->proc);                                                                                \
        free(f);                                                                                                       \
        return 0;                                                                                                      \
    }
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
