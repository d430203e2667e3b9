/* See wait.h. */
#include "cli/wait.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"

enum { FIRST_WAIT_MS = 10, WAIT_MS = 100, SAVEPOINT_TIMEOUT_MS = 30000 };

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

/* One of a set that has come, or 0. */
static int taken_from(const sigset_t *set) {
    struct timespec now = {0};
    int got;
    do got = sigtimedwait(set, NULL, &now);
    while (got < 0 && errno == EINTR);
    return got > 0 ? got : 0;
}

static int signal_asked(void) {
    sigset_t set;
    our_signals(&set);
    return taken_from(&set);
}

void wait_forget_stop(void) {
    sigset_t set;
    our_signals(&set);
    sigdelset(&set, SIGTERM);
    while (taken_from(&set)) {
    }
}

bool wait_is_terminated(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM);
}

bool wait_readable(int fd, bool heed_interrupt) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (heed_interrupt) sigaddset(&set, SIGINT);
    int signals = signalfd(-1, &set, SFD_CLOEXEC); /* only looked at: what has come stays pending */
    if (signals < 0) return true;                  /* the read waits then */
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    int n;
    do n = poll(p, 2, -1);
    while (n < 0 && errno == EINTR);
    close(signals);
    return !(p[1].revents & POLLIN);
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

static void finish_savepoint(savepoint_call *c, progress_line *line, bool runs) {
    pthread_join(c->thread, NULL);
    c->started = false;
    progress_clear(line);
    unsigned long long id = c->checkpoint;
    if (c->status != CLINK_OK && !(c->stop && id))
        fprintf(stderr, "clink: no savepoint: %s%s\n", c->error.message, c->stop && runs ? "; the job goes on" : "");
    else if (c->stop)
        fprintf(stderr, "clink: %s: stopped with savepoint %llu\n", clink_job_name(c->job), id);
    else
        fprintf(stderr, "clink: %s: savepoint %llu is complete\n", clink_job_name(c->job), id);
}

/* A job that has stopped with its savepoint, of which --savepoint-dir has not all: that is no success. */
static clink_status stopped_with(const savepoint_call *c, clink_status s, clink_error *e) {
    if (s != CLINK_OK || c->status == CLINK_OK || !c->stop || !c->checkpoint) return s;
    *e = c->error;
    return c->status;
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

/* ---- what is said ---- */

static void print_warnings(clink_job *job) {
    for (size_t i = 0; clink_job_warning(job, i); i++)
        fprintf(stderr, "clink: warning: %s\n", clink_job_warning(job, i));
}

/* A result that is only printed promises nothing worth a line, and what writes nothing (EXPLAIN) has nothing to say. */
static bool is_worth_a_line(clink_job *job, const clink_run *run) {
    return clink_job_guarantee_at(job, 0) && (run->checkpoint_dir || !clink_job_has_result(job));
}

static void print_guarantees(clink_job *job) {
    for (size_t i = 0; clink_job_guarantee_at(job, i); i++)
        fprintf(stderr, "clink: %s: %s\n", clink_job_name(job), clink_job_guarantee_at(job, i));
}

static clink_progress progress_of(clink_job *job) {
    clink_progress g = {.struct_bytes = sizeof g};
    clink_job_progress(job, &g);
    return g;
}

static void print_restored(clink_job *job) {
    unsigned long long id = progress_of(job).restored;
    if (id) fprintf(stderr, "clink: %s: goes on from checkpoint %llu\n", clink_job_name(job), id);
}

/* What the next start of a job that was stopped on the way does. No number: one more may just have become complete. */
static void print_stopped(clink_job *job, const clink_run *run) {
    clink_progress g = progress_of(job);
    bool own = g.checkpoints > 0, elsewhere = run->restore && strcmp(run->restore, "latest") != 0;
    const char *how = own && elsewhere ? "without --restore" : own && run->fresh ? "without --fresh" : "again";
    if (!run->checkpoint_dir || clink_job_was_finished(job)) return;
    if (own)
        fprintf(stderr, "clink: %s: stopped; started %s it goes on from its last checkpoint\n", clink_job_name(job),
                how);
    else if (g.restored)
        fprintf(stderr, "clink: %s: stopped; started again it goes on from checkpoint %llu again\n",
                clink_job_name(job), (unsigned long long)g.restored);
    else
        fprintf(stderr, "clink: %s: stopped before its first checkpoint; started again it begins anew\n",
                clink_job_name(job));
}

static void print_notes(clink_job *job) {
    if (clink_job_was_finished(job))
        fprintf(stderr, "clink: %s has finished before; nothing to do (--fresh starts it anew)\n", clink_job_name(job));
    for (size_t i = 0; clink_job_note(job, i); i++)
        fprintf(stderr, "clink: %s: %s\n", clink_job_name(job), clink_job_note(job, i));
}

/* ---- waiting ---- */

typedef struct waiting {
    clink_job *job;
    progress_line line;
    savepoint_call savepoint;
    bool asked, terminated; /* to stop, by SIGTERM */
} waiting;

static void heed(waiting *w, int signal) {
    if (signal == SIGUSR1 || signal == SIGUSR2) {
        begin_savepoint(&w->savepoint, w->job, signal == SIGUSR2, &w->line);
    } else if (signal) {
        progress_clear(&w->line);
        if (w->asked) _exit(130); /* twice: at once */
        w->asked = true;
        w->terminated = signal == SIGTERM;
        fprintf(stderr, "clink: stopping; once more stops at once\n");
        clink_job_cancel(w->job);
    }
}

/* Until the end. What is promised is said when the job has started: not of one that never does. */
static clink_status wait_for(waiting *w, bool announce, clink_error *e) {
    clink_status s;
    int64_t ms = announce && !clink_job_has_result(w->job) ? FIRST_WAIT_MS : WAIT_MS;
    for (;; ms = WAIT_MS) {
        s = clink_job_wait(w->job, ms, e);
        if (announce && (s == CLINK_OK || clink_job_started(w->job))) {
            print_guarantees(w->job);
            print_restored(w->job);
            announce = false;
        }
        if (s != CLINK_TIMEOUT) break;
        heed(w, signal_asked());
        if (w->savepoint.started && atomic_load(&w->savepoint.done)) finish_savepoint(&w->savepoint, &w->line, true);
        progress_show(&w->line);
    }
    if (w->savepoint.started) finish_savepoint(&w->savepoint, &w->line, false);
    progress_clear(&w->line);
    return stopped_with(&w->savepoint, s, e);
}

clink_status wait_execute(clink_engine *engine, const char *sql, clink_run *run, wait_voice voice, clink_job **job,
                          clink_error *e) {
    run->background = 1;
    clink_status s = clink_execute(engine, sql, run, job, e);
    if (s != CLINK_OK || !*job) return s;
    waiting w = {.job = *job};
    bool speak = voice >= WAIT_SPEAK && is_worth_a_line(*job, run);
    print_warnings(*job);
    progress_init(&w.line, *job);
    s = wait_for(&w, speak, e);
    if (w.terminated) kill(getpid(), SIGTERM); /* blocked: it is seen by whoever goes on */
    if (voice >= WAIT_NOTES) print_notes(*job);
    bool stopped = s == CLINK_CANCELLED && w.asked && clink_job_started(*job);
    if (voice >= WAIT_SPEAK && (stopped ? speak : s == CLINK_OK) && !clink_job_was_finished(*job))
        progress_end(&w.line, speak);
    if (speak && stopped) print_stopped(*job, run);
    return s;
}
