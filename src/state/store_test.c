/* What every backend must do alike. Stores against the model: random operations on slots of every shape, with marks
 * read by another thread while work goes on, checkpoints completed and aborted, deltas on top of bases, restores; the
 * same seeds on each backend. */
#include "state/store_lists_test_support.h"

/* ---- marks ---- */

static ck_status read_scan(live_mark *m, ck_mark_scan_kind kind) {
    ck_mark_scan *scan;
    CK_TRY(ck_mark_scan_new(m->mark, kind, &scan, NULL));
    const ck_mark_row *rows;
    uint32_t n;
    ck_status s;
    char key[8 + 4096];
    while ((s = ck_mark_scan_next(scan, &rows, &n, NULL)) == CK_OK && n > 0)
        for (uint32_t i = 0; i < n; i++) {
            memcpy(key, &rows[i].op_id, 8);
            memcpy(key + 8, rows[i].key.p, rows[i].key.n);
            ck_view k = {key, rows[i].key.n + 8};
            if (kind == CK_MARK_BASE)
                model_put(&m->base, k, rows[i].value);
            else if (rows[i].kind == 2)
                model_put(&m->delta_erases, k, (ck_view){"", 0});
            else
                model_put(&m->delta_puts, k, rows[i].value);
        }
    ck_mark_scan_free(scan);
    return s;
}

static void *read_mark(void *arg) {
    live_mark *m = arg;
    m->status = read_scan(m, CK_MARK_BASE);
    if (m->status == CK_OK && m->has_delta) m->status = read_scan(m, CK_MARK_DELTA);
    return NULL;
}

static void take_mark(world *w, live_mark *m) {
    ck_error err = CK_ERROR_INIT;
    *m = (live_mark){.checkpoint = w->next_checkpoint++};
    assert_int_equal(ck_state_mark_take(w->store, m->checkpoint, &m->mark, &err), CK_OK);
    m->want = model_clone(&w->now);
    m->parent = ck_state_mark_parent(m->mark);
    m->has_delta = m->parent != 0;
    assert_true(m->parent == 0 || m->parent == w->completed);
    assert_int_equal(ck_state_mark_rows(m->mark), w->now.n);
    assert_int_equal(pthread_create(&m->reader, NULL, read_mark, m), 0);
}

static void end_mark(world *w, live_mark *m, bool complete, bool settle_first) {
    bool last_parent = m->parent == w->completed;
    if (settle_first && !complete) ck_state_aborted(w->store, m->checkpoint);
    pthread_join(m->reader, NULL);
    assert_int_equal(m->status, CK_OK);
    model_assert_equal(&m->base, &m->want);
    if (m->has_delta && last_parent) { /* the parent's file with the delta on top is the mark */
        model sum = model_clone(&w->stored);
        for (size_t i = 0; i < m->delta_erases.n; i++)
            model_erase(&sum, (ck_view){m->delta_erases.e[i].key, m->delta_erases.e[i].key_n});
        for (size_t i = 0; i < m->delta_puts.n; i++)
            model_put(&sum, (ck_view){m->delta_puts.e[i].key, m->delta_puts.e[i].key_n},
                      (ck_view){m->delta_puts.e[i].value, m->delta_puts.e[i].value_n});
        model_assert_equal(&sum, &m->want);
        model_clear(&sum);
        assert_true(m->delta_puts.n + m->delta_erases.n <= ck_state_mark_changed_rows(m->mark) ||
                    ck_state_mark_changed_rows(m->mark) >= m->delta_puts.n);
        if (!ck_state_mark_changed(m->mark)) assert_int_equal(m->delta_puts.n + m->delta_erases.n, 0);
    }
    if (complete) {
        ck_state_completed(w->store, m->checkpoint);
        w->completed = m->checkpoint;
        model_clear(&w->stored);
        w->stored = model_clone(&m->want);
    } else if (!settle_first) {
        ck_state_aborted(w->store, m->checkpoint);
    }
    ck_state_mark_release(m->mark);
    model_clear(&m->want);
    model_clear(&m->base);
    model_clear(&m->delta_puts);
    model_clear(&m->delta_erases);
}

/* ---- whole runs ---- */

static void check_tables(world *w) {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) rows += ck_table_row_count(w->tables[i]);
    assert_int_equal(rows, w->now.n);
    live_mark m;
    take_mark(w, &m);
    end_mark(w, &m, false, false);
}

