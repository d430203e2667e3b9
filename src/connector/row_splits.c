#include "connector/row_splits.h"

#include <yyjson.h>

#include "base/json.h"

static ck_status write_split(ck_split_list *out, ck_arena *a, const ck_row_split *s, int64_t time_us) {
    const char *time = time_us == INT64_MIN ? "" : ck_arena_printf(a, ",\"time\":%lld", (long long)time_us);
    const char *end = s->end == UINT64_MAX ? "" : ck_arena_printf(a, ",\"end\":%llu", (unsigned long long)s->end);
    const char *spec = !time || !end ? NULL
                                     : ck_arena_printf(a, "{\"first\":%llu,\"step\":%llu,\"position\":%llu%s%s}",
                                                       (unsigned long long)s->first, (unsigned long long)s->step,
                                                       (unsigned long long)s->next, end, time);
    return spec ? ck_split_list_add(out, s->id, spec) : CK_NOMEM;
}

static ck_status read_split(ck_arena *a, const ck_split *split, ck_row_split *out, int64_t *time_us, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(split->spec), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *first = yyjson_obj_get(root, "first"),
               *step = yyjson_obj_get(root, "step"), *next = yyjson_obj_get(root, "position"),
               *time = yyjson_obj_get(root, "time"), *end = yyjson_obj_get(root, "end");
    *time_us = time ? yyjson_get_sint(time) : INT64_MIN;
    if ((time && (!yyjson_is_int(time) || !ck_event_time_usable(*time_us))) || !yyjson_is_uint(first) ||
        !yyjson_is_uint(step) || !yyjson_is_uint(next) || (end && !yyjson_is_uint(end)) || yyjson_get_uint(step) == 0)
        return ck_fail(err, CK_CORRUPT, "split %s is none of rows by number: %s", split->id, split->spec);
    *out = (ck_row_split){.first = yyjson_get_uint(first),
                          .step = yyjson_get_uint(step),
                          .next = yyjson_get_uint(next),
                          .end = end ? yyjson_get_uint(end) : UINT64_MAX};
    if (!(out->id = ck_arena_strdup(a, split->id))) return ck_nomem(err, a->mem, strlen(split->id));
    return CK_OK;
}

ck_status ck_row_splits_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    for (uint32_t i = 0; !spec->continues && i < parallelism; i++) {
        char *id = ck_arena_printf(out->arena, "rows-%u-of-%u", i, parallelism);
        const ck_row_split s = {.id = id, .first = i, .step = parallelism, .next = i, .end = UINT64_MAX};
        if (!id || write_split(out, out->arena, &s, INT64_MIN) != CK_OK) return ck_nomem(err, out->arena->mem, 128);
    }
    return CK_OK;
}

ck_status ck_row_splits_rewind(const ck_op_spec *spec, const ck_split *stored, ck_split_list *out, ck_error *err) {
    ck_row_split s;
    int64_t time_us;
    (void)spec;
    CK_TRY(read_split(out->arena, stored, &s, &time_us, err));
    s.end = s.next;
    s.next = s.first;
    if (write_split(out, out->arena, &s, INT64_MIN) != CK_OK) return ck_nomem(err, out->arena->mem, 128);
    return CK_OK;
}

void ck_row_splits_destroy(ck_row_splits *s) {
    if (s->at) ck_free(s->mem, s->at, s->capacity * sizeof *s->at);
    *s = (ck_row_splits){0};
}

/* Where it ends. */
static uint64_t end_of(const ck_row_splits *s, const ck_row_split *r) { return r->end < s->rows ? r->end : s->rows; }

ck_status ck_row_splits_add(ck_row_splits *s, const ck_split *split, ck_op_ctx *ctx) {
    ck_row_split made;
    int64_t time_us;
    CK_TRY(read_split(ctx->arena, split, &made, &time_us, ctx->error));
    if (s->count == s->capacity) {
        uint32_t capacity = s->capacity ? s->capacity * 2 : 4;
        void *p = ck_realloc(s->mem, s->at, s->capacity * sizeof *s->at, capacity * sizeof *s->at);
        if (!p) return ck_nomem(ctx->error, s->mem, capacity * sizeof *s->at);
        s->at = p;
        s->capacity = capacity;
    }
    if (!(made.id = ck_arena_strdup(s->arena, split->id)))
        return ck_nomem(ctx->error, s->arena->mem, strlen(split->id));
    CK_TRY(ck_event_time_add(s->event_time, made.id, time_us, made.next >= end_of(s, &made), &made.clock, ctx->error));
    s->at[s->count++] = made;
    return CK_OK;
}

ck_status ck_row_splits_snapshot(const ck_row_splits *s, ck_split_list *out, ck_op_ctx *ctx) {
    for (uint32_t i = 0; i < s->count; i++) {
        const ck_row_split *r = &s->at[i];
        int64_t time_us = ck_event_time_max(s->event_time, r->clock);
        if (write_split(out, ctx->arena, r, time_us) != CK_OK) return ck_nomem(ctx->error, ctx->mem, 128);
    }
    return CK_OK;
}

bool ck_row_splits_left(const ck_row_splits *s) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->at[i].next < end_of(s, &s->at[i])) return true;
    return false;
}

ck_row_split *ck_row_splits_next(ck_row_splits *s, uint32_t *n) {
    for (uint32_t i = 0; i < s->count; i++) {
        ck_row_split *r = &s->at[(s->turn + i) % s->count];
        uint64_t end = end_of(s, r);
        if (r->next >= end) continue;
        s->turn = (s->turn + i + 1) % s->count;
        uint64_t left = (end - r->next - 1) / r->step + 1;
        if (left < *n) *n = (uint32_t)left;
        return r;
    }
    return NULL;
}

void ck_row_splits_took(ck_row_splits *s, ck_row_split *split, uint32_t n) {
    split->next += n * split->step;
    if (split->next >= end_of(s, split)) ck_event_time_finish(s->event_time, split->clock);
}
