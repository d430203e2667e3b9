/* The verbs of the command, one file each. */
#ifndef CK_CLI_VERBS_H
#define CK_CLI_VERBS_H

#include "cli/script.h"

extern const verb verb_run, verb_sql, verb_explain, verb_dead_letter_replay, verb_savepoint, verb_checkpoint_verify,
    verb_check_savepoint;

/* All verbs, for dispatch and `clink help`. */
const verb *const *verbs_all(size_t *count);
/* Prints one verb's help page; 0, or 2 when there is no such verb. */
int verbs_help(const char *name);

/* The plan on standard output, for `run --explain`, too. The exit status. */
int explain_print(const run_start *r);

#endif
