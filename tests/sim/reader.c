#include "reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/durable.h"

enum { PARTS_MAX = 20000, FILE_BYTES_MAX = 16 << 20 };

typedef struct part {
    char *name;
    uint64_t bytes;
    uint32_t crc;
    bool here;
} part;

typedef struct seen { /* of one sink */
    part *parts;
    size_t part_count;
    uint32_t *counts; /* rows seen in parts, by the first of equal lines */
    uint64_t rows;    /* in parts */
} seen;

struct reader {
    const sql_case *c;
    ck_proc proc;
    seen sinks[SQL_SINKS_MAX];
    bool cut; /* names may be missing */
    char why[2000];
};

reader *reader_new(const sql_case *c, ck_simfs *disk) {
    reader *r = calloc(1, sizeof *r);
    CK_ASSERT(r != NULL);
    r->c = c;
    r->proc = (ck_proc){.heap = ck_heap_system(), .fs = ck_simfs_base(disk)};
    ck_budget_init(&r->proc.budget, r->proc.heap, 0);
    for (uint32_t i = 0; i < c->sink_count; i++) {
        r->sinks[i].counts = calloc(c->sinks[i].line_count + 1, sizeof(uint32_t));
        CK_ASSERT(r->sinks[i].counts != NULL);
    }
    return r;
}

void reader_free(reader *r) {
    for (uint32_t i = 0; i < r->c->sink_count; i++) {
        for (size_t k = 0; k < r->sinks[i].part_count; k++) free(r->sinks[i].parts[k].name);
        free(r->sinks[i].parts);
        free(r->sinks[i].counts);
    }
    free(r);
}

const char *reader_why(const reader *r) { return r->why; }

#define WRONG(r, ...) ((r)->why[0] ? 0 : snprintf((r)->why, sizeof(r)->why, __VA_ARGS__), false)

/* ---- lines ---- */

/* The place of the first of the lines equal to p; SIZE_MAX: there is none. */
static size_t find_line(const sql_sink *s, const char *p, size_t n, size_t *equal) {
    size_t low = 0, high = s->line_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2, length = strlen(s->lines[mid]);
        int c = memcmp(s->lines[mid], p, length < n ? length : n);
        if (c < 0 || (c == 0 && length < n))
            low = mid + 1;
        else
            high = mid;
    }
    *equal = 0;
    while (low + *equal < s->line_count && strlen(s->lines[low + *equal]) == n &&
           memcmp(s->lines[low + *equal], p, n) == 0)
        ++*equal;
    return *equal ? low : SIZE_MAX;
}

/* Whole lines behind the header, each to `line`. */
static bool each_line(reader *r, const sql_sink *s, const char *name, ck_view text,
                      bool (*line)(reader *r, const sql_sink *s, void *arg, const char *p, size_t n), void *arg) {
    if (text.n && text.p[text.n - 1] != '\n') return WRONG(r, "%s/%s ends in the middle of a row", s->dir, name);
    bool header = s->header != NULL;
    for (size_t at = 0; at < text.n;) {
        const char *p = text.p + at, *end = memchr(p, '\n', text.n - at);
        size_t n = (size_t)(end - p);
        at += n + 1;
        if (header) {
            header = false;
            if (strlen(s->header) == n && memcmp(p, s->header, n) == 0) continue;
            return WRONG(r, "%s/%s begins with %.*s, not with the header", s->dir, name, (int)n, p);
        }
        if (!line(r, s, arg, p, n)) return WRONG(r, "%s/%s: the row %.*s", s->dir, name, (int)n, p);
    }
    return true;
}

/* ---- files ---- */

static bool read_file(reader *r, ck_arena *a, const sql_sink *s, const char *name, ck_view *text) {
    ck_error err = CK_ERROR_INIT;
    const char *path = ck_arena_printf(a, "%s/%s", s->dir, name);
    if (ck_fs_read_all(&r->proc, path, FILE_BYTES_MAX, a, text, &err) == CK_OK) return true;
    return WRONG(r, "%s cannot be read: %s", path, err.msg);
}

static bool part_line(reader *r, const sql_sink *s, void *arg, const char *p, size_t n) {
    seen *here = arg;
    size_t equal, at = find_line(s, p, n, &equal);
    if (at == SIZE_MAX) return WRONG(r, "a row that is not of the result: %.*s", (int)n, p);
    if (++here->counts[at] > equal) return WRONG(r, "a row that has come before: %.*s", (int)n, p);
    if (++here->rows > s->limit) return WRONG(r, "more rows than the limit of %llu", (unsigned long long)s->limit);
    return true;
}

