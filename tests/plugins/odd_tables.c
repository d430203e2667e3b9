/* Connectors for tests: a source of numbers with binary positions, a sink that writes lines at least once, one that
 * commits; and what a connector should not do, named by the option 'fail'. */
#define _POSIX_C_SOURCE 200809L
#include <clink/plugin.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int fails(const clink_table *t, const char *what) {
    const char *fail = clink_table_option(t, "fail");
    return fail && strcmp(fail, what) == 0;
}
static int64_t number(const clink_table *t, const char *name) { return strtoll(clink_table_option(t, name), NULL, 10); }

/* ---- numbers: split i of n has i, i + n, ... ---- */

static const clink_option number_options[] = {{"rows", "integer", "1000", "how many"},
                                              {"splits", "integer", "3", "in how many splits"},
                                              {"endless", "boolean", "false", "wait behind the last row"},
                                              {"silent", "boolean", "false", "the first split gives no row"},
                                              {"watermark", "integer", "0", "what is said when waiting: seconds"},
                                              {"fail", "text", NULL, "what goes wrong"},
                                              {NULL, NULL, NULL, NULL}};

typedef struct reader {
    const clink_table *table;
    int opened;
} reader;
typedef struct range {
    int64_t next, step, rows;
} range;

static int32_t endless(const clink_table *t) { return strcmp(clink_table_option(t, "endless"), "true") == 0; }

static clink_status splits(const clink_table *t, uint32_t parallelism, clink_splits *out, clink_error *error) {
    int64_t n = number(t, "splits");
    (void)parallelism;
    if (fails(t, "splits")) return clink_fail(error, CLINK_IO, "nobody is there");
    for (int64_t i = 0; i < n; i++) {
        char id[40];
        int64_t position[3] = {i, n, number(t, "rows")};
        snprintf(id, sizeof id, "%lld", fails(t, "same") ? 0LL : (long long)i);
        if (fails(t, "no_id")) *id = 0;
        clink_status s = clink_add_split(out, id, position, sizeof position);
        if (s != CLINK_OK) return CLINK_OK; /* the engine says it, whatever this does */
    }
    return CLINK_OK;
}
static clink_status open_reader(void **self, const clink_source_start *start, clink_error *error) {
    reader *r = calloc(1, sizeof *r);
    if (!r) return CLINK_NOMEM;
    r->table = start->table;
    if (fails(start->table, "open")) {
        free(r);
        return clink_fail(error, CLINK_REFUSED, "not today");
    }
    *self = r;
    return CLINK_OK;
}
static clink_status open_range(void **split, void *self, const clink_split *at, clink_error *error) {
    const reader *r = self;
    if (fails(r->table, "open_split") || at->position.n != sizeof(range))
        return clink_fail(error, CLINK_CORRUPT, "split %s has no range", at->id);
    range *x = malloc(sizeof *x);
    if (x) memcpy(x, at->position.p, sizeof *x);
    *split = x;
    return x ? CLINK_OK : CLINK_NOMEM;
}
static clink_status misbehave(clink_read *r, const reader *of) {
    static char large[70000];
    uint32_t row;
    if (fails(of->table, "read")) return clink_fail(r->error, CLINK_DATA, "the line is cut");
    if (fails(of->table, "silently")) return CLINK_FAILED;
    if (fails(of->table, "position")) return clink_set_position(r, large, sizeof large);
    if (fails(of->table, "many"))
        for (int i = 0; i < 1000000; i++)
            if (clink_add_row(r->out, &row) != CLINK_OK) return CLINK_OK;
    if (!fails(of->table, "null") && !fails(of->table, "utf8") && !fails(of->table, "range") &&
        !fails(of->table, "year"))
        return CLINK_OK;
    if (clink_add_row(r->out, &row) != CLINK_OK) return CLINK_NOMEM;
    clink_set_i64(r->out->columns[0], row, fails(of->table, "range") ? INT64_MAX : 0);
    if (fails(of->table, "null")) clink_set_null(r->out->columns[0], row);
    if (fails(of->table, "year")) clink_set_i64(r->out->columns[2], row, INT64_MAX);
    return fails(of->table, "utf8") ? clink_set_text(r->out->columns[1], row, "\xff\xfe", 2) : CLINK_OK;
}
static clink_status read_range(clink_read *r) {
    const reader *of = r->self;
    range *x = r->split;
    clink_status s = misbehave(r, of);
    int silent = strcmp(clink_table_option(of->table, "silent"), "true") == 0 && x->next == 0;
    for (uint32_t i = 0; s == CLINK_OK && i < 100 && x->next < x->rows && !silent; i++, x->next += x->step) {
        uint32_t row;
        char text[40];
        s = clink_add_row(r->out, &row);
        if (s != CLINK_OK) break;
        clink_set_i64(r->out->columns[0], row, x->next);
        s = clink_set_text(r->out->columns[1], row, text,
                           (size_t)snprintf(text, sizeof text, "number %lld of many", (long long)x->next));
        clink_set_i64(r->out->columns[2], row, x->next * 1000000);
    }
    if (x->next < x->rows && !silent) return s == CLINK_OK ? clink_set_position(r, x, sizeof *x) : s;
    r->then = endless(of->table) ? CLINK_READ_WAIT : CLINK_READ_END;
    r->wait_us = 1000;
    if (number(of->table, "watermark")) r->watermark_us = number(of->table, "watermark") * 1000000;
    return s == CLINK_OK ? clink_set_position(r, x, sizeof *x) : s;
}
static const clink_source source = {.struct_bytes = sizeof(clink_source),
                                    .endless = endless,
                                    .splits = splits,
                                    .open = open_reader,
                                    .open_split = open_range,
                                    .read = read_range,
                                    .close_split = free,
                                    .close = free};

