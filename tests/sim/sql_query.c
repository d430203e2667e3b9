/* The queries, each with its model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql_int.h"

#define TEXT(z)   ((cell){.text = (z)})
#define NUMBER(x) ((cell){.n = (x)})

static int64_t least(int64_t a, int64_t b) { return a == NONE || (b != NONE && b < a) ? b : a; }
static int64_t greatest(int64_t a, int64_t b) { return a == NONE || (b != NONE && b > a) ? b : a; }
static int64_t sum(int64_t a, int64_t b) { return a == NONE ? b : b == NONE ? a : a + b; }

static void column(sql_query *q, const char *name, const char *type) {
    q->columns[q->column_count] = name;
    q->types[q->column_count++] = type;
}

/* ---- rows as they come ---- */

static void filter_model(sql_query *q, dice *d, const rows *in) {
    int64_t above = (int64_t)dice_below(d, 60) - 30;
    column(q, "i", "BIGINT"), column(q, "k", "VARCHAR"), column(q, "w", "BIGINT");
    q->select = ck_arena_printf(&q->c->arena, "SELECT i, k, v * 3 + 1 AS w FROM src WHERE v > %lld", (long long)above);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        if (x->v == NONE || x->v <= above) continue;
        sql_emit(q, (cell[]){NUMBER(x->i), TEXT(sql_key_text(x->key)), NUMBER(x->v * 3 + 1)});
    }
}

static void union_model(sql_query *q, dice *d, const rows *in) {
    int64_t at = dice_below(d, 10);
    column(q, "i", "BIGINT"), column(q, "g", "BIGINT");
    q->select = ck_arena_printf(&q->c->arena,
                                "SELECT i, g FROM src WHERE i %% 3 = 1 UNION ALL SELECT -i, v FROM src WHERE g = %lld",
                                (long long)at);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        if (x->i % 3 == 1) sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(x->g)});
        if (x->g == at) sql_emit(q, (cell[]){NUMBER(-x->i), NUMBER(x->v)});
    }
}

static void limit_model(sql_query *q, dice *d, const rows *in) {
    q->sink->limit = dice_below(d, (uint32_t)in->count + 3);
    column(q, "i", "BIGINT"), column(q, "k", "VARCHAR");
    q->select = ck_arena_printf(&q->c->arena, "SELECT i, k FROM src LIMIT %llu", (unsigned long long)q->sink->limit);
    for (size_t r = 0; r < in->count; r++)
        sql_emit(q, (cell[]){NUMBER(in->items[r].i), TEXT(sql_key_text(in->items[r].key))});
}

/* ---- groups ---- */

static void counts_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    static const char *const names[] = {"n", "c", "s", "lo", "hi"};
    column(q, "k", "VARCHAR");
    for (int i = 0; i < 5; i++) column(q, names[i], "BIGINT");
    q->key = "k";
    q->select = "SELECT k, COUNT(*) AS n, COUNT(v) AS c, SUM(v) AS s, MIN(v) AS lo, MAX(v) AS hi FROM src GROUP BY k";
    for (uint32_t k = 0; k < KEYS_MAX; k++) {
        int64_t n = 0, c = 0, s = NONE, lo = NONE, hi = NONE;
        for (size_t r = 0; r < in->count; r++) {
            const row *x = &in->items[r];
            if (x->key != k) continue;
            n++, c += x->v != NONE, s = sum(s, x->v), lo = least(lo, x->v), hi = greatest(hi, x->v);
        }
        if (n) sql_emit(q, (cell[]){TEXT(sql_key_text(k)), NUMBER(n), NUMBER(c), NUMBER(s), NUMBER(lo), NUMBER(hi)});
    }
}

