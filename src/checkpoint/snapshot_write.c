/* Writing snapshot files, see snapshot.h. Rows of the mark are gathered into the buffers of one record batch, about
 * 1 MiB (small enough to stay in the cache, far below the format's 8), encoded by nanoarrow and appended to the
 * temporary file. */
#include "checkpoint/snapshot_int.h"

#include <errno.h>
#include <inttypes.h>
#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>
#include <stdio.h>

/* A batch of rows; a smaller one where the job has little memory, since all its subtasks write at once. */
enum { BATCH_BYTES = 1 << 20, BATCH_BYTES_MIN = 64 << 10, BATCH_SHARE = 256, ROW_BYTES = 16 };

typedef struct batch {
    uint8_t *kinds;
    uint64_t *op_ids;
    int32_t *key_ends, *value_ends; /* rows + 1 offsets */
    ck_bytes keys, values;
    uint32_t rows, rows_max;
    size_t bytes_max;
} batch;

typedef struct writer {
    const ck_snapshot_spec *spec;
    ck_error *err;
    ck_tmpfile file;
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct ArrowArrayView view;
    struct ArrowIpcEncoder encoder;
    struct ArrowBuffer head, body; /* of the message being written; nanoarrow's memory, accounted in `reserve` */
    bool encoder_made;
    size_t reserve;
    batch b;
    uint64_t total_rows;
} writer;

/* row_kind stands in front. */
static bool has_kinds(const writer *w) { return w->spec->kind == CK_MARK_DELTA || w->spec->changelog; }

static ck_status arrow_failed(ck_error *err, int rc, const struct ArrowError *e, const char *path) {
    if (rc == ENOMEM) return ck_fail(err, CK_NOMEM, "writing %s: out of memory", path);
    return ck_fail(err, CK_INVALID, "writing %s: %s", path, e->message);
}

/* ---- schema ---- */

static int add_metadata(struct ArrowBuffer *md, const char *key, const char *value) {
    return ArrowMetadataBuilderAppend(md, ArrowCharView(key), ArrowCharView(value));
}

static int fill_metadata(writer *w, ck_state_mark *m, ck_arena *a, struct ArrowBuffer *md, ck_status *s) {
    const ck_marked_slot *slots;
    const char *slots_text = "", *versions = "";
    uint32_t n = ck_state_mark_slots(m, &slots);
    *s = ck_slots_encode(a, slots, n, &slots_text, w->err);
    if (*s == CK_OK) *s = ck_versions_encode(a, ck_state_mark_versions(m), slots, n, &versions, w->err);
    if (*s != CK_OK) return 0;
    const ck_snapshot_spec *spec = w->spec;
    char groups[16], checkpoint[24];
    snprintf(groups, sizeof groups, "%" PRIu32, spec->key_groups);
    snprintf(checkpoint, sizeof checkpoint, "%" PRIu64, spec->checkpoint);
    NANOARROW_RETURN_NOT_OK(
        add_metadata(md, CK_META_FORMAT_VERSION, spec->key_groups == CK_FORMAT_1_KEY_GROUPS ? "1" : "2"));
    NANOARROW_RETURN_NOT_OK(add_metadata(md, CK_META_STATE_VERSIONS, versions));
    NANOARROW_RETURN_NOT_OK(add_metadata(md, CK_META_KEY_GROUPS, groups));
    NANOARROW_RETURN_NOT_OK(add_metadata(md, CK_META_SLOTS, slots_text));
    NANOARROW_RETURN_NOT_OK(add_metadata(md, CK_META_CHECKPOINT, checkpoint));
    NANOARROW_RETURN_NOT_OK(add_metadata(md, CK_META_ENGINE, "clink " CK_VERSION));
    return spec->parent ? add_metadata(md, CK_META_PARENT, spec->parent) : 0;
}

static int fill_schema(writer *w, struct ArrowBuffer *md) {
    bool kinds = has_kinds(w);
    static const struct {
        const char *name;
        enum ArrowType type;
    } columns[] = {{"row_kind", NANOARROW_TYPE_UINT8},
                   {"op_id", NANOARROW_TYPE_UINT64},
                   {"key_bytes", NANOARROW_TYPE_BINARY},
                   {"value_bytes", NANOARROW_TYPE_BINARY}};
    ArrowSchemaInit(&w->schema);
    NANOARROW_RETURN_NOT_OK(ArrowSchemaSetTypeStruct(&w->schema, kinds ? 4 : 3));
    for (int i = 0; i < w->schema.n_children; i++) {
        struct ArrowSchema *c = w->schema.children[i];
        NANOARROW_RETURN_NOT_OK(ArrowSchemaSetType(c, columns[i + !kinds].type));
        NANOARROW_RETURN_NOT_OK(ArrowSchemaSetName(c, columns[i + !kinds].name));
        c->flags &= ~ARROW_FLAG_NULLABLE;
    }
    return ArrowSchemaSetMetadata(&w->schema, (const char *)md->data);
}

