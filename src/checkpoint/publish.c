/* Publishing manifests and markers. */
#include "checkpoint/directory_int.h"

#include <inttypes.h>

#include "os/durable.h"

bool ck_checkpoint_dir_has(const ck_checkpoint_dir *d, const ck_manifest_file *f) {
    ck_arena a;
    ck_stat st;
    ck_arena_init(&a, d->mem, 1 << 20);
    const char *path = ck_dir_join(&a, d->path, f->path);
    bool has = path && d->proc->fs->stat(d->proc->fs, path, &st, NULL) == CK_OK && st.bytes == f->bytes;
    ck_arena_destroy(&a);
    return has;
}

/* From here on retention leaves its files alone, but for the one that it is taking away. */
static ck_status claim_files(ck_checkpoint_dir *d, ck_dir_entry *e, ck_error *err) {
    pthread_mutex_lock(&d->lock);
    e->next = d->publishing;
    d->publishing = e;
    bool late = d->removing && ck_dir_entry_names(e, d->removing);
    pthread_mutex_unlock(&d->lock);
    return late ? ck_fail(err, CK_NOTFOUND, "checkpoint %" PRIu64 " names a file that retention has removed",
                          e->e.checkpoint)
                : CK_OK;
}

static void give_up(ck_checkpoint_dir *d, ck_dir_entry *e) {
    pthread_mutex_lock(&d->lock);
    ck_dir_entry_unlink(&d->publishing, e);
    pthread_mutex_unlock(&d->lock);
    ck_dir_entry_free(d, e);
}

/* Every file the manifest names is there with its size: what it says is true when it becomes visible. */
static ck_status check_files(ck_checkpoint_dir *d, const ck_manifest *m, ck_arena *a, ck_error *err) {
    ck_fs *fs = d->proc->fs;
    for (uint32_t i = 0; i < m->file_count; i++) {
        ck_arena_mark mark = ck_arena_mark_now(a);
        const char *path = ck_dir_join(a, d->path, m->files[i].path);
        ck_stat st;
        if (!path) return ck_nomem(err, a->mem, 0);
        ck_status s = fs->stat(fs, path, &st, err);
        if (s != CK_OK)
            return ck_error_prefix(err, "checkpoint %" PRIu64 " names a file that cannot be seen: ", m->checkpoint), s;
        if (st.bytes != m->files[i].bytes)
            return ck_fail(err, CK_CORRUPT, "%s has %" PRIu64 " bytes, checkpoint %" PRIu64 " was to name %" PRIu64,
                           path, st.bytes, m->checkpoint, m->files[i].bytes);
        ck_arena_reset_to(a, mark);
    }
    return CK_OK;
}

static ck_status outcome(ck_error *err, ck_status s, bool fatal) {
    if (err) err->fatal = fatal, err->retriable = !fatal;
    return s;
}

/* Ours, and syncing its directory failed. A second sync may succeed and make nothing durable: what the first one lost
 * counts as clean. So the name goes again, and the checkpoint has failed: the next one makes a name of its own. */
static ck_status take_back(ck_checkpoint_dir *d, const char *path, ck_status failed, ck_error *err) {
    ck_error other = CK_ERROR_INIT;
    ck_status s = d->proc->fs->unlink(d->proc->fs, path, &other);
    if (s == CK_OK || s == CK_NOTFOUND) return outcome(err, failed, false);
    ck_error_prefix(err, "it is not known whether %s is durable, and it cannot be removed: ", path);
    return outcome(err, failed, true);
}

/* The name is taken, or making it durable failed: what stands there decides. */
static ck_status look_again(ck_checkpoint_dir *d, const char *path, ck_view text, ck_status failed, ck_arena *a,
                            ck_error *err) {
    ck_view there;
    ck_error other = CK_ERROR_INIT;
    ck_status s = ck_fs_read_all(d->proc, path, CK_MANIFEST_BYTES_MAX, a, &there, &other);
    if (s == CK_NOTFOUND) return outcome(err, failed == CK_EXISTS ? CK_IO : failed, false);
    if (s != CK_OK) {
        if (err) *err = other;
        ck_error_prefix(err, "it is not known whether %s was published: ", path);
        return outcome(err, s, true);
    }
    if (!ck_view_eq(there, text))
        return outcome(err, ck_fail(err, CK_EXISTS, "%s stands there already, written by another run", path), true);
    if (failed != CK_EXISTS) return take_back(d, path, failed, err);
    /* Ours, and its name was taken when we came: a lost reply. */
    s = d->proc->fs->fsync_dir(d->proc->fs, d->path, &other);
    if (s == CK_OK) return CK_OK;
    if (err) *err = other;
    ck_error_prefix(err, "it is not known whether %s is durable: ", path);
    return outcome(err, s, true);
}