static void distinct_aggregate_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    column(q, "k", "VARCHAR"), column(q, "d", "BIGINT"), column(q, "sd", "BIGINT"), column(q, "n", "BIGINT");
    q->key = "k";
    q->select = "SELECT k, COUNT(DISTINCT v) AS d, SUM(DISTINCT v) AS sd, COUNT(*) AS n FROM src GROUP BY k";
    for (uint32_t k = 0; k < KEYS_MAX; k++) {
        int64_t n = 0, distinct = 0, s = NONE;
        for (size_t r = 0; r < in->count; r++) {
            const row *x = &in->items[r];
            if (x->key != k) continue;
            n++;
            bool seen = x->v == NONE;
            for (size_t b = 0; b < r && !seen; b++) seen = in->items[b].key == k && in->items[b].v == x->v;
            if (!seen) distinct++, s = sum(s, x->v);
        }
        if (n) sql_emit(q, (cell[]){TEXT(sql_key_text(k)), NUMBER(distinct), NUMBER(s), NUMBER(n)});
    }
}

static void two_columns_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    column(q, "k", "VARCHAR"), column(q, "g", "BIGINT"), column(q, "n", "BIGINT"), column(q, "hi", "BIGINT");
    q->key = "k, g";
    q->select = "SELECT k, g, COUNT(*) AS n, MAX(v) AS hi FROM src WHERE g IS NOT NULL GROUP BY k, g";
    for (size_t r = 0; r < in->count; r++) { /* a group is emitted at its first row */
        const row *first = &in->items[r];
        int64_t n = 0, hi = NONE;
        bool seen = first->g == NONE;
        for (size_t o = 0; o < in->count && !seen; o++) {
            const row *x = &in->items[o];
            if (x->key != first->key || x->g != first->g) continue;
            seen = o < r;
            n++, hi = greatest(hi, x->v);
        }
        if (!seen) sql_emit(q, (cell[]){TEXT(sql_key_text(first->key)), NUMBER(first->g), NUMBER(n), NUMBER(hi)});
    }
}

/* Groups that leave the result again when they grow, or enter it late. */
static void having_model(sql_query *q, dice *d, const rows *in) {
    bool fewer = dice_below(d, 2);
    int64_t bound = 1 + dice_below(d, 6);
    column(q, "g", "BIGINT"), column(q, "n", "BIGINT"), column(q, "s", "BIGINT");
    q->key = "g";
    q->select = ck_arena_printf(&q->c->arena,
                                "SELECT g, COUNT(*) AS n, SUM(i) AS s FROM src WHERE g IS NOT NULL GROUP BY g HAVING "
                                "COUNT(*) %s %lld",
                                fewer ? "<" : ">=", (long long)bound);
    for (int64_t g = -64; g < 64; g++) {
        int64_t n = 0, s = 0;
        for (size_t r = 0; r < in->count; r++)
            if (in->items[r].g == g) n++, s += in->items[r].i;
        if (n && (fewer ? n < bound : n >= bound)) sql_emit(q, (cell[]){NUMBER(g), NUMBER(n), NUMBER(s)});
    }
}

static void select_distinct_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    bool seen[KEYS_MAX] = {0};
    column(q, "k", "VARCHAR");
    q->key = "k";
    q->select = "SELECT DISTINCT k FROM src";
    for (size_t r = 0; r < in->count; r++) {
        uint32_t k = in->items[r].key;
        if (!seen[k]) sql_emit(q, (cell[]){TEXT(sql_key_text(k))});
        seen[k] = true;
    }
}

static void global_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    int64_t n = 0, s = NONE, lo = NONE;
    column(q, "n", "BIGINT"), column(q, "s", "BIGINT"), column(q, "lo", "BIGINT");
    q->select = "SELECT COUNT(*) AS n, SUM(v) AS s, MIN(v) AS lo FROM src";
    for (size_t r = 0; r < in->count; r++) n++, s = sum(s, in->items[r].v), lo = least(lo, in->items[r].v);
    sql_emit(q, (cell[]){NUMBER(n), NUMBER(s), NUMBER(lo)});
}

/* ---- two inputs ---- */

#define NAMES "(VALUES (-2, 'two below'), (0, 'zero'), (0, 'nothing at all'), (3, 'three')) AS d (dg, name)"
static const struct {
    int64_t g;
    const char *name;
} names[] = {{-2, "two below"}, {0, "zero"}, {0, "nothing at all"}, {3, "three"}};
enum { NAMES_COUNT = sizeof names / sizeof *names };