static bool new_part(reader *r, ck_arena *a, uint32_t sink, const char *name) {
    seen *here = &r->sinks[sink];
    ck_view text;
    if (!read_file(r, a, &r->c->sinks[sink], name, &text)) return false;
    if (here->part_count == PARTS_MAX) return WRONG(r, "more than %d parts", PARTS_MAX);
    if ((here->part_count & (here->part_count - 1)) == 0) {
        here->parts = realloc(here->parts, (here->part_count ? 2 * here->part_count : 1) * sizeof *here->parts);
        CK_ASSERT(here->parts != NULL);
    }
    here->parts[here->part_count++] = (part){strdup(name), text.n, ck_crc32c(0, text.p, text.n), true};
    return each_line(r, &r->c->sinks[sink], name, text, part_line, here);
}

static bool look_at_part(reader *r, ck_arena *a, uint32_t sink, const char *name, bool reread) {
    seen *here = &r->sinks[sink];
    const sql_sink *s = &r->c->sinks[sink];
    for (size_t i = 0; i < here->part_count; i++) {
        part *p = &here->parts[i];
        if (strcmp(p->name, name) != 0) continue;
        bool again = reread || !p->here;
        ck_view text = {NULL, 0};
        ck_stat st = {0};
        p->here = true;
        if (again && !read_file(r, a, s, name, &text)) return false;
        if (!again && r->proc.fs->stat(r->proc.fs, ck_arena_printf(a, "%s/%s", s->dir, name), &st, NULL) != CK_OK)
            return WRONG(r, "%s/%s cannot be looked at", s->dir, name);
        if (again ? text.n == p->bytes && ck_crc32c(0, text.p, text.n) == p->crc : st.bytes == p->bytes) return true;
        return WRONG(r, "%s/%s has changed since it appeared", s->dir, name);
    }
    return new_part(r, a, sink, name);
}

static bool upsert_line(reader *r, const sql_sink *s, void *arg, const char *p, size_t n) {
    uint64_t *rows = arg;
    size_t equal;
    ++*rows;
    if (s->settled && find_line(s, p, n, &equal) == SIZE_MAX)
        return WRONG(r, "a row that is not of the result: %.*s", (int)n, p);
    return n > 0 && (s->header || strcmp(s->ext, "csv") == 0 || (p[0] == '{' && p[n - 1] == '}'));
}

static bool look_at_rows(reader *r, ck_arena *a, uint32_t sink, const char *name) {
    uint64_t rows = 0;
    ck_view text;
    return read_file(r, a, &r->c->sinks[sink], name, &text) &&
           each_line(r, &r->c->sinks[sink], name, text, upsert_line, &rows);
}

static bool look_at_sink(reader *r, ck_arena *a, uint32_t sink, bool reread, bool done) {
    const sql_sink *s = &r->c->sinks[sink];
    const char **names;
    size_t count;
    ck_error err = CK_ERROR_INIT;
    ck_status status = r->proc.fs->list(r->proc.fs, s->dir, a, &names, &count, &err);
    if (status == CK_NOTFOUND) count = 0, status = CK_OK;
    if (status != CK_OK) return WRONG(r, "%s cannot be listed: %s", s->dir, err.msg);
    bool ok = true, *here = calloc(r->sinks[sink].part_count + 1, sizeof *here);
    size_t known = r->sinks[sink].part_count;
    for (size_t i = 0; i < count && ok; i++) {
        if (names[i][0] == '.') {
            if (done && r->c->ends) ok = WRONG(r, "%s/%s was left behind", s->dir, names[i]);
            continue;
        }
        bool is_part = strncmp(names[i], "part-", 5) == 0, is_rows = strncmp(names[i], "rows-", 5) == 0;
        if (s->upsert ? !is_rows : !is_part) ok = WRONG(r, "%s/%s should not be there", s->dir, names[i]);
        if (ok) ok = s->upsert ? look_at_rows(r, a, sink, names[i]) : look_at_part(r, a, sink, names[i], reread);
        for (size_t k = 0; k < known; k++)
            if (strcmp(r->sinks[sink].parts[k].name, names[i]) == 0) here[k] = true;
    }
    for (size_t k = 0; k < known && ok; k++) {
        part *p = &r->sinks[sink].parts[k];
        p->here = here[k];
        if (!here[k] && (!r->cut || done)) ok = WRONG(r, "%s/%s has vanished", s->dir, p->name);
    }
    free(here);
    return ok;
}

