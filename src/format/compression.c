/* See compression.h. gzip through ISA-L, zstd through its own library with our allocator. */
#define ZSTD_STATIC_LINKING_ONLY /* for its allocator hooks */
#include "format/compression.h"

#include <isa-l/igzip_lib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/vector.h"

enum { ALLOCATION_HEADER = 16, PIECE_BYTES_MAX = 1 << 30 /* ISA-L counts in 32 bits */ };

typedef enum gzip_place {
    GZIP_START,  /* nothing yet */
    GZIP_INSIDE, /* of a member */
    GZIP_BETWEEN /* behind one: another, or zeros up to the end */
} gzip_place;

struct ck_inflater {
    ck_mem mem;
    ck_compression kind;
    struct inflate_state *gzip;
    gzip_place place;
    bool zeros; /* padding has begun */
    ZSTD_DCtx *zstd;
    bool zstd_started, zstd_inside; /* anything taken; a frame is open */
};

/* ---- which ---- */

static bool ends_in(const char *path, const char *suffix) {
    size_t n = strlen(path), k = strlen(suffix);
    return n >= k && strcmp(path + n - k, suffix) == 0;
}

ck_status ck_compression_of(const char *option, const char *path, ck_compression *out, ck_error *err) {
    bool by_name = !option || strcmp(option, "auto") == 0;
    *out = CK_COMPRESSION_NONE;
    if (by_name && ends_in(path, ".gz")) *out = CK_COMPRESSION_GZIP;
    if (by_name && (ends_in(path, ".zst") || ends_in(path, ".zstd"))) *out = CK_COMPRESSION_ZSTD;
    if (by_name || strcmp(option, "none") == 0) return CK_OK;
    if (strcmp(option, "gzip") == 0)
        *out = CK_COMPRESSION_GZIP;
    else if (strcmp(option, "zstd") == 0)
        *out = CK_COMPRESSION_ZSTD;
    else
        return ck_fail(err, CK_INVALID, "compression '%s' is not one of auto, none, gzip, zstd", option);
    return CK_OK;
}

/* ---- zstd's memory ---- */

static void *zstd_alloc(void *arg, size_t bytes) {
    const ck_inflater *i = (const ck_inflater *)arg;
    if (bytes > SIZE_MAX - ALLOCATION_HEADER) return NULL;
    char *p = ck_alloc(i->mem, bytes + ALLOCATION_HEADER);
    if (!p) return NULL;
    memcpy(p, &bytes, sizeof bytes);
    return p + ALLOCATION_HEADER;
}

static void zstd_free(void *arg, void *block) {
    const ck_inflater *i = (const ck_inflater *)arg;
    if (!block) return;
    char *p = (char *)block - ALLOCATION_HEADER;
    size_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    ck_free(i->mem, p, bytes + ALLOCATION_HEADER);
}

/* ---- making and unmaking ---- */

static void reset_gzip(struct inflate_state *g) {
    isal_inflate_init(g);
    g->crc_flag = ISAL_GZIP;
}

ck_status ck_inflater_new(ck_compression c, ck_mem mem, ck_inflater **out, ck_error *err) {
    CK_ASSERT(c != CK_COMPRESSION_NONE);
    *out = NULL;
    ck_inflater *i = ck_alloc_zero(mem, sizeof *i);
    if (!i) return ck_nomem(err, mem, sizeof *i);
    i->mem = mem;
    i->kind = c;
    if (c == CK_COMPRESSION_GZIP)
        i->gzip = ck_alloc(mem, sizeof *i->gzip);
    else
        i->zstd = ZSTD_createDCtx_advanced((ZSTD_customMem){zstd_alloc, zstd_free, i});
    if (!i->gzip && !i->zstd) {
        ck_inflater_free(i);
        return ck_nomem(err, mem, sizeof *i->gzip);
    }
    if (i->gzip) reset_gzip(i->gzip);
    *out = i;
    return CK_OK;
}

void ck_inflater_free(ck_inflater *i) {
    if (!i) return;
    if (i->gzip) ck_free(i->mem, i->gzip, sizeof *i->gzip);
    if (i->zstd) ZSTD_freeDCtx(i->zstd);
    ck_free(i->mem, i, sizeof *i);
}

/* ---- gzip ---- */

static ck_status gzip_failed(int code, ck_error *err) {
    const char *why = code == ISAL_INVALID_WRAPPER      ? "this is not gzip"
                      : code == ISAL_UNSUPPORTED_METHOD ? "its method is unknown"
                      : code == ISAL_INCORRECT_CHECKSUM ? "its checksum does not fit"
                      : code == ISAL_NEED_DICT          ? "it needs a dictionary"
                                                        : "its data is damaged";
    return ck_fail(err, CK_CORRUPT, "reading gzip: %s", why);
}

