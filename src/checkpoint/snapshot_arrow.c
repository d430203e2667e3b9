/* See snapshot_arrow_int.h. */
#include "checkpoint/snapshot_arrow_int.h"

#include <nanoarrow/ipc/flatcc_generated.h>

#define ns(x) FLATBUFFERS_WRAP_NAMESPACE(org_apache_arrow_flatbuf, x)

/* ---- schema ---- */

static ns(Schema_table_t) schema_of(const void *message) {
    ns(Message_table_t) m = ns(Message_as_root(message));
    if (!m || ns(Message_header_type(m)) != ns(MessageHeader_Schema)) return NULL;
    return (ns(Schema_table_t))ns(Message_header(m));
}

static bool is_named(ns(Field_table_t) f, const char *name) {
    flatbuffers_string_t s = ns(Field_name(f));
    return s && flatbuffers_string_len(s) == strlen(name) && memcmp(s, name, strlen(name)) == 0;
}

static bool is_plain(ns(Field_table_t) f) {
    ns(Field_vec_t) children = ns(Field_children(f));
    return !ns(Field_dictionary(f)) && (!children || ns(Field_vec_len(children)) == 0);
}

static bool is_unsigned(ns(Field_table_t) f, const char *name, int bits) {
    if (!is_named(f, name) || !is_plain(f) || ns(Field_type_type(f)) != ns(Type_Int)) return false;
    ns(Int_table_t) t = (ns(Int_table_t))ns(Field_type(f));
    return t && ns(Int_bitWidth(t)) == bits && !ns(Int_is_signed(t));
}

static bool is_binary(ns(Field_table_t) f, const char *name) {
    return is_named(f, name) && is_plain(f) && ns(Field_type_type(f)) == ns(Type_Binary);
}

ck_arrow_problem ck_arrow_schema_check(const void *message, bool *delta, bool *refused) {
    ns(Schema_table_t) s = schema_of(message);
    *refused = false;
    if (!s) return "it does not begin with a schema";
    if (ns(Schema_endianness(s)) != ns(Endianness_Little)) {
        *refused = true;
        return "it was written on a big-endian machine";
    }
    ns(Field_vec_t) f = ns(Schema_fields(s));
    size_t n = f ? ns(Field_vec_len(f)) : 0, i = n == 4 ? 1 : 0;
    *delta = n == 4;
    bool ok = n == 3 || n == 4;
    if (ok && *delta) ok = is_unsigned(ns(Field_vec_at(f, 0)), "row_kind", 8);
    if (ok) ok = is_unsigned(ns(Field_vec_at(f, i)), "op_id", 64);
    if (ok)
        ok = is_binary(ns(Field_vec_at(f, i + 1)), "key_bytes") && is_binary(ns(Field_vec_at(f, i + 2)), "value_bytes");
    return ok ? NULL
              : "it is not a snapshot: its columns are not (op_id uint64, key_bytes binary, value_bytes binary), "
                "deltas "
                "with row_kind uint8 in front";
}

ck_view ck_arrow_metadata(const void *message, const char *key) {
    ns(Schema_table_t) s = schema_of(message);
    ns(KeyValue_vec_t) pairs = s ? ns(Schema_custom_metadata(s)) : NULL;
    size_t n = pairs ? ns(KeyValue_vec_len(pairs)) : 0;
    for (size_t i = 0; i < n; i++) {
        ns(KeyValue_table_t) kv = ns(KeyValue_vec_at(pairs, i));
        flatbuffers_string_t k = ns(KeyValue_key(kv)), v = ns(KeyValue_value(kv));
        if (!k || flatbuffers_string_len(k) != strlen(key) || memcmp(k, key, strlen(key)) != 0) continue;
        return v ? (ck_view){v, flatbuffers_string_len(v)} : (ck_view){"", 0};
    }
    return (ck_view){NULL, 0};
}

/* ---- batches ---- */

typedef struct buffers {
    ns(Buffer_vec_t) list;
    size_t count, next;
    ck_view body;
} buffers;

