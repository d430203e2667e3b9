/* Opening a checkpoint directory: whose it is, and what is there. */
#include "checkpoint/directory_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>
#include <yyjson.h>

#include "base/json.h"
#include "os/clock.h"
#include "os/durable.h"
#include "os/random.h"

enum { JOB_FILE_BYTES_MAX = 64 * 1024, LOCK_TAIL_BYTES = 4096 };

/* ---- job.lock ---- */

/* One line a run; the last whole one is the newest owner. A line without its newline was torn. */
static bool last_owner(ck_checkpoint_dir *d, uint64_t *attempt, int64_t *pid) {
    ck_fs *fs = d->proc->fs;
    ck_stat st;
    char tail[LOCK_TAIL_BYTES + 1];
    size_t got = 0;
    if (fs->fstat(d->lock_file, &st, NULL) != CK_OK) return false;
    uint64_t from = st.bytes > LOCK_TAIL_BYTES ? st.bytes - LOCK_TAIL_BYTES : 0;
    if (fs->pread(d->lock_file, tail, LOCK_TAIL_BYTES, from, &got, NULL) != CK_OK) return false;
    tail[got] = 0;
    d->lock_torn = got > 0 && tail[got - 1] != '\n';
    for (char *end = strrchr(tail, '\n'); end; end = strrchr(tail, '\n')) {
        *end = 0;
        char *line = strrchr(tail, '\n');
        line = line ? line + 1 : tail;
        ck_arena a;
        yyjson_doc *doc;
        ck_arena_init(&a, d->mem, 1 << 20);
        bool ok = ck_json_read(&a, ck_view_of(line), &doc, NULL) == CK_OK;
        yyjson_val *o = ok ? yyjson_doc_get_root(doc) : NULL;
        *attempt = yyjson_get_uint(yyjson_obj_get(o, "attempt"));
        *pid = yyjson_get_sint(yyjson_obj_get(o, "pid"));
        ck_arena_destroy(&a);
        if (ok && *attempt) return true;
    }
    return false;
}

/* It may end, or be the rest of an attempt that nobody can reach: another try is worth it, unlike after other refusals.
 */
static ck_status is_held(const ck_checkpoint_dir *d, const char *by, ck_error *err) {
    ck_fail(err, CK_REFUSED, "the checkpoint directory %s is in use by another run%s; a job runs once at a time",
            d->path, by);
    if (err) err->fatal = false;
    return CK_REFUSED;
}

static ck_status take_lock(ck_checkpoint_dir *d, ck_error *err) {
    ck_fs *fs = d->proc->fs;
    const char *path = ck_dir_join(&d->arena, d->path, "job.lock");
    if (!path) return ck_nomem(err, d->mem, 0);
    CK_TRY(fs->open(fs, path, CK_OPEN_READWRITE, &d->lock_file, err));
    uint64_t attempt = 0;
    int64_t pid = 0;
    ck_status s = fs->lock(d->lock_file, err);
    bool known = (s == CK_OK || s == CK_EXISTS) && last_owner(d, &attempt, &pid);
    char by[40] = "";
    if (known) (void)snprintf(by, sizeof by, " (process %" PRId64 ")", pid);
    if (s == CK_EXISTS) return is_held(d, by, err);
    CK_TRY(s);
    d->attempt = attempt + 1;
    return CK_OK;
}

/* Behind the manifests, whose attempts may be greater when the lock file was lost. */
static ck_status sign_lock(ck_checkpoint_dir *d, ck_error *err) {
    char line[160];
    int n = snprintf(line, sizeof line, "%s{\"attempt\":%" PRIu64 ",\"pid\":%ld,\"started_ms\":%" PRId64 "}\n",
                     d->lock_torn ? "\n" : "", d->attempt, (long)getpid(), ck_wall_us(d->proc) / 1000);
    ck_fs *fs = d->proc->fs;
    CK_TRY(fs->write(d->lock_file, line, (size_t)n, err));
    CK_TRY(fs->fsync(d->lock_file, err));
    return fs->fsync_dir(fs, d->path, err);
}

/* ---- job.json ---- */

static ck_status read_job(ck_checkpoint_dir *d, const char *path, const char **name, const char **uuid, ck_error *err) {
    ck_view text;
    yyjson_doc *doc;
    CK_TRY(ck_fs_read_all(d->proc, path, JOB_FILE_BYTES_MAX, &d->arena, &text, err));
    ck_status s = ck_json_read(&d->arena, text, &doc, err);
    if (s != CK_OK) return ck_error_prefix(err, "%s: ", path), s;
    yyjson_val *o = yyjson_doc_get_root(doc);
    *name = yyjson_get_str(yyjson_obj_get(o, "name"));
    *uuid = yyjson_get_str(yyjson_obj_get(o, "uuid"));
    if (!*name || !*uuid || strlen(*uuid) != 36)
        return ck_fail(err, CK_CORRUPT, "%s has no name or no UUID of a job", path);
    return CK_OK;
}

