/* Parts of dates and times, cutting and moving them. A TIMESTAMP_LTZ counts in the session's time zone. */
#include "expr/cast_int.h"
#include "expr/coerce.h"
#include "expr/functions_int.h"
#include "expr/time_int.h"
#include "expr/time_unit.h"

typedef enum shape { DATE, TIME, STAMP, LTZ, MONTHS, INTERVAL, SHAPES } shape;

static bool shape_of(const ck_type *t, shape *out) {
    switch (t->kind) {
    case CK_TYPE_DATE: *out = DATE; return true;
    case CK_TYPE_TIME: *out = TIME; return true;
    case CK_TYPE_TIMESTAMP: *out = STAMP; return true;
    case CK_TYPE_TIMESTAMP_LTZ: *out = LTZ; return true;
    case CK_TYPE_INTERVAL_MONTH: *out = MONTHS; return true;
    case CK_TYPE_INTERVAL_US: *out = INTERVAL; return true;
    default: return false;
    }
}

static ck_status drop_on(ck_status s, ck_vec *out) {
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

/* ---- parts ---- */

enum { BLOCK = 256 };

/* Rows of a loop in blocks: the values of up to BLOCK rows side by side, and where their results go. */
typedef struct block {
    const int64_t *from;
    int64_t *to;
    uint32_t at, n;
    int64_t values[BLOCK], results[BLOCK];
} block;

/* Most blocks lie between two changes of the clock. */
static void block_localise(block *k, const ck_kernels *kernels, ck_zone_cache *zone) {
    (void)ck_zone_local(zone, k->from[0]);
    if (kernels->any_outside(k->from, zone->from, zone->until - 1, k->n))
        for (uint32_t i = 0; i < k->n; i++) k->values[i] = ck_zone_local(zone, k->from[i]);
    else if (zone->offset)
        for (uint32_t i = 0; i < k->n; i++) k->values[i] = k->from[i] + zone->offset;
    else
        return;
    k->from = k->values;
}

/* Local times, or dates as days or (scale) as midnights: where they stand if nothing has to be done to them. */
static void block_load(block *k, const ck_kernels *kernels, const int64_t *v, int64_t scale, ck_zone_cache *zone,
                       int64_t *r, const ck_rows *rows) {
    k->n = rows->n - k->at < BLOCK ? rows->n - k->at : BLOCK;
    k->from = v + k->at, k->to = r + k->at;
    if (rows->sel) {
        const uint16_t *sel = rows->sel + k->at;
        for (uint32_t i = 0; i < k->n; i++) k->values[i] = v[sel[i]];
        k->from = k->values, k->to = k->results;
    }
    if (scale != 1) {
        for (uint32_t i = 0; i < k->n; i++) k->values[i] = k->from[i] * scale;
        k->from = k->values;
    } else if (zone->zone) {
        block_localise(k, kernels, zone);
    }
}

static void block_store(block *k, int64_t *r, const ck_rows *rows) {
    for (uint32_t i = 0; rows->sel && i < k->n; i++) r[rows->sel[k->at + i]] = k->results[i];
    k->at += k->n;
}

/* Rows that stand together are mostly of one day. */
static void part_of_days(const ck_kernels *kernels, ck_unit u, const int64_t *days, int64_t *r, uint32_t n) {
    bool one = !kernels->any_outside(days, days[0], days[0], n);
    if (!one && kernels->day_part[u] && kernels->day_part[u](r, days, n)) return;
    int64_t day = days[0], part = ck_unit_part(u, day * CK_DAY_US);
    for (uint32_t i = 0; i < n; i++) {
        if (days[i] != day) day = days[i], part = ck_unit_part(u, day * CK_DAY_US);
        r[i] = part;
    }
}

static void calendar_parts(const ck_kernels *kernels, ck_unit u, shape of, const int64_t *v, ck_zone_cache *zone,
                           int64_t *r, const ck_rows *rows) {
    int64_t days[BLOCK];
    for (block k = {.at = 0}; k.at < rows->n; block_store(&k, r, rows)) {
        block_load(&k, kernels, v, 1, zone, r, rows);
        if (of != DATE) kernels->days(days, k.from, k.n);
        part_of_days(kernels, u, of == DATE ? k.from : days, k.to, k.n);
    }
}

static void clock_parts(const ck_kernels *kernels, ck_unit u, int64_t scale, const int64_t *v, ck_zone_cache *zone,
                        int64_t *r, const ck_rows *rows) {
    for (block k = {.at = 0}; k.at < rows->n; block_store(&k, r, rows)) {
        block_load(&k, kernels, v, scale, zone, r, rows);
        kernels->clock_part[u](k.to, k.from, k.n);
    }
}

static int64_t interval_part(ck_unit u, int64_t v) {
    int64_t a = v < 0 ? -v : v, p;
    switch (u) {
    case CK_UNIT_DAY: p = a / CK_DAY_US; break;
    case CK_UNIT_EPOCH: p = a / CK_SECOND_US; break;
    default: p = ck_unit_part(u, a); break;
    }
    return v < 0 ? -p : p;
}

static int64_t month_part(ck_unit u, int64_t v) {
    switch (u) {
    case CK_UNIT_MONTH: return v % 12;
    case CK_UNIT_QUARTER: return v % 12 / 3 + 1;
    case CK_UNIT_DECADE: return v / 120;
    case CK_UNIT_CENTURY: return v / 1200;
    case CK_UNIT_MILLENNIUM: return v / 12000;
    default: return v / 12;
    }
}

static ck_status kernel_part(CK_KERNEL_ARGS) {
    uint32_t unit = call->impl->op / SHAPES;
    ck_unit u = (ck_unit)unit;
    shape of = (shape)(call->impl->op % SHAPES);
    const ck_vec *x = &args[ck_expr_computed_args(call) - 1];
    const int64_t *v = x->col->i64;
    ck_zone_cache zone = ck_zone_cache_of(of == LTZ ? ev->zone : NULL);
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    int64_t *r = out->col->i64;
    if (of == MONTHS || of == INTERVAL) {
        for (CK_EACH_ROW(k, i, rows)) r[i] = (of == MONTHS ? month_part : interval_part)(u, v[i]);
    } else if (u >= CK_UNIT_DAY && u != CK_UNIT_EPOCH) {
        calendar_parts(ev->kernels, u, of, v, &zone, r, rows);
    } else {
        /* An instant's EPOCH is the same in every zone. */
        if (u == CK_UNIT_EPOCH) zone = ck_zone_cache_of(NULL);
        clock_parts(ev->kernels, u, of == DATE ? CK_DAY_US : 1, v, &zone, r, rows);
    }
    return CK_OK;
}

#define PART(U, S) [(U)*SHAPES + (S)] = {.kernel = kernel_part, .op = (U)*SHAPES + (S)}
#define PARTZ(U)                                                                                                       \
    [(U)*SHAPES +                                                                                                      \
        LTZ] = {.kernel = kernel_part, .flags = CK_FN_ZONED, .op = (U)*SHAPES + LTZ, .prepare = ck_prepare_zone}
#define CLOCK(U)    PART(U, DATE), PART(U, TIME), PART(U, STAMP), PARTZ(U), PART(U, INTERVAL)
#define CALENDAR(U) PART(U, DATE), PART(U, STAMP), PARTZ(U)
#define MONTHLY(U)  CALENDAR(U), PART(U, MONTHS)
static const ck_impl impl_part[CK_UNIT_COUNT * SHAPES] = {
    CLOCK(CK_UNIT_MICROSECOND),  CLOCK(CK_UNIT_MILLISECOND), CLOCK(CK_UNIT_SECOND),         CLOCK(CK_UNIT_MINUTE),
    CLOCK(CK_UNIT_HOUR),         CALENDAR(CK_UNIT_DAY),      CALENDAR(CK_UNIT_WEEK),        MONTHLY(CK_UNIT_MONTH),
    MONTHLY(CK_UNIT_QUARTER),    MONTHLY(CK_UNIT_YEAR),      MONTHLY(CK_UNIT_DECADE),       MONTHLY(CK_UNIT_CENTURY),
    MONTHLY(CK_UNIT_MILLENNIUM), CALENDAR(CK_UNIT_DOW),      CALENDAR(CK_UNIT_ISODOW),      CALENDAR(CK_UNIT_DOY),
    CALENDAR(CK_UNIT_ISOYEAR),   CLOCK(CK_UNIT_EPOCH),       CALENDAR(CK_UNIT_DAY_OF_WEEK), PART(CK_UNIT_DAY, INTERVAL),
};

static ck_status choose_part(ck_bind_call *call, ck_unit u, ck_expr *x, ck_error *err) {
    shape of;
    call->type = ck_type_simple(CK_TYPE_BIGINT);
    if (shape_of(x->type, &of) && impl_part[u * SHAPES + of].kernel) {
        call->impl = &impl_part[u * SHAPES + of];
        return CK_OK;
    }
    return ck_fail(err, CK_INVALID, "%s of %s does not exist", call->fn->syntax, ck_type_name(call->arena, x->type));
}

/* A unit given as a string literal. */
static ck_status unit_argument(ck_bind_call *call, uint32_t i, bool floors, ck_unit *u, ck_error *err) {
    const ck_expr *e = call->args[i];
    if (!ck_expr_is_text_literal(e)) return ck_fail(err, CK_INVALID, "%s needs a unit as a word", call->fn->syntax);
    if (!ck_unit_find(e->value.str, u) || *u == CK_UNIT_DAY_OF_WEEK || (floors && !ck_unit_can_floor(*u)))
        return ck_fail(err, CK_INVALID, "%s has no unit %.*s; there are MICROSECOND to MILLENNIUM%s", call->fn->syntax,
                       (int)(e->value.str.n > 40 ? 40 : e->value.str.n), e->value.str.p,
                       floors ? "" : ", DOW, ISODOW, DOY, ISOYEAR and EPOCH");
    return CK_OK;
}

/* A string literal as the moment it spells. */
static ck_status moment_argument(ck_bind_call *call, uint32_t i, ck_error *err) {
    if (!ck_expr_is_text_literal(call->args[i]) && call->args[i]->type->kind != CK_TYPE_NULL) return CK_OK;
    return ck_coerce(call->arena, call->args[i], ck_type_simple(CK_TYPE_TIMESTAMP), true, &call->args[i], err);
}

static ck_status bind_extract(ck_bind_call *call, ck_error *err) {
    ck_unit u = CK_UNIT_DAY;
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    CK_TRY(unit_argument(call, 0, false, &u, err));
    CK_TRY(moment_argument(call, 1, err));
    return choose_part(call, u, call->args[1], err);
}

static ck_status bind_part(ck_bind_call *call, ck_error *err) {
    static const struct {
        const char *name;
        ck_unit unit;
    } parts[] = {{"year", CK_UNIT_YEAR},
                 {"quarter", CK_UNIT_QUARTER},
                 {"month", CK_UNIT_MONTH},
                 {"week", CK_UNIT_WEEK},
                 {"dayofmonth", CK_UNIT_DAY},
                 {"dayofyear", CK_UNIT_DOY},
                 {"dayofweek", CK_UNIT_DAY_OF_WEEK},
                 {"hour", CK_UNIT_HOUR},
                 {"minute", CK_UNIT_MINUTE},
                 {"second", CK_UNIT_SECOND}};
    if (call->arg_count != 1) return ck_bind_mismatch(call, err);
    CK_TRY(moment_argument(call, 0, err));
    size_t i = 0;
    while (strcmp(parts[i].name, call->name) != 0) i++;
    return choose_part(call, parts[i].unit, call->args[0], err);
}

/* ---- cutting and moving ---- */

typedef enum move { CUT_DOWN, CUT_UP, ADD, BETWEEN, LAST_DAY } move;

static ck_unit unit_of_call(const ck_expr *call) {
    for (uint32_t i = 0; i < 2; i++) {
        ck_unit u;
        if (ck_expr_is_text_literal(call->args[i]) && ck_unit_find(call->args[i]->value.str, &u)) return u;
    }
    return CK_UNIT_MONTH;
}

static bool cut(ck_unit u, int64_t local, bool up, int64_t *out) {
    int64_t begin = ck_unit_floor(u, local);
    *out = begin;
    if (!up || begin == local) return true;
    return ck_unit_add(u, begin, 1, out);
}

/* On a local time; `n` of ADD. */
static bool move_local(move m, ck_unit u, int64_t local, int64_t n, int64_t *out) {
    if (m == ADD) return ck_unit_add(u, local, n, out);
    if (m != LAST_DAY) return cut(u, local, m == CUT_UP, out);
    int64_t year;
    unsigned month, day;
    ck_civil_from_days(ck_floor_div(local, CK_DAY_US), &year, &month, &day);
    *out = ck_days_from_civil(year, month, ck_days_in_month(year, month)) * CK_DAY_US;
    return true;
}

/* To the local time, there, and back. Fixed steps on an instant do not need the zone. */
static bool move_one(const ck_eval *ev, shape of, move m, ck_unit u, int64_t v, int64_t n, int64_t *out) {
    bool zoned = of == LTZ && !(m == ADD && u <= CK_UNIT_HOUR);
    int64_t local = of == DATE ? v * CK_DAY_US : zoned ? ck_timezone_local(ev->zone, v) : v, r;
    if (!move_local(m, u, local, n, &r) || r < CK_TIME_MIN_US || r > CK_TIME_MAX_US) return false;
    *out = of == DATE ? ck_floor_div(r, CK_DAY_US) : zoned ? ck_timezone_utc(ev->zone, r) : r;
    return true;
}

typedef struct mover {
    move m;
    shape of;
    ck_unit u;
    uint32_t at; /* which argument is the moment; the other is the unit, or of TIMESTAMPADD the number */
} mover;

static mover mover_of(const ck_expr *call) {
    move m = (move)(call->impl->op / SHAPES);
    uint32_t at = m == ADD ? 2 : m == LAST_DAY ? 0 : ck_expr_is_text_literal(call->args[0]) ? 1 : 0;
    return (mover){m, (shape)(call->impl->op % SHAPES), m == LAST_DAY ? CK_UNIT_MONTH : unit_of_call(call), at};
}

/* false: the result is out of range. */
static bool move_row(const ck_eval *ev, const mover *x, const ck_vec *args, uint32_t i, int64_t *out) {
    int64_t r = 0;
    bool good = move_one(ev, x->of, x->m, x->u, CK_ARG_I64(x->at, i), x->m == ADD ? CK_ARG_I64(1, i) : 0, &r);
    /* LAST_DAY is a date whatever it is asked of. */
    bool to_date = x->m == LAST_DAY && x->of != DATE;
    *out = to_date ? ck_floor_div(x->of == LTZ ? ck_timezone_local(ev->zone, r) : r, CK_DAY_US) : r;
    return good;
}

/* Whether all times of a block are so far from any change of the clock that a day's beginning and what ck_timezone_utc
 * looks at around it have the same offset. */
static bool far_from_changes(const block *k, const ck_kernels *kernels, ck_zone_cache *zone) {
    int64_t from, until;
    if (!zone->zone) return true;
    (void)ck_zone_local(zone, k->from[0]);
    if (__builtin_add_overflow(zone->from, 4 * CK_DAY_US, &from)) return false;
    if (__builtin_sub_overflow(zone->until, 4 * CK_DAY_US, &until)) return false;
    return !kernels->any_outside(k->from, from, until, k->n);
}

/* DATE_TRUNC to what clocks count, block by block. False: this one holds a row that needs a closer look. */
static bool cut_block(block *k, const ck_kernels *kernels, ck_unit u, ck_zone_cache *zone) {
    if (kernels->any_outside(k->from, CK_TIME_MIN_US + CK_DAY_US, CK_TIME_MAX_US - CK_DAY_US, k->n)) return false;
    if (!far_from_changes(k, kernels, zone)) return false;
    int64_t offset = zone->zone ? zone->offset : 0;
    if (offset) {
        for (uint32_t i = 0; i < k->n; i++) k->values[i] = k->from[i] + offset;
        k->from = k->values;
    }
    kernels->clock_floor[u](k->to, k->from, k->n);
    for (uint32_t i = 0; offset && i < k->n; i++) k->to[i] -= offset;
    return true;
}

static ck_status cut_blocks(ck_eval *ev, const mover *x, const ck_vec *args, const ck_rows *rows, ck_column *out,
                            ck_error *err) {
    ck_zone_cache none = ck_zone_cache_of(NULL), zone = ck_zone_cache_of(x->of == LTZ ? ev->zone : NULL);
    ck_status s = CK_OK;
    for (block k = {.at = 0}; s == CK_OK && k.at < rows->n;) {
        block_load(&k, ev->kernels, args[x->at].col->i64, 1, &none, out->i64, rows);
        if (cut_block(&k, ev->kernels, x->u, &zone)) {
            block_store(&k, out->i64, rows);
            continue;
        }
        for (uint32_t end = k.at + k.n; s == CK_OK && k.at < end; k.at++) {
            uint32_t i = rows->sel ? rows->sel[k.at] : k.at;
            if (!move_row(ev, x, args, i, &out->i64[i])) s = ck_eval_mark(ev, out, i, CK_MARK_OVERFLOW, err);
        }
    }
    return s;
}

static ck_status kernel_move(CK_KERNEL_ARGS) {
    mover x = mover_of(call);
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    if (x.m == CUT_DOWN && x.of != DATE && ev->kernels->clock_floor[x.u] && !args[x.at].constant)
        return drop_on(cut_blocks(ev, &x, args, rows, out->col, err), out);
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        if (!move_row(ev, &x, args, i, &out->col->i64[i]) && s == CK_OK)
            s = ck_eval_mark(ev, out->col, i, CK_MARK_OVERFLOW, err);
    }
    return drop_on(s, out);
}

