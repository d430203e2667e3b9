#include "engine/builtins.h"

#include "connector/connectors.h"
#include "connector/plugin/plugin.h"
#include "operator/lookup_join.h"
#include "operator/operators.h"

static ck_status create_lookup_file(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    return ck_lookup_join_create(spec, &ck_lookup_file, mem, self, err);
}
static ck_status create_lookup_postgres(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    return ck_lookup_join_create(spec, &ck_lookup_postgres, mem, self, err);
}
static ck_status create_lookup_http(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    return ck_lookup_join_create(spec, &ck_lookup_http, mem, self, err);
}
static const ck_op_desc lookup_http = {.type = "lookup.http", .op = &ck_lookup_join_vtbl, .create = create_lookup_http};
static const ck_op_desc lookup_postgres = {
    .type = "lookup.postgres", .op = &ck_lookup_join_vtbl, .create = create_lookup_postgres};
static const ck_op_desc lookup_file = {.type = "lookup.file", .op = &ck_lookup_join_vtbl, .create = create_lookup_file};

ck_status engine_register_builtins(ck_registry *r, ck_error *err) {
    static const ck_op_desc *const ops[] = {
        &ck_op_filter,         &ck_op_project,        &ck_op_group_agg,     &ck_op_limit,     &ck_op_union,
        &ck_op_source_file,    &ck_op_source_datagen, &ck_op_source_values, &ck_op_sink_file, &ck_op_sink_print,
        &ck_op_sink_blackhole, &ck_op_sink_collect,   &ck_op_sort,          &ck_op_top_n,     &ck_op_source_memory,
        &ck_op_sink_memory,    &ck_op_join,           &ck_op_unnest,        &ck_op_set_op,
    };
    static const ck_op_desc *const time_ops[] = {&ck_op_window_assign, &ck_op_window_agg,    &ck_op_session_agg,
                                                 &ck_op_interval_join, &ck_op_temporal_join, &ck_op_over};
    static const ck_connector_desc *const connectors[] = {
        &ck_connector_file,    &ck_connector_print,   &ck_connector_blackhole,
        &ck_connector_collect, &ck_connector_datagen, &ck_connector_memory,
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(ops); i++) CK_TRY(ck_registry_add_op(r, ops[i], err));
    for (size_t i = 0; i < CK_ARRAY_COUNT(time_ops); i++) CK_TRY(ck_registry_add_op(r, time_ops[i], err));
    for (size_t i = 0; i < CK_ARRAY_COUNT(connectors); i++) CK_TRY(ck_registry_add_connector(r, connectors[i], err));
    CK_TRY(ck_registry_add_op(r, &ck_op_process, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_sink_stream, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_source_stream, err));
    CK_TRY(ck_registry_add_connector(r, &ck_connector_stream, err));
    CK_TRY(ck_registry_add_op(r, &lookup_file, err));
    CK_TRY(ck_registry_add_op(r, &lookup_postgres, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_source_nexmark, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_source_kafka, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_sink_kafka, err));
    CK_TRY(ck_registry_add_connector(r, &ck_connector_kafka, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_source_postgres, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_sink_postgres, err));
    CK_TRY(ck_registry_add_connector(r, &ck_connector_postgres, err));
    CK_TRY(ck_registry_add_op(r, &lookup_http, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_source_http, err));
    CK_TRY(ck_registry_add_op(r, &ck_op_sink_http, err));
    CK_TRY(ck_registry_add_connector(r, &ck_connector_http, err));
    return ck_registry_add_connector(r, &ck_connector_nexmark, err);
}

static ck_status register_one(ck_registry *r, const ck_plugin_connector *c, ck_error *err) {
    const ck_connector_desc *there = ck_map_get(&r->connectors, ck_view_of(c->face->name));
    ck_plugin_described d;
    if (there && ck_plugin_connector_described(there) == c) return CK_OK;
    if (there)
        return ck_fail(err, CK_INVALID,
                       "plugin %s has a connector \"%s\", which is built in; it must have another name", c->plugin,
                       c->face->name);
    if (ck_plugin_connector_describe(c, r->arena, &d) != CK_OK) return ck_nomem(err, r->arena->mem, sizeof d);
    if (d.source) CK_TRY(ck_registry_add_op(r, d.source, err));
    if (d.sink) CK_TRY(ck_registry_add_op(r, d.sink, err));
    return ck_registry_add_connector(r, d.connector, err);
}

ck_status engine_register_plugins(ck_registry *r, const ck_library *l, ck_error *err) {
    for (const ck_library_item *i = l->items; i; i = i->next)
        if (i->connector) CK_TRY(register_one(r, i->connector, err));
    return CK_OK;
}
