/* See subtask.h. A snapshot under way carries a copy of the chain it builds on, so that the I/O thread touches nothing
 * of the subtask's. When its checkpoint is completed, its files become the chain. */
#include "checkpoint/subtask_int.h"

#include "checkpoint/directory.h"

enum { STAGGER = 16 };

ck_status ck_subtask_snapshots_new(const ck_subtask_snapshots_config *cfg, ck_subtask_snapshots **out, ck_error *err) {
    ck_mem mem = ck_mem_as(cfg->mem, CK_MEM_PLAN);
    ck_subtask_snapshots *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->cfg = *cfg, s->mem = mem;
    ck_arena_init(&s->chain.arena, mem, SIZE_MAX);
    *out = s;
    return CK_OK;
}

static void snapshot_free(ck_subtask_snapshot *snap) {
    ck_arena_destroy(&snap->chain.arena);
    ck_free(snap->owner->mem, snap, sizeof *snap);
}

void ck_subtask_snapshots_free(ck_subtask_snapshots *s) {
    if (!s) return;
    while (s->open) {
        ck_subtask_snapshot *snap = s->open;
        CK_ASSERT(snap->ended);
        s->open = snap->next;
        snapshot_free(snap);
    }
    ck_materialised_destroy(s);
    ck_arena_destroy(&s->chain.arena);
    ck_free(s->mem, s, sizeof *s);
}

/* ---- files ---- */

ck_status ck_subtask_file_copy(ck_arena *a, const ck_manifest_file *from, ck_manifest_file *to) {
    uint64_t *ops = ck_arena_array(a, from->op_count ? from->op_count : 1, sizeof *ops);
    *to = *from;
    to->path = ck_arena_strdup(a, from->path);
    to->base = from->base ? ck_arena_strdup(a, from->base) : NULL;
    if (!ops || !to->path || (from->base && !to->base)) return CK_NOMEM;
    if (from->op_count) memcpy(ops, from->ops, from->op_count * sizeof *ops);
    to->ops = ops;
    return CK_OK;
}

/* With room for two more. */
static ck_status files_copy(ck_arena *a, const ck_file_chain *from, ck_manifest_file **out) {
    ck_manifest_file *files = ck_arena_array(a, from->count + 2u, sizeof *files);
    if (!files) return CK_NOMEM;
    for (uint32_t i = 0; i < from->count; i++) CK_TRY(ck_subtask_file_copy(a, &from->files[i], &files[i]));
    *out = files;
    return CK_OK;
}

/* ---- beginning ---- */

uint32_t ck_subtask_changes_max(const ck_subtask_snapshots *s, uint32_t all) {
    uint32_t spread = (all + 1) / 2 < STAGGER ? (all + 1) / 2 : STAGGER;
    return all - s->cfg.subtask % spread;
}

static bool is_changelog(const ck_subtask_snapshots *s) { return s->cfg.changelog.where != CK_MATERIALISE_NONE; }

static ck_snapshot_plan plan_of_delta(const ck_subtask_snapshots *s) {
    const ck_file_chain *c = &s->chain;
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < c->count; i++) bytes += c->files[i].bytes;
    bool many = c->count > ck_subtask_changes_max(s, CK_DELTAS_MAX), large = bytes >= c->files[0].bytes / 2;
    return many || large ? CK_PLAN_ALL : CK_PLAN_CHANGES;
}

static ck_snapshot_plan plan_of(ck_subtask_snapshot *snap) {
    const ck_subtask_snapshots *s = snap->owner;
    const ck_state_mark *m = snap->mark;
    const ck_marked_slot *slots;
    if (ck_state_mark_slots(m, &slots) == 0 && ck_state_mark_rows(m) == 0) return CK_PLAN_NOTHING;
    uint64_t parent = ck_state_mark_parent(m);
    bool alone = parent == 0 || parent != s->chain.checkpoint || s->chain.count == 0;
    if (snap->kind == CK_BARRIER_SAVEPOINT || alone) return CK_PLAN_ALL;
    if (!ck_state_mark_changed(m)) return CK_PLAN_SAME;
    if (ck_state_mark_changed_rows(m) >= ck_state_mark_rows(m) / 2) return CK_PLAN_ALL; /* no dearer */
    if (!is_changelog(s)) return plan_of_delta(s);
    ck_materialised_adopt(s, &snap->chain);
    return ck_changelog_plan(s, &snap->chain);
}