/* The side that ends first is built, the other held back. */
static void join_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    column(q, "i", "BIGINT"), column(q, "name", "VARCHAR");
    q->select = "SELECT i, name FROM src JOIN " NAMES " ON g = dg";
    for (size_t r = 0; r < in->count; r++)
        for (int k = 0; k < NAMES_COUNT; k++)
            if (in->items[r].g == names[k].g) sql_emit(q, (cell[]){NUMBER(in->items[r].i), TEXT(names[k].name)});
}

static void outer_join_model(sql_query *q, dice *d, const rows *in) {
    bool full = dice_below(d, 2);
    bool met[NAMES_COUNT] = {0};
    column(q, "i", "BIGINT"), column(q, "name", "VARCHAR");
    q->select = full ? "SELECT i, name FROM src FULL JOIN " NAMES " ON g = dg AND i > v"
                     : "SELECT i, name FROM src LEFT JOIN " NAMES " ON g = dg AND i > v";
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        bool any = false;
        for (int k = 0; k < NAMES_COUNT; k++) {
            if (x->g != names[k].g || x->v == NONE || x->i <= x->v) continue;
            any = met[k] = true;
            sql_emit(q, (cell[]){NUMBER(x->i), TEXT(names[k].name)});
        }
        if (!any) sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(NONE)});
    }
    for (int k = 0; full && k < NAMES_COUNT; k++)
        if (!met[k]) sql_emit(q, (cell[]){NUMBER(NONE), TEXT(names[k].name)});
}

static int64_t count_of(const rows *in, int64_t g) {
    int64_t n = 0;
    for (size_t r = 0; r < in->count; r++) n += in->items[r].g == g;
    return n;
}

/* Rows of a key come by way of one subtask after the other, as its count grows. */
static void moving_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    column(q, "g", "BIGINT"), column(q, "n", "BIGINT"), column(q, "lo", "BIGINT");
    q->key = "g";
    q->select = "SELECT a.g, a.n, b.lo FROM (SELECT g, COUNT(*) AS n FROM src WHERE g IS NOT NULL GROUP BY g) a JOIN "
                "(SELECT v, MIN(i) AS lo FROM src GROUP BY v) b ON a.n = b.v";
    for (int64_t g = -64; g < 64; g++) {
        int64_t n = count_of(in, g), lo = NONE;
        if (n == 0) continue;
        for (size_t r = 0; r < in->count; r++)
            if (in->items[r].v == n) lo = least(lo, in->items[r].i);
        if (lo != NONE) sql_emit(q, (cell[]){NUMBER(g), NUMBER(n), NUMBER(lo)});
    }
}

/* Rows that are counted until a partner comes. */
static void anti_model(sql_query *q, dice *d, const rows *in) {
    bool semi = dice_below(d, 2);
    column(q, "k", "VARCHAR"), column(q, "n", "BIGINT");
    q->key = "k";
    q->select = semi
                    ? "SELECT k, COUNT(*) AS n FROM src s WHERE EXISTS (SELECT 1 FROM src t WHERE t.v = s.i) GROUP BY k"
                    : "SELECT k, COUNT(*) AS n FROM src s WHERE NOT EXISTS (SELECT 1 FROM src t WHERE t.v = s.i) "
                      "GROUP BY k";
    for (uint32_t k = 0; k < KEYS_MAX; k++) {
        int64_t n = 0;
        for (size_t r = 0; r < in->count; r++) {
            bool met = false;
            for (size_t o = 0; o < in->count; o++) met |= in->items[o].v == in->items[r].i;
            n += in->items[r].key == k && met == semi;
        }
        if (n) sql_emit(q, (cell[]){TEXT(sql_key_text(k)), NUMBER(n)});
    }
}

static void set_op_model(sql_query *q, dice *d, const rows *in) {
    bool except = dice_below(d, 2);
    column(q, "g", "BIGINT");
    q->key = "g";
    q->select = except ? "SELECT g FROM src WHERE g IS NOT NULL EXCEPT SELECT v FROM src"
                       : "SELECT g FROM src WHERE g IS NOT NULL INTERSECT SELECT v FROM src";
    for (int64_t g = -64; g < 64; g++) {
        bool met = false;
        for (size_t r = 0; r < in->count; r++) met |= in->items[r].v == g;
        if (count_of(in, g) && met != except) sql_emit(q, (cell[]){NUMBER(g)});
    }
}

