/* See inflight.h: keeping events, and the file. A frame is
 *
 *   0  u8   tag
 *   1  u8   input
 *   2  u32  length of the payload, little-endian
 *   6  u32  CRC-32C of the payload
 *  10  ...  payload
 *
 * behind the 49 bytes of a capture's header (version 3). Tags here: 1 schema (Arrow IPC message, once an input), 2
 * batch (Arrow IPC message and body), 3 watermark (i64 us, u8 idle), 9 channel (u32 number, i64 us, u8 1 idle, 2
 * ended), 8 end (u64 frames before it). */
#include "runtime/inflight.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "checkpoint/snapshot.h"
#include "os/durable.h"
#include "os/fs.h"
#include "runtime/wire.h"

enum {
    TAG_SCHEMA = 1,
    TAG_BATCH = 2,
    TAG_WATERMARK = 3,
    TAG_END = 8,
    TAG_CHANNEL = 9,
    HEADER_BYTES = 49,
    FRAME_BYTES = 10,
    FRAME_BYTES_MAX = CK_FRAME_BYTES_MAX,
    CHANNEL_IDLE = 1,
    CHANNEL_ENDED = 2,
    VERSION = 3
};

/* ---- keeping ---- */

typedef struct kept {
    struct kept *next;
    ck_event event;
} kept;

typedef struct kept_channel {
    ck_inflight_channel is;
    kept *first, **end;
} kept_channel;

struct ck_inflight {
    ck_mem mem;
    uint64_t batches, rows;
    uint32_t channel_count;
    kept_channel channels[];
};

static size_t inflight_bytes(uint32_t channels) { return sizeof(ck_inflight) + channels * sizeof(kept_channel); }

ck_status ck_inflight_new(ck_mem mem, uint32_t channels, ck_inflight **out) {
    ck_inflight *f = ck_alloc_zero(mem, inflight_bytes(channels));
    if (!f) return CK_NOMEM;
    f->mem = mem;
    f->channel_count = channels;
    for (uint32_t i = 0; i < channels; i++) f->channels[i].end = &f->channels[i].first;
    *out = f;
    return CK_OK;
}

void ck_inflight_free(ck_inflight *f) {
    if (!f) return;
    for (uint32_t i = 0; i < f->channel_count; i++)
        for (kept *k = f->channels[i].first, *next; k; k = next) {
            next = k->next;
            if (k->event.kind == CK_EVENT_BATCH) ck_batch_unref(&k->event.batch);
            ck_free(f->mem, k, sizeof *k);
        }
    ck_free(f->mem, f, inflight_bytes(f->channel_count));
}

void ck_inflight_set_channel(ck_inflight *f, const ck_inflight_channel *c) {
    CK_ASSERT(c->number < f->channel_count);
    f->channels[c->number].is = *c;
}

ck_status ck_inflight_add(ck_inflight *f, uint32_t channel, const ck_event *ev) {
    CK_ASSERT(f->channels[channel].is.input < CK_INFLIGHT_INPUTS_MAX);
    kept *k = ck_alloc(f->mem, sizeof *k);
    if (!k) return CK_NOMEM;
    *k = (kept){.event = *ev};
    if (ev->kind == CK_EVENT_BATCH) {
        k->event.batch = ck_batch_ref(ev->batch);
        f->batches++;
        f->rows += ev->batch->sel_count;
    }
    *f->channels[channel].end = k;
    f->channels[channel].end = &k->next;
    return CK_OK;
}

uint64_t ck_inflight_batches(const ck_inflight *f) { return f->batches; }

/* ---- the codecs of the inputs ---- */

static ck_status make_codecs(const ck_inflight_place *p, ck_wire_codec ***out, ck_error *err) {
    ck_wire_codec **codecs = ck_alloc_zero(p->mem, p->input_count * sizeof *codecs);
    if (!codecs) return ck_nomem(err, p->mem, p->input_count * sizeof *codecs);
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < p->input_count && s == CK_OK; i++)
        s = ck_wire_codec_new(p->mem, p->inputs[i].schema, p->inputs[i].weights, &codecs[i], err);
    *out = codecs;
    return s;
}

static void free_codecs(const ck_inflight_place *p, ck_wire_codec **codecs) {
    for (uint32_t i = 0; codecs && i < p->input_count; i++) ck_wire_codec_free(codecs[i]);
    ck_free(p->mem, codecs, p->input_count * sizeof *codecs);
}

/* ---- writing ---- */

typedef struct writer {
    const ck_inflight_place *place;
    ck_wire_codec **codecs;
    ck_tmpfile file;
    uint64_t frames;
    ck_error *err;
} writer;

