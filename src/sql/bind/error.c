/* Errors and warnings of the binder. */
#include <stdio.h>

#include "sql/bind/bind_int.h"

static ck_status fail(ck_binder *b, ck_pos at, ck_status status, const char *fmt, va_list ap) {
    ck_vfail(b->err, status, fmt, ap);
    return ck_source_place(b->source, at, status, b->err);
}

ck_status ck_bind_fail(ck_binder *b, ck_pos at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fail(b, at, CK_INVALID, fmt, ap);
    va_end(ap);
    return CK_INVALID;
}

ck_status ck_bind_refuse(ck_binder *b, ck_pos at, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fail(b, at, CK_REFUSED, fmt, ap);
    va_end(ap);
    return CK_REFUSED;
}

const char *ck_bind_near(ck_binder *b, const ck_suggest *near) {
    if (!near->best.n) return "";
    const char *text = ck_arena_printf(b->plan.arena, "; did you mean \"%.*s\"?", ck_cut(near->best), near->best.p);
    return text ? text : "";
}

ck_status ck_bind_at(ck_binder *b, ck_pos at, ck_status s) {
    return s == CK_OK ? s : ck_source_place(b->source, at, s, b->err);
}

ck_status ck_bind_nomem(ck_binder *b) { return ck_plan_nomem(&b->plan); }

ck_status ck_bind_warn(ck_binder *b, const char *fmt, ...) {
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < b->warning_count; i++)
        if (strcmp(b->warnings[i], text) == 0) return CK_OK;
    if (b->warning_count == b->warning_capacity) {
        uint32_t capacity = b->warning_capacity ? b->warning_capacity * 2 : 8;
        const char **more = CK_BIND_ARRAY(b, capacity, const char *);
        if (!more) return CK_NOMEM;
        if (b->warning_count) memcpy(more, b->warnings, b->warning_count * sizeof *more);
        b->warnings = more, b->warning_capacity = capacity;
    }
    const char *copy = ck_arena_strdup(b->plan.arena, text);
    if (!copy) return ck_bind_nomem(b);
    b->warnings[b->warning_count++] = copy;
    return CK_OK;
}
