/* Reading snapshot files, see snapshot.h. Bytes come from outside: message sizes are held against what the file still
 * has before anything is allocated, nanoarrow verifies the headers' flatbuffers, snapshot_arrow.c every offset of a
 * batch before a row is handed out. Compressed batches and other byte orders are refused by name. */
#include "checkpoint/snapshot_int.h"

#include "checkpoint/snapshot_arrow_int.h"

#include <inttypes.h>
#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>

enum { PIECE_ROWS = 1024, PREFIX_BYTES = 8 };

struct ck_snapshot_reader {
    ck_proc *proc;
    ck_mem mem;
    const char *name;
    /* where bytes come from */
    ck_file *file; /* NULL: `whole` */
    ck_view whole;
    uint64_t size, at;
    /* the present message */
    ck_bytes head, body;
    struct ArrowIpcDecoder decoder;
    bool decoder_made;
    ck_arrow_batch batch;
    uint64_t row;
    bool at_end;
    ck_snapshot_header header;
    ck_snapshot_row rows[PIECE_ROWS];
};

static ck_status corrupt(const ck_snapshot_reader *r, ck_error *err, const char *what) {
    return ck_fail(err, CK_CORRUPT, "%s is damaged at byte %" PRIu64 ": %s", r->name, r->at, what);
}

static ck_status bad_message(const ck_snapshot_reader *r, ck_arrow_problem problem, bool refused, ck_error *err) {
    return refused ? ck_fail(err, CK_REFUSED, "%s: %s", r->name, problem) : corrupt(r, err, problem);
}

/* The flatbuffer of the present message, behind its prefix. */
static const void *message(const ck_snapshot_reader *r) { return r->head.p + PREFIX_BYTES; }

/* ---- bytes ---- */

/* Appends exactly n bytes to out. */
static ck_status take(ck_snapshot_reader *r, size_t n, ck_bytes *out, ck_error *err) {
    if (n > r->size - r->at) return corrupt(r, err, "it ends too early");
    ck_status s = ck_bytes_reserve(out, n);
    if (s != CK_OK) return ck_nomem(err, r->mem, n);
    if (r->file) {
        size_t got = 0;
        CK_TRY(r->file->fs->pread(r->file, out->p + out->n, n, r->at, &got, err));
        if (got < n) return corrupt(r, err, "it ends too early");
    } else if (n) {
        memcpy(out->p + out->n, r->whole.p + r->at, n);
    }
    out->n += n;
    r->at += n;
    return CK_OK;
}

/* The next message's header into r->head, decoded. *end: the end-of-stream mark. */
static ck_status take_head(ck_snapshot_reader *r, bool *end, ck_error *err) {
    struct ArrowError e = {""};
    *end = false;
    ck_bytes_clear(&r->head);
    CK_TRY(take(r, PREFIX_BYTES, &r->head, err));
    uint32_t mark = 0, n = 0;
    memcpy(&mark, r->head.p, 4);
    memcpy(&n, r->head.p + 4, 4);
    if (mark != UINT32_MAX) return corrupt(r, err, "no message begins here");
    if (n == 0) {
        *end = true;
        return r->at == r->size ? CK_OK : corrupt(r, err, "bytes follow the end of the stream");
    }
    if (n > CK_META_BYTES_MAX) return corrupt(r, err, "a message header of over 16 MiB");
    CK_TRY(take(r, n, &r->head, err));
    struct ArrowBufferView v = {{r->head.p}, (int64_t)r->head.n};
    if (ArrowIpcDecoderVerifyHeader(&r->decoder, v, &e) == 0) return CK_OK;
    return corrupt(r, err, e.message[0] ? e.message : "not an Arrow stream");
}

/* ---- schema ---- */

static ck_view metadata(const ck_snapshot_reader *r, const char *key, bool *there) {
    ck_view v = ck_arrow_metadata(message(r), key);
    *there = v.p != NULL;
    return v.p ? v : (ck_view){"", 0};
}

/* Decimal digits only. */
static bool number(ck_view text, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(text.p[i] - '0'), &v))
            return false;
    }
    *out = v;
    return text.n > 0;
}

static ck_status read_versions(ck_snapshot_reader *r, ck_error *err) {
    bool there;
    uint64_t version = 1, groups = CK_FORMAT_1_KEY_GROUPS;
    ck_view text = metadata(r, CK_META_FORMAT_VERSION, &there);
    if (there && (!number(text, &version) || version == 0))
        return ck_fail(err, CK_REFUSED, "%s: " CK_META_FORMAT_VERSION " '%.*s' is not a version", r->name,
                       (int)(text.n < 40 ? text.n : 40), text.p);
    if (version > CK_SNAPSHOT_FORMAT_MAX)
        return ck_fail(err, CK_REFUSED,
                       "%s has format version %" PRIu64 ", this clink knows up to %d: a newer one wrote it", r->name,
                       version, CK_SNAPSHOT_FORMAT_MAX);
    text = metadata(r, CK_META_KEY_GROUPS, &there);
    if (there && (!number(text, &groups) || groups == 0 || groups > CK_KEY_GROUPS_MAX))
        return corrupt(r, err, CK_META_KEY_GROUPS " is not a number of key groups");
    if (version == 1 && groups != CK_FORMAT_1_KEY_GROUPS)
        return ck_fail(err, CK_CORRUPT, "%s: format version 1 has 128 key groups, not %" PRIu64, r->name, groups);
    r->header.format_version = (uint32_t)version;
    r->header.key_groups = (uint32_t)groups;
    return CK_OK;
}

