/* See mark.h. */
#include "state/mark_int.h"

/* ---- taking ---- */

static void count_tables(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t) {
    (void)st, (void)slot, (void)t;
    ++*(uint32_t *)arg;
}

static ck_mem snapshot_mem(const ck_state_store *s) { return ck_mem_as(s->mem, CK_MEM_SNAPSHOT); }

static void mark_free(ck_state_store *s, ck_state_mark *m) {
    ck_mem mem = snapshot_mem(s);
    ck_free(mem, m->tables, m->table_capacity * sizeof *m->tables);
    ck_free(mem, m->slots, m->slot_capacity * sizeof *m->slots);
    ck_free(mem, m->retired.items, m->retired.capacity * sizeof *m->retired.items);
    ck_free(mem, m, sizeof *m);
}

static ck_state_mark *mark_alloc(ck_state_store *s, uint32_t tables) {
    ck_mem mem = snapshot_mem(s);
    ck_state_mark *m = ck_alloc_zero(mem, sizeof *m);
    if (!m) return NULL;
    m->tables = ck_alloc_array(mem, tables, sizeof *m->tables);
    if (m->tables) m->table_capacity = tables;
    m->slots = ck_alloc_array(mem, s->slot_count, sizeof *m->slots);
    if (m->slots) m->slot_capacity = s->slot_count;
    if (m->tables && m->slots) return m;
    mark_free(s, m);
    return NULL;
}

static void freeze(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t) {
    ck_state_mark *m = arg;
    if (!t->is_bucket && !slot->raw)
        m->slots[m->slot_count++] = (ck_marked_slot){st->op_id, st->uid, st->op_type, slot->shape->schema};
    m->tables[m->table_count++] = (ck_frozen){.slot = slot->raw ? UINT32_MAX : m->slot_count - 1,
                                              .op_id = st->op_id,
                                              .slot_name = slot->name,
                                              .shape = t->shape,
                                              .raw = slot->raw,
                                              .pages = t->dir.root,
                                              .vars = t->var.dir.root,
                                              .page_count = t->page_count,
                                              .log_first = m->aside ? NULL : t->own_log.first,
                                              .log_last = m->aside ? NULL : t->own_log.last,
                                              .cold = t->cold && !t->is_bucket,
                                              .cold_slot = t->cold_slot};
    m->rows += t->rows + t->out_rows;
    m->changed |= t->changed_epoch > m->completed;
    t->changed_before += t->changed_now;
    t->changed_now = 0;
    m->changed_rows += t->changed_before;
    if (t->own_log.lost > m->completed) m->completed = 0, m->parent = 0; /* no delta: a base must come */
    memset(t->stale, 0, sizeof t->stale);
}

static void remember(ck_state_store *s, uint64_t checkpoint, uint32_t epoch) {
    if (s->unresolved_count == CK_MARKS_UNRESOLVED) { /* the oldest was never resolved: later deltas still cover it */
        memmove(s->unresolved, s->unresolved + 1, (CK_MARKS_UNRESOLVED - 1) * sizeof *s->unresolved);
        s->unresolved_count--;
    }
    s->unresolved[s->unresolved_count++] = (ck_unresolved){checkpoint, epoch};
}

ck_status ck_state_mark_take(ck_state_store *s, uint64_t checkpoint, ck_state_mark **out, ck_error *err) {
    if (s->mark_count == CK_MARKS_LIVE_MAX)
        return ck_fail(err, CK_FULL, "%d snapshots of this subtask are still being written", CK_MARKS_LIVE_MAX);
    if (s->cold) CK_TRY(ck_cold_settle_all(s, err));
    uint32_t tables = 0;
    ck_state_each_table(s, count_tables, &tables);
    ck_state_mark *m = mark_alloc(s, tables);
    if (!m) return ck_nomem(err, snapshot_mem(s), tables * sizeof(ck_frozen));
    ck_epochs *e = &s->epochs;
    m->store = s, m->checkpoint = checkpoint, m->epoch = e->epoch, m->aside = checkpoint == 0;
    m->completed = e->completed, m->parent = s->completed_checkpoint;
    m->key_groups = s->cfg.key_groups;
    uint32_t completed = e->completed;
    ck_state_each_table(s, freeze, m);
    if (m->completed != completed) m->changed = true;
    m->older = s->marks;
    if (s->marks) s->marks->newer = m;
    s->marks = m;
    s->mark_count++;
    s->log_readers += !m->aside;
    e->live = e->epoch++;
    e->retired = &m->retired;
    e->tracking = true;
    if (s->cold && s->cold->rows) m->cold = ck_rocks_snapshot_take(s->cold->db);
    if (!m->aside) remember(s, checkpoint, m->epoch);
    *out = m;
    return CK_OK;
}

