/* For this room's tests: a job of one keyed vertex with some subtasks over a directory, with the state of
 * state/model-like slots kept simple: counts by text key, windows by bucket, splits and committables. */
#ifndef CK_CHECKPOINT_SAMPLE_INT_H
#define CK_CHECKPOINT_SAMPLE_INT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "checkpoint/changelog.h"
#include "checkpoint/directory.h"
#include "checkpoint/restore.h"
#include "checkpoint/subtask.h"
#include "os/durable.h"
#include "os/simfs.h"
#include "os/test_proc.h"
#include "state/operator_rows.h"

enum { SAMPLE_GROUPS = 128, SAMPLE_KEYS = 500, SAMPLE_SUBTASKS_MAX = 8 };

#define OK(expr)                                                                                                       \
    do {                                                                                                               \
        ck_status ok_s_ = (expr);                                                                                      \
        if (ok_s_ != CK_OK) fail_msg("%s: %s: %s", #expr, ck_status_name(ok_s_), err.msg);                             \
    } while (0)

static inline const ck_slot_schema *sample_slot(void) {
    static const ck_type varchar = {.kind = CK_TYPE_VARCHAR}, bigint = {.kind = CK_TYPE_BIGINT};
    static const ck_field key = {"usr", &varchar, true};
    static const ck_field values[] = {{"count(*)", &bigint, false}, {"max(note)", &varchar, true}};
    static const ck_slot_schema slot = {.slot = "agg",
                                        .state_type = "group_agg",
                                        .version = 1,
                                        .mode = CK_SLOT_KEYED,
                                        .partition = &key,
                                        .partition_count = 1,
                                        .values = values,
                                        .value_count = 2};
    return &slot;
}
static inline const ck_slot_schema *sample_offset_slot(void) { /* union state of 8 bytes */
    static const ck_type varchar = {.kind = CK_TYPE_VARCHAR}, bigint = {.kind = CK_TYPE_BIGINT};
    static const ck_field key = {"partition", &varchar, false}, value = {"offset", &bigint, false};
    static const ck_slot_schema slot = {.slot = "offsets",
                                        .state_type = "offsets",
                                        .version = 1,
                                        .mode = CK_SLOT_UNION,
                                        .partition = &key,
                                        .partition_count = 1,
                                        .values = &value,
                                        .value_count = 1};
    return &slot;
}

/* Counts by key: what the state must be. */
typedef struct sample_model {
    int64_t count[SAMPLE_KEYS + 1]; /* the last is NULL's */
} sample_model;

typedef struct sample_subtask {
    ck_state_store *store;
    ck_state *agg;
    ck_table *table;
    ck_subtask_snapshots *snapshots;
    ck_key_group_range range;
} sample_subtask;

typedef struct sample_job {
    ck_proc *proc;
    ck_mem mem;
    const char *dir;
    uint32_t parallelism;
    ck_changelog_config changelog; /* set between sample_open and sample_start */
    sample_subtask s[SAMPLE_SUBTASKS_MAX];
    sample_model model;
} sample_job;

#define SAMPLE_UID    "agg(usr)<-orders"
#define SAMPLE_VERTEX ck_op_id(SAMPLE_UID)

static inline void sample_key_text(uint32_t key, char *text, size_t n) { /* around the 12 bytes held in place */
    snprintf(text, n, "%s%u", key % 3 == 0 ? "a-customer-with-a-long-name-" : "u", key);
}

static inline ck_batch *sample_batch(ck_mem mem, const uint32_t *keys, uint32_t n) {
    ck_batch *b = ck_batch_new(mem, 1, n, false, false);
    ck_column_builder cb;
    assert_non_null(b);
    assert_int_equal(ck_column_builder_init(&cb, mem, sample_slot()->partition[0].type, n), CK_OK);
    for (uint32_t i = 0; i < n; i++) {
        char text[64];
        sample_key_text(keys[i], text, sizeof text);
        assert_int_equal(keys[i] == SAMPLE_KEYS ? ck_build_null(&cb) : ck_build_str(&cb, text, strlen(text)), CK_OK);
    }
    ck_column *c = ck_column_builder_finish(&cb);
    assert_non_null(c);
    ck_batch_set_column(b, 0, &c);
    ck_column_builder_destroy(&cb);
    return b;
}

static inline uint32_t sample_owner(const sample_job *j, uint32_t key) {
    char text[64];
    sample_key_text(key, text, sizeof text);
    ck_view v = key == SAMPLE_KEYS ? (ck_view){"\xFF", 1} : ck_view_of(text);
    return ck_subtask_for_key_group(ck_key_group_for_key(v, SAMPLE_GROUPS), j->parallelism, SAMPLE_GROUPS);
}

/* Counts these keys, each in its subtask. */
static inline ck_status sample_count(sample_job *j, const uint32_t *keys, uint32_t n, int64_t by) {
    ck_error err = CK_ERROR_INIT;
    const uint32_t column = 0;
    const ck_type *type = sample_slot()->partition[0].type;
    const ck_key_spec spec = {&column, &type, 1};
    for (uint32_t p = 0; p < j->parallelism; p++) {
        uint32_t mine[256], m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (sample_owner(j, keys[i]) == p) mine[m++] = keys[i];
        if (m == 0) continue;
        ck_table *t = j->s[p].table;
        ck_batch *b = sample_batch(j->mem, mine, m);
        uint64_t hashes[256];
        ck_row *rows[256];
        ck_key_hash(&spec, b, ck_table_seed(t), hashes);
        const ck_keys k = {&spec, b, hashes, m};
        ck_status s = ck_table_upsert(t, &k, rows, NULL, &err);
        const ck_row_layout *l = ck_table_layout(t);
        for (uint32_t i = 0; i < m && s == CK_OK; i++) {
            int64_t count = ck_row_i64(rows[i], l->fields[1].offset) + by;
            ck_row_set_i64(rows[i], l->fields[1].offset, count);
            char note[64];
            snprintf(note, sizeof note, "the note of row %lld", (long long)count);
            s = ck_table_set_str(t, rows[i], 2, ck_view_of(note));
        }
        ck_batch_unref(&b);
        if (s != CK_OK) return s;
    }
    for (uint32_t i = 0; i < n; i++) j->model.count[keys[i]] += by;
    return CK_OK;
}

static inline void sample_erase(sample_job *j, uint32_t key) {
    ck_error err = CK_ERROR_INIT;
    const uint32_t column = 0;
    const ck_type *type = sample_slot()->partition[0].type;
    const ck_key_spec spec = {&column, &type, 1};
    ck_table *t = j->s[sample_owner(j, key)].table;
    ck_batch *b = sample_batch(j->mem, &key, 1);
    uint64_t hash;
    const ck_row *row;
    ck_key_hash(&spec, b, ck_table_seed(t), &hash);
    const ck_keys k = {&spec, b, &hash, 1};
    OK(ck_table_find(t, &k, &row, &err));
    ck_row *gone = (ck_row *)(uintptr_t)row;
    if (row) OK(ck_table_erase(t, &gone, 1, &err));
    ck_batch_unref(&b);
    j->model.count[key] = 0;
}

/* Every row of every subtask against the model. */
static inline void sample_check(sample_job *j) {
    sample_model found = {{0}};
    for (uint32_t p = 0; p < j->parallelism; p++) {
        ck_table *t = j->s[p].table;
        ck_table_scan scan = {0};
        ck_row *rows[64];
        const ck_row_layout *l = ck_table_layout(t);
        for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 64)) > 0;)
            for (uint32_t i = 0; i < n; i++) {
                uint32_t key = SAMPLE_KEYS;
                if (!ck_row_null(rows[i], l->fields[0].null_bit)) {
                    ck_view v = ck_table_str(t, rows[i], 0);
                    while (v.n && (v.p[0] < '0' || v.p[0] > '9')) v.p++, v.n--;
                    char digits[16] = "";
                    memcpy(digits, v.p, v.n < 15 ? v.n : 15);
                    key = (uint32_t)strtoul(digits, NULL, 10);
                }
                assert_int_equal(sample_owner(j, key), p);
                found.count[key] = ck_row_i64(rows[i], l->fields[1].offset);
                char note[64];
                snprintf(note, sizeof note, "the note of row %lld", (long long)found.count[key]);
                assert_true(ck_view_is(ck_table_str(t, rows[i], 2), note));
            }
    }
    for (uint32_t k = 0; k <= SAMPLE_KEYS; k++) assert_int_equal(found.count[k], j->model.count[k]);
}