static ck_status copy_text(ck_arena *a, ck_view v, const char **out, ck_error *err) {
    *out = ck_arena_strndup(a, v.p, v.n);
    return *out ? CK_OK : ck_nomem(err, a->mem, v.n);
}

static ck_status read_metadata(ck_snapshot_reader *r, ck_arena *a, ck_error *err) {
    bool there;
    CK_TRY(read_versions(r, err));
    ck_view id = metadata(r, CK_META_CHECKPOINT, &there);
    if (there && !number(id, &r->header.checkpoint)) return corrupt(r, err, CK_META_CHECKPOINT " is not a number");
    CK_TRY(copy_text(a, metadata(r, CK_META_ENGINE, &there), &r->header.engine, err));
    CK_TRY(copy_text(a, metadata(r, CK_META_PARENT, &there), &r->header.parent, err));
    ck_view slots = metadata(r, CK_META_SLOTS, &there);
    r->header.described = there;
    ck_status s = there ? ck_slots_decode(a, slots, &r->header, err) : CK_OK;
    if (s == CK_OK) s = ck_versions_decode(a, metadata(r, CK_META_STATE_VERSIONS, &there), &r->header, err);
    if (s != CK_OK) ck_error_prefix(err, "%s: ", r->name);
    return s;
}

static ck_status read_schema(ck_snapshot_reader *r, ck_arena *a, ck_error *err) {
    bool end, refused;
    CK_TRY(take_head(r, &end, err));
    if (end) return corrupt(r, err, "it does not begin with a schema");
    ck_arrow_problem problem = ck_arrow_schema_check(message(r), &r->header.delta, &refused);
    return problem ? bad_message(r, problem, refused, err) : read_metadata(r, a, err);
}

/* ---- batches ---- */

static ck_status next_batch(ck_snapshot_reader *r, ck_error *err) {
    r->batch.rows = 0, r->row = 0;
    CK_TRY(take_head(r, &r->at_end, err));
    if (r->at_end) return CK_OK;
    int64_t bytes = r->decoder.body_size_bytes;
    if (bytes < 0) return corrupt(r, err, "a batch of a negative size");
    ck_bytes_clear(&r->body);
    CK_TRY(take(r, (size_t)bytes, &r->body, err));
    bool refused;
    ck_arrow_problem problem =
        ck_arrow_batch_check(message(r), r->header.delta, ck_bytes_as_view(&r->body), &r->batch, &refused);
    return problem ? bad_message(r, problem, refused, err) : CK_OK;
}

ck_status ck_snapshot_next(ck_snapshot_reader *r, const ck_snapshot_row **rows, uint32_t *count, ck_error *err) {
    *rows = r->rows, *count = 0;
    while (!r->at_end && r->row == r->batch.rows) CK_TRY(next_batch(r, err));
    if (r->at_end) return CK_OK;
    const ck_arrow_batch *b = &r->batch;
    uint64_t n = b->rows - r->row < PIECE_ROWS ? b->rows - r->row : PIECE_ROWS;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = r->row + i;
        ck_snapshot_row *out = &r->rows[i];
        *out = (ck_snapshot_row){.op_id = ck_arrow_u64(b->op_ids, row),
                                 .key = ck_arrow_bytes(b->key_offsets, b->keys, row),
                                 .value = ck_arrow_bytes(b->value_offsets, b->values, row),
                                 .kind = b->kinds ? b->kinds[row] : 0};
        if (out->kind > 4) return corrupt(r, err, "a row of a kind that is not known");
    }
    r->row += n;
    *count = (uint32_t)n;
    return CK_OK;
}

/* ---- life ---- */

static ck_status reader_start(ck_snapshot_reader *r, ck_arena *a, ck_error *err) {
    ck_bytes_init(&r->head, r->mem, CK_META_BYTES_MAX + PREFIX_BYTES);
    ck_bytes_init(&r->body, r->mem, SIZE_MAX);
    r->header.engine = r->header.parent = "";
    if (ArrowIpcDecoderInit(&r->decoder) != 0) return ck_nomem(err, r->mem, sizeof r->decoder);
    r->decoder_made = true;
    return read_schema(r, a, err);
}

static ck_status reader_new(ck_mem mem, ck_arena *a, const char *name, ck_snapshot_reader **out, ck_error *err) {
    ck_snapshot_reader *r = ck_alloc_zero(mem, sizeof *r);
    if (!r) return ck_nomem(err, mem, sizeof *r);
    r->mem = mem;
    r->name = ck_arena_strdup(a, name);
    *out = r;
    return r->name ? CK_OK : ck_nomem(err, a->mem, 0);
}

