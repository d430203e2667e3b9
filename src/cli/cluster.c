#include "cli/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "cli/script.h"

size_t cluster_flags_table(cluster_flags *f, flag *out) {
    const flag rows[] = {
        {"coordinator", 0, FLAG_TEXT, &f->coordinator, "HOST:PORT", "127.0.0.1:6123",
         "the coordinator's control port; several with commas, one leads"},
        {"token-file", 0, FLAG_TEXT, &f->token_file, "FILE", "the runtime directory's", "where its token is"},
        CLUSTER_TLS_FLAGS(f->tls),
        {"json", 0, FLAG_SWITCH, &f->json, NULL, NULL, "one JSON object a line"},
        {"timeout-s", 0, FLAG_POSITIVE, &f->timeout_s, "N", "30", "how long an answer may take"},
    };
    memcpy(out, rows, sizeof rows);
    return sizeof rows / sizeof rows[0];
}

clink_cluster cluster_of(const cluster_flags *f, int64_t timeout_ms) {
    return (clink_cluster){.struct_bytes = sizeof(clink_cluster),
                           .coordinator = f->coordinator,
                           .token_file = f->token_file,
                           .timeout_ms = timeout_ms,
                           .tls = f->tls};
}

clink_status cluster_open(uint64_t memory_bytes, const char *log_level, clink_engine **engine, clink_error *e) {
    const clink_options o = {.struct_bytes = sizeof o,
                             .threads = 1,
                             .memory_bytes = memory_bytes,
                             .log_level = log_level ? log_level_of(log_level) : 0};
    return clink_open(&o, engine, e);
}

/* ---- answers ---- */

/* A text as it is, a number in digits, or nothing. What would break a line or command the terminal is a space. */
static void copy_value(yyjson_val *object, const char *key, char *to, size_t room) {
    yyjson_val *v = yyjson_obj_get(object, key);
    to[0] = 0;
    if (yyjson_is_uint(v)) (void)snprintf(to, room, "%llu", (unsigned long long)yyjson_get_uint(v));
    if (yyjson_is_str(v)) (void)snprintf(to, room, "%s", yyjson_get_str(v));
    for (; *to; to++)
        if ((unsigned char)*to < ' ' || *to == 127) *to = ' ';
}

void cluster_text(const char *json, const char *key, char *to, size_t room) {
    yyjson_doc *doc = yyjson_read(json, strcspn(json, "\n"), 0);
    copy_value(yyjson_doc_get_root(doc), key, to, room);
    yyjson_doc_free(doc);
}

static void print_line(yyjson_val *job) {
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
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) copy_value(job, parts[i].key, parts[i].to, parts[i].room);
    printf("%-5s %-16s %-24s attempt %s, %s of %s restarts, %s of %s subtasks run, checkpoint %s%s%s\n", id, status,
           name, attempt, restarts, most, running, tasks, checkpoint, error[0] ? ": " : "", error);
}

static double mebibytes(const char *digits) { return (double)strtoull(digits, NULL, 10) / (1 << 20); }

/* As --restore and check-savepoint take it. */
static void print_savepoint(yyjson_val *job) {
    char id[24], dir[4200];
    copy_value(job, "savepoint", id, sizeof id);
    copy_value(job, "checkpoint_dir", dir, sizeof dir);
    if (id[0])
        printf("  savepoint %s is complete%s%s%s%s\n", id, dir[0] ? ": " : "", dir, dir[0] ? ":" : "",
               dir[0] ? id : "");
}

/* What a running job is doing, as clink run shows it; nothing before its hosts have said it. */
static void print_progress(yyjson_val *job) {
    char rows_in[24], rows_out[24], memory[24], limit[24], note[600];
    copy_value(job, "rows_in", rows_in, sizeof rows_in);
    copy_value(job, "rows_out", rows_out, sizeof rows_out);
    copy_value(job, "memory_bytes", memory, sizeof memory);
    copy_value(job, "memory_limit", limit, sizeof limit);
    copy_value(job, "watermark_note", note, sizeof note);
    if (rows_in[0])
        printf("  %s rows in, %s out, %.1f of %.1f MiB of memory%s%s\n", rows_in, rows_out, mebibytes(memory),
               mebibytes(limit), note[0] ? ", " : "", note);
}

static void print_region(yyjson_val *region) {
    char number[24], status[32], attempt[24], restarts[24], running[24], tasks[24], checkpoint[24], error[2100];
    copy_value(region, "region", number, sizeof number);
    copy_value(region, "status", status, sizeof status);
    copy_value(region, "attempt", attempt, sizeof attempt);
    copy_value(region, "restarts", restarts, sizeof restarts);
    copy_value(region, "tasks_running", running, sizeof running);
    copy_value(region, "tasks", tasks, sizeof tasks);
    copy_value(region, "checkpoint", checkpoint, sizeof checkpoint);
    copy_value(region, "error", error, sizeof error);
    printf("  region %s %s, attempt %s, %s restarts, %s of %s subtasks run, checkpoint %s%s%s\n", number, status,
           attempt, restarts, running, tasks, checkpoint, error[0] ? ": " : "", error);
}

/* Each under its region, where the job has some. */
static void print_subtasks(yyjson_val *subtasks, yyjson_val *regions) {
    size_t i, n;
    uint64_t shown = 0;
    yyjson_val *subtask;
    yyjson_arr_foreach(subtasks, i, n, subtask) {
        uint64_t region = yyjson_get_uint(yyjson_obj_get(subtask, "region"));
        for (; regions && shown <= region; shown++) print_region(yyjson_arr_get(regions, (size_t)shown));
        char role[300], index[24], status[32], worker[256], error[2100];
        copy_value(subtask, "role", role, sizeof role);
        copy_value(subtask, "index", index, sizeof index);
        copy_value(subtask, "status", status, sizeof status);
        copy_value(subtask, "worker", worker, sizeof worker);
        copy_value(subtask, "error", error, sizeof error);
        printf("  %s[%s] %s%s%s%s%s\n", role, index, status, worker[0] ? " on " : "", worker, error[0] ? ": " : "",
               error);
    }
}

static void print_job(const char *line, size_t bytes) {
    yyjson_doc *doc = yyjson_read(line, bytes, 0);
    yyjson_val *job = yyjson_doc_get_root(doc), *subtasks = yyjson_obj_get(job, "subtasks");
    if (doc) {
        print_line(job);
        print_savepoint(job);
        if (subtasks) print_progress(job);
        print_subtasks(subtasks, yyjson_obj_get(job, "regions"));
    } else {
        printf("%.*s\n", (int)bytes, line); /* without memory: as it came */
    }
    yyjson_doc_free(doc);
}

void cluster_print_jobs(const char *json, bool as_json) {
    if (as_json) {
        fputs(json, stdout);
        return;
    }
    for (const char *line = json; *line;) {
        size_t bytes = strcspn(line, "\n");
        if (bytes) print_job(line, bytes);
        line += bytes + (line[bytes] == '\n');
    }
}
