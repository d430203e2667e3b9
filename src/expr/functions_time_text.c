/* Dates and times as text by a pattern, from text and from numbers, in time zones by name; the clock. */
#include "expr/cast_int.h"
#include "expr/coerce.h"
#include "expr/datefmt.h"
#include "expr/functions_int.h"
#include "expr/strout.h"
#include "expr/time_int.h"

static ck_status drop_on(ck_status s, ck_vec *out) {
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static bool is_text_literal(const ck_expr *e) { return e->kind == CK_EXPR_LITERAL && !e->value.null; }

/* ---- patterns: constant ones compiled once ---- */

typedef struct format_state {
    const ck_datefmt *format; /* NULL: a pattern that is not valid */
    bool fixed;
    ck_arena arena; /* of the pattern of the latest row */
    ck_view pattern;
} format_state;

static void dispose_format(ck_eval *ev, void *state) {
    (void)ev;
    ck_arena_destroy(&((format_state *)state)->arena);
}

static ck_status prepare_format(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    void *zone;
    CK_TRY(ck_prepare_zone(ev, call, &zone, err));
    format_state *s = CK_ARENA_NEW(&ev->arena, format_state);
    if (!s) return ck_nomem(err, ev->mem, sizeof *s);
    ck_arena_init(&s->arena, ev->mem, 1 << 20);
    *state = s;
    s->fixed = is_text_literal(call->args[1]);
    if (!s->fixed) return CK_OK;
    /* One that is not valid (a constant put in for a column) fails the rows that reach it. */
    ck_status st = ck_datefmt_compile(&ev->arena, call->args[1]->value.str, &s->format, err);
    return st == CK_INVALID ? CK_OK : st;
}

static ck_status format_of(format_state *s, const ck_vec *args, uint32_t row, const ck_datefmt **out, ck_error *err) {
    ck_view pattern = s->fixed ? (ck_view){0} : CK_ARG_STR(1, row);
    *out = NULL;
    if (pattern.n > CK_DATEFMT_PATTERN_MAX) return CK_OK; /* not valid: the row fails, as with any other such */
    if (!s->fixed && !(s->pattern.p && ck_view_eq(pattern, s->pattern))) {
        ck_mem mem = s->arena.mem;
        ck_arena_destroy(&s->arena);
        ck_arena_init(&s->arena, mem, 1 << 20);
        char *copy = ck_arena_strndup(&s->arena, pattern.p, pattern.n);
        if (!copy) return ck_nomem(err, mem, pattern.n);
        s->pattern = (ck_view){copy, pattern.n};
        s->format = NULL;
        ck_status st = ck_datefmt_compile(&s->arena, s->pattern, &s->format, NULL);
        if (st == CK_INVALID)
            s->format = NULL;
        else
            CK_TRY(st);
    }
    *out = s->format;
    return CK_OK;
}

typedef enum source { FROM_DATE, FROM_TIME, FROM_STAMP, FROM_LTZ, FROM_SECONDS } source;

/* Rows within one stretch of the pattern's finest field print the same: they share the text. */
static ck_status kernel_format(CK_KERNEL_ARGS) {
    source from = (source)call->impl->op;
    ck_zone_cache zone = ck_zone_cache_of(from == FROM_LTZ || from == FROM_SECONDS ? ev->zone : NULL);
    format_state *s = ck_eval_state(ev);
    int64_t stretch = 0;
    uint32_t same = CK_NONE; /* a row of that stretch */
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status st = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        const ck_datefmt *f = NULL;
        if (st == CK_OK) st = format_of(s, args, i, &f, err);
        if (st != CK_OK) break;
        int64_t v = CK_ARG_I64(0, i);
        if (from == FROM_DATE) v *= CK_DAY_US;
        bool fits = from != FROM_SECONDS || (v >= CK_TIME_MIN_US / CK_SECOND_US && v <= CK_TIME_MAX_US / CK_SECOND_US);
        if (from == FROM_SECONDS && fits) v *= CK_SECOND_US;
        if (!f || !fits) {
            st = ck_strout_mark(&w, i, CK_MARK_ARGUMENT);
            continue;
        }
        v = ck_zone_local(&zone, v);
        uint64_t grain = (uint64_t)ck_datefmt_grain_us(f);
        if (s->fixed && same != CK_NONE && (uint64_t)v - (uint64_t)stretch < grain) {
            w.col->views[i] = w.col->views[same];
            continue;
        }
        char *p = ck_strout_room(&w, ck_datefmt_bytes_max(f));
        if (!p) {
            st = CK_NOMEM;
            break;
        }
        ck_strout_take(&w, i, p, ck_datefmt_print(f, v, p));
        same = i, stretch = v - ck_floor_mod(v, (int64_t)grain);
    }
    return ck_strout_finish(&w, st, out);
}