static ck_status make_schema(writer *w, ck_state_mark *m) {
    ck_arena a;
    struct ArrowBuffer md;
    struct ArrowError e = {""};
    ck_status s = CK_OK;
    ck_arena_init(&a, w->spec->mem, SIZE_MAX);
    int rc = ArrowMetadataBuilderInit(&md, NULL);
    if (rc == 0) rc = fill_metadata(w, m, &a, &md, &s);
    if (rc == 0 && s == CK_OK) rc = fill_schema(w, &md);
    ArrowBufferReset(&md);
    ck_arena_destroy(&a);
    return s != CK_OK ? s : rc ? arrow_failed(w->err, rc, &e, w->spec->path) : CK_OK;
}

/* ---- messages ---- */

static ck_status put_message(writer *w) {
    CK_TRY(ck_tmpfile_write(&w->file, w->head.data, (size_t)w->head.size_bytes, w->err));
    if (w->body.size_bytes == 0) return CK_OK;
    return ck_tmpfile_write(&w->file, w->body.data, (size_t)w->body.size_bytes, w->err);
}

static ck_status put_schema(writer *w) {
    struct ArrowError e = {""};
    int rc = ArrowIpcEncoderEncodeSchema(&w->encoder, &w->schema, &e);
    if (rc == 0) rc = ArrowIpcEncoderFinalizeBuffer(&w->encoder, 1, &w->head);
    return rc ? arrow_failed(w->err, rc, &e, w->spec->path) : put_message(w);
}

static void borrow(struct ArrowArray *a, int i, const void *p, size_t bytes) {
    struct ArrowBuffer *b = ArrowArrayBuffer(a, i);
    b->data = (uint8_t *)(uintptr_t)p;
    b->size_bytes = b->capacity_bytes = (int64_t)bytes;
}

static void no_free(struct ArrowBufferAllocator *allocator, uint8_t *p, int64_t bytes) {
    (void)allocator, (void)p, (void)bytes; /* the batch owns them */
}

static int make_array(writer *w, struct ArrowError *e) {
    NANOARROW_RETURN_NOT_OK(ArrowArrayInitFromSchema(&w->array, &w->schema, e));
    for (int64_t c = 0; c < w->array.n_children; c++)
        for (int i = 1; i < w->array.children[c]->n_buffers; i++)
            NANOARROW_RETURN_NOT_OK(ArrowBufferSetAllocator(ArrowArrayBuffer(w->array.children[c], i),
                                                            ArrowBufferDeallocator(no_free, NULL)));
    return ArrowArrayViewInitFromSchema(&w->view, &w->schema, e);
}

static int encode_batch(writer *w, struct ArrowError *e) {
    const batch *b = &w->b;
    struct ArrowArray **c = w->array.children;
    int i = 0;
    if (has_kinds(w)) borrow(c[i++], 1, b->kinds, b->rows);
    borrow(c[i++], 1, b->op_ids, b->rows * sizeof *b->op_ids);
    borrow(c[i], 1, b->key_ends, (b->rows + 1u) * sizeof *b->key_ends);
    borrow(c[i++], 2, b->keys.p ? b->keys.p : "", b->keys.n);
    borrow(c[i], 1, b->value_ends, (b->rows + 1u) * sizeof *b->value_ends);
    borrow(c[i++], 2, b->values.p ? b->values.p : "", b->values.n);
    for (int k = 0; k < i; k++) c[k]->length = b->rows, c[k]->null_count = 0;
    w->array.length = b->rows, w->array.null_count = 0;
    NANOARROW_RETURN_NOT_OK(ArrowArrayFinishBuilding(&w->array, NANOARROW_VALIDATION_LEVEL_NONE, e));
    NANOARROW_RETURN_NOT_OK(ArrowArrayViewSetArray(&w->view, &w->array, e));
    NANOARROW_RETURN_NOT_OK(ArrowBufferResize(&w->head, 0, 0));
    NANOARROW_RETURN_NOT_OK(ArrowBufferResize(&w->body, 0, 0));
    NANOARROW_RETURN_NOT_OK(ArrowIpcEncoderEncodeSimpleRecordBatch(&w->encoder, &w->view, &w->body, e));
    return ArrowIpcEncoderFinalizeBuffer(&w->encoder, 1, &w->head);
}

static ck_status put_batch(writer *w) {
    struct ArrowError e = {""};
    if (w->b.rows == 0) return CK_OK;
    int rc = encode_batch(w, &e);
    if (rc) return arrow_failed(w->err, rc, &e, w->spec->path);
    w->total_rows += w->b.rows;
    w->b.rows = 0;
    ck_bytes_clear(&w->b.keys);
    ck_bytes_clear(&w->b.values);
    return put_message(w);
}