/* The next buffer, inside the body and of at least `bytes`. */
static bool take(buffers *b, uint64_t bytes, ck_view *out) {
    if (b->next >= b->count) return false;
    ns(Buffer_struct_t) x = ns(Buffer_vec_at(b->list, b->next++));
    int64_t offset = ns(Buffer_offset(x)), length = ns(Buffer_length(x));
    if (offset < 0 || length < 0 || (uint64_t)length > b->body.n || (uint64_t)offset > b->body.n - (uint64_t)length)
        return false;
    *out = (ck_view){b->body.p ? b->body.p + offset : "", (size_t)length};
    return (uint64_t)length >= bytes;
}

/* Offsets ascend and end inside the data. */
static bool take_binary(buffers *b, uint64_t rows, const uint8_t **offsets, const char **data) {
    ck_view validity, o, d;
    if (!take(b, 0, &validity) || !take(b, rows ? (rows + 1) * 4 : 0, &o) || !take(b, 0, &d)) return false;
    *offsets = (const uint8_t *)o.p;
    *data = d.p;
    int32_t last = 0;
    for (uint64_t i = 0; rows && i <= rows; i++) {
        int32_t v;
        memcpy(&v, o.p + 4 * i, 4);
        if (v < last) return false;
        last = v;
    }
    return (uint64_t)last <= d.n;
}

static bool nodes_are(ns(FieldNode_vec_t) nodes, size_t columns, int64_t rows) {
    if (!nodes || ns(FieldNode_vec_len(nodes)) != columns) return false;
    for (size_t i = 0; i < columns; i++)
        if (ns(FieldNode_length(ns(FieldNode_vec_at(nodes, i)))) != rows) return false;
    return true;
}

static bool any_null(ns(FieldNode_vec_t) nodes, size_t columns) {
    for (size_t i = 0; i < columns; i++)
        if (ns(FieldNode_null_count(ns(FieldNode_vec_at(nodes, i)))) != 0) return true;
    return false;
}

ck_arrow_problem ck_arrow_batch_check(const void *message, bool delta, ck_view body, ck_arrow_batch *out,
                                      bool *refused) {
    ns(Message_table_t) m = ns(Message_as_root(message));
    *refused = false;
    ns(RecordBatch_table_t) r = NULL;
    if (m && ns(Message_header_type(m)) == ns(MessageHeader_RecordBatch))
        r = (ns(RecordBatch_table_t))ns(Message_header(m));
    if (!r) return "a message that is no record batch";
    if (ns(RecordBatch_compression(r))) {
        *refused = true;
        return "it holds compressed batches; snapshots are written without compression";
    }
    size_t columns = delta ? 4 : 3;
    int64_t rows = ns(RecordBatch_length(r));
    ns(FieldNode_vec_t) nodes = ns(RecordBatch_nodes(r));
    if (rows < 0 || (uint64_t)rows > body.n) return "a batch of a length its bytes do not have";
    if (!nodes_are(nodes, columns, rows)) return "columns of unequal length";
    if (any_null(nodes, columns)) return "a NULL in a column that has none";
    buffers b = {.list = ns(RecordBatch_buffers(r)), .body = body};
    b.count = b.list ? ns(Buffer_vec_len(b.list)) : 0;
    uint64_t n = (uint64_t)rows;
    ck_view validity, kinds = {"", 0}, ids;
    bool ok = !delta || (take(&b, 0, &validity) && take(&b, n, &kinds));
    ok = ok && take(&b, 0, &validity) && take(&b, n * 8, &ids);
    ok = ok && take_binary(&b, n, &out->key_offsets, &out->keys);
    ok = ok && take_binary(&b, n, &out->value_offsets, &out->values);
    if (!ok) return "buffers that are not inside the batch's bytes";
    out->rows = n;
    out->kinds = delta ? (const uint8_t *)kinds.p : NULL;
    out->op_ids = (const uint8_t *)ids.p;
    return NULL;
}
