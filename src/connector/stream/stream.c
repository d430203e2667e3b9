/* Connector '.stream': a table that stands, while a job is planned, for what an operator of a plugin gives or takes
 * (engine/plugin_job.c). It is taken out of the graph before anything runs, so it has no rows of its own. */
#include "connector/connectors.h"

static ck_status create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)mem;
    *self = NULL;
    return ck_fail(err, CK_INVALID,
                   "%s: a table of connector '.stream' stands for an operator of a job and has no rows", spec->uid);
}

static ck_status on_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self, (void)input, (void)ev, (void)ctx;
    return CK_OK;
}

static ck_status poll_nothing(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    (void)self, (void)ctx, (void)until_us;
    *result = CK_POLL_END;
    return CK_OK;
}

static bool bounded(const ck_table_decl *t) {
    (void)t;
    return false;
}

static ck_guarantee guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    (void)t, (void)checkpoints;
    *why = NULL;
    return CK_EXACTLY_ONCE;
}

static const ck_operator_vtbl sink = {.struct_bytes = sizeof sink, .on_event = on_event};
static const ck_source_vtbl source = {.struct_bytes = sizeof source, .poll = poll_nothing};
/* The same for tests (clink/testing.h), which push rows to such tables and read what they get. */
static bool takes_changes(const ck_table_decl *t) {
    (void)t;
    return true;
}
const ck_op_desc ck_op_sink_test = {.type = "sink.test", .op = &sink, .create = create};
const ck_op_desc ck_op_source_test = {.type = "source.test", .source = &source, .create = create};
const ck_connector_desc ck_connector_test = {.name = "test",
                                             .source_type = "source.test",
                                             .sink_type = "sink.test",
                                             .bounded = bounded,
                                             .accepts_changes = takes_changes,
                                             .guarantee = guarantee,
                                             .timed = true};
const ck_op_desc ck_op_sink_stream = {.type = "sink.stream", .op = &sink, .create = create};
const ck_op_desc ck_op_source_stream = {.type = "source.stream", .source = &source, .create = create};
const ck_connector_desc ck_connector_stream = {.name = ".stream",
                                               .source_type = "source.stream",
                                               .sink_type = "sink.stream",
                                               .bounded = bounded,
                                               .guarantee = guarantee,
                                               .timed = true};
