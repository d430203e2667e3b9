/* See subtask.h. A snapshot under way carries a copy of the chain it builds on, so that the I/O thread touches nothing
 * of the subtask's. When its checkpoint is completed, its files become the chain. */
#include "checkpoint/subtask.h"

#include "checkpoint/directory.h"

typedef enum plan { PLAN_NOTHING, PLAN_SAME, PLAN_BASE, PLAN_DELTA } plan;
typedef enum word { WORD_NONE, WORD_COMPLETED, WORD_ABORTED } word;

enum { STAGGER = 16 };

typedef struct chain { /* of the last completed checkpoint, in order of application */
    ck_arena arena;
    uint64_t checkpoint; /* 0: none */
    ck_manifest_file *files;
    uint32_t count;
} chain;

struct ck_subtask_snapshot {
    ck_subtask_snapshots *owner;
    ck_state_mark *mark;
    uint64_t checkpoint;
    plan plan;
    chain chain; /* what it builds on, then what it is */
    bool written, ended;
    word word;
    ck_subtask_snapshot *next;
};

struct ck_subtask_snapshots {
    ck_subtask_snapshots_config cfg;
    ck_mem mem;
    chain chain;
    ck_subtask_snapshot *open; /* begun and not both ended and resolved */
};

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
    ck_arena_destroy(&s->chain.arena);
    ck_free(s->mem, s, sizeof *s);
}

/* ---- files ---- */

static ck_status file_copy(ck_arena *a, const ck_manifest_file *from, ck_manifest_file *to) {
    uint64_t *ops = ck_arena_array(a, from->op_count ? from->op_count : 1, sizeof *ops);
    *to = *from;
    to->path = ck_arena_strdup(a, from->path);
    to->base = from->base ? ck_arena_strdup(a, from->base) : NULL;
    if (!ops || !to->path || (from->base && !to->base)) return CK_NOMEM;
    if (from->op_count) memcpy(ops, from->ops, from->op_count * sizeof *ops);
    to->ops = ops;
    return CK_OK;
}

/* With room for one more. */
static ck_status files_copy(ck_arena *a, const chain *from, ck_manifest_file **out) {
    ck_manifest_file *files = ck_arena_array(a, from->count + 1u, sizeof *files);
    if (!files) return CK_NOMEM;
    for (uint32_t i = 0; i < from->count; i++) CK_TRY(file_copy(a, &from->files[i], &files[i]));
    *out = files;
    return CK_OK;
}

/* ---- beginning ---- */

/* Rebases of the subtasks of a job do not all come at one checkpoint. */
static uint32_t deltas_max(const ck_subtask_snapshots *s) { return CK_DELTAS_MAX - s->cfg.subtask % STAGGER; }

static plan plan_of(const ck_subtask_snapshots *s, const ck_state_mark *m, ck_barrier_kind kind) {
    const ck_marked_slot *slots;
    const chain *c = &s->chain;
    if (ck_state_mark_slots(m, &slots) == 0 && ck_state_mark_rows(m) == 0) return PLAN_NOTHING;
    uint64_t parent = ck_state_mark_parent(m);
    if (kind == CK_BARRIER_SAVEPOINT || parent == 0 || parent != c->checkpoint || c->count == 0) return PLAN_BASE;
    if (!ck_state_mark_changed(m)) return PLAN_SAME;
    uint64_t delta_bytes = 0;
    for (uint32_t i = 1; i < c->count; i++) delta_bytes += c->files[i].bytes;
    bool many = c->count > deltas_max(s), large = delta_bytes >= c->files[0].bytes / 2;
    bool most = ck_state_mark_changed_rows(m) >= ck_state_mark_rows(m) / 2;
    return many || large || most ? PLAN_BASE : PLAN_DELTA;
}

ck_status ck_subtask_snapshot_begin(ck_subtask_snapshots *s, uint64_t checkpoint, ck_barrier_kind kind,
                                    ck_subtask_snapshot **out, ck_error *err) {
    ck_subtask_snapshot *snap = ck_alloc_zero(s->mem, sizeof *snap);
    if (!snap) return ck_nomem(err, s->mem, sizeof *snap);
    snap->owner = s, snap->checkpoint = checkpoint;
    ck_arena_init(&snap->chain.arena, s->mem, SIZE_MAX);
    ck_status st = files_copy(&snap->chain.arena, &s->chain, &snap->chain.files);
    if (st != CK_OK)
        st = ck_nomem(err, s->mem, s->chain.count * sizeof *snap->chain.files);
    else
        st = ck_state_mark_take(s->cfg.store, checkpoint, &snap->mark, err);
    if (st != CK_OK) {
        snapshot_free(snap);
        return st;
    }
    snap->chain.count = s->chain.count;
    snap->plan = plan_of(s, snap->mark, kind);
    snap->next = s->open;
    s->open = snap;
    *out = snap;
    return CK_OK;
}

