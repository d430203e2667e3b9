/* What the binary has: every operator and connector, for a registry. */
#ifndef CK_ENGINE_BUILTINS_H
#define CK_ENGINE_BUILTINS_H

#include "plugin/registry.h"

struct ck_library;

CK_NODISCARD ck_status engine_register_builtins(ck_registry *r, ck_error *err);
/* The connectors of the library's plugins that are not there yet. */
CK_NODISCARD ck_status engine_register_plugins(ck_registry *r, const struct ck_library *l, ck_error *err);

#endif