static void right_join_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    column(q, "i", "BIGINT"), column(q, "name", "VARCHAR");
    q->select = "SELECT i, name FROM src RIGHT JOIN " NAMES " ON g = dg AND v > 0";
    for (int k = 0; k < NAMES_COUNT; k++) {
        bool met = false;
        for (size_t r = 0; r < in->count; r++) {
            const row *x = &in->items[r];
            if (x->g != names[k].g || x->v == NONE || x->v <= 0) continue;
            met = true;
            sql_emit(q, (cell[]){NUMBER(x->i), TEXT(names[k].name)});
        }
        if (!met) sql_emit(q, (cell[]){NUMBER(NONE), TEXT(names[k].name)});
    }
}

static void union_distinct_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    column(q, "g", "BIGINT");
    q->key = "g";
    q->select = "SELECT g FROM src WHERE g IS NOT NULL UNION SELECT v FROM src WHERE v IS NOT NULL";
    for (int64_t g = -64; g < 64; g++) {
        bool met = count_of(in, g) > 0;
        for (size_t r = 0; r < in->count; r++) met |= in->items[r].v == g;
        if (met) sql_emit(q, (cell[]){NUMBER(g)});
    }
}

/* ---- elements, ranks ---- */

static void unnest_model(sql_query *q, dice *d, const rows *in) {
    (void)d;
    column(q, "i", "BIGINT"), column(q, "x", "BIGINT");
    q->select = "SELECT i, x FROM src CROSS JOIN UNNEST(ARRAY[i, g, v]) AS u (x)";
    for (size_t r = 0; r < in->count; r++) {
        const row *y = &in->items[r];
        sql_emit(q, (cell[]){NUMBER(y->i), NUMBER(y->i)});
        sql_emit(q, (cell[]){NUMBER(y->i), NUMBER(y->g)});
        sql_emit(q, (cell[]){NUMBER(y->i), NUMBER(y->v)});
    }
}

/* How many rows of x's key come before it: the greatest v first, NULL last, then the greatest i. */
static int64_t rank_of(const rows *in, const row *x) {
    int64_t before = 0;
    for (size_t r = 0; r < in->count; r++) {
        const row *y = &in->items[r]; /* NONE is less than any */
        if (y->key == x->key) before += y->v > x->v || (y->v == x->v && y->i > x->i);
    }
    return before + 1;
}

#define RANKED                                                                                                         \
    "(SELECT k, i, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, i DESC) AS rn FROM src) AS q"

/* The places of a key: who stands at each changes as better rows come. */
static void top_n_model(sql_query *q, dice *d, const rows *in) {
    int64_t n = 1 + dice_below(d, 3);
    column(q, "k", "VARCHAR"), column(q, "rn", "BIGINT"), column(q, "i", "BIGINT"), column(q, "v", "BIGINT");
    q->key = "k, rn";
    q->select = ck_arena_printf(&q->c->arena, "SELECT k, rn, i, v FROM " RANKED " WHERE rn <= %lld", (long long)n);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        int64_t rank = rank_of(in, x);
        if (rank <= n) sql_emit(q, (cell[]){TEXT(sql_key_text(x->key)), NUMBER(rank), NUMBER(x->i), NUMBER(x->v)});
    }
}

/* The best row of each key, and what of these leaves a group when a better one comes. */
static void first_model(sql_query *q, dice *d, const rows *in) {
    bool counted = dice_below(d, 2);
    column(q, counted ? "v" : "k", counted ? "BIGINT" : "VARCHAR"), column(q, "n", "BIGINT");
    q->key = counted ? "v" : "k";
    q->select = counted ? "SELECT v, COUNT(*) AS n FROM " RANKED " WHERE rn = 1 AND v IS NOT NULL GROUP BY v"
                        : "SELECT k, i AS n FROM " RANKED " WHERE rn = 1";
    for (size_t r = 0; !counted && r < in->count; r++)
        if (rank_of(in, &in->items[r]) == 1)
            sql_emit(q, (cell[]){TEXT(sql_key_text(in->items[r].key)), NUMBER(in->items[r].i)});
    for (int64_t v = -64; counted && v < 64; v++) {
        int64_t n = 0;
        for (size_t r = 0; r < in->count; r++) n += in->items[r].v == v && rank_of(in, &in->items[r]) == 1;
        if (n) sql_emit(q, (cell[]){NUMBER(v), NUMBER(n)});
    }
}

