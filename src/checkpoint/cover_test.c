/* A directory that several regions of a job share: numbers and locks, which manifests belong together, what is noticed
 * when one is missing or damaged, what retention leaves, savepoints. Manifests are written by hand: a vertex with a
 * file for each region. */
#include <pthread.h>

#include "checkpoint/savepoint.h"
#include "checkpoint/sample_int.h"

enum { REGIONS_MAX = 5, GRAPH_A = 0xa, GRAPH_B = 0xb, GRAPH_C = 0xc };

typedef struct world {
    ck_test_proc t;
    ck_arena a;
    ck_mem mem;
    char dir[200];
    uint64_t ops[REGIONS_MAX];
    uint32_t of_op[REGIONS_MAX];
} world;

static ck_error err;

static const char *op_name(uint32_t region) {
    static const char *const names[REGIONS_MAX] = {"source:a", "source:b", "source:c", "source:d", "source:e"};
    return names[region];
}

static void world_open(world *w) {
    *w = (world){0};
    err = CK_ERROR_INIT;
    ck_test_proc_init(&w->t);
    w->mem = ck_proc_mem(&w->t.proc, CK_MEM_PLAN);
    ck_arena_init(&w->a, w->mem, SIZE_MAX);
    snprintf(w->dir, sizeof w->dir, "%s/ck", ck_test_dir(&w->t));
    for (uint32_t i = 0; i < REGIONS_MAX; i++) w->ops[i] = ck_op_id(op_name(i)), w->of_op[i] = i;
}

static void world_close(world *w) {
    ck_arena_destroy(&w->a);
    ck_test_proc_destroy(&w->t);
}

static ck_checkpoint_region region_of(const world *w, uint32_t index, uint32_t count, uint64_t graph) {
    return (ck_checkpoint_region){index, count, graph, w->ops, w->of_op, count};
}

/* count 0: the whole; read: read-only. */
static ck_status open_as(world *w, uint32_t index, uint32_t count, uint64_t graph, bool read, ck_checkpoint_dir **out) {
    ck_checkpoint_dir_config cfg = {.proc = &w->t.proc,
                                    .mem = w->mem,
                                    .path = w->dir,
                                    .job_name = "orders",
                                    .read_only = read,
                                    .lock_wait_us = 20000};
    if (count) cfg.region = region_of(w, index, count, graph);
    err = CK_ERROR_INIT;
    return ck_checkpoint_dir_open(&cfg, out, &err);
}

static ck_checkpoint_dir *region(world *w, uint32_t index, uint32_t count, uint64_t graph) {
    ck_checkpoint_dir *d;
    OK(open_as(w, index, count, graph, false, &d));
    return d;
}
static ck_checkpoint_dir *whole(world *w) {
    ck_checkpoint_dir *d;
    OK(open_as(w, 0, 0, 0, false, &d));
    return d;
}
static ck_checkpoint_dir *reader(world *w) {
    ck_checkpoint_dir *d;
    OK(open_as(w, 0, 0, 0, true, &d));
    return d;
}

static const char *path_of(world *w, const char *relative) { return ck_arena_printf(&w->a, "%s/%s", w->dir, relative); }
static bool there(world *w, const char *relative) {
    ck_stat st;
    return w->t.proc.fs->stat(w->t.proc.fs, path_of(w, relative), &st, NULL) == CK_OK;
}
static void put(world *w, const char *relative, const char *text) {
    OK(ck_durable_replace_bytes(&w->t.proc, path_of(w, relative), ck_view_of(text), &err));
}
static void take_away(world *w, const char *relative) {
    OK(w->t.proc.fs->unlink(w->t.proc.fs, path_of(w, relative), &err));
}
static const char *manifest(world *w, uint64_t id) { return ck_checkpoint_path_manifest(&w->a, id); }
static const char *file(world *w, uint32_t vertex, uint64_t id) {
    return ck_checkpoint_path_file(&w->a, w->ops[vertex], 0, id, CK_FILE_BASE);
}

/* A checkpoint of the vertices first..last, with a file each; regions 0: of the whole. */
static ck_status publish(world *w, ck_checkpoint_dir *d, uint64_t id, ck_barrier_kind kind, uint32_t regions,
                         uint64_t graph, uint32_t first, uint32_t last) {
    const char *ops[REGIONS_MAX];
    ck_manifest_vertex vertices[REGIONS_MAX];
    ck_manifest_file files[REGIONS_MAX];
    uint32_t n = 0;
    for (uint32_t v = first; v <= last; v++, n++) {
        const char *text = ck_arena_printf(&w->a, "rows of %u at %llu", v, (unsigned long long)id);
        const char *folder = path_of(w, ck_arena_printf(&w->a, "%llu/0", (unsigned long long)w->ops[v]));
        CK_TRY(ck_fs_mkdirs(&w->t.proc, folder, &err));
        put(w, file(w, v, id), text);
        ops[n] = op_name(v);
        vertices[n] = (ck_manifest_vertex){.id = w->ops[v], .ops = &ops[n], .op_count = 1, .parallelism = 1};
        files[n] = (ck_manifest_file){.path = file(w, v, id),
                                      .bytes = strlen(text),
                                      .crc32c = ck_crc32c(0, text, strlen(text)),
                                      .vertex = w->ops[v],
                                      .ops = &w->ops[v],
                                      .op_count = 1,
                                      .key_groups = {0, 127}};
    }
    const ck_manifest m = {.job_name = "orders",
                           .job_uuid = ck_checkpoint_dir_job_uuid(d),
                           .checkpoint = id,
                           .attempt = ck_checkpoint_dir_attempt(d),
                           .kind = kind,
                           .started_ms = 1,
                           .completed_ms = 2,
                           .key_groups = 128,
                           .graph = "{}",
                           .graph_hash = graph,
                           .region = regions ? first : 0,
                           .regions = regions,
                           .state_versions = "",
                           .vertices = vertices,
                           .vertex_count = n,
                           .files = files,
                           .file_count = n};
    return ck_checkpoint_dir_publish(d, &m, &err);
}

