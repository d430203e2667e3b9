/* The tables of plugin_quiet.c: a source and a sink of its own, for a directory of text files.
 *
 *   CREATE TABLE readings (device VARCHAR, ts TIMESTAMP(3) NOT NULL, value DOUBLE, WATERMARK FOR ts AS ts)
 *     WITH (connector = 'quiet_files', path = 'readings')    lines "device,milliseconds,value" of its .csv files
 *   CREATE TABLE quiet (device VARCHAR, last_seen TIMESTAMP(3), readings BIGINT)
 *     WITH (connector = 'quiet_files', path = 'quiet')       lines "device,milliseconds,readings" in part-... files
 *
 * A file is a split and its position how many bytes of it are read. Each row is written exactly once: rows go to a file
 * that nobody looks at, .staged-..., which is synced when a checkpoint is taken and gets its name when that counts. */
#define _POSIX_C_SOURCE 200809L
#include <clink/plugin.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, PATH_BYTES = 1400 };

extern const clink_connector quiet_files; /* for plugin_quiet.c */

static clink_status io_error(clink_error *error, const char *what, const char *path) {
    return clink_fail(error, CLINK_IO, "%s '%s': %s", what, path, strerror(errno));
}

/* ---- options and columns ---- */

static const clink_option options[] = {{"path", "path", NULL, "the directory"},
                                       {"follow", "boolean", "false", "whether the files of a source go on growing"},
                                       {NULL, NULL, NULL, NULL}};

static int has_columns(const clink_table *t, const clink_field *wanted) {
    for (uint32_t i = 0; i < 3; i++)
        if (t->column_count != 3 || strcmp(t->columns[i].name, wanted[i].name) != 0 ||
            strncmp(t->columns[i].type, wanted[i].type, strlen(wanted[i].type)) != 0)
            return 0;
    return 1;
}

static clink_status check(const clink_table *t, int32_t as_sink, clink_error *error) {
    static const clink_field read[] = {{"device", "VARCHAR"}, {"ts", "TIMESTAMP(3)"}, {"value", "DOUBLE"}};
    static const clink_field written[] = {{"device", "VARCHAR"}, {"last_seen", "TIMESTAMP(3)"}, {"readings", "BIGINT"}};
    const char *path = clink_table_option(t, "path");
    if (!path) return clink_fail(error, CLINK_INVALID, "option 'path' is missing: the directory of the files");
    if (strlen(path) > 1000) return clink_fail(error, CLINK_INVALID, "option 'path' is too long");
    if (!has_columns(t, as_sink ? written : read))
        return clink_fail(error, CLINK_INVALID, "its columns are %s",
                          as_sink ? "device VARCHAR, last_seen TIMESTAMP(3), readings BIGINT"
                                  : "device VARCHAR, ts TIMESTAMP(3), value DOUBLE");
    return CLINK_OK;
}

/* ---- the source ---- */

static int32_t follows(const clink_table *t) { return strcmp(clink_table_option(t, "follow"), "true") == 0; }

static int ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static clink_status splits(const clink_table *t, uint32_t parallelism, clink_splits *out, clink_error *error) {
    const char *path = clink_table_option(t, "path");
    DIR *d = opendir(path);
    clink_status s = CLINK_OK;
    (void)parallelism;
    if (!d) return io_error(error, "reading", path);
    for (struct dirent *e; s == CLINK_OK && (e = readdir(d));)
        if (ends_with(e->d_name, ".csv")) s = clink_add_split(out, e->d_name, "0", 1);
    closedir(d);
    return s;
}

typedef struct file {
    int fd, follow;
    int64_t at; /* bytes of it that are read */
    char path[PATH_BYTES], text[CHUNK];
} file;

static clink_status open_source(void **self, const clink_source_start *start, clink_error *error) {
    (void)error;
    *self = (void *)(uintptr_t)start->table; /* it is there until close */
    return CLINK_OK;
}

static clink_status open_file(void **out, void *self, const clink_split *at, clink_error *error) {
    const clink_table *t = self;
    char position[32] = "";
    file *f = malloc(sizeof *f);
    if (!f) return clink_fail(error, CLINK_NOMEM, "no memory");
    if (at->position.n < sizeof position) memcpy(position, at->position.p, at->position.n);
    f->at = strtoll(position, NULL, 10);
    f->follow = follows(t);
    snprintf(f->path, sizeof f->path, "%s/%.300s", clink_table_option(t, "path"), at->id);
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0) {
        clink_status s = io_error(error, "opening", f->path);
        free(f);
        return s;
    }
    *out = f;
    return CLINK_OK;
}

