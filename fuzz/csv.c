/* CSV against a plain reader of one byte at a time: the first bytes choose columns, delimiter, NULL text, header, batch
 * size, cuts and instruction set, the rest is the text. What must hold: the same records are good, with the same
 * values; the bad ones have the same places; and neither cuts nor the instruction set change anything. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/harness_int.h"
#include "format/utf8.h"

enum { COLUMNS = 5, CONTROL = 6, FIELDS_MAX = 64, ROWS_MAX = 40, PAD_BYTES = 64 };

static const char *const names[COLUMNS] = {"i", "s", "d", "b", "t"};

static void make_fields(ck_field *f, bool not_null) {
    const ck_kind kinds[COLUMNS] = {CK_TYPE_BIGINT, CK_TYPE_VARCHAR, CK_TYPE_DOUBLE, CK_TYPE_BOOLEAN,
                                    CK_TYPE_TIMESTAMP};
    for (int i = 0; i < COLUMNS; i++) f[i] = (ck_field){names[i], ck_type_simple(kinds[i]), !(not_null && i < 2)};
}

/* ---- the plain reader ---- */

typedef struct field {
    char text[4096]; /* without quotes */
    size_t n;
    bool quoted;
} field;

typedef struct record {
    field fields[FIELDS_MAX];
    size_t count;
    bool bad_quotes, closed; /* closed: it ends in a newline outside quotes */
    size_t bytes;            /* with its line end */
    size_t content;          /* without */
} record;

/* One record by the book: p[0, n), '\n' at the end of all text being understood. */
static void read_record(record *r, const char *p, size_t n, char delimiter) {
    *r = (record){.count = 0};
    size_t i = 0;
    bool inside = false;
    for (; i < n && !(p[i] == '\n' && !inside); i++) inside ^= p[i] == '"';
    r->closed = !inside;
    r->content = i;
    r->bytes = i < n ? i + 1 : i;
    if (r->content > 0 && p[r->content - 1] == '\r') r->content--;
    for (i = 0;; i++) { /* a field from i */
        field *f = &r->fields[r->count < FIELDS_MAX ? r->count : FIELDS_MAX - 1];
        r->count++;
        *f = (field){.quoted = i < r->content && p[i] == '"'};
        if (f->quoted) {
            for (i++; i < r->content; i++) {
                if (p[i] == '"' && !(i + 1 < r->content && p[i + 1] == '"')) break;
                i += p[i] == '"';
                f->text[f->n++] = p[i];
            }
            i++;
            if (i < r->content && p[i] != delimiter) r->bad_quotes = true;
        }
        bool in_quotes = false; /* parity again: a delimiter behind a stray quote is none */
        for (; i < r->content && !(p[i] == delimiter && !in_quotes); i++) {
            in_quotes ^= p[i] == '"';
            if (p[i] == '"') r->bad_quotes = true;
            f->text[f->n++] = p[i];
        }
        if (i >= r->content) return;
    }
}

/* ---- values ---- */

typedef struct context {
    ck_decoder_spec spec;
    const ck_field *fields;
    bool wanted[COLUMNS];
    size_t position[COLUMNS];
    size_t field_count;
} context;

