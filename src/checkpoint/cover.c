/* Which manifests belong together. A job that runs region by region has a sequence of manifests for each region, and
 * what is restored is the cover: of each region the newest, of one graph. Manifests of one graph that follow each other
 * are a generation: whoever starts a job of another graph numbers above all that is there, and only when nobody of the
 * one before is alive.
 *
 *   W5 A8 A9 A10 A11 | B12 B14      W: of the whole; A, B: two graphs of two regions each, W of the first
 *
 * As of 10 the cover is {A9, A10}, as of 8 {A8, W5 for the rest}. B's other region, 13, has no checkpoint yet: it goes
 * on from {A10, A11}, and a third graph from nothing here. */
#include "checkpoint/directory_int.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/map.h"
#include "os/durable.h"
#include "state/schema_version.h"

/* ---- one manifest ---- */

static ck_status not_there(ck_checkpoint_dir *d, uint64_t checkpoint, ck_error *err) {
    char ids[256] = "none";
    size_t n = 0;
    pthread_mutex_lock(&d->lock);
    for (const ck_dir_entry *e = d->entries; e && n + 24 < sizeof ids; e = e->next)
        n += (size_t)snprintf(ids + n, sizeof ids - n, "%s%" PRIu64, n ? ", " : "", e->e.checkpoint);
    pthread_mutex_unlock(&d->lock);
    return ck_fail(err, CK_NOTFOUND, "%s has no checkpoint %" PRIu64 "; there are: %s", d->path, checkpoint, ids);
}