static ck_status put(writer *w, const ck_bytes *b, ck_status made) {
    if (made != CK_OK) return ck_nomem(w->err, w->place->mem, b->n);
    return ck_tmpfile_write(&w->file, b->p, b->n, w->err);
}

static ck_status put_header(writer *w, const ck_inflight *f, uint64_t checkpoint, uint64_t vertex) {
    ck_bytes b;
    ck_bytes_init(&b, w->place->mem, 4096);
    ck_status s = ck_bytes_append(&b, "CCAP", 4);
    if (s == CK_OK) s = ck_bytes_u32le(&b, VERSION);
    if (s == CK_OK) s = ck_bytes_char(&b, 0);
    const uint64_t numbers[] = {f->rows, f->rows, vertex, checkpoint, 0};
    for (size_t i = 0; i < CK_ARRAY_COUNT(numbers) && s == CK_OK; i++) s = ck_bytes_u64le(&b, numbers[i]);
    s = put(w, &b, s);
    ck_bytes_destroy(&b);
    return s;
}

static ck_status put_frame(writer *w, uint8_t tag, uint32_t input, const void *payload, size_t n) {
    ck_bytes b;
    ck_bytes_init(&b, w->place->mem, 4096);
    ck_status s = ck_bytes_char(&b, (char)tag);
    if (s == CK_OK) s = ck_bytes_char(&b, (char)input);
    if (s == CK_OK) s = ck_bytes_u32le(&b, (uint32_t)n);
    if (s == CK_OK) s = ck_bytes_u32le(&b, ck_crc32c(0, payload, n));
    s = put(w, &b, s);
    ck_bytes_destroy(&b);
    w->frames++;
    return s == CK_OK ? ck_tmpfile_write(&w->file, payload, n, w->err) : s;
}

/* [u32 number] i64 us, u8 flags */
static ck_status put_times(writer *w, uint8_t tag, uint32_t input, const uint32_t *number, int64_t us, uint8_t flags) {
    ck_bytes b;
    ck_bytes_init(&b, w->place->mem, 4096);
    ck_status s = number ? ck_bytes_u32le(&b, *number) : CK_OK;
    if (s == CK_OK) s = ck_bytes_u64le(&b, (uint64_t)us);
    if (s == CK_OK) s = ck_bytes_char(&b, (char)flags);
    s = s == CK_OK ? put_frame(w, tag, input, b.p, b.n) : ck_nomem(w->err, w->place->mem, b.n);
    ck_bytes_destroy(&b);
    return s;
}

/* What stands behind `skip` bytes of a wire frame. */
static ck_status put_wire(writer *w, uint8_t tag, uint32_t input, ck_frame **frame, size_t skip) {
    ck_status s = put_frame(w, tag, input, (*frame)->p + skip, (*frame)->n - skip);
    ck_frame_free(frame);
    return s;
}

static ck_status put_batch(writer *w, uint32_t input, const ck_batch *b) {
    ck_wire_codec *codec = w->codecs[input];
    ck_frame *f;
    CK_TRY(ck_wire_schema_frame(codec, 0, &f, w->err));
    if (f) CK_TRY(put_wire(w, TAG_SCHEMA, input, &f, 4));
    for (uint32_t at = 0, used = 0; at < b->sel_count; at += used) {
        CK_TRY(ck_wire_batch_frame(codec, 0, 0, b, at, &used, &f, w->err));
        CK_TRY(put_wire(w, TAG_BATCH, input, &f, 8));
    }
    return CK_OK;
}

static ck_status put_channel(writer *w, const kept_channel *c) {
    uint8_t flags = (uint8_t)((c->is.idle ? CHANNEL_IDLE : 0) | (c->is.ended ? CHANNEL_ENDED : 0));
    CK_TRY(put_times(w, TAG_CHANNEL, c->is.input, &c->is.number, c->is.watermark, flags));
    for (const kept *k = c->first; k; k = k->next) {
        if (k->event.kind == CK_EVENT_BATCH)
            CK_TRY(put_batch(w, c->is.input, k->event.batch));
        else
            CK_TRY(put_times(w, TAG_WATERMARK, c->is.input, NULL, k->event.watermark.value, k->event.watermark.idle));
    }
    return CK_OK;
}

static ck_status put_all(writer *w, const ck_inflight *f, uint64_t checkpoint, uint64_t vertex) {
    CK_TRY(put_header(w, f, checkpoint, vertex));
    for (uint32_t i = 0; i < f->channel_count; i++)
        if (f->channels[i].is.input < CK_INFLIGHT_INPUTS_MAX) CK_TRY(put_channel(w, &f->channels[i]));
    uint8_t count[8];
    for (unsigned i = 0; i < 8; i++) count[i] = (uint8_t)(w->frames >> (8 * i));
    return put_frame(w, TAG_END, 0, count, sizeof count);
}

