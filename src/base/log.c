/* See log.h. */
#include "base/log.h"

#include <stdio.h>

void ck_log_line(const ck_log *log, ck_log_level level, const char *fmt, ...) {
    if (!log || !log->write || level < log->level) return;
    char line[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log->write(log->arg, level, line);
}