static void random_run(const backend *b, uint64_t seed, uint64_t domain, uint32_t groups, uint32_t rows_max,
                       int steps) {
    world w;
    world_open(&w, b, seed, domain, groups);
    w.rows_max = rows_max;
    open_tables(&w);
    live_mark room[3], *marks[3] = {&room[0], &room[1], &room[2]}; /* live ones first; readers hold the addresses */
    uint32_t live = 0;
    for (int i = 0; i < steps; i++) {
        step(&w);
        uint64_t r = model_below(&w.seed, 60);
        if (r < 3 && live < 3) {
            take_mark(&w, marks[live++]);
        } else if (r < 6 && live > 0) { /* in any order of release; an older one is only ever aborted after a newer */
            uint32_t k = (uint32_t)model_below(&w.seed, live);
            bool complete = model_below(&w.seed, 3) > 0 && marks[k]->checkpoint > w.completed;
            end_mark(&w, marks[k], complete, r == 5);
            live_mark *ended = marks[k];
            marks[k] = marks[--live];
            marks[live] = ended;
        }
    }
    while (live > 0) end_mark(&w, marks[--live], false, false);
    check_tables(&w);
    if (b->spills && b->aim_at == 0) assert_true(ck_state_spilled_bytes(w.store) > 0);
    if (b->often && !b->aim_at) assert_true(w.most_cold > 0);
    world_close(&w);
}

static void random_runs(void **state) {
    const backend *b = *state;
    print_message("    %s\n", b->name);
    for (uint64_t seed = 1; seed <= (b->often ? 6 : 12); seed++)
        random_run(b, seed, seed % 3 ? 40 : 2000, seed % 4 ? GROUPS : 1000, 40, 500);
    random_run(b, 100, 8000, GROUPS, 1000, 40); /* many pages */
}

/* ---- restore ---- */

static void restore_into(world *to, const model *rows, ck_key_group_range range) {
    ck_error err = CK_ERROR_INIT;
    ck_state_store_free(to->store);
    to->backend = &backends[((size_t)(to->backend - backends) + 1) %
                            CK_ARRAY_COUNT(backends)]; /* what one wrote, another reads */
    open_store(to, range, 99);
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        const char *uid = i % 3 ? "agg(a)<-t" : "join(b)<-t";
        if (i != 4 && i != 7 && i != 9) /* these come as bytes: nobody said what they are */
            assert_int_equal(ck_state_restore_slot(to->store, ck_op_id(uid), uid, "group_agg", &to->slots[i], &err),
                             CK_OK);
    }
    uint64_t seed = range.first + 1;
    for (size_t i = 0, n = 0; i < rows->n; i += n) { /* any number at once */
        enum { AT_ONCE = 200 };
        ck_stored_row some[AT_ONCE];
        uint64_t op, other, most = model_below(&seed, 4) ? 1 + model_below(&seed, AT_ONCE) : 1;
        memcpy(&op, rows->e[i].key, 8);
        for (n = 0; n < most && i + n < rows->n; n++) {
            const model_entry *e = &rows->e[i + n];
            memcpy(&other, e->key, 8);
            if (other != op) break;
            some[n] = (ck_stored_row){{e->key + 8, e->key_n - 8}, {e->value, e->value_n}};
        }
        bool twice = n < AT_ONCE; /* is once */
        if (twice) some[n] = some[n - 1];
        ck_status s = ck_state_restore_puts(to->store, op, some, (uint32_t)n + twice, &err);
        if (s != CK_OK) fail_msg("%s", err.msg);
    }
    assert_int_equal(ck_state_restore_end(to->store, &err), CK_OK);
    open_tables(to);
}

static void restores(void **state) {
    world w;
    world_open(&w, *state, 77, 300, GROUPS);
    open_tables(&w);
    for (int i = 0; i < 300; i++) step(&w);
    model all = model_clone(&w.now);
    size_t kept = 0;
    for (uint32_t part = 0; part < 3; part++) { /* three subtasks: each keeps its groups, together they have all */
        ck_key_group_range range = ck_key_group_range_for_subtask(part, 3, GROUPS);
        restore_into(&w, &all, range);
        model_clear(&w.now);
        for (size_t i = 0; i < all.n; i++)
            if (ck_key_group_in(range, (uint8_t)all.e[i].key[8]))
                model_put(&w.now, (ck_view){all.e[i].key, all.e[i].key_n}, (ck_view){all.e[i].value, all.e[i].value_n});
        kept += w.now.n;
        check_tables(&w);
    }
    assert_int_equal(kept, all.n);
    restore_into(&w, &all, (ck_key_group_range){0, GROUPS - 1});
    model_clear(&w.now);
    w.now = model_clone(&all);
    for (int i = 0; i < 200; i++) step(&w); /* and it goes on */
    check_tables(&w);
    ck_error err = CK_ERROR_INIT;
    for (size_t i = 0; i < w.now.n; i++) { /* every row again as an erase */
        uint64_t op;
        memcpy(&op, w.now.e[i].key, 8);
        ck_view key = {w.now.e[i].key + 8, w.now.e[i].key_n - 8};
        assert_int_equal(ck_state_restore_erase(w.store, op, key, &err), CK_OK);
        assert_int_equal(ck_state_restore_erase(w.store, op, key, &err), CK_OK); /* missing is fine */
    }
    model_clear(&w.now);
    check_tables(&w);
    model_clear(&all);
    world_close(&w);
}

