/* Types as text, the canonical form that graphs and slots store:
 *
 *   NULL  BOOLEAN  TINYINT  SMALLINT  INTEGER  BIGINT  REAL  DOUBLE  DATE
 *   DECIMAL(p,s)  VARCHAR  VARCHAR(n)  BYTES  BYTES(n)  TIME(p)  TIMESTAMP(p)  TIMESTAMP_LTZ(p)
 *   INTERVAL YEAR TO MONTH  INTERVAL DAY TO SECOND
 *   ARRAY<type [NOT NULL]>  MAP<type, type [NOT NULL]>  ROW<name type [NOT NULL], ...>
 *
 * A name that is not [A-Za-z_][A-Za-z0-9_]* stands in double quotes, a quote inside doubled. One text per type: the
 * parser refuses every other spelling (spaces, leading zeros, needless quotes), so that texts may be compared. */
#include "base/limits.h"
#include "data/type.h"

#include <string.h>

/* Kinds whose text is a word, and what may follow it. */
typedef enum params { NONE, OPTIONAL_LENGTH, PRECISION, PRECISION_SCALE, FIELDS } params;
typedef struct kind_text {
    const char *word;
    params params;
} kind_text;

static const kind_text *text_of(ck_kind kind) {
    static const kind_text table[CK_TYPE_COUNT] = {
        [CK_TYPE_NULL] = {"NULL", NONE},
        [CK_TYPE_BOOLEAN] = {"BOOLEAN", NONE},
        [CK_TYPE_TINYINT] = {"TINYINT", NONE},
        [CK_TYPE_SMALLINT] = {"SMALLINT", NONE},
        [CK_TYPE_INTEGER] = {"INTEGER", NONE},
        [CK_TYPE_BIGINT] = {"BIGINT", NONE},
        [CK_TYPE_REAL] = {"REAL", NONE},
        [CK_TYPE_DOUBLE] = {"DOUBLE", NONE},
        [CK_TYPE_DECIMAL] = {"DECIMAL", PRECISION_SCALE},
        [CK_TYPE_VARCHAR] = {"VARCHAR", OPTIONAL_LENGTH},
        [CK_TYPE_BYTES] = {"BYTES", OPTIONAL_LENGTH},
        [CK_TYPE_DATE] = {"DATE", NONE},
        [CK_TYPE_TIME] = {"TIME", PRECISION},
        [CK_TYPE_TIMESTAMP] = {"TIMESTAMP", PRECISION},
        [CK_TYPE_TIMESTAMP_LTZ] = {"TIMESTAMP_LTZ", PRECISION},
        [CK_TYPE_INTERVAL_MONTH] = {"INTERVAL YEAR TO MONTH", NONE},
        [CK_TYPE_INTERVAL_US] = {"INTERVAL DAY TO SECOND", NONE},
        [CK_TYPE_ARRAY] = {"ARRAY", FIELDS},
        [CK_TYPE_MAP] = {"MAP", FIELDS},
        [CK_TYPE_ROW] = {"ROW", FIELDS},
    };
    return &table[kind];
}

static bool is_word_char(char c, bool first) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static bool is_bare(ck_view name) {
    for (size_t i = 0; i < name.n; i++)
        if (!is_word_char(name.p[i], i == 0)) return false;
    return name.n > 0;
}

/* ---- printing ---- */

static ck_status print_name(const char *name, ck_bytes *out) {
    ck_view v = ck_view_of(name);
    if (is_bare(v)) return ck_bytes_view(out, v);
    CK_TRY(ck_bytes_char(out, '"'));
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] == '"') CK_TRY(ck_bytes_char(out, '"'));
        CK_TRY(ck_bytes_char(out, v.p[i]));
    }
    return ck_bytes_char(out, '"');
}

static ck_status print_fields(const ck_type *t, ck_bytes *out) {
    CK_TRY(ck_bytes_char(out, '<'));
    for (uint32_t i = 0; i < t->field_count; i++) {
        const ck_field *f = &t->fields[i];
        if (i) CK_TRY(ck_bytes_str(out, ", "));
        if (t->kind == CK_TYPE_ROW) {
            CK_TRY(print_name(f->name, out));
            CK_TRY(ck_bytes_char(out, ' '));
        }
        CK_TRY(ck_type_print(f->type, out));
        bool implied = t->kind == CK_TYPE_MAP && i == 0; /* a map's key is never NULL */
        if (!f->nullable && !implied) CK_TRY(ck_bytes_str(out, " NOT NULL"));
    }
    return ck_bytes_char(out, '>');
}

