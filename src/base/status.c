/* See status.h. */
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the character at p; 0: it is none, or none that a terminal only shows. */
static size_t shown_bytes(const unsigned char *p) {
    if (p[0] < 0x80) return (p[0] >= 0x20 && p[0] != 0x7f) || p[0] == '\n' || p[0] == '\t';
    size_t n = p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0; /* the end, too */
    bool odd = (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
               (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90); /* a control, too long, no character */
    return odd ? 0 : n;
}

/* Names of files and what plugins, servers and users say are anything: a message is text. */
static void make_text(char *msg) {
    for (unsigned char *p = (unsigned char *)msg; *p;) {
        size_t n = shown_bytes(p);
        if (!n) *p = '.';
        p += n ? n : 1;
    }
}

static void cut_with_ellipsis(ck_error *err, int wanted) {
    if (wanted < 0) {
        snprintf(err->msg, sizeof err->msg, "(unprintable message)");
    } else if ((size_t)wanted >= sizeof err->msg) {
        memcpy(err->msg + sizeof err->msg - 4, "...", 4);
    }
    make_text(err->msg);
}

ck_status ck_vfail(ck_error *err, ck_status status, const char *fmt, va_list ap) {
    if (!err) return status;
    err->status = status;
    err->retriable = false;
    err->fatal = status == CK_DATA || status == CK_REFUSED || status == CK_INVALID;
    cut_with_ellipsis(err, vsnprintf(err->msg, sizeof err->msg, fmt, ap));
    return status;
}

ck_status ck_fail(ck_error *err, ck_status status, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    ck_vfail(err, status, fmt, ap);
    va_end(ap);
    return status;
}

static bool errno_is_retriable(int errnum) {
    switch (errnum) {
    case EINTR:
    case EAGAIN:
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH: return true;
    default: return false;
    }
}

ck_status ck_fail_errno(ck_error *err, int errnum, const char *fmt, ...) {
    ck_status status = errnum == ENOENT   ? CK_NOTFOUND
                       : errnum == EEXIST ? CK_EXISTS
                       : errnum == ENOMEM ? CK_NOMEM
                                          : CK_IO;
    if (!err) return status;
    va_list ap;
    va_start(ap, fmt);
    ck_vfail(err, status, fmt, ap);
    va_end(ap);
    char text[128];
    size_t used = strlen(err->msg);
    const char *why = strerror_r(errnum, text, sizeof text);
    cut_with_ellipsis(err, (int)used + snprintf(err->msg + used, sizeof err->msg - used, ": %s", why));
    err->retriable = errno_is_retriable(errnum);
    return status;
}

ck_status ck_error_prefix(ck_error *err, const char *fmt, ...) {
    if (!err) return CK_IO;
    char old[sizeof err->msg];
    memcpy(old, err->msg, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n < sizeof err->msg ? (size_t)n : sizeof err->msg - 1;
    cut_with_ellipsis(err, (int)used + snprintf(err->msg + used, sizeof err->msg - used, "%s", old));
    return err->status;
}

void ck_error_reset(ck_error *err) {
    if (err) *err = CK_ERROR_INIT;
}

const char *ck_status_name(ck_status s) {
    static const char *const names[] = {"ok",     "more",    "again",     "out of memory", "full",
                                        "closed", "exists",  "not found", "i/o",           "corrupt",
                                        "data",   "refused", "invalid",   "cancelled"};
    return (size_t)s < CK_ARRAY_COUNT(names) ? names[s] : "unknown";
}

_Noreturn void ck_assert_failed(const char *file, int line, const char *what) {
    fprintf(stderr, "clink: internal error at %s:%d: %s does not hold; please report this\n", file, line, what);
    abort();
}
