/* See metadata_int.h. */
#include "connector/kafka/metadata_int.h"

#include "data/text.h"
#include "format/utf8.h"

#define PREFIX "metadata."

static const char *const names[] = {"",          "key",    "headers", "timestamp",
                                    "partition", "offset", "topic"}; /* ck_kafka_meta */

static bool is_utf8(const char *p, size_t n) { return ck_utf8_valid_scalar((const uint8_t *)p, n); }

/* ---- which columns ---- */

static ck_kafka_meta kind_of(const ck_table_options *o, const char *column) {
    for (uint32_t i = 0; i < o->count; i++) {
        if (strncmp(o->names[i], PREFIX, sizeof PREFIX - 1) != 0) continue;
        if (!ck_view_eq_nocase(ck_view_of(o->names[i] + sizeof PREFIX - 1), ck_view_of(column))) continue;
        for (size_t k = 1; k < CK_ARRAY_COUNT(names); k++)
            if (strcmp(o->values[i], names[k]) == 0) return (ck_kafka_meta)k;
    }
    return CK_KAFKA_META_NONE;
}

static bool is_text(const ck_type *t) { return t->kind == CK_TYPE_VARCHAR || t->kind == CK_TYPE_BYTES; }

static const char *wanted_type(ck_kafka_meta kind, const ck_type *t) {
    bool fits = true;
    switch (kind) {
    case CK_KAFKA_META_NONE: break;
    case CK_KAFKA_META_KEY: return is_text(t) ? NULL : "VARCHAR or BYTES";
    case CK_KAFKA_META_HEADERS:
        fits = t->kind == CK_TYPE_MAP && t->fields[0].type->kind == CK_TYPE_VARCHAR && is_text(t->fields[1].type) &&
               t->fields[1].nullable;
        return fits ? NULL : "MAP<VARCHAR, BYTES> or MAP<VARCHAR, VARCHAR>";
    case CK_KAFKA_META_TIMESTAMP:
        fits = t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ || t->kind == CK_TYPE_BIGINT;
        return fits ? NULL : "TIMESTAMP_LTZ, TIMESTAMP or BIGINT (milliseconds)";
    case CK_KAFKA_META_PARTITION:
        return t->kind == CK_TYPE_INTEGER || t->kind == CK_TYPE_BIGINT ? NULL : "INTEGER or BIGINT";
    case CK_KAFKA_META_OFFSET: return t->kind == CK_TYPE_BIGINT ? NULL : "BIGINT";
    case CK_KAFKA_META_TOPIC: return t->kind == CK_TYPE_VARCHAR ? NULL : "VARCHAR";
    }
    return NULL;
}

/* Of a record, not of a row: the record that takes a row back has another one than the record that brought it. */
static bool is_of_the_record(ck_kafka_meta kind) {
    return kind == CK_KAFKA_META_HEADERS || kind == CK_KAFKA_META_TIMESTAMP || kind == CK_KAFKA_META_PARTITION ||
           kind == CK_KAFKA_META_OFFSET;
}

static bool may_lack(ck_kafka_meta kind) { return kind == CK_KAFKA_META_KEY || kind == CK_KAFKA_META_TIMESTAMP; }

ck_status ck_kafka_metadata_check(const ck_table_decl *t, bool changelog, ck_error *err) {
    uint32_t found = 0, said = 0;
    for (uint32_t i = 0; i < t->schema->field_count; i++) {
        const ck_field *f = &t->schema->fields[i];
        ck_kafka_meta kind = kind_of(&t->options, f->name);
        const char *type = wanted_type(kind, f->type);
        found += kind != CK_KAFKA_META_NONE;
        if (type)
            return ck_fail(err, CK_INVALID, "column \"%s\" is the metadata '%s', which is %s", f->name, names[kind],
                           type);
        if (changelog && is_of_the_record(kind))
            return ck_fail(
                err, CK_INVALID,
                "column \"%s\" is the metadata '%s', and of format = 'debezium-json' the record that takes a "
                "row back has another one than the row; 'key' and 'topic' can be read, and all of them of "
                "the records as they are (format = 'json')",
                f->name, names[kind]);
        if (may_lack(kind) && !f->nullable)
            return ck_fail(err, CK_INVALID, "column \"%s\" is NOT NULL, and a record may have no %s", f->name,
                           names[kind]);
    }
    for (uint32_t i = 0; i < t->options.count; i++)
        said += strncmp(t->options.names[i], PREFIX, sizeof PREFIX - 1) == 0;
    if (found < said) return ck_fail(err, CK_INVALID, "an option " PREFIX "... names no column of the table");
    if (found && found == t->schema->field_count)
        return ck_fail(err, CK_INVALID, "a table has at least one column that is in the record's value");
    return CK_OK;
}