static ck_status write_path(writer *w, const ck_inflight *f, uint64_t checkpoint, const char *path,
                            ck_manifest_file *file) {
    const ck_inflight_place *p = w->place;
    CK_TRY(make_codecs(p, &w->codecs, w->err));
    CK_TRY(ck_tmpfile_init(&w->file, p->proc, p->mem, path, w->err));
    CK_TRY(put_all(w, f, checkpoint, file->vertex));
    file->bytes = w->file.bytes;
    file->crc32c = w->file.crc32c;
    return ck_durable_publish(&w->file, w->err);
}

ck_status ck_inflight_write(const ck_inflight_place *p, const ck_inflight *f, uint64_t checkpoint,
                            ck_manifest_file *file, ck_error *err) {
    ck_arena a;
    writer w = {.place = p, .err = err};
    ck_arena_init(&a, p->mem, 1 << 20);
    char *path = ck_arena_printf(&a, "%s/%s", p->dir, file->path), *folder = path ? ck_arena_strdup(&a, path) : NULL;
    ck_status s = folder ? CK_OK : ck_nomem(err, p->mem, 0);
    if (s == CK_OK) {
        *strrchr(folder, '/') = 0;
        s = ck_fs_mkdirs(p->proc, folder, err);
    }
    if (s == CK_OK) s = write_path(&w, f, checkpoint, path, file);
    ck_tmpfile_destroy(&w.file);
    free_codecs(p, w.codecs);
    ck_arena_destroy(&a);
    return s;
}

/* ---- reading ---- */

typedef struct reading {
    const ck_inflight_place *place;
    const ck_inflight_reader *to;
    ck_wire_codec **codecs;
    ck_file *file;
    uint64_t at, bytes, frames;
    bool in_channel, ended;
    uint32_t input; /* of the channel */
    ck_error *err;
} reading;

static ck_status bad(const reading *r, const char *what) {
    return ck_fail(r->err, CK_CORRUPT, "%s at byte %" PRIu64, what, r->at);
}

static ck_status get(reading *r, void *p, size_t n) {
    size_t got = 0;
    if (n > r->bytes - r->at) return bad(r, "it ends too early");
    CK_TRY(r->place->proc->fs->pread(r->file, p, n, r->at, &got, r->err));
    if (got != n) return bad(r, "it ends too early");
    r->at += n;
    return CK_OK;
}

static ck_status get_header(reading *r, uint64_t vertex, uint64_t checkpoint) {
    uint8_t head[HEADER_BYTES], flags;
    uint32_t version;
    uint64_t seen, stored, spec, of;
    CK_TRY(get(r, head, sizeof head));
    ck_cursor c = ck_cursor_of(head, sizeof head);
    ck_view magic;
    if (!ck_cursor_take(&c, 4, &magic) || memcmp(magic.p, "CCAP", 4) != 0 || !ck_cursor_u32le(&c, &version))
        return bad(r, "it is no capture file");
    if (version != VERSION)
        return ck_fail(r->err, CK_REFUSED, "it is of version %" PRIu32 ", this program knows %d", version, VERSION);
    if (!ck_cursor_u8(&c, &flags) || !ck_cursor_u64le(&c, &seen) || !ck_cursor_u64le(&c, &stored) ||
        !ck_cursor_u64le(&c, &spec) || !ck_cursor_u64le(&c, &of))
        return bad(r, "the header is short");
    if (flags || seen != stored || spec != vertex || of != checkpoint) return bad(r, "the header is of something else");
    return CK_OK;
}

static ck_status on_schema(reading *r, uint8_t input, ck_frame *f) {
    return ck_wire_read_schema(r->codecs[input], f, r->err);
}

static ck_status on_batch(reading *r, uint8_t input, ck_frame *f) {
    uint32_t backlog;
    ck_batch *b;
    CK_TRY(ck_wire_read_batch(r->codecs[input], f, &backlog, &b, r->err));
    ck_event ev = ck_event_batch(b);
    return r->to->event(r->to->arg, &ev, r->err);
}

static ck_status on_watermark(reading *r, ck_cursor c) {
    uint64_t us;
    uint8_t idle;
    if (!ck_cursor_u64le(&c, &us) || !ck_cursor_u8(&c, &idle) || idle > 1 || c.left) return bad(r, "a bad watermark");
    ck_event ev = ck_event_watermark((int64_t)us, idle);
    return r->to->event(r->to->arg, &ev, r->err);
}

