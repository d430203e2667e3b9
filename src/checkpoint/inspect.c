/* See inspect.h. */
#include "checkpoint/inspect.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "checkpoint/directory.h"
#include "checkpoint/restore.h"
#include "checkpoint/snapshot.h"
#include "os/fs.h"

typedef struct inspecting {
    ck_proc *proc;
    ck_arena *arena;
    ck_error *err;
    ck_inspection *out;
    ck_map slots; /* "op|slot": ck_inspected_slot */
    ck_version_map *versions;
    /* rows come slot by slot */
    ck_inspected_slot *last;
    uint64_t last_op;
} inspecting;

static ck_status nomem(inspecting *i) { return ck_nomem(i->err, i->arena->mem, 0); }

static ck_status slot_of(inspecting *i, uint64_t op_id, ck_view name, ck_inspected_slot **out) {
    const char *key = ck_arena_printf(i->arena, "%" PRIu64 "|%.*s", op_id, (int)name.n, name.p);
    if (!key) return nomem(i);
    *out = ck_map_get(&i->slots, ck_view_of(key));
    if (*out) return CK_OK;
    *out = CK_ARENA_NEW(i->arena, ck_inspected_slot);
    return *out && ck_map_put(&i->slots, ck_view_of(key), *out, NULL) == CK_OK ? CK_OK : nomem(i);
}

static ck_status take_header(inspecting *i, const ck_snapshot_header *h) {
    CK_TRY(ck_version_map_unite(i->versions, &h->versions, i->err));
    for (uint32_t k = 0; k < h->slot_count; k++) {
        ck_inspected_slot *slot;
        CK_TRY(slot_of(i, h->slots[k].op_id, ck_view_of(h->slots[k].schema->slot), &slot));
        if (!slot->stored || slot->stored->raw) slot->stored = &h->slots[k];
    }
    return CK_OK;
}

/* A slot that only its rows show. */
static ck_status make_raw(inspecting *i, uint64_t op_id, ck_view name, ck_inspected_slot *slot) {
    ck_stored_slot *stored = CK_ARENA_NEW(i->arena, ck_stored_slot);
    ck_slot_schema *schema = CK_ARENA_NEW(i->arena, ck_slot_schema);
    if (!stored || !schema) return nomem(i);
    *stored = (ck_stored_slot){op_id, "", "", schema, true};
    schema->slot = ck_arena_strndup(i->arena, name.p, name.n);
    schema->state_type = "";
    slot->stored = stored;
    return schema->slot ? CK_OK : nomem(i);
}

static ck_status take_row(inspecting *i, const ck_snapshot_header *h, const ck_snapshot_row *row) {
    ck_stored_key k;
    if (row->kind >= 3) return CK_OK;
    if (!ck_stored_key_parse(row->key, h->key_groups, &k))
        return ck_fail(i->err, CK_CORRUPT, "a stored key of %zu bytes", row->key.n);
    ck_view name = k.slot.p ? k.slot : ck_view_of("<raw>");
    if (!i->last || i->last_op != row->op_id || !ck_view_is(name, i->last->stored->schema->slot)) {
        if (name.n > CK_NAME_BYTES_MAX)
            return ck_fail(i->err, CK_CORRUPT, "operator %" PRIu64 ": a slot name of %zu bytes", row->op_id, name.n);
        CK_TRY(slot_of(i, row->op_id, name, &i->last));
        if (!i->last->stored) CK_TRY(make_raw(i, row->op_id, name, i->last));
        i->last_op = row->op_id;
    }
    bool change = row->kind > 0;
    i->last->entries += !change, i->out->entries += !change;
    i->last->changes += change, i->out->changes += change;
    return CK_OK;
}

static ck_status take_rows(inspecting *i, ck_snapshot_reader *r) {
    const ck_snapshot_header *h = ck_snapshot_header_of(r);
    const ck_snapshot_row *rows;
    uint32_t n;
    do {
        CK_TRY(ck_snapshot_next(r, &rows, &n, i->err));
        for (uint32_t k = 0; k < n; k++) CK_TRY(take_row(i, h, &rows[k]));
    } while (n);
    i->last = NULL;
    return CK_OK;
}

static ck_status take_file(inspecting *i, const char *path) {
    ck_snapshot_reader *r;
    CK_TRY(ck_snapshot_open(i->proc, ck_mem_as(i->arena->mem, CK_MEM_DECODE), i->arena, path, &r, i->err));
    ck_status s = take_header(i, ck_snapshot_header_of(r));
    if (s == CK_OK) s = take_rows(i, r);
    ck_snapshot_close(r);
    i->out->files++;
    return s;
}