/* Of region `r` of two, committed. */
static void take(world *w, ck_checkpoint_dir *d, uint64_t id, ck_barrier_kind kind, uint64_t graph, uint32_t r) {
    OK(publish(w, d, id, kind, 2, graph, r, r));
    OK(ck_checkpoint_dir_mark_committed(d, id, &err));
}
static void take_whole(world *w, ck_checkpoint_dir *d, uint64_t id) {
    OK(publish(w, d, id, CK_BARRIER_PERIODIC, 0, GRAPH_A, 0, 1));
    OK(ck_checkpoint_dir_mark_committed(d, id, &err));
}
static void take_alone(world *w, uint64_t id, ck_barrier_kind kind, uint64_t graph, uint32_t r) {
    ck_checkpoint_dir *d = region(w, r, 2, graph);
    take(w, d, id, kind, graph, r);
    ck_checkpoint_dir_close(d);
}

/* The cover as "part part..", or the failure's name. */
static const char *cover(world *w, ck_checkpoint_dir *d, uint64_t id, bool newest) {
    ck_manifest *m;
    err = CK_ERROR_INIT;
    ck_status s = (newest ? ck_checkpoint_dir_read_newest : ck_checkpoint_dir_read)(d, id, &w->a, &m, &err);
    if (s == CK_NOTFOUND && err.status == CK_OK) return "anew";
    if (s != CK_OK) return ck_status_name(s);
    const char *out = "";
    if (m->part_count == 0) return ck_arena_printf(&w->a, "%llu", (unsigned long long)m->checkpoint);
    assert_int_equal(m->checkpoint, id);
    for (uint32_t i = 0; i < m->part_count; i++) {
        const ck_manifest_part *p = &m->parts[i];
        out = ck_arena_printf(&w->a, "%s%s%llu", out, i ? " " : "", (unsigned long long)p->checkpoint);
        assert_int_equal(p->vertex_count, 1);
        assert_string_equal(m->vertices[p->first_vertex].ops[0], op_name(p->region));
        assert_int_equal(ck_manifest_checkpoint_of_op(m, op_name(p->region)), p->checkpoint);
        assert_int_equal(ck_manifest_checkpoint_of_vertex(m, w->ops[p->region]), p->checkpoint);
        assert_string_equal(m->files[i].path, file(w, p->region, p->checkpoint));
    }
    assert_int_equal(ck_manifest_checkpoint_of_op(m, "source:of-nobody"), 0);
    return out;
}

/* What a run of the whole, or of region r of graph, would go on from. */
static const char *newest_as(world *w, uint32_t r, uint32_t count, uint64_t graph) {
    ck_checkpoint_dir *d;
    ck_checkpoint_entry e;
    OK(open_as(w, r, count, graph, true, &d));
    const char *out = ck_checkpoint_dir_newest(d, &e) == CK_OK ? cover(w, d, e.checkpoint, true) : "anew";
    ck_checkpoint_dir_close(d);
    return out;
}
static const char *as_of(world *w, uint64_t id) {
    ck_checkpoint_dir *d = reader(w);
    const char *out = cover(w, d, id, false);
    ck_checkpoint_dir_close(d);
    return out;
}

/* ---- numbers and owners ---- */