/* The first rows of all in an order; sorted only where the result ends. */
static void sort_model(sql_query *q, dice *d, const rows *in) {
    int64_t n = 1 + dice_below(d, 40);
    column(q, "i", "BIGINT"), column(q, "k", "VARCHAR");
    q->key = "i";
    q->select = ck_arena_printf(
        &q->c->arena, "SELECT i, k FROM (SELECT i, k FROM src ORDER BY k, i DESC LIMIT %lld) AS q", (long long)n);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        int64_t before = 0;
        for (size_t o = 0; o < in->count; o++) {
            int c = strcmp(sql_key_text(in->items[o].key), sql_key_text(x->key));
            before += c < 0 || (c == 0 && in->items[o].i > x->i);
        }
        if (before < n) sql_emit(q, (cell[]){NUMBER(x->i), TEXT(sql_key_text(x->key))});
    }
}

/* ---- joins in time: i is the event time, in milliseconds ---- */

/* Rows of one g that are close. Where the input ends, outer too: what waits is said when it has. */
static void interval_model(sql_query *q, dice *d, const rows *in) {
    static const char *const kinds[] = {"JOIN", "LEFT JOIN", "FULL JOIN"};
    uint32_t kind = q->c->follow ? 0 : dice_below(d, 3);
    int64_t before = dice_below(d, 12), after = (int64_t)dice_below(d, 12) - 4;
    column(q, "a", "BIGINT"), column(q, "b", "BIGINT");
    q->select = ck_arena_printf(&q->c->arena,
                                "SELECT x.i AS a, y.i AS b FROM src x %s src y ON x.g = y.g AND y.i BETWEEN x.i - %lld "
                                "AND x.i + %lld",
                                kinds[kind], (long long)before, (long long)after);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        bool x_met = false, y_met = false; /* the row as either side */
        for (size_t o = 0; o < in->count; o++) {
            const row *y = &in->items[o];
            if (x->g == NONE || x->g != y->g) continue;
            bool meets = y->i >= x->i - before && y->i <= x->i + after;
            x_met |= meets;
            y_met |= x->i >= y->i - before && x->i <= y->i + after;
            if (meets) sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(y->i)});
        }
        if (!x_met && kind > 0) sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(NONE)});
        if (!y_met && kind > 1) sql_emit(q, (cell[]){NUMBER(NONE), NUMBER(x->i)});
    }
}

/* The last row of its g before each, of those with a large v. */
static void temporal_model(sql_query *q, dice *d, const rows *in) {
    int64_t above = (int64_t)dice_below(d, 40) - 20;
    column(q, "a", "BIGINT"), column(q, "b", "BIGINT");
    q->select =
        ck_arena_printf(&q->c->arena,
                        "WITH last AS (SELECT g, i FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY i "
                        "DESC) AS n FROM src WHERE v > %lld) s WHERE n = 1) SELECT x.i AS a, y.i AS b FROM src x "
                        "LEFT JOIN last FOR SYSTEM_TIME AS OF x.i AS y ON x.g = y.g",
                        (long long)above);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        int64_t valid = NONE;
        for (size_t o = 0; o < in->count; o++) {
            const row *y = &in->items[o];
            if (x->g != NONE && y->g == x->g && y->v != NONE && y->v > above && y->i <= x->i)
                valid = greatest(valid, y->i);
        }
        sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(valid)});
    }
}

/* ---- windows over i ---- */

/* Different values of g among the rows of a key in [from, to). */
static int64_t different(const rows *in, uint32_t key, int64_t from, int64_t to) {
    int64_t n = 0;
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        bool first = x->key == key && x->i >= from && x->i < to && x->g != NONE;
        for (size_t o = 0; o < r && first; o++) {
            const row *y = &in->items[o];
            first = y->key != key || y->i < from || y->i >= to || y->g != x->g;
        }
        n += first;
    }
    return n;
}

