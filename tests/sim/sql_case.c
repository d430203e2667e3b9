#include "sql_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql_int.h"

enum { CASE_BYTES_MAX = 256 << 20 };

static void *need(void *p) {
    CK_ASSERT(p != NULL); /* the case's own memory is the machine's */
    return p;
}

/* Short ones stand in a view itself, long ones in a buffer; some need quoting. */
const char *sql_key_text(uint32_t key) {
    static char texts[KEYS_MAX][64];
    static const char *const shapes[] = {
        "k%u", "a key that is long enough %u", "к-%u", "comma, %u", "quote \" %u", "twelve b %03u"};
    if (!texts[key][0]) {
        const char *shape = shapes[key % 6];
        const char *mark = strstr(shape, "%03u") ? "%03u" : "%u";
        const char *at = strstr(shape, mark);
        snprintf(texts[key], sizeof texts[key], "%.*s%0*u", (int)(at - shape), shape, mark[1] == '0' ? 3 : 1, key);
    }
    return texts[key];
}

/* ---- lines ---- */

typedef struct line {
    char p[512];
    size_t n;
} line;

static void add(line *l, const char *z) {
    size_t n = strlen(z);
    CK_ASSERT(n < sizeof l->p - l->n);
    memcpy(l->p + l->n, z, n + 1);
    l->n += n;
}
static void add_char(line *l, char c) { add(l, (char[]){c, 0}); }
static void add_number(line *l, int64_t v) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)v);
    add(l, text);
}

/* A text as JSON, or as a CSV field; escape: what stands in front of a quote. */
static void add_quoted(line *l, const char *z, char escape) {
    add_char(l, '"');
    for (; *z; z++) {
        if (*z == '"') add_char(l, escape);
        add_char(l, *z);
    }
    add_char(l, '"');
}

static void add_csv(line *l, const cell *c) {
    if (!c->text) {
        if (c->n != NONE) add_number(l, c->n);
    } else if (strpbrk(c->text, ",\"\r\n")) {
        add_quoted(l, c->text, '"');
    } else {
        add(l, c->text);
    }
}

static void add_json(line *l, const char *name, const cell *c) {
    add_char(l, '"'), add(l, name), add(l, "\":");
    if (c->text)
        add_quoted(l, c->text, '\\');
    else if (c->n == NONE)
        add(l, "null");
    else
        add_number(l, c->n);
}

static void write_row(line *l, bool csv, const char *const *names, uint32_t count, const cell *cells) {
    l->n = 0;
    if (!csv) add_char(l, '{');
    for (uint32_t i = 0; i < count; i++) {
        if (i) add_char(l, ',');
        if (csv)
            add_csv(l, &cells[i]);
        else
            add_json(l, names[i], &cells[i]);
    }
    if (!csv) add_char(l, '}');
}

void sql_emit(sql_query *q, const cell *cells) {
    line l;
    write_row(&l, q->csv, q->columns, q->column_count, cells);
    sql_sink *s = q->sink;
    if (s->line_count == q->line_capacity) {
        size_t capacity = q->line_capacity ? 2 * q->line_capacity : 64;
        const char **grown = need(ck_arena_array(&q->c->arena, capacity, sizeof *grown));
        if (s->line_count) memcpy(grown, s->lines, s->line_count * sizeof *grown);
        s->lines = grown;
        q->line_capacity = capacity;
    }
    s->lines[s->line_count++] = need(ck_arena_strdup(&q->c->arena, l.p));
}

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- input ---- */

static const char *const source_columns[] = {"i", "k", "g", "v"};