/* ---- rows ---- */

static ck_status batch_init(batch *b, ck_mem mem) {
    size_t share = mem.budget->limit / BATCH_SHARE;
    b->bytes_max = share == 0 || share > BATCH_BYTES ? BATCH_BYTES : share < BATCH_BYTES_MIN ? BATCH_BYTES_MIN : share;
    b->rows_max = (uint32_t)(b->bytes_max / ROW_BYTES);
    b->kinds = ck_alloc(mem, b->rows_max);
    b->op_ids = ck_alloc_array(mem, b->rows_max, sizeof *b->op_ids);
    b->key_ends = ck_alloc_array(mem, b->rows_max + 1, sizeof *b->key_ends);
    b->value_ends = ck_alloc_array(mem, b->rows_max + 1, sizeof *b->value_ends);
    ck_bytes_init(&b->keys, mem, INT32_MAX);
    ck_bytes_init(&b->values, mem, INT32_MAX);
    if (!b->kinds || !b->op_ids || !b->key_ends || !b->value_ends) return CK_NOMEM;
    b->key_ends[0] = b->value_ends[0] = 0;
    return CK_OK;
}

static void batch_destroy(batch *b, ck_mem mem) {
    ck_free(mem, b->kinds, b->rows_max);
    ck_free(mem, b->op_ids, b->rows_max * sizeof *b->op_ids);
    ck_free(mem, b->key_ends, ((size_t)b->rows_max + 1) * sizeof *b->key_ends);
    ck_free(mem, b->value_ends, ((size_t)b->rows_max + 1) * sizeof *b->value_ends);
    ck_bytes_destroy(&b->keys);
    ck_bytes_destroy(&b->values);
}

/* All rows of a changelog file that has no changes are of kind 0. */
static inline uint8_t kind_of(const writer *w, const ck_mark_row *r) {
    return w->spec->kind == CK_MARK_BASE && w->spec->changelog ? 0 : r->kind;
}

static ck_status put_row(writer *w, const ck_mark_row *r) {
    batch *b = &w->b;
    size_t bytes = b->keys.n + b->values.n + r->key.n + r->value.n;
    if (b->rows == b->rows_max || (b->rows > 0 && bytes > b->bytes_max)) CK_TRY(put_batch(w));
    ck_status s = ck_bytes_view(&b->keys, r->key);
    if (s == CK_OK) s = ck_bytes_view(&b->values, r->value);
    if (s == CK_FULL) return ck_fail(w->err, CK_FULL, "writing %s: a row of over 2 GiB", w->spec->path);
    if (s != CK_OK) return ck_nomem(w->err, w->spec->mem, r->key.n + r->value.n);
    b->kinds[b->rows] = kind_of(w, r);
    b->op_ids[b->rows] = r->op_id;
    b->rows++;
    b->key_ends[b->rows] = (int32_t)b->keys.n;
    b->value_ends[b->rows] = (int32_t)b->values.n;
    return CK_OK;
}

/* Keys and values are mostly short: no call for those of 8 to 32 bytes. */
static inline void copy_short(char *to, ck_view v) {
    if (v.n >= 16 && v.n <= 32) {
        char first[16], last[16];
        memcpy(first, v.p, 16);
        memcpy(last, v.p + v.n - 16, 16);
        memcpy(to, first, 16);
        memcpy(to + v.n - 16, last, 16);
    } else if (v.n >= 8 && v.n < 16) {
        char first[8], last[8];
        memcpy(first, v.p, 8);
        memcpy(last, v.p + v.n - 8, 8);
        memcpy(to, first, 8);
        memcpy(to + v.n - 8, last, 8);
    } else if (v.n) {
        memcpy(to, v.p, v.n);
    }
}

/* All of a piece that the batch has room for, room taken once. */
static ck_status put_piece(writer *w, const ck_mark_row *rows, uint32_t n, size_t keys, size_t values) {
    batch *b = &w->b;
    ck_status s = ck_bytes_reserve(&b->keys, keys);
    if (s == CK_OK) s = ck_bytes_reserve(&b->values, values);
    if (s != CK_OK) return ck_nomem(w->err, w->spec->mem, keys + values);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = b->rows++;
        b->kinds[at] = kind_of(w, &rows[i]);
        b->op_ids[at] = rows[i].op_id;
        copy_short(b->keys.p + b->keys.n, rows[i].key);
        copy_short(b->values.p + b->values.n, rows[i].value);
        b->keys.n += rows[i].key.n, b->values.n += rows[i].value.n;
        b->key_ends[at + 1] = (int32_t)b->keys.n;
        b->value_ends[at + 1] = (int32_t)b->values.n;
    }
    return CK_OK;
}