static ck_status on_channel(reading *r, uint8_t input, ck_cursor c) {
    ck_inflight_channel ch = {.input = input};
    uint64_t us;
    uint8_t flags;
    if (!ck_cursor_u32le(&c, &ch.number) || !ck_cursor_u64le(&c, &us) || !ck_cursor_u8(&c, &flags) || c.left ||
        flags > (CHANNEL_IDLE | CHANNEL_ENDED))
        return bad(r, "a bad channel");
    ch.watermark = (int64_t)us;
    ch.idle = flags & CHANNEL_IDLE;
    ch.ended = flags & CHANNEL_ENDED;
    r->in_channel = true;
    r->input = input;
    return r->to->channel(r->to->arg, &ch, r->err);
}

static ck_status on_end(reading *r, ck_cursor c) {
    uint64_t frames;
    if (!ck_cursor_u64le(&c, &frames) || c.left || frames != r->frames) return bad(r, "a bad end");
    if (r->at != r->bytes) return bad(r, "bytes behind its end");
    r->ended = true;
    return CK_OK;
}

/* f holds the payload behind 8 bytes, which is where the wire has its numbers. */
static ck_status on_frame(reading *r, uint8_t tag, uint8_t input, ck_frame *f) {
    ck_cursor c = ck_cursor_of(f->p + 8, f->n - 8);
    if (tag == TAG_CHANNEL) return on_channel(r, input, c);
    if (tag == TAG_END) return on_end(r, c);
    if (!r->in_channel || input != r->input) return bad(r, "an event outside of its channel");
    switch (tag) {
    case TAG_SCHEMA:
        f->kind = CK_WIRE_SCHEMA;
        memmove(f->p + 4, f->p + 8, f->n - 8);
        f->n -= 4;
        return on_schema(r, input, f);
    case TAG_BATCH: f->kind = CK_WIRE_BATCH; return on_batch(r, input, f);
    case TAG_WATERMARK: return on_watermark(r, c);
    default: return bad(r, "a frame nobody knows");
    }
}

static ck_status get_frame(reading *r) {
    uint8_t head[FRAME_BYTES], tag, input;
    uint32_t n, crc;
    CK_TRY(get(r, head, sizeof head));
    ck_cursor c = ck_cursor_of(head, sizeof head);
    if (!ck_cursor_u8(&c, &tag) || !ck_cursor_u8(&c, &input) || !ck_cursor_u32le(&c, &n) || !ck_cursor_u32le(&c, &crc))
        return bad(r, "a short frame");
    if (input >= r->place->input_count) return bad(r, "an input that is not there");
    if (n > FRAME_BYTES_MAX - 8 || n > r->bytes - r->at) return bad(r, "it ends too early");
    ck_frame *f = ck_frame_new(r->place->mem, CK_WIRE_BATCH, 8 + (size_t)n);
    if (!f) return ck_nomem(r->err, r->place->mem, n);
    memset(f->p, 0, 8);
    ck_status s = get(r, f->p + 8, n);
    if (s == CK_OK && ck_crc32c(0, f->p + 8, n) != crc) s = bad(r, "a frame's checksum does not fit");
    if (s == CK_OK) s = on_frame(r, tag, input, f);
    r->frames++;
    ck_frame_free(&f);
    return s;
}

static ck_status read_open(reading *r, const ck_manifest_file *file, uint64_t checkpoint) {
    CK_TRY(make_codecs(r->place, &r->codecs, r->err));
    CK_TRY(get_header(r, file->vertex, checkpoint));
    while (!r->ended) CK_TRY(get_frame(r));
    return CK_OK;
}

ck_status ck_inflight_read(const ck_inflight_place *p, const ck_manifest_file *file, uint64_t checkpoint,
                           const ck_inflight_reader *reader, ck_error *err) {
    ck_arena a;
    reading r = {.place = p, .to = reader, .bytes = file->bytes, .err = err};
    CK_TRY(ck_snapshot_verify(p->proc, p->mem, p->dir, file, err));
    ck_arena_init(&a, p->mem, 1 << 20);
    const char *path = ck_arena_printf(&a, "%s/%s", p->dir, file->path);
    ck_status s = path ? p->proc->fs->open(p->proc->fs, path, CK_OPEN_READ, &r.file, err) : ck_nomem(err, p->mem, 0);
    if (s == CK_OK) s = read_open(&r, file, checkpoint);
    if (s != CK_OK && path) ck_error_prefix(err, "restoring from %s: ", path);
    if (r.file) p->proc->fs->close(r.file);
    free_codecs(p, r.codecs);
    ck_arena_destroy(&a);
    return s;
}
