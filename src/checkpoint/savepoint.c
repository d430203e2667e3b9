/* See savepoint.h. */
#include "checkpoint/savepoint.h"

#include <inttypes.h>

#include "base/map.h"
#include "checkpoint/directory_int.h"
#include "checkpoint/snapshot.h"
#include "os/durable.h"

enum { COPY_BYTES = 1 << 20, JOB_FILE_BYTES_MAX = 64 * 1024 };

static ck_status open_read_only(ck_proc *proc, ck_mem mem, const char *path, ck_checkpoint_dir **out, ck_error *err) {
    ck_checkpoint_dir_config cfg = {.proc = proc, .mem = mem, .path = path, .read_only = true};
    return ck_checkpoint_dir_open(&cfg, out, err);
}

static const char *parent_of(ck_arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? ck_arena_strndup(a, path, (size_t)(slash - path)) : ck_arena_strdup(a, ".");
}

/* ---- export ---- */

typedef struct export {
    ck_proc *proc;
    ck_mem mem;
    ck_arena a;
    const char *from, *to;
}
export;

static ck_status copy_bytes(export *x, ck_file *in, ck_tmpfile *out, const char *path, ck_error *err) {
    uint8_t *buffer = ck_alloc(x->mem, COPY_BYTES);
    if (!buffer) return ck_nomem(err, x->mem, COPY_BYTES);
    ck_status s = CK_OK;
    size_t got = COPY_BYTES;
    for (uint64_t at = 0; s == CK_OK && got == COPY_BYTES; at += got) {
        s = x->proc->fs->pread(in, buffer, COPY_BYTES, at, &got, err);
        if (s == CK_OK && got) s = ck_tmpfile_write(out, buffer, got, err);
    }
    ck_free(x->mem, buffer, COPY_BYTES);
    return s == CK_OK ? s : (ck_error_prefix(err, "copying %s: ", path), s);
}

static ck_status copy_file(export *x, const char *from, const char *to, ck_error *err) {
    ck_file *in;
    ck_tmpfile out = {0};
    CK_TRY(x->proc->fs->open(x->proc->fs, from, CK_OPEN_READ, &in, err));
    ck_status s = ck_tmpfile_init(&out, x->proc, x->mem, to, err);
    if (s == CK_OK) s = copy_bytes(x, in, &out, from, err);
    if (s == CK_OK) s = ck_durable_publish(&out, err);
    ck_tmpfile_destroy(&out);
    x->proc->fs->close(in);
    return s;
}

/* A name that is taken already may be ours, from a try before: the checksum decides. */
static ck_status export_file(export *x, const ck_manifest_file *f, ck_error *err) {
    const char *from = ck_dir_join(&x->a, x->from, f->path), *to = ck_dir_join(&x->a, x->to, f->path);
    const char *folder = to ? parent_of(&x->a, to) : NULL;
    if (!from || !folder) return ck_nomem(err, x->mem, 0);
    CK_TRY(ck_snapshot_verify(x->proc, x->mem, x->from, f, err));
    CK_TRY(ck_fs_mkdirs(x->proc, folder, err));
    ck_status s = x->proc->fs->link(x->proc->fs, from, to, NULL);
    if (s != CK_OK && s != CK_EXISTS) s = copy_file(x, from, to, err);
    if (s == CK_EXISTS) s = ck_snapshot_verify(x->proc, x->mem, x->to, f, err);
    return s == CK_OK ? x->proc->fs->fsync_dir(x->proc->fs, folder, err) : s;
}

/* Text that must stand there, and may already. */
static ck_status publish_same(export *x, const char *name, ck_view text, ck_error *err) {
    const char *path = ck_dir_join(&x->a, x->to, name);
    ck_view there;
    if (!path) return ck_nomem(err, x->mem, 0);
    ck_status s = ck_durable_publish_bytes(x->proc, path, text, err);
    if (s != CK_EXISTS) return s;
    CK_TRY(ck_fs_read_all(x->proc, path, CK_MANIFEST_BYTES_MAX, &x->a, &there, err));
    if (ck_view_eq(there, text)) return ck_durable_confirm(x->proc, path, err);
    return ck_fail(err, CK_REFUSED, "%s stands there already and is of another job or run", path);
}