static ck_status kernel_between(CK_KERNEL_ARGS) {
    shape of = (shape)(call->impl->op % SHAPES);
    ck_unit u = unit_of_call(call);
    int64_t scale = of == DATE ? CK_DAY_US : 1;
    bool zoned = of == LTZ && u > CK_UNIT_HOUR;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t a = CK_ARG_I64(1, i) * scale, b = CK_ARG_I64(2, i) * scale;
        if (zoned) a = ck_timezone_local(ev->zone, a), b = ck_timezone_local(ev->zone, b);
        out->col->i64[i] = ck_unit_between(u, a, b);
    }
    return CK_OK;
}

#define MOVE(M, S) [(M)*SHAPES + (S)] = {.kernel = kernel_move, .flags = CK_FN_FALLIBLE, .op = (M)*SHAPES + (S)}
#define MOVEZ(M)                                                                                                       \
    [(M)*SHAPES + LTZ] = {.kernel = kernel_move,                                                                       \
                          .flags = CK_FN_FALLIBLE | CK_FN_ZONED,                                                       \
                          .op = (M)*SHAPES + LTZ,                                                                      \
                          .prepare = ck_prepare_zone}
#define DISTANCE(S) [BETWEEN * SHAPES + (S)] = {.kernel = kernel_between, .op = BETWEEN * SHAPES + (S)}
static const ck_impl impl_move[] = {
    MOVE(CUT_DOWN, DATE),
    MOVE(CUT_DOWN, STAMP),
    MOVEZ(CUT_DOWN),
    MOVE(CUT_UP, DATE),
    MOVE(CUT_UP, STAMP),
    MOVEZ(CUT_UP),
    MOVE(ADD, DATE),
    MOVE(ADD, STAMP),
    MOVEZ(ADD),
    MOVE(LAST_DAY, DATE),
    MOVE(LAST_DAY, STAMP),
    MOVEZ(LAST_DAY),
    DISTANCE(DATE),
    DISTANCE(STAMP),
    [BETWEEN * SHAPES + LTZ] = {.kernel = kernel_between,
                                .flags = CK_FN_ZONED,
                                .op = BETWEEN * SHAPES + LTZ,
                                .prepare = ck_prepare_zone},
};

