/* See restore.h. */
#include "checkpoint/restore_int.h"

#include <inttypes.h>

#include "state/operator_rows.h"

static ck_view id_key(const uint64_t *id) { return (ck_view){(const char *)id, sizeof *id}; }

/* ---- what is wanted ---- */

ck_status ck_restore_new(ck_proc *proc, ck_mem mem, const char *dir, const ck_manifest *m, ck_restore **out,
                         ck_error *err) {
    ck_mem plan = ck_mem_as(mem, CK_MEM_PLAN);
    ck_restore *r = ck_alloc_zero(plan, sizeof *r);
    if (!r) return ck_nomem(err, plan, sizeof *r);
    r->proc = proc, r->mem = plan, r->dir = dir, r->m = m;
    ck_arena_init(&r->arena, plan, SIZE_MAX);
    ck_map_init(&r->ops, &r->arena, false);
    ck_version_map_init(&r->versions, &r->arena);
    ck_map_init(&r->chain, &r->arena, false);
    *out = r;
    return CK_OK;
}

void ck_restore_free(ck_restore *r) {
    if (!r) return;
    ck_arena_destroy(&r->arena);
    ck_free(r->mem, r, sizeof *r);
}

ck_restore_op *ck_restore_op_find(const ck_restore *r, uint64_t id) { return ck_map_get(&r->ops, id_key(&id)); }

static ck_status op_make(ck_restore *r, uint64_t id, ck_restore_op **out, ck_error *err) {
    *out = ck_restore_op_find(r, id);
    if (*out) return CK_OK;
    ck_restore_op *op = CK_ARENA_NEW(&r->arena, ck_restore_op);
    if (!op || ck_map_put(&r->ops, id_key(&id), op, NULL) != CK_OK) return ck_nomem(err, r->mem, sizeof *op);
    op->id = op->as = id;
    op->owner = ck_arena_array(&r->arena, r->m->key_groups, sizeof(ck_restore_into *));
    if (!op->owner) return ck_nomem(err, r->mem, r->m->key_groups * sizeof(void *));
    ck_map_init(&op->slots, &r->arena, false);
    ck_map_init(&op->rows, &r->arena, false);
    *out = op;
    return CK_OK;
}

ck_status ck_restore_add(ck_restore *r, const ck_restore_target *t, ck_error *err) {
    ck_restore_into *into = CK_ARENA_NEW(&r->arena, ck_restore_into);
    if (!into) return ck_nomem(err, r->mem, sizeof *into);
    into->store = t->store, into->subtask = t->subtask, into->parallelism = t->parallelism, into->range = t->range;
    into->next = r->targets;
    r->targets = into;
    for (uint32_t i = 0; i < t->op_count; i++) {
        ck_restore_op *op;
        CK_TRY(op_make(r, t->ops[i].stored, &op, err));
        if ((op->uid = t->ops[i].uid)) op->as = ck_op_id(op->uid);
        ck_target_ref *ref = CK_ARENA_NEW(&r->arena, ck_target_ref);
        if (!ref) return ck_nomem(err, r->mem, sizeof *ref);
        *ref = (ck_target_ref){into, op->targets};
        op->targets = ref;
        for (uint32_t kg = t->range.first; kg <= t->range.last && kg < r->m->key_groups; kg++) op->owner[kg] = into;
    }
    return CK_OK;
}

ck_status ck_restore_want_committables(ck_restore *r, uint64_t op_id, ck_error *err) {
    ck_restore_op *op;
    CK_TRY(op_make(r, op_id, &op, err));
    op->want_committables = true;
    return CK_OK;
}

ck_status ck_restore_want_splits(ck_restore *r, uint64_t op_id, ck_error *err) {
    ck_restore_op *op;
    return op_make(r, op_id, &op, err);
}

/* ---- one file ---- */

static bool is_wanted(const ck_restore *r, const ck_manifest_file *f) {
    if (!ck_file_is_state(f->kind)) return false;
    for (uint32_t i = 0; i < f->op_count; i++)
        if (ck_restore_op_find(r, f->ops[i])) return true;
    return false;
}

static ck_status check_header(const ck_restore *r, const ck_manifest_file *f, const ck_snapshot_header *h,
                              ck_error *err) {
    if (h->key_groups != r->m->key_groups)
        return ck_fail(err, CK_CORRUPT, "it has %" PRIu32 " key groups, the checkpoint %" PRIu32, h->key_groups,
                       r->m->key_groups);
    bool changes = f->kind == CK_FILE_DELTA || f->kind == CK_FILE_CHANGELOG;
    if (h->delta != changes)
        return ck_fail(err, CK_CORRUPT, "it is %s, the manifest says otherwise", h->delta ? "a delta" : "a base");
    if (f->kind != CK_FILE_BASE && strcmp(h->parent, f->base ? f->base : "") != 0)
        return ck_fail(err, CK_CORRUPT, "it stands on %s, the manifest says %s", *h->parent ? h->parent : "nothing",
                       f->base ? f->base : "nothing");
    return CK_OK;
}

