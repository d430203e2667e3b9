/* For tests of any room: a ck_proc over the real file system with a tracked heap, a seeded random and a system clock.
 * Included by *_test.c only. */
#ifndef CK_OS_TEST_PROC_H
#define CK_OS_TEST_PROC_H

#include <stdio.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/fs.h"
#include "os/random.h"

typedef struct ck_test_proc {
    ck_proc proc;
    ck_tracked_heap *heap;
    ck_seeded_random random;
    ck_faults faults;
    char dir[64]; /* an empty directory of this test's own, removed at the end; "" until asked for */
} ck_test_proc;

static inline void ck_test_proc_init(ck_test_proc *t) {
    memset(t, 0, sizeof *t);
    CK_ASSERT(ck_tracked_heap_new(&t->heap) == CK_OK);
    t->proc.heap = ck_tracked_heap_base(t->heap);
    ck_budget_init(&t->proc.budget, t->proc.heap, 0);
    ck_seeded_random_init(&t->random, 42);
    ck_faults_init(&t->faults);
    t->proc.clock = ck_clock_system();
    t->proc.random = &t->random.base;
    t->proc.fs = ck_fs_system();
    t->proc.faults = &t->faults;
    t->proc.cpu = ck_cpu_detect();
}

static inline const char *ck_test_dir(ck_test_proc *t) {
    if (t->dir[0]) return t->dir;
    snprintf(t->dir, sizeof t->dir, "/tmp/clink-test-XXXXXX");
    CK_ASSERT(mkdtemp(t->dir) != NULL);
    return t->dir;
}

/* Asserts that every block and every budgeted byte was given back. */
static inline void ck_test_proc_destroy(ck_test_proc *t) {
    if (t->dir[0]) {
        t->proc.fs = ck_fs_system();
        CK_ASSERT(ck_fs_remove_tree(&t->proc, t->dir, NULL) == CK_OK);
    }
    CK_ASSERT(ck_tracked_heap_live_blocks(t->heap) == 0);
    CK_ASSERT(ck_budget_total(&t->proc.budget) == 0);
    ck_tracked_heap_free(t->heap);
}

#endif
