/* clink submit: a script, or the job of a plugin, as a job of a cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cluster.h"
#include "cli/verbs.h"

/* The flags of run that mean something to a job elsewhere, then those of a cluster. */
static size_t submit_flags(run_flags *f, flag *out) {
    static const char *const names[] = {"execute",
                                        "name",
                                        "parallelism",
                                        "key-groups",
                                        "set",
                                        "memory",
                                        "checkpoint-dir",
                                        "checkpoint-interval-ms",
                                        "checkpoint-timeout-ms",
                                        "final-checkpoint-timeout-ms",
                                        "tolerable-failed-checkpoints",
                                        "checkpoint-retained",
                                        "alignment",
                                        "alignment-stall-ms",
                                        "allow-semantic-change",
                                        "added-state",
                                        "state-backend",
                                        "materialisation",
                                        "materialisation-every",
                                        "plugin",
                                        "job"};
    flag all[RUN_FLAG_COUNT];
    size_t count = run_flags_table(f, all), n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            if (strcmp(all[i].name, names[k]) != 0) continue;
            out[n] = all[i];
            if (strcmp(names[k], "checkpoint-interval-ms") == 0) out[n].deflt = "0";
            if (strcmp(names[k], "memory") == 0) out[n].deflt = "what its slots have";
            n++;
        }
    return n;
}

typedef struct submission {
    run_flags f;
    script s;
    clink_run run;
    cluster_flags c;
    const char *restarts;
    int64_t max_restarts;
    bool wait;
} submission;

static int read_restarts(const verb *v, submission *x) {
    char *end;
    x->max_restarts = -1;
    if (!x->restarts || strcmp(x->restarts, "auto") == 0) return 0;
    if (strlen(x->restarts) == strspn(x->restarts, "0123456789") && *x->restarts) {
        x->max_restarts = strtoll(x->restarts, &end, 10);
        if (x->max_restarts <= UINT32_MAX) return 0;
    }
    return usage_error(v, "--max-restarts-on-worker-loss is auto or a number, not '%s'", x->restarts);
}

/* How it ended is the exit status of a submit that waits. */
static int judge(const submission *x, const char *json) {
    char status[32], error[2100];
    if (!x->wait) return 0;
    cluster_text(json, "status", status, sizeof status);
    cluster_text(json, "error", error, sizeof error);
    if (strcmp(status, "finished") == 0) return 0;
    fprintf(stderr, "clink: the job is %s%s%s\n", status, error[0] ? ": " : "", error);
    return 1;
}

static int submit(const verb *v, submission *x) {
    clink_engine *engine = NULL;
    clink_error e = {0};
    char *json = NULL;
    int rc = 0;
    const clink_cluster c = cluster_of(&x->c, x->wait ? 0 : x->c.timeout_s * 1000);
    clink_status s = run_flags_open(v, &x->f, &engine);
    if (s != CLINK_OK) return s == CLINK_INVALID ? 2 : 1; /* which has been said */
    s = clink_submit(engine, &c, x->s.text, &x->run, x->max_restarts, x->wait, &json, &e);
    if (s == CLINK_OK) {
        cluster_print_jobs(json, x->c.json);
        rc = judge(x, json);
    } else {
        rc = report_error(s, &e);
    }
    clink_free(json);
    clink_close(engine);
    return rc;
}

static int submit_main(const verb *v, int argc, char **argv) {
    submission x = {.c.timeout_s = 30};
    flag rows[RUN_FLAG_COUNT + CLUSTER_FLAG_COUNT + 2];
    bool help;
    run_flags_init(&x.f);
    x.f.checkpoint_interval_ms = 0;
    x.f.threads = 1; /* nothing runs here */
    size_t n = submit_flags(&x.f, rows);
    n += cluster_flags_table(&x.c, rows + n);
    rows[n++] = (flag){"max-restarts-on-worker-loss",
                       0,
                       FLAG_TEXT,
                       &x.restarts,
                       "auto|N",
                       "auto",
                       "auto: 10 with a checkpoint directory, 0 without"};
    rows[n++] =
        (flag){"wait", 0, FLAG_SWITCH, &x.wait, NULL, NULL, "until the job has ended; its end is the exit status"};
    int rc = flags_parse(v, rows, n, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, rows, n);
        return 0;
    }
    rc = run_flags_script(v, &x.f, argv, argc, &x.s);
    if (!rc) rc = run_flags_apply(v, &x.f, &x.s, &x.run);
    if (!rc) rc = read_restarts(v, &x);
    if (!rc) rc = submit(v, &x);
    script_free(&x.s);
    return rc;
}

const verb verb_submit = {
    .name = "submit",
    .summary = "run a script as a job of a cluster",
    .usage = "clink submit FILE.sql | -e SQL | - | --job FILE.so  [flags]",
    .example = "  clink submit -p 4 --checkpoint-dir ck --checkpoint-interval-ms 1000 job.sql\n"
               "  clink submit --wait job.sql",
    .main = submit_main,
    .notes =
        "paths in the script and the checkpoint directory are taken from here, and the workers have to see them too. "
        "A job with a\n"
        "checkpoint directory goes on when a worker is lost, from its last checkpoint, on slots that are free.\n"
        "Plugins are taken along: the coordinator has to be started with --allow-plugins.",
};
