/* The rules of a manifest, see manifest_int.h. */
#include "checkpoint/manifest_int.h"

#include "base/map.h"

#define BAD(err, ...) ck_fail(err, CK_CORRUPT, "the manifest " __VA_ARGS__)

/* Relative, below the directory, no empty or dot component. */
static bool path_is_inside(const char *p) {
    if (!*p || strlen(p) > 4096) return false;
    while (*p) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.')))) return false;
        p += n;
        if (*p == '/' && !*++p) return false;
    }
    return true;
}

/* Look-ups over what the manifest says; keys are packed numbers or paths. */
typedef struct checker {
    const ck_manifest *m;
    ck_error *err;
    ck_map vertices, ops, paths, chains; /* by id; by (vertex, op); by path; by (vertex, subtask): newest file so far */
} checker;

typedef struct pair_key {
    uint64_t a, b;
} pair_key;

static ck_view view_of(const pair_key *k) { return (ck_view){(const char *)k, sizeof *k}; }

static ck_status enter(checker *c, ck_map *map, pair_key k, const void *value, const void **was) {
    void *old = NULL;
    if (ck_map_put(map, view_of(&k), (void *)(uintptr_t)value, &old) != CK_OK)
        return ck_nomem(c->err, map->arena->mem, sizeof k);
    if (was) *was = old;
    return CK_OK;
}

static ck_status check_vertex(checker *c, const ck_manifest_vertex *v) {
    const void *was = NULL;
    if (v->op_count == 0 || v->parallelism == 0)
        return BAD(c->err, "has a vertex %llu without operators or parallelism", (unsigned long long)v->id);
    if (v->id != ck_op_id(v->ops[0]))
        return BAD(c->err, "calls the vertex of '%s' %llu", v->ops[0], (unsigned long long)v->id);
    CK_TRY(enter(c, &c->vertices, (pair_key){v->id, 0}, v, &was));
    if (was) return BAD(c->err, "has the vertex of '%s' twice", v->ops[0]);
    for (uint32_t i = 0; i < v->finished_count; i++)
        if (v->finished[i] >= v->parallelism || (i > 0 && v->finished[i] <= v->finished[i - 1]))
            return BAD(c->err, "lists finished subtasks of '%s' that are not ascending below its parallelism",
                       v->ops[0]);
    for (uint32_t i = 0; i < v->op_count; i++)
        CK_TRY(enter(c, &c->ops, (pair_key){v->id, ck_op_id(v->ops[i])}, v, NULL));
    return CK_OK;
}

/* What has changes only, and stands behind what they are changes of. */
static bool has_parent(const ck_manifest_file *f) {
    return f->kind == CK_FILE_DELTA || (f->kind == CK_FILE_CHANGELOG && f->base);
}

/* A materialisation stands for the segment it names and all before it. */
static bool is_behind(const ck_manifest_file *f, const ck_manifest_file *before) {
    if (!before || !f->base) return false;
    const char *end = before->kind == CK_FILE_MATERIALIZED ? before->base : before->path;
    return end && strcmp(end, f->base) == 0;
}

/* Changes follow what they are of in the list; all rows begin the files of their subtask. */
static ck_status check_chain(checker *c, const ck_manifest_file *f) {
    void *was = NULL;
    if (ck_map_put(&c->paths, ck_view_of(f->path), (void *)(uintptr_t)f, &was) != CK_OK)
        return ck_nomem(c->err, c->paths.arena->mem, sizeof *f);
    if (was) return BAD(c->err, "names %s twice", f->path);
    if (f->kind != CK_FILE_MATERIALIZED && !has_parent(f) && f->base)
        return BAD(c->err, "gives %s a parent, which is no delta", f->path);
    if (f->kind == CK_FILE_MATERIALIZED && !f->base)
        return BAD(c->err, "does not say which changes %s has in it", f->path);
    if (!ck_file_is_state(f->kind)) return CK_OK;
    const void *last = NULL;
    CK_TRY(enter(c, &c->chains, (pair_key){f->vertex, f->subtask}, f, &last));
    const ck_manifest_file *before = last;
    if (!has_parent(f) && before) return BAD(c->err, "has a second base %s in one subtask", f->path);
    if (has_parent(f) && !is_behind(f, before))
        return BAD(c->err, "has the delta %s without its parent in front", f->path);
    return CK_OK;
}

static ck_status check_file(checker *c, const ck_manifest_file *f) {
    const ck_manifest *m = c->m;
    if (!path_is_inside(f->path)) return BAD(c->err, "names the file '%s', which is not below the directory", f->path);
    const pair_key vertex = {f->vertex, 0};
    const ck_manifest_vertex *v = ck_map_get(&c->vertices, view_of(&vertex));
    if (!v || f->subtask >= v->parallelism)
        return BAD(c->err, "gives %s to subtask %u of vertex %llu, which it does not have", f->path, f->subtask,
                   (unsigned long long)f->vertex);
    if (f->key_groups.first <= f->key_groups.last && f->key_groups.last >= m->key_groups)
        return BAD(c->err, "gives %s key groups %u to %u of %u", f->path, f->key_groups.first, f->key_groups.last,
                   m->key_groups);
    for (uint32_t i = 0; i < f->op_count; i++) {
        const pair_key op = {f->vertex, f->ops[i]};
        if (!ck_map_get(&c->ops, view_of(&op)))
            return BAD(c->err, "says %s holds operator %llu, which its vertex does not have", f->path,
                       (unsigned long long)f->ops[i]);
    }
    return check_chain(c, f);
}

ck_status ck_manifest_check(const ck_manifest *m, ck_arena *a, ck_error *err) {
    if (m->checkpoint == 0) return BAD(err, "is of checkpoint 0");
    if (m->key_groups == 0 || m->key_groups > CK_KEY_GROUPS_MAX) return BAD(err, "has %u key groups", m->key_groups);
    if (!*m->job_name || strlen(m->job_uuid) != 36) return BAD(err, "has no job name or no UUID");
    if (m->regions == 1 || m->regions > CK_REGIONS_MAX || (m->regions && m->region >= m->regions))
        return BAD(err, "is of region %u of %u", m->region, m->regions);
    if (m->regions && (m->checkpoint & ck_region_mask(m->regions)) != m->region)
        return BAD(err, "has a number of another region than %u of %u", m->region, m->regions);
    checker c = {.m = m, .err = err};
    ck_map_init(&c.vertices, a, false);
    ck_map_init(&c.ops, a, false);
    ck_map_init(&c.paths, a, false);
    ck_map_init(&c.chains, a, false);
    for (uint32_t i = 0; i < m->vertex_count; i++) CK_TRY(check_vertex(&c, &m->vertices[i]));
    for (uint32_t i = 0; i < m->file_count; i++) CK_TRY(check_file(&c, &m->files[i]));
    return CK_OK;
}
