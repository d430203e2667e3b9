/* NDJSON against yyjson: the first bytes choose columns, batch size, cuts and instruction set, the rest is the text.
 * What must hold: a record is accepted exactly when yyjson accepts it and every value fits its column by a plain
 * reading of the rules in format/README.md; all values are equal; and neither cuts, nor the instruction set, nor having
 * seen the text before changes anything. */
#include "fuzz.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "format/encoder.h"
#include "format/harness_int.h"

enum { COLUMNS = 16, CONTROL = 6, ROWS_MAX = 64 };

/* ---- the table ---- */

typedef struct table {
    ck_type decimal, varchar_4, ts_3, array, map, row;
    ck_field element, map_fields[2], row_fields[3];
    ck_field fields[COLUMNS];
    ck_schema schema;
} table;

static void make_table(table *t, bool not_null) {
    t->decimal = (ck_type){CK_TYPE_DECIMAL, 10, 2, NULL, 0};
    t->varchar_4 = (ck_type){CK_TYPE_VARCHAR, 4, 0, NULL, 0};
    t->ts_3 = (ck_type){CK_TYPE_TIMESTAMP, 3, 0, NULL, 0};
    t->element = (ck_field){"element", ck_type_simple(CK_TYPE_BIGINT), true};
    t->array = (ck_type){CK_TYPE_ARRAY, 0, 0, &t->element, 1};
    t->map_fields[0] = (ck_field){"key", ck_type_simple(CK_TYPE_VARCHAR), false};
    t->map_fields[1] = (ck_field){"value", ck_type_simple(CK_TYPE_DOUBLE), true};
    t->map = (ck_type){CK_TYPE_MAP, 0, 0, t->map_fields, 2};
    t->row_fields[0] = (ck_field){"a", ck_type_simple(CK_TYPE_BIGINT), !not_null};
    t->row_fields[1] = (ck_field){"b", ck_type_simple(CK_TYPE_VARCHAR), true};
    t->row_fields[2] = (ck_field){"c", &t->array, true};
    t->row = (ck_type){CK_TYPE_ROW, 0, 0, t->row_fields, 3};
    const ck_type *types[COLUMNS] = {ck_type_simple(CK_TYPE_BIGINT),
                                     ck_type_simple(CK_TYPE_VARCHAR),
                                     ck_type_simple(CK_TYPE_DOUBLE),
                                     ck_type_simple(CK_TYPE_BOOLEAN),
                                     ck_type_simple(CK_TYPE_TINYINT),
                                     &t->decimal,
                                     ck_type_simple(CK_TYPE_BYTES),
                                     ck_type_simple(CK_TYPE_DATE),
                                     ck_type_simple(CK_TYPE_TIME),
                                     &t->ts_3,
                                     ck_type_simple(CK_TYPE_TIMESTAMP_LTZ),
                                     &t->array,
                                     &t->map,
                                     &t->row,
                                     ck_type_simple(CK_TYPE_REAL),
                                     &t->varchar_4};
    static const char *const names[COLUMNS] = {"i",  "s",  "d",  "b",  "t",  "n",  "x", "dt",
                                               "tm", "ts", "lz", "ar", "mp", "rw", "r", "v"};
    for (int i = 0; i < COLUMNS; i++) t->fields[i] = (ck_field){names[i], types[i], !(not_null && i == 0)};
    t->schema = (ck_schema){t->fields, COLUMNS};
}

/* ---- one value, read plainly ---- */

/* -1: it does not fit; 0: it does and c[row] is something else; 1: it is c[row]. c NULL: 1 when it fits. */
static int judge(const ck_field *f, yyjson_val *v, const ck_column *c, uint32_t row);

static ck_view text_of(yyjson_val *v) {
    if (yyjson_is_raw(v)) return (ck_view){yyjson_get_raw(v), yyjson_get_len(v)};
    return (ck_view){yyjson_get_str(v), yyjson_get_len(v)};
}

