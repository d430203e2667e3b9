/* Runs a fuzz target over the files of a directory, by name: how a corpus, and with it every find of the past, is a
 * test of every build. An empty input comes first; each goes in by a copy of its exact size, so that a sanitizer sees
 * any overrun.   fuzz.<name> DIR_OR_FILE... */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"
#include "os/clock.h"
#include "os/fs.h"

enum { INPUT_BYTES_MAX = 64 << 20 };

static ck_status run_file(ck_proc *proc, const char *path, ck_error *err) {
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(proc, CK_MEM_PLAN), INPUT_BYTES_MAX + 4096);
    ck_view v;
    ck_status s = ck_fs_read_all(proc, path, INPUT_BYTES_MAX, &arena, &v, err);
    if (s == CK_OK) {
        uint8_t *exact = malloc(v.n ? v.n : 1);
        CK_ASSERT(exact);
        if (v.n) memcpy(exact, v.p, v.n);
        LLVMFuzzerTestOneInput(exact, v.n);
        free(exact);
    }
    ck_arena_destroy(&arena);
    return s;
}

/* A file, or every file directly in a directory; counts those run. */
static ck_status run_path(ck_proc *proc, const char *path, size_t *count, ck_error *err) {
    ck_stat st;
    CK_TRY(proc->fs->stat(proc->fs, path, &st, err));
    if (!st.is_dir) {
        ++*count;
        return run_file(proc, path, err);
    }
    ck_arena arena;
    ck_arena_init(&arena, ck_proc_mem(proc, CK_MEM_PLAN), 64 << 20);
    const char **names;
    size_t name_count;
    ck_status s = proc->fs->list(proc->fs, path, &arena, &names, &name_count, err);
    for (size_t i = 0; s == CK_OK && i < name_count; i++) {
        const char *child = ck_arena_printf(&arena, "%s/%s", path, names[i]);
        CK_ASSERT(child);
        s = run_file(proc, child, err);
        ++*count;
        if (s != CK_OK) fprintf(stderr, "%s\n", child);
    }
    ck_arena_destroy(&arena);
    return s;
}

int main(int argc, char **argv) {
    ck_proc proc = {.heap = ck_heap_system(), .fs = ck_fs_system(), .clock = ck_clock_system()};
    ck_budget_init(&proc.budget, proc.heap, 0);
    size_t count = 0;
    int64_t begin = ck_mono_us(&proc);
    uint8_t nothing = 0;
    LLVMFuzzerTestOneInput(&nothing, 0);
    for (int i = 1; i < argc; i++) {
        ck_error err = CK_ERROR_INIT;
        if (run_path(&proc, argv[i], &count, &err) == CK_OK) continue;
        fprintf(stderr, "replay: %s\n", err.msg);
        return 1;
    }
    if (count == 0) { /* a corpus that is not there tests nothing */
        fprintf(stderr, "replay: no input\n");
        return 1;
    }
    printf("%zu inputs in %lld ms\n", count, (long long)(ck_mono_us(&proc) - begin) / 1000);
    return 0;
}