/* ---- lines: at least once ---- */

static const clink_option line_options[] = {
    {"path", "path", NULL, "the file"}, {"fail", "text", NULL, "what goes wrong"}, {NULL, NULL, NULL, NULL}};

typedef struct writer {
    const clink_table *table;
    FILE *file;
} writer;

static clink_status open_lines(void **self, const clink_sink_start *start, clink_error *error) {
    writer *w = calloc(1, sizeof *w);
    if (!w || fails(start->table, "open") || !(w->file = fopen(clink_table_option(start->table, "path"), "ab"))) {
        free(w);
        return clink_fail(error, CLINK_IO, "the file is not there");
    }
    while (fails(start->table, "hang")) pause();
    setvbuf(w->file, NULL, _IOLBF, 4096); /* whole lines: others write, too, and somebody may be killed */
    w->table = start->table;
    *self = w;
    return CLINK_OK;
}
static clink_status write_lines(void *self, const clink_batch *b, clink_error *error) {
    writer *w = self;
    if (fails(w->table, "write")) return clink_fail(error, CLINK_IO, "the disk is full");
    if (fails(w->table, "slow")) nanosleep(&(struct timespec){0, 2000000}, NULL);
    for (CLINK_EACH(b->rows, k, row)) {
        fprintf(w->file, "%d", b->weights ? b->weights[row] : 1);
        for (uint32_t c = 0; c < b->column_count; c++)
            if (clink_is_null(b->columns[c], row))
                fprintf(w->file, ",NULL");
            else if (b->columns[c]->layout == CLINK_LAYOUT_TEXT)
                fprintf(w->file, ",%.*s", (int)clink_text(b->columns[c], row).n, clink_text(b->columns[c], row).p);
            else
                fprintf(w->file, ",%lld", (long long)clink_i64(b->columns[c], row));
        fprintf(w->file, "\n");
    }
    return CLINK_OK;
}
static clink_status flush_lines(void *self, clink_error *error) {
    writer *w = self;
    if (fails(w->table, "flush") || fflush(w->file) != 0) return clink_fail(error, CLINK_IO, "the disk is gone");
    return CLINK_OK;
}
static void close_lines(void *self) {
    writer *w = self;
    fclose(w->file);
    free(w);
}
static const clink_sink lines = {.struct_bytes = sizeof(clink_sink),
                                 .flags = CLINK_TAKES_CHANGES | CLINK_TAKES_UPSERTS,
                                 .open = open_lines,
                                 .write = write_lines,
                                 .flush = flush_lines,
                                 .close = close_lines};

/* ---- marks: commits, and goes wrong in it ---- */