/* The file's versions with those of the others, and into every store that has their operator. */
static ck_status unite_versions(ck_restore *r, const ck_snapshot_header *h, ck_error *err) {
    CK_TRY(ck_version_map_unite(&r->versions, &h->versions, err));
    for (uint32_t i = 0; i < ck_version_map_count(&h->versions); i++) {
        ck_state_version v = *ck_version_map_at(&h->versions, i);
        ck_restore_op *op = ck_restore_op_find(r, v.op_id);
        if (!op) continue;
        v.op_id = op->as;
        for (ck_target_ref *t = op->targets; t; t = t->next)
            CK_TRY(ck_state_restore_version(t->target->store, &v, err));
    }
    return CK_OK;
}

/* The file's slots into every store that has their operator; the store refuses what disagrees. */
static ck_status unite_slots(ck_restore *r, const ck_snapshot_header *h, ck_error *err) {
    for (uint32_t i = 0; i < h->slot_count; i++) {
        const ck_stored_slot *s = &h->slots[i];
        ck_restore_op *op = ck_restore_op_find(r, s->op_id);
        if (!op) continue;
        if (ck_map_put(&op->slots, ck_view_of(s->schema->slot), (void *)(uintptr_t)s, NULL) != CK_OK)
            return ck_nomem(err, r->mem, 0);
        if (strcmp(s->schema->slot, CK_COMMIT_SLOT) == 0) continue; /* collected, not restored */
        for (ck_target_ref *t = op->targets; t; t = t->next)
            CK_TRY(ck_state_restore_slot(t->target->store, op->as, op->uid ? op->uid : s->uid, s->op_type, s->schema,
                                         err));
    }
    return CK_OK;
}

static ck_status put_pending(ck_restore_into *to, ck_error *err) {
    uint32_t n = to->pending_count;
    to->pending_count = 0;
    return n ? ck_state_restore_puts(to->store, to->pending_op, to->pending, n, err) : CK_OK;
}

static ck_status put_all_pending(ck_restore *r, ck_error *err) {
    for (ck_restore_into *t = r->targets; t; t = t->next) CK_TRY(put_pending(t, err));
    return CK_OK;
}

static ck_status keyed_row(ck_restore *r, ck_restore_op *op, uint32_t key_group, const ck_snapshot_row *row,
                           ck_error *err) {
    if (key_group >= r->m->key_groups)
        return ck_fail(err, CK_CORRUPT, "key group %" PRIu32 " of %" PRIu32, key_group, r->m->key_groups);
    ck_restore_into *to = op->owner[key_group];
    if (!to) return CK_OK;
    r->stats.rows_kept++;
    bool erase = row->kind == 2;
    if (to->pending_count == CK_RESTORE_PENDING || to->pending_op != op->as || erase) CK_TRY(put_pending(to, err));
    if (erase) return ck_state_restore_erase(to->store, op->as, row->key, err);
    to->pending_op = op->as;
    to->pending[to->pending_count++] = (ck_stored_row){row->key, row->value};
    return CK_OK;
}

static ck_restore_op *op_of(ck_restore *r, uint64_t id) {
    if (CK_UNLIKELY(!r->last_known || r->last_id != id))
        r->last_op = ck_restore_op_find(r, id), r->last_id = id, r->last_known = true;
    return r->last_op;
}

static ck_status take_handle(ck_restore *r, const ck_snapshot_row *row, ck_error *err) {
    if (r->handle) return ck_fail(err, CK_CORRUPT, "it names a second materialisation");
    r->handle = ck_arena_strndup(&r->arena, row->value.p, row->value.n);
    return r->handle ? CK_OK : ck_nomem(err, r->mem, row->value.n);
}

/* Everything from its key up to its value. */
static ck_status erase_range(ck_restore *r, const ck_snapshot_row *row, ck_error *err) {
    ck_restore_op *op = op_of(r, row->op_id);
    if (ck_view_cmp(row->key, row->value) > 0)
        return ck_fail(err, CK_CORRUPT, "it erases a range of keys that ends before it begins");
    if (!op) return CK_OK;
    CK_TRY(put_all_pending(r, err));
    ck_operator_rows_erased(r, row->op_id, row->key, row->value);
    for (const ck_target_ref *t = op->targets; t; t = t->next)
        CK_TRY(ck_state_restore_erase_range(t->target->store, op->as, row->key, row->value, err));
    return CK_OK;
}