ck_status ck_dir_read_alone(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a, ck_manifest **out, ck_error *err) {
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

/* ---- what there is ---- */

/* An entry as it was when the cover was chosen. */
typedef struct known {
    uint64_t checkpoint, graph_hash;
    uint32_t region, regions;
    ck_barrier_kind kind;
    bool committed, damaged;
} known;

typedef struct cover {
    ck_checkpoint_dir *d;
    ck_arena *a;
    ck_error *err;
    known *list; /* of one UUID and what is damaged, ascending */
    uint32_t count;
    uint32_t asked;       /* up to this one */
    uint32_t first, last; /* its generation */
    bool superseded;      /* there is all of the job's state in something newer than the generation */
    bool by_savepoint;    /* what was asked for is one, by its number */
    const known **best;   /* by region; NULL: none */
} cover;

/* What was asked for is of a region. */
static bool of_its_graph(const cover *c, const known *k) {
    const known *asked = &c->list[c->asked];
    return k->graph_hash == asked->graph_hash && (!k->regions || k->regions == asked->regions);
}

static bool goes_on(const cover *c, uint32_t i) { return c->list[i].damaged || of_its_graph(c, &c->list[i]); }

bool ck_dir_is_superseded(const ck_checkpoint_dir *d, uint64_t than, const char *uuid) {
    for (const ck_dir_entry *e = d->entries; e; e = e->next) {
        uint32_t regions = 0;
        if (e->e.damage || e->e.checkpoint <= than || strcmp(e->paths[0], uuid) != 0) continue;
        if (!e->e.regions) return true;
        for (const ck_dir_entry *f = e; f; f = f->next) { /* each region once: by its newest */
            const ck_dir_entry *same = f;
            if (f->e.damage || f->e.regions != e->e.regions || f->graph_hash != e->graph_hash) continue;
            do same = same->next;
            while (same && (same->e.damage || same->e.regions != e->e.regions || same->graph_hash != e->graph_hash ||
                            same->e.region != f->e.region));
            regions += !same;
        }
        if (regions == e->e.regions) return true;
        while (e->next && !e->next->e.damage && e->next->e.regions == e->e.regions &&
               e->next->graph_hash == e->graph_hash)
            e = e->next; /* of the rest of them less would be found */
    }
    return false;
}

/* Under the lock. CK_NOTFOUND: it is none of a region, or not in the list. */
static ck_status look(cover *c, uint64_t checkpoint) {
    const ck_dir_entry *asked = c->d->entries;
    uint32_t n = 0;
    while (asked && asked->e.checkpoint != checkpoint) asked = asked->next;
    if (!asked || asked->e.damage || !asked->e.regions) return CK_NOTFOUND;
    for (const ck_dir_entry *e = c->d->entries; e; e = e->next) n++;
    if (!(c->list = ck_arena_array(c->a, n, sizeof *c->list))) return CK_NOMEM;
    for (const ck_dir_entry *e = c->d->entries; e; e = e->next) {
        if (!e->e.damage && strcmp(e->paths[0], asked->paths[0]) != 0) continue;
        if (e == asked) c->asked = c->count;
        c->list[c->count++] = (known){e->e.checkpoint, e->graph_hash,  e->e.region,        e->e.regions,
                                      e->e.kind,       e->e.committed, e->e.damage != NULL};
    }
    c->first = c->last = c->asked;
    for (uint32_t i = c->asked; i-- > 0 && goes_on(c, i);)
        if (!c->list[i].damaged) c->first = i;
    for (uint32_t i = c->asked; ++i < c->count && goes_on(c, i);)
        if (!c->list[i].damaged) c->last = i;
    c->superseded = ck_dir_is_superseded(c->d, c->list[c->last].checkpoint, asked->paths[0]);
    return CK_OK;
}

/* ---- choosing ---- */

static bool has_region(const known *k, uint32_t region) { return !k->regions || k->region == region; }

/* The newest that has a region; where a savepoint was asked for, its newest savepoint. */
static const known *best_of(const cover *c, uint32_t region) {
    const known *best = NULL;
    for (uint32_t i = c->first; i <= c->asked; i++) {
        const known *k = &c->list[i];
        if (k->damaged || !has_region(k, region)) continue;
        bool keeps = best && c->by_savepoint && best->kind == CK_BARRIER_SAVEPOINT && k->kind != CK_BARRIER_SAVEPOINT;
        if (!keeps) best = k;
    }
    return best;
}

static bool comes_later(const cover *c, uint32_t region) {
    for (uint32_t i = c->asked + 1; i <= c->last; i++)
        if (!c->list[i].damaged && has_region(&c->list[i], region)) return true;
    return false;
}

/* Of the generation before; count: there is none. */
static uint32_t before_generation(const cover *c) {
    for (uint32_t i = c->first; i-- > 0;)
        if (!c->list[i].damaged) return i;
    return c->count;
}

/* A manifest that cannot be read, and may be newer than what was found of a region. */
static const known *find_damage(const cover *c, uint32_t region, const known *best) {
    for (uint32_t i = c->asked; i-- > 0 && (!best || c->list[i].checkpoint > best->checkpoint);) {
        const known *k = &c->list[i];
        if (!k->damaged && i < c->first) return NULL; /* of the generation before, and all that are older */
        if (k->damaged && (i < c->first || !k->regions || !of_its_graph(c, k) || k->region == region)) return k;
    }
    return NULL;
}

static ck_status choose_region(cover *c, uint32_t region, const known **best) {
    const known *damaged;
    ck_manifest *m;
    *best = best_of(c, region);
    if ((damaged = find_damage(c, region, *best)))
        return ck_dir_read_alone(c->d, damaged->checkpoint, c->a, &m, c->err) == CK_OK
                   ? ck_fail(c->err, CK_CORRUPT, "%s: checkpoint %" PRIu64 " has changed", c->d->path,
                             damaged->checkpoint)
                   : c->err->status;
    if (*best) return CK_OK;
    if (c->superseded || comes_later(c, region))
        return ck_fail(c->err, CK_REFUSED,
                       "%s: checkpoint %" PRIu64 " is of region %" PRIu32 " of %" PRIu32 ", and of region %" PRIu32
                       " there is none that is as old: a newer one has all of the job",
                       c->d->path, c->list[c->asked].checkpoint, c->list[c->asked].region, c->list[c->asked].regions,
                       region);
    return CK_OK;
}

static ck_status choose_all(cover *c) {
    uint32_t regions = c->list[c->asked].regions, before = before_generation(c);
    c->best = ck_arena_array(c->a, regions, sizeof *c->best);
    if (!c->best) return ck_nomem(c->err, c->a->mem, regions * sizeof *c->best);
    for (uint32_t r = 0; r < regions; r++) {
        CK_TRY(choose_region(c, r, &c->best[r]));
        if (!c->best[r] && before < c->count)
            return ck_fail(c->err, CK_REFUSED,
                           "%s: checkpoint %" PRIu64 " is of a script of which region %" PRIu32 " of %" PRIu32
                           " has no checkpoint yet, which goes on from checkpoint %" PRIu64
                           " of the script before: submit that script once more until each region has one, and go on "
                           "then",
                           c->d->path, c->list[c->asked].checkpoint, r, regions, c->list[before].checkpoint);
    }
    return CK_OK;
}

/* ---- one out of many ---- */

/* Operators whose state is in the manifest of their own region: of a manifest of the whole that is behind them. */
typedef struct taken_ops {
    ck_map ids;
} taken_ops;

static ck_view id_view(const uint64_t *id) { return (ck_view){(const char *)id, sizeof *id}; }

static bool is_taken(const taken_ops *t, uint64_t op) { return ck_map_get(&t->ids, id_view(&op)) != NULL; }

static ck_status take_ops(cover *c, taken_ops *t, const ck_manifest *m) {
    for (uint32_t v = 0; v < m->vertex_count; v++)
        for (uint32_t i = 0; i < m->vertices[v].op_count; i++) {
            uint64_t id = ck_op_id(m->vertices[v].ops[i]);
            if (ck_map_put(&t->ids, id_view(&id), t, NULL) != CK_OK) return ck_nomem(c->err, c->a->mem, sizeof id);
        }
    return CK_OK;
}

/* Of a manifest of the whole what no region has newer. A vertex, which is named by its first operator, is of one region
 * with all it has, whatever vertices the operators make now. */
static ck_status leave_rest(cover *c, const taken_ops *t, ck_manifest *m) {
    uint32_t vertices = 0, files = 0;
    ck_version_map all, rest;
    ck_version_map_init(&all, c->a);
    ck_version_map_init(&rest, c->a);
    for (uint32_t i = 0; i < m->file_count; i++)
        if (!is_taken(t, m->files[i].vertex)) m->files[files++] = m->files[i];
    for (uint32_t v = 0; v < m->vertex_count; v++)
        if (!is_taken(t, m->vertices[v].id)) m->vertices[vertices++] = m->vertices[v];
    m->file_count = files, m->vertex_count = vertices;
    CK_TRY(ck_version_map_decode(&all, ck_view_of(m->state_versions), c->err));
    for (uint32_t i = 0; i < ck_version_map_count(&all); i++)
        if (!is_taken(t, ck_version_map_at(&all, i)->op_id) &&
            ck_version_map_stamp(&rest, ck_version_map_at(&all, i)) != CK_OK)
            return ck_nomem(c->err, c->a->mem, 0);
    m->state_versions = ck_version_map_encode(&rest, c->a);
    return m->state_versions ? CK_OK : ck_nomem(c->err, c->a->mem, 0);
}

static ck_status unite_versions(cover *c, ck_manifest *const *parts, uint32_t count, const char **out) {
    ck_version_map all;
    ck_version_map_init(&all, c->a);
    for (uint32_t i = 0; i < count; i++)
        CK_TRY(ck_version_map_decode(&all, ck_view_of(parts[i]->state_versions), c->err));
    *out = ck_version_map_encode(&all, c->a);
    return *out ? CK_OK : ck_nomem(c->err, c->a->mem, 0);
}

/* The kind of the whole: it has finished when all regions have. */
static ck_barrier_kind kind_of(const cover *c, uint32_t count, const ck_manifest_part *parts) {
    uint32_t final = 0, savepoints = 0;
    for (uint32_t i = 0; i < count; i++) {
        final += parts[i].kind == CK_BARRIER_FINAL;
        savepoints += parts[i].kind == CK_BARRIER_SAVEPOINT;
    }
    if (final == c->list[c->asked].regions) return CK_BARRIER_FINAL;
    return c->by_savepoint || savepoints == count ? CK_BARRIER_SAVEPOINT : CK_BARRIER_PERIODIC;
}

static void append(ck_manifest *m, const ck_manifest *from, ck_manifest_part *part) {
    part->first_vertex = m->vertex_count, part->vertex_count = from->vertex_count;
    if (from->vertex_count)
        memcpy(m->vertices + m->vertex_count, from->vertices, from->vertex_count * sizeof *m->vertices);
    if (from->file_count) memcpy(m->files + m->file_count, from->files, from->file_count * sizeof *m->files);
    m->vertex_count += from->vertex_count, m->file_count += from->file_count;
}

static ck_status join(cover *c, ck_manifest *const *from, ck_manifest_part *parts, uint32_t count, ck_manifest **out) {
    const ck_manifest *asked = NULL;
    ck_manifest *m = CK_ARENA_NEW(c->a, ck_manifest);
    uint32_t vertices = 0, files = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (from[i]->checkpoint == c->list[c->asked].checkpoint) asked = from[i];
        vertices += from[i]->vertex_count, files += from[i]->file_count;
    }
    if (!m) return ck_nomem(c->err, c->a->mem, sizeof *m);
    CK_ASSERT(asked);
    *m = *asked;
    m->region = m->regions = 0;
    m->vertex_count = m->file_count = 0;
    m->vertices = ck_arena_array(c->a, vertices + 1u, sizeof *m->vertices);
    m->files = ck_arena_array(c->a, files + 1u, sizeof *m->files);
    if (!m->vertices || !m->files) return ck_nomem(c->err, c->a->mem, files * sizeof *m->files);
    for (uint32_t i = 0; i < count; i++) append(m, from[i], &parts[i]);
    CK_TRY(unite_versions(c, from, count, &m->state_versions));
    m->parts = parts, m->part_count = count;
    m->kind = kind_of(c, count, parts);
    *out = m;
    return ck_manifest_check(m, c->a, c->err);
}