static ck_status take_checkpoint(inspecting *i, ck_checkpoint_dir *d, uint64_t id) {
    ck_manifest *m;
    ck_mem mem = ck_mem_as(i->arena->mem, CK_MEM_DECODE);
    bool newest = !id;
    if (newest) CK_TRY(ck_checkpoint_dir_newest_id(d, &id, i->err));
    CK_TRY((newest ? ck_checkpoint_dir_read_newest : ck_checkpoint_dir_read)(d, id, i->arena, &m, i->err));
    i->out->manifest = m;
    if (!(i->out->dir = ck_arena_strdup(i->arena, ck_checkpoint_dir_path(d)))) return nomem(i);
    for (uint32_t k = 0; k < m->file_count; k++) {
        const ck_manifest_file *f = &m->files[k];
        CK_TRY(ck_snapshot_verify(i->proc, mem, i->out->dir, f, i->err));
        const char *path = ck_arena_printf(i->arena, "%s/%s", i->out->dir, f->path);
        if (!path) return nomem(i);
        if (ck_file_is_state(f->kind)) CK_TRY(take_file(i, path));
    }
    return CK_OK;
}

static ck_status take_directory(inspecting *i, const char *path, uint64_t id) {
    ck_checkpoint_dir_config cfg = {.proc = i->proc, .mem = i->arena->mem, .path = path, .read_only = true};
    ck_checkpoint_dir *d;
    CK_TRY(ck_checkpoint_dir_open(&cfg, &d, i->err));
    ck_status s = take_checkpoint(i, d, id);
    ck_checkpoint_dir_close(d);
    return s;
}

/* DIR/checkpoint-<N>.json to DIR and N. */
static bool split_manifest(char *path, uint64_t *id) {
    static const char head[] = "checkpoint-";
    char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end;
    if (strncmp(name, head, sizeof head - 1) != 0) return false;
    *id = strtoull(name + sizeof head - 1, &end, 10);
    if (*id == 0 || strcmp(end, ".json") != 0) return false;
    if (slash) *slash = 0;
    return true;
}

static ck_status take_path(inspecting *i, const char *path) {
    ck_stat st;
    uint64_t id = 0;
    const char *dir = NULL;
    char *copy = ck_arena_strdup(i->arena, path);
    if (!copy) return nomem(i);
    ck_status s = i->proc->fs->stat(i->proc->fs, path, &st, i->err);
    if (s == CK_OK && st.is_dir) return take_directory(i, path, 0);
    if (s == CK_OK && split_manifest(copy, &id)) return take_directory(i, strchr(path, '/') ? copy : ".", id);
    if (s == CK_OK) return take_file(i, path);
    if (s != CK_NOTFOUND || !strchr(path, ':')) return s;
    ck_error_reset(i->err);
    CK_TRY(ck_restore_point_parse(i->arena, path, &dir, &id, i->err));
    return take_directory(i, dir ? dir : path, id);
}

static int by_operator(const void *a, const void *b) {
    const ck_stored_slot *x = ((const ck_inspected_slot *)a)->stored, *y = ((const ck_inspected_slot *)b)->stored;
    if (x->op_id != y->op_id) return x->op_id < y->op_id ? -1 : 1;
    return strcmp(x->schema->slot, y->schema->slot);
}

static ck_status sum_up(inspecting *i) {
    uint32_t n = (uint32_t)i->slots.count;
    ck_inspected_slot *slots = ck_arena_array(i->arena, n + 1u, sizeof *slots);
    ck_stored_slot *stored = ck_arena_array(i->arena, n + 1u, sizeof *stored);
    if (!slots || !stored) return nomem(i);
    for (uint32_t k = 0; k < n; k++) slots[k] = *(const ck_inspected_slot *)i->slots.entries[k].value;
    qsort(slots, n, sizeof *slots, by_operator);
    for (uint32_t k = 0; k < n; k++) {
        stored[k] = *slots[k].stored;
        slots[k].stored = &stored[k];
        slots[k].version = stored[k].schema->version;
        /* A file of another writer names types in its versions only. */
        for (uint32_t v = 0; stored[k].raw && v < ck_version_map_count(i->versions); v++) {
            const ck_state_version *e = ck_version_map_at(i->versions, v);
            if (e->op_id == stored[k].op_id && e->slot && strcmp(e->slot, stored[k].schema->slot) == 0)
                slots[k].version = e->version;
        }
    }
    i->out->slots = slots, i->out->slot_count = n;
    i->out->state = (ck_stored_state){stored, n, i->versions, false}; /* every row was seen */
    return CK_OK;
}

ck_status ck_inspect(ck_proc *proc, ck_arena *a, const char *path, ck_inspection *out, ck_error *err) {
    inspecting i = {.proc = proc, .arena = a, .err = err, .out = out, .versions = CK_ARENA_NEW(a, ck_version_map)};
    *out = (ck_inspection){0};
    if (!i.versions) return nomem(&i);
    ck_map_init(&i.slots, a, false);
    ck_version_map_init(i.versions, a);
    CK_TRY(take_path(&i, path));
    return sum_up(&i);
}