static ck_view trim(ck_view v) {
    while (v.n && (v.p[0] == ' ' || v.p[0] == '\t')) v.p++, v.n--;
    while (v.n && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t')) v.n--;
    return v;
}

/* Appends the value as the harness prints it; false when it does not fit its column. */
static bool print_value(const context *c, int i, const field *f, ck_bytes *out) {
    ck_view v = {f->text, f->n}, t = trim(v);
    char text[64];
    const char *null_text = c->spec.null_string ? c->spec.null_string : "";
    int64_t x;
    double d;
    bool b;
    if (!f->quoted && ck_view_is(v, null_text)) {
        CK_ASSERT(ck_bytes_str(out, "NULL|") == CK_OK);
        return c->fields[i].nullable;
    }
    size_t n = 0;
    switch (i) {
    case 0:
        if (!ck_parse_i64(t, &x)) { /* a number with a fraction or an exponent may be whole */
            ck_i128 whole, scaled;
            bool overflow;
            char first = t.n ? t.p[t.p[0] == '-'] : 0;
            if (t.n && t.p[0] == '+') first = t.n > 1 ? t.p[1] : 0;
            if (first < '0' || first > '9') return false;
            const char *point = memchr(t.p, '.', t.n);
            if (point && (point + 1 == t.p + t.n || point[1] < '0' || point[1] > '9')) return false;
            if (!ck_parse_decimal(t, 38, 18, &scaled, &overflow) || !ck_parse_decimal(t, 38, 0, &whole, &overflow))
                return false;
            ck_i128 unit = 1000000000000000000;
            if (whole * unit != scaled || whole > INT64_MAX || whole < INT64_MIN) return false;
            /* what vanishes below 10^-18 is not seen here: such text is not judged */
            if (t.n > 16) return true;
            x = (int64_t)whole;
        }
        n = ck_print_i64(text, x);
        break;
    case 1: CK_ASSERT(ck_bytes_view(out, v) == CK_OK); break;
    case 2:
        if (!ck_parse_f64(t, &d)) return false;
        n = ck_print_f64(text, d);
        break;
    case 3:
        if (!ck_parse_bool(t, &b)) return false;
        n = (size_t)snprintf(text, sizeof text, "%s", b ? "true" : "false");
        break;
    default:
        if (!ck_parse_timestamp(t, &x, &b)) return false;
        n = ck_print_timestamp(text, x, 6, ' ', false);
        break;
    }
    CK_ASSERT(ck_bytes_append(out, text, n) == CK_OK && ck_bytes_char(out, '|') == CK_OK);
    return true;
}

/* Integers whose judgement print_value leaves open. */
static bool undecided(const record *r, const context *c) {
    if (!c->wanted[0] && !c->spec.strict) return false;
    if (c->position[0] >= r->count || c->position[0] >= FIELDS_MAX) return false;
    const field *f = &r->fields[c->position[0]];
    bool plain = true;
    for (size_t i = 0; i < f->n; i++) plain = plain && f->text[i] != '.' && (f->text[i] | 32) != 'e';
    return !plain && (f->n > 16 || memchr(f->text, 'e', f->n) || memchr(f->text, 'E', f->n));
}

/* One record after the header: a row, a place among the bad, or nothing. */
static void judge(const context *c, const record *r, const char *p, uint64_t offset, ck_bytes *rows, ck_bytes *bad) {
    ck_bytes line;
    ck_bytes_init(&line, rows->mem, 1 << 20);
    bool ok = r->closed && !r->bad_quotes && r->count == c->field_count && !(r->content && memchr(p, 0, r->content)) &&
              ck_utf8_valid_scalar((const uint8_t *)p, r->content);
    for (int i = 0; ok && i < COLUMNS; i++) {
        ck_bytes ignored = {0};
        ck_bytes_init(&ignored, rows->mem, 1 << 20);
        const field *f = &r->fields[c->position[i]];
        if (c->wanted[i])
            ok = print_value(c, i, f, &line);
        else if (c->spec.strict)
            ok = print_value(c, i, f, &ignored);
        ck_bytes_destroy(&ignored);
    }
    if (ok) {
        CK_ASSERT(ck_bytes_printf(rows, "@%llu ", (unsigned long long)offset) == CK_OK);
        CK_ASSERT(ck_bytes_append(rows, line.p, line.n) == CK_OK && ck_bytes_char(rows, '\n') == CK_OK);
    } else {
        CK_ASSERT(ck_bytes_printf(bad, "%llu\n", (unsigned long long)offset) == CK_OK);
    }
    ck_bytes_destroy(&line);
}

/* Positions by names; false: the header is an error. */
static bool take_header(context *c, const record *r, const char *p) {
    bool found[COLUMNS] = {false};
    if (!r->closed || !ck_utf8_valid_scalar((const uint8_t *)p, r->content)) return false;
    for (size_t k = 0; k < r->count; k++)
        for (int i = 0; i < COLUMNS; i++) {
            if (!ck_view_is((ck_view){r->fields[k].text, r->fields[k].n}, names[i])) continue;
            if (found[i]) return false;
            found[i] = true;
            c->position[i] = k;
        }
    for (int i = 0; i < COLUMNS; i++)
        if (!found[i]) return false;
    c->field_count = r->count;
    return true;
}

/* ---- comparison ---- */

/* The offsets at the line starts of what the harness wrote, its raw text left out: lines of a bad record may be many,
 * so offsets are taken from a callback of our own. */
typedef struct places {
    ck_bytes text;
} places;
static ck_status on_bad(void *arg, const ck_bad_record *bad, ck_error *err) {
    (void)err;
    CK_ASSERT(bad->reason && bad->reason[0]);
    return ck_bytes_printf(&((places *)arg)->text, "%llu\n", (unsigned long long)bad->offset);
}

static ck_status decode_all(ck_harness *h, const ck_decoder_spec *spec, const char *text, size_t n, const size_t *cuts,
                            size_t cut_count, places *bad) {
    ck_decoder *d;
    CK_ASSERT(ck_decoder_new(&h->proc, spec, h->mem, on_bad, bad, &d, &h->err) == CK_OK);
    CK_ASSERT(ck_decoder_begin(d, "file", true, &h->err) == CK_OK);
    size_t consumed = 0;
    ck_status s = CK_OK;
    for (size_t i = 0; i <= cut_count && s == CK_OK; i++) {
        bool last = i == cut_count;
        s = ck_harness_piece(h, d, spec->schema, text, consumed,
                             last                 ? n
                             : cuts[i] < consumed ? consumed
                                                  : cuts[i],
                             last, &consumed);
    }
    CK_ASSERT(s == CK_DATA || (s == CK_OK && consumed == n));
    if (s == CK_OK) CK_ASSERT(ck_harness_take(h, d, spec->schema) == CK_OK);
    ck_decoder_free(d);
    return s;
}

static void same(const ck_bytes *a, const ck_bytes *b) {
    CK_ASSERT(a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0));
}