static void numbers_say_which_region(void **state) {
    (void)state;
    world w;
    world_open(&w);
    for (uint32_t count = 1; count <= REGIONS_MAX; count++)
        for (uint32_t r = 0; r < count; r++) {
            const ck_checkpoint_region of = region_of(&w, r, count, GRAPH_A);
            uint64_t step = ck_checkpoint_region_step(&of);
            assert_true(step >= count && step < 2 * count);
            for (uint64_t id = 1; id < 40; id++) {
                uint64_t got = ck_checkpoint_region_id(&of, id);
                assert_true(got >= id && got < id + step && got % step == r);
            }
        }
    ck_checkpoint_dir *a = region(&w, 0, 2, GRAPH_A), *b = region(&w, 1, 2, GRAPH_A);
    assert_int_equal(ck_checkpoint_dir_next_id(a), 2);
    assert_int_equal(ck_checkpoint_dir_next_id(b), 1);
    assert_string_equal(ck_checkpoint_dir_job_uuid(a), ck_checkpoint_dir_job_uuid(b));
    assert_true(ck_checkpoint_dir_attempt(a) < ck_checkpoint_dir_attempt(b));
    take(&w, a, 20, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    ck_checkpoint_dir_close(b);
    b = region(&w, 1, 2, GRAPH_A); /* above what the other has made meanwhile */
    assert_int_equal(ck_checkpoint_dir_next_id(b), 21);
    assert_int_equal(publish(&w, a, 23, CK_BARRIER_PERIODIC, 2, GRAPH_A, 0, 0), CK_CORRUPT);
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    a = whole(&w);
    assert_int_equal(ck_checkpoint_dir_next_id(a), 24); /* a file of 23 is there */
    ck_checkpoint_dir_close(a);
    world_close(&w);
}

static void refused(world *w, uint32_t r, uint32_t count, uint64_t graph) {
    ck_checkpoint_dir *d = NULL;
    assert_int_equal(open_as(w, r, count, graph, false, &d), CK_REFUSED);
    assert_non_null(strstr(err.msg, "in use by another run (process"));
    assert_false(err.fatal);
    assert_null(d);
}

static void regions_share_and_nobody_else(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_checkpoint_dir *a = region(&w, 0, 2, GRAPH_A), *b = region(&w, 1, 2, GRAPH_A);
    refused(&w, 0, 2, GRAPH_A); /* it is alive */
    refused(&w, 0, 0, 0);       /* the whole */
    ck_checkpoint_dir_close(a);
    refused(&w, 0, 0, 0);
    refused(&w, 0, 2, GRAPH_B); /* another script */
    refused(&w, 0, 3, GRAPH_A);
    refused(&w, 2, 3, GRAPH_B);
    a = region(&w, 0, 2, GRAPH_A);
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    a = whole(&w);
    refused(&w, 1, 2, GRAPH_A);
    refused(&w, 0, 0, 0);
    ck_checkpoint_dir_close(a);
    a = region(&w, 0, 2, GRAPH_B);
    ck_checkpoint_dir_close(a);
    world_close(&w);
}

/* A region that opens while another does is let in when that one is through. */
static void *hold_job_lock(void *arg) {
    world *w = arg;
    ck_file *f;
    CK_ASSERT(w->t.proc.fs->open(w->t.proc.fs, path_of(w, "job.lock"), CK_OPEN_READWRITE, &f, NULL) == CK_OK);
    CK_ASSERT(w->t.proc.fs->lock(f, NULL) == CK_OK);
    return f;
}
static void *let_go(void *arg) {
    ck_file *f = arg;
    f->fs->close(f);
    return NULL;
}

static void an_opening_is_waited_for(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_checkpoint_dir *d = region(&w, 0, 2, GRAPH_A);
    ck_checkpoint_dir_config cfg = {.proc = &w.t.proc,
                                    .mem = w.mem,
                                    .path = w.dir,
                                    .job_name = "orders",
                                    .lock_wait_us = 600 * 1000000LL,
                                    .region = region_of(&w, 1, 2, GRAPH_A)};
    ck_file *f = hold_job_lock(&w);
    ck_checkpoint_dir *other;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, let_go, f), 0); /* before or while it waits: both are fine */
    OK(ck_checkpoint_dir_open(&cfg, &other, &err));
    pthread_join(thread, NULL);
    ck_checkpoint_dir_close(other);
    ck_checkpoint_dir_close(d);
    world_close(&w);
}

/* A region that looks whether another is alive has that one's lock for a moment. */
static bool looked;
static ck_status lock_behind_a_look(ck_file *f, ck_error *e) {
    if (looked) return ck_fs_system()->lock(f, e);
    looked = true;
    return ck_fail(e, CK_EXISTS, "another holds it");
}

static void a_look_is_no_run(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_fs fs = *w.t.proc.fs, *before = w.t.proc.fs;
    fs.lock = lock_behind_a_look;
    w.t.proc.fs = &fs;
    looked = false;
    ck_checkpoint_dir *d = region(&w, 1, 2, GRAPH_A);
    assert_true(looked);
    w.t.proc.fs = before;
    ck_checkpoint_dir_close(d);
    world_close(&w);
}

