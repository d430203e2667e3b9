#include "output.h"

#include <stdlib.h>

#include "model.h"

enum { FILE_BYTES_MAX = 64 << 20 };

typedef struct row {
    int64_t c[4];
} row;
typedef struct rows {
    row *items;
    size_t count;
} rows;

static int compare_rows(const void *a, const void *b) { /* by the first two columns */
    const row *x = a, *y = b;
    int c = x->c[0] < y->c[0] ? -1 : x->c[0] > y->c[0];
    return c ? c : x->c[1] < y->c[1] ? -1 : x->c[1] > y->c[1];
}

static ck_status add_file(ck_arena *a, ck_view text, uint32_t columns, rows *out, const char *name, ck_error *err) {
    size_t lines = 0;
    for (size_t i = 0; i < text.n; i++) lines += text.p[i] == '\n';
    row *items = ck_arena_array(a, out->count + lines, sizeof *items);
    if (!items) return ck_nomem(err, a->mem, lines * sizeof *items);
    if (out->count) memcpy(items, out->items, out->count * sizeof *items);
    out->items = items;
    const char *p = text.p;
    for (size_t i = 0; i < lines; i++, p++)
        for (uint32_t c = 0; c < columns; c++) {
            char *end;
            if (c) p++;
            out->items[out->count + i].c[c] = strtoll(p, &end, 10);
            if (end == p || *end != (c + 1 < columns ? ',' : '\n'))
                return ck_fail(err, CK_CORRUPT, "%s: line %zu is not %u numbers", name, i + 1, columns);
            p = end;
        }
    out->count += lines;
    return CK_OK;
}

static ck_status read_rows(ck_proc *proc, ck_arena *a, const plan *p, const char *sink, uint32_t columns, bool running,
                           rows *out, ck_error *err) {
    const char *dir = ck_arena_printf(a, "%s/%s", p->out, sink);
    const char **names;
    size_t count;
    *out = (rows){0};
    ck_status s = proc->fs->list(proc->fs, dir, a, &names, &count, err);
    if (s == CK_NOTFOUND) return CK_OK;
    CK_TRY(s);
    for (size_t i = 0; i < count; i++) {
        ck_view text;
        const char *path = ck_arena_printf(a, "%s/%s", dir, names[i]);
        if (running && strncmp(names[i], "part-", 5) != 0) continue; /* staged */
        if (strncmp(names[i], "part-", 5) != 0) return ck_fail(err, CK_CORRUPT, "%s was left behind", path);
        CK_TRY(ck_fs_read_all(proc, path, FILE_BYTES_MAX, a, &text, err));
        CK_TRY(add_file(a, text, columns, out, path, err));
    }
    qsort(out->items, out->count, sizeof *out->items, compare_rows);
    return CK_OK;
}

/* ---- a: counts ---- */

static ck_status check_counts(const plan *p, const rows *got, ck_error *err) {
    int64_t n[MODEL_KEYS_MAX] = {0}, sum[MODEL_KEYS_MAX] = {0};
    for (uint32_t s = 0; s < p->a_splits; s++)
        for (int64_t at = 0; at < model_split_rows(s, p->a_rows); at++) {
            int64_t v = (int64_t)s * MODEL_POSITIONS + at, k = model_key(v, p->a_keys);
            n[k]++, sum[k] += v;
        }
    size_t i = 0;
    for (int64_t k = 0; k < MODEL_KEYS_MAX; k++) {
        int64_t reached = 0, last_sum = 0;
        for (; i < got->count && got->items[i].c[0] == k; i++) {
            if (got->items[i].c[1] != reached)
                return ck_fail(err, CK_CORRUPT, "key %lld: rows from %lld follow rows to %lld", (long long)k,
                               (long long)got->items[i].c[1], (long long)reached);
            reached = got->items[i].c[2];
            last_sum = got->items[i].c[3];
        }
        if (reached != n[k] || (n[k] && last_sum != sum[k]))
            return ck_fail(err, CK_CORRUPT, "key %lld: %lld rows, sum %lld; it should be %lld and %lld", (long long)k,
                           (long long)reached, (long long)last_sum, (long long)n[k], (long long)sum[k]);
    }
    if (i != got->count) return ck_fail(err, CK_CORRUPT, "a key that does not exist");
    return CK_OK;
}

