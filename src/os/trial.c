/* See trial.h. */
#include "os/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct verdict {
    ck_status status;
    ck_error error;
} verdict;

static void shed(int keep) {
    const struct rlimit none = {0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0);
    setrlimit(RLIMIT_CORE, &none);
    clearenv();
    /* What it prints is nobody's. */
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        if (fd != keep) dup2(null, fd);
    for (int fd = 3; fd < 1024; fd++)
        if (fd != keep) close(fd);
    for (int sig = 1; sig < 32; sig++) signal(sig, SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* True: the whole verdict is there. */
static bool read_verdict(int fd, verdict *v, int64_t until_ms, bool *late) {
    size_t got = 0;
    *late = false;
    while (got < sizeof *v) {
        int64_t left = until_ms - now_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            *late = ready == 0;
            return false;
        }
        ssize_t n = read(fd, (char *)v + got, sizeof *v - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        got += (size_t)n;
    }
    return true;
}

static _Noreturn void be_the_child(int out, ck_status (*fn)(void *arg, ck_error *err), void *arg) {
    verdict v = {.error = CK_ERROR_INIT};
    shed(out);
    v.status = fn(arg, &v.error);
    v.error.msg[sizeof v.error.msg - 1] = 0;
    size_t put = 0;
    while (put < sizeof v) {
        ssize_t n = write(out, (const char *)&v + put, sizeof v - put);
        if (n <= 0 && errno != EINTR) break;
        if (n > 0) put += (size_t)n;
    }
    _exit(0); /* destructors of what was tried are not run */
}

ck_status ck_trial(const char *what, int64_t timeout_ms, ck_status (*fn)(void *arg, ck_error *err), void *arg,
                   ck_error *err) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ck_fail_errno(err, errno, "%s", what);
    pid_t pid = fork();
    if (pid == 0) be_the_child(ends[1], fn, arg);
    close(ends[1]);
    if (pid < 0) {
        int e = errno;
        close(ends[0]);
        return ck_fail_errno(err, e, "%s", what);
    }
    verdict v;
    bool late, heard = read_verdict(ends[0], &v, now_ms() + timeout_ms, &late);
    close(ends[0]);
    if (!heard) kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (heard) {
        if (err && v.status != CK_OK) *err = v.error;
        return v.status;
    }
    if (late)
        return ck_fail(err, CK_REFUSED, "%s: it took longer than %lld seconds", what, (long long)timeout_ms / 1000);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        return ck_fail(err, CK_REFUSED, "%s: it ended the process with signal %d (%s)", what, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    return ck_fail(err, CK_REFUSED, "%s: it ended the process", what);
}