static void only_its_own_temporary_files(void **state) {
    (void)state;
    world w;
    world_open(&w);
    char of[3][100];
    const uint64_t vertices[] = {w.ops[0], w.ops[1], 77}; /* the last is of no operator of the graph */
    take_alone(&w, 2, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 3, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    OK(ck_fs_mkdirs(&w.t.proc, path_of(&w, "77/0"), &err));
    for (int i = 0; i < 3; i++) {
        snprintf(of[i], sizeof of[i], "%llu/0/.tmp-checkpoint-4.snap-0123456789abcdef",
                 (unsigned long long)vertices[i]);
        put(&w, of[i], "half");
    }
    put(&w, ".tmp-checkpoint-4.json-0123456789abcdef", "half");
    put(&w, ".tmp-checkpoint-5.json-0123456789abcdef", "half");
    ck_checkpoint_dir *b = region(&w, 1, 2, GRAPH_A);
    assert_true(there(&w, of[0]) && !there(&w, of[1]) && there(&w, of[2]));
    assert_true(there(&w, ".tmp-checkpoint-4.json-0123456789abcdef"));
    assert_false(there(&w, ".tmp-checkpoint-5.json-0123456789abcdef"));
    ck_checkpoint_dir *a = region(&w, 0, 2, GRAPH_A);
    assert_false(there(&w, of[0]) || there(&w, of[2]) || there(&w, ".tmp-checkpoint-4.json-0123456789abcdef"));
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    world_close(&w);
}

static void one_fresh_start_for_all(void **state) {
    (void)state;
    world w;
    world_open(&w);
    take_alone(&w, 2, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    static const char uuid[] = "01234567-89ab-4def-8123-456789abcdef";
    ck_checkpoint_dir_config cfg = {.proc = &w.t.proc,
                                    .mem = w.mem,
                                    .path = w.dir,
                                    .job_name = "orders",
                                    .fresh = true,
                                    .fresh_uuid = uuid,
                                    .region = region_of(&w, 0, 2, GRAPH_A)};
    ck_checkpoint_dir *a, *b;
    ck_checkpoint_entry e;
    OK(ck_checkpoint_dir_open(&cfg, &a, &err));
    assert_string_equal(ck_checkpoint_dir_job_uuid(a), uuid);
    assert_int_equal(ck_checkpoint_dir_newest(a, &e), CK_NOTFOUND);
    take(&w, a, 4, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    cfg.region.index = 1;
    OK(ck_checkpoint_dir_open(&cfg, &b, &err));
    assert_string_equal(ck_checkpoint_dir_job_uuid(b), uuid);
    ck_checkpoint_dir_close(a);
    cfg.region.index = 0;
    OK(ck_checkpoint_dir_open(&cfg, &a, &err)); /* started again with the same word */
    assert_int_equal(ck_checkpoint_dir_newest(a, &e), CK_OK);
    assert_int_equal(e.checkpoint, 4);
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    world_close(&w);
}

/* ---- what belongs together ---- */

static void the_newest_of_each_region(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_checkpoint_dir *a = region(&w, 0, 2, GRAPH_A), *b = region(&w, 1, 2, GRAPH_A);
    take(&w, a, 2, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    assert_string_equal(newest_as(&w, 0, 0, 0), "2"); /* the other has had nothing yet */
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "anew");
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_A), "2");
    take(&w, b, 7, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    take(&w, a, 4, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take(&w, b, 9, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    assert_string_equal(newest_as(&w, 0, 0, 0), "4 9");
    assert_string_equal(as_of(&w, 7), "4 7");
    assert_string_equal(as_of(&w, 4), "refused"); /* 1 began later, or what it had has gone */
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_A), "4");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "9");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_B), "4 9"); /* another script goes on from all of it */
    assert_string_equal(newest_as(&w, 2, 3, GRAPH_A), "4 9");
    assert_string_equal(as_of(&w, 8), "not found");
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    world_close(&w);
}

static void a_savepoint_is_one_of_each(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_checkpoint_dir *a = region(&w, 0, 2, GRAPH_A), *b = region(&w, 1, 2, GRAPH_A);
    take(&w, a, 16, CK_BARRIER_SAVEPOINT, GRAPH_A, 0);
    take(&w, a, 18, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take(&w, b, 21, CK_BARRIER_SAVEPOINT, GRAPH_A, 1);
    assert_string_equal(as_of(&w, 21), "16 21");          /* by its number */
    assert_string_equal(newest_as(&w, 0, 0, 0), "18 21"); /* what there is */
    take(&w, a, 22, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take(&w, a, 24, CK_BARRIER_SAVEPOINT, GRAPH_A, 0);
    take(&w, b, 25, CK_BARRIER_SAVEPOINT, GRAPH_A, 1);
    assert_string_equal(as_of(&w, 21), "16 21");
    assert_string_equal(as_of(&w, 25), "24 25");
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    ck_manifest *m;
    a = reader(&w);
    OK(ck_checkpoint_dir_read(a, 25, &w.a, &m, &err));
    assert_int_equal(m->kind, CK_BARRIER_SAVEPOINT);
    OK(ck_checkpoint_dir_read(a, 22, &w.a, &m, &err));
    assert_int_equal(m->kind, CK_BARRIER_PERIODIC);
    ck_checkpoint_dir_close(a);
    world_close(&w);
}

static void finished_when_all_have(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_manifest *m;
    take_alone(&w, 2, CK_BARRIER_FINAL, GRAPH_A, 0);
    for (int i = 0; i < 3; i++) {
        ck_checkpoint_dir *d = reader(&w);
        ck_checkpoint_entry e;
        OK(ck_checkpoint_dir_newest(d, &e));
        OK(ck_checkpoint_dir_read_newest(d, e.checkpoint, &w.a, &m, &err));
        assert_int_equal(m->kind, i < 2 ? CK_BARRIER_PERIODIC : CK_BARRIER_FINAL);
        ck_checkpoint_dir_close(d);
        if (i < 2) take_alone(&w, i ? 9 : 7, i ? CK_BARRIER_FINAL : CK_BARRIER_PERIODIC, GRAPH_A, 1);
    }
    world_close(&w);
}

static void of_one_graph(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_checkpoint_dir *d = whole(&w);
    take_whole(&w, d, 1);
    ck_checkpoint_dir_close(d);
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "1");
    take_alone(&w, 2, CK_BARRIER_PERIODIC, GRAPH_B, 0);
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_B), "1"); /* whatever the other has written since */
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_B), "2");
    assert_string_equal(newest_as(&w, 0, 0, 0), "refused"); /* no manifests of one graph are all of it */
    assert_non_null(strstr(err.msg, "region 1 of 2 has no checkpoint yet"));
    assert_non_null(strstr(err.msg, "checkpoint 1 of the script before"));
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_C), "refused"); /* two changes at once */
    assert_string_equal(as_of(&w, 1), "1");
    take_alone(&w, 5, CK_BARRIER_PERIODIC, GRAPH_B, 1);
    assert_string_equal(newest_as(&w, 0, 0, 0), "2 5");
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_C), "2 5");
    take_alone(&w, 7, CK_BARRIER_PERIODIC, GRAPH_C, 1);
    take_alone(&w, 9, CK_BARRIER_PERIODIC, GRAPH_C, 1);
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_C), "2 5");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_C), "9");
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_B), "refused"); /* back again is another change */
    assert_string_equal(as_of(&w, 5), "2 5");
    take_alone(&w, 12, CK_BARRIER_PERIODIC, GRAPH_C, 0);
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_B), "12 9");
    world_close(&w);
}

