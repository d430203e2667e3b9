/* See progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* 75 as "1m15s". */
static void duration(char *out, size_t size, double seconds) {
    long s = seconds < 1e9 ? (long)(seconds + 0.5) : 0;
    if (seconds < 10)
        snprintf(out, size, "%.*fs", seconds < 1 ? 2 : 1, seconds);
    else if (s < 60)
        snprintf(out, size, "%lds", s);
    else if (s < 3600)
        snprintf(out, size, "%ldm%02lds", s / 60, s % 60);
    else
        snprintf(out, size, "%ldh%02ldm", s / 3600, s / 60 % 60);
}

/* ", 1m15s left" of bounded input, from the mean rate so far. */
static void time_left(char *out, size_t size, const clink_progress *g, double seconds) {
    char text[32];
    if (!g->bytes_total || g->bytes_in < g->bytes_total / 100 || g->bytes_in == 0) return;
    double rest = g->bytes_in < g->bytes_total ? (double)(g->bytes_total - g->bytes_in) : 0;
    duration(text, sizeof text, rest * seconds / (double)g->bytes_in);
    snprintf(out, size, ", %s left", text);
}

/* ", 1.2k records (15s) behind" what a source follows. */
static int lag_text(const clink_progress *g, char *out, size_t size) {
    char records[32], age[32];
    human(records, sizeof records, (double)g->lag_records, "");
    duration(age, sizeof age, (double)g->lag_ms / 1e3);
    return snprintf(out, size, ", %s record%s (%s) behind", records, g->lag_records == 1 ? "" : "s", age);
}

/* A line that is longer than the terminal is wide could not be cleared: what is too much is left away, at the end of a
 * character. */
static void cut_to_terminal(char *line) {
    struct winsize w;
    size_t room = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1u : 79, shown = 0;
    for (char *p = line; *p; p++) {
        if ((*p & 0xc0) == 0x80 || shown++ < room) continue;
        *p = 0;
        return;
    }
}

void progress_show(progress_line *p) {
    int64_t now = now_us();
    if (!p->enabled || now - p->started_us < FIRST_US || (p->shown && now - p->last_us < EVERY_US)) return;
    clink_progress g = {.struct_bytes = sizeof g};
    clink_job_progress(p->job, &g);
    if (g.rows_out && clink_job_prints(p->job) &&
        isatty(STDOUT_FILENO)) { /* rows are on the screen: no line between them */
        progress_clear(p);
        p->enabled = false;
        return;
    }
    double seconds = (double)(now - p->last_us) / 1e6;
    char rows[32], rate[32], bytes[32], memory[32], done[32] = "", left[48] = "", checkpoint[48] = "", line[1024];
    human(rows, sizeof rows, (double)g.rows_in, " rows");
    human(rate, sizeof rate, (double)(g.rows_in - p->last_rows) / seconds, " rows/s");
    human(bytes, sizeof bytes, (double)(g.bytes_in - p->last_bytes) / seconds, "B/s");
    human(memory, sizeof memory, (double)g.memory_bytes, "B");
    if (g.bytes_total) snprintf(done, sizeof done, "%3.0f%% ", 100.0 * (double)g.bytes_in / (double)g.bytes_total);
    time_left(left, sizeof left, &g, (double)(now - p->started_us) / 1e6);
    if (g.checkpoints)
        snprintf(checkpoint, sizeof checkpoint, ", checkpoint %llu", (unsigned long long)g.last_checkpoint);
    int n =
        snprintf(line, sizeof line, "%s%s, %s, %s%s, memory %s%s", done, rows, rate, bytes, left, memory, checkpoint);
    if (g.lag_records >= 0) n += lag_text(&g, line + n, sizeof line - (size_t)n);
    char watermark[512];
    if (clink_job_watermark(p->job, watermark, sizeof watermark))
        snprintf(line + n, sizeof line - (size_t)n, ", %s", watermark);
    cut_to_terminal(line);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    p->shown = p->was_shown = true;
    p->last_us = now;
    p->last_bytes = g.bytes_in;
    p->last_rows = g.rows_in;
}

void progress_clear(progress_line *p) {
    if (p->shown) fputs("\r\033[K", stderr);
    p->shown = false;
}

void progress_end(const progress_line *p, bool always) {
    if (!always && !p->was_shown) return;
    clink_progress g = {.struct_bytes = sizeof g};
    clink_job_progress(p->job, &g);
    double seconds = (double)(now_us() - p->started_us) / 1e6;
    char time[32], bytes[40] = "", skipped[48] = "", letters[48] = "";
    duration(time, sizeof time, seconds);
    if (g.bytes_in) {
        char n[32];
        human(n, sizeof n, (double)g.bytes_in, "B");
        snprintf(bytes, sizeof bytes, " (%s)", n);
    }
    if (g.bad_rows > g.dead_letters)
        snprintf(skipped, sizeof skipped, ", %llu skipped", (unsigned long long)(g.bad_rows - g.dead_letters));
    if (g.dead_letters) snprintf(letters, sizeof letters, ", %llu put aside", (unsigned long long)g.dead_letters);
    fprintf(stderr, "clink: %s: %llu row%s in%s, %llu out%s%s, %s\n", clink_job_name(p->job),
            (unsigned long long)g.rows_in, g.rows_in == 1 ? "" : "s", bytes,
            (unsigned long long)(g.rows_out - (g.dead_letters < g.rows_out ? g.dead_letters : g.rows_out)), skipped,
            letters, time);
}