static ck_status write_job(ck_checkpoint_dir *d, const char *path, ck_error *err) {
    yyjson_mut_doc *doc;
    ck_view text;
    CK_TRY(ck_json_new(&d->arena, &doc, err));
    yyjson_mut_val *o = yyjson_mut_obj(doc);
    if (!o || !yyjson_mut_obj_add_uint(doc, o, "format", 1) || !yyjson_mut_obj_add_str(doc, o, "name", d->job_name) ||
        !yyjson_mut_obj_add_str(doc, o, "uuid", d->job_uuid))
        return ck_nomem(err, d->mem, 0);
    yyjson_mut_doc_set_root(doc, o);
    CK_TRY(ck_json_write(&d->arena, doc, &text, err));
    char *line = ck_arena_printf(&d->arena, "%.*s\n", (int)text.n, text.p); /* for those who look at it */
    if (!line) return ck_nomem(err, d->mem, text.n);
    return ck_durable_replace_bytes(d->proc, path, (ck_view){line, text.n + 1}, err);
}

/* A directory whose job.json was lost still says whose it is. */
static const char *uuid_in_manifests(ck_checkpoint_dir *d) {
    const char *uuid = NULL;
    for (ck_dir_entry *e = d->entries; e; e = e->next)
        if (!e->e.damage) uuid = e->paths[0]; /* see ck_dir_entry_new: the UUID stands first */
    return uuid;
}

/* Before anything is touched: whose directory is it? Leaves name and UUID unset when nothing says. */
static ck_status identify(ck_checkpoint_dir *d, const ck_checkpoint_dir_config *cfg, ck_error *err) {
    const char *path = ck_dir_join(&d->arena, d->path, "job.json");
    if (!path) return ck_nomem(err, d->mem, 0);
    ck_status s = read_job(d, path, &d->job_name, &d->job_uuid, err);
    if (s == CK_NOTFOUND && !cfg->read_only) return CK_OK;
    if (s == CK_NOTFOUND)
        return ck_fail(err, CK_NOTFOUND, "%s is not a checkpoint directory: it has no job.json", d->path);
    CK_TRY(s);
    if (!cfg->job_name || strcmp(d->job_name, cfg->job_name) == 0) return CK_OK;
    return ck_fail(err, CK_REFUSED,
                   "the checkpoint directory %s belongs to job '%s', this is '%s': --name '%s' goes on with that job, "
                   "another directory begins a job of its own",
                   d->path, d->job_name, cfg->job_name, d->job_name);
}

/* A new directory, a fresh start, or a lost job.json: it is written. */
static ck_status settle_identity(ck_checkpoint_dir *d, const ck_checkpoint_dir_config *cfg, ck_error *err) {
    if (d->job_uuid && !cfg->fresh) return CK_OK;
    d->job_name = cfg->job_name;
    d->job_uuid = cfg->fresh ? NULL : uuid_in_manifests(d);
    if (!d->job_uuid) {
        char *fresh = ck_arena_alloc(&d->arena, 37);
        if (!fresh) return ck_nomem(err, d->mem, 37);
        ck_random_uuid(d->proc, fresh);
        d->job_uuid = fresh;
    }
    const char *path = ck_dir_join(&d->arena, d->path, "job.json");
    return path ? write_job(d, path, err) : ck_nomem(err, d->mem, 0);
}

/* ---- what is there ---- */