static bool look(reader *r, bool reread, bool done) {
    ck_arena a;
    bool ok = !r->why[0];
    ck_arena_init(&a, ck_proc_mem(&r->proc, CK_MEM_PLAN), SIZE_MAX);
    for (uint32_t i = 0; i < r->c->sink_count && ok; i++) ok = look_at_sink(r, &a, i, reread, done);
    ck_arena_destroy(&a);
    return ok;
}

bool reader_look(reader *r) { return look(r, false, false); }
void reader_power_cut(reader *r) { r->cut = true; }

/* ---- the end ---- */

static int compare_lines(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef struct collected {
    ck_arena *a;
    const char **lines;
    size_t count, capacity;
} collected;

static bool collect_line(reader *r, const sql_sink *s, void *arg, const char *p, size_t n) {
    collected *c = arg;
    (void)r, (void)s;
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 64;
        const char **grown = ck_arena_array(c->a, capacity, sizeof *grown);
        CK_ASSERT(grown != NULL);
        if (c->count) memcpy(grown, c->lines, c->count * sizeof *grown);
        c->lines = grown, c->capacity = capacity;
    }
    c->lines[c->count++] = ck_arena_strndup(c->a, p, n);
    return true;
}

/* The rows of all upsert files together are the result. */
static bool upsert_is_complete(reader *r, ck_arena *a, uint32_t sink, char *why, size_t room) {
    const sql_sink *s = &r->c->sinks[sink];
    const char **names;
    size_t count = 0;
    collected all = {.a = a};
    if (r->proc.fs->list(r->proc.fs, s->dir, a, &names, &count, NULL) != CK_OK) count = 0;
    for (size_t i = 0; i < count; i++) {
        ck_view text;
        if (names[i][0] == '.') continue;
        if (!read_file(r, a, s, names[i], &text) || !each_line(r, s, names[i], text, collect_line, &all)) return false;
    }
    if (all.count) qsort(all.lines, all.count, sizeof *all.lines, compare_lines);
    for (size_t i = 0; i < all.count || i < s->line_count; i++) {
        const char *got = i < all.count ? all.lines[i] : "", *want = i < s->line_count ? s->lines[i] : "";
        if (strcmp(got, want) == 0) continue;
        snprintf(why, room, "%s has %zu rows, the result has %zu; the first that differs is %s, it should be %s",
                 s->dir, all.count, s->line_count, got, want);
        return false;
    }
    return true;
}

static bool parts_are_complete(reader *r, uint32_t sink, char *why, size_t room) {
    const sql_sink *s = &r->c->sinks[sink];
    const seen *here = &r->sinks[sink];
    uint64_t want = s->limit < s->line_count ? s->limit : s->line_count;
    if (here->rows == want) return true; /* none is foreign or doubled, so it is these */
    snprintf(why, room, "%s has %llu rows, it should have %llu", s->dir, (unsigned long long)here->rows,
             (unsigned long long)want);
    for (size_t i = 0; i < s->line_count && s->limit == UINT64_MAX; i++) {
        if (here->counts[i] || (i && strcmp(s->lines[i - 1], s->lines[i]) == 0)) continue;
        size_t n = strlen(why);
        snprintf(why + n, room - n, "; %s is missing", s->lines[i]);
        break;
    }
    return false;
}

static bool is_complete(reader *r, char *why, size_t room) {
    ck_arena a;
    bool ok = !r->why[0];
    ck_arena_init(&a, ck_proc_mem(&r->proc, CK_MEM_PLAN), SIZE_MAX);
    for (uint32_t i = 0; i < r->c->sink_count && ok; i++)
        ok = r->c->sinks[i].upsert ? upsert_is_complete(r, &a, i, why, room) : parts_are_complete(r, i, why, room);
    ck_arena_destroy(&a);
    return ok;
}

bool reader_is_complete(reader *r) {
    char ignored[2000];
    return look(r, false, false) && is_complete(r, ignored, sizeof ignored);
}

bool reader_check(reader *r, bool done) {
    char why[2000] = "";
    if (!look(r, true, done)) return false;
    if (!done || is_complete(r, why, sizeof why)) return true;
    return WRONG(r, "%s", why);
}