static ck_status mark(ck_subtask_snapshot *snap, ck_error *err) {
    const ck_subtask_snapshots *s = snap->owner;
    ck_status st = files_copy(&snap->chain.arena, &s->chain, &snap->chain.files);
    snap->chain.count = s->chain.count;
    if (st == CK_OK) st = ck_materialised_copy(s, &snap->chain);
    if (st != CK_OK) return ck_nomem(err, s->mem, s->chain.count * sizeof *snap->chain.files);
    return ck_state_mark_take(s->cfg.store, snap->checkpoint, &snap->mark, err);
}

ck_status ck_subtask_snapshot_begin(ck_subtask_snapshots *s, uint64_t checkpoint, ck_barrier_kind kind,
                                    ck_subtask_snapshot **out, ck_error *err) {
    ck_subtask_snapshot *snap = ck_alloc_zero(s->mem, sizeof *snap);
    if (!snap) return ck_nomem(err, s->mem, sizeof *snap);
    snap->owner = s, snap->checkpoint = checkpoint, snap->kind = kind;
    ck_arena_init(&snap->chain.arena, s->mem, SIZE_MAX);
    ck_status st = mark(snap, err);
    if (st != CK_OK) {
        snapshot_free(snap);
        return st;
    }
    snap->plan = plan_of(snap);
    ck_materialised_begin(s, snap);
    snap->next = s->open;
    s->open = snap;
    *out = snap;
    return CK_OK;
}

/* ---- running ---- */

static ck_status ops_of(ck_arena *a, const ck_state_mark *m, ck_manifest_file *f) {
    const ck_marked_slot *slots;
    uint32_t n = ck_state_mark_slots(m, &slots), count = 0;
    uint64_t *ops = ck_arena_array(a, n ? n : 1, sizeof *ops);
    if (!ops) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) { /* slots come operator by operator */
        bool seen = count > 0 && ops[count - 1] == slots[i].op_id;
        if (!seen) ops[count++] = slots[i].op_id;
    }
    f->ops = ops, f->op_count = count;
    return CK_OK;
}

ck_status ck_subtask_file(const ck_subtask_snapshots *s, ck_arena *a, const ck_state_mark *m, uint64_t checkpoint,
                          ck_file_kind kind, ck_manifest_file *out) {
    const ck_subtask_snapshots_config *cfg = &s->cfg;
    *out = (ck_manifest_file){.vertex = cfg->vertex, .subtask = cfg->subtask, .key_groups = cfg->range, .kind = kind};
    out->path = ck_checkpoint_path_file(a, cfg->vertex, cfg->subtask, checkpoint, kind);
    return out->path ? ops_of(a, m, out) : CK_NOMEM;
}

/* Savepoints are bases everywhere. */
static ck_file_kind kind_of(const ck_subtask_snapshot *snap) {
    if (is_changelog(snap->owner) && snap->kind != CK_BARRIER_SAVEPOINT) return CK_FILE_CHANGELOG;
    return snap->plan == CK_PLAN_CHANGES ? CK_FILE_DELTA : CK_FILE_BASE;
}

static ck_status write_file(ck_subtask_snapshot *snap, ck_error *err) {
    const ck_subtask_snapshots_config *cfg = &snap->owner->cfg;
    ck_file_chain *c = &snap->chain;
    bool changes = snap->plan == CK_PLAN_CHANGES;
    ck_file_kind kind = kind_of(snap);
    if (!changes) c->count = 0;
    ck_manifest_file *f = &c->files[c->count], *head = &c->files[0];
    const ck_manifest_file *before = changes ? f - 1 : NULL;
    if (ck_subtask_file(snap->owner, &c->arena, snap->mark, snap->checkpoint, kind, f) != CK_OK)
        return ck_nomem(err, snap->owner->mem, 0);
    if (before) f->base = before->kind == CK_FILE_MATERIALIZED ? before->base : before->path;
    const ck_snapshot_spec spec = {.proc = cfg->proc,
                                   .mem = ck_mem_as(cfg->mem, CK_MEM_SNAPSHOT),
                                   .dir = cfg->dir,
                                   .path = f->path,
                                   .checkpoint = snap->checkpoint,
                                   .key_groups = cfg->key_groups,
                                   .kind = changes ? CK_MARK_DELTA : CK_MARK_BASE,
                                   .parent = f->base,
                                   .changelog = kind == CK_FILE_CHANGELOG,
                                   .handle = changes && head->kind == CK_FILE_MATERIALIZED ? head->path : NULL};
    ck_snapshot_info info;
    CK_TRY(ck_snapshot_write(&spec, snap->mark, &info, err));
    f->bytes = info.bytes, f->crc32c = info.crc32c;
    c->count++;
    return CK_OK;
}

