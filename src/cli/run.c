/* clink run: a script in this process, to its end or until it is stopped. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/progress.h"
#include "cli/script.h"
#include "cli/verbs.h"

enum { WAIT_MS = 100 };

/* Ctrl-C and SIGTERM are blocked and looked for between waits: no handler, no flag. */
static bool stop_asked(const sigset_t *stop) {
    struct timespec now = {0};
    int got;
    do got = sigtimedwait(stop, NULL, &now);
    while (got < 0 && errno == EINTR);
    return got > 0;
}

static clink_status wait_for_end(clink_job *job, clink_error *e) {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    progress_line line;
    progress_init(&line, job);
    bool asked = false;
    clink_status s;
    while ((s = clink_job_wait(job, WAIT_MS, e)) == CLINK_TIMEOUT) {
        if (stop_asked(&stop)) {
            progress_clear(&line);
            if (asked) _exit(130); /* twice: at once */
            asked = true;
            fprintf(stderr, "clink: stopping; once more stops at once\n");
            clink_job_cancel(job);
        }
        progress_show(&line);
    }
    progress_clear(&line);
    return s;
}

static void print_start(clink_job *job, bool checkpoints) {
    for (size_t i = 0; clink_job_warning(job, i); i++)
        fprintf(stderr, "clink: warning: %s\n", clink_job_warning(job, i));
    const char *g = clink_job_guarantee(job);
    if (g && *g && (checkpoints || !clink_job_has_result(job)))
        fprintf(stderr, "clink: %s: %s\n", clink_job_name(job), g);
}

/* Known for certain only once it ended. */
static void print_end(clink_job *job) {
    if (clink_job_was_finished(job))
        fprintf(stderr, "clink: %s has finished before; nothing to do (--fresh starts it anew)\n", clink_job_name(job));
    clink_progress g = {.struct_bytes = sizeof g};
    clink_job_progress(job, &g);
    if (g.late_rows)
        fprintf(stderr, "clink: %llu row%s came too late for their window and were dropped\n",
                (unsigned long long)g.late_rows, g.late_rows == 1 ? "" : "s");
    if (g.bad_time_rows)
        fprintf(stderr, "clink: %llu row%s without a time between the years 1 and 9999 were left out of windows\n",
                (unsigned long long)g.bad_time_rows, g.bad_time_rows == 1 ? "" : "s");
    if (g.bad_rows)
        fprintf(stderr, "clink: %s: %llu record%s did not fit and %s left out\n", clink_job_name(job),
                (unsigned long long)g.bad_rows, g.bad_rows == 1 ? "" : "s", g.bad_rows == 1 ? "was" : "were");
}

static int choose_output(const verb *v, const char *format, clink_run *run) {
    run->fd = STDOUT_FILENO;
    if (!format)
        run->output = isatty(STDOUT_FILENO) ? CLINK_OUTPUT_TABLE : CLINK_OUTPUT_NDJSON;
    else if (strcmp(format, "ndjson") == 0)
        run->output = CLINK_OUTPUT_NDJSON;
    else if (strcmp(format, "csv") == 0)
        run->output = CLINK_OUTPUT_CSV;
    else if (strcmp(format, "table") == 0)
        run->output = CLINK_OUTPUT_TABLE;
    else
        return usage_error(v, "--format is ndjson, table or csv, not '%s'", format);
    return 0;
}

void block_stop_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int wait_for_job(clink_job *job) {
    clink_error e = {0};
    clink_status st = wait_for_end(job, &e);
    print_end(job);
    return st == CLINK_OK ? 0 : report_error(st, &e);
}

static int run_script(clink_engine *engine, const script *s, const clink_run *run, bool explain) {
    clink_error e = {0};
    if (explain) {
        char *text = NULL;
        clink_status st = clink_explain(engine, s->text, run, &text, &e);
        if (st == CLINK_OK) fputs(text, stdout);
        clink_free(text);
        return st == CLINK_OK ? 0 : report_error(st, &e);
    }
    clink_job *job = NULL;
    clink_status st = clink_execute(engine, s->text, run, &job, &e);
    if (st != CLINK_OK) return report_error(st, &e);
    if (!job) return 0;
    print_start(job, run->checkpoint_dir != NULL);
    int rc = wait_for_job(job);
    clink_job_free(job);
    return rc;
}

static int run_main(const verb *v, int argc, char **argv) {
    run_flags f;
    run_flags_init(&f);
    flag table[RUN_FLAG_COUNT];
    size_t n = run_flags_table(&f, table);
    bool help;
    int rc = flags_parse(v, table, n, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, table, n);
        return 0;
    }
    script s;
    clink_run run = {0};
    clink_engine *engine = NULL;
    rc = script_load(v, f.execute, argv, argc, &s);
    if (!rc) rc = run_flags_apply(v, &f, &s, &run);
    if (!rc) rc = choose_output(v, f.format, &run);
    if (!rc) {
        block_stop_signals();
        clink_status st = run_flags_open(v, &f, &engine);
        rc = st == CLINK_OK ? run_script(engine, &s, &run, f.explain) : st == CLINK_INVALID ? 2 : 1;
    }
    clink_close(engine);
    script_free(&s);
    return rc;
}

const verb verb_run = {
    "run",
    "run a script in this process",
    "clink run FILE.sql | -e SQL | -  [flags]",
    "  clink run -e \"CREATE TABLE t (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', "
    "path='orders.ndjson');\n"
    "                SELECT usr, SUM(amount) AS total FROM t GROUP BY usr\"",
    run_main,
};
