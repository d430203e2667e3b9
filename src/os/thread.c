/* See thread.h. What a container allows is read from its cgroup: every level from our own up to the root binds. */
#include "os/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/fs.h"

/* ---- starting one ---- */

typedef struct thread_start {
    void *(*fn)(void *arg);
    void *arg;
    char name[16];
} thread_start;

static void *run_named(void *arg) {
    thread_start start = *(thread_start *)arg;
    free(arg);
    pthread_setname_np(pthread_self(), start.name); /* for people only: cannot fail for a name this short */
    return start.fn(start.arg);
}

ck_status ck_thread_start(pthread_t *out, const char *name, void *(*fn)(void *arg), void *arg, ck_error *err) {
    thread_start *start = malloc(sizeof *start);
    if (!start) return ck_fail(err, CK_NOMEM, "starting the thread %s: out of memory", name);
    *start = (thread_start){.fn = fn, .arg = arg};
    snprintf(start->name, sizeof start->name, "%s", name);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* a thread inherits its maker's mask */
    int errnum = pthread_create(out, NULL, run_named, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum == 0) return CK_OK;
    free(start);
    return ck_fail_errno(err, errnum, "starting the thread %s", name);
}

/* ---- what the machine and the container give ---- */

/* A small file as text; false when it is not there. */
static bool read_small(ck_fs *fs, const char *path, char *out, size_t out_bytes) {
    ck_file *f;
    if (fs->open(fs, path, CK_OPEN_READ, &f, NULL) != CK_OK) return false;
    size_t n = 0, got = 1;
    ck_status s = CK_OK;
    while (s == CK_OK && got > 0 && n < out_bytes - 1) {
        s = fs->read(f, out + n, out_bytes - 1 - n, &got, NULL);
        n += got;
    }
    fs->close(f);
    out[n] = 0;
    return s == CK_OK;
}

/* Our group's path in the unified hierarchy, "" for its root; false where there is none. */
static bool own_cgroup(ck_fs *fs, char *out, size_t out_bytes) {
    char text[4096];
    if (!read_small(fs, "/proc/self/cgroup", text, sizeof text)) return false;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        if (strncmp(line, "0::/", 4) != 0) continue;
        int n = snprintf(out, out_bytes, "%s", line[4] ? line + 3 : "");
        return n >= 0 && (size_t)n < out_bytes;
    }
    return false;
}

/* Calls see(text, arg) for `file` of our group and of each group above it. */
static void each_cgroup_level(ck_fs *fs, const char *file, void (*see)(const char *text, void *arg), void *arg) {
    char group[2048], path[2304], text[128];
    if (!own_cgroup(fs, group, sizeof group)) return;
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, file);
        if (read_small(fs, path, text, sizeof text)) see(text, arg);
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = 0;
    }
}

static void see_cpu_max(const char *text, void *arg) { /* "max 100000" or "<quota> <period>" */
    unsigned *cores = arg;
    char *end;
    unsigned long long quota = strtoull(text, &end, 10);
    if (end == text || *end != ' ') return;
    unsigned long long period = strtoull(end + 1, NULL, 10);
    if (period == 0) return;
    unsigned long long whole = quota / period + (quota % period != 0);
    if (whole < *cores) *cores = whole ? (unsigned)whole : 1;
}

unsigned ck_cores(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned cores = online > 0 ? (unsigned)online : 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) cores = (unsigned)CPU_COUNT(&set);
    each_cgroup_level(ck_fs_system(), "cpu.max", see_cpu_max, &cores);
    return cores;
}

static void see_memory_limit(const char *text, void *arg) { /* "max" or bytes */
    size_t *limit = arg;
    char *end;
    unsigned long long bytes = strtoull(text, &end, 10);
    if (end != text && bytes > 0 && bytes < *limit) *limit = (size_t)bytes;
}

size_t ck_memory_limit_bytes(ck_proc *proc) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    size_t limit = pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : SIZE_MAX;
    each_cgroup_level(proc->fs, "memory.max", see_memory_limit, &limit);
    char text[128]; /* the older hierarchy, where a container mounts its own group as the root */
    if (read_small(proc->fs, "/sys/fs/cgroup/memory/memory.limit_in_bytes", text, sizeof text))
        see_memory_limit(text, &limit);
    return limit;
}