ck_status ck_dir_entry_new(const ck_checkpoint_dir *d, uint64_t id, ck_view text, ck_dir_entry **out, ck_error *err) {
    ck_dir_entry *e = ck_alloc_zero(d->mem, sizeof *e);
    if (!e) return ck_nomem(err, d->mem, sizeof *e);
    e->e.checkpoint = id;
    ck_arena_init(&e->arena, d->mem, SIZE_MAX);
    ck_arena a;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    ck_manifest *m = NULL;
    ck_error why = CK_ERROR_INIT;
    ck_status s = ck_manifest_decode(&a, text, &m, &why);
    if (s == CK_OK && m->checkpoint != id)
        s = ck_fail(&why, CK_CORRUPT, "the manifest says it is of checkpoint %" PRIu64, m->checkpoint);
    if (s == CK_OK) {
        e->e.kind = m->kind;
        e->paths = ck_arena_array(&e->arena, m->file_count + 1u, sizeof *e->paths);
        e->path_count = m->file_count + 1;
        if (e->paths) e->paths[0] = ck_arena_strdup(&e->arena, m->job_uuid);
        bool ok = e->paths && e->paths[0];
        for (uint32_t i = 0; ok && i < m->file_count; i++)
            ok = (e->paths[i + 1] = ck_arena_strdup(&e->arena, m->files[i].path)) != NULL;
        if (!ok) s = CK_NOMEM;
    } else if (s != CK_NOMEM) {
        e->e.damage = ck_arena_strdup(&e->arena, why.msg);
        s = e->e.damage ? CK_OK : CK_NOMEM;
    }
    ck_arena_destroy(&a);
    if (s != CK_OK) {
        ck_dir_entry_free(d, e);
        return ck_nomem(err, d->mem, text.n);
    }
    *out = e;
    return CK_OK;
}

void ck_dir_entry_free(const ck_checkpoint_dir *d, ck_dir_entry *e) {
    ck_arena_destroy(&e->arena);
    ck_free(d->mem, e, sizeof *e);
}

bool ck_dir_entry_names(const ck_dir_entry *e, const char *path) {
    for (uint32_t i = 1; i < e->path_count; i++)
        if (strcmp(e->paths[i], path) == 0) return true;
    return false;
}

void ck_dir_entry_unlink(ck_dir_entry **at, const ck_dir_entry *e) {
    while (*at && *at != e) at = &(*at)->next;
    if (*at) *at = e->next;
}

void ck_dir_entry_add(ck_checkpoint_dir *d, ck_dir_entry *e) {
    pthread_mutex_lock(&d->lock);
    ck_dir_entry_unlink(&d->publishing, e);
    ck_dir_entry **at = &d->entries;
    while (*at && (*at)->e.checkpoint < e->e.checkpoint) at = &(*at)->next;
    e->next = *at;
    *at = e;
    if (e->e.checkpoint >= d->next_id) d->next_id = e->e.checkpoint + 1;
    pthread_mutex_unlock(&d->lock);
}

static ck_status load_manifest(ck_checkpoint_dir *d, uint64_t id, const char *path, ck_error *err) {
    ck_arena a;
    ck_view text = {"", 0};
    ck_dir_entry *e;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    const char *full = ck_dir_join(&a, d->path, path);
    ck_status s = full ? ck_fs_read_all(d->proc, full, CK_MANIFEST_BYTES_MAX, &a, &text, err) : CK_NOMEM;
    if (s == CK_FULL || s == CK_CORRUPT) s = CK_OK; /* too long, or no file at all: empty text, damaged */
    if (s == CK_NOTFOUND && d->read_only) {         /* its owner's retention was faster */
        ck_error_reset(err);
        ck_arena_destroy(&a);
        return CK_OK;
    }
    if (s == CK_OK) s = ck_dir_entry_new(d, id, text, &e, err);
    ck_arena_destroy(&a);
    if (s == CK_OK) ck_dir_entry_add(d, e);
    return s;
}

static ck_status remove_name(const ck_checkpoint_dir *d, const char *path, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    const char *full = ck_dir_join(&a, d->path, path);
    ck_status s = full ? d->proc->fs->unlink(d->proc->fs, full, err) : ck_nomem(err, d->mem, 0);
    ck_arena_destroy(&a);
    return s == CK_NOTFOUND ? CK_OK : s;
}

/* First all manifests and ids; temporary files of dead runs go. */
static ck_status see(void *arg, const char *path, const char *name, ck_error *err) {
    ck_checkpoint_dir *d = arg;
    uint64_t id;
    ck_name_kind kind = ck_name_parse(name, &id);
    if (id >= d->next_id) d->next_id = id + 1;
    if (kind == CK_NAME_MANIFEST && strcmp(path, name) == 0) return load_manifest(d, id, path, err);
    return kind != CK_NAME_TEMPORARY || d->read_only ? CK_OK : remove_name(d, path, err);
}

typedef struct marks {
    ck_checkpoint_dir *d;
    uint64_t alone, abandoned; /* the newest marker without a manifest, the newest manifest gone back behind; 0: none */
    bool sweep;                /* markers without a manifest go */
} marks;

