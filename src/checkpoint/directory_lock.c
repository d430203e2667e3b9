/* Who owns a checkpoint directory. A run of the whole holds job.lock. A region holds region-<n>.lock, and job.lock
 * while it opens. Each takes its own first and then looks at the other's, so that never both go on. */
#include "checkpoint/directory_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <yyjson.h>

#include "base/json.h"
#include "os/clock.h"

enum { LOCK_TAIL_BYTES = 4096, LOCK_PAUSE_MS = 10, LOCK_WAIT_US = 10 * 1000 * 1000, LOCK_LOOK_US = 1000 * 1000 };

static const char region_prefix[] = "region-", lock_suffix[] = ".lock";

/* ---- what a lock file says ---- */

typedef struct owner {
    uint64_t attempt; /* of job.lock */
    int64_t pid;
    uint64_t regions, graph_hash; /* of a region's */
} owner;

static void read_line(const ck_checkpoint_dir *d, const char *line, owner *out) {
    ck_arena a;
    yyjson_doc *doc;
    ck_arena_init(&a, d->mem, 1 << 20);
    *out = (owner){0};
    if (ck_json_read(&a, ck_view_of(line), &doc, NULL) == CK_OK) {
        yyjson_val *o = yyjson_doc_get_root(doc);
        const char *graph = yyjson_get_str(yyjson_obj_get(o, "graph"));
        out->attempt = yyjson_get_uint(yyjson_obj_get(o, "attempt"));
        out->pid = yyjson_get_sint(yyjson_obj_get(o, "pid"));
        out->regions = yyjson_get_uint(yyjson_obj_get(o, "regions"));
        if (graph) (void)sscanf(graph, "%" SCNx64, &out->graph_hash);
    }
    ck_arena_destroy(&a);
}

/* One line a run; the last whole one is the newest owner. A line without its newline was torn. */
static bool last_owner(const ck_checkpoint_dir *d, ck_file *f, owner *out, bool *torn) {
    ck_fs *fs = d->proc->fs;
    ck_stat st;
    char tail[LOCK_TAIL_BYTES + 1];
    size_t got = 0;
    *out = (owner){0};
    *torn = false;
    if (fs->fstat(f, &st, NULL) != CK_OK) return false;
    uint64_t from = st.bytes > LOCK_TAIL_BYTES ? st.bytes - LOCK_TAIL_BYTES : 0;
    if (fs->pread(f, tail, LOCK_TAIL_BYTES, from, &got, NULL) != CK_OK) return false;
    tail[got] = 0;
    *torn = got > 0 && tail[got - 1] != '\n';
    for (char *end = strrchr(tail, '\n'); end; end = strrchr(tail, '\n')) {
        *end = 0;
        char *line = strrchr(tail, '\n');
        read_line(d, line ? line + 1 : tail, out);
        if (out->attempt || out->regions) return true;
    }
    return false;
}

/* It may end, or be the rest of an attempt that nobody can reach: another try is worth it, unlike after other refusals.
 */
static ck_status is_held(const ck_checkpoint_dir *d, ck_file *by, ck_error *err) {
    owner o;
    bool torn;
    char who[40] = "";
    if (last_owner(d, by, &o, &torn)) (void)snprintf(who, sizeof who, " (process %" PRId64 ")", o.pid);
    ck_fail(err, CK_REFUSED, "the checkpoint directory %s is in use by another run%s; a job runs once at a time",
            d->path, who);
    if (err) err->fatal = false;
    return CK_REFUSED;
}

static ck_status write_line(ck_checkpoint_dir *d, ck_file *f, const char *line, ck_error *err) {
    ck_fs *fs = d->proc->fs;
    CK_TRY(fs->write(f, line, strlen(line), err));
    CK_TRY(fs->fsync(f, err));
    return fs->fsync_dir(fs, d->path, err);
}

/* ---- taking them ---- */

static ck_status open_lock(ck_checkpoint_dir *d, const char *name, ck_file **out, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, d->mem, 1 << 20);
    const char *path = ck_dir_join(&a, d->path, name);
    ck_status s = path ? d->proc->fs->open(d->proc->fs, path, CK_OPEN_READWRITE, out, err) : ck_nomem(err, d->mem, 0);
    ck_arena_destroy(&a);
    return s;
}

static bool is_region_lock(const char *name, uint64_t *region) {
    size_t n = strlen(name), p = sizeof region_prefix - 1, s = sizeof lock_suffix - 1;
    return n > p + s && memcmp(name, region_prefix, p) == 0 && strcmp(name + n - s, lock_suffix) == 0 &&
           ck_id_parse(name + p, n - p - s, region);
}

/* *busy: another region's run has it, and it is no peer of ours. */
static ck_status look_at_region(ck_checkpoint_dir *d, const char *name, bool *busy, ck_error *err) {
    ck_file *f;
    owner o;
    bool torn;
    *busy = false;
    CK_TRY(open_lock(d, name, &f, err));
    ck_status s = d->proc->fs->lock(f, err);
    if (s == CK_EXISTS) {
        bool known = last_owner(d, f, &o, &torn);
        bool peer =
            ck_dir_by_region(d) && known && o.regions == d->region.count && o.graph_hash == d->region.graph_hash;
        *busy = !peer;
        if (peer)
            ck_error_reset(err);
        else
            (void)is_held(d, f, err);
        s = CK_OK;
    }
    d->proc->fs->close(f);
    return s;
}

