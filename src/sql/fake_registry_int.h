/* A registry for tests and fuzzing: the operators there are, and connectors that only answer the planner's questions,
 * so that golden plans do not move with the real ones. Not part of the library. */
#ifndef CK_SQL_FAKE_REGISTRY_INT_H
#define CK_SQL_FAKE_REGISTRY_INT_H

#include "plugin/registry.h"

static inline const char *fake_option(const ck_table_decl *t, const char *name, const char *deflt) {
    for (uint32_t i = 0; i < t->options.count; i++)
        if (strcmp(t->options.names[i], name) == 0) return t->options.values[i];
    return deflt;
}

static inline ck_status fake_file_check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    (void)as_sink;
    return fake_option(t, "path", NULL) ? CK_OK : ck_fail(err, CK_INVALID, "option 'path' is missing");
}
static inline bool fake_file_bounded(const ck_table_decl *t) {
    return strcmp(fake_option(t, "follow", "false"), "true") != 0;
}
static inline bool fake_file_upserts(const ck_table_decl *t) {
    return strcmp(fake_option(t, "mode", "append"), "upsert") == 0;
}
static inline ck_guarantee fake_file_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    if (strcmp(fake_option(t, "delivery", "exactly_once"), "exactly_once") != 0) {
        *why = "delivery='at_least_once'";
        return CK_AT_LEAST_ONCE;
    }
    *why = checkpoints ? "parts appear when a checkpoint commits them" : "";
    return CK_EXACTLY_ONCE;
}
static inline bool fake_yes(const ck_table_decl *t) { return t != NULL; }
static inline ck_guarantee fake_print_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    (void)t, (void)checkpoints;
    *why = "what is printed cannot be taken back";
    return CK_AT_LEAST_ONCE;
}
static inline bool fake_datagen_bounded(const ck_table_decl *t) { return fake_option(t, "rows", NULL) != NULL; }

static const ck_option_desc fake_file_options[] = {{"path", "text", NULL, ""},
                                                   {"format", "json|csv", NULL, ""},
                                                   {"header", "boolean", "false", ""},
                                                   {"delimiter", "text", ",", ""},
                                                   {"null_string", "text", NULL, ""},
                                                   {"follow", "boolean", "false", ""},
                                                   {"mode", "append|upsert", "append", ""},
                                                   {"delivery", "exactly_once|at_least_once", "exactly_once", ""},
                                                   {"part_bytes", "integer", NULL, ""}};
static const ck_option_desc fake_datagen_options[] = {{"rows", "integer", NULL, ""},
                                                      {"fields.*.kind", "random|sequence", "random", ""}};

static const ck_connector_desc fake_connectors[] = {
    {.name = "file",
     .options = fake_file_options,
     .option_count = CK_ARRAY_COUNT(fake_file_options),
     .source_type = "source.file",
     .sink_type = "sink.file",
     .check = fake_file_check,
     .bounded = fake_file_bounded,
     .accepts_upserts = fake_file_upserts,
     .guarantee = fake_file_guarantee,
     .again = fake_file_bounded},
    {.name = "datagen",
     .options = fake_datagen_options,
     .option_count = CK_ARRAY_COUNT(fake_datagen_options),
     .source_type = "source.datagen",
     .bounded = fake_datagen_bounded},
    {.name = "print", .sink_type = "sink.print", .accepts_changes = fake_yes, .guarantee = fake_print_guarantee},
    {.name = "blackhole", .sink_type = "sink.blackhole", .accepts_changes = fake_yes},
    {.name = "memory", .source_type = "source.memory", .sink_type = "sink.memory"},
    {.name = "collect", .sink_type = "sink.collect", .accepts_changes = fake_yes},
};

/* Nothing here runs. */
static inline ck_status fake_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)spec, (void)mem, (void)self;
    return ck_fail(err, CK_REFUSED, "a fake operator does not run");
}
static inline ck_status fake_event(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self, (void)input, (void)ev, (void)ctx;
    return CK_REFUSED;
}
static inline ck_status fake_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    (void)self, (void)ctx, (void)result, (void)until_us;
    return CK_REFUSED;
}
static const ck_operator_vtbl fake_operator = {.struct_bytes = sizeof fake_operator, .on_event = fake_event};
static const ck_source_vtbl fake_source = {.struct_bytes = sizeof fake_source, .poll = fake_poll};

static const ck_op_desc fake_ops[] = {
    {.type = "source.file", .source = &fake_source, .create = fake_create},
    {.type = "source.datagen", .source = &fake_source, .create = fake_create},
    {.type = "source.memory", .source = &fake_source, .create = fake_create},
    {.type = "source.values", .source = &fake_source, .create = fake_create},
    {.type = "sort", .op = &fake_operator, .create = fake_create},
    {.type = "top_n", .op = &fake_operator, .create = fake_create},
    {.type = "join", .op = &fake_operator, .create = fake_create},
    {.type = "set_op", .op = &fake_operator, .create = fake_create},
    {.type = "unnest", .op = &fake_operator, .create = fake_create},
    {.type = "sink.file", .op = &fake_operator, .create = fake_create},
    {.type = "sink.print", .op = &fake_operator, .create = fake_create},
    {.type = "sink.blackhole", .op = &fake_operator, .create = fake_create},
    {.type = "sink.memory", .op = &fake_operator, .create = fake_create},
    {.type = "sink.collect", .op = &fake_operator, .create = fake_create},
};

/* ops: the real operators, by the caller, who may know them. */
static inline ck_status fake_registry_fill(ck_registry *r, ck_arena *arena, const ck_op_desc *const *ops,
                                           size_t op_count, ck_error *err) {
    ck_registry_init(r, arena);
    for (size_t i = 0; i < CK_ARRAY_COUNT(fake_connectors); i++)
        CK_TRY(ck_registry_add_connector(r, &fake_connectors[i], err));
    for (size_t i = 0; i < CK_ARRAY_COUNT(fake_ops); i++) CK_TRY(ck_registry_add_op(r, &fake_ops[i], err));
    for (size_t i = 0; i < op_count; i++) CK_TRY(ck_registry_add_op(r, ops[i], err));
    return CK_OK;
}

#endif
