/* See message.h: one way in for both formats, and the decoder's loop over frames. */
#include "format/message_int.h"

bool ck_message_format_of(const char *name, ck_message_format *out) {
    bool avro = strcmp(name, "avro") == 0;
    *out = avro ? CK_MESSAGE_AVRO : CK_MESSAGE_PROTOBUF;
    return avro || strcmp(name, "protobuf") == 0;
}

/* ---- schemas ---- */

static ck_status parse_avro(ck_arena *a, const ck_message_text *texts, uint32_t count, const ck_avro **out,
                            ck_error *err) {
    ck_map names;
    ck_map_init(&names, a, false);
    for (uint32_t i = 0; i < count; i++) CK_TRY(ck_avro_parse(a, &names, texts[i].text, out, err));
    return CK_OK;
}

ck_status ck_message_parse(ck_arena *a, ck_message_format format, const ck_message_text *texts, uint32_t count,
                           const ck_message_schema **out, ck_error *err) {
    ck_message_schema *s = CK_ARENA_NEW(a, ck_message_schema);
    if (!s) return ck_nomem(err, a->mem, sizeof *s);
    s->format = format;
    *out = s;
    return format == CK_MESSAGE_AVRO ? parse_avro(a, texts, count, &s->avro, err)
                                     : ck_proto_parse(a, texts, count, &s->proto, err);
}

static bool is_named(const ck_proto *m, const char *name) {
    size_t n = strlen(m->name), k = strlen(name);
    return n >= k && strcmp(m->name + n - k, name) == 0 && (n == k || m->name[n - k - 1] == '.');
}

static bool find(ck_proto *const *list, uint32_t count, const char *name, ck_message_path *path) {
    if (path->count == CK_MESSAGE_DEPTH_MAX) return false;
    uint32_t at = path->count++;
    for (uint32_t i = 0; i < count; i++) {
        path->index[at] = i;
        if (is_named(list[i], name)) return true;
        if (find(list[i]->nested, list[i]->nested_count, name, path)) return true;
    }
    path->count = at;
    return false;
}

ck_status ck_message_find(const ck_message_schema *s, const char *name, ck_message_path *out, ck_error *err) {
    *out = (ck_message_path){0};
    if (s->format == CK_MESSAGE_AVRO) return CK_OK;
    if (name)
        return find(s->proto.messages, s->proto.message_count, name, out)
                   ? CK_OK
                   : ck_fail(err, CK_NOTFOUND, "the schema has no message %.200s", name);
    out->count = 1;
    return s->proto.message_count ? CK_OK : ck_fail(err, CK_NOTFOUND, "the schema has no message");
}

static ck_status message_at(const ck_message_schema *s, const ck_message_path *path, const ck_proto **out,
                            ck_error *err) {
    ck_proto *const *list = s->proto.messages;
    uint32_t count = s->proto.message_count;
    for (uint32_t i = 0; i < path->count; i++) {
        if (path->index[i] >= count) return ck_fail(err, CK_NOTFOUND, "the schema has no message %u", path->index[i]);
        *out = list[path->index[i]];
        list = (*out)->nested, count = (*out)->nested_count;
    }
    return path->count ? CK_OK : ck_fail(err, CK_NOTFOUND, "the record names no message of its schema");
}

/* ---- plans ---- */

ck_status ck_message_missing(ck_arena *a, const ck_field *fields, uint32_t count, const bool *seen, bool lenient,
                             const char *of, const uint32_t **missing, uint32_t *missing_count, ck_error *err) {
    uint32_t *list = ck_arena_array(a, count + 1, sizeof *list);
    if (!list) return ck_nomem(err, a->mem, count * sizeof *list);
    *missing = list;
    *missing_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (seen[i]) continue;
        if (!lenient || !fields[i].nullable)
            return ck_fail(err, CK_DATA, "%s \"%s%s%.200s\" of the table is %s, and the schema has no such field",
                           of ? "field" : "column", of ? of : "", of ? "." : "", fields[i].name,
                           ck_type_name(a, fields[i].type));
        list[(*missing_count)++] = i;
    }
    return CK_OK;
}

ck_status ck_message_reader_new(ck_arena *a, const ck_message_schema *s, const ck_message_path *path,
                                const ck_schema *table, bool lenient, const ck_message_reader **out, ck_error *err) {
    ck_message_reader *r = CK_ARENA_NEW(a, ck_message_reader);
    const ck_proto *m = NULL;
    if (!r) return ck_nomem(err, a->mem, sizeof *r);
    r->format = s->format;
    *out = r;
    if (s->format == CK_MESSAGE_AVRO) return ck_avro_read_plan(a, s->avro, table, lenient, &r->avro, err);
    CK_TRY(message_at(s, path, &m, err));
    return ck_proto_plan_new(a, m, table, false, lenient, &r->proto, err);
}

ck_status ck_message_writer_new(ck_arena *a, const ck_message_schema *s, const ck_message_path *path,
                                const ck_schema *table, const ck_message_writer **out, ck_error *err) {
    ck_message_writer *w = CK_ARENA_NEW(a, ck_message_writer);
    const ck_proto *m = NULL;
    if (!w) return ck_nomem(err, a->mem, sizeof *w);
    w->format = s->format;
    *out = w;
    if (s->format == CK_MESSAGE_AVRO) return ck_avro_write_plan(a, s->avro, table, &w->avro, err);
    CK_TRY(message_at(s, path, &m, err));
    return ck_proto_plan_new(a, m, table, true, false, &w->proto, err);
}

