/* Aggregates of all values of a group in an order - as one text, as an array, the first, the one at a fraction of the
 * way - and those that count or order approximately. */
#include "expr/aggregate_int.h"

static const ck_aggregate_part ordered[] = {{"ordered", true}}, sketch[] = {{"distinct_sketch", true}};

static ck_bound_aggregate of_ordered(const ck_type *arg, const ck_type *type, const char *finish) {
    return (ck_bound_aggregate){
        .argument_type = arg, .type = type, .nullable = true, .parts = ordered, .part_count = 1, .finish = finish};
}

static bool is_nested(const ck_type *t) {
    return t->kind == CK_TYPE_ARRAY || t->kind == CK_TYPE_MAP || t->kind == CK_TYPE_ROW;
}

static ck_status concatenated(const char *name, ck_arena *a, const ck_type *arg, ck_bound_aggregate *out,
                              ck_error *err) {
    const ck_type *text = ck_type_simple(CK_TYPE_VARCHAR);
    if (is_nested(arg) || arg->kind == CK_TYPE_BYTES)
        return ck_aggregate_refuse(name, arg, a, "a text or what a cast makes one", err);
    *out = of_ordered(text, text, "concat");
    return CK_OK;
}

static ck_status bind_string_agg(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                 ck_error *err) {
    (void)nullable;
    return concatenated("string_agg", a, arg, out, err);
}

static ck_status bind_listagg(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out, ck_error *err) {
    (void)nullable;
    return concatenated("listagg", a, arg, out, err);
}

static ck_status bind_array_agg(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                ck_error *err) {
    (void)nullable;
    if (arg->kind == CK_TYPE_NULL)
        return ck_aggregate_refuse("array_agg", arg, a, "a value that has a type, such as CAST(NULL AS BIGINT)", err);
    const ck_type *type = ck_type_array(a, arg, true);
    if (!type) return ck_nomem(err, a->mem, sizeof *arg);
    *out = of_ordered(arg, type, "list");
    return CK_OK;
}

static ck_status bind_first_value(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                  ck_error *err) {
    (void)a, (void)nullable, (void)err;
    *out = of_ordered(arg, arg, "first_value");
    return CK_OK;
}

static ck_status bind_last_value(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                 ck_error *err) {
    (void)a, (void)nullable, (void)err;
    *out = of_ordered(arg, arg, "last_value");
    return CK_OK;
}

static ck_status of_numbers(const char *name, const char *finish, ck_arena *a, const ck_type *arg,
                            ck_bound_aggregate *out, ck_error *err) {
    const ck_type *number = ck_type_simple(CK_TYPE_DOUBLE);
    if (!ck_kind_is_numeric(arg->kind) && arg->kind != CK_TYPE_NULL)
        return ck_aggregate_refuse(name, arg, a, "a number", err);
    *out = of_ordered(number, number, finish);
    return CK_OK;
}

static ck_status bind_percentile_cont(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                      ck_error *err) {
    (void)nullable;
    return of_numbers("percentile_cont", "percentile_cont", a, arg, out, err);
}

static ck_status bind_median(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out, ck_error *err) {
    (void)nullable;
    return of_numbers("median", "percentile_cont", a, arg, out, err);
}

static ck_status bind_percentile_disc(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                      ck_error *err) {
    (void)nullable;
    if (!ck_aggregate_has_order(arg))
        return ck_aggregate_refuse("percentile_disc", arg, a, "values that have an order", err);
    *out = of_ordered(arg, arg, "percentile_disc");
    return CK_OK;
}

static ck_status bind_approx_percentile(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                        ck_error *err) {
    (void)nullable;
    CK_TRY(of_numbers("approx_percentile", "approx_percentile", a, arg, out, err));
    out->of = "approx_bucket";
    out->of_type = ck_type_simple(CK_TYPE_BIGINT);
    return CK_OK;
}

static ck_status bind_approx_count_distinct(ck_arena *a, const ck_type *arg, bool nullable, ck_bound_aggregate *out,
                                            ck_error *err) {
    (void)nullable;
    if (is_nested(arg)) return ck_aggregate_refuse("approx_count_distinct", arg, a, "one value, not several", err);
    *out = (ck_bound_aggregate){.argument_type = arg,
                                .type = ck_type_simple(CK_TYPE_BIGINT),
                                .parts = sketch,
                                .part_count = 1,
                                .finish = "distinct_estimate"};
    return CK_OK;
}

#define CONCATENATED                                                                                                   \
    "The values that are not NULL as one text, with the separator (',') between them, in the order of ORDER BY, ties " \
    "and without it in the order of the values. NULL when there are none."

