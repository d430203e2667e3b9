/* A file cut into splits: the first bytes choose the format, where it is cut and how the bytes behind a cut come, the
 * rest is the text. What must hold: each cut moves to where a plain count of quotes and line ends says that the next
 * record begins, whatever the pieces it is looked for in; and the splits' rows and bad records, decoded apart, are
 * those of the whole. */
#include "fuzz.h"

#include "format/harness_int.h"

enum { COLUMNS = 3, CUTS = 3, CONTROL = 6 };

/* The first place behind text[at] where a record begins; n: none. */
static size_t next_record_plainly(bool csv, const char *text, size_t n, size_t at) {
    bool inside = false;
    for (size_t i = 0; i < n; i++) {
        inside ^= csv && text[i] == '"';
        if (i >= at && text[i] == '\n' && !inside) return i + 1;
    }
    return n;
}

static size_t next_record(const char *format, const char *text, size_t n, size_t at, size_t piece) {
    bool in_quotes = strcmp(format, "csv") == 0 && ck_format_quotes(text, at, false);
    ck_status s = CK_MORE;
    while (s == CK_MORE && at < n) {
        size_t some = piece < n - at ? piece : n - at, skip;
        s = ck_format_sync(format, text + at, some, &in_quotes, &skip);
        CK_ASSERT(s == CK_OK || (s == CK_MORE && skip == some));
        at += skip;
    }
    CK_ASSERT(s == CK_OK ? !in_quotes : at == n);
    return at;
}

/* text[from, to) as a split of its own, behind what h has. */
static void decode(ck_harness *h, const ck_decoder_spec *spec, const char *text, size_t from, size_t to) {
    ck_decoder *d;
    size_t consumed = from;
    CK_ASSERT(ck_decoder_new(&h->proc, spec, h->mem, ck_harness_bad, h, &d, &h->err) == CK_OK);
    CK_ASSERT(ck_decoder_begin(d, "file", from == 0, &h->err) == CK_OK);
    CK_ASSERT(ck_harness_piece(h, d, spec->schema, text, from, to, true, &consumed) == CK_OK);
    CK_ASSERT(consumed == to && ck_harness_take(h, d, spec->schema) == CK_OK);
    ck_decoder_free(d);
}

static void same(const ck_bytes *a, const ck_bytes *b) {
    CK_ASSERT(a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char mark[3] = {(char)0xEF, (char)0xBB, (char)0xBF};
    if (size < CONTROL || size > 4000) return 0;
    const char *text = (const char *)data + CONTROL;
    size_t n = size - CONTROL;
    if (n >= 3 && memcmp(text, mark, 3) == 0) return 0; /* the reader of a file takes it off */
    bool csv = data[0] & 1, simd = data[0] & 2;
    ck_field fields[COLUMNS] = {{"i", ck_type_simple(CK_TYPE_BIGINT), true},
                                {"s", ck_type_simple(CK_TYPE_VARCHAR), true},
                                {"d", ck_type_simple(CK_TYPE_DOUBLE), !(data[0] & 4)}};
    ck_schema schema = {fields, COLUMNS};
    ck_decoder_spec spec = {.format = csv ? "csv" : "json",
                            .schema = &schema,
                            .strict = data[0] & 8,
                            .delimiter = ',',
                            .origins = true,
                            .batch_rows = 1u + data[1] % 40};
    ck_harness whole, parts;
    ck_harness_init(&whole, ck_heap_system(), simd);
    ck_harness_init(&parts, ck_heap_system(), !simd);
    decode(&whole, &spec, text, 0, n);
    size_t from = 0;
    for (int i = 0; i < CUTS && from < n; i++) {
        size_t at = from + data[3 + i] % (n - from), cut = next_record(spec.format, text, n, at, 1u + data[2]);
        CK_ASSERT(cut == next_record_plainly(csv, text, n, at));
        decode(&parts, &spec, text, from, cut);
        from = cut;
    }
    if (from < n || n == 0) decode(&parts, &spec, text, from, n);
    same(&whole.rows, &parts.rows);
    same(&whole.bad, &parts.bad);
    ck_harness_destroy(&whole);
    ck_harness_destroy(&parts);
    return 0;
}
