/* Alignment: the rules one by one, then random orders against what each channel was sent. */
#include "checkpoint/align.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/hash.h"

static ck_budget budget;
static ck_mem mem;

static ck_align *open_align(uint32_t channels, uint64_t last) {
    ck_budget_init(&budget, ck_heap_system(), 0);
    mem = (ck_mem){&budget, CK_MEM_PLAN};
    ck_align *a;
    assert_int_equal(ck_align_new(mem, channels, last, &a), CK_OK);
    return a;
}

static void close_align(ck_align *a) {
    ck_align_free(a);
    assert_int_equal(ck_budget_total(&budget), 0);
}

static ck_align_step barrier(ck_align *a, uint32_t channel, uint64_t n) {
    return ck_align_barrier(a, channel, n, CK_BARRIER_PERIODIC, false, 100);
}

static void waits_for_all_channels(void **state) {
    (void)state;
    ck_align *a = open_align(3, 0);
    ck_align_step s = ck_align_barrier(a, 1, 1, CK_BARRIER_SAVEPOINT, false, 100);
    assert_true(s.block && !s.snapshot && !s.unblock && s.cancelled == 0);
    assert_true(ck_align_blocked(a, 1) && !ck_align_blocked(a, 0));
    int64_t since;
    assert_int_equal(ck_align_pending(a, &since), 1);
    assert_int_equal(since, 100);
    s = ck_align_barrier(a, 0, 1, CK_BARRIER_SAVEPOINT, false, 150);
    assert_true(s.block && !s.snapshot);
    s = ck_align_barrier(a, 2, 1, CK_BARRIER_SAVEPOINT, false, 170);
    assert_true(s.snapshot && s.unblock && !s.block);
    assert_int_equal(s.checkpoint, 1);
    assert_int_equal(s.kind, CK_BARRIER_SAVEPOINT);
    assert_int_equal(s.aligned_us, 70);
    for (uint32_t c = 0; c < 3; c++) assert_false(ck_align_blocked(a, c));
    assert_int_equal(ck_align_pending(a, NULL), 0);
    close_align(a);
}

static void one_channel_never_blocks(void **state) {
    (void)state;
    ck_align *a = open_align(1, 4);
    assert_false(barrier(a, 0, 4).snapshot); /* restored from it: stale */
    ck_align_step s = barrier(a, 0, 5);
    assert_true(s.snapshot && !s.block);
    close_align(a);
}

static void newer_supersedes_older(void **state) {
    (void)state;
    ck_align *a = open_align(3, 0);
    barrier(a, 0, 1);
    barrier(a, 1, 1);
    ck_align_step s = barrier(a, 2, 2); /* channel 2 never had 1 */
    assert_int_equal(s.cancelled, 1);
    assert_true(s.unblock && s.block && !s.snapshot);
    assert_true(!ck_align_blocked(a, 0) && !ck_align_blocked(a, 1) && ck_align_blocked(a, 2));
    s = barrier(a, 0, 2);
    assert_true(s.block && s.cancelled == 0);
    s = barrier(a, 1, 2);
    assert_true(s.snapshot && s.checkpoint == 2);
    s = barrier(a, 2, 1); /* stale */
    assert_true(!s.block && !s.snapshot && !s.unblock && s.cancelled == 0);
    close_align(a);
}

static void cancel_in_band(void **state) {
    (void)state;
    ck_align *a = open_align(2, 0);
    barrier(a, 0, 1);
    ck_align_step s = ck_align_cancel(a, 1, 1);
    assert_true(s.cancelled == 1 && s.unblock);
    assert_false(ck_align_blocked(a, 0));
    s = barrier(a, 1, 1); /* overtaken by its cancel elsewhere */
    assert_true(!s.block && !s.snapshot);
    s = ck_align_cancel(a, 0, 1); /* forwarded once */
    assert_true(s.cancelled == 0 && !s.unblock);
    s = ck_align_cancel(a, 0, 3); /* of one that never began here: forwarded all the same */
    assert_true(s.cancelled == 3 && !s.unblock);
    barrier(a, 0, 4);
    s = ck_align_cancel(a, 1, 5); /* a newer one is cancelled: 4 will not be complete either */
    assert_true(s.cancelled == 5 && s.unblock);
    barrier(a, 0, 6);
    s = barrier(a, 1, 6);
    assert_true(s.snapshot && s.checkpoint == 6);
    close_align(a);
}

