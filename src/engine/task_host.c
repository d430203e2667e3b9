/* A task host: the process with all tasks of one attempt of a job on one worker. It asks the worker for its DEPLOY,
 * says that it is ready, starts the job when the others are ready too, and says how it ended. It ends with its parent,
 * and when the connection to it does. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/sha256.h"
#include "clink/cluster.h"
#include "engine/cluster_int.h"
#include "graph/regions.h"
#include "net/connection.h"
#include "os/clock.h"
#include "os/confined.h"

enum {
    ARENA_BYTES_MAX = 256 << 20,
    QUEUE_BYTES_MAX = 32 << 20,
    TURN_US = 20000,
    PROGRESS_US = 1000000,
    MEMORY_STEP_BYTES = 1 << 20, /* less is no news */
    CONNECT_US = 20000000,
    EXIT_ALONE = 3
};

typedef struct task_host {
    clink_engine *e;
    ck_mem mem;
    ck_arena arena;
    ck_msg_fence fence;
    const char *data_host, *advertised; /* where it listens, and under which host that is reached */
    size_t slot_bytes;                  /* of memory, of each slot of the worker */
    ck_tls_files tls_files;
    ck_tls *tls;
    const char *data_root, *secret_dir, *plugin_dir;
    bool is_confined;
    ck_confined confined;
    ck_socket *listening; /* at address, for the other hosts; NULL: none is to dial this one */
    char address[CK_CLUSTER_NAME_MAX + 1];
    ck_net_loop *loop;
    ck_connection *c;
    ck_msg_deploy deploy;
    engine_job_spec spec;
    const ck_graph *graph; /* of all */
    ck_vertex_plan plan;   /* of what this host's job runs of it: all, or a region */
    uint64_t job_tasks;    /* of all regions */
    ck_job *job;
    uint64_t told;        /* the last checkpoint that was */
    ck_progress progress; /* as last said; its note is the one below */
    char note[CK_CLUSTER_NOTE_MAX + 1];
    int64_t looked_us; /* at its progress */
    ck_frame *kept;    /* what deploy borrows from */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    ck_frame *first, **end; /* heard */
    bool gone;              /* the connection, after the last word */
} task_host;

/* ---- the worker's words ---- */

static ck_status framed(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    task_host *h = arg;
    (void)c, (void)err;
    pthread_mutex_lock(&h->lock);
    (*f)->next = NULL;
    *h->end = *f, h->end = &(*f)->next;
    *f = NULL;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return CK_OK;
}