/* The number's integer by its digits; false when it has a fraction or more than 19 digits. */
static bool whole(ck_view v, long long *out) {
    char digits[8192], text[32];
    size_t n = 0, i = 0;
    long exponent = 0;
    bool minus = v.p[0] == '-', point = false;
    for (i = minus; i < v.n && v.p[i] != 'e' && v.p[i] != 'E'; i++) {
        if (v.p[i] == '.')
            point = true;
        else
            digits[n++] = v.p[i], exponent -= point;
    }
    bool zero = true;
    for (size_t k = 0; k < n; k++) zero = zero && digits[k] == '0';
    *out = 0;
    if (zero) return true;
    if (i < v.n) {
        char e[32] = {0};
        size_t len = v.n - i - 1;
        if (len >= sizeof e) { /* a huge power, or many zeros in front of it */
            bool negative = v.p[i + 1] == '-';
            size_t k = i + 1 + (v.p[i + 1] == '-' || v.p[i + 1] == '+');
            while (k < v.n && v.p[k] == '0') k++;
            if (v.n - k > 10) return false;
            memcpy(e, v.p + k, v.n - k);
            exponent += (negative ? -1 : 1) * strtol(e, NULL, 10);
        } else {
            memcpy(e, v.p + i + 1, len);
            long power = strtol(e, NULL, 10);
            if (power > 1000000 || power < -1000000) return false;
            exponent += power;
        }
    }
    size_t lead = 0;
    while (digits[lead] == '0') lead++;
    while (n > lead && digits[n - 1] == '0') n--, exponent++;
    if (exponent < 0 || (long)(n - lead) + exponent > 19) return false;
    size_t k = 0;
    if (minus) text[k++] = '-';
    memcpy(text + k, digits + lead, n - lead), k += n - lead;
    while (exponent-- > 0) text[k++] = '0';
    text[k] = 0;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return errno == 0;
}

static int judge_integer(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    long long x;
    int64_t lo, hi;
    ck_kind_int_range(t->kind, &lo, &hi);
    if (!yyjson_is_raw(v) || !whole(text_of(v), &x) || x < lo || x > hi) return -1;
    return !c || c->i64[row] == x;
}

static int judge_double(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    double d;
    if (yyjson_is_raw(v)) {
        char text[8192];
        ck_view s = text_of(v);
        memcpy(text, s.p, s.n);
        text[s.n] = 0;
        d = strtod(text, NULL);
        if (t->kind == CK_TYPE_REAL) d = (double)(float)d;
        if (!isfinite(d)) return -1;
    } else if (yyjson_is_str(v) && ck_view_is(text_of(v), "NaN")) {
        d = NAN;
    } else if (yyjson_is_str(v) && ck_view_is(text_of(v), "Infinity")) {
        d = INFINITY;
    } else if (yyjson_is_str(v) && ck_view_is(text_of(v), "-Infinity")) {
        d = -INFINITY;
    } else {
        return -1;
    }
    if (!c) return 1;
    return (isnan(d) && isnan(c->f64[row])) || (d == c->f64[row] && signbit(d) == signbit(c->f64[row]));
}

static int judge_decimal(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    ck_i128 x;
    bool overflow;
    if (!yyjson_is_raw(v) && !yyjson_is_str(v)) return -1;
    if (!ck_parse_decimal(text_of(v), t->precision, t->scale, &x, &overflow)) return -1;
    return !c || c->i128[row] == x;
}

static int judge_time(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    int64_t x = 0;
    bool ok, zoned;
    if (!yyjson_is_str(v)) return -1;
    ck_view s = text_of(v);
    if (t->kind == CK_TYPE_DATE)
        ok = ck_parse_date(s, &x);
    else if (t->kind == CK_TYPE_TIME)
        ok = ck_parse_time(s, &x);
    else
        ok = ck_parse_timestamp(s, &x, &zoned);
    if (!ok) return -1;
    if (t->kind == CK_TYPE_TIMESTAMP && t->precision == 3)
        while (x % 1000) x--;
    return !c || c->i64[row] == x;
}

static int judge_varchar(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    char buffer[16];
    ck_view s;
    if (yyjson_is_str(v) || yyjson_is_raw(v)) {
        s = text_of(v);
    } else if (yyjson_is_bool(v)) {
        (void)snprintf(buffer, sizeof buffer, "%s", yyjson_is_true(v) ? "true" : "false");
        s = ck_view_of(buffer);
    } else {                                 /* nested: its text, which must read as the same value */
        if (t->precision) return c ? 1 : -2; /* as long as it is written, which is not known here */
        if (!c) return 1;
        s = ck_column_str(c, row);
        yyjson_doc *doc = yyjson_read(s.p, s.n, YYJSON_READ_NUMBER_AS_RAW);
        bool same = doc && yyjson_equals(yyjson_doc_get_root(doc), v);
        yyjson_doc_free(doc);
        return same;
    }
    size_t characters = 0;
    for (size_t i = 0; i < s.n; i++) characters += (s.p[i] & 0xC0) != 0x80;
    if (t->precision && characters > (size_t)t->precision) return -1;
    return !c || ck_view_eq(ck_column_str(c, row), s);
}