static clink_status open_marks(void **self, const clink_sink_start *start, clink_error *error) {
    if (fails(start->table, "open_committer")) return clink_fail(error, CLINK_IO, "no committer");
    *self = (void *)(uintptr_t)start->table;
    return CLINK_OK;
}
static clink_status write_marks(void *self, const clink_batch *b, clink_error *error) {
    (void)self, (void)b, (void)error;
    return CLINK_OK;
}
static clink_status prepare_marks(void *self, uint64_t checkpoint, clink_prepared *out, clink_error *error) {
    static char large[2 << 20];
    (void)checkpoint;
    if (fails(self, "prepare")) return clink_fail(error, CLINK_IO, "it does not keep");
    if (fails(self, "big")) return clink_add_committable(out, large, sizeof large);
    if (fails(self, "many"))
        for (int i = 0; i < 65; i++) {
            clink_status s = clink_add_committable(out, large, 1 << 20);
            if (s != CLINK_OK) return s;
        }
    return clink_add_committable(out, "\x01\xff", 2);
}
static clink_status commit_marks(void *self, const clink_committable *c, clink_error *error) {
    if (c->bytes.n != 2 || memcmp(c->bytes.p, "\x01\xff", 2) != 0)
        return clink_fail(error, CLINK_CORRUPT, "other bytes");
    return fails(self, "commit") ? clink_fail(error, CLINK_DATA, "the name is taken") : CLINK_OK;
}
static clink_status abort_marks(void *self, const clink_abort *a, clink_error *error) {
    (void)a;
    return fails(self, "abort") ? clink_fail(error, CLINK_REFUSED, "somebody else's") : CLINK_OK;
}
static const clink_sink marks = {.struct_bytes = sizeof(clink_sink),
                                 .open = open_marks,
                                 .write = write_marks,
                                 .prepare = prepare_marks,
                                 .open_committer = open_marks,
                                 .commit = commit_marks,
                                 .abort_others = abort_marks};

static const clink_connector numbers_connector = {
    .struct_bytes = sizeof(clink_connector), .name = "numbers", .options = number_options, .source = &source};
static const clink_connector lines_connector = {
    .struct_bytes = sizeof(clink_connector), .name = "lines", .options = line_options, .sink = &lines};
static const clink_connector marks_connector = {
    .struct_bytes = sizeof(clink_connector), .name = "marks", .options = line_options, .sink = &marks};

/* What a plugin is refused for. */
static const clink_option no_help[] = {{"path", "path", NULL, NULL}, {NULL, NULL, NULL, NULL}};
static const clink_option no_values[] = {{"path", "number", NULL, "a number"}, {NULL, NULL, NULL, NULL}};
static const clink_sink both = {.struct_bytes = sizeof(clink_sink),
                                .write = write_marks,
                                .flush = flush_lines,
                                .prepare = prepare_marks,
                                .commit = commit_marks,
                                .abort_others = abort_marks};
static const clink_sink half = {.struct_bytes = sizeof(clink_sink), .write = write_marks, .prepare = prepare_marks};
static const clink_connector refused[] = {
    {.struct_bytes = sizeof(clink_connector), .name = "Lines", .sink = &lines},
    {.struct_bytes = sizeof(clink_connector), .name = "file", .sink = &lines},
    {.struct_bytes = sizeof(clink_connector), .name = "nothing"},
    {.struct_bytes = sizeof(clink_connector), .name = "lines", .sink = &lines},
    {.struct_bytes = sizeof(clink_connector), .name = "x", .options = no_help, .sink = &lines},
    {.struct_bytes = sizeof(clink_connector), .name = "x", .options = no_values, .sink = &lines},
    {.struct_bytes = sizeof(clink_connector), .name = "x", .sink = &both},
    {.struct_bytes = sizeof(clink_connector), .name = "x", .sink = &half},
    {.struct_bytes = 8, .name = "x", .sink = &half},
};
#ifndef REFUSED
#define REFUSED -1
#endif
static const clink_connector *const connectors[] = {&numbers_connector, &lines_connector, &marks_connector,
                                                    REFUSED < 0 ? NULL : &refused[REFUSED < 0 ? 0 : REFUSED], NULL};

static clink_status build(clink_job_builder *b, clink_error *error) {
    (void)error;
    clink_define(b, "CREATE TABLE n (n BIGINT NOT NULL, t VARCHAR NOT NULL, ts TIMESTAMP(3) NOT NULL)"
                    "  WITH (connector = 'numbers', rows = '500');"
                    "CREATE TABLE o (n BIGINT, t VARCHAR) WITH (connector = 'lines', path = 'o')");
    clink_insert(clink_query(b, "SELECT n, t FROM n WHERE n % 2 = 0"), "o");
    return CLINK_OK;
}
static const clink_job_description job = {
    .struct_bytes = sizeof(clink_job_description), .name = "numbers", .build = build};
static const clink_job_description *const jobs[] = {&job, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin),
                                    .abi = CLINK_PLUGIN_ABI,
                                    .name = "odd_tables",
                                    .version = "1.0",
                                    .jobs = jobs,
                                    .connectors = connectors};
CLINK_PLUGIN(plugin)
