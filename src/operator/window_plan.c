/* From parameters to a window. */
#include <yyjson.h>

#include "operator/params_int.h"
#include "operator/window_int.h"

static ck_status bad(const ck_op_spec *spec, ck_error *err, const char *wanted) {
    return ck_fail(err, CK_INVALID, "%s (%s): parameter \"window\" must have %s", spec->type, spec->uid, wanted);
}

static bool is_timestamp(const ck_type *t) { return t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ; }

static ck_status column(const ck_op_spec *spec, yyjson_val *v, const char *name, uint32_t *out, ck_error *err) {
    int64_t c;
    CK_TRY(ck_params_column(spec, v, name, &c, err));
    if (c < 0) return bad(spec, err, "the columns of its kind");
    *out = (uint32_t)c;
    return CK_OK;
}

static ck_status read_attached(const ck_op_spec *spec, yyjson_val *v, ck_window *w, ck_error *err) {
    const ck_field *fields = spec->inputs[0].schema->fields;
    CK_TRY(column(spec, v, "start", &w->start, err));
    CK_TRY(column(spec, v, "end", &w->end, err));
    w->type = fields[w->end].type;
    return is_timestamp(w->type) && ck_type_eq(w->type, fields[w->start].type)
               ? CK_OK
               : bad(spec, err, "start and end columns of one type of TIMESTAMP");
}

static bool duration(yyjson_val *v, const char *name, int64_t *out) {
    yyjson_val *n = yyjson_obj_get(v, name);
    *out = (int64_t)yyjson_get_uint(n);
    return yyjson_is_uint(n) && *out > 0 && yyjson_get_uint(n) <= (uint64_t)CK_WINDOW_SIZE_MAX;
}

/* "time": a column, or "processing". */
static ck_status read_time(ck_arena *a, const ck_op_spec *spec, yyjson_val *v, ck_window *w, ck_error *err) {
    w->processing = yyjson_equals_str(yyjson_obj_get(v, "time"), "processing");
    if (!w->processing) CK_TRY(column(spec, v, "time", &w->time, err));
    const ck_type *t = w->processing ? NULL : spec->inputs[0].schema->fields[w->time].type;
    w->millis = t && t->kind == CK_TYPE_BIGINT;
    bool fine = w->processing || w->millis || is_timestamp(t);
    w->type = fine ? ck_event_window_type(a, t) : t;
    if (!w->type) return ck_nomem(err, a->mem, sizeof(ck_type));
    if (w->processing && spec->inputs[0].mode != CK_MODE_APPEND) return bad(spec, err, "event time where rows change");
    return fine ? CK_OK : bad(spec, err, "a time column that is a TIMESTAMP or BIGINT");
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

ck_status ck_window_read(ck_arena *a, const ck_op_spec *spec, struct yyjson_val *root, bool attached, ck_window *w,
                         ck_error *err) {
    static const char *const kinds[] = {"tumble", "hop", "cumulate", "attached"};
    yyjson_val *v = yyjson_obj_get(root, "window"), *offset = yyjson_obj_get(v, "offset_us");
    *w = (ck_window){0};
    while ((size_t)w->kind < CK_ARRAY_COUNT(kinds) && !yyjson_equals_str(yyjson_obj_get(v, "kind"), kinds[w->kind]))
        w->kind++;
    if ((size_t)w->kind == CK_ARRAY_COUNT(kinds) || (w->kind == CK_WINDOW_ATTACHED && !attached))
        return bad(spec, err, "a kind that is known here");
    if (w->kind == CK_WINDOW_ATTACHED) return read_attached(spec, v, w, err);
    CK_TRY(read_time(a, spec, v, w, err));
    w->offset_us = yyjson_get_sint(offset);
    if (!duration(v, "size_us", &w->size_us) || !duration(v, "slide_us", &w->slide_us) || !yyjson_is_int(offset))
        return bad(spec, err, "size_us, slide_us above 0 and an offset_us");
    int64_t most = w->size_us > w->slide_us ? w->size_us : w->slide_us;
    if (w->offset_us <= -most || w->offset_us >= most)
        return bad(spec, err, "an offset_us within the size or the slide");
    w->unit_us = common_divisor(w->size_us, w->slide_us);
    if (w->size_us / w->slide_us > CK_WINDOWS_OF_ROW_MAX) return bad(spec, err, "at most 10000 slides in its size");
    if (w->kind == CK_WINDOW_TUMBLE && w->slide_us != w->size_us) return bad(spec, err, "a slide that is the size");
    if (w->kind == CK_WINDOW_CUMULATE && w->size_us % w->slide_us != 0)
        return bad(spec, err, "a size that is a multiple of the step");
    return CK_OK;
}

ck_status ck_window_check_output(const ck_group_plan *p, const ck_type *window, const ck_op_spec *spec, ck_error *err) {
    const ck_schema *s = spec->schema;
    uint32_t keys = p->keys.count, first = keys + CK_WINDOW_COLUMNS;
    bool same = s && s->field_count == first + p->result_count;
    for (uint32_t i = 0; same && i < s->field_count; i++)
        same = ck_type_eq(s->fields[i].type, i < keys    ? p->keys.types[i]
                                             : i < first ? window
                                                         : p->results[i - first].type);
    return same ? CK_OK
                : ck_fail(err, CK_INVALID, "%s (%s): its output is not keys, window and aggregates", spec->type,
                          spec->uid);
}