static int judge_bytes(yyjson_val *v, const ck_column *c, uint32_t row) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (!yyjson_is_str(v)) return -1;
    ck_view s = text_of(v);
    if (s.n % 4) return -1;
    size_t pad = s.n && s.p[s.n - 1] == '=' ? 1 + (s.p[s.n - 2] == '=') : 0, n = 0;
    uint32_t bits = 0, have = 0;
    char out[8192];
    for (size_t i = 0; i < s.n - pad; i++) {
        const char *at = s.p[i] ? strchr(digits, s.p[i]) : NULL;
        if (!at) return -1;
        bits = bits << 6 | (uint32_t)(at - digits), have += 6;
        if (have >= 8) have -= 8, out[n++] = (char)(bits >> have & 0xFF);
    }
    if (bits & ((1u << have) - 1)) return -1;
    return !c || ck_view_eq(ck_column_str(c, row), (ck_view){out, n});
}

static int least(int a, int b) { return a < b ? a : b; }

static int judge_array(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    if (!yyjson_is_arr(v)) return -1;
    size_t i, max;
    yyjson_val *e;
    int result = 1;
    int32_t at = c ? c->offsets[row] : 0;
    if (c && (size_t)(c->offsets[row + 1] - at) != yyjson_arr_size(v)) result = 0;
    const ck_column *elements = c && result ? c->children[0] : NULL;
    yyjson_arr_foreach(v, i, max, e) {
        result = least(result, judge(&t->fields[0], e, elements, (uint32_t)at + (uint32_t)i));
    }
    return result;
}

/* The last member of that name. */
static yyjson_val *last_member(yyjson_val *object, ck_view name) {
    size_t i, max;
    yyjson_val *key, *v, *found = NULL;
    yyjson_obj_foreach(object, i, max, key, v) {
        if (ck_view_eq(text_of(key), name)) found = v;
    }
    return found;
}

static int judge_map(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    if (!yyjson_is_obj(v)) return -1;
    size_t i, max;
    yyjson_val *key, *e;
    int result = 1;
    int32_t at = c ? c->offsets[row] : 0, end = c ? c->offsets[row + 1] : 0;
    yyjson_obj_foreach(v, i, max, key, e) {
        if (last_member(v, text_of(key)) != e) continue;
        bool there = c && at < end && ck_view_eq(ck_column_str(c->children[0]->children[0], (size_t)at), text_of(key));
        if (c && !there) result = least(result, 0);
        result = least(result, judge(&t->fields[1], e, there ? c->children[0]->children[1] : NULL, (uint32_t)at));
        at++;
    }
    return c && at != end ? least(result, 0) : result;
}

static int judge_row(const ck_type *t, yyjson_val *v, const ck_column *c, uint32_t row) {
    if (!yyjson_is_obj(v)) return -1;
    int result = 1;
    for (uint32_t i = 0; i < t->field_count; i++)
        result = least(result, judge(&t->fields[i], last_member(v, ck_view_of(t->fields[i].name)),
                                     c ? c->children[i] : NULL, row));
    return result;
}

static int judge(const ck_field *f, yyjson_val *v, const ck_column *c, uint32_t row) {
    if (!v || yyjson_is_null(v)) return !f->nullable ? -1 : !c || ck_column_is_null(c, row);
    if (c && ck_column_is_null(c, row)) return least(0, judge(f, v, NULL, 0));
    const ck_type *t = f->type;
    switch (t->kind) {
    case CK_TYPE_BOOLEAN:
        if (!yyjson_is_bool(v)) return -1;
        return !c || ck_bit_get(c->bits, row) == yyjson_is_true(v);
    case CK_TYPE_DOUBLE:
    case CK_TYPE_REAL: return judge_double(t, v, c, row);
    case CK_TYPE_DECIMAL: return judge_decimal(t, v, c, row);
    case CK_TYPE_VARCHAR: return judge_varchar(t, v, c, row);
    case CK_TYPE_BYTES: return judge_bytes(v, c, row);
    case CK_TYPE_DATE:
    case CK_TYPE_TIME:
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: return judge_time(t, v, c, row);
    case CK_TYPE_ARRAY: return judge_array(t, v, c, row);
    case CK_TYPE_MAP: return judge_map(t, v, c, row);
    case CK_TYPE_ROW: return judge_row(t, v, c, row);
    default: return judge_integer(t, v, c, row);
    }
}

