/* Which checkpoints stay, and removing what only the others need. Order matters: manifests go first and durably, so
 * that no visible manifest ever names a file that retention has removed. The walk takes its time, and checkpoints are
 * published meanwhile: each file is looked for in theirs before it goes.
 *
 * A region does so for its own manifests and its own vertices' files, which nobody else publishes or names. What is of
 * another graph goes when each region has a checkpoint of this one, whichever region sees that first. */
#include "checkpoint/directory_int.h"

#include <inttypes.h>

#include "base/map.h"

typedef struct retention {
    ck_checkpoint_dir *d;
    ck_arena a;
    ck_map needed;     /* paths the kept checkpoints name */
    uint64_t *victims; /* checkpoints to remove, ascending */
    uint32_t victim_count;
    uint64_t newest; /* files of it and of later ones are never touched */
    bool damaged;
    bool superseded; /* of a region: each has a checkpoint of this graph, so that no other's is needed */
} retention;

static bool same_generation(const ck_dir_entry *a, const ck_dir_entry *b) {
    return a->e.regions && a->e.regions == b->e.regions && a->graph_hash == b->graph_hash;
}

/* Newer ones of this run. What ran region by region before counts as one: its parts are of no use without each other.
 */
static uint32_t newer_than(const ck_checkpoint_dir *d, const ck_dir_entry *e) {
    uint32_t n = 0;
    for (const ck_dir_entry *f = e->next; f; f = f->next)
        n += ck_dir_entry_is_mine(d, f) && (ck_dir_by_region(d) || f->e.damage || !same_generation(e, f));
    return n;
}

static bool is_of_this_region(const ck_checkpoint_dir *d, const ck_dir_entry *e) {
    return e->e.own && ck_dir_is_of_this_graph(d, e) && e->e.region == d->region.index;
}

static bool is_kept(const retention *r, const ck_dir_entry *e, uint32_t retained) {
    const ck_checkpoint_dir *d = r->d;
    if (e->e.damage || e->e.kind == CK_BARRIER_SAVEPOINT) return true;
    if (ck_dir_by_region(d) && !is_of_this_region(d, e))
        return (e->e.own && ck_dir_is_of_this_graph(d, e)) || !r->superseded;
    return e->e.own && (!e->e.committed || newer_than(d, e) < retained);
}

static ck_status keep(retention *r, const ck_dir_entry *e) {
    r->damaged |= e->e.damage != NULL;
    for (uint32_t i = 1; i < e->path_count; i++) CK_TRY(ck_map_put(&r->needed, ck_view_of(e->paths[i]), r, NULL));
    return CK_OK;
}

/* Under the lock: memory only. */
static ck_status decide(retention *r, uint32_t retained) {
    uint32_t n = 0;
    for (const ck_dir_entry *e = r->d->entries; e; e = e->next) {
        n++;
        if (ck_dir_by_region(r->d) ? is_of_this_region(r->d, e) : e->e.own) r->newest = e->e.checkpoint;
    }
    r->victims = ck_arena_array(&r->a, n ? n : 1, sizeof *r->victims);
    if (!r->victims) return CK_NOMEM;
    if (r->newest == 0) return CK_OK; /* a fresh start keeps the old until its own first checkpoint stands */
    for (const ck_dir_entry *e = r->d->entries; e; e = e->next) {
        if (is_kept(r, e, retained))
            CK_TRY(keep(r, e));
        else
            r->victims[r->victim_count++] = e->e.checkpoint;
    }
    return CK_OK;
}

static ck_status remove_path(retention *r, const char *relative, ck_error *err) {
    ck_arena_mark mark = ck_arena_mark_now(&r->a);
    const char *path = ck_dir_join(&r->a, r->d->path, relative);
    if (!path) return ck_nomem(err, r->d->mem, 0);
    ck_status s = r->d->proc->fs->unlink(r->d->proc->fs, path, err);
    ck_arena_reset_to(&r->a, mark);
    return s == CK_NOTFOUND ? CK_OK : s;
}

static void forget(ck_checkpoint_dir *d, uint64_t id) {
    pthread_mutex_lock(&d->lock);
    ck_dir_entry *e = d->entries;
    while (e && e->e.checkpoint != id) e = e->next;
    if (e) ck_dir_entry_unlink(&d->entries, e);
    pthread_mutex_unlock(&d->lock);
    if (e) ck_dir_entry_free(d, e);
}

ck_status ck_checkpoint_dir_abandon(ck_checkpoint_dir *d, uint64_t checkpoint, ck_error *err) {
    ck_fs *fs = d->proc->fs;
    ck_arena a;
    ck_arena_init(&a, d->mem, 1 << 20);
    const char *name = ck_checkpoint_path_manifest(&a, checkpoint),
               *from = name ? ck_dir_join(&a, d->path, name) : NULL;
    const char *to = from ? ck_arena_printf(&a, "%s/checkpoint-%" PRIu64 ".abandoned", d->path, checkpoint) : NULL;
    ck_status s = to ? fs->rename(fs, from, to, err) : ck_nomem(err, d->mem, 0);
    if (s == CK_OK) s = fs->fsync_dir(fs, d->path, err);
    ck_arena_destroy(&a);
    if (s == CK_OK) forget(d, checkpoint);
    return s;
}

