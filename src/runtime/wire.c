/* See wire.h. */
#include "runtime/wire.h"

#include <errno.h>
#include <nanoarrow/ipc/flatcc_generated.h>
#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>

#include "base/cursor.h"
#include "data/arrow.h"

enum { SPLIT_BYTES = 16 << 20 }; /* batches with more live bytes go in several frames */

/* ---- numbers ---- */

static uint8_t *put_be(uint8_t *p, uint64_t v, unsigned n) {
    for (unsigned i = 0; i < n; i++) p[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
    return p + n;
}

static ck_cursor behind_edge(const ck_frame *f) { return ck_cursor_of(f->p + 4, f->n - 4); }

static ck_status bad(const ck_frame *f, ck_error *err) {
    return ck_fail(err, CK_CORRUPT, "a data frame of kind %u and %zu bytes does not check out", f->kind, f->n);
}

ck_status ck_wire_edge(const ck_frame *f, uint32_t *edge, ck_error *err) {
    ck_cursor c = ck_cursor_of(f->p, f->n);
    if (f->kind < CK_WIRE_SCHEMA || f->kind > CK_WIRE_CLOSE || !ck_cursor_u32be(&c, edge)) return bad(f, err);
    return CK_OK;
}

/* ---- hello ---- */

ck_frame *ck_wire_hello_frame(ck_mem mem, const ck_wire_hello *h) {
    if (h->secret.n > CK_WIRE_SECRET_BYTES_MAX || h->splits.n > CK_WIRE_SPLITS_BYTES_MAX) return NULL;
    ck_frame *f = ck_frame_new(mem, CK_WIRE_HELLO, 30 + CK_WIRE_UUID_BYTES + h->secret.n + h->splits.n);
    if (!f) return NULL;
    uint8_t *p = put_be(f->p, h->version, 4);
    p = put_be(p, h->process, 4);
    p = put_be(p, h->graph_hash, 8);
    p = put_be(p, h->restored, 8);
    memcpy(p, h->uuid, CK_WIRE_UUID_BYTES);
    p += CK_WIRE_UUID_BYTES;
    p = put_be(p, h->secret.n, 2);
    if (h->secret.n) memcpy(p, h->secret.p, h->secret.n);
    p = put_be(p + h->secret.n, h->splits.n, 4);
    if (h->splits.n) memcpy(p, h->splits.p, h->splits.n);
    return f;
}

ck_status ck_wire_read_hello(const ck_frame *f, ck_wire_hello *out, ck_error *err) {
    ck_cursor c = ck_cursor_of(f->p, f->n);
    uint16_t n;
    uint32_t splits;
    ck_view uuid;
    if (f->kind != CK_WIRE_HELLO || !ck_cursor_u32be(&c, &out->version) || !ck_cursor_u32be(&c, &out->process) ||
        !ck_cursor_u64be(&c, &out->graph_hash) || !ck_cursor_u64be(&c, &out->restored) ||
        !ck_cursor_take(&c, CK_WIRE_UUID_BYTES, &uuid) || !ck_cursor_u16be(&c, &n) || n > CK_WIRE_SECRET_BYTES_MAX ||
        !ck_cursor_take(&c, n, &out->secret) || !ck_cursor_u32be(&c, &splits) ||
        !ck_cursor_take(&c, splits, &out->splits) || c.left)
        return bad(f, err);
    memcpy(out->uuid, uuid.p, uuid.n);
    out->uuid[uuid.n] = 0;
    return CK_OK;
}

/* ---- control ---- */

static ck_frame *edge_frame(ck_mem mem, ck_wire_kind kind, uint32_t edge, size_t more) {
    ck_frame *f = ck_frame_new(mem, (uint8_t)kind, 4 + more);
    if (f) put_be(f->p, edge, 4);
    return f;
}

ck_frame *ck_wire_credit_frame(ck_mem mem, uint32_t edge, uint32_t count) {
    ck_frame *f = edge_frame(mem, CK_WIRE_CREDIT, edge, 4);
    if (f) put_be(f->p + 4, count, 4);
    return f;
}
ck_frame *ck_wire_close_frame(ck_mem mem, uint32_t edge) { return edge_frame(mem, CK_WIRE_CLOSE, edge, 0); }

ck_frame *ck_wire_bye_frame(ck_mem mem) { return ck_frame_new(mem, CK_WIRE_BYE, 0); }

ck_status ck_wire_read_credit(const ck_frame *f, uint32_t *count, ck_error *err) {
    ck_cursor c = behind_edge(f);
    return ck_cursor_u32be(&c, count) && c.left == 0 ? CK_OK : bad(f, err);
}

enum { OVERTAKES = 0x80 }; /* beside the barrier kind */

static ck_frame *number_frame(ck_mem mem, ck_wire_kind kind, uint32_t edge, uint64_t number, bool with_byte,
                              uint8_t byte) {
    ck_frame *f = edge_frame(mem, kind, edge, with_byte ? 9 : 8);
    if (!f) return NULL;
    put_be(f->p + 4, number, 8);
    if (with_byte) f->p[12] = byte;
    return f;
}

static ck_frame *barrier_frame(ck_mem mem, uint32_t edge, const ck_event *ev) {
    ck_frame *f = edge_frame(mem, CK_WIRE_BARRIER, edge, 17);
    if (!f) return NULL;
    put_be(f->p + 4, ev->barrier.checkpoint, 8);
    f->p[12] = (uint8_t)((unsigned)ev->barrier.kind | (ev->barrier.overtakes ? OVERTAKES : 0));
    put_be(f->p + 13, ev->barrier.after, 8);
    return f;
}

ck_frame *ck_wire_control_frame(ck_mem mem, uint32_t edge, const ck_event *ev) {
    switch (ev->kind) {
    case CK_EVENT_WATERMARK:
        return number_frame(mem, CK_WIRE_WATERMARK, edge, (uint64_t)ev->watermark.value, true, ev->watermark.idle);
    case CK_EVENT_BARRIER: return barrier_frame(mem, edge, ev);
    case CK_EVENT_CANCEL_BARRIER:
        return number_frame(mem, CK_WIRE_CANCEL, edge, ev->barrier.checkpoint, true, (uint8_t)ev->barrier.kind);
    case CK_EVENT_FLUSH: return number_frame(mem, CK_WIRE_FLUSH, edge, ev->flush_seq, false, 0);
    case CK_EVENT_ROUTE: return number_frame(mem, CK_WIRE_ROUTE, edge, ev->route_epoch, false, 0);
    case CK_EVENT_DRAIN: return edge_frame(mem, CK_WIRE_DRAIN, edge, 0);
    case CK_EVENT_END: return edge_frame(mem, CK_WIRE_END, edge, 0);
    case CK_EVENT_BATCH: break;
    }
    CK_ASSERT(!"batches have a codec");
    return NULL;
}

static bool read_barrier(ck_cursor *c, ck_event *out) {
    uint8_t kind;
    if (!ck_cursor_u64be(c, &out->barrier.checkpoint) || !ck_cursor_u8(c, &kind) ||
        (kind & ~OVERTAKES) > CK_BARRIER_FINAL)
        return false;
    out->barrier.kind = (ck_barrier_kind)(kind & ~OVERTAKES);
    out->barrier.overtakes = kind & OVERTAKES;
    return true;
}

ck_status ck_wire_read_control(const ck_frame *f, ck_event *out, ck_error *err) {
    ck_cursor c = behind_edge(f);
    uint64_t v = 0;
    uint8_t idle = 0;
    bool ok = true;
    switch (f->kind) {
    case CK_WIRE_WATERMARK:
        ok = ck_cursor_u64be(&c, &v) && ck_cursor_u8(&c, &idle) && idle <= 1;
        *out = ck_event_watermark((int64_t)v, idle);
        break;
    case CK_WIRE_BARRIER:
    case CK_WIRE_CANCEL:
        *out = (ck_event){.kind = f->kind == CK_WIRE_BARRIER ? CK_EVENT_BARRIER : CK_EVENT_CANCEL_BARRIER};
        ok = read_barrier(&c, out) && (f->kind == CK_WIRE_CANCEL || (ck_cursor_u64be(&c, &out->barrier.after) &&
                                                                     out->barrier.after < out->barrier.checkpoint));
        break;
    case CK_WIRE_FLUSH:
        ok = ck_cursor_u64be(&c, &v);
        *out = ck_event_flush(v);
        break;
    case CK_WIRE_END: *out = ck_event_end(); break;
    default: ok = false; /* ROUTE and DRAIN: nobody sends them to this version */
    }
    return ok && c.left == 0 ? CK_OK : bad(f, err);
}

/* ---- the codec ---- */

struct ck_wire_codec {
    ck_mem mem;
    ck_arena arena;
    const ck_schema *schema; /* of the edge */
    const ck_schema *sent;   /* with `__weight` when it has weights */
    bool weights;
    struct ArrowSchema arrow;
    struct ArrowArrayView view;
    struct ArrowIpcEncoder encoder;
    struct ArrowIpcDecoder decoder;
    struct ArrowBuffer head, body;
    bool has_encoder, has_decoder, has_schema;
};

static ck_status arrow_failed(ck_wire_codec *c, int rc, const struct ArrowError *e, const char *what, ck_error *err) {
    if (rc == ENOMEM) return ck_nomem(err, c->mem, 0);
    return ck_fail(err, CK_CORRUPT, "%s a batch of the data wire failed: %s", what, e->message);
}

static ck_status extend_schema(ck_wire_codec *c, ck_error *err) {
    uint32_t n = c->schema->field_count;
    ck_schema *s = CK_ARENA_NEW(&c->arena, ck_schema);
    ck_field *fields = ck_arena_array(&c->arena, n + 1, sizeof *fields);
    if (!s || !fields) return ck_nomem(err, c->mem, (n + 1) * sizeof *fields);
    memcpy(fields, c->schema->fields, n * sizeof *fields);
    fields[n] = (ck_field){"__weight", ck_type_simple(CK_TYPE_TINYINT), false};
    *s = (ck_schema){fields, n + (c->weights ? 1 : 0)};
    c->sent = s;
    return CK_OK;
}

static int init_arrow(ck_wire_codec *c, struct ArrowError *e) {
    ArrowBufferInit(&c->head);
    ArrowBufferInit(&c->body);
    NANOARROW_RETURN_NOT_OK(ArrowIpcEncoderInit(&c->encoder));
    c->has_encoder = true;
    NANOARROW_RETURN_NOT_OK(ArrowIpcDecoderInit(&c->decoder));
    c->has_decoder = true;
    NANOARROW_RETURN_NOT_OK(ArrowArrayViewInitFromSchema(&c->view, &c->arrow, e));
    return ArrowIpcDecoderSetSchema(&c->decoder, &c->arrow, e);
}

ck_status ck_wire_codec_new(ck_mem mem, const ck_schema *schema, bool weights, ck_wire_codec **out, ck_error *err) {
    ck_wire_codec *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    c->mem = mem;
    c->schema = schema;
    c->weights = weights;
    ck_arena_init(&c->arena, mem, 64 << 20);
    struct ArrowError e = {""};
    ck_status s = extend_schema(c, err);
    if (s == CK_OK) s = ck_arrow_export_schema(c->sent, CK_ARROW_PLAIN, &c->arrow, err);
    if (s == CK_OK) {
        int rc = init_arrow(c, &e);
        if (rc) s = arrow_failed(c, rc, &e, "preparing", err);
    }
    if (s != CK_OK) {
        ck_wire_codec_free(c);
        return s;
    }
    *out = c;
    return CK_OK;
}

void ck_wire_codec_free(ck_wire_codec *c) {
    if (!c) return;
    if (c->has_encoder) {
        ArrowIpcEncoderReset(&c->encoder);
        ArrowBufferReset(&c->head);
        ArrowBufferReset(&c->body);
    }
    if (c->has_decoder) {
        ArrowIpcDecoderReset(&c->decoder);
        ArrowArrayViewReset(&c->view);
    }
    if (c->arrow.release) c->arrow.release(&c->arrow);
    ck_arena_destroy(&c->arena);
    ck_free(c->mem, c, sizeof *c);
}

/* ---- sending ---- */

static ck_status encode_schema(ck_wire_codec *c, uint32_t edge, ck_frame **out, ck_error *err) {
    struct ArrowError e = {""};
    int rc = ArrowBufferResize(&c->head, 0, 0);
    if (rc == 0) rc = ArrowIpcEncoderEncodeSchema(&c->encoder, &c->arrow, &e);
    if (rc == 0) rc = ArrowIpcEncoderFinalizeBuffer(&c->encoder, 1, &c->head);
    if (rc) return arrow_failed(c, rc, &e, "writing the schema of", err);
    *out = edge_frame(c->mem, CK_WIRE_SCHEMA, edge, (size_t)c->head.size_bytes);
    if (!*out) return ck_nomem(err, c->mem, (size_t)c->head.size_bytes);
    memcpy((*out)->p + 4, c->head.data, (size_t)c->head.size_bytes);
    return CK_OK;
}

ck_status ck_wire_schema_frame(ck_wire_codec *c, uint32_t edge, ck_frame **out, ck_error *err) {
    *out = NULL;
    if (c->has_schema) return CK_OK;
    CK_TRY(encode_schema(c, edge, out, err));
    c->has_schema = true;
    return CK_OK;
}

/* Live rows from..from+n of b with weights as a last column. */
static ck_batch *part_of(ck_wire_codec *c, const ck_batch *b, uint32_t from, uint32_t n) {
    uint16_t rows[CK_BATCH_ROWS_MAX];
    for (uint32_t i = 0; i < n; i++) rows[i] = (uint16_t)ck_batch_row(b, from + i);
    ck_batch *part = ck_batch_new(c->mem, c->sent->field_count, b->row_count, true, false);
    if (!part) return NULL;
    memcpy(part->sel, rows, n * sizeof *rows);
    part->sel_count = n;
    for (uint32_t i = 0; i < b->column_count && i < c->schema->field_count; i++) {
        ck_column *col = b->columns[i] ? ck_column_ref(b->columns[i]) : NULL;
        ck_batch_set_column(part, i, &col);
    }
    if (!c->weights) return part;
    ck_column *w = ck_column_new(c->mem, CK_PHYS_I64, b->row_count);
    if (!w) {
        ck_batch_unref(&part);
        return NULL;
    }
    for (uint32_t r = 0; r < b->row_count; r++) w->i64[r] = ck_batch_weight(b, r);
    ck_batch_set_column(part, c->schema->field_count, &w);
    return part;
}

static int encode_array(ck_wire_codec *c, struct ArrowArray *array, struct ArrowError *e) {
    NANOARROW_RETURN_NOT_OK(ArrowBufferResize(&c->head, 0, 0));
    NANOARROW_RETURN_NOT_OK(ArrowBufferResize(&c->body, 0, 0));
    NANOARROW_RETURN_NOT_OK(ArrowArrayViewSetArray(&c->view, array, e));
    NANOARROW_RETURN_NOT_OK(ArrowIpcEncoderEncodeSimpleRecordBatch(&c->encoder, &c->view, &c->body, e));
    return ArrowIpcEncoderFinalizeBuffer(&c->encoder, 1, &c->head);
}

static ck_status encode_rows(ck_wire_codec *c, const ck_batch *b, uint32_t from, uint32_t n, ck_error *err) {
    struct ArrowArray array = {0};
    struct ArrowError e = {""};
    ck_batch *part = part_of(c, b, from, n);
    if (!part) return ck_nomem(err, c->mem, n * 8);
    ck_status s = ck_arrow_export_batch(part, c->sent, CK_ARROW_PLAIN, &array, err);
    ck_batch_unref(&part);
    CK_TRY(s);
    int rc = encode_array(c, &array, &e);
    array.release(&array);
    return rc ? arrow_failed(c, rc, &e, "writing", err) : CK_OK;
}

static size_t encoded_bytes(const ck_wire_codec *c) {
    return 8 + (size_t)c->head.size_bytes + (size_t)c->body.size_bytes;
}

ck_status ck_wire_batch_frame(ck_wire_codec *c, uint32_t edge, uint32_t backlog, const ck_batch *b, uint32_t from,
                              uint32_t *used, ck_frame **out, ck_error *err) {
    uint32_t n = b->sel_count - from;
    size_t live = n == b->sel_count ? ck_batch_live_bytes(b) : SIZE_MAX;
    if (live > SPLIT_BYTES && n > 64) n = 64; /* a guess that is checked below */
    for (;;) {
        CK_TRY(encode_rows(c, b, from, n, err));
        if (encoded_bytes(c) < CK_FRAME_BYTES_MAX) break;
        if (n == 1) return ck_fail(err, CK_DATA, "a row of %zu bytes is too large for the wire", encoded_bytes(c));
        n /= 2;
    }
    size_t head = (size_t)c->head.size_bytes, body = (size_t)c->body.size_bytes;
    ck_frame *f = edge_frame(c->mem, CK_WIRE_BATCH, edge, 4 + head + body);
    if (!f) return ck_nomem(err, c->mem, head + body);
    put_be(f->p + 4, backlog, 4);
    memcpy(f->p + 8, c->head.data, head);
    if (body) memcpy(f->p + 8 + head, c->body.data, body);
    *used = n;
    *out = f;
    return CK_OK;
}

/* ---- receiving ---- */

/* Both sides write the schema with the same code, so the peer's must be ours byte for byte. */
ck_status ck_wire_read_schema(ck_wire_codec *c, const ck_frame *f, ck_error *err) {
    ck_frame *ours;
    CK_TRY(encode_schema(c, 0, &ours, err));
    bool same = f->n == ours->n && memcmp(f->p + 4, ours->p + 4, f->n - 4) == 0;
    ck_frame_free(&ours);
    if (!same) return ck_fail(err, CK_CORRUPT, "the peer's edge has other columns than ours");
    c->has_schema = true;
    return CK_OK;
}

#define ns(x) FLATBUFFERS_WRAP_NAMESPACE(org_apache_arrow_flatbuf, x)

/* What a verified message may still leave out or say wrongly, and nanoarrow would read through: every length has its
 * bytes in the body, buffers are aligned, and nothing is compressed. */
static bool is_plain_batch(const void *flatbuffer, int64_t body_bytes) {
    ns(Message_table_t) m = ns(Message_as_root(flatbuffer));
    if (!m || ns(Message_header_type(m)) != ns(MessageHeader_RecordBatch)) return false;
    ns(RecordBatch_table_t) r = (ns(RecordBatch_table_t))ns(Message_header(m));
    if (!r || ns(RecordBatch_compression(r))) return false;
    ns(FieldNode_vec_t) nodes = ns(RecordBatch_nodes(r));
    ns(Buffer_vec_t) buffers = ns(RecordBatch_buffers(r));
    int64_t rows = ns(RecordBatch_length(r)), body = ns(Message_bodyLength(m));
    if (!nodes || !buffers || rows < 1 || rows > CK_BATCH_ROWS_MAX || body < 0 || body > body_bytes) return false;
    for (size_t i = 0; i < ns(FieldNode_vec_len(nodes)); i++) {
        ns(FieldNode_struct_t) n = ns(FieldNode_vec_at(nodes, i));
        int64_t length = ns(FieldNode_length(n)), nulls = ns(FieldNode_null_count(n));
        if (length < 0 || length > body * 8 + rows || nulls < 0 || nulls > length) return false;
    }
    for (size_t i = 0; i < ns(Buffer_vec_len(buffers)); i++) {
        ns(Buffer_struct_t) x = ns(Buffer_vec_at(buffers, i));
        int64_t offset = ns(Buffer_offset(x)), length = ns(Buffer_length(x));
        if (offset < 0 || offset % 8 || length < 0 || length > body || offset > body - length) return false;
    }
    return true;
}

static int decode_array(ck_wire_codec *c, struct ArrowBufferView message, struct ArrowArray *out,
                        struct ArrowError *e) {
    ck_cursor prefix = ck_cursor_of(message.data.data, (size_t)message.size_bytes);
    uint32_t mark, head_bytes;
    if (!ck_cursor_u32le(&prefix, &mark) || !ck_cursor_u32le(&prefix, &head_bytes) || mark != 0xffffffff ||
        head_bytes > prefix.left || head_bytes % 8)
        return EINVAL;
    NANOARROW_RETURN_NOT_OK(ArrowIpcDecoderVerifyHeader(&c->decoder, message, e));
    int64_t body_bytes = message.size_bytes - c->decoder.header_size_bytes;
    if (body_bytes < 0 || !is_plain_batch(message.data.as_uint8 + 8, body_bytes)) return EINVAL;
    NANOARROW_RETURN_NOT_OK(ArrowIpcDecoderDecodeHeader(&c->decoder, message, e));
    struct ArrowBufferView body = {.data.as_uint8 = message.data.as_uint8 + c->decoder.header_size_bytes,
                                   .size_bytes = c->decoder.body_size_bytes};
    return ArrowIpcDecoderDecodeArray(&c->decoder, body, -1, out, NANOARROW_VALIDATION_LEVEL_FULL, e);
}

/* The last column becomes weights. */
static ck_status take_weights(ck_wire_codec *c, ck_batch **pb, ck_error *err) {
    ck_batch *b = *pb;
    uint32_t n = b->row_count, columns = c->schema->field_count;
    ck_batch *out = ck_batch_new(c->mem, columns, n, false, true);
    if (!out) return ck_nomem(err, c->mem, n);
    const ck_column *w = b->columns[columns];
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < n && s == CK_OK; i++) {
        if (w->i64[i] != 1 && w->i64[i] != -1) s = ck_fail(err, CK_CORRUPT, "a weight of %lld", (long long)w->i64[i]);
        out->weights[i] = (int8_t)w->i64[i];
    }
    for (uint32_t i = 0; i < columns; i++) {
        ck_column *col = ck_column_ref(b->columns[i]);
        ck_batch_set_column(out, i, &col);
    }
    ck_batch_unref(pb);
    *pb = out;
    return s;
}

ck_status ck_wire_read_batch(ck_wire_codec *c, const ck_frame *f, uint32_t *backlog, ck_batch **out, ck_error *err) {
    ck_cursor at = behind_edge(f);
    struct ArrowError e = {""};
    struct ArrowArray array = {0};
    *out = NULL;
    if (!c->has_schema || !ck_cursor_u32be(&at, backlog)) return bad(f, err);
    struct ArrowBufferView message = {.data.as_uint8 = at.p, .size_bytes = (int64_t)at.left};
    int rc = decode_array(c, message, &array, &e);
    if (rc) return arrow_failed(c, rc, &e, "reading", err);
    ck_status s = array.length > 0 && array.length <= CK_BATCH_ROWS_MAX
                      ? ck_arrow_import_batch(c->mem, &c->arrow, &array, c->sent, 0, array.length, out, err)
                      : ck_fail(err, CK_CORRUPT, "a batch of %lld rows on the wire", (long long)array.length);
    array.release(&array);
    if (s == CK_OK && c->weights) s = take_weights(c, out, err);
    if (s != CK_OK) ck_batch_unref(out);
    return s;
}