static ck_status look_at_regions(ck_checkpoint_dir *d, bool *busy, ck_error *err) {
    ck_arena a;
    const char **names;
    size_t count;
    *busy = false;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    ck_status s = d->proc->fs->list(d->proc->fs, d->path, &a, &names, &count, err);
    for (size_t i = 0; s == CK_OK && i < count && !*busy; i++) {
        uint64_t region;
        if (!is_region_lock(names[i], &region)) continue;
        if (ck_dir_by_region(d) && region == d->region.index) continue; /* that is ours */
        s = look_at_region(d, names[i], busy, err);
    }
    ck_arena_destroy(&a);
    return s;
}

/* *last: the attempt of whoever had it last. */
static ck_status take_job_lock(ck_checkpoint_dir *d, bool *busy, uint64_t *last, ck_error *err) {
    owner o;
    bool torn;
    *busy = false;
    if (!d->lock_file) CK_TRY(open_lock(d, "job.lock", &d->lock_file, err));
    ck_status s = d->proc->fs->lock(d->lock_file, err);
    if (s == CK_EXISTS) {
        *busy = true;
        (void)last_owner(d, d->lock_file, &o, &torn);
        *last = o.attempt;
        (void)is_held(d, d->lock_file, err);
        return CK_OK;
    }
    CK_TRY(s);
    (void)last_owner(d, d->lock_file, &o, &d->lock_torn);
    d->attempt = o.attempt + 1;
    return CK_OK;
}

static void pause_a_little(void) {
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
    (void)nanosleep(&pause, NULL);
}

/* Another region that looks whether somebody has it holds it for that moment: only what lasts is a run. */
static ck_status lock_region(ck_checkpoint_dir *d, int64_t wait_us, ck_error *err) {
    for (int64_t waited_us = 0;; waited_us += LOCK_PAUSE_MS * 1000) {
        ck_status s = d->proc->fs->lock(d->region_lock, err);
        if (s != CK_EXISTS) return s;
        if (waited_us >= wait_us || waited_us >= LOCK_LOOK_US) return is_held(d, d->region_lock, err);
        pause_a_little();
        ck_error_reset(err);
    }
}

/* Its line says of which graph it is as soon as it is held: the other regions of that are no strangers. */
static ck_status take_region_lock(ck_checkpoint_dir *d, int64_t wait_us, ck_error *err) {
    char name[40], line[200];
    owner o;
    bool torn;
    (void)snprintf(name, sizeof name, "%s%" PRIu32 "%s", region_prefix, d->region.index, lock_suffix);
    CK_TRY(open_lock(d, name, &d->region_lock, err));
    CK_TRY(lock_region(d, wait_us, err));
    (void)last_owner(d, d->region_lock, &o, &torn);
    (void)snprintf(line, sizeof line,
                   "%s{\"pid\":%ld,\"started_ms\":%" PRId64 ",\"graph\":\"%016" PRIx64 "\",\"regions\":%" PRIu32 "}\n",
                   torn ? "\n" : "", (long)getpid(), ck_wall_us(d->proc) / 1000, d->region.graph_hash, d->region.count);
    return write_line(d, d->region_lock, line, err);
}

/* The openings of a job's regions follow each other, and while they do it is worth waiting; a run of the whole, or of
 * another graph, may be about to end. */
static ck_status take_as_region(ck_checkpoint_dir *d, int64_t wait_us, ck_error *err) {
    uint64_t last = 0, before = 0;
    bool busy = false;
    CK_TRY(take_region_lock(d, wait_us, err));
    for (int64_t waited_us = 0;; waited_us += LOCK_PAUSE_MS * 1000) {
        if (d->attempt == 0) CK_TRY(take_job_lock(d, &busy, &last, err));
        if (d->attempt != 0) CK_TRY(look_at_regions(d, &busy, err));
        if (!busy) return CK_OK;
        if (last != before) waited_us = 0;
        before = last;
        if (waited_us >= wait_us) return CK_REFUSED;
        pause_a_little();
        ck_error_reset(err);
    }
}

ck_status ck_dir_take_locks(ck_checkpoint_dir *d, int64_t wait_us, ck_error *err) {
    bool busy;
    uint64_t last;
    ck_error unwanted = CK_ERROR_INIT;
    if (!err) err = &unwanted;
    if (ck_dir_by_region(d)) return take_as_region(d, wait_us ? wait_us : LOCK_WAIT_US, err);
    CK_TRY(take_job_lock(d, &busy, &last, err));
    if (!busy) CK_TRY(look_at_regions(d, &busy, err));
    return busy ? CK_REFUSED : CK_OK;
}

ck_status ck_dir_sign_locks(ck_checkpoint_dir *d, ck_error *err) {
    char line[200];
    char region[40] = "";
    if (ck_dir_by_region(d)) (void)snprintf(region, sizeof region, ",\"region\":%" PRIu32, d->region.index);
    (void)snprintf(line, sizeof line, "%s{\"attempt\":%" PRIu64 ",\"pid\":%ld,\"started_ms\":%" PRId64 "%s}\n",
                   d->lock_torn ? "\n" : "", d->attempt, (long)getpid(), ck_wall_us(d->proc) / 1000, region);
    CK_TRY(write_line(d, d->lock_file, line, err));
    if (!ck_dir_by_region(d)) return CK_OK;
    d->proc->fs->close(d->lock_file); /* it is open: the next one's turn */
    d->lock_file = NULL;
    return CK_OK;
}

void ck_dir_let_go_of_locks(ck_checkpoint_dir *d) {
    if (d->lock_file) d->proc->fs->close(d->lock_file);
    if (d->region_lock) d->proc->fs->close(d->region_lock);
    d->lock_file = d->region_lock = NULL;
}

ck_status ck_dir_has_regions_alive(ck_checkpoint_dir *d, bool *alive, ck_error *err) {
    CK_TRY(look_at_regions(d, alive, err));
    if (*alive) ck_error_reset(err);
    return CK_OK;
}
