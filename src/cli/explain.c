/* clink explain: the plan of a script, its edge modes, state and guarantees, without running it. */
#include <stdio.h>
#include <unistd.h>

#include "cli/script.h"
#include "cli/verbs.h"

int explain_print(const run_start *r) {
    clink_error e = {0};
    char *text = NULL;
    clink_status st = clink_explain(r->engine, r->s.text, &r->run, &text, &e);
    if (st != CLINK_OK) return report_error(st, &e);
    fputs(text, stdout);
    if (isatty(STDOUT_FILENO)) fputs("(clink help explain says how to read this)\n", stderr);
    clink_free(text);
    return 0;
}

/* What would become of the state of the checkpoint the script would go on from. */
static int explain_restore(const run_start *r) {
    clink_error e = {0};
    char *text = NULL;
    clink_restore_verdict verdict = CLINK_RESTORE_WHOLE;
    clink_status st = clink_explain_restore(r->engine, r->s.text, &r->run, &text, &verdict, &e);
    if (st != CLINK_OK) return report_error(st, &e);
    fputs(text, stdout);
    clink_free(text);
    return (int)verdict;
}

static int explain_main(const verb *v, int argc, char **argv) {
    run_start r;
    int rc;
    if (!run_start_begin(v, run_flags_explain, argc, argv, &r, &rc)) return rc;
    rc = r.run.restore ? explain_restore(&r) : explain_print(&r);
    run_start_end(&r);
    return rc;
}

const verb verb_explain = {
    .name = "explain",
    .summary = "show a script's plan, state and delivery guarantees",
    .usage = "clink explain FILE.sql | -e SQL | - | --job FILE.so  [flags of run]",
    .example = "  clink explain -p 4 --checkpoint-dir ck job.sql",
    .main = explain_main,
    .notes =
        "reading a plan: a sink stands above what it is fed by; each operator is followed by its inputs, further in.\n"
        "  <- forward, append, bounded   how rows come: to the same subtask (forward), by a key (hash), to all "
        "(broadcast),\n"
        "                                to one (gather); only new rows (append), rows and what takes them back "
        "(retract),\n"
        "                                the row of each key (upsert); from input that ends (bounded) or goes on\n"
        "  final                         says its result once, when its input has ended\n"
        "  key (a), uid U                a row of the output for each a; U names the operator's state in checkpoints\n"
        "  state S (a) -> b              kept for each a: b\n"
        "  watermark ts - 5 s            time is taken to have come to the greatest ts less that\n"
        "  guarantee: T: ...             what table T gets when the job is killed and started again\n"
        "with --checkpoint-dir and --restore: what becomes of each operator's state (reuse, migrate, new, rebuild, "
        "drop,\n"
        "refused). Exit code 0: all of it goes on; 3: refused; 4: some is rebuilt or dropped.",
};