/* They were listed as what they are; somebody else may have written over them. */
static ck_status check_part(const cover *c, const known *k, const ck_manifest *m) {
    if (m->region == k->region && m->regions == k->regions && m->graph_hash == k->graph_hash) return CK_OK;
    return ck_fail(c->err, CK_CORRUPT, "%s: checkpoint %" PRIu64 " is not what it was", c->d->path, k->checkpoint);
}

static ck_status read_part(cover *c, const known *k, uint32_t key_groups, ck_manifest **out, ck_manifest_part *part) {
    CK_TRY(ck_dir_read_alone(c->d, k->checkpoint, c->a, out, c->err));
    CK_TRY(check_part(c, k, *out));
    *part = (ck_manifest_part){
        .checkpoint = k->checkpoint, .region = k->region, .kind = k->kind, .committed = k->committed};
    if (key_groups == 0 || (*out)->key_groups == key_groups) return CK_OK;
    return ck_fail(c->err, CK_CORRUPT, "%s: checkpoint %" PRIu64 " has %" PRIu32 " key groups, another part %" PRIu32,
                   c->d->path, k->checkpoint, (*out)->key_groups, key_groups);
}

/* The regions' own, and for the rest one of the whole. */
static ck_status read_all(cover *c, ck_manifest **out) {
    uint32_t regions = c->list[c->asked].regions, count = 0;
    ck_manifest **from = ck_arena_array(c->a, regions, sizeof *from);
    ck_manifest_part *parts = ck_arena_array(c->a, regions, sizeof *parts);
    const known *rest = NULL;
    taken_ops taken;
    ck_map_init(&taken.ids, c->a, false);
    if (!from || !parts) return ck_nomem(c->err, c->a->mem, regions * sizeof *parts);
    for (uint32_t r = 0; r < regions; r++) {
        const known *k = c->best[r];
        if (k && !k->regions) rest = k;
        if (!k || !k->regions) continue;
        CK_TRY(read_part(c, k, count ? from[0]->key_groups : 0, &from[count], &parts[count]));
        CK_TRY(take_ops(c, &taken, from[count++]));
    }
    if (rest) {
        CK_TRY(read_part(c, rest, from[0]->key_groups, &from[count], &parts[count]));
        CK_TRY(leave_rest(c, &taken, from[count++]));
    }
    return join(c, from, parts, count, out);
}