static ck_status one_row(ck_restore *r, const ck_snapshot_row *row, ck_error *err) {
    r->stats.rows++;
    if (row->kind == 3) return take_handle(r, row, err);
    if (row->kind == 4) return erase_range(r, row, err);
    if (row->kind > 4) return ck_fail(err, CK_CORRUPT, "a row of kind %u", row->kind);
    ck_restore_op *op = op_of(r, row->op_id);
    uint32_t key_group;
    ck_stored_key k;
    if (!op) return CK_OK;
    if (!ck_stored_key_group(row->key, r->m->key_groups, &key_group))
        return ck_fail(err, CK_CORRUPT, "a stored key of %zu bytes", row->key.n);
    if (key_group != ck_operator_marker(r->m->key_groups)) return keyed_row(r, op, key_group, row, err);
    (void)ck_stored_key_parse(row->key, r->m->key_groups, &k); /* long enough, as was seen */
    return ck_operator_row_seen(r, row->op_id, &k, row, err);
}

static ck_status read_rows(ck_restore *r, ck_snapshot_reader *reader, ck_error *err) {
    const ck_snapshot_row *rows;
    uint32_t n;
    do {
        CK_TRY(ck_snapshot_next(reader, &rows, &n, err));
        for (uint32_t i = 0; i < n; i++) CK_TRY(one_row(r, &rows[i], err));
        CK_TRY(put_all_pending(r, err)); /* the next piece takes the place of this one's bytes */
    } while (n > 0);
    return CK_OK;
}

static ck_status read_file(ck_restore *r, const ck_manifest_file *f, ck_error *err) {
    CK_TRY(ck_snapshot_verify(r->proc, r->mem, r->dir, f, err));
    const char *path = ck_arena_printf(&r->arena, "%s/%s", r->dir, f->path);
    if (!path) return ck_nomem(err, r->mem, 0);
    ck_snapshot_reader *reader;
    r->handle = NULL;
    CK_TRY(ck_snapshot_open(r->proc, ck_mem_as(r->mem, CK_MEM_DECODE), &r->arena, path, &reader, err));
    const ck_snapshot_header *h = ck_snapshot_header_of(reader);
    ck_status s = check_header(r, f, h, err);
    if (s == CK_OK) s = unite_versions(r, h, err);
    if (s == CK_OK) s = unite_slots(r, h, err);
    if (s == CK_OK) s = read_rows(r, reader, err);
    ck_snapshot_close(reader);
    if (s != CK_OK) ck_error_prefix(err, "restoring from %s: ", path);
    r->stats.files++;
    r->stats.bytes += f->bytes;
    return s;
}

/* ---- all ---- */

static bool same_chain(const ck_manifest_file *a, const ck_manifest_file *b) {
    return a->vertex == b->vertex && a->subtask == b->subtask;
}

static bool is_last_of_chain(const ck_manifest *m, uint32_t i) {
    const ck_manifest_file *f = &m->files[i];
    while (++i < m->file_count)
        if (ck_file_is_state(m->files[i].kind)) return !same_chain(f, &m->files[i]);
    return true;
}

/* A changelog names the materialisation it was written on: of a subtask's files the last names the first. */
static ck_status check_handle(const ck_restore *r, const ck_manifest_file *first, const ck_manifest_file *last,
                              ck_error *err) {
    const char *handle = r->handle ? r->handle : "";
    const char *want = first->kind == CK_FILE_MATERIALIZED && first != last ? first->path : "";
    if (strcmp(handle, want) == 0) return CK_OK;
    return ck_fail(err, CK_CORRUPT, "restoring from %s/%s: it names the materialisation '%s', the manifest '%s'",
                   r->dir, last->path, handle, want);
}

static ck_status run(ck_restore *r, ck_error *err) {
    const ck_manifest_file *before = NULL, *first = NULL;
    for (uint32_t i = 0; i < r->m->file_count; i++) {
        const ck_manifest_file *f = &r->m->files[i];
        if (!ck_file_is_state(f->kind)) continue;
        if (!first || !same_chain(first, f)) first = f;
        if (!is_wanted(r, f)) continue;
        if (before && !same_chain(before, f)) CK_TRY(ck_operator_rows_merge(r, err));
        CK_TRY(read_file(r, f, err));
        if (is_last_of_chain(r->m, i)) CK_TRY(check_handle(r, first, f, err));
        before = f;
    }
    CK_TRY(ck_operator_rows_merge(r, err));
    return ck_operator_rows_deal(r, err);
}

