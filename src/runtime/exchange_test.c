#include "runtime/exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "runtime/test_kit.h"
#include "stream/key_groups.h"

enum { TARGETS_MAX = 9, KEY_GROUPS = 128 };

typedef struct fixture {
    ck_test_proc t;
    ck_manual_clock clock;
    ck_exchange_group group;
    ck_channel channels[TARGETS_MAX];
    uint32_t targets, key_groups;
    ck_exchange *x;
    ck_field fields[2];
    ck_schema schema;
} fixture;

static ck_mem queue_mem(fixture *f) { return ck_proc_mem(&f->t.proc, CK_MEM_QUEUE); }

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    ck_manual_clock_init(&f.clock, 1000, 7000);
    f.t.proc.clock = &f.clock.base;
    f.fields[0] = (ck_field){"k", ck_type_simple(CK_TYPE_BIGINT), true};
    f.fields[1] = (ck_field){"s", ck_type_simple(CK_TYPE_VARCHAR), true};
    f.schema = (ck_schema){f.fields, 2};
    f.key_groups = KEY_GROUPS;
    *state = &f;
    return ck_exchange_group_init(&f.group, &f.t.proc, queue_mem(&f)) == CK_OK ? 0 : -1;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_exchange_group_destroy(&f->group);
    for (uint32_t t = 0; t < f->targets; t++) ck_channel_destroy(&f->channels[t]);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static const uint32_t key0[] = {0};

static void make(fixture *f, ck_edge_kind kind, uint32_t targets, uint32_t batch_rows) {
    ck_exchange_config cfg = {.kind = kind,
                              .schema = &f->schema,
                              .key = key0,
                              .key_count = kind == CK_EDGE_HASH,
                              .key_groups = f->key_groups,
                              .target_count = targets,
                              .batch_rows = batch_rows};
    assert_int_equal(ck_exchange_new(&f->group, &cfg, &f->x, NULL), CK_OK);
    f->targets = ck_exchange_channels(f->x);
    for (uint32_t t = 0; t < f->targets; t++) {
        ck_channel_init(&f->channels[t], queue_mem(f), 64 << 20, 100000);
        ck_exchange_connect(f->x, t, &f->channels[t]);
    }
}

/* Keys first, first + 1, ...; every 10th is NULL; long strings every 4th. */
static ck_batch *rows(fixture *f, int64_t first, uint32_t n, size_t string_bytes) {
    ck_batch_builder b;
    static char text[4096];
    assert_int_equal(ck_batch_builder_init(&b, queue_mem(f), &f->schema, n), CK_OK);
    for (uint32_t i = 0; i < n; i++) {
        int64_t k = first + i;
        if (k % 10 == 9)
            assert_int_equal(ck_build_null(&b.columns[0]), CK_OK);
        else
            assert_int_equal(ck_build_i64(&b.columns[0], k), CK_OK);
        int len = snprintf(text, sizeof text, "v%lld", (long long)k);
        if (k % 4 == 0 && string_bytes > (size_t)len)
            memset(text + len, 'x', string_bytes - (size_t)len), len = (int)string_bytes;
        assert_int_equal(ck_build_str(&b.columns[1], text, (size_t)len), CK_OK);
        ck_batch_builder_row(&b, k % 7 == 3 ? -1 : 1);
    }
    ck_batch *out = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    return out;
}

static void send(fixture *f, ck_batch *b) { assert_int_equal(ck_exchange_batch(f->x, &b), CK_OK); }

static uint32_t owner_of(const fixture *f, int64_t k) {
    uint8_t bytes[8] = {0xff};
    size_t n = k % 10 == 9 ? 1 : 8;
    if (n == 8) memcpy(bytes, &k, 8);
    uint32_t group = ck_key_group_for_key((ck_view){(char *)bytes, n}, f->key_groups);
    return ck_subtask_for_key_group(group, f->targets, f->key_groups);
}

