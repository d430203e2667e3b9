#include "sql_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/builtins.h"
#include "graph/regions.h"
#include "reader.h"

enum { LIVES_MAX = 7, LOOK_TURNS = 500, PATIENT_US = 60000000 };

typedef struct world {
    const sql_world_options *o;
    sql_world_stats *stats;
    dice dice;
    sql_case c;
    ck_simfs *disk;
    ck_manual_clock clock;
    reader *reader;
    size_t shown[SQL_FILES_MAX]; /* bytes of each file that are there */
    int64_t interval_us, timeout_us;
    bool checkpoints;
    bool by_region;    /* this life runs one region of the job, when it has several */
    uint64_t given_up; /* the first checkpoint that the last life gave up; 0: none */
} world;

static char why_text[2200];

static uint32_t below(world *w, uint32_t n) { return dice_below(&w->dice, n); }
static bool wrong(const char *what) {
    snprintf(why_text, sizeof why_text, "%s", what);
    return false;
}
static bool reader_wrong(world *w) {
    if (!why_text[0]) snprintf(why_text, sizeof why_text, "a reader sees: %s", reader_why(w->reader));
    return false;
}

/* ---- input ---- */

/* Appends up to n more bytes of a file, durable. */
static void show_more(world *w, uint32_t f, size_t n) {
    ck_fs *fs = ck_simfs_base(w->disk);
    const sql_file *file = &w->c.files[f];
    ck_file *out;
    if (n > file->bytes - w->shown[f]) n = file->bytes - w->shown[f];
    ck_status s = fs->open(fs, file->path, CK_OPEN_READWRITE, &out, NULL);
    if (s == CK_OK) s = fs->write(out, file->text + w->shown[f], n, NULL);
    if (s == CK_OK) s = fs->fsync(out, NULL);
    if (s == CK_OK) s = fs->fsync_dir(fs, "/in", NULL);
    CK_ASSERT(s == CK_OK);
    fs->close(out);
    w->shown[f] += n;
}

static bool all_shown(const world *w) {
    for (uint32_t f = 0; f < w->c.file_count; f++)
        if (w->shown[f] < w->c.files[f].bytes) return false;
    return true;
}

static void make_input(world *w) {
    ck_fs *fs = ck_simfs_base(w->disk);
    ck_status s = fs->mkdir(fs, "/in", NULL);
    if (s == CK_OK) s = fs->fsync_dir(fs, "/", NULL);
    CK_ASSERT(s == CK_OK);
    for (uint32_t f = 0; f < w->c.file_count; f++)
        show_more(w, f, w->c.follow ? below(w, (uint32_t)w->c.files[f].bytes + 1) : w->c.files[f].bytes);
}

/* ---- one life ---- */

static void on_renamed(void *arg) {
    world *w = arg;
    (void)reader_look(w->reader); /* the first thing wrong is kept */
}

/* Between turns: followed files grow, the wall clock is moved about, and an endless job is stopped when all has come.
 */
static bool watch(void *arg, uint64_t turn) {
    world *w = arg;
    if (below(w, 1000) == 0)
        atomic_fetch_add(&w->clock.wall, ((int64_t)below(w, 20000000) - 10000000) * 100000); /* up to eleven days */
    if (w->by_region && below(w, 3000) == 0) return true; /* other regions' output will not come */
    if (!w->c.follow) return false;
    if (!all_shown(w)) {
        if (below(w, 8) == 0) show_more(w, below(w, w->c.file_count), dice_spread(&w->dice, 9));
        return false;
    }
    return !w->c.ends && turn % LOOK_TURNS == 0 && reader_is_complete(w->reader);
}

