/* Waiting for a job while Ctrl-C, SIGTERM, SIGUSR1 (a savepoint) and SIGUSR2 (stop with a savepoint), which are blocked
 * in the whole process, are looked for between waits: no handler, no flag. */
#ifndef CK_CLI_WAIT_H
#define CK_CLI_WAIT_H

#include <stdbool.h>

#include "clink/clink.h"

/* Before the first thread is started. */
void wait_block_stop_signals(void);
/* To the job's end, with the progress line on a terminal. Asked to stop once it cancels the job; twice ends the process
 * with 130. */
clink_status wait_for_job(clink_job *job, clink_error *e);
/* What is to be said on stderr of a job that ended: that it had finished before, and how many rows were left out. */
void wait_report(clink_job *job);
/* Takes back a Ctrl-C that came when nothing ran. */
void wait_forget_stop(void);

#endif
