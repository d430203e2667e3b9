/* clink check-savepoint: what a savepoint holds, and whether a job could go on from it. Exit codes: 0 compatible (or
 * readable, where no job is given), 1 unreadable, 2 usage or a job that cannot be read, 3 incompatible. */
#include <stdio.h>
#include <string.h>

#include "cli/script.h"
#include "cli/verbs.h"

static int check(const char *path, const char *expected, const clink_run *run, bool json) {
    const char *plugin[] = {expected, NULL};
    size_t n = expected ? strlen(expected) : 0;
    bool is_plugin = n > 3 && strcmp(expected + n - 3, ".so") == 0;
    const clink_options o = {.struct_bytes = sizeof o, .threads = 1, .plugins = is_plugin ? plugin : NULL};
    clink_engine *engine = NULL;
    clink_error e = {0};
    char *text = NULL;
    clink_savepoint_verdict verdict = CLINK_SAVEPOINT_NO_JOB; /* of a plugin that cannot be loaded */
    clink_status s = clink_open(&o, &engine, &e);
    if (s == CLINK_OK) s = clink_check_savepoint_for(engine, path, expected, run, json, &text, &verdict, &e);
    if (s == CLINK_OK)
        fputs(text, stdout);
    else
        (void)report_error(s, &e);
    clink_free(text);
    clink_close(engine);
    return (int)verdict;
}

static int check_savepoint_main(const verb *v, int argc, char **argv) {
    const char *expected = NULL, *added_state = NULL;
    clink_run run = {.struct_bytes = sizeof run};
    bool json = false, help;
    flag table[] = {{"expected", 0, FLAG_TEXT, &expected, "FILE", NULL, "a job: script.sql, graph.json or plugin.so"},
                    {"name", 0, FLAG_TEXT, &run.name, "NAME", NULL, "the job's; a savepoint of another is not for it"},
                    {"added-state", 0, FLAG_TEXT, &added_state, "HOW", "refuse",
                     "as that job would be started: refuse, from_now, backfill"},
                    {"json", 0, FLAG_SWITCH, &json, NULL, NULL, "one object"}};
    int rc = flags_parse(v, table, sizeof table / sizeof *table, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, table, sizeof table / sizeof *table);
        return 0;
    }
    if (argc != 1) return usage_error(v, argc ? "one savepoint at a time" : "a savepoint is missing");
    if (!expected && (run.name || added_state))
        return usage_error(v, "--%s is about a job that goes on from it, and needs --expected",
                           run.name ? "name" : "added-state");
    rc = added_state_parse(v, added_state, &run.added_state);
    return rc ? rc : check(argv[0], expected, &run, json);
}

const verb verb_check_savepoint = {
    .name = "check-savepoint",
    .summary = "show what a savepoint holds, and whether a job could go on from it",
    .usage = "clink check-savepoint FILE|DIR|DIR:N [--expected FILE [--name NAME] [--added-state HOW]] [--json]",
    .notes =
        "FILE is a snapshot or a checkpoint's manifest, DIR a checkpoint directory (its newest, or N). Every file is "
        "read and\n"
        "checked against its checksum. Exit code 0: the job could go on from it (or, without --expected: it can be "
        "read);\n"
        "1: it cannot be read; 2: usage, or the expected job cannot be read; 3: incompatible, each reason a line.\n"
        "clink explain --restore shows what becomes of every operator.",
    .example = "  clink check-savepoint ck --expected job.sql",
    .main = check_savepoint_main,
};