/* Behind a member: zeros are padding (tapes, block devices), anything else must be the next member. */
static ck_status gzip_between(ck_inflater *i, ck_error *err) {
    struct inflate_state *g = i->gzip;
    while (g->avail_in > 0 && *g->next_in == 0) {
        g->next_in++, g->avail_in--;
        i->zeros = true;
    }
    if (g->avail_in == 0) return CK_OK;
    if (i->zeros || *g->next_in != 0x1F) return ck_fail(err, CK_CORRUPT, "reading gzip: other bytes follow its end");
    const uint8_t *in = g->next_in;
    uint32_t in_bytes = g->avail_in, out_bytes = g->avail_out;
    uint8_t *out = g->next_out;
    reset_gzip(g);
    g->next_in = (uint8_t *)(uintptr_t)in; /* it is only read */
    g->avail_in = in_bytes;
    g->next_out = out;
    g->avail_out = out_bytes;
    i->place = GZIP_INSIDE;
    return CK_OK;
}

static ck_status run_gzip(ck_inflater *i, ck_error *err) {
    struct inflate_state *g = i->gzip;
    for (;;) {
        if (i->place == GZIP_BETWEEN) CK_TRY(gzip_between(i, err));
        if (i->place == GZIP_BETWEEN) return CK_OK;
        if (g->avail_in > 0) i->place = GZIP_INSIDE;
        if (i->place == GZIP_START) return CK_OK;
        int code = isal_inflate(g);
        ck_vector_uppers_clear();
        if (code < 0 || code == ISAL_NEED_DICT) return gzip_failed(code, err);
        if (g->block_state != ISAL_BLOCK_FINISH) return g->avail_out == 0 ? CK_MORE : CK_OK;
        CK_ASSERT(g->read_in_length < 8); /* the trailer took the last whole byte it had read ahead */
        i->place = GZIP_BETWEEN;
    }
}

/* ---- zstd ---- */

static ck_status run_zstd(ck_inflater *i, ZSTD_inBuffer *in, ZSTD_outBuffer *out, ck_error *err) {
    for (;;) {
        size_t in_before = in->pos, out_before = out->pos;
        if (in->pos < in->size) i->zstd_started = true;
        size_t code = ZSTD_decompressStream(i->zstd, out, in);
        if (ZSTD_isError(code)) {
            ZSTD_ErrorCode e = ZSTD_getErrorCode(code);
            if (e == ZSTD_error_memory_allocation) return ck_nomem(err, i->mem, 1 << 20);
            ck_status s = e == ZSTD_error_frameParameter_windowTooLarge ? CK_REFUSED : CK_CORRUPT;
            return ck_fail(err, s, "reading zstd: %s", ZSTD_getErrorName(code));
        }
        bool moved = in->pos > in_before || out->pos > out_before;
        if (moved) i->zstd_inside = code != 0;
        if (out->pos == out->size && i->zstd_inside) return CK_MORE;
        if (in->pos == in->size) return CK_OK;
        if (out->pos == out->size) return CK_MORE;
    }
}

/* ---- both ---- */

ck_status ck_inflater_run(ck_inflater *i, const uint8_t *in, size_t in_bytes, size_t *taken, uint8_t *out,
                          size_t out_bytes, size_t *made, ck_error *err) {
    CK_ASSERT(out_bytes > 0);
    if (i->kind == CK_COMPRESSION_ZSTD) {
        ZSTD_inBuffer from = {in, in_bytes, 0};
        ZSTD_outBuffer to = {out, out_bytes, 0};
        ck_status s = run_zstd(i, &from, &to, err);
        *taken = from.pos;
        *made = to.pos;
        return s;
    }
    struct inflate_state *g = i->gzip;
    size_t piece = in_bytes < PIECE_BYTES_MAX ? in_bytes : PIECE_BYTES_MAX;
    size_t room = out_bytes < PIECE_BYTES_MAX ? out_bytes : PIECE_BYTES_MAX;
    g->next_in = (uint8_t *)(uintptr_t)in; /* it is only read */
    g->avail_in = (uint32_t)piece;
    g->next_out = out;
    g->avail_out = (uint32_t)room;
    ck_status s = run_gzip(i, err);
    bool failed = s != CK_OK && s != CK_MORE; /* then the library's counts mean nothing */
    *taken = failed ? 0 : piece - g->avail_in;
    *made = failed ? 0 : room - g->avail_out;
    return s == CK_OK && *taken < in_bytes ? CK_MORE : s;
}

ck_status ck_inflater_end(const ck_inflater *i, ck_error *err) {
    const char *name = i->kind == CK_COMPRESSION_GZIP ? "gzip" : "zstd";
    bool started = i->kind == CK_COMPRESSION_GZIP ? i->place != GZIP_START : i->zstd_started;
    bool inside = i->kind == CK_COMPRESSION_GZIP ? i->place == GZIP_INSIDE : i->zstd_inside;
    if (!started) return ck_fail(err, CK_CORRUPT, "reading %s: the file is empty", name);
    if (inside) return ck_fail(err, CK_CORRUPT, "reading %s: the file ends in the middle", name);
    return CK_OK;
}