ck_status ck_restore_fill(ck_restore *r, ck_error *err) {
    CK_ASSERT(!r->done);
    r->done = true;
    return run(r, err);
}

ck_status ck_restore_run(ck_restore *r, ck_error *err) {
    CK_TRY(ck_restore_fill(r, err));
    for (ck_restore_into *t = r->targets; t; t = t->next) CK_TRY(ck_state_restore_end(t->store, err));
    return CK_OK;
}

ck_status ck_restore_committables(ck_restore *r, uint64_t op_id, const ck_committable **out, uint32_t *count) {
    const ck_restore_op *op = ck_restore_op_find(r, op_id);
    *out = op ? op->committables : NULL;
    *count = op ? op->committable_count : 0;
    return CK_OK;
}

ck_status ck_restore_splits(const ck_restore *r, uint64_t op_id, ck_split_list *out, bool *known, ck_error *err) {
    const ck_restore_op *op = ck_restore_op_find(r, op_id);
    *known = op && ck_map_get(&op->slots, ck_view_of(CK_SPLIT_SLOT));
    for (size_t i = 0; *known && i < op->rows.count; i++) {
        const ck_operator_row *row = op->rows.entries[i].value;
        if (!ck_view_is(row->slot, CK_SPLIT_SLOT)) continue;
        const char *id = ck_arena_strndup(out->arena, row->row_key.p, row->row_key.n);
        if (!id || ck_split_list_add(out, id, "") != CK_OK) return ck_nomem(err, out->arena->mem, row->row_key.n);
    }
    return CK_OK;
}

/* ---- what there is, without the rows ---- */

typedef struct describing {
    ck_proc *proc;
    ck_arena *arena;
    ck_map slots; /* "op|slot": ck_stored_slot */
    ck_version_map *versions;
    bool described; /* some file describes its slots */
} describing;

static ck_status describe_file(describing *d, const char *path, ck_error *err) {
    ck_snapshot_reader *reader;
    CK_TRY(ck_snapshot_open(d->proc, ck_mem_as(d->arena->mem, CK_MEM_DECODE), d->arena, path, &reader, err));
    const ck_snapshot_header *h = ck_snapshot_header_of(reader);
    ck_status s = ck_version_map_unite(d->versions, &h->versions, err);
    for (uint32_t i = 0; s == CK_OK && i < h->slot_count; i++) {
        const ck_stored_slot *slot = &h->slots[i];
        const char *key = ck_arena_printf(d->arena, "%" PRIu64 "|%s", slot->op_id, slot->schema->slot);
        if (!key || ck_map_put(&d->slots, ck_view_of(key), (void *)(uintptr_t)slot, NULL) != CK_OK)
            s = ck_nomem(err, d->arena->mem, 0);
    }
    d->described |= h->described;
    ck_snapshot_close(reader);
    return s;
}

ck_status ck_manifest_stored(ck_proc *proc, ck_arena *a, const char *dir, const ck_manifest *m, ck_stored_state *out,
                             ck_error *err) {
    describing d = {.proc = proc, .arena = a, .versions = CK_ARENA_NEW(a, ck_version_map)};
    uint32_t files = 0;
    if (!d.versions) return ck_nomem(err, a->mem, 0);
    ck_map_init(&d.slots, a, false);
    ck_version_map_init(d.versions, a);
    for (uint32_t i = 0; i < m->file_count; i++) {
        const ck_manifest_file *f = &m->files[i];
        if (!ck_file_is_state(f->kind)) continue;
        const char *path = ck_arena_printf(a, "%s/%s", dir, f->path);
        if (!path) return ck_nomem(err, a->mem, 0);
        ck_status s = describe_file(&d, path, err);
        if (s != CK_OK) {
            (void)ck_error_prefix(err, "%s: ", path);
            return s;
        }
        files++;
    }
    ck_stored_slot *slots = ck_arena_array(a, d.slots.count + 1u, sizeof *slots);
    if (!slots) return ck_nomem(err, a->mem, 0);
    for (size_t i = 0; i < d.slots.count; i++) slots[i] = *(const ck_stored_slot *)d.slots.entries[i].value;
    *out = (ck_stored_state){slots, (uint32_t)d.slots.count, d.versions, files > 0 && !d.described};
    return CK_OK;
}

ck_restore_stats ck_restore_stats_of(const ck_restore *r) { return r->stats; }