static ck_status put_pieces(writer *w, const ck_mark_row *rows, uint32_t n) {
    const batch *b = &w->b;
    size_t keys = 0, values = 0;
    for (uint32_t i = 0; i < n; i++) keys += rows[i].key.n, values += rows[i].value.n;
    if (n <= b->rows_max - b->rows && b->keys.n + b->values.n + keys + values <= b->bytes_max)
        return put_piece(w, rows, n, keys, values);
    for (uint32_t i = 0; i < n; i++) CK_TRY(put_row(w, &rows[i])); /* over the batch's end */
    return CK_OK;
}

static bool is_given_up(const writer *w) {
    return w->spec->give_up && atomic_load_explicit(w->spec->give_up, memory_order_relaxed);
}

static ck_status put_handle(writer *w) {
    const ck_mark_row row = {.key = {"", 0}, .value = ck_view_of(w->spec->handle), .kind = 3};
    return put_row(w, &row);
}

static ck_status put_rows(writer *w, ck_state_mark *m) {
    ck_mark_scan *scan;
    if (w->spec->handle) CK_TRY(put_handle(w));
    CK_TRY(ck_mark_scan_new(m, w->spec->kind, &scan, w->err));
    const ck_mark_row *rows;
    uint32_t n;
    ck_status s;
    do {
        s = is_given_up(w) ? ck_fail(w->err, CK_CANCELLED, "writing %s: given up", w->spec->path)
                           : ck_mark_scan_next(scan, &rows, &n, w->err);
        if (s == CK_OK) s = put_pieces(w, rows, n);
    } while (s == CK_OK && n > 0);
    ck_mark_scan_free(scan);
    return s == CK_OK ? put_batch(w) : s;
}

/* ---- the file ---- */

static ck_status open_file(writer *w) {
    ck_arena a;
    ck_arena_init(&a, w->spec->mem, 1 << 20);
    const char *full = ck_arena_printf(&a, "%s/%s", w->spec->dir, w->spec->path);
    const char *slash = full ? strrchr(full, '/') : NULL;
    const char *folder = slash ? ck_arena_strndup(&a, full, (size_t)(slash - full)) : NULL;
    ck_status s = folder ? ck_fs_mkdirs(w->spec->proc, folder, w->err) : ck_nomem(w->err, w->spec->mem, 0);
    if (s == CK_OK) s = ck_tmpfile_init(&w->file, w->spec->proc, w->spec->mem, full, w->err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status write_all(writer *w, ck_state_mark *m) {
    static const int32_t end_of_stream[2] = {-1, 0};
    struct ArrowError e = {""};
    if (batch_init(&w->b, w->spec->mem) != CK_OK) return ck_nomem(w->err, w->spec->mem, w->b.rows_max * (size_t)17);
    size_t reserve = 2 * w->b.bytes_max;
    if (!ck_mem_take(w->spec->mem, reserve)) return ck_nomem(w->err, w->spec->mem, reserve);
    w->reserve = reserve;
    CK_TRY(make_schema(w, m));
    int rc = ArrowIpcEncoderInit(&w->encoder);
    w->encoder_made = rc == 0;
    if (rc == 0) rc = make_array(w, &e);
    if (rc) return arrow_failed(w->err, rc, &e, w->spec->path);
    CK_TRY(open_file(w));
    CK_TRY(put_schema(w));
    CK_TRY(put_rows(w, m));
    CK_TRY(ck_tmpfile_write(&w->file, end_of_stream, sizeof end_of_stream, w->err));
    return ck_durable_publish(&w->file, w->err);
}

static void writer_destroy(writer *w) {
    ck_tmpfile_destroy(&w->file);
    if (w->encoder_made) ArrowIpcEncoderReset(&w->encoder);
    ArrowBufferReset(&w->head);
    ArrowBufferReset(&w->body);
    ArrowArrayViewReset(&w->view);
    if (w->array.release) ArrowArrayRelease(&w->array);
    if (w->schema.release) ArrowSchemaRelease(&w->schema);
    batch_destroy(&w->b, w->spec->mem);
    if (w->reserve) ck_mem_give(w->spec->mem, w->reserve);
}

ck_status ck_snapshot_write(const ck_snapshot_spec *spec, ck_state_mark *m, ck_snapshot_info *out, ck_error *err) {
    writer w = {.spec = spec, .err = err};
    ArrowBufferInit(&w.head);
    ArrowBufferInit(&w.body);
    ArrowArrayViewInitFromType(&w.view, NANOARROW_TYPE_UNINITIALIZED);
    ck_status s = write_all(&w, m);
    *out = (ck_snapshot_info){.bytes = w.file.bytes, .rows = w.total_rows, .crc32c = w.file.crc32c};
    writer_destroy(&w);
    return s;
}