static void close_file(void *split) {
    file *f = split;
    close(f->fd);
    free(f);
}

/* "sensor 7,1704067200000,21.5"; nothing in front of or behind a comma is NULL. */
static clink_status add_line(clink_emitter *out, char *line, clink_error *error) {
    char *time = strchr(line, ','), *value = time ? strchr(time + 1, ',') : NULL, *end = NULL, *number_end = NULL;
    uint32_t row;
    if (value) {
        *time++ = *value++ = 0;
        clink_status s = clink_add_row(out, &row);
        if (s != CLINK_OK) return s;
        clink_set_i64(out->columns[1], row, strtoll(time, &end, 10) * 1000);
        clink_set_f64(out->columns[2], row, strtod(value, &number_end));
    }
    if (!value || end == time || *end || *number_end)
        return clink_fail(error, CLINK_DATA, "'%.200s' is no line of device,milliseconds,value", line);
    if (!*value) clink_set_null(out->columns[2], row);
    if (*line) return clink_set_text(out->columns[0], row, line, strlen(line));
    clink_set_null(out->columns[0], row);
    return CLINK_OK;
}

/* A chunk, up to its last line end. */
static clink_status read_lines(clink_read *r) {
    file *f = r->split;
    char position[32];
    ssize_t n = pread(f->fd, f->text, sizeof f->text, f->at);
    size_t used = 0;
    if (n < 0) return io_error(r->error, "reading", f->path);
    while (used < (size_t)n && r->out->count < r->out->capacity) {
        char *line = f->text + used, *newline = memchr(line, '\n', (size_t)n - used);
        if (!newline) break;
        *newline = 0;
        used = (size_t)(newline - f->text) + 1;
        clink_status s = add_line(r->out, line, r->error);
        if (s != CLINK_OK) return s;
    }
    if (used == 0 && n == sizeof f->text)
        return clink_fail(r->error, CLINK_DATA, "a line of '%s' is too long", f->path);
    if (used == 0) r->then = f->follow ? CLINK_READ_WAIT : CLINK_READ_END;
    f->at += (int64_t)used;
    return clink_set_position(r, position, (size_t)snprintf(position, sizeof position, "%lld", (long long)f->at));
}

static const clink_source source = {.struct_bytes = sizeof(clink_source),
                                    .endless = follows,
                                    .splits = splits,
                                    .open = open_source,
                                    .open_split = open_file,
                                    .read = read_lines,
                                    .close_split = close_file};

/* ---- the sink ---- */

typedef struct sink {
    char path[PATH_BYTES], job[64];
    uint32_t subtask, number;
    FILE *staged; /* NULL: nothing was written since the last prepare */
    char staged_name[200];
} sink;

static clink_status open_sink(void **self, const clink_sink_start *start, clink_error *error) {
    sink *k = calloc(1, sizeof *k);
    if (!k) return clink_fail(error, CLINK_NOMEM, "no memory");
    snprintf(k->path, sizeof k->path, "%s", clink_table_option(start->table, "path"));
    if (*start->job)
        snprintf(k->job, sizeof k->job, "%s", start->job);
    else
        snprintf(k->job, sizeof k->job, "%ld", (long)getpid()); /* no checkpoints: this process writes, and no other */
    k->subtask = start->subtask;
    *self = k;
    return CLINK_OK;
}

/* No other life of the job had a file of this name: what it committed may be committed again. */
static clink_status stage(sink *k, clink_error *error) {
    char path[PATH_BYTES + 300];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(k->staged_name, sizeof k->staged_name, ".staged-%s-%u-%lld%09ld-%u", k->job, k->subtask,
             (long long)now.tv_sec, now.tv_nsec, k->number++);
    snprintf(path, sizeof path, "%s/%s", k->path, k->staged_name);
    k->staged = fopen(path, "wbx");
    return k->staged ? CLINK_OK : io_error(error, "making", path);
}

static clink_status write_rows(void *self, const clink_batch *b, clink_error *error) {
    sink *k = self;
    const clink_column *device = b->columns[0], *seen = b->columns[1], *readings = b->columns[2];
    if (!k->staged) {
        clink_status s = stage(k, error);
        if (s != CLINK_OK) return s;
    }
    for (CLINK_EACH(b->rows, at, row)) {
        clink_bytes name = {"", 0};
        if (!clink_is_null(device, row)) name = clink_text(device, row);
        if (fprintf(k->staged, "%.*s,", (int)name.n, name.p) < 0 ||
            (!clink_is_null(seen, row) && fprintf(k->staged, "%lld", (long long)clink_i64(seen, row) / 1000) < 0) ||
            fprintf(k->staged, ",") < 0 ||
            (!clink_is_null(readings, row) && fprintf(k->staged, "%lld", (long long)clink_i64(readings, row)) < 0) ||
            fprintf(k->staged, "\n") < 0)
            return io_error(error, "writing", k->path);
    }
    return CLINK_OK;
}

