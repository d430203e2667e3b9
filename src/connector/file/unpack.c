#include "connector/file/unpack.h"

enum { PACKED_BYTES = 128 << 10 };

struct ck_unpacker {
    ck_fs *fs;
    ck_file *file;
    ck_inflater *inflater;
    ck_mem mem;
    char *path;
    uint8_t *packed; /* PACKED_BYTES */
    size_t begin, end;
    uint64_t offset; /* of packed + end in the file */
    bool full;       /* the inflater has more for the same bytes */
    bool ended;
};

ck_status ck_unpack_kind(ck_proc *proc, const char *option, const char *path, ck_compression *out, ck_error *err) {
    static const char gzip[] = {'\x1f', '\x8b'}, zstd[] = {'\x28', '\xb5', '\x2f', '\xfd'};
    char first[4];
    size_t got = 0;
    ck_file *f = NULL;
    CK_TRY(ck_compression_of(option, path, out, err));
    if (*out != CK_COMPRESSION_NONE || (option && strcmp(option, "auto") != 0)) return CK_OK;
    CK_TRY(proc->fs->open(proc->fs, path, CK_OPEN_READ, &f, err));
    ck_status s = proc->fs->pread(f, first, sizeof first, 0, &got, err);
    proc->fs->close(f);
    if (s == CK_OK && got >= sizeof gzip && memcmp(first, gzip, sizeof gzip) == 0) *out = CK_COMPRESSION_GZIP;
    if (s == CK_OK && got >= sizeof zstd && memcmp(first, zstd, sizeof zstd) == 0) *out = CK_COMPRESSION_ZSTD;
    return s;
}

void ck_unpacker_free(ck_unpacker *u) {
    if (!u) return;
    ck_inflater_free(u->inflater);
    if (u->file) u->fs->close(u->file);
    if (u->packed) ck_free(u->mem, u->packed, PACKED_BYTES);
    if (u->path) ck_free(u->mem, u->path, strlen(u->path) + 1);
    ck_free(u->mem, u, sizeof *u);
}

ck_status ck_unpacker_open(ck_proc *proc, const char *path, ck_compression c, ck_mem mem, ck_unpacker **out,
                           ck_error *err) {
    size_t n = strlen(path) + 1;
    ck_unpacker *u = ck_alloc_zero(mem, sizeof *u);
    if (!u) return ck_nomem(err, mem, sizeof *u);
    u->fs = proc->fs;
    u->mem = mem;
    u->path = ck_alloc(mem, n);
    u->packed = ck_alloc(mem, PACKED_BYTES);
    ck_status s = u->path && u->packed ? CK_OK : ck_nomem(err, mem, PACKED_BYTES);
    if (u->path) memcpy(u->path, path, n);
    if (s == CK_OK) s = ck_inflater_new(c, mem, &u->inflater, err);
    if (s == CK_OK) s = u->fs->open(u->fs, path, CK_OPEN_READ, &u->file, err);
    if (s == CK_OK)
        *out = u;
    else
        ck_unpacker_free(u);
    return s;
}

/* "FILE, byte N: reading gzip: ..." */
static ck_status failed(const ck_unpacker *u, ck_status s, ck_error *err) {
    uint64_t at = u->offset - (u->end - u->begin);
    ck_error_prefix(err, "%s, byte %llu: ", u->path, (unsigned long long)at);
    if (err) {
        err->fatal = true;
        err->place.byte_offset = (int64_t)at;
    }
    return s;
}

static ck_status refill(ck_unpacker *u, ck_error *err) {
    size_t got;
    CK_TRY(u->fs->pread(u->file, u->packed, PACKED_BYTES, u->offset, &got, err));
    u->begin = 0;
    u->end = got;
    u->offset += got;
    if (got > 0) return CK_OK;
    u->ended = true;
    ck_status s = ck_inflater_end(u->inflater, err);
    return s == CK_OK ? CK_OK : failed(u, s, err);
}

ck_status ck_unpacker_read(ck_unpacker *u, void *out, size_t bytes, size_t *got, ck_error *err) {
    uint8_t *to = out;
    *got = 0;
    while (*got < bytes && !u->ended) {
        size_t taken = 0, made = 0;
        if (u->begin == u->end && !u->full) {
            CK_TRY(refill(u, err));
            continue;
        }
        ck_status s = ck_inflater_run(u->inflater, u->packed + u->begin, u->end - u->begin, &taken, to + *got,
                                      bytes - *got, &made, err);
        u->begin += taken;
        *got += made;
        u->full = s == CK_MORE;
        if (s != CK_OK && s != CK_MORE) return failed(u, s, err);
    }
    return CK_OK;
}