ck_status ck_kafka_metadata_read(ck_arena *a, const ck_source_table *t, ck_kafka_metadata *out, ck_error *err) {
    uint32_t n = t->schema->field_count, k = 0;
    ck_schema *values = CK_ARENA_NEW(a, ck_schema);
    ck_field *fields = ck_arena_array(a, n, sizeof *fields);
    *out = (ck_kafka_metadata){.kinds = ck_arena_array(a, n, sizeof *out->kinds),
                               .places = ck_arena_array(a, n, sizeof *out->places),
                               .wanted = ck_arena_array(a, n, sizeof *out->wanted),
                               .checked = ck_arena_array(a, n, sizeof *out->checked)};
    if (!values || !fields || !out->kinds || !out->places || !out->wanted || !out->checked)
        return ck_nomem(err, a->mem, n * sizeof *fields);
    for (uint32_t i = 0; i < n; i++) {
        ck_kafka_meta kind = out->kinds[i] = kind_of(&t->options, t->schema->fields[i].name);
        out->any |= kind != CK_KAFKA_META_NONE;
        out->keys |= kind == CK_KAFKA_META_KEY && t->wanted[i];
        out->text_keys |= kind == CK_KAFKA_META_KEY && t->schema->fields[i].type->kind == CK_TYPE_VARCHAR;
        out->times |= kind == CK_KAFKA_META_TIMESTAMP && t->schema->fields[i].type->kind != CK_TYPE_BIGINT;
        out->headers |= kind == CK_KAFKA_META_HEADERS && t->wanted[i];
        if (kind != CK_KAFKA_META_NONE) continue;
        fields[k] = t->schema->fields[i];
        out->wanted[k] = t->wanted[i];
        out->checked[k] = t->checked[i];
        out->places[k++] = i;
    }
    *values = (ck_schema){fields, k};
    out->values = values;
    return CK_OK;
}

/* ---- a record ---- */

