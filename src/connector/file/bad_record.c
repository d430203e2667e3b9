/* A record that does not fit its table, as a sentence with its place. The line is not known while reading at an offset,
 * so an I/O job counts it, once, when the job is about to fail anyway. */
#include "connector/file/file_int.h"

#include <stdio.h>

#include "connector/bad_hint.h"

/* Copied text is cut at a character's boundary. */
static void copy_text(char *to, size_t room, const char *from, size_t n) {
    size_t keep = n < room - 1 ? n : room - 1;
    while (keep > 0 && keep < n && ((unsigned char)from[keep] & 0xC0) == 0x80) keep--;
    memcpy(to, from, keep);
    to[keep] = 0;
}

void ck_bad_place_set(ck_bad_place *p, ck_op_ctx *ctx, const ck_file_split *split, const ck_file_options *o,
                      const ck_bad_record *bad) {
    ck_bad_hint of = {o->format, !o->header, o->on_error_is_given};
    p->hint = ck_bad_hint_for(&of, bad);
    p->ctx = ctx;
    p->path = split->path;
    p->compression = split->compression;
    p->offset = bad->offset;
    p->column = bad->column;
    copy_text(p->field, sizeof p->field, bad->field ? bad->field : "", bad->field ? strlen(bad->field) : 0);
    copy_text(p->reason, sizeof p->reason, bad->reason, strlen(bad->reason));
    ck_show_raw(p->raw, sizeof p->raw, bad->raw);
}

/* The next bytes of the file, plain or compressed; fewer than asked for only at its end. */
typedef struct bytes_of {
    ck_fs *fs;
    ck_file *plain;
    ck_unpacker *packed;
    uint64_t at;
} bytes_of;

static ck_status open_bytes(const ck_bad_place *p, ck_mem mem, bytes_of *b) {
    *b = (bytes_of){.fs = p->ctx->proc->fs};
    if (p->compression == CK_COMPRESSION_NONE) return b->fs->open(b->fs, p->path, CK_OPEN_READ, &b->plain, NULL);
    return ck_unpacker_open(p->ctx->proc, p->path, p->compression, mem, &b->packed, NULL);
}

static ck_status read_bytes(bytes_of *b, char *to, size_t n, size_t *got, ck_error *err) {
    ck_status s =
        b->packed ? ck_unpacker_read(b->packed, to, n, got, err) : b->fs->pread(b->plain, to, n, b->at, got, err);
    b->at += s == CK_OK ? *got : 0;
    return s;
}

static void count_run(ck_io_job *j) {
    ck_bad_place *p = (ck_bad_place *)j;
    ck_mem mem = ck_mem_as(p->ctx->mem, CK_MEM_DECODE);
    bytes_of b = {0};
    char *buf = ck_alloc(mem, CK_READ_BYTES);
    uint64_t lines = 1;
    bool ok = buf && open_bytes(p, mem, &b) == CK_OK;
    while (ok && b.at < p->offset) {
        size_t want = p->offset - b.at < CK_READ_BYTES ? (size_t)(p->offset - b.at) : CK_READ_BYTES, got = 0;
        ok = read_bytes(&b, buf, want, &got, NULL) == CK_OK && got > 0;
        for (size_t i = 0; i < got; i++) lines += buf[i] == '\n';
    }
    p->line = ok ? lines : 0;
    /* A damaged file often gives strange bytes first, and is found out by the checksum at its end. */
    p->damaged = CK_OK;
    p->damage = CK_ERROR_INIT;
    for (size_t got = 1; b.packed && p->damaged == CK_OK && got > 0;)
        p->damaged = read_bytes(&b, buf, CK_READ_BYTES, &got, &p->damage);
    if (b.plain) b.fs->close(b.plain);
    ck_unpacker_free(b.packed);
    if (buf) ck_free(mem, buf, CK_READ_BYTES);
}

static void count_done(ck_io_job *j) {
    ck_bad_place *p = (ck_bad_place *)j;
    ck_op_ctx *ctx = p->ctx;
    atomic_store_explicit(&p->counted, true, memory_order_release);
    ck_op_wake(ctx, ctx->rt);
}

ck_status ck_bad_place_report(ck_bad_place *p, ck_error *err) {
    bool is_stdin = strcmp(p->path, CK_STDIN_PATH) == 0;
    if (!p->counting && !is_stdin) {
        p->counting = true;
        p->job = (ck_io_job){count_run, count_done, NULL};
        ck_op_submit_io(p->ctx, &p->job);
    }
    if (!is_stdin && !atomic_load_explicit(&p->counted, memory_order_acquire)) return CK_AGAIN;
    if (p->damaged == CK_CORRUPT) {
        if (err) *err = p->damage;
        return CK_CORRUPT;
    }
    const char *name = is_stdin ? "standard input" : p->path;
    char line[32] = "", column[32] = "", field[160] = "";
    if (p->line) snprintf(line, sizeof line, " line %llu", (unsigned long long)p->line);
    if (p->column) snprintf(column, sizeof column, " column %lld", (long long)p->column);
    if (p->field[0]) snprintf(field, sizeof field, " (%s)", p->field);
    ck_fail(err, CK_DATA, "%s%s%s: %s%s%s; the record at byte %llu is: %s", name, line, column, p->reason, field,
            p->hint, (unsigned long long)p->offset, p->raw);
    if (err) {
        err->fatal = true;
        snprintf(err->place.object, sizeof err->place.object, "%s", name);
        err->place.line = (int64_t)p->line;
        err->place.column = p->column;
        err->place.byte_offset = (int64_t)p->offset;
    }
    return CK_DATA;
}
