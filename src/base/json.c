/* The bridge between yyjson and arenas. */
#include "base/json.h"

#include <yyjson.h>

static void *json_malloc(void *ctx, size_t bytes) { return ck_arena_alloc((ck_arena *)ctx, bytes); }

static void *json_realloc(void *ctx, void *p, size_t old_bytes, size_t bytes) {
    if (bytes <= old_bytes) return p;
    void *q = ck_arena_alloc((ck_arena *)ctx, bytes);
    if (q && p) memcpy(q, p, old_bytes);
    return q;
}

static void json_free(void *ctx, void *p) {
    (void)ctx; /* the arena gives it back */
    (void)p;
}

void ck_json_alc(ck_arena *a, struct yyjson_alc *out) { *out = (yyjson_alc){json_malloc, json_realloc, json_free, a}; }

ck_status ck_json_read(ck_arena *a, ck_view text, struct yyjson_doc **out, ck_error *err) {
    yyjson_alc alc;
    ck_json_alc(a, &alc);
    yyjson_read_err e = {0};
    /* Without YYJSON_READ_INSITU the text is copied first, so the const is kept. */
    *out = yyjson_read_opts((char *)(uintptr_t)text.p, text.n, YYJSON_READ_NOFLAG, &alc, &e);
    if (*out) return CK_OK;
    if (e.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return ck_nomem(err, a->mem, text.n);
    if (text.n == 0) return ck_fail(err, CK_CORRUPT, "the JSON text is empty");
    return ck_fail(err, CK_CORRUPT, "bad JSON at byte %zu: %s", e.pos, e.msg ? e.msg : "not JSON");
}

ck_status ck_json_new(ck_arena *a, struct yyjson_mut_doc **out, ck_error *err) {
    yyjson_alc *alc = CK_ARENA_NEW(a, yyjson_alc);
    if (!alc) return ck_nomem(err, a->mem, sizeof *alc);
    ck_json_alc(a, alc);
    *out = yyjson_mut_doc_new(alc);
    return *out ? CK_OK : ck_nomem(err, a->mem, sizeof **out);
}

ck_status ck_json_write(ck_arena *a, const struct yyjson_mut_doc *doc, ck_view *out, ck_error *err) {
    yyjson_alc alc;
    ck_json_alc(a, &alc);
    yyjson_write_err e = {0};
    size_t n = 0;
    char *p = yyjson_mut_write_opts(doc, YYJSON_WRITE_NOFLAG, &alc, &n, &e);
    if (!p && e.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION) return ck_nomem(err, a->mem, n);
    if (!p) return ck_fail(err, CK_INVALID, "this cannot be written as JSON: %s", e.msg ? e.msg : "unknown reason");
    *out = (ck_view){p, n};
    return CK_OK;
}
