#include "cli/cluster.h"

#include <stdio.h>
#include <string.h>

size_t cluster_flags_table(cluster_flags *f, flag *out) {
    const flag rows[] = {
        {"coordinator", 0, FLAG_TEXT, &f->coordinator, "HOST:PORT", "127.0.0.1:6123", "the coordinator's control port"},
        {"token-file", 0, FLAG_TEXT, &f->token_file, "FILE", "the runtime directory's", "where its token is"},
        {"json", 0, FLAG_SWITCH, &f->json, NULL, NULL, "one JSON object a line"},
        {"timeout-s", 0, FLAG_COUNT, &f->timeout_s, "N", "30", "how long an answer may take"},
    };
    memcpy(out, rows, sizeof rows);
    return sizeof rows / sizeof rows[0];
}

clink_cluster cluster_of(const cluster_flags *f, int64_t timeout_ms) {
    return (clink_cluster){.struct_bytes = sizeof(clink_cluster),
                           .coordinator = f->coordinator,
                           .token_file = f->token_file,
                           .timeout_ms = timeout_ms};
}

clink_status cluster_open(clink_engine **engine, clink_error *e) {
    const clink_options o = {.struct_bytes = sizeof o, .threads = 1};
    return clink_open(&o, engine, e);
}

/* ---- answers ---- */

/* Where the value of a key begins; JSON as the engine writes it, without spaces. Keys stand before nested objects. */
static const char *value_of(const char *json, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *p = strstr(json, quoted);
    return p ? p + strlen(quoted) : NULL;
}

void cluster_text(const char *json, const char *key, char *to, size_t room) {
    const char *p = value_of(json, key);
    size_t n = 0;
    if (p && *p == '"') {
        for (p++; *p && *p != '"' && n + 1 < room; p++) {
            if (*p == '\\' && p[1]) p++;
            to[n++] = *p;
        }
    } else {
        for (; p && *p >= '0' && *p <= '9' && n + 1 < room; p++) to[n++] = *p;
    }
    to[n] = 0;
}

static void print_line(const char *json) {
    char id[24], name[256], status[32], attempt[24], restarts[24], most[24], running[24], tasks[24], checkpoint[24],
        error[2100];
    const struct {
        const char *key;
        char *to;
        size_t room;
    } parts[] = {{"id", id, sizeof id},
                 {"name", name, sizeof name},
                 {"status", status, sizeof status},
                 {"attempt", attempt, sizeof attempt},
                 {"restarts", restarts, sizeof restarts},
                 {"restarts_max", most, sizeof most},
                 {"tasks_running", running, sizeof running},
                 {"tasks", tasks, sizeof tasks},
                 {"checkpoint", checkpoint, sizeof checkpoint},
                 {"error", error, sizeof error}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cluster_text(json, parts[i].key, parts[i].to, parts[i].room);
    printf("%-5s %-16s %-24s attempt %s, %s of %s restarts, %s of %s subtasks run, checkpoint %s%s%s\n", id, status,
           name, attempt, restarts, most, running, tasks, checkpoint, error[0] ? ": " : "", error);
}

/* What a running job is doing, as clink run shows it; nothing before its hosts have said it. */
static void print_progress(const char *json) {
    char rows_in[24], rows_out[24], note[600];
    cluster_text(json, "rows_in", rows_in, sizeof rows_in);
    cluster_text(json, "rows_out", rows_out, sizeof rows_out);
    cluster_text(json, "watermark_note", note, sizeof note);
    if (rows_in[0]) printf("  %s rows in, %s out%s%s\n", rows_in, rows_out, note[0] ? ", " : "", note);
}

static void print_subtasks(const char *json) {
    const char *p = strstr(json, "\"subtasks\":[");
    if (p) print_progress(json);
    for (p = p ? strstr(p, "{\"role\":") : NULL; p; p = strstr(p + 1, "{\"role\":")) {
        char role[300], index[24], status[32], worker[256], error[2100];
        cluster_text(p, "role", role, sizeof role);
        cluster_text(p, "index", index, sizeof index);
        cluster_text(p, "status", status, sizeof status);
        cluster_text(p, "worker", worker, sizeof worker);
        cluster_text(p, "error", error, sizeof error);
        printf("  %s[%s] %s%s%s%s%s\n", role, index, status, worker[0] ? " on " : "", worker, error[0] ? ": " : "",
               error);
    }
}

void cluster_print_jobs(const char *json, bool as_json) {
    if (as_json) {
        fputs(json, stdout);
        return;
    }
    for (const char *line = json; *line;) {
        const char *end = strchr(line, '\n');
        print_line(line);
        print_subtasks(line);
        line = end ? end + 1 : line + strlen(line);
    }
}