static ck_status kernel_parse(CK_KERNEL_ARGS) {
    ck_kind kind = call->type->kind;
    format_state *s = ck_eval_state(ev);
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status st = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        const ck_datefmt *f = NULL;
        int64_t v = 0;
        if (st == CK_OK) st = format_of(s, args, i, &f, err);
        if (st != CK_OK) break;
        if (!f || !ck_datefmt_parse(f, CK_ARG_STR(0, i), &v)) st = ck_eval_mark(ev, out->col, i, CK_MARK_ARGUMENT, err);
        if (kind == CK_TYPE_DATE) v = ck_floor_div(v, CK_DAY_US);
        if (kind == CK_TYPE_BIGINT) v = ck_floor_div(ck_timezone_utc(ev->zone, v), CK_SECOND_US);
        out->col->i64[i] = v;
    }
    return drop_on(st, out);
}

#define FORMAT(SOURCE, FLAGS)                                                                                          \
    { .kernel = kernel_format, .flags = FLAGS, .op = SOURCE, .prepare = prepare_format, .dispose = dispose_format }
static const ck_impl impl_format[] = {[FROM_DATE] = FORMAT(FROM_DATE, CK_FN_FALLIBLE),
                                      [FROM_TIME] = FORMAT(FROM_TIME, CK_FN_FALLIBLE),
                                      [FROM_STAMP] = FORMAT(FROM_STAMP, CK_FN_FALLIBLE),
                                      [FROM_LTZ] = FORMAT(FROM_LTZ, CK_FN_FALLIBLE | CK_FN_ZONED),
                                      [FROM_SECONDS] = FORMAT(FROM_SECONDS, CK_FN_FALLIBLE | CK_FN_ZONED)};
/* With a constant pattern nothing can fail. */
static const ck_impl impl_format_fixed[] = {[FROM_DATE] = FORMAT(FROM_DATE, 0),
                                            [FROM_TIME] = FORMAT(FROM_TIME, 0),
                                            [FROM_STAMP] = FORMAT(FROM_STAMP, 0),
                                            [FROM_LTZ] = FORMAT(FROM_LTZ, CK_FN_ZONED)};
static const ck_impl impl_parse = {
    .kernel = kernel_parse, .flags = CK_FN_FALLIBLE, .prepare = prepare_format, .dispose = dispose_format};
static const ck_impl impl_parse_zoned = {.kernel = kernel_parse,
                                         .flags = CK_FN_FALLIBLE | CK_FN_ZONED,
                                         .prepare = prepare_format,
                                         .dispose = dispose_format};

static ck_status check_format(ck_bind_call *call, ck_error *err) {
    if (call->arg_count < 2 || !is_text_literal(call->args[1])) return CK_OK;
    const ck_datefmt *f;
    CK_TRY(ck_datefmt_compile(call->arena, call->args[1]->value.str, &f, err));
    for (size_t i = 0; i < CK_ARRAY_COUNT(impl_format_fixed); i++)
        if (call->impl == &impl_format[i]) call->impl = &impl_format_fixed[i];
    return CK_OK;
}

static ck_status bind_pattern(ck_bind_call *call, ck_error *err) {
    CK_TRY(ck_bind_overloads(call, err));
    return check_format(call, err);
}