const ck_aggregate ck_aggregates_ordered[] = {
    {"string_agg", 1, 2, true, bind_string_agg, "aggregates",
     "STRING_AGG([DISTINCT] a [, separator] [ORDER BY b, ...])", CONCATENATED,
     "SELECT STRING_AGG(a, '-' ORDER BY b DESC) FROM (VALUES ('x', 1), ('z', 2), (NULL, 3)) AS t(a, b)", "z-x",
     .order = CK_AGGREGATE_ORDERED, .constant = CK_AGGREGATE_SEPARATOR},
    {"listagg", 1, 2, true, bind_listagg, "aggregates",
     "LISTAGG([DISTINCT] a [, separator]) [WITHIN GROUP (ORDER BY b, ...)]", "The same as STRING_AGG.",
     "SELECT LISTAGG(a) WITHIN GROUP (ORDER BY b) FROM (VALUES ('x', 2), ('z', 1)) AS t(a, b)", "z,x",
     .order = CK_AGGREGATE_ORDERED, .constant = CK_AGGREGATE_SEPARATOR},
    {"array_agg", 1, 1, true, bind_array_agg, "aggregates", "ARRAY_AGG([DISTINCT] a [ORDER BY b, ...]) [IGNORE NULLS]",
     "The values as an array, NULLs too, in the order of ORDER BY, ties and without it in the order of the values. "
     "NULL when there are no rows.",
     "SELECT ARRAY_AGG(a ORDER BY b) FROM (VALUES (7, 2), (NULL, 3), (5, 1)) AS t(a, b)", "[5,7,null]",
     .order = CK_AGGREGATE_ORDERED, .keeps_nulls = true},
    {"first_value", 1, 1, false, bind_first_value, "aggregates", "FIRST_VALUE(a ORDER BY b, ...) [IGNORE NULLS]",
     "The value of the row that is first in the order; of several that are, the least value. With OVER it goes along "
     "with each row.",
     "SELECT FIRST_VALUE(a ORDER BY b) FROM (VALUES ('x', 2), ('z', 1)) AS t(a, b)", "z", .order = CK_AGGREGATE_BY,
     .keeps_nulls = true},
    {"last_value", 1, 1, false, bind_last_value, "aggregates", "LAST_VALUE(a ORDER BY b, ...) [IGNORE NULLS]",
     "The value of the row that is last in the order; of several that are, the greatest value.",
     "SELECT LAST_VALUE(a ORDER BY b) FROM (VALUES ('x', 2), ('z', 1)) AS t(a, b)", "x", .order = CK_AGGREGATE_BY,
     .keeps_nulls = true},
    {"percentile_cont", 1, 1, true, bind_percentile_cont, "aggregates",
     "PERCENTILE_CONT(fraction) WITHIN GROUP (ORDER BY a [DESC])",
     "The number at a fraction (0 to 1, the same for all rows) of the way through the values that are not NULL, "
     "between "
     "two of them where none is there; a DOUBLE.",
     "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY a) FROM (VALUES (1), (2), (3), (5)) AS t(a)", "1.75",
     .order = CK_AGGREGATE_WITHIN, .constant = CK_AGGREGATE_FRACTION},
    {"percentile_disc", 1, 1, true, bind_percentile_disc, "aggregates",
     "PERCENTILE_DISC(fraction) WITHIN GROUP (ORDER BY a [DESC])",
     "The first value that has at least a fraction of the values that are not NULL at or before it.",
     "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a) FROM (VALUES ('a'), ('b'), ('c'), ('d')) AS t(a)", "b",
     .order = CK_AGGREGATE_WITHIN, .constant = CK_AGGREGATE_FRACTION},
    {"median", 1, 1, true, bind_median, "aggregates", "MEDIAN([DISTINCT] a)",
     "The number in the middle: PERCENTILE_CONT(0.5).", "SELECT MEDIAN(a) FROM (VALUES (1), (2), (10), (20)) AS t(a)",
     "6.0", .order = CK_AGGREGATE_UNORDERED},
    {"approx_percentile", 2, 2, false, bind_approx_percentile, "aggregates", "APPROX_PERCENTILE(a, fraction)",
     "As PERCENTILE_DISC, but the value is cut after its eighth significant bit, less than 0.8% nearer to zero: of "
     "each "
     "group no more is kept than a count for each such number.",
     "SELECT APPROX_PERCENTILE(a, 0.5) FROM (VALUES (1), (1001), (2000)) AS t(a)", "1000.0",
     .constant = CK_AGGREGATE_FRACTION},
    {"approx_count_distinct", 1, 1, false, bind_approx_count_distinct, "aggregates", "APPROX_COUNT_DISTINCT(a)",
     "About how many different values that are not NULL there are: HyperLogLog, 4 KiB a group at most, one time in "
     "three "
     "more than 1.6% off. Only over rows that are not taken back.",
     "SELECT APPROX_COUNT_DISTINCT(a) FROM (VALUES (1), (2), (2), (NULL)) AS t(a)", "2", .append_only = true},
};
const size_t ck_aggregates_ordered_count = CK_ARRAY_COUNT(ck_aggregates_ordered);
