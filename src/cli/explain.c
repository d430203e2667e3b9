/* clink explain: the plan of a script, its edge modes, state and guarantees, without running it. */
#include <stdio.h>

#include "cli/script.h"
#include "cli/verbs.h"

int explain_print(const run_start *r) {
    clink_error e = {0};
    char *text = NULL;
    clink_status st = clink_explain(r->engine, r->s.text, &r->run, &text, &e);
    if (st != CLINK_OK) return report_error(st, &e);
    fputs(text, stdout);
    clink_free(text);
    return 0;
}

static int explain_main(const verb *v, int argc, char **argv) {
    run_start r;
    int rc;
    if (!run_start_begin(v, run_flags_explain, argc, argv, &r, &rc)) return rc;
    rc = explain_print(&r);
    run_start_end(&r);
    return rc;
}

const verb verb_explain = {
    "explain",
    "show a script's plan, state and delivery guarantees",
    "clink explain FILE.sql | -e SQL | -  [flags of run]",
    "  clink explain -p 4 --checkpoint-dir ck orders.sql",
    explain_main,
};
