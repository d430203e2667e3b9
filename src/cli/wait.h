/* Running a script and waiting for it while Ctrl-C, SIGTERM, SIGUSR1 (a savepoint) and SIGUSR2 (stop with a savepoint),
 * which are blocked in the whole process, are looked for between waits: no handler, no flag. */
#ifndef CK_CLI_WAIT_H
#define CK_CLI_WAIT_H

#include <stdbool.h>

#include "clink/clink.h"

typedef enum wait_voice {
    WAIT_QUIET, /* warnings only */
    WAIT_NOTES, /* and what was left out */
    WAIT_SPEAK, /* and what is promised at the start, and what was done at the end */
} wait_voice;

/* Before the first thread is started. */
void wait_block_stop_signals(void);
/* Compiles and runs a script to its end, with the progress line on a terminal. Asked to stop once it cancels the job,
 * also while it restores; twice ends the process with 130. *job (for clink_job_free) is NULL when there was nothing to
 * run. run->background is set here. */
clink_status wait_execute(clink_engine *engine, const char *sql, clink_run *run, wait_voice voice, clink_job **job,
                          clink_error *e);
/* Takes back a Ctrl-C that came when nothing ran. A SIGTERM is for the process and stays: also one that has stopped a
 * job is left pending. */
void wait_forget_stop(void);
/* Whether SIGTERM has come, which ends a process that goes on after a job, too. */
bool wait_is_terminated(void);
/* Until fd can be read: true. false: SIGTERM has come, or Ctrl-C where that is asked for. */
bool wait_readable(int fd, bool heed_interrupt);

#endif
