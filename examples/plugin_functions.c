/* SQL functions of your own: distance_km(lat, lon, lat, lon), initials(name), and the aggregates geomean(x) and
 * longest(text).
 *
 *     cc -O2 -shared -fPIC -Iinclude -o functions.so examples/plugin_functions.c -lm
 *     clink run --plugin functions.so -e "SELECT initials('Ada Lovelace')"
 */
#include <clink/plugin.h>
#include <math.h>

/* ---- distance_km: numbers in, numbers out, a loop over the rows ---- */

static clink_status distance_km(clink_call *call) {
    const clink_column *const *a = call->arguments;
    const double radian = 3.14159265358979323846 / 180, earth_km = 6371.0088;
    for (CLINK_EACH(call->rows, k, row)) {
        double lat1 = clink_f64(a[0], row) * radian, lon1 = clink_f64(a[1], row) * radian;
        double lat2 = clink_f64(a[2], row) * radian, lon2 = clink_f64(a[3], row) * radian;
        double y = sin((lat2 - lat1) / 2), x = sin((lon2 - lon1) / 2);
        double h = y * y + cos(lat1) * cos(lat2) * x * x;
        if (!(h >= 0 && h <= 1)) /* NaN too */
            clink_fail_row(call, row, "these are no coordinates");
        else
            clink_set_f64(call->out, row, 2 * earth_km * asin(sqrt(h)));
    }
    return CLINK_OK;
}

static const clink_function distance_km_function = {.struct_bytes = sizeof(clink_function),
                                                    .flags = CLINK_FAILS,
                                                    .name = "distance_km",
                                                    .arguments = "DOUBLE, DOUBLE, DOUBLE, DOUBLE",
                                                    .returns = "DOUBLE",
                                                    .call = distance_km,
                                                    .summary = "Along the surface, between two points in degrees."};

/* ---- initials: text in, text or NULL out ---- */

static clink_status initials(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        clink_bytes name = clink_text(call->arguments[0], row);
        char *to = clink_text_room(call->out, name.n);
        size_t n = 0;
        int begins = 1;
        if (!to) return CLINK_NOMEM;
        for (size_t i = 0; i < name.n; i++) {
            char c = name.p[i];
            if (begins && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))) to[n++] = (char)(c & ~0x20);
            begins = c == ' ' || c == '-';
        }
        if (n)
            clink_text_take(call->out, row, n);
        else
            clink_set_null(call->out, row);
    }
    return CLINK_OK;
}

static const clink_function initials_function = {.struct_bytes = sizeof(clink_function),
                                                 .flags = CLINK_GIVES_NULLS,
                                                 .name = "initials",
                                                 .arguments = "VARCHAR",
                                                 .returns = "VARCHAR",
                                                 .call = initials,
                                                 .summary = "The first letter of each word; NULL where there is none."};

/* ---- geomean: two numbers a group, which rows can be taken out of again ---- */

enum { LOGS, COUNT };
static const clink_field geomean_state[] = {{"logs", "DOUBLE"}, {"count", "BIGINT"}};

static clink_status geomean_add(const clink_groups *g, const clink_column *values, const uint16_t *at,
                                const int8_t *weights, clink_error *error) {
    for (uint32_t i = 0; i < g->count; i++) {
        uint32_t row = at ? at[i] : i;
        int weight = weights ? weights[i] : 1;
        double x = clink_f64(values, row);
        if (!(x > 0)) return clink_fail(error, CLINK_DATA, "%g has no logarithm", x);
        clink_set_state_f64(g, i, LOGS, clink_state_f64(g, i, LOGS) + weight * log(x));
        clink_set_state_i64(g, i, COUNT, clink_state_i64(g, i, COUNT) + weight);
    }
    return CLINK_OK;
}

static clink_status geomean_merge(const clink_groups *to, const clink_groups *from, clink_error *error) {
    (void)error;
    for (uint32_t i = 0; i < to->count; i++) {
        clink_set_state_f64(to, i, LOGS, clink_state_f64(to, i, LOGS) + clink_state_f64(from, i, LOGS));
        clink_set_state_i64(to, i, COUNT, clink_state_i64(to, i, COUNT) + clink_state_i64(from, i, COUNT));
    }
    return CLINK_OK;
}