static void ranges_are_erased(void **state) {
    world w;
    ck_error err = CK_ERROR_INIT;
    world_open(&w, *state, 31, 300, GROUPS);
    open_tables(&w);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 40; i++) step(&w);
        size_t first = (size_t)model_below(&w.seed, w.now.n), last = first;
        uint64_t op, most = model_below(&w.seed, 40);
        ck_bytes from, to; /* of one operator: its number stands in front in the model */
        ck_bytes_init(&from, w.own, SIZE_MAX);
        ck_bytes_init(&to, w.own, SIZE_MAX);
        memcpy(&op, w.now.e[first].key, 8);
        while (last < w.now.n && last - first < most && memcmp(w.now.e[last].key, &op, 8) == 0) last++;
        bool to_the_end = last == w.now.n || memcmp(w.now.e[last].key, &op, 8) != 0;
        assert_int_equal(ck_bytes_append(&from, w.now.e[first].key + 8, w.now.e[first].key_n - 8), CK_OK);
        if (to_the_end)
            assert_int_equal(ck_bytes_append(&to, "\377\377\377", 3), CK_OK);
        else
            assert_int_equal(ck_bytes_append(&to, w.now.e[last].key + 8, w.now.e[last].key_n - 8), CK_OK);
        ck_status s = ck_state_restore_erase_range(w.store, op, ck_bytes_as_view(&from), ck_bytes_as_view(&to), &err);
        if (s != CK_OK) fail_msg("%s", err.msg);
        while (last-- > first) model_erase(&w.now, (ck_view){w.now.e[first].key, w.now.e[first].key_n});
        check_tables(&w);
        ck_bytes_destroy(&from);
        ck_bytes_destroy(&to);
    }
    world_close(&w);
}

static void damaged_rows_are_refused(void **state) {
    world w;
    world_open(&w, *state, 5, 300, GROUPS);
    open_tables(&w);
    for (int i = 0; i < 200; i++) step(&w);
    model all = model_clone(&w.now);
    uint64_t seed = 1;
    for (size_t i = 0; i < all.n; i++) { /* any bytes: refused or taken, never a crash */
        model_entry *e = &all.e[i];
        uint64_t op;
        memcpy(&op, e->key, 8);
        ck_error err = CK_ERROR_INIT;
        size_t key_n = e->key_n - 8, value_n = e->value_n;
        if (model_below(&seed, 2)) key_n = model_below(&seed, key_n + 1);
        if (model_below(&seed, 2)) value_n = model_below(&seed, value_n + 1);
        if (key_n > 1) e->key[8 + model_below(&seed, key_n)] ^= (char)model_below(&seed, 256);
        if (value_n) e->value[model_below(&seed, value_n)] ^= (char)model_below(&seed, 256);
        ck_stored_row row = {{e->key + 8, key_n}, {e->value, value_n}};
        ck_status s = ck_state_restore_put(w.store, op, row, &err);
        if (s != CK_OK && s != CK_CORRUPT) fail_msg("%s: %s", ck_status_name(s), err.msg);
        s = ck_state_restore_erase(w.store, op, row.key, &err);
        assert_true(s == CK_OK || s == CK_CORRUPT);
    }
    model_clear(&all);
    world_close(&w);
}

#define ON_BACKEND(f, i)                                                                                               \
    { #f, f, NULL, NULL, (void *)(uintptr_t)&backends[i] }
#define EACH_BACKEND(f)                                                                                                \
    ON_BACKEND(f, 0), ON_BACKEND(f, 1), ON_BACKEND(f, 2), ON_BACKEND(f, 3), ON_BACKEND(f, 4), ON_BACKEND(f, 5),        \
        ON_BACKEND(f, 6)

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH_BACKEND(random_runs),
        EACH_BACKEND(restores),
        EACH_BACKEND(ranges_are_erased),
        EACH_BACKEND(damaged_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, make_rocks, free_rocks);
}