/* Whose the directory is. */
static ck_status export_job(export *x, ck_error *err) {
    ck_view job;
    const char *path = ck_dir_join(&x->a, x->from, "job.json");
    if (!path) return ck_nomem(err, x->mem, 0);
    CK_TRY(ck_fs_read_all(x->proc, path, JOB_FILE_BYTES_MAX, &x->a, &job, err));
    CK_TRY(ck_fs_mkdirs(x->proc, x->to, err));
    return publish_same(x, "job.json", job, err);
}

static ck_status export_manifest(export *x, uint64_t id, ck_error *err) {
    ck_view text;
    const char *name = ck_checkpoint_path_manifest(&x->a, id), *path = name ? ck_dir_join(&x->a, x->from, name) : NULL;
    if (!path) return ck_nomem(err, x->mem, 0);
    CK_TRY(ck_fs_read_all(x->proc, path, CK_MANIFEST_BYTES_MAX, &x->a, &text, err));
    return publish_same(x, name, text, err);
}

static ck_status export_alone(export *x, ck_checkpoint_dir *d, uint64_t id, ck_error *err) {
    ck_manifest *m;
    CK_TRY(ck_dir_read_alone(d, id, &x->a, &m, err));
    for (uint32_t i = 0; i < m->file_count; i++) CK_TRY(export_file(x, &m->files[i], err));
    return export_manifest(x, id, err);
}

static ck_status export_all(export *x, ck_checkpoint_dir *d, uint64_t id, ck_error *err) {
    ck_manifest *m;
    CK_TRY(ck_checkpoint_dir_read(d, id, &x->a, &m, err));
    CK_TRY(export_job(x, err));                  /* first */
    for (uint32_t i = 0; i < m->part_count; i++) /* that of the number last: with it all are there */
        if (m->parts[i].checkpoint != id) CK_TRY(export_alone(x, d, m->parts[i].checkpoint, err));
    return export_alone(x, d, id, err);
}

ck_status ck_savepoint_export(ck_proc *proc, ck_mem mem, const char *from, uint64_t id, const char *to, ck_error *err) {
    export x = {.proc = proc, .mem = mem, .from = from, .to = to};
    ck_arena_init(&x.a, mem, SIZE_MAX);
    ck_checkpoint_dir *d = NULL;
    ck_status s = open_read_only(proc, mem, from, &d, err);
    if (s == CK_OK) s = export_all(&x, d, id, err);
    ck_checkpoint_dir_close(d);
    ck_arena_destroy(&x.a);
    if (s != CK_OK) ck_error_prefix(err, "savepoint %" PRIu64 " could not be kept in %s: ", id, to);
    return s;
}

ck_status ck_savepoint_prepare(ck_proc *proc, ck_mem mem, const char *from, const char *to, ck_error *err) {
    export x = {.proc = proc, .mem = mem, .from = from, .to = to};
    ck_arena_init(&x.a, mem, SIZE_MAX);
    ck_status s = export_job(&x, err);
    ck_arena_destroy(&x.a);
    if (s != CK_OK) ck_error_prefix(err, "a savepoint cannot be kept in %s: ", to);
    return s;
}

/* ---- dispose ---- */

typedef struct disposal {
    ck_checkpoint_dir *d;
    ck_arena a;
    ck_file *lock; /* NULL: no job has ever run here */
    bool running;
    const ck_dir_entry **victims; /* of a job that ran region by region one of each, that of the number last */
    uint32_t victim_count;
} disposal;

/* Nobody may start meanwhile, and no job may end between the list of what there is and this. */
static ck_status look_for_owner(disposal *x, ck_proc *proc, const char *dir, ck_error *err) {
    ck_fs *fs = proc->fs;
    const char *path = ck_dir_join(&x->a, dir, "job.lock");
    ck_stat st;
    if (!path) return ck_nomem(err, x->a.mem, 0);
    ck_status s = fs->stat(fs, path, &st, err);
    if (s == CK_NOTFOUND) return CK_OK;
    CK_TRY(s);
    CK_TRY(fs->open(fs, path, CK_OPEN_READWRITE, &x->lock, err));
    s = fs->lock(x->lock, err);
    x->running = s == CK_EXISTS;
    return x->running ? CK_OK : s;
}

