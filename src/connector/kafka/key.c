/* Keys of the records that are written: which columns they are, and how they are written. The PRIMARY KEY is the key,
 * or the option 'key' names it; as JSON an object of its columns, raw one column's bytes alone. */
#include "connector/kafka/kafka_int.h"
#include "data/text.h"

enum { COLUMNS_MAX = 64, TEXT_BYTES_MAX = 1 << 30 };

static ck_status column_of(const ck_schema *s, const char *name, size_t n, uint32_t *out, ck_error *err) {
    for (uint32_t i = 0; i < s->field_count; i++)
        if (strlen(s->fields[i].name) == n && memcmp(s->fields[i].name, name, n) == 0) {
            *out = i;
            return CK_OK;
        }
    return ck_fail(err, CK_INVALID, "option 'key' names '%.*s', which is no column of the table",
                   (int)(n < 100 ? n : 100), name);
}

/* columns: room for as many as there are commas, and one. */
static ck_status key_columns(const char *list, const ck_schema *s, uint32_t *columns, uint32_t *count, ck_error *err) {
    *count = 0;
    for (const char *at = list;;) {
        at += strspn(at, " ");
        size_t n = strcspn(at, ","), trimmed = n;
        while (trimmed && at[trimmed - 1] == ' ') trimmed--;
        CK_TRY(column_of(s, at, trimmed, &columns[*count], err));
        (*count)++;
        if (!at[n]) return CK_OK;
        at += n + 1;
    }
}

static size_t names_in(const char *list) {
    size_t n = 1;
    for (; *list; list++) n += *list == ',';
    return n;
}

/* Raw: what the bytes are must need no saying. */
static ck_status check_raw(const ck_schema *s, const uint32_t *columns, uint32_t count, ck_error *err) {
    if (count != 1)
        return ck_fail(err, CK_INVALID,
                       "key.format = 'raw' is one column's value, and the key %s; 'json' takes several",
                       count ? "has several" : "has none: PRIMARY KEY or the option 'key' says it");
    const ck_type *t = s->fields[columns[0]].type;
    if (t->kind == CK_TYPE_VARCHAR || t->kind == CK_TYPE_BYTES || ck_kind_is_integer(t->kind)) return CK_OK;
    return ck_fail(err, CK_INVALID,
                   "key.format = 'raw' takes a VARCHAR, BYTES, or an integer as its digits; column \"%s\" is another "
                   "type: CAST it AS VARCHAR",
                   s->fields[columns[0]].name);
}

ck_status ck_kafka_key_check(const ck_table_decl *t, const ck_kafka_options *o, ck_error *err) {
    uint32_t columns[COLUMNS_MAX], count = 0;
    if (o->key && t->primary_key_count)
        return ck_fail(err, CK_INVALID, "option 'key' cannot be given beside a PRIMARY KEY, which is the record's key");
    if (o->key && names_in(o->key) > COLUMNS_MAX)
        return ck_fail(err, CK_INVALID, "option 'key' names too many columns");
    if (o->key) CK_TRY(key_columns(o->key, t->schema, columns, &count, err));
    if (!o->raw_key) return CK_OK;
    return o->key ? check_raw(t->schema, columns, count, err)
                  : check_raw(t->schema, t->primary_key, t->primary_key_count, err);
}

ck_status ck_kafka_key_init(ck_kafka_key *k, const ck_kafka_options *o, const ck_sink_table *t, ck_arena *a, ck_mem mem,
                            ck_error *err) {
    *k = (ck_kafka_key){.mem = mem, .columns = t->key, .count = t->key_count, .raw = o->raw_key};
    ck_bytes_init(&k->text, mem, TEXT_BYTES_MAX);
    if (o->key) {
        uint32_t *columns = ck_arena_array(a, names_in(o->key), sizeof *columns);
        if (!columns) return ck_nomem(err, a->mem, sizeof *columns);
        CK_TRY(key_columns(o->key, t->schema, columns, &k->count, err));
        k->columns = columns;
    }
    if (k->count == 0) return CK_OK;
    ck_schema *s = CK_ARENA_NEW(a, ck_schema);
    ck_field *fields = ck_arena_array(a, k->count, sizeof *fields);
    k->ends = ck_alloc(mem, CK_BATCH_ROWS_MAX * sizeof *k->ends);
    if (!s || !fields || !k->ends) return ck_nomem(err, mem, CK_BATCH_ROWS_MAX * sizeof *k->ends);
    for (uint32_t i = 0; i < k->count; i++) fields[i] = t->schema->fields[k->columns[i]];
    *s = (ck_schema){fields, k->count};
    k->type = fields[0].type;
    if (k->raw) return CK_OK;
    return ck_encoder_new(&(ck_encoder_spec){.format = "json", .schema = s}, mem, &k->encoder, err);
}

void ck_kafka_key_destroy(ck_kafka_key *k) {
    ck_encoder_free(k->encoder);
    ck_bytes_destroy(&k->text);
    if (k->ends) ck_free(k->mem, k->ends, CK_BATCH_ROWS_MAX * sizeof *k->ends);
    *k = (ck_kafka_key){0};
}

/* Each value ends with a line's end, as JSON does; a NULL is nothing. */
static ck_status encode_raw(ck_kafka_key *k, const ck_batch *b) {
    const ck_column *c = b->columns[k->columns[0]];
    bool text = ck_type_phys(k->type) == CK_PHYS_VIEW;
    for (uint32_t i = 0; i < b->sel_count; i++) {
        uint32_t row = ck_batch_row(b, i);
        char digits[32];
        if (!ck_column_is_null(c, row)) {
            ck_view v = text ? ck_column_str(c, row) : (ck_view){digits, ck_print_i64(digits, c->i64[row])};
            CK_TRY(ck_bytes_view(&k->text, v));
            CK_TRY(ck_bytes_char(&k->text, '\n'));
        }
        k->ends[i] = k->text.n;
    }
    return CK_OK;
}

ck_status ck_kafka_key_encode(ck_kafka_key *k, const ck_batch *b, const uint8_t *kinds) {
    ck_bytes_clear(&k->text);
    if (k->count == 0) return CK_OK;
    if (k->raw) return encode_raw(k, b);
    ck_batch *keys = ck_batch_project(b, k->columns, k->count);
    ck_status s = keys ? ck_encoder_rows(k->encoder, keys, kinds, &k->text, k->ends) : CK_NOMEM;
    ck_batch_unref(&keys);
    return s;
}

ck_view ck_kafka_key_of(const ck_kafka_key *k, uint32_t i) {
    if (k->count == 0) return (ck_view){0};
    size_t from = i ? k->ends[i - 1] : 0, n = k->ends[i] - from;
    return n ? (ck_view){k->text.p + from, n - 1} : (ck_view){0}; /* the line's end */
}