/* Of one graph the whole and its regions: of each region the newest that has it. */
static void the_whole_behind_its_regions(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_manifest *m;
    ck_checkpoint_dir *d = whole(&w);
    take_whole(&w, d, 1);
    ck_checkpoint_dir_close(d);
    take_alone(&w, 3, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_A), "1");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "3");
    assert_string_equal(newest_as(&w, 0, 3, GRAPH_B), "3 1");
    d = reader(&w);
    OK(ck_checkpoint_dir_read(d, 3, &w.a, &m, &err));
    assert_int_equal(m->part_count, 2);
    assert_int_equal(m->vertex_count, 2); /* each vertex once */
    assert_int_equal(m->file_count, 2);
    assert_int_equal(ck_manifest_checkpoint_of_op(m, op_name(0)), 1);
    assert_int_equal(ck_manifest_checkpoint_of_op(m, op_name(1)), 3);
    assert_string_equal(m->files[0].path, file(&w, 1, 3));
    assert_string_equal(m->files[1].path, file(&w, 0, 1));
    ck_checkpoint_dir_close(d);
    char kept[250];
    snprintf(kept, sizeof kept, "%s/kept", ck_test_dir(&w.t));
    OK(ck_savepoint_export(&w.t.proc, w.mem, w.dir, 3, kept, &err)); /* complete by itself, also the part behind */
    char real[200];
    snprintf(real, sizeof real, "%s", w.dir);
    snprintf(w.dir, sizeof w.dir, "%.190s", kept);
    assert_string_equal(as_of(&w, 3), "3 1");
    assert_true(there(&w, file(&w, 1, 1)));
    snprintf(w.dir, sizeof w.dir, "%s", real);
    put(&w, manifest(&w, 1), "damaged");
    assert_string_equal(newest_as(&w, 0, 0, 0), "corrupt");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "3");
    take_alone(&w, 4, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    assert_string_equal(newest_as(&w, 0, 0, 0), "4 3");
    d = whole(&w);
    take_whole(&w, d, 5);
    ck_checkpoint_dir_close(d);
    assert_string_equal(newest_as(&w, 0, 0, 0), "5");
    take_alone(&w, 7, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    assert_string_equal(newest_as(&w, 0, 0, 0), "7 5");
    put(&w, manifest(&w, 5), "damaged"); /* newer than 4 */
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_A), "corrupt");
    assert_string_equal(newest_as(&w, 0, 0, 0), "corrupt");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "7");
    world_close(&w);
}

/* ---- damage ---- */

static void a_damaged_manifest_is_its_regions(void **state) {
    (void)state;
    world w;
    world_open(&w);
    take_alone(&w, 2, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 3, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    take_alone(&w, 4, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 7, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    put(&w, manifest(&w, 2), "damaged");
    assert_string_equal(newest_as(&w, 0, 0, 0), "4 7"); /* an older one is no matter */
    take_alone(&w, 6, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    put(&w, manifest(&w, 6), "damaged"); /* whose marker is gone, too: it may be of the whole, and 7 is newer */
    take_away(&w, "checkpoint-6.committed");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "7");
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_A), "corrupt");
    put(&w, manifest(&w, 8), "damaged");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "corrupt");
    take_away(&w, manifest(&w, 8));
    take_away(&w, manifest(&w, 6));
    put(&w, manifest(&w, 4), "damaged");
    assert_string_equal(newest_as(&w, 0, 0, 0), "corrupt");
    assert_non_null(strstr(err.msg, "checkpoint-4.json"));
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_A), "corrupt");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "7");
    assert_string_equal(newest_as(&w, 0, 2, GRAPH_B), "corrupt");
    take_alone(&w, 10, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    assert_string_equal(newest_as(&w, 0, 0, 0), "10 7");
    world_close(&w);
}

