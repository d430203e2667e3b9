/* The connectors of this room, for the engine to register. */
#ifndef CK_CONNECTOR_CONNECTORS_H
#define CK_CONNECTOR_CONNECTORS_H

#include "stream/descriptor.h"

extern const ck_connector_desc ck_connector_stream;
extern const ck_op_desc ck_op_sink_stream, ck_op_source_stream;
extern const ck_connector_desc ck_connector_test; /* of an engine that tests */
extern const ck_op_desc ck_op_sink_test, ck_op_source_test;
extern const ck_connector_desc ck_connector_file, ck_connector_print, ck_connector_blackhole, ck_connector_collect,
    ck_connector_datagen, ck_connector_memory, ck_connector_nexmark, ck_connector_kafka, ck_connector_postgres,
    ck_connector_http;

extern const ck_op_desc ck_op_source_file, ck_op_source_datagen, ck_op_source_values, ck_op_source_memory,
    ck_op_source_nexmark, ck_op_source_kafka, ck_op_source_postgres, ck_op_source_http;
extern const ck_op_desc ck_op_sink_file, ck_op_sink_print, ck_op_sink_blackhole, ck_op_sink_collect, ck_op_sink_memory,
    ck_op_sink_kafka, ck_op_sink_postgres, ck_op_sink_http;

/* For lookup operators (stream/lookup.h). */
extern const struct ck_lookup_vtbl ck_lookup_file, ck_lookup_postgres, ck_lookup_http;

#endif