static ck_status see_marker(void *arg, const char *path, const char *name, ck_error *err) {
    marks *m = arg;
    uint64_t id;
    ck_name_kind kind = ck_name_parse(name, &id);
    if (strcmp(path, name) != 0) return CK_OK;
    if (kind == CK_NAME_ABANDONED && id > m->abandoned) m->abandoned = id;
    if (kind != CK_NAME_COMMITTED) return CK_OK;
    ck_dir_entry *e = m->d->entries;
    while (e && e->e.checkpoint != id) e = e->next;
    if (e) e->e.committed = true;
    if (e) return CK_OK;
    if (id > m->alone) m->alone = id;
    return m->sweep ? remove_name(m->d, path, err) : CK_OK;
}

/* A marker is written when its manifest is durable, and goes behind it when there is a newer one: one that is newer
 * than all of them has lost its own, and what that said is nowhere else. */
static void note_lost(ck_checkpoint_dir *d, const marks *m) {
    uint64_t newest = m->abandoned;
    for (const ck_dir_entry *e = d->entries; e; e = e->next)
        if (e->e.own && e->e.checkpoint > newest) newest = e->e.checkpoint;
    d->lost = m->alone > newest ? m->alone : 0;
}

static ck_status open_parts(ck_checkpoint_dir *d, const ck_checkpoint_dir_config *cfg, ck_error *err) {
    d->path = ck_arena_strdup(&d->arena, cfg->path);
    if (!d->path) return ck_nomem(err, d->mem, 0);
    if (!cfg->read_only) {
        CK_TRY(ck_fs_mkdirs(d->proc, d->path, err));
        CK_TRY(take_lock(d, err));
    }
    CK_TRY(identify(d, cfg, err));
    CK_TRY(ck_dir_walk(d, see, d, err));
    marks m = {.d = d};
    CK_TRY(ck_dir_walk(d, see_marker, &m, err));
    if (!d->read_only && d->next_id > INT64_MAX)
        return ck_fail(err, CK_REFUSED,
                       "%s: a name there has the checkpoint id %" PRIu64 ", and no greater one is possible: it is not "
                       "of a job that has run here, and has to be taken away",
                       d->path, d->next_id - 1);
    if (!d->read_only) CK_TRY(settle_identity(d, cfg, err));
    for (ck_dir_entry *e = d->entries; e; e = e->next) /* the damaged are not passed over, but by a fresh start */
        e->e.own = e->e.damage ? !cfg->fresh : strcmp(e->paths[0], d->job_uuid) == 0;
    if (cfg->fresh && !d->read_only && m.alone) {
        m = (marks){.d = d, .sweep = true};
        CK_TRY(ck_dir_walk(d, see_marker, &m, err));
    } else {
        note_lost(d, &m);
    }
    d->job_name = ck_arena_strdup(&d->arena, d->job_name);
    d->job_uuid = ck_arena_strdup(&d->arena, d->job_uuid);
    if (!d->job_name || !d->job_uuid) return ck_nomem(err, d->mem, 0);
    return cfg->read_only ? CK_OK : sign_lock(d, err);
}

ck_status ck_checkpoint_dir_open(const ck_checkpoint_dir_config *cfg, ck_checkpoint_dir **out, ck_error *err) {
    CK_ASSERT(cfg->read_only || cfg->job_name);
    ck_checkpoint_dir *d = ck_alloc_zero(cfg->mem, sizeof *d);
    if (!d) return ck_nomem(err, cfg->mem, sizeof *d);
    d->proc = cfg->proc, d->mem = cfg->mem, d->read_only = cfg->read_only, d->next_id = 1;
    ck_arena_init(&d->arena, d->mem, SIZE_MAX);
    d->lock_made = pthread_mutex_init(&d->lock, NULL) == 0;
    ck_status s = d->lock_made ? open_parts(d, cfg, err) : ck_fail(err, CK_NOMEM, "no lock can be made");
    if (s != CK_OK) {
        ck_checkpoint_dir_close(d);
        return s;
    }
    *out = d;
    return CK_OK;
}

void ck_checkpoint_dir_close(ck_checkpoint_dir *d) {
    if (!d) return;
    while (d->entries) {
        ck_dir_entry *e = d->entries;
        d->entries = e->next;
        ck_dir_entry_free(d, e);
    }
    if (d->lock_file) d->proc->fs->close(d->lock_file);
    if (d->lock_made) pthread_mutex_destroy(&d->lock);
    ck_arena_destroy(&d->arena);
    ck_free(d->mem, d, sizeof *d);
}

/* ---- getters ---- */

const char *ck_checkpoint_dir_path(const ck_checkpoint_dir *d) { return d->path; }
const char *ck_checkpoint_dir_job_name(const ck_checkpoint_dir *d) { return d->job_name; }
const char *ck_checkpoint_dir_job_uuid(const ck_checkpoint_dir *d) { return d->job_uuid; }
uint64_t ck_checkpoint_dir_attempt(const ck_checkpoint_dir *d) { return d->attempt; }