/* A pattern that is left out. */
static ck_status with_pattern(ck_bind_call *call, const char *pattern, ck_error *err) {
    ck_expr **args = ck_arena_array(call->arena, 2, sizeof *args);
    ck_datum d = {.str = ck_view_of(pattern)};
    if (!args || !(args[1] = ck_expr_literal(call->arena, ck_type_simple(CK_TYPE_VARCHAR), d)))
        return ck_nomem(err, call->arena->mem, 2 * sizeof *args);
    args[0] = call->args[0];
    call->args = args, call->arg_count = 2;
    return CK_OK;
}

static ck_status bind_from_unixtime(ck_bind_call *call, ck_error *err) {
    if (call->arg_count == 1) CK_TRY(with_pattern(call, "yyyy-MM-dd HH:mm:ss", err));
    return bind_pattern(call, err);
}

static ck_status bind_unix_timestamp(ck_bind_call *call, ck_error *err) {
    if (call->arg_count == 1 && call->args[0]->type->kind == CK_TYPE_VARCHAR)
        CK_TRY(with_pattern(call, "yyyy-MM-dd HH:mm:ss", err));
    return bind_pattern(call, err);
}

/* Without a pattern the text is ISO 8601, as in CAST. */
static ck_status bind_to_moment(ck_bind_call *call, ck_error *err) {
    bool date = strcmp(call->name, "to_date") == 0;
    if (call->arg_count == 1 && ck_implicit_cost(call->args[0], CK_TYPE_VARCHAR) >= 0) {
        const ck_type *to =
            date ? ck_type_simple(CK_TYPE_DATE) : ck_type_with_precision(call->arena, CK_TYPE_TIMESTAMP, 3);
        if (!to) return ck_nomem(err, call->arena->mem, sizeof *to);
        return ck_expr_cast(call->arena, call->args[0], to, false, &call->instead, err);
    }
    CK_TRY(bind_pattern(call, err));
    if (!date && call->arg_count == 2) {
        call->type = ck_type_with_precision(call->arena, CK_TYPE_TIMESTAMP, 3);
        if (!call->type) return ck_nomem(err, call->arena->mem, sizeof *call->type);
    }
    return CK_OK;
}

/* ---- from numbers ---- */

static ck_status scale_epoch(ck_eval *ev, const int64_t *v, int64_t unit_us, const ck_rows *rows, ck_vec *out,
                             ck_error *err) {
    int64_t low = CK_TIME_MIN_US / unit_us, high = CK_TIME_MAX_US / unit_us;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    int64_t *r = out->col->i64, outside = 0;
    for (CK_EACH_ROW(k, i, rows)) {
        r[i] = (int64_t)((uint64_t)v[i] * (uint64_t)unit_us);
        outside |= (int64_t)(v[i] < low) | (int64_t)(v[i] > high);
    }
    ck_status s = CK_OK;
    if (outside)
        for (CK_EACH_ROW(k, i, rows))
            if (s == CK_OK && (v[i] < low || v[i] > high)) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    return drop_on(s, out);
}

static ck_status kernel_epoch(CK_KERNEL_ARGS) {
    return scale_epoch(ev, args[0].col->i64, call->impl->op, rows, out, err);
}
static const ck_impl impl_epoch[] = {
    {.kernel = kernel_epoch, .flags = CK_FN_FALLIBLE | CK_FN_BLIND | CK_FN_CHEAP | CK_FN_FIRST, .op = 1000000},
    {.kernel = kernel_epoch, .flags = CK_FN_FALLIBLE | CK_FN_BLIND | CK_FN_CHEAP | CK_FN_FIRST, .op = 1000},
    {.kernel = kernel_epoch, .flags = CK_FN_FALLIBLE | CK_FN_BLIND | CK_FN_CHEAP | CK_FN_FIRST, .op = 1}};