static ck_status open_file(ck_snapshot_reader *r, ck_proc *proc, const char *path, ck_error *err) {
    ck_stat st;
    CK_TRY(proc->fs->open(proc->fs, path, CK_OPEN_READ, &r->file, err));
    CK_TRY(proc->fs->fstat(r->file, &st, err));
    r->size = st.bytes;
    return CK_OK;
}

ck_status ck_snapshot_open(ck_proc *proc, ck_mem mem, ck_arena *a, const char *path, ck_snapshot_reader **out,
                           ck_error *err) {
    ck_snapshot_reader *r = NULL;
    ck_status s = reader_new(mem, a, path, &r, err);
    if (s == CK_OK) s = open_file(r, proc, path, err);
    if (s == CK_OK) s = reader_start(r, a, err);
    if (s != CK_OK)
        ck_snapshot_close(r);
    else
        *out = r;
    return s;
}

ck_status ck_snapshot_open_bytes(ck_mem mem, ck_arena *a, const char *name, ck_view bytes, ck_snapshot_reader **out,
                                 ck_error *err) {
    ck_snapshot_reader *r = NULL;
    ck_status s = reader_new(mem, a, name, &r, err);
    if (s == CK_OK) {
        r->whole = bytes, r->size = bytes.n;
        s = reader_start(r, a, err);
    }
    if (s != CK_OK)
        ck_snapshot_close(r);
    else
        *out = r;
    return s;
}

const ck_snapshot_header *ck_snapshot_header_of(const ck_snapshot_reader *r) { return &r->header; }

void ck_snapshot_close(ck_snapshot_reader *r) {
    if (!r) return;
    if (r->decoder_made) ArrowIpcDecoderReset(&r->decoder);
    if (r->file) r->file->fs->close(r->file);
    ck_bytes_destroy(&r->head);
    ck_bytes_destroy(&r->body);
    ck_free(r->mem, r, sizeof *r);
}

/* ---- the whole file against its manifest ---- */

static ck_status verify_bytes(ck_file *f, const ck_manifest_file *m, const char *path, ck_mem mem, ck_error *err) {
    enum { CHUNK = 1 << 20 };
    ck_stat st;
    CK_TRY(f->fs->fstat(f, &st, err));
    if (st.bytes != m->bytes)
        return ck_fail(err, CK_CORRUPT, "%s has %" PRIu64 " bytes, its manifest says %" PRIu64, path, st.bytes,
                       m->bytes);
    uint8_t *chunk = ck_alloc(mem, CHUNK);
    if (!chunk) return ck_nomem(err, mem, CHUNK);
    uint32_t crc = 0;
    ck_status s = CK_OK;
    for (uint64_t at = 0; at < st.bytes && s == CK_OK;) {
        size_t got = 0;
        s = f->fs->pread(f, chunk, CHUNK, at, &got, err);
        if (s == CK_OK && got == 0) s = ck_fail(err, CK_CORRUPT, "%s ends at byte %" PRIu64, path, at);
        crc = ck_crc32c(crc, chunk, got);
        at += got;
    }
    ck_free(mem, chunk, CHUNK);
    if (s == CK_OK && crc != m->crc32c)
        s = ck_fail(err, CK_CORRUPT, "%s is damaged: its checksum is %08x, its manifest says %08x", path, crc,
                    m->crc32c);
    return s;
}

ck_status ck_snapshot_verify(ck_proc *proc, ck_mem mem, const char *dir, const ck_manifest_file *m, ck_error *err) {
    ck_arena a;
    ck_file *f = NULL;
    ck_arena_init(&a, mem, 1 << 20);
    const char *path = ck_arena_printf(&a, "%s/%s", dir, m->path);
    ck_status s = path ? proc->fs->open(proc->fs, path, CK_OPEN_READ, &f, err) : ck_nomem(err, mem, 0);
    if (s == CK_OK) s = verify_bytes(f, m, path, mem, err);
    if (f) proc->fs->close(f);
    ck_arena_destroy(&a);
    return s;
}

/* ---- stored keys ---- */

bool ck_stored_key_parse(ck_view key, uint32_t key_groups, ck_stored_key *out) {
    size_t width = key_groups <= 128 ? 1 : 2;
    if (!ck_stored_key_group(key, key_groups, &out->key_group)) return false;
    out->keyed = out->key_group != ck_operator_marker(key_groups);
    ck_view tail = {key.p + width, key.n - width};
    const char *end = tail.n ? memchr(tail.p, out->keyed ? '|' : '\n', tail.n) : NULL;
    out->rest = (ck_view){tail.p + tail.n, 0};
    out->slot = tail;
    if (end) {
        out->slot.n = (size_t)(end - tail.p);
        out->rest = (ck_view){end + 1, tail.n - out->slot.n - 1};
    } else if (out->keyed) {
        out->slot.p = NULL, out->slot.n = 0;
        out->rest = tail;
    }
    return true;
}