static void draw_rows(sql_case *c, dice *d, const sql_case_options *o, rows *out) {
    uint32_t most = c->batch_rows == 1 ? 60 : c->batch_rows == 7 ? 250 : 1500;
    uint32_t keys = 1 + dice_below(d, KEYS_MAX), groups = 1 + dice_below(d, 12);
    bool skewed = o->skewed || dice_below(d, 3) == 0;
    if (o->small) most = 12;
    c->row_count = (uint32_t)out->count;
    out->count = dice_below(d, 12) || o->small ? 1 + dice_below(d, most) : 0;
    if (o->skewed) out->count = most / 2 + dice_below(d, most / 2), keys = KEYS_MAX;
    c->row_count = (uint32_t)out->count;
    out->items = need(ck_arena_array(&c->arena, out->count + 1, sizeof *out->items));
    for (size_t r = 0; r < out->count; r++) {
        row *x = &out->items[r];
        bool late = skewed && r > out->count / 4;
        x->i = (int64_t)r;
        x->key = late ? dice_below(d, 2) : dice_below(d, keys);
        x->g = dice_below(d, 9) ? (int64_t)dice_below(d, groups) - 2 : NONE;
        x->v = dice_below(d, 7) ? (int64_t)dice_below(d, 80) - 40 : NONE;
    }
}

/* Rows first..last as one file. */
static void write_file(sql_case *c, dice *d, const rows *in, size_t first, size_t last, bool csv, bool header,
                       sql_file *out) {
    size_t capacity = 64 + (last - first) * 160, n = 0;
    char *text = need(ck_arena_alloc(&c->arena, capacity));
    if (header) n += (size_t)snprintf(text, capacity, "i,k,g,v\n");
    bool crlf = dice_below(d, 6) == 0, no_last_end = dice_below(d, 5) == 0;
    for (size_t r = first; r < last; r++) {
        const row *x = &in->items[r];
        line l;
        write_row(&l, csv, source_columns, 4,
                  (cell[]){{.n = x->i}, {.text = sql_key_text(x->key)}, {.n = x->g}, {.n = x->v}});
        bool ended = r + 1 < last || !no_last_end || c->follow;
        int added = snprintf(text + n, capacity - n, "%s%s", l.p, !ended ? "" : crlf ? "\r\n" : "\n");
        n += (size_t)added;
        CK_ASSERT(n < capacity);
    }
    out->text = text;
    out->bytes = n;
}

static const char *draw_input(sql_case *c, dice *d, const rows *in) {
    bool csv = dice_below(d, 3) == 0, header = csv && dice_below(d, 2);
    static const char *const places[] = {"/in", "/in/*", "/in/f-0.%s"};
    uint32_t place = dice_below(d, 3);
    c->file_count = place == 2 ? 1 : 1 + dice_below(d, SQL_FILES_MAX);
    for (uint32_t f = 0; f < c->file_count; f++) {
        sql_file *file = &c->files[f];
        file->path = need(ck_arena_printf(&c->arena, "/in/f-%u.%s", f, csv ? "csv" : "json"));
        write_file(c, d, in, in->count * f / c->file_count, in->count * (f + 1) / c->file_count, csv, header, file);
    }
    char path[32], rate[48] = "", lag[24] = "10000000";
    if (dice_below(d, 3)) snprintf(lag, sizeof lag, "%u", dice_below(d, 2) ? 0 : dice_below(d, 40));
    snprintf(path, sizeof path, place == 2 ? "/in/f-0.%s" : "%s", place == 2 ? (csv ? "csv" : "json") : places[place]);
    if (dice_below(d, 2)) snprintf(rate, sizeof rate, ", rate_limit='%u'", 2000 + dice_below(d, 60000));
    const char *like = need(ck_arena_printf(&c->arena,
                                            " (i BIGINT NOT NULL, k VARCHAR, g BIGINT, v BIGINT) WITH "
                                            "(connector='file', format='%s', path='%s', event_time_column='i', "
                                            "watermark_lag_ms='%s'%s%s%s);\n",
                                            csv ? "csv" : "json", path, lag, header ? ", header='true'" : "", rate,
                                            c->follow ? ", follow='true'" : ""));
    return need(ck_arena_printf(&c->arena, "CREATE TABLE src%sCREATE TABLE alt%s", like, like));
}