static void window_columns(sql_query *q, const char *window) {
    column(q, "k", "VARCHAR"), column(q, "n", "BIGINT"), column(q, "lo", "BIGINT"), column(q, "s", "BIGINT");
    column(q, "d", "BIGINT");
    q->select = ck_arena_printf(&q->c->arena,
                                "SELECT k, COUNT(*) AS n, MIN(i) AS lo, SUM(v) AS s, COUNT(DISTINCT g) AS d FROM src "
                                "GROUP BY %s, k",
                                window);
}

/* Tumbling, or sessions of a key: rows of one window by the first of them. */
static void window_model(sql_query *q, dice *d, const rows *in) {
    int64_t size = 1 + dice_below(d, 12);
    bool session = dice_below(d, 2);
    window_columns(q, ck_arena_printf(&q->c->arena, "%s(i, INTERVAL '0.%03lld' SECOND)", session ? "SESSION" : "TUMBLE",
                                      (long long)size));
    for (size_t r = 0; r < in->count; r++) {
        const row *first = &in->items[r];
        int64_t end = session ? first->i + size : first->i - first->i % size + size, n = 0, s = NONE;
        bool opens = true;
        for (size_t o = 0; o < in->count && opens; o++) {
            const row *x = &in->items[o];
            int64_t begun = session ? first->i - size + 1 : end - size;
            opens = x->key != first->key || x->i >= first->i || x->i < begun;
        }
        for (bool more = opens; more;) { /* a session grows by each row in it */
            int64_t was = end;
            n = 0, s = NONE;
            for (size_t o = 0; o < in->count; o++) {
                const row *x = &in->items[o];
                if (x->key != first->key || x->i < first->i || x->i >= end) continue;
                n++, s = sum(s, x->v);
                if (session && x->i + size > was) was = x->i + size;
            }
            more = was != end;
            end = was;
        }
        if (!opens) continue;
        int64_t values = different(in, first->key, first->i, end);
        sql_emit(q, (cell[]){TEXT(sql_key_text(first->key)), NUMBER(n), NUMBER(first->i), NUMBER(s), NUMBER(values)});
    }
}

static void emit_window(sql_query *q, const rows *in, int64_t from, int64_t to) {
    for (uint32_t k = 0; k < KEYS_MAX; k++) {
        int64_t n = 0, lo = NONE, s = NONE;
        for (size_t r = 0; r < in->count; r++) {
            const row *x = &in->items[r];
            if (x->key == k && x->i >= from && x->i < to) n++, s = sum(s, x->v), lo = least(lo, x->i);
        }
        if (n)
            sql_emit(q, (cell[]){TEXT(sql_key_text(k)), NUMBER(n), NUMBER(lo), NUMBER(s),
                                 NUMBER(different(in, k, from, to))});
    }
}

/* Windows that overlap. */
static void overlapping_model(sql_query *q, dice *d, const rows *in) {
    int64_t slide = 2 + dice_below(d, 20), size = slide * (1 + dice_below(d, 4)), last = 0;
    bool cumulate = dice_below(d, 2);
    if (!cumulate) size += dice_below(d, (uint32_t)slide);
    window_columns(q, ck_arena_printf(&q->c->arena, "%s(i, INTERVAL '0.%03lld' SECOND, INTERVAL '0.%03lld' SECOND)",
                                      cumulate ? "CUMULATE" : "HOP", (long long)slide, (long long)size));
    for (size_t r = 0; r < in->count; r++) last = greatest(last, in->items[r].i);
    if (cumulate) {
        for (int64_t from = 0; from <= last; from += size)
            for (int64_t to = from + slide; to <= from + size; to += slide) emit_window(q, in, from, to);
    } else {
        for (int64_t from = -size / slide * slide; from <= last; from += slide) emit_window(q, in, from, from + size);
    }
}

