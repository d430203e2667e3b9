/* What the binary has: every operator and connector, for a registry. */
#ifndef CK_ENGINE_BUILTINS_H
#define CK_ENGINE_BUILTINS_H

#include "plugin/registry.h"

CK_NODISCARD ck_status engine_register_builtins(ck_registry *r, ck_error *err);

#endif