static inline void sample_open(sample_job *j, ck_proc *proc, const char *dir, uint32_t parallelism) {
    ck_error err = CK_ERROR_INIT;
    *j = (sample_job){.proc = proc, .mem = ck_proc_mem(proc, CK_MEM_STATE), .dir = dir, .parallelism = parallelism};
    for (uint32_t p = 0; p < parallelism; p++) {
        sample_subtask *s = &j->s[p];
        s->range = ck_key_group_range_for_subtask(p, parallelism, SAMPLE_GROUPS);
        const ck_state_config cfg = {proc, j->mem, SAMPLE_GROUPS, s->range, 1234, true};
        OK(ck_state_store_new(&cfg, &s->store, &err));
    }
}

/* After a restore, if any. */
static inline ck_status sample_start(sample_job *j) {
    ck_error err = CK_ERROR_INIT;
    for (uint32_t p = 0; p < j->parallelism; p++) {
        sample_subtask *s = &j->s[p];
        CK_TRY(ck_state_of(s->store, SAMPLE_UID, "group_agg", &s->agg, &err));
        CK_TRY(ck_state_table(s->agg, sample_slot(), &s->table, &err));
        const ck_subtask_snapshots_config cfg = {.proc = j->proc,
                                                 .mem = j->mem,
                                                 .dir = j->dir,
                                                 .vertex = SAMPLE_VERTEX,
                                                 .subtask = p,
                                                 .parallelism = j->parallelism,
                                                 .key_groups = SAMPLE_GROUPS,
                                                 .range = s->range,
                                                 .store = s->store,
                                                 .changelog = j->changelog};
        CK_TRY(ck_subtask_snapshots_new(&cfg, &s->snapshots, &err));
    }
    return CK_OK;
}

