/* clink run: a script in this process, to its end or until it is stopped. */
#include "cli/verbs.h"
#include "cli/wait.h"

static int run_script(run_start *r) {
    clink_error e = {0};
    clink_job *job = NULL;
    clink_status st = wait_execute(r->engine, r->s.text, &r->run, WAIT_SPEAK, &job, &e);
    clink_job_free(job);
    return st == CLINK_OK ? 0 : report_error(st, &e);
}

static int run_main(const verb *v, int argc, char **argv) {
    run_start r;
    int rc;
    if (!run_start_begin(v, run_flags_table, argc, argv, &r, &rc)) return rc;
    rc = r.f.explain ? explain_print(&r) : run_script(&r);
    run_start_end(&r);
    return rc;
}

const verb verb_run = {
    .name = "run",
    .summary = "run a script in this process",
    .usage = "clink run FILE.sql | -e SQL | - | --job FILE.so  [flags]",
    .example = "  clink run -e \"CREATE TABLE t (usr VARCHAR, amount BIGINT) WITH (connector='file', format='json', "
               "path='orders.ndjson');\n"
               "                SELECT usr, SUM(amount) AS total FROM t GROUP BY usr\"\n"
               "  clink run --checkpoint-dir ck -p 2 job.sql   # killed and started again it goes on",
    .main = run_main,
};
