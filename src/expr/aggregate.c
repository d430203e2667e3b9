/* The aggregates there are, their types, and the accumulators each is made of. */
#include "expr/aggregate_int.h"

ck_status ck_aggregate_refuse(const char *name, const ck_type *arg, ck_arena *a, const char *takes, ck_error *err) {
    return ck_fail(err, CK_INVALID, "no aggregate %s(%s); %s takes %s", name, ck_type_name(a, arg), name, takes);
}

static ck_status bind_count(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out,
                            ck_error *err) {
    static const ck_aggregate_part rows[] = {{"count_star", false}}, values[] = {{"count", true}};
    (void)a, (void)err;
    /* The values of a NOT NULL argument are the rows. */
    bool star = !arg || !arg_nullable;
    *out = (ck_bound_aggregate){.argument_type = star ? NULL : arg,
                                .type = ck_type_simple(CK_TYPE_BIGINT),
                                .parts = star ? rows : values,
                                .part_count = 1,
                                .finish = "first"};
    return CK_OK;
}

static ck_status bind_sum(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out, ck_error *err) {
    static const ck_aggregate_part parts[] = {{"sum", true}};
    (void)arg_nullable;
    *out = (ck_bound_aggregate){
        .argument_type = arg, .nullable = true, .parts = parts, .part_count = 1, .finish = "first"};
    if (ck_kind_is_integer(arg->kind)) {
        out->argument_type = out->type = ck_type_simple(CK_TYPE_BIGINT);
    } else if (ck_kind_is_float(arg->kind)) {
        out->argument_type = out->type = ck_type_simple(CK_TYPE_DOUBLE);
    } else if (arg->kind == CK_TYPE_DECIMAL) {
        out->type = ck_type_decimal(a, 38, arg->scale);
        if (!out->type) return ck_nomem(err, a->mem, sizeof *arg);
    } else if (arg->kind == CK_TYPE_INTERVAL_MONTH || arg->kind == CK_TYPE_INTERVAL_US) {
        out->type = arg;
    } else if (arg->kind == CK_TYPE_NULL) {
        out->argument_type = out->type = ck_type_simple(CK_TYPE_BIGINT);
    } else {
        return ck_aggregate_refuse("sum", arg, a, "a number or an interval", err);
    }
    return CK_OK;
}

static ck_status bind_avg(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out, ck_error *err) {
    static const ck_aggregate_part parts[] = {{"sum", true}, {"count", true}},
                                   rows[] = {{"sum", true}, {"count_star", false}};
    if (arg->kind == CK_TYPE_INTERVAL_MONTH || arg->kind == CK_TYPE_INTERVAL_US ||
        bind_sum(a, arg, arg_nullable, out, err) == CK_INVALID)
        return ck_aggregate_refuse("avg", arg, a, "a number", err);
    if (out->type == NULL) return CK_NOMEM;
    out->parts = arg_nullable ? parts : rows;
    out->part_count = 2;
    out->finish = "avg";
    if (arg->kind != CK_TYPE_DECIMAL) {
        out->type = ck_type_simple(CK_TYPE_DOUBLE);
        return CK_OK;
    }
    out->type = ck_type_decimal(a, 38, arg->scale > 6 ? arg->scale : 6);
    return out->type ? CK_OK : ck_nomem(err, a->mem, sizeof *arg);
}

bool ck_aggregate_has_order(const ck_type *t) {
    return t->kind != CK_TYPE_ARRAY && t->kind != CK_TYPE_MAP && t->kind != CK_TYPE_ROW;
}

static ck_status bind_extreme(ck_arena *a, const ck_type *arg, const char *name, const ck_aggregate_part *part,
                              ck_bound_aggregate *out, ck_error *err) {
    if (!ck_aggregate_has_order(arg)) return ck_aggregate_refuse(name, arg, a, "values that have an order", err);
    *out = (ck_bound_aggregate){
        .argument_type = arg, .type = arg, .nullable = true, .parts = part, .part_count = 1, .finish = "first"};
    return CK_OK;
}

static ck_status bind_min(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out, ck_error *err) {
    static const ck_aggregate_part part[] = {{"min", true}};
    (void)arg_nullable;
    return bind_extreme(a, arg, "min", part, out, err);
}

static ck_status bind_max(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out, ck_error *err) {
    static const ck_aggregate_part part[] = {{"max", true}};
    (void)arg_nullable;
    return bind_extreme(a, arg, "max", part, out, err);
}

static ck_status bind_moments(ck_arena *a, const ck_type *arg, const char *name, const char *finish,
                              ck_bound_aggregate *out, ck_error *err) {
    static const ck_aggregate_part part[] = {{"moments", true}};
    if (!ck_kind_is_numeric(arg->kind) && arg->kind != CK_TYPE_NULL)
        return ck_aggregate_refuse(name, arg, a, "a number", err);
    *out = (ck_bound_aggregate){.argument_type = ck_type_simple(CK_TYPE_DOUBLE),
                                .type = ck_type_simple(CK_TYPE_DOUBLE),
                                .nullable = true,
                                .parts = part,
                                .part_count = 1,
                                .finish = finish};
    return CK_OK;
}

#define BIND_MOMENTS(fn, name, finish)                                                                                 \
    static ck_status fn(ck_arena *a, const ck_type *arg, bool arg_nullable, ck_bound_aggregate *out, ck_error *err) {  \
        (void)arg_nullable;                                                                                            \
        return bind_moments(a, arg, name, finish, out, err);                                                           \
    }
