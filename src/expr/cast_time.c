/* Casts among DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ. Fewer digits of a second cut, they do not round, as in Flink.
 * Between TIMESTAMP and TIMESTAMP_LTZ stands the session's time zone. */
#include "expr/cast_int.h"
#include "expr/time_int.h"

ck_status ck_prepare_zone(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    (void)call;
    if (!ev->zone) CK_TRY(ck_timezone_load(ev->proc, &ev->arena, ev->timezone, &ev->zone, err));
    *state = (void *)(uintptr_t)ev->zone;
    return CK_OK;
}

typedef enum time_cast {
    DATE_TIMESTAMP,
    DATE_LTZ,
    TIMESTAMP_DATE,
    TIMESTAMP_TIME,
    TIMESTAMP_LTZ,
    LTZ_DATE,
    LTZ_TIME,
    LTZ_TIMESTAMP,
    PRECISION,
} time_cast;

static int64_t cut(int64_t us, int precision) {
    static const int64_t unit[7] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    return us - ck_floor_mod(us, unit[precision < 0 || precision > 6 ? 6 : precision]);
}

static ck_status kernel_time(CK_KERNEL_ARGS) {
    const int64_t *v = args[0].col->i64;
    time_cast kind = (time_cast)call->impl->op;
    ck_zone_cache zone = ck_zone_cache_of(ev->zone);
    int precision = call->type->kind == CK_TYPE_DATE ? 6 : call->type->precision;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    int64_t *r = out->col->i64;
    for (CK_EACH_ROW(k, i, rows)) {
        int64_t t = v[i];
        switch (kind) {
        case DATE_TIMESTAMP: t *= CK_DAY_US; break;
        case DATE_LTZ: t = ck_timezone_utc(ev->zone, t * CK_DAY_US); break;
        case TIMESTAMP_LTZ: t = ck_timezone_utc(ev->zone, t); break;
        case LTZ_DATE:
        case LTZ_TIME:
        case LTZ_TIMESTAMP: t = ck_zone_local(&zone, t); break;
        default: break;
        }
        if (kind == TIMESTAMP_DATE || kind == LTZ_DATE) t = ck_floor_div(t, CK_DAY_US);
        if (kind == TIMESTAMP_TIME || kind == LTZ_TIME) t = ck_floor_mod(t, CK_DAY_US);
        r[i] = precision < 6 ? cut(t, precision) : t;
    }
    return CK_OK;
}

#define PLAIN(NAME, OP) NAME = {.kernel = kernel_time, .op = OP}
#define ZONED(NAME, OP) NAME = {.kernel = kernel_time, .flags = CK_FN_ZONED, .op = OP, .prepare = ck_prepare_zone}
const ck_impl PLAIN(ck_cast_date_timestamp, DATE_TIMESTAMP), PLAIN(ck_cast_timestamp_date, TIMESTAMP_DATE),
    PLAIN(ck_cast_timestamp_time, TIMESTAMP_TIME), PLAIN(ck_cast_precision, PRECISION),
    ZONED(ck_cast_date_ltz, DATE_LTZ), ZONED(ck_cast_timestamp_ltz, TIMESTAMP_LTZ), ZONED(ck_cast_ltz_date, LTZ_DATE),
    ZONED(ck_cast_ltz_time, LTZ_TIME), ZONED(ck_cast_ltz_timestamp, LTZ_TIMESTAMP);