static const ck_dir_entry *find_entry(const disposal *x, uint64_t id) {
    const ck_dir_entry *e = x->d->entries;
    while (e && e->e.checkpoint != id) e = e->next;
    return e;
}

static bool has_part(const ck_manifest *m, uint64_t id) {
    for (uint32_t i = 0; i < m->part_count; i++)
        if (m->parts[i].checkpoint == id) return true;
    return m->part_count == 0 && m->checkpoint == id;
}

/* A savepoint of the job is one of each region, and its number the greatest of theirs. */
static ck_status check_whole(disposal *x, uint64_t id, ck_error *err) {
    for (const ck_dir_entry *e = find_entry(x, id)->next; e; e = e->next) {
        ck_manifest *m;
        if (e->e.damage || !e->e.regions || e->e.kind != CK_BARRIER_SAVEPOINT) continue;
        ck_status s = ck_checkpoint_dir_read(x->d, e->e.checkpoint, &x->a, &m, err);
        if (s == CK_NOMEM) return s;
        if (s == CK_OK && has_part(m, id))
            return ck_fail(err, CK_REFUSED, "savepoint %" PRIu64 " in %s is a part of savepoint %" PRIu64, id,
                           x->d->path, e->e.checkpoint);
        ck_error_reset(err);
    }
    return CK_OK;
}

static ck_status check_victim(disposal *x, uint64_t id, ck_error *err) {
    ck_checkpoint_entry newest;
    ck_manifest *m = NULL;
    const ck_dir_entry *e = find_entry(x, id);
    if (!e) return ck_fail(err, CK_NOTFOUND, "%s has no savepoint %" PRIu64, x->d->path, id);
    if (!e->e.damage && e->e.kind != CK_BARRIER_SAVEPOINT)
        return ck_fail(err, CK_REFUSED, "checkpoint %" PRIu64 " in %s is no savepoint; retention removes it by itself",
                       id, x->d->path);
    if (!x->lock || ck_checkpoint_dir_newest(x->d, &newest) != CK_OK) return CK_OK;
    ck_status s = ck_checkpoint_dir_read_newest(x->d, newest.checkpoint, &x->a, &m, err);
    if (s == CK_NOMEM) return s;
    ck_error_reset(err); /* what cannot be read is what the job would find */
    bool needed = newest.checkpoint == id || (s == CK_OK && has_part(m, id));
    for (uint32_t i = 0; i < x->victim_count && s == CK_OK && !needed; i++)
        needed = has_part(m, x->victims[i]->e.checkpoint);
    if (needed)
        return ck_fail(err, CK_REFUSED, "%s %" PRIu64 " is what job '%s' would continue from in %s",
                       e->e.damage ? "the damaged checkpoint" : "savepoint", id, x->d->job_name, x->d->path);
    return e->e.damage || !e->e.regions ? CK_OK : check_whole(x, id, err);
}

/* Whether a savepoint that stays stands on this one: where a region had none of its own. */
static bool is_shared(disposal *x, const ck_manifest *of, uint64_t id) {
    for (const ck_dir_entry *e = x->d->entries; e; e = e->next) {
        ck_manifest *m;
        if (e->e.damage || !e->e.regions || e->e.kind != CK_BARRIER_SAVEPOINT || has_part(of, e->e.checkpoint))
            continue;
        if (ck_checkpoint_dir_read(x->d, e->e.checkpoint, &x->a, &m, NULL) == CK_OK && has_part(m, id)) return true;
    }
    return false;
}

