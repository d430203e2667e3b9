/* Opening a checkpoint directory: whose it is, and what is there. */
#include "checkpoint/directory_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <yyjson.h>

#include "base/json.h"
#include "os/durable.h"
#include "os/random.h"

enum { JOB_FILE_BYTES_MAX = 64 * 1024 };

/* ---- job.json ---- */

static ck_status read_job(ck_checkpoint_dir *d, const char *path, const char **name, const char **uuid, ck_error *err) {
    ck_view text;
    yyjson_doc *doc;
    CK_TRY(ck_fs_read_all(d->proc, path, JOB_FILE_BYTES_MAX, &d->arena, &text, err));
    ck_status s = ck_json_read(&d->arena, text, &doc, err);
    if (s != CK_OK) return ck_error_prefix(err, "%s: ", path), s;
    yyjson_val *o = yyjson_doc_get_root(doc);
    if (!ck_manifest_fits_checksum(o, text)) /* with another UUID all that is here would be another job's */
        return ck_fail(err, CK_CORRUPT,
                       "%s is damaged: its checksum does not fit its content; when it is taken away, the checkpoints "
                       "say whose they are",
                       path);
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
    ck_bytes line;
    ck_bytes_init(&line, d->mem, SIZE_MAX);
    ck_status s = ck_manifest_put_with_checksum(&line, text);
    s = s == CK_OK ? ck_durable_replace_bytes(d->proc, path, ck_bytes_as_view(&line), err)
                   : ck_nomem(err, d->mem, text.n);
    ck_bytes_destroy(&line);
    return s;
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

/* Regions that start afresh together have one UUID: the first of them to come forgets what was there. */
static bool begins_afresh(const ck_checkpoint_dir *d, const ck_checkpoint_dir_config *cfg) {
    return cfg->fresh && !(cfg->fresh_uuid && d->job_uuid && strcmp(cfg->fresh_uuid, d->job_uuid) == 0);
}

static ck_status put_job(ck_checkpoint_dir *d, ck_error *err) {
    const char *path = ck_dir_join(&d->arena, d->path, "job.json");
    return path ? write_job(d, path, err) : ck_nomem(err, d->mem, 0);
}

/* A new directory, or a lost job.json: it is written. Of a fresh start when it begins; regions find each other by it.
 */
static ck_status settle_identity(ck_checkpoint_dir *d, const ck_checkpoint_dir_config *cfg, bool fresh, ck_error *err) {
    if (d->job_uuid && !fresh) return CK_OK;
    d->job_name = cfg->job_name;
    d->job_uuid = fresh ? cfg->fresh_uuid : uuid_in_manifests(d);
    if (!d->job_uuid) {
        char *made = ck_arena_alloc(&d->arena, 37);
        if (!made) return ck_nomem(err, d->mem, 37);
        ck_random_uuid(d->proc, made);
        d->job_uuid = made;
    }
    d->unbegun = fresh && !ck_dir_by_region(d);
    return d->unbegun ? CK_OK : put_job(d, err);
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
        e->e.region = m->region, e->e.regions = m->regions;
        e->graph_hash = m->graph_hash;
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

/* may_go: its owner's retention may be faster. */
static ck_status load_manifest(ck_checkpoint_dir *d, uint64_t id, const char *path, bool may_go, ck_error *err) {
    ck_arena a;
    ck_view text = {"", 0};
    ck_dir_entry *e;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    const char *full = ck_dir_join(&a, d->path, path);
    ck_status s = full ? ck_fs_read_all(d->proc, full, CK_MANIFEST_BYTES_MAX, &a, &text, err) : CK_NOMEM;
    if (s == CK_FULL || s == CK_CORRUPT) s = CK_OK; /* too long, or no file at all: empty text, damaged */
    if (s == CK_NOTFOUND && may_go) {
        ck_error_reset(err);
        ck_arena_destroy(&a);
        return CK_OK;
    }
    if (s == CK_OK) s = ck_dir_entry_new(d, id, text, &e, err);
    ck_arena_destroy(&a);
    if (s != CK_OK) return s;
    /* The damaged are not passed over, but by a fresh start. Of an opening the UUID is known only behind all of them.
     */
    if (d->job_uuid) e->e.own = e->e.damage || strcmp(e->paths[0], d->job_uuid) == 0;
    ck_dir_entry_add(d, e);
    return CK_OK;
}

static bool has_entry(ck_checkpoint_dir *d, uint64_t id) {
    pthread_mutex_lock(&d->lock);
    const ck_dir_entry *e = d->entries;
    while (e && e->e.checkpoint != id) e = e->next;
    pthread_mutex_unlock(&d->lock);
    return e != NULL;
}

ck_status ck_dir_look_again(ck_checkpoint_dir *d, uint64_t above, ck_error *err) {
    ck_arena a;
    const char **names;
    size_t count;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    ck_status s = d->proc->fs->list(d->proc->fs, d->path, &a, &names, &count, err);
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        uint64_t id;
        if (ck_name_parse(names[i], &id) != CK_NAME_MANIFEST || id <= above) continue;
        bool ours = (id & ck_region_mask(d->region.count)) == d->region.index; /* and may be on its way */
        if (ours || has_entry(d, id)) continue;
        s = load_manifest(d, id, names[i], true, err);
    }
    ck_arena_destroy(&a);
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
    if (kind == CK_NAME_MANIFEST && strcmp(path, name) == 0)
        return load_manifest(d, id, path, d->read_only || ck_dir_by_region(d), err);
    bool sweep = kind == CK_NAME_TEMPORARY && !d->read_only && ck_dir_path_is_mine(d, path, id);
    return sweep ? remove_name(d, path, err) : CK_OK;
}

/* A marker without a manifest. */
typedef struct lone_mark {
    uint64_t checkpoint;
    uint64_t region, regions, graph_hash; /* regions 0: of the whole */
} lone_mark;

typedef struct marks {
    ck_checkpoint_dir *d;
    ck_arena *a;
    lone_mark *alone;
    uint32_t alone_count;
    uint64_t *abandoned; /* manifests gone back behind */
    uint32_t abandoned_count;
    bool sweep; /* markers without a manifest go */
} marks;

/* What it says beyond its name; what cannot be read is taken to be of the whole. false: it has gone, by its owner. */
static bool read_mark(const marks *m, const char *path, lone_mark *out) {
    ck_arena a;
    ck_view text;
    yyjson_doc *doc;
    ck_arena_init(&a, m->d->mem, 1 << 20);
    const char *full = ck_dir_join(&a, m->d->path, path);
    ck_status s = full ? ck_fs_read_all(m->d->proc, full, JOB_FILE_BYTES_MAX, &a, &text, NULL) : CK_NOMEM;
    if (s == CK_OK && ck_json_read(&a, text, &doc, NULL) == CK_OK) {
        yyjson_val *o = yyjson_doc_get_root(doc);
        const char *graph = yyjson_get_str(yyjson_obj_get(o, "graph"));
        out->region = yyjson_get_uint(yyjson_obj_get(o, "region"));
        out->regions = yyjson_get_uint(yyjson_obj_get(o, "regions"));
        bool known = graph && sscanf(graph, "%" SCNx64, &out->graph_hash) == 1;
        if (!known || out->regions > CK_REGIONS_MAX || out->region >= out->regions) out->regions = 0;
    }
    ck_arena_destroy(&a);
    return s != CK_NOTFOUND;
}

/* Of a manifest that cannot be read the marker says which region it is of; without one it may be of any, or of the
 * whole. */
static ck_status note_mark(const marks *m, const char *path, ck_dir_entry *e) {
    lone_mark mark = {.checkpoint = e->e.checkpoint};
    e->e.committed = true;
    if (!e->e.damage) return CK_OK;
    (void)read_mark(m, path, &mark);
    e->e.region = (uint32_t)mark.region, e->e.regions = (uint32_t)mark.regions;
    e->graph_hash = mark.graph_hash;
    return CK_OK;
}

/* One more at the end of an array in the arena; its old place is not used again. */
static void *grow(ck_arena *a, const void *array, uint32_t count, size_t element) {
    void *more = ck_arena_array(a, count + 1u, element);
    if (more && count) memcpy(more, array, count * element);
    return more;
}

static ck_status see_marker(void *arg, const char *path, const char *name, ck_error *err) {
    marks *m = arg;
    uint64_t id;
    ck_name_kind kind = ck_name_parse(name, &id);
    if (strcmp(path, name) != 0) return CK_OK;
    if (kind == CK_NAME_ABANDONED) {
        if (!(m->abandoned = grow(m->a, m->abandoned, m->abandoned_count, sizeof *m->abandoned)))
            return ck_nomem(err, m->a->mem, 0);
        m->abandoned[m->abandoned_count++] = id;
    }
    if (kind != CK_NAME_COMMITTED) return CK_OK;
    ck_dir_entry *e = m->d->entries;
    while (e && e->e.checkpoint != id) e = e->next;
    if (e) return note_mark(m, path, e);
    if (m->sweep) return remove_name(m->d, path, err);
    if (!(m->alone = grow(m->a, m->alone, m->alone_count, sizeof *m->alone))) return ck_nomem(err, m->a->mem, 0);
    m->alone[m->alone_count] = (lone_mark){.checkpoint = id};
    m->alone_count += read_mark(m, path, &m->alone[m->alone_count]);
    return CK_OK;
}

/* Of the whole any newer manifest of it will do, also one that cannot be read; of a region a newer one of that. */
static bool is_newer_of_same(const ck_dir_entry *e, const lone_mark *mark) {
    if (!e->e.own || e->e.checkpoint <= mark->checkpoint) return false;
    if (!e->e.regions) return true; /* or it may be */
    return mark->regions && e->e.region == mark->region && e->e.regions == mark->regions &&
           e->graph_hash == mark->graph_hash;
}

/* What was gone back behind is not missed; of a region that is what has its number. */
static bool was_gone_behind(const marks *m, const lone_mark *mark) {
    for (uint32_t i = 0; i < m->abandoned_count; i++) {
        uint64_t id = m->abandoned[i];
        if (id >= mark->checkpoint &&
            (!mark->regions || (id & ck_region_mask((uint32_t)mark->regions)) == mark->region))
            return true;
    }
    return false;
}

/* A region that has checkpoints of this graph has no use for another's, nor for what was before. */
static bool is_anothers(const ck_checkpoint_dir *d, const lone_mark *mark) {
    const ck_checkpoint_region *r = &d->region;
    if (!ck_dir_by_region(d)) return false;
    bool of_this = mark->regions == r->count && mark->graph_hash == r->graph_hash;
    if (of_this && mark->region != r->index) return true;
    for (const ck_dir_entry *e = d->entries; e; e = e->next)
        if (e->e.own && e->e.checkpoint > mark->checkpoint && ck_dir_is_of_this_graph(d, e) && e->e.region == r->index)
            return true;
    return false;
}

/* A marker is written when its manifest is durable, and goes behind it when there is a newer one: one that is newer
 * than all of its kind has lost its own, and what that said is nowhere else. */
static void note_lost(ck_checkpoint_dir *d, const marks *m) {
    d->lost = 0;
    for (uint32_t i = 0; i < m->alone_count; i++) {
        const lone_mark *mark = &m->alone[i];
        bool found =
            was_gone_behind(m, mark) || is_anothers(d, mark) || ck_dir_is_superseded(d, mark->checkpoint, d->job_uuid);
        for (const ck_dir_entry *e = d->entries; e && !found; e = e->next) found = is_newer_of_same(e, mark);
        if (!found && mark->checkpoint > d->lost) d->lost = mark->checkpoint;
    }
}

static ck_status open_with(ck_checkpoint_dir *d, const ck_checkpoint_dir_config *cfg, ck_arena *a, ck_error *err) {
    d->path = ck_arena_strdup(&d->arena, cfg->path);
    if (!d->path) return ck_nomem(err, d->mem, 0);
    if (!cfg->read_only) {
        CK_TRY(ck_fs_mkdirs(d->proc, d->path, err));
        CK_TRY(ck_dir_take_locks(d, cfg->lock_wait_us, err));
    }
    CK_TRY(identify(d, cfg, err));
    CK_TRY(ck_dir_walk(d, see, d, err));
    marks m = {.d = d, .a = a};
    CK_TRY(ck_dir_walk(d, see_marker, &m, err));
    bool fresh = begins_afresh(d, cfg);
    if (!d->read_only && d->next_id > INT64_MAX)
        return ck_fail(err, CK_REFUSED,
                       "%s: a name there has the checkpoint id %" PRIu64 ", and no greater one is possible: it is not "
                       "of a job that has run here, and has to be taken away",
                       d->path, d->next_id - 1);
    if (!d->read_only) CK_TRY(settle_identity(d, cfg, fresh, err));
    for (ck_dir_entry *e = d->entries; e; e = e->next) /* the damaged are not passed over, but by a fresh start */
        e->e.own = e->e.damage ? !fresh : strcmp(e->paths[0], d->job_uuid) == 0;
    if (fresh && !d->read_only && !d->unbegun && m.alone_count) {
        m = (marks){.d = d, .a = a, .sweep = true};
        CK_TRY(ck_dir_walk(d, see_marker, &m, err));
    } else if (!d->unbegun) {
        note_lost(d, &m);
    }
    d->job_name = ck_arena_strdup(&d->arena, d->job_name);
    d->job_uuid = ck_arena_strdup(&d->arena, d->job_uuid);
    if (!d->job_name || !d->job_uuid) return ck_nomem(err, d->mem, 0);
    return cfg->read_only ? CK_OK : ck_dir_sign_locks(d, err);
}

static ck_status open_parts(ck_checkpoint_dir *d, const ck_checkpoint_dir_config *cfg, ck_error *err) {
    ck_arena a; /* for looking */
    ck_arena_init(&a, d->mem, SIZE_MAX);
    ck_status s = open_with(d, cfg, &a, err);
    ck_arena_destroy(&a);
    return s;
}

ck_status ck_checkpoint_dir_open(const ck_checkpoint_dir_config *cfg, ck_checkpoint_dir **out, ck_error *err) {
    CK_ASSERT(cfg->read_only || cfg->job_name);
    ck_checkpoint_dir *d = ck_alloc_zero(cfg->mem, sizeof *d);
    if (!d) return ck_nomem(err, cfg->mem, sizeof *d);
    d->proc = cfg->proc, d->mem = cfg->mem, d->read_only = cfg->read_only, d->next_id = 1;
    d->region = cfg->region;
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

/* Markers last: what they say of the life before holds until this one has begun. */
ck_status ck_checkpoint_dir_begin(ck_checkpoint_dir *d, ck_error *err) {
    ck_arena a;
    if (!d->unbegun) return CK_OK;
    CK_TRY(put_job(d, err));
    d->unbegun = false;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    marks m = {.d = d, .a = &a, .sweep = true};
    ck_status s = ck_dir_walk(d, see_marker, &m, err);
    ck_arena_destroy(&a);
    return s;
}

void ck_checkpoint_dir_close(ck_checkpoint_dir *d) {
    if (!d) return;
    while (d->entries) {
        ck_dir_entry *e = d->entries;
        d->entries = e->next;
        ck_dir_entry_free(d, e);
    }
    ck_dir_let_go_of_locks(d);
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
    return ck_checkpoint_region_id(&d->region, id);
}

static ck_status copy_entry(const ck_checkpoint_dir *d, ck_arena *a, const ck_dir_entry *e, ck_checkpoint_entry *out) {
    *out = e->e;
    out->mine = ck_dir_entry_is_mine(d, e);
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
    for (const ck_dir_entry *e = d->entries; e && s == CK_OK; e = e->next) s = copy_entry(d, a, e, &list[i++]);
    pthread_mutex_unlock(&d->lock);
    *out = list, *count = n;
    return s;
}

ck_status ck_checkpoint_dir_newest(ck_checkpoint_dir *d, ck_checkpoint_entry *out) {
    pthread_mutex_lock(&d->lock);
    const ck_dir_entry *newest = NULL;
    for (const ck_dir_entry *e = d->entries; e; e = e->next)
        if (ck_dir_entry_is_mine(d, e)) newest = e;
    if (newest) *out = newest->e;
    if (newest) out->mine = true;
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