static clink_status sync_directory(const char *path, clink_error *error) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0;
    if (fd >= 0) close(fd);
    return failed ? io_error(error, "syncing", path) : CLINK_OK;
}

/* The committable: the name it has and the name it gets, which tells of its checkpoint. */
static clink_status prepare(void *self, uint64_t checkpoint, clink_prepared *out, clink_error *error) {
    sink *k = self;
    char names[500];
    if (!k->staged) return CLINK_OK;
    int failed = fflush(k->staged) != 0 || fsync(fileno(k->staged)) != 0;
    failed |= fclose(k->staged) != 0;
    k->staged = NULL;
    if (failed) return io_error(error, "writing", k->path);
    clink_status s = sync_directory(k->path, error);
    if (s != CLINK_OK) return s;
    int n = snprintf(names, sizeof names, "%s part-%s-%llu-%u-%u", k->staged_name, k->job,
                     (unsigned long long)checkpoint, k->subtask, k->number);
    return clink_add_committable(out, names, (size_t)n);
}

static void close_sink(void *self) {
    sink *k = self;
    if (k->staged) fclose(k->staged);
    free(k);
}

/* ---- its committer ---- */

static clink_status commit(void *self, const clink_committable *c, clink_error *error) {
    const sink *k = self;
    char names[500] = "", from[PATH_BYTES + 500], to[PATH_BYTES + 500];
    if (c->bytes.n < sizeof names) memcpy(names, c->bytes.p, c->bytes.n);
    char *space = strchr(names, ' ');
    if (!space) return clink_fail(error, CLINK_CORRUPT, "'%s' is no committable of quiet_files", names);
    *space = 0;
    snprintf(from, sizeof from, "%s/%s", k->path, names);
    snprintf(to, sizeof to, "%s/%s", k->path, space + 1);
    if (access(to, F_OK) != 0 && rename(from, to) != 0) return io_error(error, "naming", from);
    return sync_directory(k->path, error); /* also where it was done before: perhaps not that */
}

/* "part-<job>-<checkpoint>-..." */
static int is_newer(const char *name, const clink_abort *a) {
    size_t n = strlen(a->job);
    if (strncmp(name, "part-", 5) != 0 || strncmp(name + 5, a->job, n) != 0 || name[5 + n] != '-') return 0;
    return strtoull(name + 5 + n + 1, NULL, 10) > a->restored;
}

static clink_status abort_others(void *self, const clink_abort *a, clink_error *error) {
    const sink *k = self;
    char ours[100], path[PATH_BYTES + 300];
    clink_status s = CLINK_OK;
    DIR *d = opendir(k->path);
    if (!d) return io_error(error, "reading", k->path);
    snprintf(ours, sizeof ours, ".staged-%s-", a->job);
    for (struct dirent *e; s == CLINK_OK && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%.250s", k->path, e->d_name);
        if (is_newer(e->d_name, a) && !a->allow_duplicates)
            s = clink_fail(error, CLINK_REFUSED,
                           "'%s' is of a checkpoint after the restored %llu: going back would write its rows again "
                           "(--allow-duplicates does it)",
                           path, (unsigned long long)a->restored);
        /* What is kept is committed and has another name. */
        else if (strncmp(e->d_name, ours, strlen(ours)) == 0 && unlink(path) != 0)
            s = io_error(error, "removing", path);
    }
    closedir(d);
    return s;
}

static const clink_sink sink_of_files = {.struct_bytes = sizeof(clink_sink),
                                         .open = open_sink,
                                         .write = write_rows,
                                         .prepare = prepare,
                                         .close = close_sink,
                                         .open_committer = open_sink,
                                         .commit = commit,
                                         .abort_others = abort_others,
                                         .close_committer = close_sink};

const clink_connector quiet_files = {.struct_bytes = sizeof(clink_connector),
                                     .name = "quiet_files",
                                     .options = options,
                                     .source = &source,
                                     .sink = &sink_of_files,
                                     .check = check,
                                     .summary = "Readings and quiet devices as lines in the files of a directory."};