/* ---- b: every row once ---- */

static ck_status check_rows(const plan *p, const rows *got, ck_error *err) {
    size_t want = 0;
    for (uint32_t s = 0; s < p->b_splits; s++) want += model_split_rows(s, p->b_rows);
    bool *seen = calloc((size_t)p->b_splits * MODEL_POSITIONS + 1, 1);
    ck_status st = seen ? CK_OK : CK_NOMEM;
    for (size_t i = 0; st == CK_OK && i < got->count; i++) {
        int64_t v = got->items[i].c[1], s = v / MODEL_POSITIONS;
        if (v < 0 || s >= p->b_splits || v % MODEL_POSITIONS >= model_split_rows((uint32_t)s, p->b_rows))
            st = ck_fail(err, CK_CORRUPT, "row %lld is not of the input", (long long)v);
        else if (seen[v])
            st = ck_fail(err, CK_CORRUPT, "row %lld came twice", (long long)v);
        else
            seen[v] = true;
    }
    free(seen);
    if (st == CK_OK && got->count != want) st = ck_fail(err, CK_CORRUPT, "%zu rows of %zu came", got->count, want);
    return st;
}

/* ---- c: so many rows, of each split the first ones, all different ---- */

static int compare_values(const void *a, const void *b) {
    int64_t x = ((const row *)a)->c[1], y = ((const row *)b)->c[1];
    return x < y ? -1 : x > y;
}

static ck_status check_limit(const plan *p, rows *got, ck_error *err) {
    qsort(got->items, got->count, sizeof *got->items, compare_values);
    if (!p->c_more && got->count != p->c_limit)
        return ck_fail(err, CK_CORRUPT, "%zu rows behind a limit of %u", got->count, p->c_limit);
    for (size_t i = 0; i < got->count; i++) {
        int64_t v = got->items[i].c[1], before = i ? got->items[i - 1].c[1] : -2;
        if (v == before) return ck_fail(err, CK_CORRUPT, "row %lld came twice behind the limit", (long long)v);
        if (v % MODEL_POSITIONS && v != before + 1)
            return ck_fail(err, CK_CORRUPT, "row %lld came, and the one before it did not", (long long)v);
    }
    return CK_OK;
}

ck_status output_splits_of_c(ck_proc *proc, const plan *p, uint32_t *out, ck_error *err) {
    ck_arena a;
    rows got;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), 1 << 30);
    ck_status s = read_rows(proc, &a, p, "c", 2, true, &got, err);
    *out = 0;
    for (size_t i = 0; s == CK_OK && i < got.count; i++) *out += got.items[i].c[1] % MODEL_POSITIONS == 0;
    ck_arena_destroy(&a);
    return s;
}

ck_status output_check(ck_proc *proc, const plan *p, ck_error *err) {
    ck_arena a;
    rows got;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), 1 << 30);
    ck_status s = CK_OK;
    if (p->with_counts) {
        s = read_rows(proc, &a, p, "a", 4, false, &got, err);
        if (s == CK_OK) s = check_counts(p, &got, err);
    }
    if (s == CK_OK && p->with_rows) {
        s = read_rows(proc, &a, p, "b", 2, false, &got, err);
        if (s == CK_OK) s = check_rows(p, &got, err);
    }
    if (s == CK_OK && p->with_limit) {
        s = read_rows(proc, &a, p, "c", 2, false, &got, err);
        if (s == CK_OK) s = check_limit(p, &got, err);
    }
    ck_arena_destroy(&a);
    return s;
}
