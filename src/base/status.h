/* Results and errors, one shape everywhere: a code to branch on, a sentence for people with its place, and two facts
 * that decide restarts. Functions that can fail return ck_status and take a caller-owned ck_error * (NULL = not
 * wanted). */
#ifndef CK_BASE_STATUS_H
#define CK_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CK_NODISCARD                     __attribute__((warn_unused_result))
#define CK_PRINTF(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))
#define CK_LIKELY(x)                     __builtin_expect(!!(x), 1)
#define CK_UNLIKELY(x)                   __builtin_expect(!!(x), 0)
#define CK_ARRAY_COUNT(a)                (sizeof(a) / sizeof((a)[0]))

typedef enum ck_status {
    CK_OK = 0,
    CK_MORE,      /* not an error: call again, there is more to say */
    CK_AGAIN,     /* not an error: nothing now, a notification will come */
    CK_NOMEM,     /* allocation failed or a memory budget is spent; the message names the category */
    CK_FULL,      /* a ceiling was reached: queue, frame, key, disk quota of our own */
    CK_CLOSED,    /* the other side reads or writes no more */
    CK_EXISTS,    /* an exclusive publish found the name taken */
    CK_NOTFOUND,  /* no such file, key, name */
    CK_IO,        /* the operating system said no; the message has errno's text */
    CK_CORRUPT,   /* bytes of ours that do not check out */
    CK_DATA,      /* a record that does not fit its table: deterministic, a restart will not help */
    CK_REFUSED,   /* understood and not done: incompatible state, unsafe sink, used directory */
    CK_INVALID,   /* the request itself is wrong: SQL, option, argument */
    CK_CANCELLED, /* asked to stop */
} ck_status;

/* Where an error is. Any member may be empty; ck_error_text prints what is there. */
typedef struct ck_place {
    char object[256];    /* file path, table, operator uid */
    int64_t line;        /* 1-based; 0 = unknown */
    int64_t column;      /* 1-based; 0 = unknown */
    int64_t byte_offset; /* -1 or 0 with line > 0 = unknown */
    bool of_records;     /* byte_offset counts records instead, as a log's partition does */
    int32_t subtask;     /* -1 = not of a subtask */
} ck_place;

typedef struct ck_error {
    ck_status status;
    bool retriable; /* the same call may succeed later (a server down, a full disk) */
    bool fatal;     /* no restart will help (a data error, a refused restore) */
    ck_place place;
    char msg[1024]; /* one sentence, no newline at the end; SQL errors append the caret lines after a newline */
} ck_error;

#define CK_ERROR_INIT ((ck_error){.place = {.byte_offset = -1, .subtask = -1}})

/* Fill *err (may be NULL) and return status, so that `return ck_fail(err, CK_IO, "...")` reads well. A message that
 * does not fit is cut with an ellipsis. Thread: any; touches only *err. */
ck_status ck_fail(ck_error *err, ck_status status, const char *fmt, ...) CK_PRINTF(3, 4);
ck_status ck_vfail(ck_error *err, ck_status status, const char *fmt, va_list ap);
/* As ck_fail with ": <strerror(errnum)>" appended. EINTR, ENOSPC, EAGAIN, EIO and the network errors are retriable. */
ck_status ck_fail_errno(ck_error *err, int errnum, const char *fmt, ...) CK_PRINTF(3, 4);
/* Put words in front of a message: "reading flights.csv: " + msg. No-op on NULL. Returns err->status (CK_IO when NULL).
 */
ck_status ck_error_prefix(ck_error *err, const char *fmt, ...) CK_PRINTF(2, 3);
void ck_error_reset(ck_error *err);
const char *ck_status_name(ck_status s);

/* Evaluate once, return on anything but CK_OK. Only where nothing is held. */
#define CK_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        ck_status ck_try_s_ = (expr);                                                                                  \
        if (CK_UNLIKELY(ck_try_s_ != CK_OK)) return ck_try_s_;                                                         \
    } while (0)

/* A bug of ours, not of the world: prints file, line and the condition, then aborts. On in every build. */
_Noreturn void ck_assert_failed(const char *file, int line, const char *what);
#define CK_ASSERT(cond) (CK_LIKELY(cond) ? (void)0 : ck_assert_failed(__FILE__, __LINE__, #cond))
#ifdef CK_DEBUG
#define CK_DASSERT(cond) CK_ASSERT(cond)
#else
#define CK_DASSERT(cond) ((void)0)
#endif

#endif