/* Results beside each row, of those of its key before it. */
static void over_model(sql_query *q, dice *d, const rows *in) {
    int64_t reach = dice_below(d, 30);
    bool range = dice_below(d, 2);
    const char *frame =
        range ? ck_arena_printf(&q->c->arena, "RANGE BETWEEN INTERVAL '0.%03lld' SECOND PRECEDING", (long long)reach)
              : ck_arena_printf(&q->c->arena, "ROWS BETWEEN %lld PRECEDING", (long long)reach);
    column(q, "i", "BIGINT"), column(q, "n", "BIGINT"), column(q, "s", "BIGINT"), column(q, "hi", "BIGINT");
    column(q, "was", "BIGINT");
    q->select =
        ck_arena_printf(&q->c->arena,
                        "SELECT i, COUNT(*) OVER w AS n, SUM(v) OVER w AS s, MAX(v) OVER w AS hi, LAG(i) OVER w "
                        "AS was FROM src WINDOW w AS (PARTITION BY k ORDER BY i %s AND CURRENT ROW)",
                        frame);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        int64_t n = 0, s = NONE, hi = NONE, was = NONE;
        for (size_t o = 0; o < in->count; o++) {
            const row *y = &in->items[o];
            int64_t between = 0;
            if (y->key != x->key || y->i > x->i) continue;
            if (y->i < x->i) was = greatest(was, y->i);
            for (size_t m = 0; m < in->count && !range; m++)
                between += in->items[m].key == x->key && in->items[m].i > y->i && in->items[m].i <= x->i;
            if (range ? y->i < x->i - reach : between > reach) continue;
            n++, s = sum(s, y->v), hi = greatest(hi, y->v);
        }
        sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(n), NUMBER(s), NUMBER(hi), NUMBER(was)});
    }
}

/* The best rows of each window, said when it is over; by k too, or not. */
static void window_top_model(sql_query *q, dice *d, const rows *in) {
    int64_t size = 1 + dice_below(d, 20), n = 1 + dice_below(d, 3);
    bool by_key = dice_below(d, 2);
    column(q, "i", "BIGINT"), column(q, "v", "BIGINT"), column(q, "rn", "BIGINT");
    q->select = ck_arena_printf(
        &q->c->arena,
        "SELECT i, v, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, %swindow_end "
        "ORDER BY v DESC NULLS LAST, i DESC) AS rn FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(i), INTERVAL "
        "'0.%03lld' SECOND))) AS w WHERE rn <= %lld",
        by_key ? "k, " : "", (long long)size, (long long)n);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        int64_t rank = 1;
        for (size_t o = 0; o < in->count; o++) {
            const row *y = &in->items[o];
            if (y->i / size != x->i / size || (by_key && y->key != x->key)) continue;
            rank += y->v > x->v || (y->v == x->v && y->i > x->i);
        }
        if (rank <= n) sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(x->v), NUMBER(rank)});
    }
}

/* Rows of one g that are in one window; what has no partner is said when the window is over. */
static void window_join_model(sql_query *q, dice *d, const rows *in) {
    static const char *const kinds[] = {"JOIN", "LEFT JOIN", "FULL JOIN"};
    uint32_t kind = q->c->follow ? 0 : dice_below(d, 3);
    int64_t size = 1 + dice_below(d, 20), above = (int64_t)dice_below(d, 40) - 20;
    column(q, "a", "BIGINT"), column(q, "b", "BIGINT");
    q->select =
        ck_arena_printf(&q->c->arena,
                        "SELECT x.i AS a, y.i AS b FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(i), INTERVAL '0.%03lld' "
                        "SECOND)) x %s (SELECT * FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(i), INTERVAL '0.%03lld' "
                        "SECOND)) WHERE v > %lld) y ON x.g = y.g AND x.window_start = y.window_start AND "
                        "x.window_end = y.window_end",
                        (long long)size, kinds[kind], (long long)size, (long long)above);
    for (size_t r = 0; r < in->count; r++) {
        const row *x = &in->items[r];
        bool right = x->v != NONE && x->v > above, x_met = false;
        for (size_t o = 0; o < in->count; o++) {
            const row *y = &in->items[o];
            if (x->g == NONE || x->g != y->g || x->i / size != y->i / size || y->v == NONE || y->v <= above) continue;
            x_met = true;
            sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(y->i)});
        }
        if (!x_met && kind > 0) sql_emit(q, (cell[]){NUMBER(x->i), NUMBER(NONE)});
        if (right && x->g == NONE && kind > 1) sql_emit(q, (cell[]){NUMBER(NONE), NUMBER(x->i)});
    }
}