static ck_status remove_manifests(retention *r, ck_error *err) {
    for (uint32_t i = 0; i < r->victim_count; i++) {
        const char *manifest = ck_checkpoint_path_manifest(&r->a, r->victims[i]);
        const char *committed = ck_checkpoint_path_committed(&r->a, r->victims[i]);
        if (!manifest || !committed) return ck_nomem(err, r->d->mem, 0);
        CK_TRY(remove_path(r, manifest, err));
        CK_TRY(remove_path(r, committed, err));
        forget(r->d, r->victims[i]);
    }
    return r->victim_count ? r->d->proc->fs->fsync_dir(r->d->proc->fs, r->d->path, err) : CK_OK;
}

static bool is_named_by(const ck_dir_entry *e, const char *path, uint64_t newer_than) {
    for (; e; e = e->next)
        if (e->e.checkpoint > newer_than && ck_dir_entry_names(e, path)) return true;
    return false;
}

/* By a checkpoint that retention keeps, one that has come since it decided, or one that is being published. With the
 * lock: who publishes says what it names before it looks whether that is there. */
static bool is_needed(const retention *r, const char *path) {
    return ck_map_get(&r->needed, ck_view_of(path)) || is_named_by(r->d->entries, path, r->newest) ||
           is_named_by(r->d->publishing, path, 0);
}

/* false: it is needed. Else nobody may name it any more. */
static bool begin_removing(retention *r, const char *path, const char *segment) {
    pthread_mutex_lock(&r->d->lock);
    bool needed = is_needed(r, path) || (segment && is_needed(r, segment));
    if (!needed) r->d->removing = path;
    pthread_mutex_unlock(&r->d->lock);
    return !needed;
}

static void end_removing(retention *r) {
    pthread_mutex_lock(&r->d->lock);
    r->d->removing = NULL;
    pthread_mutex_unlock(&r->d->lock);
}

/* A materialisation is written beside the checkpoints and named by a later one: it is waited for as long as the segment
 * it stands for is needed, for only what has that one can still stand on it. NULL: it is none. */
static ck_status segment_of(retention *r, const char *path, uint64_t id, const char **out, ck_error *err) {
    const char *folder = strstr(path, "/" CK_MATERIALIZED "/");
    *out = NULL;
    if (!folder) return CK_OK;
    *out = ck_arena_printf(&r->a, "%.*s/changelog-%" PRIu64 ".snap", (int)(folder - path), path, id);
    return *out ? CK_OK : ck_nomem(err, r->d->mem, 0);
}

static ck_status remove_orphan(retention *r, const char *path, ck_error *err) {
    ck_status s = ck_fault_hit(r->d->proc->faults, CK_FAULT_RETENTION_BEFORE_DELETE);
    if (s != CK_OK) return ck_fail(err, s, "stopped by the fault point retention.before_delete");
    return remove_path(r, path, err);
}

static ck_status remove_if_orphan(void *arg, const char *path, const char *name, ck_error *err) {
    retention *r = arg;
    uint64_t id;
    if (ck_name_parse(name, &id) != CK_NAME_DATA || strcmp(path, name) == 0) return CK_OK;
    if (id >= r->newest || !ck_dir_path_is_mine(r->d, path, id)) return CK_OK;
    ck_arena_mark mark = ck_arena_mark_now(&r->a);
    const char *segment;
    CK_TRY(segment_of(r, path, id, &segment, err));
    ck_status s = CK_OK;
    if (begin_removing(r, path, segment)) {
        s = remove_orphan(r, path, err);
        end_removing(r);
    }
    ck_arena_reset_to(&r->a, mark);
    return s;
}

/* The newest of what is of another graph; 0: there is nothing that could go. Under the lock. */
static uint64_t newest_of_others(const ck_checkpoint_dir *d) {
    uint64_t newest = 0;
    for (const ck_dir_entry *e = d->entries; e; e = e->next)
        if (!e->e.damage && !(e->e.own && ck_dir_is_of_this_graph(d, e)) && e->e.kind != CK_BARRIER_SAVEPOINT)
            newest = e->e.checkpoint;
    return newest;
}

/* The other regions publish meanwhile. What is seen of them becomes an entry; it is never removed here. */
static ck_status look_at_others(retention *r, ck_error *err) {
    ck_checkpoint_dir *d = r->d;
    pthread_mutex_lock(&d->lock);
    uint64_t of_others = newest_of_others(d);
    pthread_mutex_unlock(&d->lock);
    if (!of_others) return CK_OK;
    CK_TRY(ck_dir_look_again(d, of_others, err));
    pthread_mutex_lock(&d->lock);
    r->superseded = ck_dir_is_superseded(d, of_others, d->job_uuid);
    pthread_mutex_unlock(&d->lock);
    return CK_OK;
}

ck_status ck_checkpoint_dir_retain(ck_checkpoint_dir *d, uint32_t retained, ck_error *err) {
    CK_ASSERT(!d->read_only);
    retention r = {.d = d};
    ck_arena_init(&r.a, d->mem, SIZE_MAX);
    ck_map_init(&r.needed, &r.a, false);
    ck_status s = ck_dir_by_region(d) ? look_at_others(&r, err) : CK_OK;
    pthread_mutex_lock(&d->lock);
    if (s == CK_OK && decide(&r, retained ? retained : 1) != CK_OK) s = CK_NOMEM;
    pthread_mutex_unlock(&d->lock);
    if (s == CK_NOMEM) s = ck_nomem(err, d->mem, 0);
    if (s == CK_OK) s = remove_manifests(&r, err);
    if (s == CK_OK && r.newest && !r.damaged) s = ck_dir_walk(d, remove_if_orphan, &r, err);
    if (s == CK_OK && r.damaged)
        ck_log_line(d->proc->log, CK_LOG_WARN, "%s: a manifest is damaged; no data file is removed until it is gone",
                    d->path);
    ck_arena_destroy(&r.a);
    return s;
}