/* ---- releasing ---- */

static void free_list(ck_state_store *s, ck_retired_list *l) {
    for (uint32_t i = 0; i < l->count; i++) ck_retired_free(&s->epochs, &l->items[i]);
    l->count = 0;
}

/* Frees what only marks newer than `older` saw; the rest stays in the list. */
static void free_younger(ck_state_store *s, ck_retired_list *l, const ck_state_mark *older) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->items[i].birth <= older->epoch)
            l->items[kept++] = l->items[i];
        else
            ck_retired_free(&s->epochs, &l->items[i]);
    }
    l->count = kept;
}

/* The list of a released mark goes, or with what an older mark still sees becomes that mark's. */
static void let_go(ck_state_store *s, ck_state_mark *m, ck_state_mark *older) {
    if (older)
        free_younger(s, &m->retired, older);
    else
        free_list(s, &m->retired);
    if (m->retired.count) {
        m->older = older->inherited;
        older->inherited = m;
    } else {
        mark_free(s, m);
    }
}

static void forget_logs(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t) {
    (void)st, (void)slot;
    ck_log_forget(t, *(uint32_t *)arg);
}

void ck_state_mark_release(ck_state_mark *m) {
    if (!m) return;
    ck_state_store *s = m->store;
    ck_state_mark *older = m->older, *newer = m->newer, *heir = m->inherited;
    if (m->cold) ck_rocks_snapshot_release(s->cold->db, m->cold);
    m->cold = NULL;
    if (newer)
        newer->older = older;
    else
        s->marks = older;
    if (older) older->newer = newer;
    s->mark_count--;
    s->log_readers -= !m->aside;
    s->epochs.live = s->marks ? s->marks->epoch : 0;
    s->epochs.retired = s->marks ? &s->marks->retired : NULL;
    if (!s->log_readers) ck_state_each_table(s, forget_logs, &s->epochs.completed);
    let_go(s, m, older);
    while (heir) {
        ck_state_mark *next = heir->older;
        let_go(s, heir, older);
        heir = next;
    }
}

/* ---- the word on a checkpoint ---- */

static void settle(void *arg, ck_state *st, ck_state_slot *slot, ck_table *t) {
    (void)arg, (void)st, (void)slot;
    t->changed_before = 0;
}

void ck_state_completed(ck_state_store *s, uint64_t checkpoint) {
    uint32_t i = 0;
    while (i < s->unresolved_count && s->unresolved[i].checkpoint != checkpoint) i++;
    if (i == s->unresolved_count) return;
    uint32_t epoch = s->unresolved[i].epoch;
    s->unresolved_count -= i + 1; /* older ones do not matter any more */
    memmove(s->unresolved, s->unresolved + i + 1, s->unresolved_count * sizeof *s->unresolved);
    s->epochs.completed = epoch;
    s->completed_checkpoint = checkpoint;
    if (s->cold) ck_cold_completed(s->cold, epoch);
    if (epoch + 1 == s->epochs.epoch) ck_state_each_table(s, settle, NULL);
    if (!s->log_readers) ck_state_each_table(s, forget_logs, &epoch);
}

void ck_state_aborted(ck_state_store *s, uint64_t checkpoint) {
    for (uint32_t i = 0; i < s->unresolved_count; i++) {
        if (s->unresolved[i].checkpoint != checkpoint) continue;
        s->unresolved_count--;
        memmove(s->unresolved + i, s->unresolved + i + 1, (s->unresolved_count - i) * sizeof *s->unresolved);
        return;
    }
}

/* ---- reading about a mark ---- */

uint64_t ck_state_mark_parent(const ck_state_mark *m) { return m->parent; }
bool ck_state_mark_changed(const ck_state_mark *m) { return m->changed; }
uint64_t ck_state_mark_rows(const ck_state_mark *m) { return m->rows; }
uint64_t ck_state_mark_changed_rows(const ck_state_mark *m) { return m->changed_rows; }
const ck_version_map *ck_state_mark_versions(const ck_state_mark *m) { return &m->store->versions; }
uint32_t ck_state_mark_slots(const ck_state_mark *m, const ck_marked_slot **slots) {
    *slots = m->slots;
    return m->slot_count;
}
