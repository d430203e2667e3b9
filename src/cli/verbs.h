/* The verbs of the command, one file each. */
#ifndef CK_CLI_VERBS_H
#define CK_CLI_VERBS_H

#include "cli/script.h"

extern const verb verb_run, verb_sql, verb_explain, verb_dead_letter_replay, verb_savepoint, verb_checkpoint_verify,
    verb_check_savepoint;
extern const verb verb_coordinator, verb_worker, verb_submit, verb_list, verb_status, verb_cancel, verb_drop,
    verb_resume, verb_stop;
/* What a worker starts this program with; no verb for people. */
int task_host_main(int argc, char **argv);

/* All verbs, for dispatch and `clink help`. */
const verb *const *verbs_all(size_t *count);
/* Prints one verb's help page; 0, or 2 when there is no such verb. */
int verbs_help(const char *name);

/* The plan on standard output, for `run --explain`, too. The exit status. */
int explain_print(const run_start *r);

#endif