static ck_status choose_move(ck_bind_call *call, move m, ck_expr *x, ck_error *err) {
    shape of;
    if (!shape_of(x->type, &of) || m * SHAPES + of >= CK_ARRAY_COUNT(impl_move) || !impl_move[m * SHAPES + of].kernel)
        return ck_bind_mismatch(call, err);
    call->impl = &impl_move[m * SHAPES + of];
    call->type = x->type;
    return CK_OK;
}

/* date_trunc(unit, x), floor_to(x, unit), ceil_to(x, unit) */
static ck_status bind_cut(ck_bind_call *call, ck_error *err) {
    ck_unit u;
    uint32_t at = call->name[0] == 'd' ? 1 : 0;
    if (call->arg_count != 2) return ck_bind_mismatch(call, err);
    CK_TRY(unit_argument(call, 1 - at, true, &u, err));
    CK_TRY(moment_argument(call, at, err));
    return choose_move(call, call->name[0] == 'c' ? CUT_UP : CUT_DOWN, call->args[at], err);
}

static ck_status bind_add(ck_bind_call *call, ck_error *err) {
    ck_unit u = CK_UNIT_DAY;
    if (call->arg_count != 3) return ck_bind_mismatch(call, err);
    CK_TRY(unit_argument(call, 0, true, &u, err));
    if (ck_implicit_cost(call->args[1], CK_TYPE_BIGINT) < 0) return ck_bind_mismatch(call, err);
    CK_TRY(ck_coerce(call->arena, call->args[1], ck_type_simple(CK_TYPE_BIGINT), true, &call->args[1], err));
    CK_TRY(moment_argument(call, 2, err));
    if (u < CK_UNIT_DAY && call->args[2]->type->kind == CK_TYPE_DATE) /* a date has no hours: midnight */
        CK_TRY(ck_coerce(call->arena, call->args[2], ck_type_simple(CK_TYPE_TIMESTAMP), true, &call->args[2], err));
    return choose_move(call, ADD, call->args[2], err);
}

