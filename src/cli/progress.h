/* The progress line on standard error while a job runs: on a terminal only, one line, rewritten in place. */
#ifndef CK_CLI_PROGRESS_H
#define CK_CLI_PROGRESS_H

#include <stdbool.h>

#include "clink/clink.h"

typedef struct progress_line {
    clink_job *job;
    bool enabled, shown;
    int64_t started_us, last_us;
    uint64_t last_bytes, last_rows;
    bool was_shown;
} progress_line;

void progress_init(progress_line *p, clink_job *job);
void progress_show(progress_line *p); /* at most a few times a second, nothing in the first half second */
void progress_clear(progress_line *p);
/* What was done, in one line: where the progress was shown, or `always`. */
void progress_end(const progress_line *p, bool always);

#endif