ck_status ck_type_print(const ck_type *t, ck_bytes *out) {
    const kind_text *k = text_of(t->kind);
    CK_TRY(ck_bytes_str(out, k->word));
    switch (k->params) {
    case NONE: return CK_OK;
    case OPTIONAL_LENGTH: return t->precision ? ck_bytes_printf(out, "(%d)", t->precision) : CK_OK;
    case PRECISION: return ck_bytes_printf(out, "(%d)", t->precision);
    case PRECISION_SCALE: return ck_bytes_printf(out, "(%d,%d)", t->precision, t->scale);
    case FIELDS: return print_fields(t, out);
    }
    return CK_OK;
}

const char *ck_type_name(ck_arena *a, const ck_type *t) {
    ck_bytes b;
    ck_bytes_init(&b, a->mem, CK_FRAME_BYTES_MAX);
    const char *name = ck_type_print(t, &b) == CK_OK ? ck_arena_strndup(a, b.p, b.n) : NULL;
    ck_bytes_destroy(&b);
    return name ? name : "?";
}

/* ---- parsing ---- */

typedef struct parser {
    ck_arena *arena;
    ck_view text;
    size_t at;
    unsigned depth;
    ck_error *err;
} parser;

static ck_status parse_type(parser *p, const ck_type **out);

static ck_status fail(parser *p, const char *what) {
    int shown = p->text.n > 200 ? 200 : (int)p->text.n;
    return ck_fail(p->err, CK_INVALID, "type \"%.*s%s\": %s at byte %zu", shown, p->text.p ? p->text.p : "",
                   p->text.n > 200 ? "…" : "", what, p->at + 1);
}

static ck_status no_memory(parser *p) { return ck_nomem(p->err, p->arena->mem, 64); }

static bool eat(parser *p, const char *z) {
    size_t n = strlen(z);
    if (p->text.n - p->at < n || memcmp(p->text.p + p->at, z, n) != 0) return false;
    p->at += n;
    return true;
}

static ck_status parse_number(parser *p, int32_t lo, int32_t hi, int32_t *out) {
    size_t start = p->at;
    int64_t v = 0;
    while (p->at < p->text.n && p->text.p[p->at] >= '0' && p->text.p[p->at] <= '9' && p->at - start < 10)
        v = v * 10 + (p->text.p[p->at++] - '0');
    bool canonical = p->at > start && (p->text.p[start] != '0' || p->at - start == 1);
    if (!canonical || v < lo || v > hi) {
        p->at = start;
        return fail(p, "number out of range");
    }
    *out = (int32_t)v;
    return CK_OK;
}

static ck_status expect(parser *p, const char *z) {
    if (eat(p, z)) return CK_OK;
    char what[32];
    size_t n = strlen(z);
    memcpy(what, "expected '", 10);
    memcpy(what + 10, z, n);
    memcpy(what + 10 + n, "'", 2);
    return fail(p, what);
}

static ck_status parse_quoted_name(parser *p, ck_view *raw) {
    size_t start = p->at;
    for (;; p->at++) {
        if (p->at >= p->text.n) return fail(p, "name without closing quote");
        if (p->text.p[p->at] == 0) return fail(p, "NUL in a name");
        if (p->text.p[p->at] != '"') continue;
        if (p->at + 1 < p->text.n && p->text.p[p->at + 1] == '"')
            p->at++;
        else
            break;
    }
    *raw = (ck_view){p->text.p + start, p->at - start};
    p->at++;
    return CK_OK;
}

static ck_status parse_name(parser *p, const char **out) {
    ck_view raw = {0};
    bool quoted = eat(p, "\"");
    if (quoted) {
        CK_TRY(parse_quoted_name(p, &raw));
        if (is_bare(raw)) return fail(p, "needless quotes");
    } else {
        size_t start = p->at;
        while (p->at < p->text.n && is_word_char(p->text.p[p->at], p->at == start)) p->at++;
        if (p->at == start) return fail(p, "expected a name");
        raw = (ck_view){p->text.p + start, p->at - start};
    }
    char *name = ck_arena_strndup(p->arena, raw.p, raw.n);
    if (!name) return no_memory(p);
    if (quoted) { /* undouble in place */
        size_t n = 0;
        for (size_t i = 0; i < raw.n; i++, n++) {
            name[n] = raw.p[i];
            if (raw.p[i] == '"') i++;
        }
        name[n] = 0;
    }
    *out = name;
    return CK_OK;
}