/* Everything in the channel of a target: rows checked and marked in seen. */
static uint32_t drain(fixture *f, uint32_t t, uint8_t *seen, int64_t seen_max, uint32_t *largest) {
    ck_event ev;
    uint32_t total = 0;
    while (ck_channel_pop(&f->channels[t], &ev)) {
        if (ev.kind != CK_EVENT_BATCH) continue;
        ck_batch *b = ev.batch;
        if (largest && b->sel_count > *largest) *largest = b->sel_count;
        for (uint32_t i = 0; i < b->sel_count; i++) {
            uint32_t row = ck_batch_row(b, i);
            long long k = -1;
            ck_view s = ck_column_str(b->columns[1], row);
            char text[32] = {0};
            memcpy(text, s.p, s.n < 31 ? s.n : 31);
            assert_int_equal(sscanf(text, "v%lld", &k), 1);
            assert_true(k >= 0 && k < seen_max);
            assert_int_equal(seen[k], 0);
            seen[k] = 1;
            assert_int_equal(ck_column_is_null(b->columns[0], row), k % 10 == 9);
            if (k % 10 != 9) assert_int_equal(b->columns[0]->i64[row], k);
            assert_int_equal(ck_batch_weight(b, row), k % 7 == 3 ? -1 : 1);
            if (f->targets > 1) assert_int_equal(owner_of(f, k), t);
        }
        total += b->sel_count;
        ck_batch_unref(&b);
    }
    return total;
}

static void rows_go_to_the_owner_of_their_group(void **state) {
    fixture *f = *state;
    static uint8_t seen[20000];
    memset(seen, 0, sizeof seen);
    make(f, CK_EDGE_HASH, 5, 4096);
    uint32_t total = 0, largest = 0;
    for (int64_t k = 0; k < 16000; k += 4000) {
        ck_batch *all = rows(f, k, 4000, 40);
        uint16_t sel[4000];
        uint32_t n = 0;
        for (uint32_t i = 0; i < 4000; i += 2) sel[n++] = (uint16_t)i; /* a selection: every other row */
        ck_batch *half = ck_batch_select(all, sel, n);
        ck_batch_unref(&all);
        send(f, half);
    }
    assert_int_equal(ck_exchange_flush(&f->group), CK_OK);
    for (uint32_t t = 0; t < 5; t++) total += drain(f, t, seen, 16000, &largest);
    assert_int_equal(total, 8000);
    for (int64_t k = 0; k < 16000; k++) assert_int_equal(seen[k], k % 2 == 0);
    assert_true(largest <= CK_EXCHANGE_GATHER_ROWS);
    assert_int_equal(f->group.gathered_bytes, 0);
}

/* Whatever the numbers of groups and targets, with a selection and without, a row goes where its key is owned (drain
 * looks). */
static void any_number_of_groups(void **state) {
    fixture *f = *state;
    static const uint32_t groups[] = {16, 100, 128, 1000, 1024}, targets[] = {2, 3, 4, 7, 9};
    static uint8_t seen[5200];
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
            uint32_t total = 0;
            memset(seen, 0, sizeof seen);
            f->key_groups = groups[g];
            make(f, CK_EDGE_HASH, targets[t], 4096);
            send(f, rows(f, 0, 4096, 0));
            ck_batch *all = rows(f, 4096, 1000, 20);
            uint16_t sel[500];
            for (uint16_t i = 0; i < 500; i++) sel[i] = (uint16_t)(2 * i + 1);
            send(f, ck_batch_select(all, sel, 500));
            ck_batch_unref(&all);
            assert_int_equal(ck_exchange_flush(&f->group), CK_OK);
            for (uint32_t i = 0; i < f->targets; i++) {
                uint32_t got = drain(f, i, seen, 5200, NULL);
                assert_true(got > 0);
                total += got;
                ck_channel_destroy(&f->channels[i]);
            }
            assert_int_equal(total, 4596);
        }
    f->targets = 0;
}

