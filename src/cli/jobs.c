/* clink list, status, cancel, drop, resume, stop, savepoint ID: what is asked of a coordinator about its jobs. */
#include "cli/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/script.h"
#include "cli/verbs.h"

static int ask_about(const cluster_flags *f, clink_job_command command, uint64_t id, const char *skip_record) {
    clink_engine *engine = NULL;
    clink_error e = {0};
    char *json = NULL;
    const clink_cluster c = cluster_of(f, f->timeout_s * 1000);
    clink_status s = cluster_open(0, NULL, &engine, &e);
    if (s == CLINK_OK && skip_record)
        s = clink_resume(engine, &c, id, skip_record, &json, &e);
    else if (s == CLINK_OK)
        s = clink_ask(engine, &c, command, id, &json, &e);
    if (s == CLINK_OK) cluster_print_jobs(json, f->json);
    clink_free(json);
    clink_close(engine);
    return s == CLINK_OK ? 0 : report_error(s, &e);
}

int jobs_ask(const cluster_flags *f, clink_job_command command, uint64_t id) { return ask_about(f, command, id, NULL); }

int jobs_id(const verb *v, const char *text, uint64_t *id) {
    char *end;
    *id = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || *id == 0) return usage_error(v, "'%s' is no job's number", text);
    return 0;
}

static int ask(const verb *v, clink_job_command command, int argc, char **argv) {
    cluster_flags f = {.timeout_s = 30};
    flag rows[CLUSTER_FLAG_COUNT + 1];
    size_t n = cluster_flags_table(&f, rows);
    const char *skip_record = NULL;
    uint64_t id = 0;
    bool help;
    if (command == CLINK_JOB_RESUME)
        rows[n++] = (flag){"skip-record",
                           0,
                           FLAG_TEXT,
                           &skip_record,
                           "SPLIT:OFFSET",
                           NULL,
                           "go on without this record, too: its place is in the job's error"};
    int rc = flags_parse(v, rows, n, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, rows, n);
        return 0;
    }
    int wanted = command == CLINK_JOB_LIST ? 0 : 1;
    if (argc > wanted) return usage_error(v, "'%s' is one argument too many", argv[wanted]);
    if (argc < wanted) return usage_error(v, "which job? clink list shows their numbers");
    if (f.timeout_s < 1 || f.timeout_s > 1000000) return usage_error(v, "--timeout-s is 1 to 1000000");
    if (wanted && jobs_id(v, argv[0], &id)) return 2;
    return ask_about(&f, command, id, skip_record);
}

#define JOB_VERB(symbol, command, text, what, args, sample)                                                            \
    static int symbol##_main(const verb *v, int argc, char **argv) { return ask(v, command, argc, argv); }             \
    const verb verb_##symbol = {.name = text,                                                                          \
                                .summary = what,                                                                       \
                                .usage = "clink " text args " [flags]",                                                \
                                .example = "  clink " text sample,                                                     \
                                .main = symbol##_main}

JOB_VERB(list, CLINK_JOB_LIST, "list", "the jobs of a cluster", "", " --json");
JOB_VERB(status, CLINK_JOB_STATUS, "status", "a job of a cluster and its subtasks", " ID", " 1 --json");
JOB_VERB(cancel, CLINK_JOB_CANCEL, "cancel", "end a job; output of complete checkpoints stays", " ID", " 1");
JOB_VERB(drop, CLINK_JOB_DROP, "drop", "end a job and forget it, whatever it does", " ID", " 1");
JOB_VERB(resume, CLINK_JOB_RESUME, "resume", "go on with a job that a record has suspended", " ID",
         " 1 --skip-record in.ndjson:8890");
JOB_VERB(stop, CLINK_JOB_STOP, "stop", "end a job with a savepoint", " ID", " 1");
