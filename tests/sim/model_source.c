/* The model's source. A split's position is all its state; every now and then it idles until a time, or until a job on
 * the I/O executor has "read" something. */
#include "model_int.h"

enum { SPLITS_MAX = 256 };

typedef struct split {
    uint32_t number;
    int64_t at, rows; /* rows INT64_MAX: endless */
} split;

typedef struct source {
    ck_mem mem;
    ck_io_job read;
    ck_op_ctx *ctx;
    struct ck_op_runtime *rt;
    bool reading;
    _Atomic bool read_done;
    int64_t keys, pause_us;
    split splits[SPLITS_MAX];
    uint32_t split_count, turn;
    int64_t watermark;
} source;

static ck_status source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    source *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    s->keys = model_param(spec->params, "keys", 8);
    s->pause_us = model_param(spec->params, "pause_us", 0);
    *self = s;
    return CK_OK;
}

/* Bytes of the file of "more":"..."; 0 without. */
static uint32_t more_splits(const ck_op_spec *spec) {
    static const char name[] = "\"more\":\"";
    const char *at = strstr(spec->params, name), *end = at ? strchr(at + sizeof name - 1, '"') : NULL;
    char path[256];
    ck_stat st;
    if (!end) return 0;
    snprintf(path, sizeof path, "%.*s", (int)(end - at - (ptrdiff_t)sizeof name + 1), at + sizeof name - 1);
    return spec->proc->fs->stat(spec->proc->fs, path, &st, NULL) == CK_OK ? (uint32_t)st.bytes : 0;
}

static ck_status source_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    (void)parallelism;
    int64_t rows = model_param(spec->params, "rows", 0);
    uint32_t count = (uint32_t)model_param(spec->params, "splits", 1) + more_splits(spec);
    for (uint32_t i = 0; i < count; i++) {
        char id[32], text[96];
        snprintf(id, sizeof id, "split-%u", i);
        snprintf(text, sizeof text, "{\"number\":%u,\"at\":0,\"rows\":%lld}", i,
                 rows ? (long long)model_split_rows(i, (uint32_t)rows) : (long long)INT64_MAX);
        if (ck_split_list_add(out, id, text) != CK_OK) return ck_nomem(err, out->arena->mem, sizeof text);
    }
    return CK_OK;
}

static ck_status source_open(void *self, ck_op_ctx *ctx) {
    source *s = self;
    s->ctx = ctx;
    s->rt = ctx->rt;
    return CK_OK;
}

static ck_status source_add_split(void *self, const ck_split *sp, ck_op_ctx *ctx) {
    source *s = self;
    if (s->split_count == SPLITS_MAX) return ck_fail(ctx->error, CK_FULL, "over %d splits", SPLITS_MAX);
    s->splits[s->split_count++] = (split){.number = (uint32_t)model_param(sp->spec, "number", 0),
                                          .at = model_param(sp->spec, "at", 0),
                                          .rows = model_param(sp->spec, "rows", 0)};
    return CK_OK;
}

static void read_run(ck_io_job *j) { (void)j; }
static void read_done(ck_io_job *j) {
    source *s = (source *)((char *)j - offsetof(source, read));
    atomic_store(&s->read_done, true);
    ck_op_wake(s->ctx, s->rt);
}

static split *next_split(source *s) {
    for (uint32_t i = 0; i < s->split_count; i++) {
        split *sp = &s->splits[(s->turn + i) % s->split_count];
        if (sp->at >= sp->rows) continue;
        s->turn = (uint32_t)(sp - s->splits) + 1;
        return sp;
    }
    return NULL;
}

static ck_status emit_some(source *s, split *sp, ck_op_ctx *ctx) {
    int64_t k[CK_BATCH_ROWS_MAX], v[CK_BATCH_ROWS_MAX];
    uint32_t n = 1 + (uint32_t)ck_random_below(ctx->proc, ctx->settings->batch_rows);
    if (n > sp->rows - sp->at) n = (uint32_t)(sp->rows - sp->at);
    for (uint32_t i = 0; i < n; i++) {
        v[i] = (int64_t)sp->number * MODEL_POSITIONS + sp->at + i;
        k[i] = model_key(v[i], s->keys);
    }
    sp->at += n;
    const int64_t *columns[] = {k, v};
    ck_batch *b = model_batch(ctx->mem, columns, 2, n);
    if (!b) return ck_nomem(ctx->error, ctx->mem, n * 16);
    CK_TRY(ck_op_emit(ctx, 0, &b));
    s->watermark += n;
    return n % 2 ? ck_op_emit_watermark(ctx, s->watermark, false) : CK_OK;
}

static ck_status source_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    source *s = self;
    if (s->reading && !atomic_load(&s->read_done)) {
        *result = CK_POLL_IDLE;
        return CK_OK;
    }
    s->reading = false;
    split *sp = next_split(s);
    *result = sp ? CK_POLL_MORE : CK_POLL_END;
    if (!sp) return CK_OK;
    uint64_t mood = ck_random_below(ctx->proc, 16);
    if (mood == 0) {
        *result = CK_POLL_IDLE;
        *until_us = ck_mono_us(ctx->proc) + (int64_t)ck_random_below(ctx->proc, 3000);
    } else if (mood == 1) {
        *result = CK_POLL_IDLE;
        s->reading = true;
        atomic_store(&s->read_done, false);
        s->read = (ck_io_job){read_run, read_done, NULL};
        ck_op_submit_io(ctx, &s->read);
    }
    if (s->pause_us && mood > 1) {
        *result = CK_POLL_IDLE;
        *until_us = ck_mono_us(ctx->proc) + s->pause_us;
    }
    return mood == 2 ? CK_OK : emit_some(s, sp, ctx);
}

static ck_status source_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    source *s = self;
    for (uint32_t i = 0; i < s->split_count; i++) {
        char id[32], text[96];
        snprintf(id, sizeof id, "split-%u", s->splits[i].number);
        snprintf(text, sizeof text, "{\"number\":%u,\"at\":%lld,\"rows\":%lld}", s->splits[i].number,
                 (long long)s->splits[i].at, (long long)s->splits[i].rows);
        if (ck_split_list_add(out, id, text) != CK_OK) return ck_nomem(ctx->error, out->arena->mem, sizeof text);
        out->splits[out->count - 1].order = s->splits[i].number;
    }
    return CK_OK;
}

static void source_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ck_free(((source *)self)->mem, self, sizeof(source));
}

static const ck_source_vtbl source_vtbl = {.struct_bytes = sizeof source_vtbl,
                                           .open = source_open,
                                           .add_split = source_add_split,
                                           .poll = source_poll,
                                           .snapshot = source_snapshot,
                                           .close = source_close};
const ck_op_desc model_source = {
    .type = "source.model", .source = &source_vtbl, .create = source_create, .enumerate = source_enumerate};
