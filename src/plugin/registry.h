/* Names to operators: built-ins and (later) plugins register descriptors, the planner asks what a type needs, the
 * runtime makes instances. A registry is filled at start and read-only afterwards. */
#ifndef CK_PLUGIN_REGISTRY_H
#define CK_PLUGIN_REGISTRY_H

#include "state/state_migrations.h"
#include "stream/descriptor.h"

typedef struct ck_registry {
    ck_arena *arena;
    ck_map ops;                     /* type -> const ck_op_desc * */
    ck_map connectors;              /* name -> const ck_connector_desc * */
    ck_state_migrations migrations; /* of state types; filled by their own calls (state/state_migrations.h) */
} ck_registry;

void ck_registry_init(ck_registry *r, ck_arena *arena);
CK_NODISCARD ck_status ck_registry_add_op(ck_registry *r, const ck_op_desc *d,
                                          ck_error *err); /* borrowed; a taken name is refused */
CK_NODISCARD ck_status ck_registry_add_connector(ck_registry *r, const ck_connector_desc *d, ck_error *err);
/* Unknown: CK_INVALID with did-you-mean. */
CK_NODISCARD ck_status ck_registry_op(const ck_registry *r, const char *type, const ck_op_desc **out, ck_error *err);
CK_NODISCARD ck_status ck_registry_connector(const ck_registry *r, const char *name, const ck_connector_desc **out,
                                             ck_error *err);

#endif