/* The reference's rows and bad places; false: the header is an error, or something is left open. */
static bool expected(context *c, const char *text, size_t n, ck_bytes *rows, ck_bytes *bad, bool *open) {
    static const char mark[3] = {(char)0xEF, (char)0xBB, (char)0xBF};
    record *r = malloc(sizeof *r);
    CK_ASSERT(r);
    bool header = c->spec.header, ok = true;
    for (size_t at = n >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0; at < n && ok; at += r->bytes) {
        read_record(r, text + at, n - at, c->spec.delimiter);
        bool blank = r->closed && r->content == 0;
        if (r->count > FIELDS_MAX) *open = true;
        if (header) {
            ok = !r->bad_quotes && take_header(c, r, text + at);
            header = false;
        } else if (!(blank && c->field_count > 1)) {
            *open |= undecided(r, c);
            judge(c, r, text + at, at, rows, bad);
        }
    }
    free(r);
    return ok;
}

/* The text, with good records before it that move it to the end of a chunk when the input says so. */
static char *padded(const uint8_t *data, size_t size, char delimiter, size_t *n) {
    size_t lines = data[3] >= 0xF0 && !(data[0] & 4) ? 246u + (data[3] & 15) : 0, rest = size - CONTROL;
    char *text = malloc(lines * PAD_BYTES + rest + 1), *p = text;
    CK_ASSERT(text);
    for (size_t i = 0; i < lines; i++, p += PAD_BYTES) {
        memset(p, 'p', PAD_BYTES);
        memcpy(p, (char[]){'7', delimiter}, 2);
        memcpy(p + PAD_BYTES - 8, (char[]){delimiter, '1', '.', '5', delimiter, 't', delimiter, '\n'}, 8);
    }
    memcpy(p, data + CONTROL, rest);
    *n = lines * PAD_BYTES + rest;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CONTROL || size > 4000) return 0;
    size_t n;
    static const char delimiters[] = {',', ';', '\t', ' '};
    char *text = padded(data, size, delimiters[data[0] >> 4 & 3], &n);
    static const char *const nulls[] = {NULL, "NA", "0", ""};
    ck_field fields[COLUMNS];
    make_fields(fields, data[0] & 1);
    ck_schema schema = {fields, COLUMNS};
    context c = {.fields = fields, .field_count = COLUMNS};
    for (int i = 0; i < COLUMNS; i++) {
        c.wanted[i] = !(data[1] >> i & 1);
        c.position[i] = (size_t)i;
    }
    c.spec = (ck_decoder_spec){.format = "csv",
                               .schema = &schema,
                               .wanted = c.wanted,
                               .strict = data[0] & 2,
                               .header = data[0] & 4,
                               .delimiter = delimiters[data[0] >> 4 & 3],
                               .null_string = nulls[data[0] >> 6],
                               .origins = true,
                               .batch_rows = 1u + data[2] % ROWS_MAX};
    bool simd = data[0] & 8, open = false;
    size_t before = n - (size - CONTROL), cuts[2] = {before + data[4], before + data[4] + (size_t)data[5]};
    for (int i = 0; i < 2; i++)
        if (cuts[i] > n) cuts[i] = n;
    ck_harness whole, cut;
    places whole_bad, cut_bad;
    ck_harness_init(&whole, ck_heap_system(), simd);
    ck_harness_init(&cut, ck_heap_system(), !simd);
    ck_bytes_init(&whole_bad.text, whole.mem, 1 << 20);
    ck_bytes_init(&cut_bad.text, cut.mem, 1 << 20);
    ck_status s = decode_all(&whole, &c.spec, text, n, NULL, 0, &whole_bad);
    CK_ASSERT(decode_all(&cut, &c.spec, text, n, cuts, 2, &cut_bad) == s);
    same(&whole.rows, &cut.rows);
    same(&whole_bad.text, &cut_bad.text);
    ck_bytes rows, bad;
    ck_bytes_init(&rows, whole.mem, 1 << 20);
    ck_bytes_init(&bad, whole.mem, 1 << 20);
    bool ok = expected(&c, text, n, &rows, &bad, &open);
    if (!open) {
        CK_ASSERT(ok == (s == CK_OK));
        if (ok) {
            same(&whole.rows, &rows);
            same(&whole_bad.text, &bad);
        }
    }
    ck_bytes_destroy(&rows);
    ck_bytes_destroy(&bad);
    ck_bytes_destroy(&whole_bad.text);
    ck_bytes_destroy(&cut_bad.text);
    ck_harness_destroy(&whole);
    ck_harness_destroy(&cut);
    free(text);
    return 0;
}