static ck_status find_victims(disposal *x, uint64_t id, ck_error *err) {
    const ck_dir_entry *asked = find_entry(x, id);
    ck_manifest *m = NULL;
    if (asked && !asked->e.damage && asked->e.regions) {
        ck_status s = ck_checkpoint_dir_read(x->d, id, &x->a, &m, err);
        if (s == CK_NOMEM) return s;
        if (s != CK_OK) ck_error_reset(err), m = NULL; /* then it goes alone */
    }
    x->victims = ck_arena_array(&x->a, (m ? m->part_count : 0) + 1u, sizeof *x->victims);
    if (!x->victims) return ck_nomem(err, x->a.mem, 0);
    for (uint32_t i = 0; m && i < m->part_count; i++) {
        const ck_dir_entry *e = find_entry(x, m->parts[i].checkpoint);
        if (e && e != asked && e->e.regions && e->e.kind == CK_BARRIER_SAVEPOINT && !is_shared(x, m, e->e.checkpoint))
            x->victims[x->victim_count++] = e;
    }
    if (asked) x->victims[x->victim_count++] = asked;
    return CK_OK;
}

static ck_status remove_one(disposal *x, const char *relative, ck_error *err) {
    const char *path = ck_dir_join(&x->a, x->d->path, relative);
    if (!path) return ck_nomem(err, x->d->mem, 0);
    ck_status s = x->d->proc->fs->unlink(x->d->proc->fs, path, err);
    return s == CK_NOTFOUND ? CK_OK : s;
}

static bool is_victim(const disposal *x, const ck_dir_entry *e) {
    for (uint32_t i = 0; i < x->victim_count; i++)
        if (x->victims[i] == e) return true;
    return false;
}

static ck_status remove_files(disposal *x, const ck_dir_entry *victim, ck_error *err) {
    ck_map needed;
    ck_map_init(&needed, &x->a, false);
    for (const ck_dir_entry *e = x->d->entries; e; e = e->next) {
        if (is_victim(x, e)) continue;
        if (e->e.damage) return CK_OK; /* it may name any of them */
        for (uint32_t i = 1; i < e->path_count; i++)
            if (ck_map_put(&needed, ck_view_of(e->paths[i]), x, NULL) != CK_OK) return ck_nomem(err, x->d->mem, 0);
    }
    for (uint32_t i = 1; i < victim->path_count; i++) {
        if (ck_map_get(&needed, ck_view_of(victim->paths[i]))) continue;
        ck_status s = ck_fault_hit(x->d->proc->faults, CK_FAULT_RETENTION_BEFORE_DELETE);
        if (s != CK_OK) return ck_fail(err, s, "stopped by the fault point retention.before_delete");
        CK_TRY(remove_one(x, victim->paths[i], err));
    }
    return CK_OK;
}

static ck_status dispose(disposal *x, uint64_t id, ck_error *err) {
    CK_TRY(find_victims(x, id, err));
    CK_TRY(check_victim(x, id, err));
    for (uint32_t i = x->victim_count;
         i-- > 0;) { /* that of the number first: without it the rest is of no savepoint */
        const char *manifest = ck_checkpoint_path_manifest(&x->a, x->victims[i]->e.checkpoint);
        const char *mark = ck_checkpoint_path_committed(&x->a, x->victims[i]->e.checkpoint);
        if (!manifest || !mark) return ck_nomem(err, x->d->mem, 0);
        CK_TRY(remove_one(x, manifest, err));
        CK_TRY(remove_one(x, mark, err));
    }
    CK_TRY(x->d->proc->fs->fsync_dir(x->d->proc->fs, x->d->path, err));
    for (uint32_t i = 0; i < x->victim_count && !x->running; i++) CK_TRY(remove_files(x, x->victims[i], err));
    return CK_OK;
}

/* Regions hold locks of their own; none of them opens the directory while job.lock is held here. */
static ck_status look_for_regions(disposal *x, ck_error *err) {
    bool alive = false;
    if (x->lock && !x->running) CK_TRY(ck_dir_has_regions_alive(x->d, &alive, err));
    x->running |= alive;
    return CK_OK;
}

ck_status ck_savepoint_dispose(ck_proc *proc, ck_mem mem, const char *dir, uint64_t id, ck_error *err) {
    disposal x = {0};
    ck_error unwanted = CK_ERROR_INIT;
    if (!err) err = &unwanted;
    ck_arena_init(&x.a, mem, SIZE_MAX);
    ck_status s = look_for_owner(&x, proc, dir, err);
    if (s == CK_OK) s = open_read_only(proc, mem, dir, &x.d, err);
    if (s == CK_OK) s = look_for_regions(&x, err);
    if (s == CK_OK) s = dispose(&x, id, err);
    if (x.lock) proc->fs->close(x.lock);
    ck_arena_destroy(&x.a);
    ck_checkpoint_dir_close(x.d);
    return s;
}