static ck_status compile(process *p, const sql_case *c, uint32_t parallelism, bool checkpoints, ck_sql_step **out,
                         ck_error *err) {
    ck_sql_plan *plan;
    ck_sql_options o = {.source_name = "script",
                        .job_name = "simulated",
                        .parallelism = parallelism,
                        .key_groups = CK_KEY_GROUPS_DEFAULT,
                        .changes = c->changes,
                        .checkpoints = checkpoints,
                        .one_job = true,
                        .result_sink = "sink.print",
                        .result_params = "{}"};
    CK_TRY(engine_register_builtins(&p->registry, err));
    CK_TRY(ck_catalog_new(&p->proc, &p->registry, &p->catalog, err));
    CK_TRY(ck_sql_compile(p->catalog, ck_view_of(c->script), &o, &p->arena, &plan, err));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].kind != CK_SQL_JOB) continue;
        *out = &plan->steps[i];
        return CK_OK;
    }
    return ck_fail(err, CK_INVALID, "the script has no job");
}

/* Any of them, whatever lives before and after run: the whole, another one, this one again. */
static ck_status draw_region(world *w, process *p, const ck_graph *g, ck_job_region *out, ck_error *err) {
    ck_graph_regions r;
    *out = (ck_job_region){0};
    if (!w->by_region) return CK_OK;
    CK_TRY(ck_graph_regions_of(&p->arena, g, &r, err));
    w->by_region = r.count > 1;
    if (!w->by_region) return CK_OK;
    *out = (ck_job_region){below(w, r.count), r.count};
    w->stats->by_region++;
    if (w->o->verbose) printf("    region %u of %u\n", out->index, out->count);
    return CK_OK;
}

static ck_status start(world *w, process *p, uint32_t parallelism, ck_error *err) {
    ck_sql_step *step = NULL;
    CK_TRY(compile(p, &w->c, parallelism, w->checkpoints, &step, err));
    CK_TRY(ck_scheduler_seeded(&p->proc, dice_draw(&w->dice), &p->scheduler, err));
    p->impatient = p->trouble->kind != TROUBLE_NONE && w->timeout_us < PATIENT_US;
    ck_job_config cfg = {.name = "simulated",
                         .parallelism = parallelism,
                         .batch_rows = step->batch_rows,
                         .queue_bytes = below(w, 2) ? 0 : 2048 + below(w, 100000),
                         .checkpoint = {.dir = w->checkpoints ? "/checkpoints" : NULL,
                                        .interval_us = w->interval_us,
                                        .timeout_us = p->impatient ? w->timeout_us : PATIENT_US,
                                        .final_timeout_us = 600000000,
                                        .tolerable_failed = 0,
                                        .retained = 1 + below(w, 3),
                                        .alignment = (ck_alignment)below(w, 3),
                                        .stall_us = below(w, 2) ? 1 : 200 + below(w, 20000),
                                        .changelog = changelog_draw(&w->dice, w->o->fault_point)}};
    CK_TRY(draw_region(w, p, step->graph, &cfg.region, err));
    if (w->o->verbose)
        printf("    %s, stall %lld us, timeout %lld us, queues %zu\n",
               (const char *const[]){"aligned", "unaligned", "adaptive"}[cfg.checkpoint.alignment],
               (long long)cfg.checkpoint.stall_us, (long long)cfg.checkpoint.timeout_us, cfg.queue_bytes);
    return ck_job_start(p->scheduler, &p->registry, step->graph, &cfg, &p->job, err);
}

static void count_life(world *w, const process *p, life_end end) {
    sql_world_stats *s = w->stats;
    s->lives++, s->ends[end]++;
    s->given_up += p->given_up;
    w->given_up = p->first_given_up;
    if (p->trouble->kind == TROUBLE_MEMORY) s->memory += ck_tracked_heap_fired(p->heap);
    if (p->trouble->kind == TROUBLE_DISK) s->disk += p->gate.syncs >= p->trouble->at;
    if (end != END_CRASHED) return;
    if (p->trouble->kind == TROUBLE_CRASH_POINT) s->points[p->trouble->point]++;
    if (p->trouble->kind == TROUBLE_CRASH_CALL) s->calls++;
}

