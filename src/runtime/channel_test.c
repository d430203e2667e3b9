#include "runtime/channel.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "data/builder.h"
#include "os/test_proc.h"

static int setup(void **state) {
    static ck_test_proc t;
    ck_test_proc_init(&t);
    *state = &t;
    return 0;
}
static int teardown(void **state) {
    ck_test_proc_destroy(*state);
    return 0;
}

static ck_batch *batch_of(ck_mem mem, int64_t v, uint32_t rows) {
    ck_batch *b = ck_batch_new(mem, 1, rows, false, false);
    ck_column *c = ck_column_new(mem, CK_PHYS_I64, rows);
    for (uint32_t i = 0; i < rows; i++) c->i64[i] = v;
    ck_batch_set_column(b, 0, &c);
    return b;
}
static ck_status push_value(ck_channel *ch, ck_mem mem, int64_t v, uint32_t rows) {
    ck_event ev = ck_event_batch(batch_of(mem, v, rows));
    return ck_channel_push(ch, &ev);
}
static int64_t pop_value(ck_channel *ch) {
    ck_event ev;
    if (!ck_channel_pop(ch, &ev)) return -1;
    int64_t v = ev.batch->columns[0]->i64[0];
    ck_batch_unref(&ev.batch);
    return v;
}

static void order_is_kept(void **state) {
    ck_test_proc *t = *state;
    ck_mem mem = ck_proc_mem(&t->proc, CK_MEM_QUEUE);
    ck_channel ch;
    ck_event ev;
    ck_channel_init(&ch, mem, 1 << 20, 1000);
    assert_false(ck_channel_pop(&ch, &ev));
    for (int round = 0; round < 3; round++) {
        for (int64_t i = 0; i < 100; i++) assert_int_equal(push_value(&ch, mem, i, 1), CK_OK);
        assert_int_equal(ck_channel_events(&ch), 100);
        for (int64_t i = 0; i < 100; i++) assert_int_equal(pop_value(&ch), i);
        assert_false(ck_channel_pop(&ch, &ev));
        assert_int_equal(ck_channel_bytes(&ch), 0);
    }
    for (int64_t i = 0; i < 40; i++) assert_int_equal(push_value(&ch, mem, i, 1), CK_OK);
    ck_channel_destroy(&ch); /* with what is in it */
}

static void full_is_an_answer_not_a_refusal(void **state) {
    ck_test_proc *t = *state;
    ck_mem mem = ck_proc_mem(&t->proc, CK_MEM_QUEUE);
    ck_channel ch;
    ck_channel_init(&ch, mem, 8 * 4000, 1000);
    int pushed = 0;
    ck_status s;
    do s = push_value(&ch, mem, pushed++, 1000); /* about 8,000 bytes each */
    while (s == CK_OK);
    assert_int_equal(s, CK_FULL);
    assert_in_range(pushed, 3, 5);
    assert_true(ck_channel_is_full(&ch));
    ck_event wm = ck_event_watermark(1, false);
    assert_int_equal(ck_channel_push(&ch, &wm), CK_FULL); /* taken all the same */
    assert_int_equal(ck_channel_events(&ch), pushed + 1);
    assert_int_equal(pop_value(&ch), 0);
    assert_true(ck_channel_is_full(&ch)); /* until half is free */
    assert_int_equal(pop_value(&ch), 1);
    if (ck_channel_is_full(&ch)) assert_int_equal(pop_value(&ch), 2);
    assert_false(ck_channel_is_full(&ch));
    ck_channel_destroy(&ch);

    ck_channel_init(&ch, mem, 1 << 20, 4);
    for (int i = 0; i < 3; i++) assert_int_equal(push_value(&ch, mem, i, 1), CK_OK);
    assert_int_equal(push_value(&ch, mem, 3, 1), CK_FULL); /* small batches are bounded by number */
    ck_channel_destroy(&ch);
}