static ck_status bind_to_ltz(ck_bind_call *call, ck_error *err) {
    if (call->arg_count < 1 || call->arg_count > 2 || ck_implicit_cost(call->args[0], CK_TYPE_BIGINT) < 0)
        return ck_bind_mismatch(call, err);
    CK_TRY(ck_coerce(call->arena, call->args[0], ck_type_simple(CK_TYPE_BIGINT), true, &call->args[0], err));
    int64_t precision = 3;
    if (call->arg_count == 2) {
        const ck_expr *p = call->args[1];
        if (p->kind != CK_EXPR_LITERAL || p->value.null || !ck_kind_is_integer(p->type->kind) ||
            (p->value.i64 != 0 && p->value.i64 != 3 && p->value.i64 != 6))
            return ck_fail(err, CK_INVALID, "the precision of TO_TIMESTAMP_LTZ is 0 (seconds), 3 (milliseconds) or 6");
        precision = p->value.i64;
    }
    call->impl = &impl_epoch[precision / 3];
    call->type = ck_type_with_precision(call->arena, CK_TYPE_TIMESTAMP_LTZ, precision == 6 ? 6 : 3);
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *call->type);
}

static ck_status kernel_epoch_double(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        double us = __builtin_rint(args[0].col->f64[i] * 1e6);
        bool fits = us >= (double)CK_TIME_MIN_US && us <= (double)CK_TIME_MAX_US;
        out->col->i64[i] = fits ? (int64_t)us : 0;
        if (!fits && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}
static const ck_impl impl_epoch_double = {.kernel = kernel_epoch_double, .flags = CK_FN_FALLIBLE};

static ck_status kernel_make_date(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t y = CK_ARG_I64(0, i), m = CK_ARG_I64(1, i), d = CK_ARG_I64(2, i);
        bool good = y >= 1 && y <= 9999 && m >= 1 && m <= 12 && d >= 1 && d <= ck_days_in_month(y, (unsigned)m);
        out->col->i64[i] = good ? ck_days_from_civil(y, (unsigned)m, (unsigned)d) : 0;
        if (!good && s == CK_OK) s = ck_eval_mark(ev, out->col, i, CK_MARK_ARGUMENT, err);
    }
    return drop_on(s, out);
}
static const ck_impl impl_make_date = {.kernel = kernel_make_date, .flags = CK_FN_FALLIBLE};

static ck_status kernel_to_seconds(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) out->col->i64[i] = ck_floor_div(args[0].col->i64[i], CK_SECOND_US);
    return CK_OK;
}
static const ck_impl impl_to_seconds = {.kernel = kernel_to_seconds, .flags = CK_FN_BLIND};

/* ---- zones by name ---- */

static ck_status prepare_named(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    const ck_expr *name = call->args[1];
    char *z = ck_arena_strndup(&ev->arena, name->value.str.p, name->value.str.n);
    const ck_timezone *zone;
    if (!z) return ck_nomem(err, ev->mem, name->value.str.n);
    CK_TRY(ck_timezone_load(ev->proc, &ev->arena, z, &zone, err));
    *state = (void *)(uintptr_t)zone;
    return CK_OK;
}

static ck_status kernel_at_zone(CK_KERNEL_ARGS) {
    const ck_timezone *zone = ck_eval_state(ev);
    ck_zone_cache cache = ck_zone_cache_of(zone);
    bool to_local = call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t v = args[0].col->i64[i];
        out->col->i64[i] = to_local ? ck_zone_local(&cache, v) : ck_timezone_utc(zone, v);
    }
    return CK_OK;
}
/* ZONED keeps the planner, which has no file system, from folding it. */
static const ck_impl impl_at_zone[] = {
    {.kernel = kernel_at_zone, .flags = CK_FN_FIRST | CK_FN_ZONED, .op = 0, .prepare = prepare_named},
    {.kernel = kernel_at_zone, .flags = CK_FN_FIRST | CK_FN_ZONED, .op = 1, .prepare = prepare_named}};

static ck_status bind_at_zone(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    if (!is_text_literal(call->args[1]) || call->args[1]->type->kind != CK_TYPE_VARCHAR)
        return ck_fail(err, CK_INVALID, "AT TIME ZONE needs the name of a zone as a string");
    if (ck_expr_is_text_literal(call->args[0]) || call->args[0]->type->kind == CK_TYPE_NULL)
        CK_TRY(ck_coerce(call->arena, call->args[0], ck_type_simple(CK_TYPE_TIMESTAMP), true, &call->args[0], err));
    const ck_type *t = call->args[0]->type;
    if (t->kind != CK_TYPE_TIMESTAMP && t->kind != CK_TYPE_TIMESTAMP_LTZ) return ck_bind_mismatch(call, err);
    bool to_local = t->kind == CK_TYPE_TIMESTAMP_LTZ;
    call->type =
        ck_type_with_precision(call->arena, to_local ? CK_TYPE_TIMESTAMP : CK_TYPE_TIMESTAMP_LTZ, t->precision);
    call->impl = &impl_at_zone[to_local];
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *t);
}

