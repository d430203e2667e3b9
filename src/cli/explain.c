/* clink explain: the plan of a script, its edge modes, state and guarantee, without running it. */
#include <stdio.h>

#include "cli/script.h"
#include "cli/verbs.h"

static int explain_main(const verb *v, int argc, char **argv) {
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
    if (!rc) {
        clink_status st = run_flags_open(v, &f, &engine);
        rc = st == CLINK_OK ? 0 : st == CLINK_INVALID ? 2 : 1;
    }
    if (!rc) {
        clink_error e = {0};
        char *text = NULL;
        clink_status st = clink_explain(engine, s.text, &run, &text, &e);
        if (st == CLINK_OK)
            fputs(text, stdout);
        else
            rc = report_error(st, &e);
        clink_free(text);
    }
    clink_close(engine);
    script_free(&s);
    return rc;
}

const verb verb_explain = {
    "explain",
    "show a script's plan, state and delivery guarantee",
    "clink explain FILE.sql | -e SQL | -  [flags of run]",
    "  clink explain -p 4 --checkpoint-dir ck orders.sql",
    explain_main,
};