/* The fields of a ROW as a list that grows by doubling in the arena. */
static ck_status parse_row(parser *p, const ck_type **out) {
    ck_field *fields = NULL;
    uint32_t count = 0, capacity = 0;
    while (!(count == 0 && eat(p, ">"))) {
        if (count == CK_SQL_COLUMNS_MAX) return fail(p, "too many fields");
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 8;
            ck_field *more = ck_arena_array(p->arena, capacity, sizeof *more);
            if (!more) return no_memory(p);
            if (count) memcpy(more, fields, count * sizeof *more);
            fields = more;
        }
        ck_field *f = &fields[count++];
        CK_TRY(parse_name(p, &f->name));
        CK_TRY(expect(p, " "));
        CK_TRY(parse_type(p, &f->type));
        f->nullable = !eat(p, " NOT NULL");
        if (eat(p, ">")) break;
        CK_TRY(expect(p, ", "));
    }
    *out = ck_type_row(p->arena, fields, count);
    return *out ? CK_OK : no_memory(p);
}

static ck_status parse_nested(parser *p, ck_kind kind, const ck_type **out) {
    CK_TRY(expect(p, "<"));
    if (p->depth == CK_SQL_DEPTH_MAX) return fail(p, "nested too deep");
    p->depth++;
    if (kind == CK_TYPE_ROW) {
        CK_TRY(parse_row(p, out));
    } else {
        const ck_type *first = NULL, *second = NULL;
        CK_TRY(parse_type(p, &first));
        if (kind == CK_TYPE_MAP) {
            CK_TRY(expect(p, ", "));
            CK_TRY(parse_type(p, &second));
        }
        bool nullable = !eat(p, " NOT NULL");
        CK_TRY(expect(p, ">"));
        *out = second ? ck_type_map(p->arena, first, second, nullable) : ck_type_array(p->arena, first, nullable);
        if (!*out) return no_memory(p);
    }
    p->depth--;
    return CK_OK;
}

/* The kind whose word stands here, the longest one: TIMESTAMP_LTZ before TIMESTAMP before TIME. */
static bool match_kind(parser *p, ck_kind *out) {
    size_t best = 0;
    for (int k = 0; k < CK_TYPE_COUNT; k++) {
        const char *word = text_of((ck_kind)k)->word;
        size_t n = strlen(word);
        if (n <= best || p->text.n - p->at < n || memcmp(p->text.p + p->at, word, n) != 0) continue;
        best = n;
        *out = (ck_kind)k;
    }
    p->at += best;
    return best > 0;
}

static ck_status parse_type(parser *p, const ck_type **out) {
    ck_kind kind = CK_TYPE_NULL;
    int32_t precision = 0, scale = 0;
    if (!match_kind(p, &kind)) return fail(p, "no such type");
    switch (text_of(kind)->params) {
    case NONE: break;
    case OPTIONAL_LENGTH:
        if (eat(p, "(")) {
            CK_TRY(parse_number(p, 1, INT32_MAX, &precision));
            CK_TRY(expect(p, ")"));
        }
        break;
    case PRECISION:
        CK_TRY(expect(p, "("));
        CK_TRY(parse_number(p, 0, 6, &precision));
        CK_TRY(expect(p, ")"));
        break;
    case PRECISION_SCALE:
        CK_TRY(expect(p, "("));
        CK_TRY(parse_number(p, 1, 38, &precision));
        CK_TRY(expect(p, ","));
        CK_TRY(parse_number(p, 0, precision, &scale));
        CK_TRY(expect(p, ")"));
        *out = ck_type_decimal(p->arena, precision, scale);
        return *out ? CK_OK : no_memory(p);
    case FIELDS: return parse_nested(p, kind, out);
    }
    *out = ck_type_with_precision(p->arena, kind, precision);
    return *out ? CK_OK : no_memory(p);
}

ck_status ck_type_parse(ck_arena *a, ck_view text, const ck_type **out, ck_error *err) {
    parser p = {.arena = a, .text = text, .err = err};
    CK_TRY(parse_type(&p, out));
    return p.at == text.n ? CK_OK : fail(&p, "more text than a type");
}
