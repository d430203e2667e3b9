/* See secret.h. */
#include "connector/secret.h"

#include <stdlib.h>

#include "os/confined.h"

ck_status ck_secret_resolve(ck_proc *proc, const char *name, const char *value, size_t bytes_max, ck_arena *a,
                            const char **out, ck_error *err) {
    size_t n = strlen(value);
    *out = value;
    if (n < 3 || strncmp(value, "${", 2) != 0 || value[n - 1] != '}') return CK_OK;
    const char *what = ck_arena_strndup(a, value + 2, n - 3);
    if (!what) return ck_nomem(err, a->mem, n);
    if (strncmp(what, "env:", 4) == 0) {
        ck_status s = proc->confined ? ck_confined_check_env(what + 4, err) : CK_OK;
        if (s != CK_OK) return ck_error_prefix(err, "option '%s': ", name);
        *out = getenv(what + 4);
        return *out ? CK_OK
                    : ck_fail(err, CK_INVALID, "option '%s': the environment has no variable %s", name, what + 4);
    }
    if (strncmp(what, "file:", 5) != 0)
        return ck_fail(err, CK_INVALID, "option '%s' is neither ${env:NAME} nor ${file:PATH}", name);
    ck_view text;
    ck_status s = proc->confined ? ck_confined_check_secret(proc->confined, what + 5, err) : CK_OK;
    if (s == CK_OK)
        s = ck_fs_read_file(proc->confined ? proc->confined->under : proc->fs, what + 5, bytes_max, a, &text, err);
    while (s == CK_OK && text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r')) text.n--;
    if (s == CK_OK && !(*out = ck_arena_strndup(a, text.n ? text.p : "", text.n))) s = ck_nomem(err, a->mem, text.n);
    if (s != CK_OK) ck_error_prefix(err, "option '%s': ", name);
    return s;
}

ck_status ck_secret_check_url(const char *name, const char *url, const char *instead, ck_error *err) {
    const char *host = strstr(url, "://");
    if (!host) return CK_OK;
    host += 3;
    if (!memchr(host, '@', strcspn(host, "/?#"))) return CK_OK;
    return ck_fail(
        err, CK_INVALID,
        "option '%s' says in the address who we are, where it would be kept with checkpoints and shown; %s say "
        "so",
        name, instead);
}

ck_status ck_secret_check(const char *name, const char *value, ck_error *err) {
    size_t n = value ? strlen(value) : 0;
    bool named =
        n > 7 && (strncmp(value, "${env:", 6) == 0 || strncmp(value, "${file:", 7) == 0) && value[n - 1] == '}';
    if (!value || named) return CK_OK;
    return ck_fail(err, CK_INVALID,
                   "option '%s' must be '${env:NAME}' or '${file:PATH}': a script is kept with its checkpoints, and a "
                   "secret must not stand in it",
                   name);
}
