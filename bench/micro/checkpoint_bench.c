/* Snapshot and restore of a large table through real files: how long a barrier holds the task, how fast the file is
 * written (with its fsync), how long a restore takes. With `barriers` that many marks are taken between changes and while
 * pages are copied for the one before; their time is the thread's own CPU time, so that other work does not count.
 * Usage: checkpoint_bench [groups [directory [barriers]]]. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "checkpoint/directory.h"
#include "checkpoint/restore.h"
#include "checkpoint/subtask.h"
#include "data/builder.h"
#include "os/clock.h"
#include "os/random.h"

enum { ROWS = 4096, GROUPS = 128 };

static ck_error err;

#define OK(e)                                                                                                          \
    do {                                                                                                               \
        if ((e) != CK_OK) {                                                                                            \
            fprintf(stderr, "%s: %s\n", #e, err.msg);                                                                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const ck_type bigint = {.kind = CK_TYPE_BIGINT};
static const ck_field key[] = {{"k", &bigint, false}}, values[] = {{"sum", &bigint, false}, {"count", &bigint, false}};
static const ck_slot_schema schema = {.slot = "agg",
                                      .state_type = "agg",
                                      .version = 1,
                                      .partition = key,
                                      .partition_count = 1,
                                      .values = values,
                                      .value_count = 2};

static void count(ck_table *t, ck_mem mem, uint64_t first, uint64_t step) {
    static uint64_t hashes[ROWS];
    static ck_row *rows[ROWS];
    const uint32_t column = 0;
    const ck_type *type = &bigint;
    const ck_key_spec spec = {&column, &type, 1};
    ck_batch *b = ck_batch_new(mem, 1, ROWS, false, false);
    ck_column *c = ck_column_new(mem, CK_PHYS_I64, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) c->i64[i] = (int64_t)(first + i * step);
    ck_batch_set_column(b, 0, &c);
    ck_key_hash(&spec, b, ck_table_seed(t), hashes);
    const ck_keys keys = {&spec, b, hashes, ROWS};
    OK(ck_table_upsert(t, &keys, rows, NULL, &err));
    uint32_t at = ck_table_layout(t)->fields[2].offset;
    for (uint32_t i = 0; i < ROWS; i++) ck_row_set_i64(rows[i], at, ck_row_i64(rows[i], at) + 1);
    ck_batch_unref(&b);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How long a barrier holds the task, when 40,960 groups change between two. */
static void pauses(ck_subtask_snapshots *s, ck_state_store *store, ck_table *t, ck_mem mem, uint64_t groups,
                   uint32_t n) {
    enum { BATCHES = 5 };
    double *took = calloc(n, sizeof *took);
    if (!took) exit(1);
    for (uint32_t i = 0; i < n; i++) {
        ck_subtask_snapshot *snap;
        const uint64_t id = 1000000 + i;
        for (uint64_t k = 0; k < BATCHES; k++) count(t, mem, ck_mix64(i * 16 + k) % groups, 7);
        double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
        OK(ck_subtask_snapshot_begin(s, id, CK_BARRIER_PERIODIC, &snap, &err));
        took[i] = (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) * 1e6;
        for (uint64_t k = 0; k < BATCHES; k++) count(t, mem, ck_mix64(i * 16 + 8 + k) % groups, 7);
        ck_subtask_snapshot_end(s, snap);
        ck_subtask_snapshots_aborted(s, id);
    }
    qsort(took, n, sizeof *took, ascending);
    printf("%u barriers over %.0f MiB of state: p50 %.1f us, p99 %.1f us, max %.1f us\n", n,
           (double)ck_state_bytes(store) / (1 << 20), took[n / 2], took[n - 1 - n / 100], took[n - 1]);
    free(took);
}