/* ---- verify ---- */

enum { LISTS_MAX = 8 }; /* a job may publish faster than anybody reads */

typedef struct verification {
    ck_proc *proc;
    ck_mem mem;
    const char *dir;
    ck_checkpoint_dir *d;
    ck_verify_fn fn;
    void *arg;
    uint64_t manifests, damaged;
    ck_bytes seen; /* uint64_t: ids looked at */
} verification;

/* Of one checkpoint: said when all of it has been read, as long as it has not gone meanwhile. */
typedef struct findings {
    ck_verified *at;
    uint32_t n;
    bool any_damage;
} findings;

static void find(findings *f, uint64_t id, const char *path, uint64_t bytes, const char *damage, bool savepoint) {
    f->any_damage |= damage != NULL;
    f->at[f->n++] = (ck_verified){id, bytes, path, damage, savepoint};
}

static void say(verification *v, const ck_verified *found) {
    v->damaged += found->damage != NULL;
    v->fn(v->arg, found);
}

static ck_status verify_files(verification *v, const ck_manifest *m, findings *f, ck_arena *a, ck_error *err) {
    for (uint32_t i = 0; i < m->file_count; i++) {
        ck_error why = CK_ERROR_INIT;
        const char *damage = NULL;
        ck_status s = ck_snapshot_verify(v->proc, v->mem, v->dir, &m->files[i], &why);
        if (s == CK_NOMEM) return *err = why, s;
        if (s != CK_OK && !(damage = ck_arena_strdup(a, why.msg))) return ck_nomem(err, a->mem, 0);
        find(f, m->checkpoint, m->files[i].path, m->files[i].bytes, damage, m->kind == CK_BARRIER_SAVEPOINT);
    }
    return CK_OK;
}

/* Whose deltas stand on what, and what every file holds, is the manifest's word; here it is the bytes. */
static ck_status read_one(verification *v, uint64_t id, findings *f, ck_arena *a, ck_error *err) {
    ck_manifest *m = NULL;
    ck_error why = CK_ERROR_INIT;
    const char *name = ck_checkpoint_path_manifest(a, id), *damage = NULL;
    ck_status s = name ? ck_dir_read_alone(v->d, id, a, &m, &why) : CK_NOMEM;
    if (s == CK_NOTFOUND) return *err = why, s;
    if (s == CK_OK) /* a manifest that is damaged may have been left half decoded */
        f->at = ck_arena_array(a, m->file_count + 1u, sizeof *f->at);
    else if (s != CK_NOMEM && (damage = ck_arena_strdup(a, why.msg)))
        f->at = ck_arena_array(a, 1, sizeof *f->at);
    if (!f->at) return ck_nomem(err, a->mem, 0);
    find(f, id, name, 0, damage, !damage && m->kind == CK_BARRIER_SAVEPOINT);
    return damage ? CK_OK : verify_files(v, m, f, a, err);
}

static bool is_gone(const verification *v, uint64_t id, ck_arena *a) {
    ck_stat st;
    const char *name = ck_checkpoint_path_manifest(a, id), *path = name ? ck_dir_join(a, v->dir, name) : NULL;
    return path && v->proc->fs->stat(v->proc->fs, path, &st, NULL) == CK_NOTFOUND;
}

/* CK_NOTFOUND: retention, or whoever disposes of it, has taken it. */
static ck_status verify_one(verification *v, uint64_t id, ck_arena *a, ck_error *err) {
    findings f = {0};
    CK_TRY(read_one(v, id, &f, a, err));
    if (f.any_damage && is_gone(v, id, a))
        return ck_fail(err, CK_NOTFOUND, "checkpoint %" PRIu64 " of %s went while it was read", id, v->dir);
    for (uint32_t i = 0; i < f.n; i++) say(v, &f.at[i]);
    v->manifests++;
    return CK_OK;
}