/* ---- reading ---- */

static ck_status read_cover(cover *c, uint64_t checkpoint, ck_manifest **out);

/* Of this region's graph: its own, or what was before. */
static ck_status read_as_region(cover *c, ck_manifest **out) {
    const known *best;
    uint32_t before = before_generation(c);
    CK_TRY(choose_region(c, c->d->region.index, &best));
    if (best) {
        CK_TRY(ck_dir_read_alone(c->d, best->checkpoint, c->a, out, c->err));
        return check_part(c, best, *out);
    }
    if (before == c->count) return CK_NOTFOUND; /* it begins anew */
    cover then = {.d = c->d, .a = c->a, .err = c->err};
    return read_cover(&then, c->list[before].checkpoint, out);
}

static ck_status read_cover(cover *c, uint64_t checkpoint, ck_manifest **out) {
    const ck_checkpoint_region *r = &c->d->region;
    pthread_mutex_lock(&c->d->lock);
    ck_status s = look(c, checkpoint);
    pthread_mutex_unlock(&c->d->lock);
    if (s == CK_NOMEM) return ck_nomem(c->err, c->a->mem, 0);
    if (s == CK_NOTFOUND) { /* of the whole, or damaged, or not there */
        CK_TRY(ck_dir_read_alone(c->d, checkpoint, c->a, out, c->err));
        return (*out)->regions ? not_there(c->d, checkpoint, c->err) : CK_OK;
    }
    const known *asked = &c->list[c->asked];
    c->by_savepoint = c->by_savepoint && asked->kind == CK_BARRIER_SAVEPOINT;
    if (ck_dir_by_region(c->d) && asked->regions == r->count && asked->graph_hash == r->graph_hash)
        return read_as_region(c, out);
    CK_TRY(choose_all(c));
    return read_all(c, out);
}

ck_status ck_checkpoint_dir_read(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a, ck_manifest **out,
                                 ck_error *err) {
    ck_error unwanted = CK_ERROR_INIT;
    cover c = {.d = d, .a = a, .err = err ? err : &unwanted, .by_savepoint = true};
    return read_cover(&c, checkpoint, out);
}

ck_status ck_checkpoint_dir_read_newest(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a, ck_manifest **out,
                                        ck_error *err) {
    ck_error unwanted = CK_ERROR_INIT;
    cover c = {.d = d, .a = a, .err = err ? err : &unwanted};
    return read_cover(&c, checkpoint, out);
}