int main(int argc, char **argv) {
    uint64_t groups = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    char made[] = "/tmp/clink-bench-XXXXXX";
    const char *dir = argc > 2 ? argv[2] : mkdtemp(made);
    ck_faults faults;
    ck_faults_init(&faults);
    ck_proc proc = {.heap = ck_heap_system(),
                    .clock = ck_clock_system(),
                    .random = ck_random_system(),
                    .fs = ck_fs_system(),
                    .faults = &faults};
    ck_budget_init(&proc.budget, proc.heap, 0);
    ck_mem mem = ck_proc_mem(&proc, CK_MEM_STATE);
    const ck_checkpoint_dir_config dc = {.proc = &proc, .mem = mem, .path = dir, .job_name = "bench"};
    ck_checkpoint_dir *d;
    OK(ck_checkpoint_dir_open(&dc, &d, &err));
    const ck_state_config cfg = {&proc, mem, GROUPS, {0, GROUPS - 1}, 1, true};
    ck_state_store *store, *again;
    ck_state *op;
    ck_table *t;
    OK(ck_state_store_new(&cfg, &store, &err));
    OK(ck_state_of(store, "agg", "group_agg", &op, &err));
    OK(ck_state_table(op, &schema, &t, &err));
    for (uint64_t at = 0; at < groups; at += ROWS) count(t, mem, at, 1);
    const uint64_t op_id = ck_op_id("agg");
    const ck_subtask_snapshots_config sc = {.proc = &proc,
                                            .mem = mem,
                                            .dir = dir,
                                            .vertex = op_id,
                                            .parallelism = 1,
                                            .key_groups = GROUPS,
                                            .range = {0, GROUPS - 1},
                                            .store = store};
    ck_subtask_snapshots *snapshots;
    OK(ck_subtask_snapshots_new(&sc, &snapshots, &err));
    ck_arena a;
    ck_arena_init(&a, mem, SIZE_MAX);
    const char *ops[] = {"agg"};
    ck_manifest_vertex v = {op_id, ops, 1, 1, NULL, 0};
    ck_manifest m = {.format = 1,
                     .job_name = "bench",
                     .job_uuid = ck_checkpoint_dir_job_uuid(d),
                     .key_groups = GROUPS,
                     .graph = "{}",
                     .state_versions = "",
                     .vertices = &v,
                     .vertex_count = 1};
    for (uint64_t id = ck_checkpoint_dir_next_id(d), round = 0; round < 3; id++, round++) {
        ck_subtask_snapshot *snap;
        ck_subtask_files *files;
        double start = seconds(CLOCK_MONOTONIC);
        OK(ck_subtask_snapshot_begin(snapshots, id, CK_BARRIER_PERIODIC, &snap, &err));
        double pause = seconds(CLOCK_MONOTONIC) - start, cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
        start = seconds(CLOCK_MONOTONIC);
        OK(ck_subtask_snapshot_run(snap, &files, &err));
        double wall = seconds(CLOCK_MONOTONIC) - start;
        cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
        ck_subtask_snapshot_end(snapshots, snap);
        const ck_manifest_file *f = &files->files[files->file_count - 1];
        printf("checkpoint %llu: pause %.1f us; %s of %.1f MB in %.3f s wall, %.3f s CPU (%.2f GB/s CPU)\n",
               (unsigned long long)id, pause * 1e6, f->kind == CK_FILE_BASE ? "base" : "delta", (double)f->bytes * 1e-6,
               wall, cpu, (double)f->bytes * 1e-9 / cpu);
        m.checkpoint = id, m.files = files->files, m.file_count = files->file_count;
        OK(ck_checkpoint_dir_publish(d, &m, &err));
        ck_subtask_snapshots_completed(snapshots, id);
        ck_subtask_files_free(files);
        for (int i = 0; i < 5; i++) count(t, mem, ck_mix64((uint64_t)i) % groups, 7);
    }
    if (argc > 3) pauses(snapshots, store, t, mem, groups, (uint32_t)strtoul(argv[3], NULL, 10));
    ck_checkpoint_entry newest;
    ck_manifest *read;
    ck_restore *r;
    OK(ck_checkpoint_dir_newest(d, &newest));
    OK(ck_checkpoint_dir_read(d, newest.checkpoint, &a, &read, &err));
    OK(ck_state_store_new(&cfg, &again, &err));
    OK(ck_restore_new(&proc, mem, dir, read, &r, &err));
    const ck_restore_as as = {op_id, NULL};
    const ck_restore_target target = {again, &as, 1, 0, 1, {0, GROUPS - 1}};
    OK(ck_restore_add(r, &target, &err));
    double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    OK(ck_restore_run(r, &err));
    double wall = seconds(CLOCK_MONOTONIC) - start;
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    ck_restore_stats s = ck_restore_stats_of(r);
    printf("restore of %llu rows from %llu files: %.3f s wall, %.3f s CPU, %.0f ns a row\n", (unsigned long long)s.rows,
           (unsigned long long)s.files, wall, cpu, cpu / (double)s.rows * 1e9);
    ck_restore_free(r);
    ck_state_store_free(again);
    ck_subtask_snapshots_free(snapshots);
    ck_state_store_free(store);
    ck_arena_destroy(&a);
    ck_checkpoint_dir_close(d);
    if (argc <= 2) OK(ck_fs_remove_tree(&proc, dir, &err));
    return 0;
}
