/* Sources and sinks of plugins in a test (testing_int.h): they are run as they are, in the test's thread. */
#include "engine/testing_int.h"
#include "state/operator_rows.h"

bool ck_test_is_of_plugin(const ck_test_node *n) {
    const char *dot = strchr(n->op->type, '.');
    return dot && ck_library_connector(n->test->engine->proc.library, dot + 1);
}

/* ---- sources ---- */

static ck_status add_splits(ck_test_node *n) {
    clink_test *t = n->test;
    ck_split_list splits = {.arena = &t->calls};
    bool known;
    CK_TRY(ck_splits_load(n->ctx.state, &splits, &known, &t->error));
    if (!known) CK_TRY(n->desc->enumerate(n->spec, 1, &splits, &t->error));
    for (uint32_t i = 0; i < splits.count; i++) CK_TRY(n->desc->source->add_split(n->self, &splits.splits[i], &n->ctx));
    return CK_OK;
}

ck_status ck_test_reader_start(ck_test_node *n) {
    clink_test *t = n->test;
    CK_TRY(n->desc->create(n->spec, t->mem, &n->self, &t->error));
    ck_status s = CK_HAS(n->desc->source, open) ? n->desc->source->open(n->self, &n->ctx) : CK_OK;
    return s == CK_OK ? add_splits(n) : s;
}

/* A poll that has read is followed by one that hands the rows on. */
ck_status ck_test_reader_read(ck_test_node *n, uint32_t batches) {
    clink_test *t = n->test;
    for (uint32_t given = 0; !n->ended && (!batches || given < batches);) {
        ck_poll_result result = CK_POLL_IDLE;
        int64_t until = INT64_MAX;
        t->io_ran = false;
        CK_TRY(n->desc->source->poll(n->self, &n->ctx, &result, &until));
        bool waits = result == CK_POLL_IDLE && !t->io_ran;
        given += result == CK_POLL_MORE;
        if (result == CK_POLL_END) CK_TRY(ck_test_push_end(t, n));
        CK_TRY(ck_test_settle(t));
        if (waits) break;
    }
    return CK_OK;
}

ck_status ck_test_readers_snapshot(clink_test *t) {
    for (uint32_t i = 0; i < t->graph->op_count; i++) {
        ck_test_node *n = &t->nodes[i];
        ck_split_list splits = {.arena = &t->calls, .checkpoint = t->checkpoint};
        if (n->role != CK_TEST_READER) continue;
        CK_TRY(n->desc->source->snapshot(n->self, &splits, &n->ctx));
        CK_TRY(ck_splits_store(n->ctx.state, &splits, &t->error));
    }
    return CK_OK;
}

/* ---- sinks ---- */

static ck_status commit(ck_test_node *n, bool again) {
    clink_test *t = n->test;
    const ck_committer_vtbl *v = n->desc->committer;
    ck_committable *items;
    uint32_t count;
    if (!n->committer) CK_TRY(n->desc->create_committer(n->spec, t->mem, &n->committer, &t->error));
    CK_TRY(ck_commits_list(n->ctx.state, &t->calls, &items, &count, &t->error));
    for (uint32_t i = 0; i < count; i++) CK_TRY(v->commit(n->committer, &items[i], &t->error));
    if (again && CK_HAS(v, abort_others))
        CK_TRY(v->abort_others(n->committer, t->settings.job_uuid, t->kept ? t->checkpoint : 0, items, count, false,
                               &t->error));
    if (again || !CK_HAS(n->desc->op, on_committed)) return CK_OK;
    return n->desc->op->on_committed(n->self, t->checkpoint, &n->ctx);
}

ck_status ck_test_commit(clink_test *t, bool again) {
    for (uint32_t i = 0; i < t->graph->op_count; i++)
        if (t->nodes[i].role == CK_TEST_OPERATOR && t->nodes[i].desc->committer) CK_TRY(commit(&t->nodes[i], again));
    return CK_OK;
}

void ck_test_committers_free(clink_test *t) {
    for (uint32_t i = 0; t->nodes && i < t->graph->op_count; i++) {
        if (t->nodes[i].committer) t->nodes[i].desc->committer->close(t->nodes[i].committer);
        t->nodes[i].committer = NULL;
    }
}
