/* The look at a savepoint before a job is deployed: at its submission, and when a coordinator takes over. It stops a
 * deployment that could only fail, and nothing else: what it cannot look at passes with a warning that names it, since
 * the restore itself compares once more (state/state_migration_on_restore.h) and is the hard check. */
#ifndef CK_RUNTIME_RESTORE_GATE_H
#define CK_RUNTIME_RESTORE_GATE_H

#include "runtime/evolve.h"

/* As ck_evolve_from. CK_OK with *warning "": nothing speaks against it, or there is no checkpoint yet. CK_OK with a
 * warning: it could not be told, and why. CK_REFUSED: definitely incompatible, the first operator named. CK_NOMEM.
 * Blocks. */
CK_NODISCARD ck_status ck_restore_gate(ck_arena *a, const char *checkpoint_dir, const char *restore,
                                       const char *job_name, ck_evolve_config *cfg, const char **warning,
                                       ck_error *err);

#endif