/* Windows of the clock: which rows they have is its business, how many in all is not. */
static void clock_model(sql_query *q, dice *d, const rows *in) {
    int64_t slide = 1 + dice_below(d, 200), times = 1 + dice_below(d, 3);
    bool session = dice_below(d, 2);
    column(q, "k", "VARCHAR"), column(q, "n", "BIGINT"), column(q, "s", "BIGINT");
    q->key = "k";
    const char *window =
        session ? ck_arena_printf(&q->c->arena, "SESSION(p, INTERVAL '0.%03lld' SECOND)", (long long)slide)
                : ck_arena_printf(&q->c->arena, "HOP(p, INTERVAL '0.%03lld' SECOND, INTERVAL '0.%03lld' SECOND)",
                                  (long long)slide, (long long)(slide * times));
    q->select = ck_arena_printf(&q->c->arena,
                                "SELECT k, SUM(n) AS n, SUM(s) AS s FROM (SELECT k, COUNT(*) AS n, SUM(v) AS s FROM "
                                "(SELECT *, PROCTIME() AS p FROM src) AS c GROUP BY %s, k) AS w GROUP BY k",
                                window);
    if (session) times = 1;
    for (uint32_t k = 0; k < KEYS_MAX; k++) {
        int64_t n = 0, s = NONE;
        for (size_t r = 0; r < in->count; r++)
            if (in->items[r].key == k) n++, s = sum(s, in->items[r].v);
        if (n) sql_emit(q, (cell[]){TEXT(sql_key_text(k)), NUMBER(n * times), NUMBER(s == NONE ? s : s * times)});
    }
}

/* ---- drawing ---- */

typedef void (*model)(sql_query *q, dice *d, const rows *in);

/* Which kind of sink it goes into: rows that only come, or changes where the result is not final. */
static const struct {
    model model;
    bool append;  /* always append */
    bool has_key; /* may go into an upsert sink */
} kinds[] = {
    {filter_model, true, false},         {limit_model, true, false},       {union_model, true, false},
    {select_distinct_model, true, true}, {counts_model, false, true},      {distinct_aggregate_model, false, true},
    {two_columns_model, false, true},    {having_model, false, true},      {global_model, false, false},
    {join_model, true, false},           {outer_join_model, false, false}, {moving_model, false, true},
    {anti_model, false, true},           {set_op_model, false, true},      {right_join_model, false, false},
    {union_distinct_model, true, true},  {unnest_model, true, false},      {top_n_model, false, true},
    {first_model, false, true},          {sort_model, false, true},        {interval_model, true, false},
    {temporal_model, true, false},       {window_model, true, false},      {window_top_model, true, false},
    {window_join_model, true, false},    {clock_model, false, true},       {overlapping_model, true, false},
    {over_model, true, false},
};

/* What waits for the watermark is all said only where the input ends. */
static bool waits_for_the_end(model m) {
    return m == temporal_model || m == window_model || m == window_top_model || m == clock_model ||
           m == overlapping_model || m == over_model;
}

void sql_query_draw(sql_query *q, dice *d, const rows *in, bool append_only) {
    bool changing = q->c->changes || q->c->follow;
    uint32_t k;
    do k = dice_below(d, sizeof kinds / sizeof *kinds);
    while ((q->c->follow && waits_for_the_end(kinds[k].model)) || (changing && !kinds[k].append && !kinds[k].has_key) ||
           (append_only && !kinds[k].append));
    if (q->c->follow && kinds[k].model == limit_model && in->count == 0) k = 0;
    q->sink->upsert = kinds[k].has_key && ((changing && !kinds[k].append) || dice_below(d, 2));
    q->sink->settled = kinds[k].append || !changing;
    q->sink->limit = UINT64_MAX;
    kinds[k].model(q, d, in);
    if (!q->sink->upsert) q->key = NULL;
}