/* Without the worker nobody answers for these tasks: nothing of them goes on. */
static void closed(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    task_host *h = arg;
    (void)c, (void)err;
    if (why != CK_OK && why != CK_CANCELLED) _exit(EXIT_ALONE);
    pthread_mutex_lock(&h->lock);
    h->gone = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static const ck_connection_handler handler = {.on_frame = framed, .on_close = closed};

static ck_frame *take_frame(task_host *h, bool wait) {
    pthread_mutex_lock(&h->lock);
    while (!h->first && wait) pthread_cond_wait(&h->changed, &h->lock);
    ck_frame *f = h->first;
    if (f && !(h->first = f->next)) h->end = &h->first;
    pthread_mutex_unlock(&h->lock);
    return f;
}

/* The next frame, for as long as the host lives. */
static ck_frame *keep_frame(task_host *h) {
    ck_frame *f = take_frame(h, true);
    f->next = h->kept;
    return h->kept = f;
}

static void free_frames(ck_frame *f) {
    while (f) {
        ck_frame *next = f->next;
        ck_frame_free(&f);
        f = next;
    }
}

static ck_status say(task_host *h, const ck_message *m, ck_error *err) {
    ck_frame *f;
    CK_TRY(ck_message_frame(h->mem, m, &f, err));
    ck_status s = ck_connection_send(h->c, &f);
    return s == CK_FULL || s == CK_CLOSED ? CK_OK : s;
}

/* ---- its part of the job ---- */

static uint32_t process_of(void *arg, uint64_t vertex, uint32_t subtask) {
    const task_host *h = arg;
    uint32_t first = 0;
    for (uint32_t v = 0; v < h->plan.count; first += h->plan.vertices[v++].parallelism)
        if (h->plan.vertices[v].id == vertex) {
            uint32_t p = h->deploy.placement.items[first + subtask];
            return p < h->deploy.process_count ? p : 0; /* one that has finished costs nobody anything */
        }
    return 0;
}

static uint64_t tasks_of(const ck_vertex_plan *plan) {
    uint64_t n = 0;
    for (uint32_t v = 0; v < plan->count; v++) n += plan->vertices[v].parallelism;
    return n;
}

/* The part of the graph that the DEPLOY is for. */
static ck_status plan_part(task_host *h, const ck_graph *g, ck_error *err) {
    const ck_msg_deploy *d = &h->deploy;
    const uint32_t parallelism = (uint32_t)h->spec.parallelism;
    ck_graph_regions regions;
    const ck_graph *part = g;
    CK_TRY(ck_graph_fuse(&h->arena, g, parallelism, &h->plan, err));
    h->job_tasks = tasks_of(&h->plan);
    if (d->region_count == 0) return CK_OK;
    CK_TRY(ck_graph_regions_of(&h->arena, g, &regions, err));
    if (d->region_count != regions.count || d->region >= regions.count)
        return ck_fail(err, CK_CORRUPT, "a DEPLOY for a region that its job has not");
    CK_TRY(ck_graph_region(&h->arena, g, &regions, (uint32_t)d->region, &part, err));
    return ck_graph_fuse(&h->arena, part, parallelism, &h->plan, err);
}

static ck_status read_deploy(task_host *h, ck_error *err) {
    ck_frame *f = keep_frame(h);
    ck_message m;
    ck_graph *g;
    CK_TRY(ck_message_read(f, &h->arena, &m, err));
    if (m.kind != CK_MSG_DEPLOY) return ck_fail(err, CK_CORRUPT, "a %s for a DEPLOY", ck_message_name(m.kind));
    h->deploy = m.as.deploy;
    h->fence = m.as.deploy.fence;
    CK_TRY(ck_proto_read(&engine_job_spec_type, h->deploy.spec, &h->arena, &h->spec, err));
    CK_TRY(ck_graph_decode(&h->arena, h->spec.graph, &g, err));
    CK_TRY(plan_part(h, g, err));
    if (tasks_of(&h->plan) != h->deploy.placement.count || h->deploy.process >= h->deploy.process_count)
        return ck_fail(err, CK_CORRUPT, "a DEPLOY that does not fit its job");
    h->graph = g;
    return CK_OK;
}

static ck_status load_from(task_host *h, const char *const *paths, ck_error *err) {
    ck_status s = engine_load_plugins(h->e, paths, err);
    if (err && (s == CK_REFUSED || s == CK_INVALID)) err->fatal = true; /* nor would it be taken another time */
    return s;
}

/* The worker has put them there. They are code, whose files no job names: they are read as if nothing were confined. */
static ck_status load_plugins(task_host *h, ck_error *err) {
    const ck_proto_list *list = &h->deploy.plugins;
    ck_proc *p = &h->e->proc;
    if (list->count == 0) return CK_OK;
    const char **paths = ck_arena_array(&h->arena, list->count + 1u, sizeof *paths);
    if (!paths) return ck_nomem(err, h->mem, 0);
    for (uint32_t i = 0; i < list->count; i++) {
        ck_view hash = ((const ck_msg_plugin *)list->items + i)->hash;
        if (!ck_sha256_is_hex(hash)) return ck_fail(err, CK_CORRUPT, "a DEPLOY with a plugin that has no SHA-256");
        paths[i] = ck_arena_printf(&h->arena, "%s/%.*s.so", h->plugin_dir, (int)hash.n, hash.p);
        if (!paths[i]) return ck_nomem(err, h->mem, 0);
    }
    ck_fs *fs = p->fs;
    if (p->confined) p->fs = h->confined.under;
    ck_status s = load_from(h, paths, err);
    p->fs = fs;
    return s;
}

static void address_of(const char *host, uint16_t port, char *out, size_t size) {
    (void)snprintf(out, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

/* Before anybody is told of it, so that whoever dials finds it. The last process dials all others. */
static ck_status open_data_port(task_host *h, ck_error *err) {
    char any_port[CK_CLUSTER_NAME_MAX + 1];
    uint16_t port;
    if (h->deploy.process + 1 == h->deploy.process_count) return CK_OK;
    address_of(h->data_host, 0, any_port, sizeof any_port);
    CK_TRY(ck_socket_listen(&h->e->proc, any_port, &h->listening, &port, err));
    address_of(h->advertised, port, h->address, sizeof h->address);
    return CK_OK;
}

/* Of SPLIT:OFFSET each; in the arena. */
static ck_status read_skips(task_host *h, ck_skip **out, ck_error *err) {
    const ck_proto_list *list = &h->deploy.skips;
    ck_skip *skips = ck_arena_array(&h->arena, list->count + 1u, sizeof *skips);
    if (!skips) return ck_nomem(err, h->mem, 0);
    for (uint32_t i = 0; i < list->count; i++) {
        ck_view v = ((const ck_msg_skip *)list->items + i)->record;
        char *text = ck_arena_strndup(&h->arena, v.p, v.n), *colon = text ? strrchr(text, ':') : NULL;
        if (!text) return ck_nomem(err, h->mem, 0);
        if (!colon) return ck_fail(err, CK_CORRUPT, "a record to skip that is not SPLIT:OFFSET");
        *colon = 0;
        skips[i] = (ck_skip){text, strtoull(colon + 1, NULL, 10)};
    }
    *out = skips;
    return CK_OK;
}

/* What the slots of its tasks have, or its tasks' part of what the job was given, whichever is less. */
static size_t memory_limit(const task_host *h) {
    const size_t here = h->deploy.tasks.count, all = (size_t)h->job_tasks;
    const size_t slots = here ? h->slot_bytes * here : h->slot_bytes;
    const size_t asked = all ? (size_t)(h->spec.memory_bytes / all) * here : 0;
    return asked && asked < slots ? asked : slots;
}

/* Its own directory is gone on from by itself; another one only by a job that has none of its own yet. */
static ck_job_config job_config(task_host *h, const char **addresses, const ck_skip *skips) {
    const engine_job_spec *s = &h->spec;
    const ck_msg_deploy *d = &h->deploy;
    return (ck_job_config){
        .name = ck_arena_strndup(&h->arena, d->name.p, d->name.n),
        .region = {(uint32_t)d->region, (uint32_t)d->region_count},
        .parallelism = (uint32_t)s->parallelism,
        .batch_rows = (uint32_t)s->batch_rows,
        .flush_us = (int64_t)s->flush_us,
        .memory_limit = memory_limit(h),
        .spill_dir = s->spill_dir.n ? ck_arena_strndup(&h->arena, s->spill_dir.p, s->spill_dir.n) : NULL,
        .rocksdb = s->rocksdb != 0,
        .checkpoint =
            {.dir = d->checkpoint_dir.n ? ck_arena_strndup(&h->arena, d->checkpoint_dir.p, d->checkpoint_dir.n) : NULL,
             .interval_us = s->interval_us,
             .timeout_us = s->timeout_us,
             .final_timeout_us = s->final_timeout_us,
             .tolerable_failed = (uint32_t)s->tolerable_failed,
             .retained = (uint32_t)s->retained,
             .alignment = (ck_alignment)s->alignment,
             .stall_us = s->stall_us,
             .changelog = {.where = (ck_materialise)s->changelog_where, .every = (uint32_t)s->changelog_every},
             .allow_semantic_change = s->allow_semantic_change != 0,
             .added = (ck_added_state)s->added},
        .placement = {.process = (uint32_t)d->process,
                      .process_count = (uint32_t)d->process_count,
                      .addresses = addresses,
                      .listening = &h->listening,
                      .tls = h->tls,
                      .secret = ck_arena_strndup(&h->arena, d->secret.p, d->secret.n),
                      .connect_timeout_us = CONNECT_US,
                      .process_of = process_of,
                      .process_of_arg = h},
        .skips = skips,
        .skip_count = d->skips.count,
    };
}

static ck_status start_job(task_host *h, ck_job_outputs *outputs, ck_error *err) {
    ck_frame *f = keep_frame(h);
    ck_message m;
    CK_TRY(ck_message_read(f, &h->arena, &m, err));
    if (m.kind != CK_MSG_START || m.as.start.addresses.count != h->deploy.process_count)
        return ck_fail(err, CK_CORRUPT, "a %s for a START", ck_message_name(m.kind));
    const char **addresses = ck_arena_array(&h->arena, m.as.start.addresses.count, sizeof *addresses);
    if (!addresses) return ck_nomem(err, h->mem, 0);
    for (uint32_t i = 0; i < m.as.start.addresses.count; i++) {
        ck_view v = ((const ck_msg_text *)m.as.start.addresses.items + i)->text;
        addresses[i] = ck_arena_strndup(&h->arena, v.p, v.n);
    }
    if (ck_memory_stage_new(h->e->memory, &outputs->memory) != CK_OK) return ck_nomem(err, h->mem, 0);
    ck_skip *skips = NULL;
    CK_TRY(read_skips(h, &skips, err));
    ck_job_config cfg = job_config(h, addresses, skips);
    if (!cfg.placement.secret) return ck_nomem(err, h->mem, 0);
    cfg.job_data = outputs;
    return ck_job_start(h->e->scheduler, &h->e->registry, h->graph, &cfg, &h->job, err);
}

/* ---- while it runs ---- */

static ck_status take_savepoint(task_host *h, const ck_msg_take_savepoint *m, ck_error *err) {
    ck_error why = CK_ERROR_INIT;
    uint64_t checkpoint = 0;
    int64_t timeout_us = (int64_t)m->timeout_ms * 1000;
    ck_status s = ck_job_savepoint_above(h->job, m->stop, m->above, timeout_us, &checkpoint, &why);
    if (s != CK_OK) checkpoint = 0;
    if (s == CK_AGAIN && !why.msg[0]) (void)ck_fail(&why, s, "the savepoint was not complete in time");
    return say(h,
               &(ck_message){.kind = CK_MSG_SAVEPOINT_ENDED,
                             .as.savepoint_ended = {h->fence, m->request, checkpoint, ck_view_of(why.msg)}},
               err);
}

static ck_status hear(task_host *h, ck_error *err) {
    ck_frame *f = take_frame(h, false);
    ck_message m;
    if (!f) return CK_OK;
    ck_arena_mark mark = ck_arena_mark_now(&h->arena);
    ck_status s = ck_message_read(f, &h->arena, &m, err);
    if (s == CK_OK && m.kind == CK_MSG_TAKE_SAVEPOINT) s = take_savepoint(h, &m.as.take_savepoint, err);
    ck_arena_reset_to(&h->arena, mark);
    ck_frame_free(&f);
    return s;
}

/* The process that leads the checkpoints says which are complete. */
static ck_status tell_checkpoint(task_host *h, ck_error *err) {
    ck_job_progress p;
    ck_job_progress_now(h->job, &p);
    if (h->deploy.process != 0 || p.last_checkpoint <= h->told) return CK_OK;
    h->told = p.last_checkpoint;
    return say(h, &(ck_message){.kind = CK_MSG_CHECKPOINT, .as.checkpoint = {h->fence, h->told}}, err);
}

/* Texts of messages have no control characters. */
static void blank_controls(char *text) {
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 32 || *p == 127) *p = ' ';
}

static ck_progress progress_now(task_host *h, char *note, size_t size) {
    ck_job_progress p;
    ck_job_watermark w;
    ck_job_progress_now(h->job, &p);
    ck_progress out = {.known = 1, .rows_in = p.rows_in, .rows_out = p.rows_out, .memory_limit = memory_limit(h)};
    for (int c = 0; c < CK_MEM_CATEGORY_COUNT; c++) out.memory_bytes += p.memory_bytes[c];
    out.rows_out -= p.dead_letters < p.rows_out ? p.dead_letters : p.rows_out;
    *note = 0;
    if (ck_job_watermark_now(h->job, &w)) {
        out.event_time = w.note.holder ? CK_EVENT_TIME_HELD : CK_EVENT_TIME_IDLE;
        out.watermark_us = w.note.watermark_us;
        (void)engine_watermark_text(&w, note, size);
        blank_controls(note);
    }
    return out;
}

/* At most once a second, and only what is new; the first rows at once, and the last time when the job has ended. */
static ck_status tell_progress(task_host *h, bool last, ck_error *err) {
    char note[sizeof h->note];
    int64_t now_us = ck_mono_us(&h->e->proc);
    const bool due = last || now_us - h->looked_us >= PROGRESS_US;
    if (!due && h->progress.rows_in) return CK_OK;
    ck_progress p = progress_now(h, note, sizeof note), *was = &h->progress;
    if (!due && !p.rows_in) return CK_OK;
    h->looked_us = now_us;
    if (was->known && was->rows_in == p.rows_in && was->rows_out == p.rows_out && was->event_time == p.event_time &&
        was->watermark_us == p.watermark_us && strcmp(h->note, note) == 0 &&
        was->memory_bytes / MEMORY_STEP_BYTES == p.memory_bytes / MEMORY_STEP_BYTES)
        return CK_OK;
    memcpy(h->note, note, sizeof note);
    p.note = ck_view_of(h->note);
    *was = p;
    return say(h, &(ck_message){.kind = CK_MSG_PROGRESS, .as.progress = {h->fence, p}}, err);
}

static ck_status run_job(task_host *h, ck_error *err) {
    for (;;) {
        ck_status s = ck_job_wait(h->job, TURN_US, err);
        if (s != CK_AGAIN) {
            ck_error lost = CK_ERROR_INIT;
            return tell_checkpoint(h, &lost) == CK_OK && tell_progress(h, true, &lost) == CK_OK ? s : CK_NOMEM;
        }
        ck_error_reset(err);
        CK_TRY(hear(h, err));
        CK_TRY(tell_checkpoint(h, err));
        CK_TRY(tell_progress(h, false, err));
    }
}

/* Of which record it was, so that the job can go on without it. */
static void say_record(const ck_error *why, char *text, size_t size) {
    size_t n = strlen(text);
    if (why->place.byte_offset >= 0 && why->place.object[0])
        (void)snprintf(text + n, size - n, "; resume ID --skip-record '%s:%lld' goes on without it", why->place.object,
                       (long long)why->place.byte_offset);
}

static ck_status say_ended(task_host *h, ck_status s, const ck_error *why, ck_error *err) {
    char text[CK_CLUSTER_ERROR_MAX];
    snprintf(text, sizeof text, "%s", s == CK_OK ? "" : why->msg);
    if (s == CK_DATA) say_record(why, text, sizeof text);
    blank_controls(text);
    ck_msg_ended e = {.fence = h->fence,
                      .outcome = s == CK_OK          ? CK_TASK_FINISHED
                                 : s == CK_CANCELLED ? CK_TASK_CANCELLED
                                                     : CK_TASK_FAILED,
                      .error = ck_view_of(text)};
    if (s == CK_DATA) e.flags = CK_ENDED_DATA;
    if (s != CK_OK && s != CK_DATA && why->fatal) e.flags = CK_ENDED_FATAL;
    return say(h, &(ck_message){.kind = CK_MSG_ENDED, .as.ended = e}, err);
}

/* ---- its life ---- */

/* Before it knows anything of the job; for as long as the process lives. */
static ck_status confine(task_host *h, ck_error *err) {
    ck_proc *p = &h->e->proc;
    if (!h->is_confined) return CK_OK;
    CK_TRY(ck_confined_init(&h->confined, h->mem, p->fs, h->data_root, h->secret_dir, err));
    p->fs = &h->confined.fs;
    p->confined = &h->confined;
    return CK_OK;
}

static void free_again(task_host *h) {
    if (!h->e->proc.confined) return;
    h->e->proc.fs = h->confined.under;
    h->e->proc.confined = NULL;
    ck_confined_destroy(&h->confined);
}

static ck_status live(task_host *h, const char *socket, ck_error *err) {
    ck_job_outputs outputs = {0};
    char address[200];
    const ck_connection_config cfg = {.handler = &handler,
                                      .arg = h,
                                      .mem = h->mem,
                                      .frame_bytes_max = CK_FRAME_CONTROL_BYTES_MAX,
                                      .queue_bytes_max = QUEUE_BYTES_MAX,
                                      .connect_timeout_us = CONNECT_US};
    snprintf(address, sizeof address, "unix:%s", socket);
    CK_TRY(ck_net_loop_new(&h->e->proc, "task-host", &h->loop, err));
    CK_TRY(ck_connection_dial(h->loop, address, &cfg, &h->c, err));
    CK_TRY(say(h, &(ck_message){.kind = CK_MSG_HELLO, .as.hello = {.fence = h->fence, .version = CK_CLUSTER_VERSION}},
               err));
    ck_error why = CK_ERROR_INIT;
    ck_status s = confine(h, &why);
    if (s == CK_OK) s = read_deploy(h, &why);
    if (s == CK_OK) s = load_plugins(h, &why);
    if (s == CK_OK) s = ck_tls_new(&h->e->proc, &h->tls_files, &h->tls, &why);
    if (s == CK_OK) s = open_data_port(h, &why);
    if (s == CK_OK)
        s = say(h, &(ck_message){.kind = CK_MSG_READY, .as.ready = {h->fence, ck_view_of(h->address)}}, &why);
    if (s == CK_OK) s = start_job(h, &outputs, &why);
    if (s == CK_OK) s = run_job(h, &why);
    ck_job_free(h->job);
    h->job = NULL;
    ck_socket_close(h->listening);
    ck_tls_free(h->tls);
    ck_memory_stage_free(&outputs.memory);
    return say_ended(h, s, &why, err);
}

/* The parent may have died before the kernel was told to end us with it. */
static bool is_orphan(const char *parent) {
    return prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || (long)getppid() != strtol(parent, NULL, 10);
}

/* Where the machine runs out of memory all the same, the kernel takes a job and not the worker with all of them. */
static void stand_in_for_the_worker(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t n = write(fd, "500", 3);
    (void)n; /* a kernel without it, or a container that allows less, has its own idea */
    close(fd);
}

static void wait_until_said(task_host *h) {
    ck_connection_close(h->c, true);
    pthread_mutex_lock(&h->lock);
    while (!h->gone) pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
    ck_connection_unref(&h->c);
}

static void forget(task_host *h) {
    if (h->c) wait_until_said(h);
    ck_net_loop_free(h->loop);
    free_again(h);
    free_frames(h->kept);
    free_frames(h->first);
    ck_arena_destroy(&h->arena);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
}

int clink_task_host(clink_engine *e, int argc, char **argv) {
    ck_error err = CK_ERROR_INIT;
    if (!e || argc != 13 || is_orphan(argv[3])) return 2;
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* nothing of a job's secrets stays behind */
    stand_in_for_the_worker();
    task_host h = {.e = e, .mem = ck_proc_mem(&e->proc, CK_MEM_PLAN), .data_host = argv[4], .advertised = argv[5]};
    h.data_root = argv[9][0] ? argv[9] : NULL, h.secret_dir = argv[10][0] ? argv[10] : NULL;
    h.slot_bytes = (size_t)strtoull(argv[11], NULL, 10);
    h.plugin_dir = argv[12];
    h.is_confined = argv[6][0] || h.data_root || h.secret_dir;
    if (argv[6][0]) h.tls_files = (ck_tls_files){argv[6], argv[7], argv[8]};
    h.fence = (ck_msg_fence){0, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10)};
    h.end = &h.first;
    ck_arena_init(&h.arena, h.mem, ARENA_BYTES_MAX);
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.changed, NULL);
    ck_status s = live(&h, argv[0], &err);
    if (s != CK_OK) ck_log_line(e->proc.log, CK_LOG_ERROR, "task host: %s", err.msg);
    forget(&h);
    return s == CK_OK ? 0 : 1;
}