/* The same rows by another table: what reads it has nothing to do with the rest of the job. */
static const char *read_apart(sql_case *c, const char *select) {
    char *text = need(ck_arena_strdup(&c->arena, select));
    for (char *at = text; (at = strstr(at, " src"));) {
        at += 4;
        if (strchr(" ,)", *at)) memcpy(at - 3, "alt", 3); /* or it ends here */
    }
    return text;
}

/* ---- sinks ---- */

static const char *draw_sink(sql_case *c, dice *d, const rows *in) {
    uint32_t number = c->sink_count++;
    sql_sink *s = &c->sinks[number];
    sql_query q = {.c = c, .sink = s, .csv = dice_below(d, 3) == 0};
    bool header = q.csv && dice_below(d, 2);
    sql_query_draw(&q, d, in, false);
    if (number && dice_below(d, 2)) q.select = read_apart(c, q.select);
    if (s->limit < UINT64_MAX) c->ends = true;
    s->dir = need(ck_arena_printf(&c->arena, "/out/%u", number));
    s->ext = q.csv ? "csv" : "json";
    if (s->line_count) qsort(s->lines, s->line_count, sizeof *s->lines, compare_lines);
    const char *columns = "", *names = "", *key = "", *parts = "";
    for (uint32_t i = 0; i < q.column_count; i++) {
        const char *comma = i ? ", " : "";
        columns = need(ck_arena_printf(&c->arena, "%s%s%s %s", columns, comma, q.columns[i], q.types[i]));
        names = need(ck_arena_printf(&c->arena, "%s%s%s", names, i ? "," : "", q.columns[i]));
    }
    if (q.key) key = need(ck_arena_printf(&c->arena, ", PRIMARY KEY (%s) NOT ENFORCED", q.key));
    if (header) s->header = names;
    if (!s->upsert && dice_below(d, 2))
        parts = need(ck_arena_printf(&c->arena, ", part_bytes='%u'", 1 + dice_below(d, 3000)));
    return need(ck_arena_printf(&c->arena,
                                "CREATE TABLE snk%u (%s%s) WITH (connector='file', format='%s', path='%s'%s%s%s);\n"
                                "INSERT INTO snk%u %s;\n",
                                number, columns, key, s->ext, s->dir, s->upsert ? ", mode='upsert'" : "",
                                header ? ", header='true'" : "", parts, number, q.select));
}

/* An endless job ends when every sink has its LIMIT. */
static void see_whether_it_ends(sql_case *c) {
    c->ends = true;
    for (uint32_t i = 0; i < c->sink_count; i++)
        if (c->follow && c->sinks[i].limit > c->sinks[i].line_count) c->ends = false;
}

void sql_case_make(sql_case *c, dice *d, const sql_case_options *o) {
    static const uint32_t batch_rows[] = {1, 7, 4096};
    memset(c, 0, sizeof *c);
    ck_budget_init(&c->budget, ck_heap_system(), 0);
    ck_arena_init(&c->arena, (ck_mem){&c->budget, CK_MEM_PLAN}, CASE_BYTES_MAX);
    c->batch_rows = o->batch_rows ? (uint32_t)o->batch_rows : batch_rows[dice_below(d, 3)];
    uint32_t mode = dice_below(d, 4);
    c->follow = mode == 3 && !o->no_follow;
    c->changes = mode == 2;
    rows in = {0};
    draw_rows(c, d, o, &in);
    const char *script = draw_input(c, d, &in);
    if (c->batch_rows != 4096)
        script = need(ck_arena_printf(&c->arena, "SET batch_rows = %u;\n%s", c->batch_rows, script));
    uint32_t sinks = 1 + dice_below(d, SQL_SINKS_MAX);
    for (uint32_t i = 0; i < sinks; i++) {
        const char *more = draw_sink(c, d, &in);
        script = need(ck_arena_printf(&c->arena, "%s%s", script, more));
    }
    see_whether_it_ends(c);
    c->script = script;
}

void sql_case_free(sql_case *c) { ck_arena_destroy(&c->arena); }