/* ---- the clock ---- */

typedef enum clock_reading { NOW, LOCAL, TODAY, CLOCK, NOW_SECONDS } clock_reading;

static ck_status kernel_now(CK_KERNEL_ARGS) {
    (void)args;
    clock_reading what = (clock_reading)call->impl->op;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    int64_t now = ev->now_us - ck_floor_mod(ev->now_us, 1000), local = ck_timezone_local(ev->zone, now);
    out->col->i64[0] = what == NOW     ? now
                       : what == LOCAL ? local
                       : what == TODAY ? ck_floor_div(local, CK_DAY_US)
                       : what == CLOCK ? ck_floor_mod(local, CK_DAY_US) / CK_SECOND_US * CK_SECOND_US
                                       : ck_floor_div(now, CK_SECOND_US);
    return CK_OK;
}
#define READS(WHAT)                                                                                                    \
    { .kernel = kernel_now, .flags = CK_FN_NOW | CK_FN_ZONED, .op = WHAT, .prepare = ck_prepare_zone }
static const ck_impl impl_now[] = {READS(NOW), READS(LOCAL), READS(TODAY), READS(CLOCK), READS(NOW_SECONDS)};

static ck_status bind_now(ck_bind_call *call, ck_error *err) {
    static const struct {
        const char *name;
        clock_reading what;
        ck_kind kind;
        int precision;
    } readings[] = {{"now", NOW, CK_TYPE_TIMESTAMP_LTZ, 3},
                    {"proctime", NOW, CK_TYPE_TIMESTAMP_LTZ, 3},
                    {"localtimestamp", LOCAL, CK_TYPE_TIMESTAMP, 3},
                    {"current_date", TODAY, CK_TYPE_DATE, -1},
                    {"current_time", CLOCK, CK_TYPE_TIME, 0}};
    if (call->arg_count) return ck_bind_mismatch(call, err);
    size_t i = 0;
    while (strcmp(readings[i].name, call->name) != 0) i++;
    call->impl = &impl_now[readings[i].what];
    call->type = readings[i].precision < 0
                     ? ck_type_simple(readings[i].kind)
                     : ck_type_with_precision(call->arena, readings[i].kind, readings[i].precision);
    return call->type ? CK_OK : ck_nomem(err, call->arena->mem, sizeof *call->type);
}

/* ---- the table ---- */

#define OVERLOADS(NAME, ...) static const ck_overload NAME[] = {__VA_ARGS__}
OVERLOADS(o_date_format, {"ts>s", &impl_format[FROM_STAMP], false}, {"zs>s", &impl_format[FROM_LTZ], false},
          {"Ds>s", &impl_format[FROM_DATE], false}, {"Ts>s", &impl_format[FROM_TIME], false});
OVERLOADS(o_from_unixtime, {"ls>s", &impl_format[FROM_SECONDS], false});
OVERLOADS(o_unix_timestamp, {">l", &impl_now[NOW_SECONDS], false}, {"ss>l", &impl_parse_zoned, false},
          {"z>l", &impl_to_seconds, false});
OVERLOADS(o_to_timestamp, {"ss>t", &impl_parse, false}, {"d>z", &impl_epoch_double, false});
OVERLOADS(o_to_date, {"ss>D", &impl_parse, false});
OVERLOADS(o_make_date, {"lll>D", &impl_make_date, false});

#define FN(NAME, BIND, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                               \
    .name = NAME, .bind = BIND, .group = "dates and times", .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE,  \
    .result = RESULT
#define WITH(LIST) .overloads = LIST, .overload_count = CK_ARRAY_COUNT(LIST)