/* ---- records against rows ---- */

typedef struct check {
    const table *t;
    const bool *wanted;
    bool strict, round_trips;
    ck_batch *batch; /* of the record at hand, the next row is `row` */
    ck_decoder *d;
    uint32_t row;
    uint64_t bad_offset; /* of the last bad record, -1 = none */
} check;

static ck_status on_bad(void *arg, const ck_bad_record *bad, ck_error *err) {
    (void)err;
    check *c = (check *)arg;
    CK_ASSERT(bad->reason && bad->reason[0]);
    c->bad_offset = bad->offset;
    return CK_OK;
}

static size_t depth_of(yyjson_val *v) {
    size_t i, max, deepest = 0;
    yyjson_val *key, *e;
    if (yyjson_is_arr(v)) yyjson_arr_foreach(v, i, max, e) {
            size_t d = depth_of(e);
            if (d > deepest) deepest = d;
        }
    if (yyjson_is_obj(v)) yyjson_obj_foreach(v, i, max, key, e) {
            size_t d = depth_of(e);
            if (d > deepest) deepest = d;
        }
    return deepest + yyjson_is_ctn(v);
}

/* What the rules say of one record: -1 bad, 1 good, -2 not known; compared with the row when there is one. */
static int judge_record(const check *c, const char *p, size_t n, bool has_row) {
    yyjson_doc *doc = yyjson_read(p, n, YYJSON_READ_NUMBER_AS_RAW);
    yyjson_val *root = yyjson_doc_get_root(doc);
    int result = yyjson_is_obj(root) ? 1 : -1;
    if (result == 1 && depth_of(root) > 1025) result = -1;
    for (int i = 0; i < COLUMNS && result == 1; i++) {
        const ck_field *f = &c->t->fields[i];
        if (!c->wanted[i] && !c->strict) continue;
        const ck_column *col = has_row ? c->batch->columns[i] : NULL;
        result = judge(f, last_member(root, ck_view_of(f->name)), col, c->row);
        CK_ASSERT(result != 0);
    }
    yyjson_doc_free(doc);
    return result;
}

static void encode(const char *format, const table *t, const ck_batch *b, ck_bytes *out) {
    ck_encoder *e;
    ck_encoder_spec spec = {.format = format, .schema = &t->schema};
    ck_bytes_clear(out);
    CK_ASSERT(ck_encoder_new(&spec, out->mem, &e, NULL) == CK_OK);
    CK_ASSERT(ck_encoder_rows(e, b, NULL, out, NULL) == CK_OK);
    ck_encoder_free(e);
}

/* What is written reads back as the same: through the format and once more to JSON. */
static void check_round_trip(const table *t, ck_proc *proc, ck_mem mem, const char *format, const ck_batch *b) {
    ck_bytes json, text, again;
    ck_bytes_init(&json, mem, 1 << 20);
    ck_bytes_init(&text, mem, 1 << 20);
    ck_bytes_init(&again, mem, 1 << 20);
    encode("json", t, b, &json);
    encode(format, t, b, &text);
    ck_decoder *d;
    ck_decoder_spec spec = {.format = format, .schema = &t->schema, .batch_rows = 2};
    ck_buffer *buf = ck_buffer_new(mem, text.n);
    size_t consumed;
    ck_error err = CK_ERROR_INIT;
    memcpy(buf->p, text.p, text.n);
    CK_ASSERT(ck_decoder_new(proc, &spec, mem, NULL, NULL, &d, NULL) == CK_OK);
    CK_ASSERT(ck_decoder_begin(d, "again", true, NULL) == CK_OK);
    CK_ASSERT(ck_decoder_feed(d, buf, 0, text.n, 0, true, &consumed, &err) == CK_OK);
    ck_batch *back = ck_decoder_take(d);
    CK_ASSERT(back && back->row_count == 1);
    encode("json", t, back, &again);
    CK_ASSERT(json.n == again.n && memcmp(json.p, again.p, json.n) == 0);
    ck_batch_unref(&back);
    ck_buffer_unref(&buf);
    ck_decoder_free(d);
    ck_bytes_destroy(&json);
    ck_bytes_destroy(&text);
    ck_bytes_destroy(&again);
}