/* It may be of the graph before: then who goes on from that must not take an older one. */
static void damage_between_graphs(void **state) {
    (void)state;
    for (uint64_t damaged = 2; damaged <= 3; damaged++) {
        world w;
        world_open(&w);
        ck_checkpoint_dir *d = whole(&w);
        take_whole(&w, d, 1);
        take_whole(&w, d, damaged);
        ck_checkpoint_dir_close(d);
        take_alone(&w, 6, CK_BARRIER_PERIODIC, GRAPH_B, 0);
        put(&w, manifest(&w, damaged), "damaged");
        assert_string_equal(newest_as(&w, 1, 2, GRAPH_B), "corrupt");
        assert_string_equal(newest_as(&w, 0, 2, GRAPH_B), "6");
        take_alone(&w, 9, CK_BARRIER_PERIODIC, GRAPH_B, 1);
        assert_string_equal(newest_as(&w, 0, 0, 0), "6 9");
        world_close(&w);
    }
}

static uint64_t lost_as(world *w, uint32_t r, uint32_t count, uint64_t graph) {
    ck_checkpoint_dir *d;
    OK(open_as(w, r, count, graph, false, &d));
    uint64_t lost = ck_checkpoint_dir_lost(d);
    ck_checkpoint_dir_close(d);
    return lost;
}

