/* Addresses with values of a row in them: http://host/customers/{id}. */
#include <stdio.h>

#include "connector/http/http_int.h"
#include "data/text.h"

static ck_status column_of(const ck_schema *s, ck_view name, uint32_t *out, ck_error *err) {
    int at = ck_schema_find(s, name);
    if (at < 0)
        return ck_fail(err, CK_INVALID, "option 'url' has {%.*s}, which is no column of the table",
                       (int)(name.n < 100 ? name.n : 100), name.p);
    ck_kind k = s->fields[at].type->kind;
    if (k == CK_TYPE_ARRAY || k == CK_TYPE_MAP || k == CK_TYPE_ROW || k == CK_TYPE_BYTES)
        return ck_fail(err, CK_INVALID, "option 'url' has {%s}, a column whose values have no place in an address",
                       s->fields[at].name);
    *out = (uint32_t)at;
    return CK_OK;
}

ck_status ck_http_address_parse(ck_arena *a, const char *url, const ck_schema *schema, ck_http_address *out,
                                ck_error *err) {
    size_t braces = 0;
    for (const char *p = url; *p; p++) braces += *p == '{';
    ck_http_piece *pieces = ck_arena_array(a, 2 * braces + 1, sizeof *pieces);
    if (!pieces) return ck_nomem(err, a->mem, braces * sizeof *pieces);
    *out = (ck_http_address){.pieces = pieces};
    for (const char *at = url; *at;) {
        size_t n = strcspn(at, "{}");
        if (n) pieces[out->count++] = (ck_http_piece){.text = {at, n}};
        at += n;
        if (!*at) break;
        size_t name = *at == '{' ? strcspn(at + 1, "{}") : 0;
        if (*at != '{' || at[1 + name] != '}')
            return ck_fail(err, CK_INVALID, "option 'url' is '%s', in which a brace has no other one", url);
        CK_TRY(column_of(schema, (ck_view){at + 1, name}, &pieces[out->count].column, err));
        out->count++;
        out->columns++;
        at += name + 2;
    }
    return CK_OK;
}

static ck_status put_escaped(ck_view v, ck_bytes *out) {
    static const char hex[] = "0123456789ABCDEF";
    CK_TRY(ck_bytes_reserve(out, 3 * v.n));
    char *p = out->p + out->n;
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-_.~", c));
        if (plain) {
            *p++ = (char)c;
            continue;
        }
        *p++ = '%';
        *p++ = hex[c >> 4];
        *p++ = hex[c & 15];
    }
    out->n = (size_t)(p - out->p);
    return CK_OK;
}

ck_status ck_http_address_print(const ck_http_address *p, const ck_schema *schema, ck_column *const *columns,
                                uint32_t row, ck_bytes *scratch, ck_bytes *out) {
    for (uint32_t i = 0; i < p->count; i++) {
        const ck_http_piece *piece = &p->pieces[i];
        if (piece->text.p) {
            CK_TRY(ck_bytes_view(out, piece->text));
            continue;
        }
        const ck_column *c = columns[piece->column];
        if (ck_column_is_null(c, row)) continue;
        ck_bytes_clear(scratch);
        CK_TRY(ck_print_value(schema->fields[piece->column].type, c, row, scratch));
        CK_TRY(put_escaped(ck_bytes_as_view(scratch), out));
    }
    return CK_OK;
}