/* All that a restore from it would read. */
static ck_status verify_cover(verification *v, uint64_t id, ck_arena *a, ck_error *err) {
    ck_manifest *m;
    ck_error why = CK_ERROR_INIT;
    ck_status s = ck_checkpoint_dir_read(v->d, id, a, &m, &why);
    if (s == CK_NOMEM || s == CK_REFUSED) {
        ck_manifest *alone; /* of a newer format, which is damage here; or no cover, which is no damage */
        if (s == CK_NOMEM || ck_dir_read_alone(v->d, id, a, &alone, NULL) == CK_OK) return *err = why, s;
    }
    if (s == CK_CORRUPT && ck_dir_read_alone(v->d, id, a, &m, NULL) == CK_OK) { /* of another region */
        say(v, &(ck_verified){id, 0, v->dir, why.msg, false});
        return verify_one(v, id, a, err);
    }
    for (uint32_t i = 0; s == CK_OK && i < m->part_count; i++)
        if (m->parts[i].checkpoint != id) CK_TRY(verify_one(v, m->parts[i].checkpoint, a, err));
    return verify_one(v, id, a, err);
}

/* Whether it was looked at; then it was. */
static ck_status see_id(verification *v, uint64_t id, bool *was, ck_error *err) {
    const uint64_t *ids = (const uint64_t *)(const void *)v->seen.p;
    *was = false;
    for (size_t i = 0; i < v->seen.n / sizeof id && !*was; i++) *was = ids[i] == id;
    if (*was) return CK_OK;
    return ck_bytes_append(&v->seen, &id, sizeof id) == CK_OK ? CK_OK : ck_nomem(err, v->mem, v->seen.n);
}

/* Those the directory has now and has not been seen to have. *any: there are such. */
static ck_status verify_listed(verification *v, bool *any, ck_arena *a, ck_error *err) {
    ck_checkpoint_entry *entries;
    uint32_t count;
    *any = false;
    if (ck_checkpoint_dir_list(v->d, a, &entries, &count) != CK_OK) return ck_nomem(err, a->mem, 0);
    for (uint32_t i = 0; i < count; i++) {
        ck_arena_mark mark = ck_arena_mark_now(a);
        bool was;
        CK_TRY(see_id(v, entries[i].checkpoint, &was, err));
        if (was) continue;
        *any = true;
        ck_status s = verify_one(v, entries[i].checkpoint, a, err);
        if (s == CK_NOTFOUND) ck_error_reset(err);
        if (s != CK_OK && s != CK_NOTFOUND) return s;
        ck_arena_reset_to(a, mark);
    }
    return CK_OK;
}

/* A job that runs there publishes and retires meanwhile: what has come is looked at, too. */
static ck_status verify_all(verification *v, ck_arena *a, ck_error *err) {
    bool any = true;
    for (int lists = 0; any && lists < LISTS_MAX; lists++) {
        ck_arena_mark mark = ck_arena_mark_now(a);
        ck_checkpoint_dir_close(v->d);
        v->d = NULL;
        CK_TRY(open_read_only(v->proc, v->mem, v->dir, &v->d, err));
        CK_TRY(verify_listed(v, &any, a, err));
        ck_arena_reset_to(a, mark);
    }
    return v->manifests ? CK_OK : ck_fail(err, CK_NOTFOUND, "%s has no complete checkpoint to verify", v->dir);
}

ck_status ck_checkpoint_verify(ck_proc *proc, ck_mem mem, const char *dir, uint64_t id, ck_verify_fn fn, void *arg,
                               uint64_t *damaged, ck_error *err) {
    verification v = {.proc = proc, .mem = mem, .dir = dir, .fn = fn, .arg = arg};
    ck_error unwanted = CK_ERROR_INIT;
    if (!err) err = &unwanted;
    ck_arena a;
    ck_arena_init(&a, mem, SIZE_MAX);
    ck_bytes_init(&v.seen, mem, SIZE_MAX);
    ck_status s = id ? open_read_only(proc, mem, dir, &v.d, err) : verify_all(&v, &a, err);
    if (s == CK_OK && id) s = verify_cover(&v, id, &a, err);
    ck_bytes_destroy(&v.seen);
    ck_arena_destroy(&a);
    ck_checkpoint_dir_close(v.d);
    *damaged = v.damaged;
    return s;
}
