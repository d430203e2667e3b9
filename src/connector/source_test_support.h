/* For tests of connectors: the harness with an I/O executor that runs jobs when told to, and a drive for sources. */
#ifndef CK_CONNECTOR_SOURCE_TEST_SUPPORT_H
#define CK_CONNECTOR_SOURCE_TEST_SUPPORT_H

#include "operator/fixture_test_support.h"
#include "os/io.h"
#include "os/simfs.h"
#include "os/test_proc.h"

typedef struct held_io {
    ck_io_job *jobs[64];
    unsigned count;
    uint64_t shuffle; /* 0: in order; else the seed of the order they run in */
} held_io;

HARNESS_FN void held_submit(harness *h, ck_io_job *job) {
    held_io *io = h->io;
    assert_true(io->count < 64);
    io->jobs[io->count++] = job;
}

HARNESS_FN bool held_run_one(harness *h) {
    held_io *io = h->io;
    if (io->count == 0) return false;
    unsigned at = 0;
    if (io->shuffle) {
        io->shuffle = io->shuffle * 6364136223846793005ULL + 1442695040888963407ULL;
        at = (unsigned)((io->shuffle >> 33) % io->count);
    }
    ck_io_job *job = io->jobs[at];
    memmove(&io->jobs[at], &io->jobs[at + 1], (io->count - at - 1) * sizeof(ck_io_job *));
    io->count--;
    job->run(job);
    job->done(job);
    return true;
}

HARNESS_FN void held_run(harness *h) {
    while (held_run_one(h)) {
    }
}

HARNESS_FN void harness_with_io(harness *h, held_io *io) {
    h->submit = held_submit;
    h->run_io = held_run;
    h->io = io;
}

/* ---- sources ---- */

typedef struct split_set {
    ck_arena arena;
    ck_split_list list;
} split_set;

HARNESS_FN void split_set_init(split_set *s, harness *h) {
    ck_arena_init(&s->arena, ck_proc_mem(h->proc, CK_MEM_PLAN), 1 << 28);
    s->list = (ck_split_list){.arena = &s->arena};
}
HARNESS_FN void split_set_destroy(split_set *s) { ck_arena_destroy(&s->arena); }

/* Creates and opens the source of h->spec.subtask and gives it its splits. */
HARNESS_FN ck_status source_start(harness *h, const ck_op_desc *desc, const char *params, const char *output,
                                  const ck_split_list *splits) {
    ck_status s = harness_create(h, desc, params, output);
    if (s == CK_OK) s = harness_open(h);
    for (uint32_t i = 0; s == CK_OK && i < splits->count; i++) {
        if (i % h->spec.parallelism != h->spec.subtask) continue;
        s = desc->source->add_split(h->self, &splits->splits[i], &h->ctx);
        harness_end_call(h);
    }
    return s;
}

/* One poll; with CK_POLL_IDLE the caller decides what happens next. */
HARNESS_FN ck_status source_poll(harness *h, ck_poll_result *result, int64_t *until) {
    *result = CK_POLL_IDLE;
    *until = INT64_MAX;
    ck_status s = h->desc->source->poll(h->self, &h->ctx, result, until);
    harness_end_call(h);
    return s;
}

/* Polls until the end or a failure; batches_max stops earlier. Idle: one job runs, or the clock moves. */
HARNESS_FN ck_status source_drive(harness *h, ck_manual_clock *clock, size_t batches_max, bool *ended) {
    *ended = false;
    for (unsigned polls = 0; h->batch_count < batches_max; polls++) {
        ck_poll_result result;
        int64_t until;
        assert_true(polls < 2000000);
        ck_status s = source_poll(h, &result, &until);
        if (s != CK_OK) return s;
        if (result == CK_POLL_END) {
            *ended = true;
            return CK_OK;
        }
        if (result != CK_POLL_IDLE || held_run_one(h)) continue;
        if (until == INT64_MAX || !clock) return CK_OK; /* nothing will ever come by itself */
        int64_t now = clock->base.mono_us(&clock->base);
        if (until > now) ck_manual_clock_advance(clock, until - now);
    }
    return CK_OK;
}

/* The positions as a snapshot has them. */
HARNESS_FN void source_snapshot(harness *h, split_set *out) {
    harness_ok(h, h->desc->source->snapshot(h->self, &out->list, &h->ctx));
    harness_end_call(h);
}

HARNESS_FN void write_sim_file(ck_simfs *sim, const char *path, const void *p, size_t n) {
    ck_fs *fs = ck_simfs_base(sim);
    ck_file *f;
    assert_int_equal(fs->open(fs, path, CK_OPEN_TRUNCATE, &f, NULL), CK_OK);
    assert_int_equal(fs->write(f, p, n, NULL), CK_OK);
    fs->close(f);
}

#endif