uint64_t ck_checkpoint_dir_lost(const ck_checkpoint_dir *d) { return d->lost; }

uint64_t ck_checkpoint_dir_next_id(const ck_checkpoint_dir *d) {
    ck_checkpoint_dir *m = (ck_checkpoint_dir *)(uintptr_t)d;
    pthread_mutex_lock(&m->lock);
    uint64_t id = d->next_id;
    pthread_mutex_unlock(&m->lock);
    return id;
}

static ck_status copy_entry(ck_arena *a, const ck_dir_entry *e, ck_checkpoint_entry *out) {
    *out = e->e;
    if (!e->e.damage) return CK_OK;
    out->damage = ck_arena_strdup(a, e->e.damage);
    return out->damage ? CK_OK : CK_NOMEM;
}

ck_status ck_checkpoint_dir_list(ck_checkpoint_dir *d, ck_arena *a, ck_checkpoint_entry **out, uint32_t *count) {
    pthread_mutex_lock(&d->lock);
    uint32_t n = 0;
    for (const ck_dir_entry *e = d->entries; e; e = e->next) n++;
    ck_checkpoint_entry *list = ck_arena_array(a, n ? n : 1, sizeof *list);
    ck_status s = list ? CK_OK : CK_NOMEM;
    uint32_t i = 0;
    for (const ck_dir_entry *e = d->entries; e && s == CK_OK; e = e->next) s = copy_entry(a, e, &list[i++]);
    pthread_mutex_unlock(&d->lock);
    *out = list, *count = n;
    return s;
}

ck_status ck_checkpoint_dir_newest(ck_checkpoint_dir *d, ck_checkpoint_entry *out) {
    pthread_mutex_lock(&d->lock);
    const ck_dir_entry *newest = NULL;
    for (const ck_dir_entry *e = d->entries; e; e = e->next)
        if (e->e.own) newest = e;
    if (newest) *out = newest->e;
    pthread_mutex_unlock(&d->lock);
    return newest ? CK_OK : CK_NOTFOUND;
}

ck_status ck_checkpoint_dir_newest_id(ck_checkpoint_dir *d, uint64_t *id, ck_error *err) {
    ck_checkpoint_entry newest;
    ck_status s = ck_checkpoint_dir_newest(d, &newest);
    if (s == CK_NOTFOUND) return ck_fail(err, s, "%s has no complete checkpoint to restore", ck_checkpoint_dir_path(d));
    if (s != CK_OK) return ck_fail(err, s, "%s cannot be read", ck_checkpoint_dir_path(d));
    *id = newest.checkpoint;
    return CK_OK;
}

static ck_status not_there(ck_checkpoint_dir *d, uint64_t checkpoint, ck_error *err) {
    char ids[256] = "none";
    size_t n = 0;
    pthread_mutex_lock(&d->lock);
    for (const ck_dir_entry *e = d->entries; e && n + 24 < sizeof ids; e = e->next)
        n += (size_t)snprintf(ids + n, sizeof ids - n, "%s%" PRIu64, n ? ", " : "", e->e.checkpoint);
    pthread_mutex_unlock(&d->lock);
    return ck_fail(err, CK_NOTFOUND, "%s has no checkpoint %" PRIu64 "; there are: %s", d->path, checkpoint, ids);
}

ck_status ck_checkpoint_dir_read(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a, ck_manifest **out,
                                 ck_error *err) {
    const char *name = ck_checkpoint_path_manifest(a, checkpoint), *path = name ? ck_dir_join(a, d->path, name) : NULL;
    ck_view text;
    if (!path) return ck_nomem(err, a->mem, 0);
    ck_status s = ck_fs_read_all(d->proc, path, CK_MANIFEST_BYTES_MAX, a, &text, err);
    if (s == CK_NOTFOUND) return not_there(d, checkpoint, err);
    if (s == CK_FULL) s = ck_fail(err, CK_CORRUPT, "a manifest of over %d bytes", CK_MANIFEST_BYTES_MAX);
    if (s == CK_OK) s = ck_manifest_decode(a, text, out, err);
    if (s == CK_OK && (*out)->checkpoint != checkpoint)
        s = ck_fail(err, CK_CORRUPT, "the manifest says it is of checkpoint %" PRIu64, (*out)->checkpoint);
    if (s != CK_OK) ck_error_prefix(err, "%s: ", path);
    return s;
}