static ck_status hand_out(ck_subtask_snapshot *snap, ck_subtask_files **out) {
    ck_mem mem = snap->owner->mem;
    ck_subtask_files *files = ck_alloc_zero(mem, sizeof *files);
    if (!files) return CK_NOMEM;
    ck_arena_init(&files->arena, mem, SIZE_MAX);
    files->file_count = snap->chain.count;
    if (files_copy(&files->arena, &snap->chain, &files->files) != CK_OK) {
        ck_subtask_files_free(files);
        return CK_NOMEM;
    }
    *out = files;
    return CK_OK;
}

void ck_subtask_files_free(ck_subtask_files *f) {
    if (!f) return;
    ck_mem mem = f->arena.mem;
    ck_arena_destroy(&f->arena);
    ck_free(mem, f, sizeof *f);
}

ck_status ck_subtask_snapshot_run(ck_subtask_snapshot *snap, ck_subtask_files **files, ck_error *err) {
    *files = NULL;
    if (snap->plan == CK_PLAN_NOTHING) snap->chain.count = 0;
    if (snap->plan == CK_PLAN_ALL || snap->plan == CK_PLAN_CHANGES) CK_TRY(write_file(snap, err));
    if (hand_out(snap, files) != CK_OK) return ck_nomem(err, snap->owner->mem, 0);
    snap->written = true;
    return CK_OK;
}

/* ---- ending ---- */

static void unlink_open(ck_subtask_snapshots *s, ck_subtask_snapshot *snap) {
    ck_subtask_snapshot **at = &s->open;
    while (*at != snap) at = &(*at)->next;
    *at = snap->next;
}

/* A snapshot that is over, when it is: its files become the chain, or nothing does. */
static void settle(ck_subtask_snapshots *s, ck_subtask_snapshot *snap) {
    bool lost = snap->ended && !snap->written;
    if (!snap->ended || (snap->word == CK_WORD_NONE && !lost)) return;
    unlink_open(s, snap);
    if (snap->word == CK_WORD_COMPLETED && snap->written && snap->checkpoint > s->chain.checkpoint) {
        ck_arena_destroy(&s->chain.arena);
        s->chain = snap->chain;
        s->chain.checkpoint = snap->checkpoint;
        snap->chain = (ck_file_chain){.arena = {.mem = s->mem}};
        ck_materialised_settle(s);
    }
    snapshot_free(snap);
}

void ck_subtask_snapshot_end(ck_subtask_snapshots *s, ck_subtask_snapshot *snap) {
    ck_state_mark_release(snap->mark);
    snap->mark = NULL;
    snap->ended = true;
    settle(s, snap);
}

static void resolve(ck_subtask_snapshots *s, uint64_t checkpoint, ck_snapshot_word w) {
    ck_subtask_snapshot *next;
    for (ck_subtask_snapshot *snap = s->open; snap; snap = next) {
        next = snap->next;
        if (snap->checkpoint == checkpoint) {
            snap->word = w;
            settle(s, snap);
        } else if (w == CK_WORD_COMPLETED &&
                   snap->checkpoint < checkpoint) { /* its word was lost: it does not matter */
            snap->word = CK_WORD_ABORTED;
            settle(s, snap);
        }
    }
}

void ck_subtask_snapshots_completed(ck_subtask_snapshots *s, uint64_t checkpoint) {
    ck_state_completed(s->cfg.store, checkpoint);
    resolve(s, checkpoint, CK_WORD_COMPLETED);
}

void ck_subtask_snapshots_aborted(ck_subtask_snapshots *s, uint64_t checkpoint) {
    ck_state_aborted(s->cfg.store, checkpoint);
    ck_materialised_aborted(s, checkpoint);
    resolve(s, checkpoint, CK_WORD_ABORTED);
}

void ck_subtask_snapshots_anew(ck_subtask_snapshots *s) {
    s->chain.count = 0;
    ck_materialised_settle(s);
}
