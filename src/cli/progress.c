/* See progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_US = 500000, EVERY_US = 250000 };

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void progress_init(progress_line *p, clink_job *job) {
    *p = (progress_line){.job = job, .enabled = isatty(STDERR_FILENO) != 0, .started_us = now_us()};
    p->last_us = p->started_us;
}

/* 12345678 as "12.3M". */
static void human(char *out, size_t size, double v, const char *unit) {
    static const char *const steps[] = {"", "k", "M", "G", "T"};
    size_t i = 0;
    while (v >= 1000 && i < 4) v /= 1000, i++;
    snprintf(out, size, v < 10 && i ? "%.1f%s%s" : "%.0f%s%s", v, steps[i], unit);
}

void progress_show(progress_line *p) {
    int64_t now = now_us();
    if (!p->enabled || now - p->started_us < FIRST_US || (p->shown && now - p->last_us < EVERY_US)) return;
    clink_progress g = {.struct_bytes = sizeof g};
    clink_job_progress(p->job, &g);
    if (g.rows_out && isatty(STDOUT_FILENO)) { /* rows are on the screen: no line between them */
        progress_clear(p);
        p->enabled = false;
        return;
    }
    double seconds = (double)(now - p->last_us) / 1e6;
    char rows[32], rate[32], bytes[32], memory[32], done[32] = "", checkpoint[48] = "";
    human(rows, sizeof rows, (double)g.rows_in, " rows");
    human(rate, sizeof rate, (double)(g.rows_in - p->last_rows) / seconds, " rows/s");
    human(bytes, sizeof bytes, (double)(g.bytes_in - p->last_bytes) / seconds, "B/s");
    human(memory, sizeof memory, (double)g.memory_bytes, "B");
    if (g.bytes_total) snprintf(done, sizeof done, "%3.0f%% ", 100.0 * (double)g.bytes_in / (double)g.bytes_total);
    if (g.checkpoints)
        snprintf(checkpoint, sizeof checkpoint, ", checkpoint %llu", (unsigned long long)g.last_checkpoint);
    fprintf(stderr, "\r\033[K%s%s, %s, %s, memory %s%s", done, rows, rate, bytes, memory, checkpoint);
    fflush(stderr);
    p->shown = true;
    p->last_us = now;
    p->last_bytes = g.bytes_in;
    p->last_rows = g.rows_in;
}

void progress_clear(progress_line *p) {
    if (p->shown) fputs("\r\033[K", stderr);
    p->shown = false;
}