static void a_marker_without_its_manifest(void **state) {
    (void)state;
    world w;
    world_open(&w);
    take_alone(&w, 2, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 3, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    take_alone(&w, 4, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 7, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    take_away(&w, manifest(&w, 2)); /* as a retention that was killed leaves it */
    assert_int_equal(lost_as(&w, 0, 0, 0), 0);
    take_away(&w, manifest(&w, 4)); /* 7 is newer, and of another region */
    assert_int_equal(lost_as(&w, 0, 0, 0), 4);
    assert_int_equal(lost_as(&w, 0, 2, GRAPH_A), 4);
    assert_int_equal(lost_as(&w, 1, 2, GRAPH_A), 0);
    assert_int_equal(lost_as(&w, 1, 2, GRAPH_B), 4); /* another script needs all */
    ck_checkpoint_dir *d = whole(&w);
    take_whole(&w, d, 10);
    ck_checkpoint_dir_close(d);
    assert_int_equal(lost_as(&w, 0, 0, 0), 0);
    take_away(&w, manifest(&w, 10));
    assert_int_equal(lost_as(&w, 0, 0, 0), 10);
    assert_int_equal(lost_as(&w, 1, 2, GRAPH_A), 10);
    take_alone(&w, 12, CK_BARRIER_PERIODIC, GRAPH_B, 0);
    assert_int_equal(lost_as(&w, 0, 2, GRAPH_B), 0);
    assert_int_equal(lost_as(&w, 1, 2, GRAPH_B), 10);
    take_alone(&w, 15, CK_BARRIER_PERIODIC, GRAPH_B, 1);
    assert_int_equal(lost_as(&w, 0, 0, 0), 0);
    world_close(&w);
}

static void gone_back_behind_is_not_lost(void **state) {
    (void)state;
    world w;
    world_open(&w);
    take_alone(&w, 2, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 3, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    take_alone(&w, 4, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    ck_checkpoint_dir *d = region(&w, 0, 2, GRAPH_A);
    OK(ck_checkpoint_dir_abandon(d, 4, &err));
    ck_checkpoint_dir_close(d);
    assert_int_equal(lost_as(&w, 0, 0, 0), 0);
    assert_string_equal(newest_as(&w, 0, 0, 0), "2 3");
    take_away(&w, manifest(&w, 3)); /* 4 says nothing for it */
    assert_int_equal(lost_as(&w, 0, 0, 0), 3);
    world_close(&w);
}

/* ---- retention ---- */

static void of_its_own_only(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_checkpoint_dir *a = region(&w, 0, 2, GRAPH_A), *b = region(&w, 1, 2, GRAPH_A);
    for (uint64_t i = 1; i <= 4; i++) {
        take(&w, a, 2 * i, CK_BARRIER_PERIODIC, GRAPH_A, 0);
        take(&w, b, 2 * i + 1, i == 1 ? CK_BARRIER_SAVEPOINT : CK_BARRIER_PERIODIC, GRAPH_A, 1);
    }
    OK(ck_checkpoint_dir_retain(a, 2, &err));
    for (uint64_t i = 1; i <= 4; i++) {
        assert_int_equal(there(&w, manifest(&w, 2 * i)), i > 2);
        assert_int_equal(there(&w, file(&w, 0, 2 * i)), i > 2);
        assert_true(there(&w, manifest(&w, 2 * i + 1)) && there(&w, file(&w, 1, 2 * i + 1)));
    }
    ck_checkpoint_dir_close(b);
    b = region(&w, 1, 2, GRAPH_A); /* knows of what the other has taken away since, or not */
    take(&w, a, 10, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    OK(ck_checkpoint_dir_retain(a, 1, &err));
    OK(ck_checkpoint_dir_retain(b, 1, &err));
    assert_true(there(&w, manifest(&w, 3)) && there(&w, file(&w, 1, 3))); /* the savepoint */
    assert_true(there(&w, manifest(&w, 9)) && !there(&w, manifest(&w, 7)) && !there(&w, file(&w, 1, 7)));
    assert_true(there(&w, manifest(&w, 10)) && there(&w, file(&w, 0, 10)) && !there(&w, manifest(&w, 8)));
    assert_string_equal(newest_as(&w, 0, 0, 0), "10 9");
    assert_string_equal(as_of(&w, 9), "refused"); /* and says so, rather than to begin region 0 anew */
    assert_non_null(strstr(err.msg, "none that is as old"));
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    world_close(&w);
}

static void another_graph_goes_when_all_have_this_one(void **state) {
    (void)state;
    world w;
    world_open(&w);
    ck_checkpoint_dir *d = whole(&w);
    take_whole(&w, d, 1);
    OK(publish(&w, d, 2, CK_BARRIER_SAVEPOINT, 0, GRAPH_A, 0, 1));
    OK(publish(&w, d, 3, CK_BARRIER_PERIODIC, 0, GRAPH_A, 0, 2)); /* not marked: regions commit their parts */
    ck_checkpoint_dir_close(d);
    ck_checkpoint_dir *a = region(&w, 0, 2, GRAPH_B), *b = region(&w, 1, 2, GRAPH_B);
    take(&w, a, 4, CK_BARRIER_PERIODIC, GRAPH_B, 0);
    take(&w, a, 6, CK_BARRIER_PERIODIC, GRAPH_B, 0);
    OK(ck_checkpoint_dir_retain(a, 1, &err));
    assert_true(there(&w, manifest(&w, 1)) && there(&w, manifest(&w, 3)) && there(&w, file(&w, 0, 3)));
    assert_false(there(&w, manifest(&w, 4)));
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_B), "3");
    take(&w, b, 5, CK_BARRIER_PERIODIC, GRAPH_B, 1);
    OK(ck_checkpoint_dir_retain(a, 1, &err)); /* sees what the other has published since */
    assert_false(there(&w, manifest(&w, 1)) || there(&w, manifest(&w, 3)));
    assert_false(there(&w, file(&w, 0, 3)) || there(&w, file(&w, 2, 3))); /* of no region of this graph: region 0's */
    assert_true(there(&w, file(&w, 1, 3)));                               /* the other's own */
    assert_true(there(&w, manifest(&w, 2)) && there(&w, file(&w, 0, 2)) && there(&w, file(&w, 1, 2)));
    take(&w, b, 7, CK_BARRIER_PERIODIC, GRAPH_B, 1);
    OK(ck_checkpoint_dir_retain(b, 1, &err));
    assert_false(there(&w, file(&w, 1, 3)) || there(&w, manifest(&w, 5)));
    assert_string_equal(newest_as(&w, 0, 0, 0), "6 7");
    assert_string_equal(as_of(&w, 2), "2");
    ck_checkpoint_dir_close(a);
    ck_checkpoint_dir_close(b);
    world_close(&w);
}

/* Behind a job that ran region by region: its parts go together. */
static void parts_count_as_one(void **state) {
    (void)state;
    world w;
    world_open(&w);
    take_alone(&w, 2, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 3, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    ck_checkpoint_dir *d = whole(&w);
    take_whole(&w, d, 4);
    OK(ck_checkpoint_dir_retain(d, 2, &err));
    assert_true(there(&w, manifest(&w, 2)) && there(&w, manifest(&w, 3)));
    assert_string_equal(as_of(&w, 3), "2 3");
    take_whole(&w, d, 5);
    OK(ck_checkpoint_dir_retain(d, 2, &err));
    assert_false(there(&w, manifest(&w, 2)) || there(&w, manifest(&w, 3)) || there(&w, file(&w, 1, 3)));
    assert_true(there(&w, manifest(&w, 4)));
    ck_checkpoint_dir_close(d);
    world_close(&w);
}

/* ---- savepoints ---- */

typedef struct seen {
    uint32_t whole, damaged;
} seen;
static void look(void *arg, const ck_verified *v) {
    seen *s = arg;
    *(v->damage ? &s->damaged : &s->whole) += 1;
}
static seen verify(world *w, const char *dir, uint64_t id) {
    seen s = {0};
    uint64_t damaged;
    OK(ck_checkpoint_verify(&w->t.proc, w->mem, dir, id, look, &s, &damaged, &err));
    assert_int_equal(damaged, s.damaged);
    return s;
}

static void savepoints_are_kept_given_up_and_verified(void **state) {
    (void)state;
    world w;
    world_open(&w);
    char kept[250];
    snprintf(kept, sizeof kept, "%s/kept", ck_test_dir(&w.t));
    take_alone(&w, 2, CK_BARRIER_SAVEPOINT, GRAPH_A, 0);
    take_alone(&w, 5, CK_BARRIER_SAVEPOINT, GRAPH_A, 1);
    take_alone(&w, 6, CK_BARRIER_SAVEPOINT, GRAPH_A, 0);
    take_alone(&w, 9, CK_BARRIER_SAVEPOINT, GRAPH_A, 1);
    take_alone(&w, 10, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 11, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    OK(ck_savepoint_export(&w.t.proc, w.mem, w.dir, 9, kept, &err));
    OK(ck_savepoint_export(&w.t.proc, w.mem, w.dir, 9, kept, &err)); /* again is fine */
    seen s = verify(&w, kept, 9);
    assert_int_equal(s.whole, 4); /* two manifests, two files */
    assert_int_equal(verify(&w, w.dir, 0).whole, 12);
    char real[200];
    snprintf(real, sizeof real, "%s", w.dir);
    snprintf(w.dir, sizeof w.dir, "%.190s", kept);
    assert_string_equal(newest_as(&w, 0, 0, 0), "6 9");
    assert_string_equal(newest_as(&w, 1, 2, GRAPH_A), "9");
    assert_string_equal(newest_as(&w, 1, 3, GRAPH_B), "6 9");
    snprintf(w.dir, sizeof w.dir, "%s", real);
    /* By the number of the whole; a part is no savepoint. */
    assert_int_equal(ck_savepoint_dispose(&w.t.proc, w.mem, w.dir, 6, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "part of savepoint 9"));
    ck_checkpoint_dir *alive = region(&w, 1, 2, GRAPH_A); /* files stay while a region runs */
    OK(ck_savepoint_dispose(&w.t.proc, w.mem, w.dir, 9, &err));
    assert_false(there(&w, manifest(&w, 6)) || there(&w, manifest(&w, 9)));
    assert_true(there(&w, file(&w, 0, 6)) && there(&w, file(&w, 1, 9)));
    ck_checkpoint_dir_close(alive);
    assert_string_equal(as_of(&w, 5), "2 5");
    OK(ck_savepoint_dispose(&w.t.proc, w.mem, w.dir, 5, &err));
    assert_false(there(&w, manifest(&w, 2)) || there(&w, file(&w, 0, 2)) || there(&w, file(&w, 1, 5)));
    assert_string_equal(newest_as(&w, 0, 0, 0), "10 11");
    /* One that a job would go on from, though its greatest part is not the newest. */
    take_alone(&w, 12, CK_BARRIER_SAVEPOINT, GRAPH_A, 0);
    take_alone(&w, 15, CK_BARRIER_SAVEPOINT, GRAPH_A, 1);
    take_alone(&w, 16, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    assert_int_equal(ck_savepoint_dispose(&w.t.proc, w.mem, w.dir, 15, &err), CK_REFUSED);
    assert_non_null(strstr(err.msg, "would continue from"));
    put(&w, file(&w, 0, 12), "other rows of 0 at 12");
    s = verify(&w, w.dir, 15);
    assert_true(s.damaged == 1 && s.whole == 3);
    s = verify(&w, w.dir, 16); /* not in it */
    assert_true(s.damaged == 0 && s.whole == 4);
    world_close(&w);
}

/* A region had none of the newer: both savepoints stand on the same one of it. */
static void a_shared_part_stays(void **state) {
    (void)state;
    world w;
    world_open(&w);
    take_alone(&w, 2, CK_BARRIER_SAVEPOINT, GRAPH_A, 0);
    take_alone(&w, 5, CK_BARRIER_SAVEPOINT, GRAPH_A, 1);
    take_alone(&w, 9, CK_BARRIER_SAVEPOINT, GRAPH_A, 1);
    take_alone(&w, 10, CK_BARRIER_PERIODIC, GRAPH_A, 0);
    take_alone(&w, 11, CK_BARRIER_PERIODIC, GRAPH_A, 1);
    assert_string_equal(as_of(&w, 9), "2 9");
    OK(ck_savepoint_dispose(&w.t.proc, w.mem, w.dir, 9, &err));
    assert_string_equal(as_of(&w, 5), "2 5");
    OK(ck_savepoint_dispose(&w.t.proc, w.mem, w.dir, 5, &err));
    assert_false(there(&w, manifest(&w, 2)));
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_say_which_region),
        cmocka_unit_test(regions_share_and_nobody_else),
        cmocka_unit_test(an_opening_is_waited_for),
        cmocka_unit_test(a_look_is_no_run),
        cmocka_unit_test(only_its_own_temporary_files),
        cmocka_unit_test(one_fresh_start_for_all),
        cmocka_unit_test(the_newest_of_each_region),
        cmocka_unit_test(a_savepoint_is_one_of_each),
        cmocka_unit_test(finished_when_all_have),
        cmocka_unit_test(of_one_graph),
        cmocka_unit_test(the_whole_behind_its_regions),
        cmocka_unit_test(a_damaged_manifest_is_its_regions),
        cmocka_unit_test(damage_between_graphs),
        cmocka_unit_test(a_marker_without_its_manifest),
        cmocka_unit_test(gone_back_behind_is_not_lost),
        cmocka_unit_test(of_its_own_only),
        cmocka_unit_test(another_graph_goes_when_all_have_this_one),
        cmocka_unit_test(parts_count_as_one),
        cmocka_unit_test(savepoints_are_kept_given_up_and_verified),
        cmocka_unit_test(a_shared_part_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