static inline void sample_close(sample_job *j) {
    for (uint32_t p = 0; p < j->parallelism; p++) {
        ck_subtask_snapshots_free(j->s[p].snapshots);
        ck_state_store_free(j->s[p].store);
        j->s[p] = (sample_subtask){0};
    }
}

/* Snapshots every subtask and publishes the manifest; aborts when something fails (and says what). */
static inline ck_status sample_checkpoint(sample_job *j, ck_checkpoint_dir *d, uint64_t id, ck_barrier_kind kind,
                                          ck_error *err) {
    ck_subtask_files *files[SAMPLE_SUBTASKS_MAX] = {0};
    ck_manifest_file all[SAMPLE_SUBTASKS_MAX * (CK_DELTAS_MAX + 2)];
    uint32_t n = 0;
    ck_status s = CK_OK;
    for (uint32_t p = 0; p < j->parallelism && s == CK_OK; p++) {
        ck_subtask_snapshot *snap;
        s = ck_subtask_snapshot_begin(j->s[p].snapshots, id, kind, &snap, err);
        if (s != CK_OK) break;
        s = ck_subtask_snapshot_run(snap, &files[p], err);
        ck_subtask_snapshot_end(j->s[p].snapshots, snap);
        for (uint32_t i = 0; files[p] && i < files[p]->file_count; i++) all[n++] = files[p]->files[i];
    }
    const char *const ops[] = {SAMPLE_UID};
    ck_manifest_vertex v = {.id = SAMPLE_VERTEX, .ops = ops, .op_count = 1, .parallelism = j->parallelism};
    const ck_manifest m = {.format = 1,
                           .job_name = ck_checkpoint_dir_job_name(d),
                           .job_uuid = ck_checkpoint_dir_job_uuid(d),
                           .checkpoint = id,
                           .attempt = ck_checkpoint_dir_attempt(d),
                           .kind = kind,
                           .started_ms = 1000,
                           .completed_ms = 2000,
                           .key_groups = SAMPLE_GROUPS,
                           .graph = "{\"name\":\"orders\",\"ops\":[]}",
                           .graph_hash = 0xabcdef,
                           .state_versions = "",
                           .vertices = &v,
                           .vertex_count = 1,
                           .files = all,
                           .file_count = n};
    if (s == CK_OK) s = ck_checkpoint_dir_publish(d, &m, err);
    for (uint32_t p = 0; p < j->parallelism; p++) {
        ck_subtask_files_free(files[p]);
        if (s == CK_OK)
            ck_subtask_snapshots_completed(j->s[p].snapshots, id);
        else
            ck_subtask_snapshots_aborted(j->s[p].snapshots, id);
    }
    return s;
}

/* A new job out of checkpoint id, at any parallelism. */
static inline ck_status sample_restore(sample_job *j, ck_checkpoint_dir *d, uint64_t id, ck_proc *proc,
                                       uint32_t parallelism, ck_error *err) {
    ck_arena a;
    ck_manifest *m;
    ck_restore *r = NULL;
    const char *dir = ck_checkpoint_dir_path(d);
    sample_open(j, proc, dir, parallelism);
    ck_arena_init(&a, j->mem, SIZE_MAX);
    ck_status s = ck_checkpoint_dir_read(d, id, &a, &m, err);
    if (s == CK_OK) s = ck_restore_new(proc, j->mem, dir, m, &r, err);
    const uint64_t op = SAMPLE_VERTEX;
    for (uint32_t p = 0; p < parallelism && s == CK_OK; p++) {
        const ck_restore_as as = {.stored = op};
        const ck_restore_target t = {j->s[p].store, &as, 1, p, parallelism, j->s[p].range};
        s = ck_restore_add(r, &t, err);
    }
    if (s == CK_OK) s = ck_restore_run(r, err);
    if (s == CK_OK) s = sample_start(j);
    ck_restore_free(r);
    ck_arena_destroy(&a);
    return s;
}

static inline ck_status sample_dir(ck_proc *proc, const char *path, bool fresh, ck_checkpoint_dir **out,
                                   ck_error *err) {
    const ck_checkpoint_dir_config cfg = {
        .proc = proc, .mem = ck_proc_mem(proc, CK_MEM_PLAN), .path = path, .job_name = "orders", .fresh = fresh};
    CK_TRY(ck_checkpoint_dir_open(&cfg, out, err));
    return ck_checkpoint_dir_begin(*out, err);
}

#endif