static life_end live(world *w, uint32_t parallelism, trouble kind) {
    process p;
    ck_error err = CK_ERROR_INIT;
    trouble_plan t = trouble_draw(&w->dice, kind, w->o->fault_point, CK_FAULT_LOCAL_COUNT);
    if (w->o->allocation) t.at = kind == TROUBLE_MEMORY ? w->o->allocation : 0;
    if (w->o->sync && kind == TROUBLE_DISK)
        t.at = w->o->sync, t.errnum = w->o->sync_errnum, t.lasting = w->o->sync_lasting;
    if (w->o->verbose && kind != TROUBLE_NONE) printf("    "), trouble_print(&t);
    process_init(&p, w->disk, &w->clock, &w->dice, &t, w->o->verbose);
    if (kind == TROUBLE_DISK) reader_power_cut(w->reader); /* a committer takes back a name it cannot make durable */
    p.gate.renamed = on_renamed;
    p.gate.renamed_arg = w;
    ck_status s = start(w, &p, parallelism, &err);
    life_end end = s == CK_OK ? process_run(&p, watch, w) : process_not_started(&p, s, &err);
    count_life(w, &p, end);
    end = process_end(&p, end);
    if (w->o->verbose && end == END_FAILED) printf("    %s\n", p.why);
    if (end == END_WRONG) return wrong(p.why), end;
    if (!reader_check(w->reader, end == END_FINISHED && !w->by_region)) return reader_wrong(w), END_WRONG;
    return end;
}

/* ---- the lives of a seed ---- */

/* A subtask's files: "checkpoint-<id>.snap", "delta-<id>.snap", "materialized/". Notes deltas, and whether one spans
 * the abort. */
static void look_at_files(world *w, const char **files, size_t count, uint64_t *deltas, bool *over_abort,
                          uint64_t *inflight, bool *materialised) {
    uint64_t base = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t b = strncmp(files[i], "checkpoint-", 11) == 0 ? strtoull(files[i] + 11, NULL, 10) : 0;
        uint64_t d = strncmp(files[i], "delta-", 6) == 0 ? strtoull(files[i] + 6, NULL, 10) : 0;
        *deltas += d > 0;
        *materialised |= strcmp(files[i], "materialized") == 0;
        *inflight += strncmp(files[i], "inflight-", 9) == 0;
        if (b > base) base = b;
        if (d > last) last = d;
    }
    *over_abort |= base && base < w->given_up && w->given_up < last;
}

/* What the next life may begin with. */
static void count_deltas(world *w) {
    ck_fs *fs = ck_simfs_base(w->disk);
    ck_arena a;
    uint64_t found = 0, inflight = 0;
    bool over_abort = false, materialised = false;
    const char **vertices, **subtasks, **files;
    size_t vertex_count, subtask_count, file_count;
    ck_arena_init(&a, (ck_mem){&w->c.budget, CK_MEM_PLAN}, SIZE_MAX);
    if (fs->list(fs, "/checkpoints", &a, &vertices, &vertex_count, NULL) != CK_OK) vertex_count = 0;
    for (size_t v = 0; v < vertex_count; v++) {
        const char *vertex = ck_arena_printf(&a, "/checkpoints/%s", vertices[v]);
        if (fs->list(fs, vertex, &a, &subtasks, &subtask_count, NULL) != CK_OK) continue;
        for (size_t s = 0; s < subtask_count; s++) {
            const char *subtask = ck_arena_printf(&a, "%s/%s", vertex, subtasks[s]);
            if (fs->list(fs, subtask, &a, &files, &file_count, NULL) == CK_OK)
                look_at_files(w, files, file_count, &found, &over_abort, &inflight, &materialised);
        }
    }
    ck_arena_destroy(&a);
    w->stats->deltas += found;
    w->stats->restored_deltas += found > 0;
    w->stats->inflight += inflight > 0;
    w->stats->over_abort += over_abort;
    w->stats->materialised += materialised;
}

static bool between_lives(world *w) {
    if (below(w, 2)) {
        ck_simfs_crash(w->disk);
        reader_power_cut(w->reader);
    } else {
        ck_simfs_kill(w->disk);
    }
    atomic_fetch_add(&w->clock.wall, ((int64_t)below(w, 2000) - 1000) * 60000000);
    count_deltas(w);
    return reader_check(w->reader, false) || reader_wrong(w);
}