static const ck_function functions[] = {
    {FN("date_format", bind_pattern, "DATE_FORMAT(x, pattern)",
        "A date or time as text by a pattern like yyyy-MM-dd HH:mm:ss.SSS; plain text stands in quotes.",
        "DATE_FORMAT(TIMESTAMP '2024-02-29 13:45:06', 'dd MMM yyyy, hh:mm a')", "29 Feb 2024, 01:45 PM"),
     WITH(o_date_format)},
    {FN("to_timestamp", bind_to_moment, "TO_TIMESTAMP(text [, pattern]) or TO_TIMESTAMP(seconds)",
        "The TIMESTAMP(3) a text says, ISO 8601 or by a pattern; of a number the TIMESTAMP_LTZ so many seconds after "
        "1970.",
        "TO_TIMESTAMP('29.02.2024 13:45', 'dd.MM.yyyy HH:mm')", "2024-02-29 13:45:00"),
     WITH(o_to_timestamp)},
    {FN("to_date", bind_to_moment, "TO_DATE(text [, pattern])", "The date a text says, ISO 8601 or by a pattern.",
        "TO_DATE('29/02/2024', 'dd/MM/yyyy')", "2024-02-29"),
     WITH(o_to_date)},
    {FN("to_timestamp_ltz", bind_to_ltz, "TO_TIMESTAMP_LTZ(n [, precision])",
        "The instant n milliseconds (precision 3, the default), seconds (0) or microseconds (6) after 1970.",
        "TO_TIMESTAMP_LTZ(1709214306000, 3)", "2024-02-29 13:45:06Z")},
    {FN("from_unixtime", bind_from_unixtime, "FROM_UNIXTIME(seconds [, pattern])",
        "An instant in seconds after 1970 as text in the session's time zone.", "FROM_UNIXTIME(44)",
        "1970-01-01 00:00:44"),
     WITH(o_from_unixtime)},
    {FN("unix_timestamp", bind_unix_timestamp, "UNIX_TIMESTAMP([text [, pattern] or timestamp])",
        "Seconds after 1970: of now, of a text in the session's time zone, of a timestamp.",
        "UNIX_TIMESTAMP('1970-01-01 00:01:00')", "60"),
     WITH(o_unix_timestamp)},
    {FN("make_date", NULL, "MAKE_DATE(year, month, day)", "The date of these three.", "MAKE_DATE(2024, 2, 29)",
        "2024-02-29"),
     WITH(o_make_date)},
    {FN("at_time_zone", bind_at_zone, "x AT TIME ZONE 'zone'",
        "A TIMESTAMP as an instant there; a TIMESTAMP_LTZ as the wall clock there.",
        "TIMESTAMP '2024-07-01 12:00:00' AT TIME ZONE 'Europe/Berlin'", "2024-07-01 10:00:00Z"),
     .flags = CK_FN_INTERNAL},
    {FN("now", bind_now, "CURRENT_TIMESTAMP or NOW()", "The instant at which the batch (a bounded job: the job) began.",
        "NOW() IS NOT NULL", "true"),
     .aliases = "current_timestamp current_row_timestamp"},
    {FN("proctime", bind_now, "PROCTIME()",
        "The instant at which a row is worked on. As a column or in ORDER BY it makes windows and OVER go by the clock.",
        "PROCTIME() IS NOT NULL", "true")},
    {FN("localtimestamp", bind_now, "LOCALTIMESTAMP",
        "As CURRENT_TIMESTAMP, as the wall clock of the session's time zone.", "LOCALTIMESTAMP IS NOT NULL", "true")},
    {FN("current_date", bind_now, "CURRENT_DATE", "The date in the session's time zone.",
        "CURRENT_DATE >= DATE '1970-01-01'", "true")},
    {FN("current_time", bind_now, "CURRENT_TIME or LOCALTIME", "The time of day in the session's time zone.",
        "CURRENT_TIME IS NOT NULL", "true"),
     .aliases = "localtime"},
};
const ck_function_table ck_functions_time_text = {functions, CK_ARRAY_COUNT(functions)};