/* Few targets get selections of one batch, behind what was gathered for them before. */
static void few_targets_share_a_batch(void **state) {
    fixture *f = *state;
    static uint8_t seen[9000];
    memset(seen, 0, sizeof seen);
    make(f, CK_EDGE_HASH, 3, 4096);
    send(f, rows(f, 0, 50, 0));
    ck_batch *big = rows(f, 50, 4000, 40);
    const ck_column *column = big->columns[0];
    send(f, big);
    for (uint32_t t = 0; t < 3; t++) {
        ck_event ev;
        int64_t last = -1;
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(ck_channel_pop(&f->channels[t], &ev));
            assert_int_equal(ev.batch->columns[0] == column, i == 1);
            for (uint32_t k = 0; k < ev.batch->sel_count; k++) {
                uint32_t row = ck_batch_row(ev.batch, k);
                if (ck_column_is_null(ev.batch->columns[0], row)) continue;
                assert_true(ev.batch->columns[0]->i64[row] > last);
                last = ev.batch->columns[0]->i64[row];
                assert_int_equal(owner_of(f, last), t);
                seen[last]++;
            }
            ck_batch_unref(&ev.batch);
        }
        assert_int_equal(ck_channel_events(&f->channels[t]), 0);
    }
    for (int64_t k = 0; k < 4050; k++) assert_int_equal(seen[k], k % 10 != 9);
    assert_int_equal(f->group.gathered_bytes, 0);
}

/* Each target's rows are under a quarter of what the batch pins; all together are not, and they go without a copy. */
static void what_is_sparse_is_the_whole(void **state) {
    fixture *f = *state;
    make(f, CK_EDGE_HASH, 3, 4096);
    for (uint32_t fifths = 1; fifths <= 3; fifths += 2) {
        ck_batch *all = rows(f, 0, 4000, 1000);
        const ck_column *column = all->columns[0];
        uint16_t sel[4000];
        uint32_t n = 0;
        for (uint32_t i = 0; i < 4000; i++)
            if (i % 5 < fifths || i % 4) sel[n++] = (uint16_t)i; /* the long strings are every fourth row's */
        ck_batch *some = ck_batch_select(all, sel, n);
        ck_batch_unref(&all);
        send(f, some);
        for (uint32_t t = 0; t < 3; t++) {
            ck_event ev;
            assert_true(ck_channel_pop(&f->channels[t], &ev));
            assert_int_equal(ev.batch->columns[0] == column, fifths == 3);
            ck_batch_unref(&ev.batch);
        }
    }
}

static void gathered_rows_wait_for_company(void **state) {
    fixture *f = *state;
    static uint8_t seen[100];
    memset(seen, 0, sizeof seen);
    make(f, CK_EDGE_HASH, 3, 4096);
    assert_int_equal(ck_exchange_deadline(&f->group), INT64_MAX);
    send(f, rows(f, 0, 50, 0));
    for (uint32_t t = 0; t < 3; t++) assert_int_equal(ck_channel_events(&f->channels[t]), 0);
    assert_int_equal(ck_exchange_deadline(&f->group), 1000 + CK_EXCHANGE_DELAY_US);
    ck_manual_clock_advance(&f->clock, 100);
    send(f, rows(f, 50, 10, 0));
    assert_int_equal(ck_exchange_deadline(&f->group), 1000 + CK_EXCHANGE_DELAY_US); /* the oldest row counts */
    ck_event wm = ck_event_watermark(5, false);
    assert_int_equal(ck_exchange_control(f->x, &wm), CK_OK); /* rows first, then the watermark */
    assert_int_equal(ck_exchange_deadline(&f->group), INT64_MAX);
    uint32_t total = 0;
    for (uint32_t t = 0; t < 3; t++) {
        assert_int_equal(ck_channel_events(&f->channels[t]), 2);
        total += drain(f, t, seen, 60, NULL);
    }
    assert_int_equal(total, 60);
}

static void one_row_batches_go_at_once(void **state) {
    fixture *f = *state;
    static uint8_t seen[100];
    memset(seen, 0, sizeof seen);
    make(f, CK_EDGE_HASH, 4, 1);
    uint32_t total = 0, largest = 0;
    send(f, rows(f, 0, 30, 0));
    assert_int_equal(f->group.gathered_bytes, 0);
    for (uint32_t t = 0; t < 4; t++) total += drain(f, t, seen, 30, &largest);
    assert_int_equal(total, 30);
    assert_int_equal(largest, 1);
}