static void a_closed_channel_drops(void **state) {
    ck_test_proc *t = *state;
    ck_mem mem = ck_proc_mem(&t->proc, CK_MEM_QUEUE);
    ck_channel ch;
    _Atomic bool hint = false;
    ck_channel_init(&ch, mem, 1 << 20, 2);
    ch.closed_hint = &hint;
    assert_int_equal(push_value(&ch, mem, 1, 1), CK_OK);
    assert_int_equal(push_value(&ch, mem, 2, 1), CK_FULL);
    ck_channel_close(&ch);
    assert_true(hint);
    assert_false(ck_channel_is_full(&ch));
    assert_int_equal(ck_channel_bytes(&ch), 0);
    assert_int_equal(push_value(&ch, mem, 3, 1), CK_CLOSED);
    ck_event end = ck_event_end();
    assert_int_equal(ck_channel_push(&ch, &end), CK_CLOSED);
    ck_channel_close(&ch);
    ck_channel_destroy(&ch);
}

static void without_memory_the_batch_is_dropped(void **state) {
    ck_test_proc *t = *state;
    ck_mem mem = ck_proc_mem(&t->proc, CK_MEM_QUEUE);
    ck_channel ch;
    ck_channel_init(&ch, mem, 1 << 20, 100);
    ck_event ev = ck_event_batch(batch_of(mem, 1, 1));
    ck_tracked_heap_fail_nth(t->heap, 1);
    assert_int_equal(ck_channel_push(&ch, &ev), CK_NOMEM);
    assert_false(ck_channel_pop(&ch, &ev));
    assert_int_equal(push_value(&ch, mem, 2, 1), CK_OK);
    assert_int_equal(pop_value(&ch), 2);
    ck_channel_destroy(&ch);
}

/* ---- two threads ---- */

enum { VALUES = 4000 /* on a busy machine each time one side is full or empty costs a turn of all others */ };
typedef struct pair {
    ck_channel ch;
    ck_mem mem;
    _Atomic bool stop;
    size_t most_bytes;
} pair;

static void *produce(void *arg) {
    pair *p = arg;
    for (int64_t i = 0; i < VALUES; i++) {
        ck_status s = push_value(&p->ch, p->mem, i, 10);
        if (s == CK_CLOSED) break;
        if (ck_channel_bytes(&p->ch) > p->most_bytes) p->most_bytes = ck_channel_bytes(&p->ch);
        while (s == CK_FULL && ck_channel_is_full(&p->ch)) sched_yield();
    }
    return NULL;
}

static void two_threads_agree(void **state) {
    ck_test_proc *t = *state;
    pair p = {.mem = ck_proc_mem(&t->proc, CK_MEM_QUEUE)};
    pthread_t thread;
    ck_channel_init(&p.ch, p.mem, 4096, 1000);
    pthread_create(&thread, NULL, produce, &p);
    for (int64_t want = 0; want < VALUES;) {
        int64_t v = pop_value(&p.ch);
        if (v < 0) {
            sched_yield();
            continue;
        }
        assert_int_equal(v, want++);
    }
    pthread_join(thread, NULL);
    assert_true(p.most_bytes < 4096 + 1024); /* the bound, and one more */
    assert_false(ck_channel_is_full(&p.ch));
    ck_channel_destroy(&p.ch);
}

static void closing_stops_a_producer(void **state) {
    ck_test_proc *t = *state;
    for (int round = 0; round < 12; round++) {
        pair p = {.mem = ck_proc_mem(&t->proc, CK_MEM_QUEUE)};
        pthread_t thread;
        ck_channel_init(&p.ch, p.mem, 2048, 1000);
        pthread_create(&thread, NULL, produce, &p);
        for (int i = 0; i < round * 12; i++)
            while (pop_value(&p.ch) < 0) sched_yield();
        ck_channel_close(&p.ch);
        pthread_join(thread, NULL); /* hangs if a full producer is not let go */
        ck_channel_close(&p.ch);
        ck_channel_destroy(&p.ch);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(order_is_kept),          T(full_is_an_answer_not_a_refusal),
        T(a_closed_channel_drops), T(without_memory_the_batch_is_dropped),
        T(two_threads_agree),      T(closing_stops_a_producer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