static clink_status geomean_result(const clink_groups *g, clink_writer *out, clink_error *error) {
    (void)error;
    for (uint32_t i = 0; i < g->count; i++) {
        int64_t n = clink_state_i64(g, i, COUNT);
        if (n)
            clink_set_f64(out, i, exp(clink_state_f64(g, i, LOGS) / (double)n));
        else
            clink_set_null(out, i);
    }
    return CLINK_OK;
}

static const clink_aggregate geomean = {.struct_bytes = sizeof(clink_aggregate),
                                        .state_count = 2,
                                        .name = "geomean",
                                        .argument = "DOUBLE",
                                        .returns = "DOUBLE",
                                        .state = geomean_state,
                                        .add = geomean_add,
                                        .merge = geomean_merge,
                                        .result = geomean_result,
                                        .takes_back = 1,
                                        .summary = "The geometric mean."};

/* ---- longest: a text a group ---- */

static const clink_field longest_state[] = {{"text", "VARCHAR"}, {"any", "BOOLEAN"}};

static int is_longer(clink_bytes a, clink_bytes b) { /* of equal length the first in order, whatever comes first */
    if (a.n != b.n) return a.n > b.n;
    return memcmp(a.p, b.p, a.n) < 0;
}

static clink_status longest_take(const clink_groups *g, uint32_t i, clink_bytes text) {
    if (clink_state_bool(g, i, 1) && !is_longer(text, clink_state_text(g, i, 0))) return CLINK_OK;
    clink_set_state_bool(g, i, 1, 1);
    return clink_set_state_text(g, i, 0, text.p, text.n);
}

static clink_status longest_add(const clink_groups *g, const clink_column *values, const uint16_t *at,
                                const int8_t *weights, clink_error *error) {
    (void)weights, (void)error;
    for (uint32_t i = 0; i < g->count; i++) {
        clink_status s = longest_take(g, i, clink_text(values, at ? at[i] : i));
        if (s != CLINK_OK) return s;
    }
    return CLINK_OK;
}

static clink_status longest_merge(const clink_groups *to, const clink_groups *from, clink_error *error) {
    (void)error;
    for (uint32_t i = 0; i < to->count; i++) {
        clink_status s = CLINK_OK;
        if (clink_state_bool(from, i, 1)) s = longest_take(to, i, clink_state_text(from, i, 0));
        if (s != CLINK_OK) return s;
    }
    return CLINK_OK;
}

static clink_status longest_result(const clink_groups *g, clink_writer *out, clink_error *error) {
    (void)error;
    for (uint32_t i = 0; i < g->count; i++) {
        clink_bytes text = clink_state_text(g, i, 0);
        clink_status s = CLINK_OK;
        if (clink_state_bool(g, i, 1))
            s = clink_set_text(out, i, text.p, text.n);
        else
            clink_set_null(out, i);
        if (s != CLINK_OK) return s;
    }
    return CLINK_OK;
}

static const clink_aggregate longest = {.struct_bytes = sizeof(clink_aggregate),
                                        .state_count = 2,
                                        .name = "longest",
                                        .argument = "VARCHAR",
                                        .returns = "VARCHAR",
                                        .state = longest_state,
                                        .add = longest_add,
                                        .merge = longest_merge,
                                        .result = longest_result,
                                        .summary = "The longest text, of equally long ones the first in order."};

/* ---- what is in here ---- */

static const clink_function *const functions[] = {&distance_km_function, &initials_function, NULL};
static const clink_aggregate *const aggregates[] = {&geomean, &longest, NULL};
static const clink_plugin plugin = {.struct_bytes = sizeof(clink_plugin),
                                    .abi = CLINK_PLUGIN_ABI,
                                    .name = "functions",
                                    .version = "1.0",
                                    .functions = functions,
                                    .aggregates = aggregates};
CLINK_PLUGIN(plugin)