BIND_MOMENTS(bind_var_pop, "var_pop", "var_pop")
BIND_MOMENTS(bind_var_samp, "var_samp", "var_samp")
BIND_MOMENTS(bind_variance, "variance", "var_samp")
BIND_MOMENTS(bind_stddev_pop, "stddev_pop", "stddev_pop")
BIND_MOMENTS(bind_stddev_samp, "stddev_samp", "stddev_samp")
BIND_MOMENTS(bind_stddev, "stddev", "stddev_samp")

static const ck_aggregate aggregates[] = {
    {"count", 0, 1, true, bind_count, "aggregates", "COUNT(*) or COUNT([DISTINCT] a)",
     "The number of rows, or of values that are not NULL.",
     "SELECT COUNT(*), COUNT(a), COUNT(DISTINCT a) FROM (VALUES (1), (1), (NULL)) AS t(a)", "3, 2, 1",
     .order = CK_AGGREGATE_UNORDERED},
    {"sum", 1, 1, true, bind_sum, "aggregates", "SUM([DISTINCT] a)",
     "The sum of the values that are not NULL; NULL when there are none. Of integers a BIGINT (an error beyond it), of "
     "DECIMAL(p,s) a DECIMAL(38,s), of REAL a DOUBLE.",
     "SELECT SUM(a) FROM (VALUES (1.50), (2.25)) AS t(a)", "3.75", .order = CK_AGGREGATE_UNORDERED},
    {"avg", 1, 1, true, bind_avg, "aggregates", "AVG([DISTINCT] a)",
     "The mean of the values that are not NULL. Of integers a DOUBLE, of DECIMAL(p,s) a DECIMAL(38, max(s, 6)).",
     "SELECT AVG(a) FROM (VALUES (1), (2)) AS t(a)", "1.5", .order = CK_AGGREGATE_UNORDERED},
    {"min", 1, 1, false, bind_min, "aggregates", "MIN(a)", "The least value; strings compare byte by byte.",
     "SELECT MIN(a) FROM (VALUES ('b'), ('a')) AS t(a)", "a", .order = CK_AGGREGATE_UNORDERED},
    {"max", 1, 1, false, bind_max, "aggregates", "MAX(a)", "The greatest value; strings compare byte by byte.",
     "SELECT MAX(a) FROM (VALUES (3), (7)) AS t(a)", "7", .order = CK_AGGREGATE_UNORDERED},
    {"var_pop", 1, 1, true, bind_var_pop, "aggregates", "VAR_POP([DISTINCT] a)",
     "The variance of the values that are not NULL, a DOUBLE: the mean of their squared distances from their mean. NaN "
     "where one of them is NaN or infinite.",
     "SELECT VAR_POP(a) FROM (VALUES (2), (4), (4), (6)) AS t(a)", "2.0", .order = CK_AGGREGATE_UNORDERED},
    {"var_samp", 1, 1, true, bind_var_samp, "aggregates", "VAR_SAMP([DISTINCT] a)",
     "The variance estimated from a sample: divided by one less than the number of values; NULL of fewer than two.",
     "SELECT VAR_SAMP(a) FROM (VALUES (2), (4), (6)) AS t(a)", "4.0", .order = CK_AGGREGATE_UNORDERED},
    {"variance", 1, 1, true, bind_variance, "aggregates", "VARIANCE([DISTINCT] a)", "The same as VAR_SAMP.",
     "SELECT VARIANCE(a) FROM (VALUES (2), (4), (6)) AS t(a)", "4.0", .order = CK_AGGREGATE_UNORDERED},
    {"stddev_pop", 1, 1, true, bind_stddev_pop, "aggregates", "STDDEV_POP([DISTINCT] a)",
     "The standard deviation: the square root of VAR_POP.",
     "SELECT STDDEV_POP(a) FROM (VALUES (2), (2), (6), (6)) AS t(a)", "2.0", .order = CK_AGGREGATE_UNORDERED},
    {"stddev_samp", 1, 1, true, bind_stddev_samp, "aggregates", "STDDEV_SAMP([DISTINCT] a)",
     "The standard deviation estimated from a sample: the square root of VAR_SAMP.",
     "SELECT STDDEV_SAMP(a) FROM (VALUES (2), (4), (6)) AS t(a)", "2.0", .order = CK_AGGREGATE_UNORDERED},
    {"stddev", 1, 1, true, bind_stddev, "aggregates", "STDDEV([DISTINCT] a)", "The same as STDDEV_SAMP.",
     "SELECT STDDEV(a) FROM (VALUES (2), (4), (6)) AS t(a)", "2.0", .order = CK_AGGREGATE_UNORDERED},
};

const ck_aggregate *ck_aggregate_find(const char *name) {
    for (size_t i = 0; i < ck_aggregate_count(); i++)
        if (ck_view_eq_nocase(ck_view_of(ck_aggregate_at(i)->name), ck_view_of(name))) return ck_aggregate_at(i);
    return NULL;
}

size_t ck_aggregate_count(void) { return CK_ARRAY_COUNT(aggregates) + ck_aggregates_ordered_count; }
const ck_aggregate *ck_aggregate_at(size_t i) {
    if (i < CK_ARRAY_COUNT(aggregates)) return &aggregates[i];
    i -= CK_ARRAY_COUNT(aggregates);
    return i < ck_aggregates_ordered_count ? &ck_aggregates_ordered[i] : NULL;
}
