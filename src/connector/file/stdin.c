/* See stdin.h. */
#include "connector/file/stdin.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 25, HELD_BYTES = 128 << 10 };

struct ck_stdin {
    ck_mem mem;
    ck_inflater *inflater; /* NULL: what comes is given on as it is */
    bool known;            /* whether it is packed */
    bool full;             /* the inflater has more for the same bytes */
    bool ended;            /* nothing more comes */
    char *held;            /* HELD_BYTES: bytes that have come and are not given on yet */
    size_t begin, end;
    uint64_t offset; /* of held + end in what came */
};

ck_status ck_stdin_new(const char *compression, ck_mem mem, ck_stdin **out, ck_error *err) {
    ck_compression c;
    ck_stdin *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->mem = mem;
    ck_status status = ck_compression_of(compression, "", &c, err);
    if (status == CK_OK && c != CK_COMPRESSION_NONE) status = ck_inflater_new(c, mem, &s->inflater, err);
    if (status == CK_OK && !(s->held = ck_alloc(mem, HELD_BYTES))) status = ck_nomem(err, mem, HELD_BYTES);
    s->known = compression && strcmp(compression, "auto") != 0;
    if (status == CK_OK)
        *out = s;
    else
        ck_stdin_free(s);
    return status;
}

void ck_stdin_free(ck_stdin *s) {
    if (!s) return;
    ck_inflater_free(s->inflater);
    if (s->held) ck_free(s->mem, s->held, HELD_BYTES);
    ck_free(s->mem, s, sizeof *s);
}

/* What has come within patience_ms, once; *got 0: nothing, or the end. */
static ck_status come(ck_stdin *s, char *to, size_t bytes, int patience_ms, size_t *got, ck_error *err) {
    *got = 0;
    for (;;) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        int ready = poll(&fd, 1, patience_ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return CK_OK;
        ssize_t n = ready < 0 ? -1 : read(STDIN_FILENO, to, bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0 && errno == EBADF)
            return ck_fail(err, CK_IO, "standard input cannot be read: it is closed, or the script was read from it");
        if (n < 0) return ck_fail_errno(err, errno, "reading standard input");
        *got = (size_t)n;
        s->ended = n == 0;
        return CK_OK;
    }
}

/* Some more into `held`, which is empty or has the first few bytes. */
static ck_status hold(ck_stdin *s, int patience_ms, size_t *got, ck_error *err) {
    if (s->begin == s->end) s->begin = s->end = 0;
    CK_TRY(come(s, s->held + s->end, HELD_BYTES - s->end, patience_ms, got, err));
    s->end += *got;
    s->offset += *got;
    return CK_OK;
}

/* By its first bytes, which are asked for until they can only be one thing; *known false: they have not come yet. */
static ck_status look(ck_stdin *s, bool *known, ck_error *err) {
    static const struct {
        const char *bytes;
        size_t n;
        ck_compression c;
    } magics[] = {{"\x1f\x8b", 2, CK_COMPRESSION_GZIP}, {"\x28\xb5\x2f\xfd", 4, CK_COMPRESSION_ZSTD}};
    for (*known = s->known; !*known;) {
        size_t got;
        CK_TRY(hold(s, WAIT_MS, &got, err));
        if (got == 0 && !s->ended) return CK_OK;
        *known = s->known = true;
        for (size_t i = 0; i < CK_ARRAY_COUNT(magics); i++) {
            size_t n = s->end < magics[i].n ? s->end : magics[i].n;
            if (memcmp(s->held, magics[i].bytes, n) != 0) continue;
            if (n == magics[i].n) return ck_inflater_new(magics[i].c, s->mem, &s->inflater, err);
            if (!s->ended) *known = s->known = false;
        }
    }
    return CK_OK;
}

/* What is held, then what comes. */
static ck_status read_plain(ck_stdin *s, char *out, size_t bytes, size_t *got, ck_error *err) {
    size_t n = s->end - s->begin, more;
    *got = n < bytes ? n : bytes;
    if (*got) memcpy(out, s->held + s->begin, *got);
    s->begin += *got;
    while (*got < bytes && !s->ended) {
        CK_TRY(come(s, out + *got, bytes - *got, *got ? 0 : WAIT_MS, &more, err));
        if (more == 0) return CK_OK;
        *got += more;
    }
    return CK_OK;
}

static ck_status failed(const ck_stdin *s, ck_status status, ck_error *err) {
    uint64_t at = s->offset - (s->end - s->begin);
    ck_error_prefix(err, "standard input, byte %llu: ", (unsigned long long)at);
    if (err) {
        err->fatal = true;
        err->place.byte_offset = (int64_t)at;
    }
    return status;
}

static ck_status read_packed(ck_stdin *s, char *out, size_t bytes, size_t *got, bool *ended, ck_error *err) {
    *got = 0;
    while (*got < bytes) {
        size_t taken = 0, made = 0, more = 1;
        if (s->begin == s->end && !s->full && !s->ended) CK_TRY(hold(s, *got ? 0 : WAIT_MS, &more, err));
        if (more == 0 && !s->ended) return CK_OK;
        if (s->begin == s->end && !s->full) {
            *ended = true;
            ck_status status = ck_inflater_end(s->inflater, err);
            return status == CK_OK ? CK_OK : failed(s, status, err);
        }
        ck_status status = ck_inflater_run(s->inflater, (const uint8_t *)s->held + s->begin, s->end - s->begin, &taken,
                                           (uint8_t *)out + *got, bytes - *got, &made, err);
        s->begin += taken;
        *got += made;
        s->full = status == CK_MORE;
        if (status != CK_OK && status != CK_MORE) return failed(s, status, err);
    }
    return CK_OK;
}

ck_status ck_stdin_read(ck_stdin *s, char *out, size_t bytes, size_t *got, bool *ended, ck_error *err) {
    bool known;
    *got = 0;
    *ended = false;
    CK_TRY(look(s, &known, err));
    if (!known) return CK_OK;
    if (s->inflater) return read_packed(s, out, bytes, got, ended, err);
    CK_TRY(read_plain(s, out, bytes, got, err));
    *ended = s->ended && s->begin == s->end;
    return CK_OK;
}