ck_status ck_message_write(const ck_message_writer *w, const ck_batch *b, uint32_t row, ck_bytes *out, ck_error *err) {
    size_t before = out->n;
    ck_status s = w->format == CK_MESSAGE_AVRO ? ck_avro_write_row(w->avro, b, row, out, err)
                                               : ck_proto_write_row(w->proto, b, row, out, err);
    if (s == CK_OK) return CK_OK;
    out->n = before;
    return s == CK_DATA ? s : CK_NOMEM;
}

ck_status ck_message_schema_of(ck_arena *a, ck_message_format format, const char *name, const ck_schema *table,
                               const char **out, ck_error *err) {
    return format == CK_MESSAGE_AVRO ? ck_avro_schema_of(a, name, table, out, err)
                                     : ck_proto_schema_of(a, name, table, out, err);
}

ck_status ck_varint_write(ck_bytes *out, uint64_t v) {
    CK_TRY(ck_bytes_reserve(out, 10));
    char *p = out->p + out->n;
    for (; v > 127; v >>= 7) *p++ = (char)(v | 128);
    *p++ = (char)v;
    out->n = (size_t)(p - out->p);
    return CK_OK;
}

/* ---- decoders ---- */

ck_status ck_messages_new(ck_decoder *d, const ck_decoder_spec *spec, ck_message_format format, ck_cpu cpu) {
    ck_messages *m = d->messages = ck_alloc_zero(d->mem, sizeof *m);
    if (!m) return CK_NOMEM;
    m->mem = d->mem;
    m->format = format;
    m->utf8 = ck_utf8_valid_for(cpu);
    m->rows = &d->rows;
    m->why = &d->why;
    m->column_count = spec->schema->field_count;
    m->target_of = ck_alloc_array(d->mem, m->column_count, sizeof *m->target_of);
    if (!m->target_of) return CK_NOMEM;
    for (uint32_t i = 0; i < m->column_count; i++) m->target_of[i] = -1;
    for (uint32_t i = 0; i < d->rows.target_count; i++) m->target_of[d->rows.targets[i].index] = (int32_t)i;
    return CK_OK;
}

void ck_messages_free(ck_decoder *d) {
    ck_messages *m = d->messages;
    if (!m) return;
    ck_free(m->mem, m->entries, m->capacity * sizeof *m->entries);
    if (m->target_of) ck_free(m->mem, m->target_of, m->column_count * sizeof *m->target_of);
    ck_free(m->mem, m->found, m->found_capacity * sizeof *m->found);
    ck_free(m->mem, m->heads, m->head_capacity * sizeof *m->heads);
    ck_free(m->mem, m, sizeof *m);
    d->messages = NULL;
}

ck_status ck_decoder_add_reader(ck_decoder *d, const ck_message_reader *r, const char *reason, uint32_t *number,
                                ck_error *err) {
    ck_messages *m = d->messages;
    CK_ASSERT(m && (!r || r->format == m->format));
    if (m->count == m->capacity) {
        uint32_t want = m->capacity ? m->capacity * 2 : 4;
        void *p = ck_realloc(m->mem, m->entries, m->capacity * sizeof *m->entries, want * sizeof *m->entries);
        if (!p) return ck_nomem(err, m->mem, want * sizeof *m->entries);
        m->entries = p;
        m->capacity = want;
    }
    *number = m->count;
    m->entries[m->count++] = (ck_message_entry){r, reason};
    return CK_OK;
}

/* The message in m->p, m->end as one more row. */
static ck_status read_message(ck_messages *m, const ck_message_frame *f) {
    CK_ASSERT(f->reader < m->count);
    const ck_message_entry *e = &m->entries[f->reader];
    m->why->field = NULL;
    m->why->column = 0;
    m->elements = 0;
    if (!e->reader) return ck_why_set(m->why, "%s", e->reason);
    return e->reader->format == CK_MESSAGE_AVRO ? ck_avro_decode(m, e->reader->avro)
                                                : ck_proto_decode(m, e->reader->proto);
}

static ck_status take_record(ck_decoder *d, const ck_message_frame *f, const uint8_t *p, uint64_t offset,
                             ck_error *err) {
    ck_messages *m = d->messages;
    if (m->rows->origins && !ck_rows_origin(m->rows, m->rows->row_count, offset)) return CK_FULL;
    m->p = p + f->skip;
    m->end = p + f->bytes;
    ck_status s = read_message(m, f);
    if (s == CK_OK) {
        m->rows->row_count++;
        return CK_OK;
    }
    ck_rows_undo(m->rows, m->rows->row_count, m->rows->row_count + 1);
    m->found_count = m->head_count = 0;
    return s == CK_DATA ? ck_decoder_report(d, p, p + f->bytes, offset, err) : ck_nomem(err, m->mem, f->bytes);
}

ck_status ck_messages_decode(ck_decoder *d, ck_buffer *buf, size_t begin, size_t end, uint64_t offset, size_t *consumed,
                             ck_error *err) {
    d->messages->buf = buf;
    *consumed = 0;
    while (end - begin - *consumed >= sizeof(ck_message_frame)) {
        const uint8_t *p = buf->p + begin + *consumed;
        ck_message_frame f;
        memcpy(&f, p, sizeof f);
        CK_ASSERT(f.skip <= f.bytes && f.bytes <= end - begin - *consumed - sizeof f);
        if (ck_decoder_is_full(d)) return CK_FULL;
        CK_TRY(take_record(d, &f, p + sizeof f, offset + *consumed, err));
        *consumed += sizeof f + f.bytes;
    }
    return ck_decoder_is_full(d) ? CK_FULL : CK_OK;
}
