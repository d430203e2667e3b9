/* See wait.h. */
#include "cli/wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"

enum { WAIT_MS = 100, SAVEPOINT_TIMEOUT_MS = 30000 };

static void our_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
}

void wait_block_stop_signals(void) {
    sigset_t set;
    our_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* One of them that has come, or 0. */
static int signal_asked(void) {
    struct timespec now = {0};
    sigset_t set;
    int got;
    our_signals(&set);
    do got = sigtimedwait(&set, NULL, &now);
    while (got < 0 && errno == EINTR);
    return got > 0 ? got : 0;
}

void wait_forget_stop(void) {
    while (signal_asked()) {
    }
}

/* ---- savepoints: taken beside the waiting, which goes on ---- */

typedef struct savepoint_call {
    pthread_t thread;
    clink_job *job;
    bool stop, started;
    _Atomic bool done;
    clink_status status;
    clink_error error;
    uint64_t checkpoint;
} savepoint_call;

static void *call_savepoint(void *arg) {
    savepoint_call *c = arg;
    c->status = c->stop ? clink_job_stop(c->job, SAVEPOINT_TIMEOUT_MS, &c->checkpoint, &c->error)
                        : clink_job_savepoint(c->job, SAVEPOINT_TIMEOUT_MS, &c->checkpoint, &c->error);
    atomic_store(&c->done, true);
    return NULL;
}

static void finish_savepoint(savepoint_call *c, progress_line *line) {
    pthread_join(c->thread, NULL);
    c->started = false;
    progress_clear(line);
    unsigned long long id = c->checkpoint;
    if (c->status != CLINK_OK)
        fprintf(stderr, "clink: no savepoint: %s\n", c->error.message);
    else if (c->stop)
        fprintf(stderr, "clink: %s: stopped with savepoint %llu\n", clink_job_name(c->job), id);
    else
        fprintf(stderr, "clink: %s: savepoint %llu is complete\n", clink_job_name(c->job), id);
}

static void begin_savepoint(savepoint_call *c, clink_job *job, bool stop, progress_line *line) {
    progress_clear(line);
    if (c->started) {
        fprintf(stderr, "clink: a savepoint is being taken already\n");
        return;
    }
    *c = (savepoint_call){.job = job, .stop = stop, .started = true};
    int rc = pthread_create(&c->thread, NULL, call_savepoint, c);
    if (rc == 0) return;
    c->started = false;
    fprintf(stderr, "clink: no savepoint: a thread cannot be started: %s\n", strerror(rc));
}

clink_status wait_for_job(clink_job *job, clink_error *e) {
    progress_line line;
    savepoint_call call = {.started = false};
    progress_init(&line, job);
    bool asked = false;
    clink_status s;
    while ((s = clink_job_wait(job, WAIT_MS, e)) == CLINK_TIMEOUT) {
        int signal = signal_asked();
        if (signal == SIGUSR1 || signal == SIGUSR2) {
            begin_savepoint(&call, job, signal == SIGUSR2, &line);
        } else if (signal) {
            progress_clear(&line);
            if (asked) _exit(130); /* twice: at once */
            asked = true;
            fprintf(stderr, "clink: stopping; once more stops at once\n");
            clink_job_cancel(job);
        }
        if (call.started && atomic_load(&call.done)) finish_savepoint(&call, &line);
        progress_show(&line);
    }
    if (call.started) finish_savepoint(&call, &line);
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