/* ---- running ---- */

static ck_status ops_of(ck_subtask_snapshot *snap, ck_manifest_file *f) {
    const ck_marked_slot *slots;
    uint32_t n = ck_state_mark_slots(snap->mark, &slots), count = 0;
    uint64_t *ops = ck_arena_array(&snap->chain.arena, n ? n : 1, sizeof *ops);
    if (!ops) return CK_NOMEM;
    for (uint32_t i = 0; i < n; i++) { /* slots come operator by operator */
        bool seen = count > 0 && ops[count - 1] == slots[i].op_id;
        if (!seen) ops[count++] = slots[i].op_id;
    }
    f->ops = ops, f->op_count = count;
    return CK_OK;
}

static ck_status write_file(ck_subtask_snapshot *snap, ck_error *err) {
    const ck_subtask_snapshots_config *cfg = &snap->owner->cfg;
    chain *c = &snap->chain;
    bool delta = snap->plan == PLAN_DELTA;
    if (!delta) c->count = 0;
    const char *parent = delta ? c->files[c->count - 1].path : NULL;
    ck_manifest_file *f = &c->files[c->count];
    *f = (ck_manifest_file){.vertex = cfg->vertex,
                            .subtask = cfg->subtask,
                            .key_groups = cfg->range,
                            .kind = delta ? CK_FILE_DELTA : CK_FILE_BASE,
                            .base = parent};
    f->path = ck_checkpoint_path_file(&c->arena, cfg->vertex, cfg->subtask, snap->checkpoint, f->kind);
    if (!f->path || ops_of(snap, f) != CK_OK) return ck_nomem(err, snap->owner->mem, 0);
    const ck_snapshot_spec spec = {.proc = cfg->proc,
                                   .mem = ck_mem_as(cfg->mem, CK_MEM_SNAPSHOT),
                                   .dir = cfg->dir,
                                   .path = f->path,
                                   .checkpoint = snap->checkpoint,
                                   .key_groups = cfg->key_groups,
                                   .kind = delta ? CK_MARK_DELTA : CK_MARK_BASE,
                                   .parent = parent};
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
    if (snap->plan == PLAN_NOTHING) snap->chain.count = 0;
    if (snap->plan == PLAN_BASE || snap->plan == PLAN_DELTA) CK_TRY(write_file(snap, err));
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
    if (!snap->ended || (snap->word == WORD_NONE && !lost)) return;
    unlink_open(s, snap);
    if (snap->word == WORD_COMPLETED && snap->written && snap->checkpoint > s->chain.checkpoint) {
        ck_arena_destroy(&s->chain.arena);
        s->chain = snap->chain;
        s->chain.checkpoint = snap->checkpoint;
        snap->chain = (chain){.arena = {.mem = s->mem}};
    }
    snapshot_free(snap);
}

void ck_subtask_snapshot_end(ck_subtask_snapshots *s, ck_subtask_snapshot *snap) {
    ck_state_mark_release(snap->mark);
    snap->mark = NULL;
    snap->ended = true;
    settle(s, snap);
}

static void resolve(ck_subtask_snapshots *s, uint64_t checkpoint, word w) {
    ck_subtask_snapshot *next;
    for (ck_subtask_snapshot *snap = s->open; snap; snap = next) {
        next = snap->next;
        if (snap->checkpoint == checkpoint) {
            snap->word = w;
            settle(s, snap);
        } else if (w == WORD_COMPLETED && snap->checkpoint < checkpoint) { /* its word was lost: it does not matter */
            snap->word = WORD_ABORTED;
            settle(s, snap);
        }
    }
}

void ck_subtask_snapshots_completed(ck_subtask_snapshots *s, uint64_t checkpoint) {
    ck_state_completed(s->cfg.store, checkpoint);
    resolve(s, checkpoint, WORD_COMPLETED);
}

void ck_subtask_snapshots_aborted(ck_subtask_snapshots *s, uint64_t checkpoint) {
    ck_state_aborted(s->cfg.store, checkpoint);
    resolve(s, checkpoint, WORD_ABORTED);
}