static ck_status publish_text(ck_checkpoint_dir *d, const char *name, ck_view text, ck_arena *a, ck_error *err) {
    const char *path = ck_dir_join(a, d->path, name);
    if (!path) return outcome(err, ck_nomem(err, a->mem, 0), false);
    ck_status s = ck_durable_publish_bytes(d->proc, path, text, err);
    if (s == CK_OK || s == CK_CANCELLED) return s;
    return look_again(d, path, text, s, a, err);
}

static ck_status publish(ck_checkpoint_dir *d, const ck_manifest *m, ck_arena *a, ck_error *err) {
    ck_bytes text;
    ck_bytes_init(&text, d->mem, CK_MANIFEST_BYTES_MAX);
    ck_status s = ck_manifest_check(m, a, err);
    if (s == CK_OK && ck_manifest_encode(m, &text) != CK_OK) s = ck_nomem(err, d->mem, text.n);
    ck_dir_entry *e = NULL;
    if (s == CK_OK) s = ck_dir_entry_new(d, m->checkpoint, ck_bytes_as_view(&text), &e, err);
    if (s == CK_OK && e->e.damage) s = ck_fail(err, CK_INVALID, "a manifest that cannot be read: %s", e->e.damage);
    if (s == CK_OK) s = claim_files(d, e, err);
    if (s == CK_OK) s = check_files(d, m, a, err);
    s = outcome(err, s, false);
    if (s == CK_OK) {
        const char *name = ck_checkpoint_path_manifest(a, m->checkpoint);
        s = name ? publish_text(d, name, ck_bytes_as_view(&text), a, err) : ck_nomem(err, a->mem, 0);
    }
    if (s == CK_OK) {
        e->e.own = strcmp(m->job_uuid, d->job_uuid) == 0;
        ck_dir_entry_add(d, e);
    } else if (e) {
        give_up(d, e);
    }
    ck_bytes_destroy(&text);
    return s;
}

ck_status ck_checkpoint_dir_publish(ck_checkpoint_dir *d, const ck_manifest *m, ck_error *err) {
    CK_ASSERT(!d->read_only && !d->unbegun);
    ck_arena a;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    ck_status s = publish(d, m, &a, err);
    ck_arena_destroy(&a);
    return s;
}

/* ---- .committed ---- */

/* A marker of a region says so: alone it still tells whose manifest is missing. */
static const char *mark_text(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a) {
    uint32_t region = 0, regions = 0;
    uint64_t graph_hash = 0;
    pthread_mutex_lock(&d->lock);
    for (const ck_dir_entry *e = d->entries; e; e = e->next)
        if (e->e.checkpoint == checkpoint) region = e->e.region, regions = e->e.regions, graph_hash = e->graph_hash;
    pthread_mutex_unlock(&d->lock);
    if (!regions) return ck_arena_printf(a, "{\"checkpoint\":%" PRIu64 "}\n", checkpoint);
    return ck_arena_printf(
        a, "{\"checkpoint\":%" PRIu64 ",\"region\":%" PRIu32 ",\"regions\":%" PRIu32 ",\"graph\":\"%016" PRIx64 "\"}\n",
        checkpoint, region, regions, graph_hash);
}

static bool set_committed(ck_checkpoint_dir *d, uint64_t checkpoint, bool set) {
    bool was = false;
    pthread_mutex_lock(&d->lock);
    for (ck_dir_entry *e = d->entries; e; e = e->next) {
        if (e->e.checkpoint != checkpoint) continue;
        was = e->e.committed;
        e->e.committed |= set;
    }
    pthread_mutex_unlock(&d->lock);
    return was;
}

static ck_status fault(ck_checkpoint_dir *d, ck_fault_point p, ck_error *err) {
    ck_status s = ck_fault_hit(d->proc->faults, p);
    return s == CK_OK ? CK_OK : outcome(err, ck_fail(err, s, "stopped by the fault point %s", ck_fault_name(p)), false);
}

ck_status ck_checkpoint_dir_mark_committed(ck_checkpoint_dir *d, uint64_t checkpoint, ck_error *err) {
    CK_ASSERT(!d->read_only);
    if (set_committed(d, checkpoint, false)) return CK_OK;
    CK_TRY(fault(d, CK_FAULT_COMMITTED_BEFORE_MARK, err));
    ck_arena a;
    ck_arena_init(&a, d->mem, 1 << 20);
    const char *name = ck_checkpoint_path_committed(&a, checkpoint);
    const char *text = mark_text(d, checkpoint, &a);
    ck_status s = name && text ? publish_text(d, name, ck_view_of(text), &a, err) : ck_nomem(err, d->mem, 0);
    ck_arena_destroy(&a);
    CK_TRY(s);
    set_committed(d, checkpoint, true);
    return fault(d, CK_FAULT_COMMITTED_AFTER_MARK, err);
}