static ck_status bind_between(ck_bind_call *call, ck_error *err) {
    ck_unit u;
    if (call->arg_count != 3) return ck_bind_mismatch(call, err);
    CK_TRY(unit_argument(call, 0, true, &u, err));
    for (uint32_t i = 1; i < 3; i++) CK_TRY(moment_argument(call, i, err));
    const ck_type *both = ck_common_type(call->arena, call->args[1]->type, call->args[2]->type);
    if (!both) return ck_bind_mismatch(call, err);
    for (uint32_t i = 1; i < 3; i++) CK_TRY(ck_coerce(call->arena, call->args[i], both, true, &call->args[i], err));
    CK_TRY(choose_move(call, BETWEEN, call->args[1], err));
    call->type = ck_type_simple(CK_TYPE_BIGINT);
    return CK_OK;
}

static ck_status bind_last_day(ck_bind_call *call, ck_error *err) {
    if (call->arg_count != 1) return ck_bind_mismatch(call, err);
    CK_TRY(moment_argument(call, 0, err));
    CK_TRY(choose_move(call, LAST_DAY, call->args[0], err));
    call->type = ck_type_simple(CK_TYPE_DATE);
    return CK_OK;
}

#define FN(NAME, BIND, SYNTAX, SUMMARY, EXAMPLE, RESULT)                                                               \
    .name = NAME, .bind = BIND, .group = "dates and times", .syntax = SYNTAX, .summary = SUMMARY, .example = EXAMPLE,  \
    .result = RESULT
