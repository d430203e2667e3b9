/* clink run: a script in this process, to its end or until it is stopped. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/script.h"
#include "cli/verbs.h"
#include "cli/wait.h"

static void print_start(clink_job *job, bool checkpoints) {
    for (size_t i = 0; clink_job_warning(job, i); i++)
        fprintf(stderr, "clink: warning: %s\n", clink_job_warning(job, i));
    const char *g = clink_job_guarantee(job);
    if (g && *g && (checkpoints || !clink_job_has_result(job)))
        fprintf(stderr, "clink: %s: %s\n", clink_job_name(job), g);
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
    st = wait_for_job(job, &e);
    wait_report(job);
    clink_job_free(job);
    return st == CLINK_OK ? 0 : report_error(st, &e);
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
    if (!rc) rc = run_flags_output(v, &f, &run);
    if (!rc) {
        wait_block_stop_signals();
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