static void end_counts_as_every_barrier(void **state) {
    (void)state;
    ck_align *a = open_align(3, 0);
    barrier(a, 0, 1);
    barrier(a, 1, 1);
    ck_align_step s = ck_align_end(a, 2, 130);
    assert_true(s.snapshot && s.checkpoint == 1 && s.aligned_us == 30);
    s = barrier(a, 2, 1); /* what the ended channel still sends */
    assert_true(!s.snapshot && !s.block);
    s = barrier(a, 2, 2); /* first from the ended one: it begins, but does not block that channel */
    assert_true(!s.block && !s.snapshot);
    barrier(a, 0, 2);
    s = barrier(a, 1, 2);
    assert_true(s.snapshot && s.checkpoint == 2);
    s = ck_align_end(a, 0, 200);
    assert_false(s.snapshot);
    s = ck_align_end(a, 0, 200);
    assert_false(s.snapshot);
    s = ck_align_end(a, 1, 200);
    assert_false(s.snapshot);
    s = barrier(a, 0, 3); /* all have ended: the first barrier is enough */
    assert_true(s.snapshot && s.checkpoint == 3 && !s.block);
    s = barrier(a, 1, 3);
    assert_false(s.snapshot);
    close_align(a);
}

static void overtaking_waits_for_strict_channels_only(void **state) {
    (void)state;
    ck_align *a = open_align(3, 0);
    ck_align_set_strict(a, 2);
    barrier(a, 0, 1);
    ck_align_step s = ck_align_overtake(a, 1, CK_BARRIER_PERIODIC, 120);
    assert_true(!s.snapshot && !s.unblock && ck_align_blocked(a, 0));
    s = barrier(a, 2, 1);
    assert_true(s.snapshot && s.overtaken && s.overtakes && s.unblock && !s.block);
    assert_true(!ck_align_missed(a, 0) && ck_align_missed(a, 1) && !ck_align_missed(a, 2));
    s = barrier(a, 1, 1); /* what it was is recorded elsewhere */
    assert_true(!s.snapshot && !s.block && s.cancelled == 0);
    s = ck_align_overtake(a, 1, CK_BARRIER_PERIODIC, 130); /* again */
    assert_false(s.snapshot);
    ck_align_end(a, 2, 140); /* an ended strict channel is not waited for */
    s = ck_align_overtake(a, 2, CK_BARRIER_PERIODIC, 150);
    assert_true(s.snapshot && s.overtaken && ck_align_missed(a, 0) && ck_align_missed(a, 1) && !ck_align_missed(a, 2));
    barrier(a, 0, 3);
    s = ck_align_overtake(a, 4, CK_BARRIER_PERIODIC, 160); /* newer than what was being aligned */
    assert_true(s.cancelled == 3 && s.snapshot && s.overtaken && ck_align_missed(a, 0));
    barrier(a, 0, 5);
    s = ck_align_barrier(a, 1, 5, CK_BARRIER_PERIODIC, true, 170); /* the last: nothing is overtaken, it is passed on */
    assert_true(s.snapshot && !s.overtaken && s.overtakes);
    close_align(a);
}

/* Each channel sends an ascending list of barriers, some missing, some as cancels, then END. Whatever the order of
 * reading: ids of snapshots and cancels ascend, a snapshot's barrier or END has been taken from every channel, no
 * blocked channel is read, and nothing blocks for ever. */
enum { CHANNELS = 5, IDS = 12 };

typedef struct sender {
    uint64_t next;
    uint64_t taken; /* newest barrier handed over */
    bool ended;
} sender;

static void random_order(uint64_t seed) {
    ck_align *a = open_align(CHANNELS, 0);
    sender senders[CHANNELS] = {0};
    uint64_t x = seed, last = 0;
    uint32_t open_channels = CHANNELS;
    while (open_channels) {
        bool any = false;
        for (uint32_t c = 0; c < CHANNELS; c++) any |= !senders[c].ended && !ck_align_blocked(a, c);
        assert_true(any);
        x = ck_mix64(x + 1);
        uint32_t c = (uint32_t)(x % CHANNELS);
        if (senders[c].ended || ck_align_blocked(a, c)) continue;
        uint64_t n = ++senders[c].next;
        ck_align_step s;
        if (n > IDS) {
            senders[c].ended = true;
            open_channels--;
            s = ck_align_end(a, c, 0);
        } else if (ck_mix64(seed ^ n * 77) % 4 == 0) { /* this id is cancelled on some channels */
            s = ck_mix64(x) & 1 ? ck_align_cancel(a, c, n) : (ck_align_step){0};
        } else {
            senders[c].taken = n;
            s = barrier(a, c, n);
        }
        if (s.cancelled) {
            assert_true(s.cancelled > last);
            last = s.cancelled;
        }
        if (s.snapshot) {
            assert_true(s.checkpoint > last && s.unblock);
            last = s.checkpoint;
            for (uint32_t i = 0; i < CHANNELS; i++) assert_true(senders[i].ended || senders[i].taken == s.checkpoint);
        }
    }
    assert_int_equal(ck_align_pending(a, NULL), 0);
    close_align(a);
}

static void random_orders(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) random_order(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_all_channels),
        cmocka_unit_test(one_channel_never_blocks),
        cmocka_unit_test(newer_supersedes_older),
        cmocka_unit_test(cancel_in_band),
        cmocka_unit_test(end_counts_as_every_barrier),
        cmocka_unit_test(overtaking_waits_for_strict_channels_only),
        cmocka_unit_test(random_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
