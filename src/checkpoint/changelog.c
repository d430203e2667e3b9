/* See changelog.h. A materialisation is marked together with a segment N and holds the state behind it. It is stood on
 * only by a chain that has N in it: deltas count from completed checkpoints, so changes since an older one are no
 * changes to the state at N (a key that came before N and went after it is in no such delta). */
#include "base/log.h"
#include "checkpoint/directory.h"
#include "checkpoint/subtask_int.h"

#include <inttypes.h>

enum { TOO_LONG = 4 }; /* times what is due: then the rows come inside, whatever holds the external ones up */

static bool is_external(const ck_subtask_snapshots *s) { return s->cfg.changelog.where == CK_MATERIALISE_EXTERNAL; }

static uint32_t segments_max(const ck_subtask_snapshots *s) {
    uint32_t every = s->cfg.changelog.every;
    return ck_subtask_changes_max(s, every ? every : CK_MATERIALISE_EVERY);
}

/* How often the log of a chain is what is due: by number, or by bytes against what stands in front of it. */
static bool is_longer(const ck_subtask_snapshots *s, const ck_file_chain *c, uint32_t times) {
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < c->count; i++) bytes += c->files[i].bytes;
    return c->count > (uint64_t)segments_max(s) * times || (c->count > 1 && bytes / times >= c->files[0].bytes / 2);
}

ck_snapshot_plan ck_changelog_plan(const ck_subtask_snapshots *s, const ck_file_chain *c) {
    return is_longer(s, c, is_external(s) ? TOO_LONG : 1) ? CK_PLAN_ALL : CK_PLAN_CHANGES;
}

/* ---- standing on it ---- */

ck_status ck_materialised_copy(const ck_subtask_snapshots *s, ck_file_chain *c) {
    if (s->materialised.state != CK_MATERIALISED_WRITTEN) return CK_OK;
    return ck_subtask_file_copy(&c->arena, &s->materialised.file, &c->files[c->count + 1]);
}

static uint32_t find(const ck_file_chain *c, const char *path) {
    uint32_t i = 0;
    while (i < c->count && strcmp(c->files[i].path, path) != 0) i++;
    return i;
}

void ck_materialised_adopt(const ck_subtask_snapshots *s, ck_file_chain *c) {
    if (s->materialised.state != CK_MATERIALISED_WRITTEN) return;
    ck_manifest_file file = c->files[c->count + 1];
    uint32_t at = find(c, file.base);
    if (at == c->count) return;
    memmove(c->files + 1, c->files + at + 1, (c->count - at - 1) * sizeof *c->files);
    c->files[0] = file;
    c->count -= at;
}

/* ---- its life ---- */

static void forget(ck_subtask_snapshots *s) {
    ck_materialised *m = &s->materialised;
    ck_state_mark_release(m->mark);
    ck_arena_destroy(&m->arena);
    m->mark = NULL;
    m->unwanted = false;
    m->state = CK_MATERIALISED_NONE;
}

void ck_materialised_begin(ck_subtask_snapshots *s, const ck_subtask_snapshot *snap) {
    ck_materialised *m = &s->materialised;
    if (!is_external(s) || snap->plan != CK_PLAN_CHANGES || m->state != CK_MATERIALISED_NONE) return;
    if (snap->kind == CK_BARRIER_FINAL) return; /* nothing comes behind it */
    if (snap->checkpoint < m->not_before || !is_longer(s, &snap->chain, 1)) return;
    ck_error unwanted = CK_ERROR_INIT;
    m->checkpoint = snap->checkpoint;
    atomic_store(&m->give_up, false);
    ck_arena_init(&m->arena, s->mem, SIZE_MAX);
    m->state = CK_MATERIALISED_MARKED;
    ck_status st = ck_state_mark_take(s->cfg.store, 0, &m->mark, &unwanted);
    if (st == CK_OK) st = ck_subtask_file(s, &m->arena, m->mark, m->checkpoint, CK_FILE_MATERIALIZED, &m->file);
    if (st == CK_OK) {
        m->file.base =
            ck_checkpoint_path_file(&m->arena, s->cfg.vertex, s->cfg.subtask, m->checkpoint, CK_FILE_CHANGELOG);
        if (!m->file.base) st = CK_NOMEM;
    }
    if (st != CK_OK) forget(s); /* with the next one */
}

bool ck_materialisation_is_begun(const ck_subtask_snapshots *s) {
    return s->materialised.state == CK_MATERIALISED_MARKED;
}

static ck_status write(ck_subtask_snapshots *s, ck_error *err) {
    const ck_subtask_snapshots_config *cfg = &s->cfg;
    ck_materialised *m = &s->materialised;
    const ck_snapshot_spec spec = {.proc = cfg->proc,
                                   .mem = ck_mem_as(cfg->mem, CK_MEM_SNAPSHOT),
                                   .dir = cfg->dir,
                                   .path = m->file.path,
                                   .checkpoint = m->checkpoint,
                                   .key_groups = cfg->key_groups,
                                   .kind = CK_MARK_BASE,
                                   .parent = m->file.base,
                                   .give_up = &m->give_up};
    ck_snapshot_info info;
    CK_FAULT(cfg->proc, MATERIALISE_BEFORE);
    CK_TRY(ck_snapshot_write(&spec, m->mark, &info, err));
    m->file.bytes = info.bytes, m->file.crc32c = info.crc32c;
    CK_FAULT(cfg->proc, MATERIALISE_AFTER);
    return CK_OK;
}

void ck_materialisation_start(ck_subtask_snapshots *s) {
    CK_ASSERT(s->materialised.state == CK_MATERIALISED_MARKED);
    s->materialised.state = CK_MATERIALISED_WRITING;
}

ck_status ck_materialisation_run(ck_subtask_snapshots *s, ck_error *err) {
    CK_ASSERT(s->materialised.state == CK_MATERIALISED_WRITING);
    return write(s, err);
}

void ck_materialisation_end(ck_subtask_snapshots *s, ck_status status) {
    ck_materialised *m = &s->materialised;
    bool keep = status == CK_OK && m->state == CK_MATERIALISED_WRITING && !m->unwanted;
    if (status != CK_OK) m->not_before = m->checkpoint + segments_max(s);
    if (!keep) {
        forget(s);
        return;
    }
    ck_state_mark_release(m->mark);
    m->mark = NULL;
    m->state = CK_MATERIALISED_WRITTEN;
    ck_materialised_settle(s);
}

void ck_materialisation_give_up(ck_subtask_snapshots *s) { atomic_store(&s->materialised.give_up, true); }

void ck_materialised_settle(ck_subtask_snapshots *s) {
    const ck_materialised *m = &s->materialised;
    if (m->state != CK_MATERIALISED_WRITTEN || s->chain.checkpoint < m->checkpoint) return;
    if (find(&s->chain, m->file.base) == s->chain.count) forget(s); /* stood on already, or passed by */
}

void ck_materialised_aborted(ck_subtask_snapshots *s, uint64_t checkpoint) {
    ck_materialised *m = &s->materialised;
    if (m->state == CK_MATERIALISED_NONE || m->checkpoint != checkpoint) return;
    if (m->state == CK_MATERIALISED_WRITING) {
        m->unwanted = true;
        ck_materialisation_give_up(s);
    } else {
        forget(s);
    }
}

void ck_materialised_destroy(ck_subtask_snapshots *s) {
    CK_ASSERT(s->materialised.state != CK_MATERIALISED_WRITING);
    forget(s);
}
