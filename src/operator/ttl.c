#include "operator/ttl_int.h"

#include <yyjson.h>

#include "operator/params_int.h"

ck_status ck_op_ttl_read(const ck_op_spec *spec, yyjson_val *root, const char *member, ck_op_ttl *ttl, int64_t *us,
                         ck_error *err) {
    uint64_t n = 0;
    bool has;
    yyjson_val *time = yyjson_obj_get(root, "ttl_time");
    CK_TRY(ck_params_u64(spec, root, member, &n, &has, err));
    if (n > INT64_MAX / 2 || (time && !yyjson_equals_str(time, "event") && !yyjson_equals_str(time, "processing")))
        return ck_fail(err, CK_INVALID, "%s (%s): %s is a time in microseconds, ttl_time is event or processing",
                       spec->type, spec->uid, member);
    *us = (int64_t)n;
    if (n) ttl->on = true;
    ttl->event_time = yyjson_equals_str(time, "event");
    return CK_OK;
}