static void gathering_is_bounded(void **state) {
    fixture *f = *state;
    static uint8_t seen[8000];
    memset(seen, 0, sizeof seen);
    make(f, CK_EDGE_HASH, 8, 4096);
    uint32_t total = 0;
    for (int64_t k = 0; k < 8000; k += 20) {
        send(f, rows(f, k, 20, 4000)); /* long strings: bytes fill up before rows do */
        assert_true(f->group.gathered_bytes <= CK_EXCHANGE_SUBTASK_BYTES);
    }
    assert_int_equal(ck_exchange_flush(&f->group), CK_OK);
    for (uint32_t t = 0; t < 8; t++) total += drain(f, t, seen, 8000, NULL);
    assert_int_equal(total, 8000);
}

static void one_target_gets_batches_by_reference(void **state) {
    fixture *f = *state;
    make(f, CK_EDGE_HASH, 1, 4096);
    ck_batch *b = rows(f, 0, 10, 0), *same = ck_batch_ref(b);
    send(f, b);
    ck_event ev;
    assert_true(ck_channel_pop(&f->channels[0], &ev));
    assert_ptr_equal(ev.batch, same);
    ck_batch_unref(&ev.batch);
    ck_batch_unref(&same);
}

static void the_empty_key_has_one_owner(void **state) {
    fixture *f = *state;
    make(f, CK_EDGE_HASH, 4, 4096);
    ck_exchange_group_destroy(&f->group);
    assert_int_equal(ck_exchange_group_init(&f->group, &f->t.proc, queue_mem(f)), CK_OK);
    ck_exchange_config cfg = {
        .kind = CK_EDGE_HASH, .schema = &f->schema, .key_groups = KEY_GROUPS, .target_count = 4, .batch_rows = 4096};
    assert_int_equal(ck_exchange_new(&f->group, &cfg, &f->x, NULL), CK_OK);
    for (uint32_t t = 0; t < 4; t++) ck_exchange_connect(f->x, t, &f->channels[t]);
    send(f, rows(f, 0, 4000, 0));
    send(f, rows(f, 0, 40, 0));
    assert_int_equal(ck_exchange_flush(&f->group), CK_OK);
    uint32_t owner = ck_subtask_for_key_group(ck_key_group_for_key(CK_VIEW(""), KEY_GROUPS), 4, KEY_GROUPS);
    for (uint32_t t = 0; t < 4; t++) assert_int_equal(ck_channel_events(&f->channels[t]), t == owner ? 2 : 0);
}

static void the_other_kinds(void **state) {
    fixture *f = *state;
    ck_event ev;
    make(f, CK_EDGE_REBALANCE, 3, 4096);
    for (int i = 0; i < 7; i++) send(f, rows(f, 0, 10, 0));
    assert_int_equal(ck_channel_events(&f->channels[0]), 3);
    assert_int_equal(ck_channel_events(&f->channels[1]), 2);
    ck_channel_close(&f->channels[1]);
    for (int i = 0; i < 4; i++) send(f, rows(f, 0, 10, 0)); /* the first to a closed one is lost on purpose */
    assert_true(ck_channel_events(&f->channels[0]) + ck_channel_events(&f->channels[2]) >= 8);
    for (uint32_t t = 0; t < 3; t++) ck_channel_destroy(&f->channels[t]);

    make(f, CK_EDGE_BROADCAST, 3, 4096);
    ck_batch *b = rows(f, 0, 10, 0);
    send(f, b);
    for (uint32_t t = 0; t < 3; t++) {
        assert_true(ck_channel_pop(&f->channels[t], &ev));
        ck_batch_unref(&ev.batch);
    }
    for (uint32_t t = 0; t < 3; t++) ck_channel_destroy(&f->channels[t]);

    make(f, CK_EDGE_FORWARD, 3, 4096);
    assert_int_equal(f->targets, 1);
}

static void sparse_batches_are_compacted(void **state) {
    fixture *f = *state;
    make(f, CK_EDGE_FORWARD, 1, 4096);
    ck_batch *all = rows(f, 0, 4000, 100);
    uint16_t sel[] = {17, 1900};
    ck_batch *two = ck_batch_select(all, sel, 2);
    ck_batch_unref(&all);
    send(f, two);
    assert_true(ck_channel_bytes(&f->channels[0]) < 4096);
}