#define TS "TIMESTAMP '2024-02-29 13:45:06'"

static const ck_function functions[] = {
    {FN("extract", bind_extract, "EXTRACT(unit FROM x)",
        "A part of a date, time, timestamp or interval: YEAR to MICROSECOND, WEEK (ISO), DOW (0 is Sunday), ISODOW, "
        "DOY, "
        "EPOCH (seconds) ...",
        "EXTRACT(DOY FROM DATE '2024-02-29')", "60"),
     .aliases = "date_part"},
    {FN("year", bind_part, "YEAR(x)", "The year.", "YEAR(" TS ")", "2024")},
    {FN("quarter", bind_part, "QUARTER(x)", "The quarter, 1 to 4.", "QUARTER(" TS ")", "1")},
    {FN("month", bind_part, "MONTH(x)", "The month, 1 to 12.", "MONTH(" TS ")", "2")},
    {FN("week", bind_part, "WEEK(x)", "The ISO week, 1 to 53.", "WEEK(" TS ")", "9")},
    {FN("dayofyear", bind_part, "DAYOFYEAR(x)", "The day of the year, 1 to 366.", "DAYOFYEAR(" TS ")", "60")},
    {FN("dayofmonth", bind_part, "DAYOFMONTH(x)", "The day of the month.", "DAYOFMONTH(" TS ")", "29"),
     .aliases = "day"},
    {FN("dayofweek", bind_part, "DAYOFWEEK(x)", "The day of the week, 1 is Sunday.", "DAYOFWEEK(" TS ")", "5")},
    {FN("hour", bind_part, "HOUR(x)", "The hour, 0 to 23.", "HOUR(" TS ")", "13")},
    {FN("minute", bind_part, "MINUTE(x)", "The minute.", "MINUTE(" TS ")", "45")},
    {FN("second", bind_part, "SECOND(x)", "The second, without its fraction.", "SECOND(" TS ")", "6")},
    {FN("date_trunc", bind_cut, "DATE_TRUNC('unit', x)", "The beginning of the unit (weeks begin on Monday) around x.",
        "DATE_TRUNC('month', DATE '2024-02-29')", "2024-02-01")},
    {FN("floor_to", bind_cut, "FLOOR(x TO unit)", "As DATE_TRUNC.", "FLOOR(" TS " TO HOUR)", "2024-02-29 13:00:00"),
     .flags = CK_FN_INTERNAL},
    {FN("ceil_to", bind_cut, "CEIL(x TO unit)", "The beginning of the unit at or behind x.", "CEIL(" TS " TO HOUR)",
        "2024-02-29 14:00:00"),
     .flags = CK_FN_INTERNAL},
    {FN("timestampadd", bind_add, "TIMESTAMPADD(unit, n, x)", "The time n units later.",
        "TIMESTAMPADD(MONTH, 1, DATE '2024-01-31')", "2024-02-29")},
    {FN("timestampdiff", bind_between, "TIMESTAMPDIFF(unit, a, b)", "Whole units from a to b.",
        "TIMESTAMPDIFF(DAY, DATE '2024-02-01', DATE '2024-03-01')", "29")},
    {FN("last_day", bind_last_day, "LAST_DAY(x)", "The last day of the month.", "LAST_DAY(DATE '2024-02-03')",
        "2024-02-29")},
};
const ck_function_table ck_functions_time = {functions, CK_ARRAY_COUNT(functions)};
