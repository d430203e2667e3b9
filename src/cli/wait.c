/* See wait.h. */
#include "cli/wait.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"

enum { WAIT_MS = 100 };

static void stop_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

void wait_block_stop_signals(void) {
    sigset_t set;
    stop_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static bool stop_asked(void) {
    struct timespec now = {0};
    sigset_t stop;
    int got;
    stop_signals(&stop);
    do got = sigtimedwait(&stop, NULL, &now);
    while (got < 0 && errno == EINTR);
    return got > 0;
}

void wait_forget_stop(void) {
    while (stop_asked()) {
    }
}

clink_status wait_for_job(clink_job *job, clink_error *e) {
    progress_line line;
    progress_init(&line, job);
    bool asked = false;
    clink_status s;
    while ((s = clink_job_wait(job, WAIT_MS, e)) == CLINK_TIMEOUT) {
        if (stop_asked()) {
            progress_clear(&line);
            if (asked) _exit(130); /* twice: at once */
            asked = true;
            fprintf(stderr, "clink: stopping; once more stops at once\n");
            clink_job_cancel(job);
        }
        progress_show(&line);
    }
    progress_clear(&line);
    return s;
}

void wait_report(clink_job *job) {
    if (clink_job_was_finished(job))
        fprintf(stderr, "clink: %s has finished before; nothing to do (--fresh starts it anew)\n", clink_job_name(job));
    clink_progress g = {.struct_bytes = sizeof g};
    clink_job_progress(job, &g);
    if (g.late_rows)
        fprintf(stderr, "clink: %llu row%s came too late for their window and were dropped\n",
                (unsigned long long)g.late_rows, g.late_rows == 1 ? "" : "s");
    if (g.bad_time_rows)
        fprintf(stderr, "clink: %llu row%s without a time between the years 1 and 9999 were left out of windows\n",
                (unsigned long long)g.bad_time_rows, g.bad_time_rows == 1 ? "" : "s");
    if (g.bad_rows)
        fprintf(stderr, "clink: %s: %llu record%s did not fit and %s left out\n", clink_job_name(job),
                (unsigned long long)g.bad_rows, g.bad_rows == 1 ? "" : "s", g.bad_rows == 1 ? "was" : "were");
}
