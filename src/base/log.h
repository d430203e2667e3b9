/* Diagnostics for people running the engine: one line each, to the proc's writer (the CLI writes stderr). Never
 * results. */
#ifndef CK_BASE_LOG_H
#define CK_BASE_LOG_H

#include "base/status.h"

typedef enum ck_log_level { CK_LOG_DEBUG, CK_LOG_INFO, CK_LOG_WARN, CK_LOG_ERROR, CK_LOG_OFF } ck_log_level;

typedef struct ck_log {
    ck_log_level level; /* lines below it are dropped */
    void *arg;
    void (*write)(void *arg, ck_log_level level,
                  const char *line); /* line has no newline; thread: any, must not block long */
} ck_log;

/* NULL log or write drops. Lines are cut at 1,000 bytes. */
void ck_log_line(const ck_log *log, ck_log_level level, const char *fmt, ...) CK_PRINTF(3, 4);

#endif