/* One record at a time through one decoder, so that each meets what the ones before it taught. */
static void check_record(check *c, ck_proc *proc, ck_mem mem, const char *p, size_t n, uint64_t offset) {
    bool blank = true;
    for (size_t i = 0; i < n; i++) blank = blank && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r');
    ck_buffer *buf = ck_buffer_new(mem, n + 1);
    memcpy(buf->p, p, n);
    buf->p[n] = '\n';
    size_t consumed;
    c->bad_offset = UINT64_MAX;
    ck_status s = ck_decoder_feed(c->d, buf, 0, n + 1, offset, false, &consumed, NULL);
    CK_ASSERT(s == CK_OK || s == CK_FULL);
    CK_ASSERT(consumed == n + 1);
    uint32_t rows = ck_decoder_rows(c->d);
    c->batch = ck_decoder_take(c->d);
    c->row = 0;
    CK_ASSERT(c->batch && rows <= 1 && c->batch->row_count == rows);
    CK_ASSERT(rows + (c->bad_offset != UINT64_MAX) == !blank);
    if (c->bad_offset != UINT64_MAX) CK_ASSERT(c->bad_offset == offset);
    if (!blank) {
        int expected = judge_record(c, p, n, rows == 1);
        CK_ASSERT(expected == -2 || (expected == 1) == (rows == 1));
    }
    bool all = rows == 1 && c->round_trips;
    for (int i = 0; i < COLUMNS; i++) all = all && c->wanted[i];
    if (all) check_round_trip(c->t, proc, mem, "json", c->batch);
    if (all && !memmem(p, n, "\\u0000", 6)) check_round_trip(c->t, proc, mem, "csv", c->batch); /* which has no NUL */
    ck_batch_unref(&c->batch);
    ck_buffer_unref(&buf);
}

static void check_records(const table *t, const ck_decoder_spec *spec, bool strict, bool simd, bool round_trips,
                          const char *text, size_t n) {
    ck_harness h;
    ck_harness_init(&h, ck_heap_system(), simd);
    check c = {.t = t, .wanted = spec->wanted, .strict = strict, .round_trips = round_trips};
    CK_ASSERT(ck_decoder_new(&h.proc, spec, h.mem, on_bad, &c, &c.d, NULL) == CK_OK);
    CK_ASSERT(ck_decoder_begin(c.d, "file", false, NULL) == CK_OK);
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t len = newline ? (size_t)(newline - text) - at : n - at;
        check_record(&c, &h.proc, h.mem, text + at, len, at);
        at += len + 1;
    }
    ck_decoder_free(c.d);
    CK_ASSERT(ck_budget_total(&h.proc.budget) == 0);
    ck_harness_destroy(&h);
}

/* ---- ways of decoding against each other ---- */

static void decode(ck_harness *h, const ck_decoder_spec *spec, bool simd, const char *text, size_t n,
                   const size_t *cuts, size_t cut_count) {
    ck_harness_init(h, ck_heap_system(), simd);
    CK_ASSERT(ck_harness_decode(h, spec, text, n, cuts, cut_count) == CK_OK);
}

static void same(const ck_bytes *a, const ck_bytes *b) {
    CK_ASSERT(a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CONTROL || size > 6000) return 0;
    const char *text = (const char *)data + CONTROL;
    size_t n = size - CONTROL;
    table t;
    make_table(&t, data[0] & 1);
    bool wanted[COLUMNS], strict = data[0] & 2, simd = data[0] & 4;
    for (int i = 0; i < COLUMNS; i++) wanted[i] = !(data[1 + i / 8] >> (i % 8) & 1);
    ck_decoder_spec spec = {.format = "json",
                            .schema = &t.schema,
                            .wanted = wanted,
                            .strict = strict,
                            .origins = data[0] & 8,
                            .batch_rows = 1u + data[3] % ROWS_MAX};
    check_records(&t, &spec, strict, simd, data[0] & 16, text, n);
    size_t cuts[2] = {data[4], data[4] + (size_t)data[5]};
    for (int i = 0; i < 2; i++)
        if (cuts[i] > n) cuts[i] = n;
    ck_harness whole_text, cut, other;
    decode(&whole_text, &spec, simd, text, n, NULL, 0);
    decode(&cut, &spec, simd, text, n, cuts, 2);
    decode(&other, &spec, !simd, text, n, cuts, 1);
    same(&whole_text.rows, &cut.rows);
    same(&whole_text.bad, &cut.bad);
    same(&whole_text.rows, &other.rows);
    same(&whole_text.bad, &other.bad);
    ck_harness_destroy(&whole_text);
    ck_harness_destroy(&cut);
    ck_harness_destroy(&other);
    return 0;
}