static bool has_ended(const world *w, life_end end) {
    return ((end == END_FINISHED || end == END_WAS_FINISHED) && !w->by_region) ||
           (end == END_CANCELLED && w->c.follow && all_shown(w) && reader_is_complete(w->reader));
}

static trouble draw_trouble(world *w, int life) {
    if (w->o->allocation) return life == 0 ? TROUBLE_MEMORY : TROUBLE_NONE;
    if (w->o->sync) return life == 0 ? TROUBLE_DISK : TROUBLE_NONE;
    return life == LIVES_MAX - 1 || !below(w, 12) ? TROUBLE_NONE : (trouble)(1 + below(w, TROUBLE_COUNT - 1));
}

static bool run_lives(world *w) {
    life_end end = END_CRASHED;
    bool ended = false;
    for (int life = 0; life < LIVES_MAX && !ended; life++) {
        trouble t = draw_trouble(w, life);
        uint32_t parallelism = 1 + below(w, 4);
        w->by_region = !w->o->allocation && !w->o->sync && life < LIVES_MAX - 1 && below(w, 3) == 0;
        if (w->o->verbose) printf("  life %d: parallelism %u, trouble: %s\n", life, parallelism, trouble_names[t]);
        end = live(w, parallelism, t);
        if (w->o->verbose)
            printf("  life %d: %s after %lld us\n", life, end_names[end], (long long)atomic_load(&w->clock.mono));
        if (end == END_WRONG) return false;
        ended = has_ended(w, end);
        if (!between_lives(w)) return false;
    }
    if (!ended) return wrong("the last life did not finish");
    w->by_region = false;
    end = live(w, 1 + below(w, 4), TROUBLE_NONE); /* once more: nothing changes */
    if (end == END_WRONG) return false;
    if (end != (w->c.ends ? END_WAS_FINISHED : END_CANCELLED)) return wrong("a finished job ran again");
    return reader_check(w->reader, true) || reader_wrong(w);
}

static bool run_once(world *w) {
    life_end end = live(w, 1 + below(w, 4), TROUBLE_NONE);
    if (end == END_WRONG) return false;
    if (!has_ended(w, end)) return wrong("the job did not finish");
    return w->c.ends ? reader_check(w->reader, true) || reader_wrong(w) : true;
}

bool sql_world_run(uint64_t seed, const sql_world_options *o, sql_world_stats *stats, const char **why) {
    world w = {.o = o, .stats = stats, .dice = {seed * 0x2545F4914F6CDD1DULL + 7}};
    ck_status s = ck_simfs_new(&w.disk, seed);
    CK_ASSERT(s == CK_OK);
    *why = why_text;
    why_text[0] = 0;
    sql_case_options input = o->input;
    w.checkpoints = !o->undisturbed || below(&w, 2);
    if (!w.checkpoints) input.no_follow = true; /* such a job shows what it has at its end */
    dice job = {o->job * 0x2545F4914F6CDD1DULL + 7};
    sql_case_make(&w.c, o->job ? &job : &w.dice, &input);
    w.interval_us = 300 + (int64_t)below(&w, 6000);
    w.timeout_us = o->undisturbed || below(&w, 3) ? PATIENT_US : 60000 + (int64_t)below(&w, 150000);
    if (o->verbose)
        printf("seed %llu: %u rows, batch_rows %u%s%s%s, interval %lld us\n%s", (unsigned long long)seed, w.c.row_count,
               w.c.batch_rows, w.c.follow ? ", followed" : "", w.c.changes ? ", changes" : "",
               w.checkpoints ? "" : ", no checkpoints", (long long)w.interval_us, w.c.script);
    ck_manual_clock_init(&w.clock, 0, 1700000000000000);
    w.reader = reader_new(&w.c, w.disk);
    make_input(&w);
    stats->seeds++;
    bool ok = o->undisturbed ? run_once(&w) : run_lives(&w);
    reader_free(w.reader);
    ck_simfs_free(w.disk);
    sql_case_free(&w.c);
    return ok;
}
