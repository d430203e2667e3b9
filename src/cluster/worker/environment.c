/* See environment.h. */
#include "cluster/worker/environment.h"

#include <string.h>

#include "os/confined.h"

/* Names, and beginnings of names that end in '*'. */
static const char *const always[] = {"PATH",         "LANG",         "LANGUAGE",        "LC_*",
                                     "TZ",           "TMPDIR",       "LD_LIBRARY_PATH", "CLINK_*",
                                     "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",    "UBSAN_OPTIONS"};
static const char *const of_our_user[] = {"HOME",        "USER",       "LOGNAME",    "XDG_*",       "PG*",
                                          "KRB5*",       "SSL_*",      "http_proxy", "https_proxy", "no_proxy",
                                          "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY",   "ALL_PROXY",   "all_proxy"};

/* So that libpq does not look into the home of our user, which it finds without HOME, too. */
static const char no_pgpass[] = "PGPASSFILE=/dev/null", no_service[] = "PGSERVICEFILE=/dev/null";

static bool matches(const char *pattern, ck_view name) {
    size_t n = strlen(pattern);
    if (pattern[n - 1] == '*') return name.n >= n - 1 && memcmp(name.p, pattern, n - 1) == 0;
    return name.n == n && memcmp(name.p, pattern, n) == 0;
}

static bool is_in(const char *const *list, size_t count, ck_view name) {
    for (size_t i = 0; i < count; i++)
        if (matches(list[i], name)) return true;
    return false;
}

static bool is_named(ck_view job, ck_view name) {
    static const char before[] = "${env:";
    const size_t n = sizeof before - 1;
    for (size_t i = 0; i + n + name.n < job.n; i++) {
        const char *p = memchr(job.p + i, '$', job.n - i);
        if (!p) return false;
        i = (size_t)(p - job.p);
        if (i + n + name.n < job.n && memcmp(p, before, n) == 0 && memcmp(p + n, name.p, name.n) == 0 &&
            p[n + name.n] == '}')
            return true;
    }
    return false;
}

static bool is_kept(ck_view name, ck_view job, bool confined) {
    bool secret = matches(CK_CONFINED_ENV "*", name);
    if (is_named(job, name) && (secret || !confined)) return true;
    if (secret) return false;
    return is_in(always, CK_ARRAY_COUNT(always), name) ||
           (!confined && is_in(of_our_user, CK_ARRAY_COUNT(of_our_user), name));
}

static size_t room_of(char *const *list) {
    size_t n = 0;
    while (list[n]) n++;
    return n + 3;
}

char **ck_host_environment(ck_mem mem, char *const *ours, ck_view job, bool confined) {
    char **out = ck_alloc_array(mem, room_of(ours), sizeof *out);
    size_t n = 0;
    if (!out) return NULL;
    for (char *const *e = ours; *e; e++) {
        const char *equals = strchr(*e, '=');
        if (equals && is_kept((ck_view){*e, (size_t)(equals - *e)}, job, confined)) out[n++] = *e;
    }
    if (confined) { /* a list of char *, as posix_spawn has it, which writes to none of them */
        out[n++] = (char *)(uintptr_t)no_pgpass;
        out[n++] = (char *)(uintptr_t)no_service;
    }
    out[n] = NULL;
    return out;
}

void ck_host_environment_free(ck_mem mem, char **list, char *const *ours) {
    if (list) ck_free(mem, list, room_of(ours) * sizeof *list);
}
