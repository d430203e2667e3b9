/* clink savepoint --dispose DIR:N and clink checkpoint-verify DIR: what is done with checkpoints that stand, without a
 * running job. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/jobs.h"
#include "cli/script.h"
#include "cli/verbs.h"

static clink_status open_tool(clink_engine **engine, clink_error *e) {
    const clink_options o = {.struct_bytes = sizeof o, .threads = 1};
    return clink_open(&o, engine, e);
}

/* ---- savepoint ---- */

/* DIR:N in place: the colon becomes the end of DIR. */
static bool split_place(char *place, uint64_t *id) {
    char *colon = strrchr(place, ':'), *end;
    if (!colon || colon == place || strspn(colon + 1, "0123456789") != strlen(colon + 1) || !colon[1]) return false;
    *id = strtoull(colon + 1, &end, 10);
    *colon = 0;
    return *id > 0 && *id <= INT64_MAX;
}

static int dispose(const verb *v, const char *text) {
    clink_engine *engine = NULL;
    clink_error e = {0};
    uint64_t id;
    char *place = strdup(text);
    if (!place) return 1;
    if (!split_place(place, &id)) {
        free(place);
        return usage_error(v, "--dispose takes DIR:N, not '%s'", text);
    }
    clink_status s = open_tool(&engine, &e);
    if (s == CLINK_OK) s = clink_savepoint_dispose(engine, place, id, &e);
    if (s == CLINK_OK)
        fprintf(stderr, "clink: savepoint %" PRIu64 " in %s is gone\n", id, place);
    else
        report_error(s, &e);
    clink_close(engine);
    free(place);
    return s == CLINK_OK ? 0 : 1;
}

static int savepoint_main(const verb *v, int argc, char **argv) {
    const char *place = NULL;
    cluster_flags cluster = {.timeout_s = 30};
    uint64_t id;
    flag table[1 + CLUSTER_FLAG_COUNT] = {
        {"dispose", 0, FLAG_TEXT, &place, "DIR:N", NULL, "remove savepoint N of a checkpoint directory"}};
    size_t n = 1 + cluster_flags_table(&cluster, table + 1);
    bool help;
    int rc = flags_parse(v, table, n, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, table, n);
        return 0;
    }
    if (argc > !place) return usage_error(v, "'%s' is one argument too many", argv[argc - 1]);
    if (place) return dispose(v, place);
    if (!argc) return usage_error(v, "ID or --dispose DIR:N is missing; a run takes a savepoint at kill -USR1");
    if (cluster.timeout_s < 1 || cluster.timeout_s > 1000000) return usage_error(v, "--timeout-s is 1 to 1000000");
    return jobs_id(v, argv[0], &id) ? 2 : jobs_ask(&cluster, CLINK_JOB_SAVEPOINT, id);
}

const verb verb_savepoint = {
    .name = "savepoint",
    .summary = "take a savepoint of a cluster's job, or remove one that is no longer wanted",
    .usage = "clink savepoint ID [flags]\n       clink savepoint --dispose DIR:N",
    .notes =
        "A job of clink run takes savepoints itself: kill -USR1 PID takes one, kill -USR2 PID stops with one. PID is "
        "in the\n"
        "last line of job.lock in its checkpoint directory. clink run --restore N goes back to one, and\n"
        "clink checkpoint-verify DIR shows which stand.",
    .example = "  clink savepoint 1\n  clink savepoint --dispose ck:12",
    .main = savepoint_main,
};

/* ---- checkpoint-verify ---- */

typedef struct listing {
    bool json;
    uint64_t files, bytes;
} listing;

static void print_json_text(const char *z) {
    putchar('"');
    for (; *z; z++) {
        unsigned char c = (unsigned char)*z;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void seen(void *arg, const clink_verified *f) {
    listing *l = arg;
    l->files++;
    l->bytes += f->bytes;
    if (!l->json) {
        printf("%s %" PRIu64 "  %s  %s%s\n", f->savepoint ? "savepoint " : "checkpoint", f->checkpoint, f->path,
               f->damage ? "DAMAGED: " : "whole", f->damage ? f->damage : "");
        return;
    }
    printf("{\"checkpoint\":%" PRIu64 "%s,\"path\":", f->checkpoint, f->savepoint ? ",\"savepoint\":true" : "");
    print_json_text(f->path);
    printf(",\"bytes\":%" PRIu64 ",\"whole\":%s", f->bytes, f->damage ? "false,\"damage\":" : "true");
    if (f->damage) print_json_text(f->damage);
    printf("}\n");
}

static int verify(const char *dir, uint64_t id, bool json) {
    clink_engine *engine = NULL;
    clink_error e = {0};
    listing l = {.json = json};
    uint64_t damaged = 0;
    clink_status s = open_tool(&engine, &e);
    if (s == CLINK_OK) s = clink_checkpoint_verify(engine, dir, id, seen, &l, &damaged, &e);
    clink_close(engine);
    if (s != CLINK_OK) {
        report_error(s, &e);
        return 2;
    }
    if (!json)
        printf("%" PRIu64 " file%s, %" PRIu64 " bytes: %" PRIu64 " damaged\n", l.files, l.files == 1 ? "" : "s",
               l.bytes, damaged);
    return damaged ? 1 : 0;
}

static int verify_main(const verb *v, int argc, char **argv) {
    int64_t id = 0;
    bool json = false, help;
    flag table[] = {{"id", 0, FLAG_POSITIVE, &id, "N", "all", "one checkpoint"},
                    {"json", 0, FLAG_SWITCH, &json, NULL, NULL, "one object a file"}};
    int rc = flags_parse(v, table, sizeof table / sizeof *table, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, table, sizeof table / sizeof *table);
        return 0;
    }
    if (argc != 1) return usage_error(v, argc ? "one directory at a time" : "a checkpoint directory is missing");
    return verify(argv[0], (uint64_t)id, json);
}

const verb verb_checkpoint_verify = {
    .name = "checkpoint-verify",
    .summary = "check every file of every checkpoint against size and checksum",
    .usage = "clink checkpoint-verify DIR [--id N] [--json]",
    .example = "  clink checkpoint-verify ck",
    .main = verify_main,
};
