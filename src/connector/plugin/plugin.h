/* Connectors that plugins bring (clink/plugin.h), for the engine to register. */
#ifndef CK_CONNECTOR_PLUGIN_H
#define CK_CONNECTOR_PLUGIN_H

#include "expr/library.h"
#include "stream/descriptor.h"

/* What the registry is told: source and sink are NULL where the connector has none. In the arena, which outlives the
 * registry. CK_NOMEM. */
typedef struct ck_plugin_described {
    const ck_connector_desc *connector;
    const ck_op_desc *source, *sink;
} ck_plugin_described;
CK_NODISCARD ck_status ck_plugin_connector_describe(const ck_plugin_connector *c, ck_arena *a,
                                                    ck_plugin_described *out);
/* The connector that was described so; NULL: it is none of a plugin. */
const ck_plugin_connector *ck_plugin_connector_described(const ck_connector_desc *d);

#endif