static void nobody_left_says_closed(void **state) {
    fixture *f = *state;
    make(f, CK_EDGE_HASH, 3, 4096);
    ck_channel_close(&f->channels[0]);
    ck_channel_close(&f->channels[1]);
    assert_false(ck_exchange_is_closed(f->x));
    send(f, rows(f, 0, 1000, 0));
    ck_channel_close(&f->channels[2]);
    assert_true(ck_exchange_is_closed(f->x));
    ck_batch *b = rows(f, 0, 10, 0);
    assert_int_equal(ck_exchange_batch(f->x, &b), CK_CLOSED);
    assert_null(b);
    ck_event end = ck_event_end();
    assert_int_equal(ck_exchange_control(f->x, &end), CK_OK);
}

static void full_targets_show(void **state) {
    fixture *f = *state;
    make(f, CK_EDGE_FORWARD, 1, 4096);
    ck_channel_destroy(&f->channels[0]);
    ck_channel_init(&f->channels[0], queue_mem(f), 1 << 20, 2);
    send(f, rows(f, 0, 1, 0));
    assert_false(f->group.full);
    send(f, rows(f, 1, 1, 0));
    assert_true(f->group.full);
    assert_true(ck_exchange_any_full(&f->group));
    ck_event ev;
    assert_true(ck_channel_pop(&f->channels[0], &ev));
    ck_batch_unref(&ev.batch);
    assert_false(ck_exchange_any_full(&f->group));
}

static void every_allocation_may_fail(void **state) {
    fixture *f = *state;
    ck_exchange_group_destroy(&f->group);
    ck_batch *a = rows(f, 0, 300, 50), *b = rows(f, 300, 300, 50);
    for (uint32_t t = 0; t < 3; t++) ck_channel_init(&f->channels[t], queue_mem(f), 64 << 20, 1000);
    f->targets = 3;
    for (uint64_t n = 1;; n++) {
        ck_exchange_config cfg = {.kind = CK_EDGE_HASH,
                                  .schema = &f->schema,
                                  .key = key0,
                                  .key_count = 1,
                                  .key_groups = KEY_GROUPS,
                                  .target_count = 3,
                                  .batch_rows = 100};
        ck_batch *ra = ck_batch_ref(a), *rb = ck_batch_ref(b);
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status s = ck_exchange_group_init(&f->group, &f->t.proc, queue_mem(f));
        if (s == CK_OK) s = ck_exchange_new(&f->group, &cfg, &f->x, NULL);
        for (uint32_t t = 0; t < 3 && s == CK_OK; t++) ck_exchange_connect(f->x, t, &f->channels[t]);
        if (s == CK_OK) s = ck_exchange_batch(f->x, &ra);
        if (s == CK_OK) s = ck_exchange_batch(f->x, &rb);
        if (s == CK_OK) s = ck_exchange_flush(&f->group);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        ck_batch_unref(&ra);
        ck_batch_unref(&rb);
        ck_exchange_group_destroy(&f->group);
        for (uint32_t t = 0; t < 3; t++) {
            ck_channel_destroy(&f->channels[t]);
            ck_channel_init(&f->channels[t], queue_mem(f), 64 << 20, 1000);
        }
        if (!fired) {
            assert_int_equal(s, CK_OK);
            break;
        }
        assert_true(s == CK_NOMEM || s == CK_OK); /* compaction may do without */
    }
    ck_batch_unref(&a);
    ck_batch_unref(&b);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(rows_go_to_the_owner_of_their_group),
        T(any_number_of_groups),
        T(few_targets_share_a_batch),
        T(what_is_sparse_is_the_whole),
        T(gathered_rows_wait_for_company),
        T(one_row_batches_go_at_once),
        T(gathering_is_bounded),
        T(one_target_gets_batches_by_reference),
        T(the_empty_key_has_one_owner),
        T(the_other_kinds),
        T(sparse_batches_are_compacted),
        T(nobody_left_says_closed),
        T(full_targets_show),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