static ck_status take_headers(const ck_kafka_lib *lib, const rd_kafka_message_t *msg, ck_bytes *text,
                              ck_kafka_beside *out) {
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t n;
    if (lib->rd_kafka_message_headers(msg, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return CK_OK;
    for (size_t i = 0; lib->rd_kafka_header_get_all(headers, i, &name, &value, &n) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        if (!is_utf8(name, strlen(name))) continue;
        CK_TRY(ck_bytes_u32le(text, (uint32_t)strlen(name)));
        CK_TRY(ck_bytes_u32le(text, value ? (uint32_t)n : UINT32_MAX));
        CK_TRY(ck_bytes_str(text, name));
        if (value && n) CK_TRY(ck_bytes_append(text, value, n));
        out->header_count++;
    }
    return CK_OK;
}

bool ck_kafka_key_is_text(const ck_kafka_metadata *m, const rd_kafka_message_t *msg) {
    return !m->text_keys || !msg->key || is_utf8(msg->key, msg->key_len);
}

bool ck_kafka_time_is_one(const ck_kafka_metadata *m, const ck_kafka_lib *lib, const rd_kafka_message_t *msg) {
    rd_kafka_timestamp_type_t type;
    return !m->times || lib->rd_kafka_message_timestamp(msg, &type) <= CK_EVENT_TIME_MAX / 1000;
}

ck_status ck_kafka_beside_take(const ck_kafka_metadata *m, const ck_kafka_lib *lib, const rd_kafka_message_t *msg,
                               ck_bytes *text, ck_kafka_beside *out) {
    rd_kafka_timestamp_type_t type;
    *out = (ck_kafka_beside){.time_ms = lib->rd_kafka_message_timestamp(msg, &type),
                             .offset = msg->offset,
                             .key_at = (uint32_t)text->n,
                             .key_n = UINT32_MAX};
    if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) out->time_ms = -1;
    if (m->keys && msg->key) {
        out->key_n = (uint32_t)msg->key_len;
        if (msg->key_len) CK_TRY(ck_bytes_append(text, msg->key, msg->key_len));
    }
    out->headers_at = (uint32_t)text->n;
    return m->headers ? take_headers(lib, msg, text, out) : CK_OK;
}

/* ---- columns ---- */

static uint32_t read_u32(const char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* A text that is none is left out: headers are whatever their writers put there. */
static ck_status build_headers(ck_column_builder *b, const ck_kafka_beside *r, const ck_bytes *text) {
    ck_column_builder *pair = &b->children[0];
    const char *at = text->p + r->headers_at;
    for (uint32_t i = 0; i < r->header_count; i++) {
        uint32_t name_n = read_u32(at), n = read_u32(at + 4);
        const char *name = at + 8, *value = name + name_n;
        bool null = n == UINT32_MAX;
        at = value + (null ? 0 : n);
        if (!null && pair->children[1].type->kind == CK_TYPE_VARCHAR) null = !is_utf8(value, n);
        CK_TRY(ck_build_str(&pair->children[0], name, name_n));
        CK_TRY(null ? ck_build_null(&pair->children[1]) : ck_build_str(&pair->children[1], value, n));
        CK_TRY(ck_build_end(pair));
    }
    return ck_build_end(b);
}

static ck_status build_time(ck_column_builder *b, int64_t ms) {
    if (ms < 0) return ck_build_null(b);
    return ck_build_i64(b, b->type->kind == CK_TYPE_BIGINT ? ms : ck_time_at_precision(b->type->precision, ms * 1000));
}

static ck_status build(ck_column_builder *b, ck_kafka_meta kind, const ck_kafka_split *split, const ck_kafka_beside *r,
                       const ck_bytes *text) {
    switch (kind) {
    case CK_KAFKA_META_KEY:
        return r->key_n == UINT32_MAX ? ck_build_null(b) : ck_build_str(b, text->p + r->key_at, r->key_n);
    case CK_KAFKA_META_HEADERS: return build_headers(b, r, text);
    case CK_KAFKA_META_TIMESTAMP: return build_time(b, r->time_ms);
    case CK_KAFKA_META_PARTITION: return ck_build_i64(b, split->partition);
    case CK_KAFKA_META_OFFSET: return ck_build_i64(b, r->offset);
    case CK_KAFKA_META_TOPIC: return ck_build_str(b, split->topic, strlen(split->topic));
    case CK_KAFKA_META_NONE: break;
    }
    return CK_OK;
}

static ck_status make_column(const ck_field *f, ck_kafka_meta kind, const ck_kafka_split *split, uint32_t row_count,
                             const ck_kafka_beside *const *rows, const ck_bytes *text, ck_mem mem, ck_column **out,
                             ck_error *err) {
    ck_column_builder b;
    ck_status s = ck_column_builder_init(&b, mem, f->type, row_count);
    if (s != CK_OK) return ck_nomem(err, mem, row_count * sizeof(ck_strview));
    for (uint32_t i = 0; s == CK_OK && i < row_count; i++) {
        if ((s = build(&b, kind, split, rows[i], text)) != CK_OK)
            s = ck_nomem(err, mem, row_count * sizeof(ck_strview));
    }
    if (s == CK_OK && !(*out = ck_column_builder_finish(&b))) s = ck_nomem(err, mem, row_count * sizeof(ck_strview));
    ck_column_builder_destroy(&b);
    return s;
}

ck_status ck_kafka_metadata_add(const ck_kafka_metadata *m, const ck_source_table *t, const ck_kafka_split *split,
                                const ck_batch *values, const ck_kafka_beside *const *rows, const int8_t *weights,
                                const ck_bytes *text, ck_mem mem, ck_batch **out, ck_error *err) {
    uint32_t n = t->schema->field_count;
    ck_batch *b = ck_batch_new(mem, n, values->row_count, false, weights != NULL);
    if (!b) return ck_nomem(err, mem, n * sizeof(void *));
    if (weights) memcpy(b->weights, weights, values->row_count);
    b->origin = ck_origin_ref(values->origin);
    for (uint32_t k = 0; k < m->values->field_count; k++) {
        if (!values->columns[k]) continue;
        ck_column *c = ck_column_ref(values->columns[k]);
        ck_batch_set_column(b, m->places[k], &c);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (m->kinds[i] == CK_KAFKA_META_NONE || !t->wanted[i]) continue;
        ck_column *c = NULL;
        ck_status s =
            make_column(&t->schema->fields[i], m->kinds[i], split, values->row_count, rows, text, mem, &c, err);
        if (s != CK_OK) {
            ck_batch_unref(&b);
            return s;
        }
        ck_batch_set_column(b, i, &c);
    }
    *out = b;
    return CK_OK;
}
