/* Lines of COPY, taken apart. */
#include "connector/postgres/pg_int.h"

ck_status ck_pg_copy_field(ck_bytes *unescaped, const char *line, size_t n, size_t *at, ck_view *out, bool *in) {
    const char *p = line + *at, *tab = memchr(p, '\t', n - *at);
    size_t bytes = tab ? (size_t)(tab - p) : n - *at;
    *at += bytes + 1;
    *out = (ck_view){p, bytes};
    *in = true;
    if (!memchr(p, '\\', bytes)) return CK_OK;
    *in = false;
    if (bytes == 2 && p[1] == 'N') {
        *out = (ck_view){0};
        return CK_OK;
    }
    static const char letters[] = "bfnrtv", meant[] = "\b\f\n\r\t\v";
    ck_bytes_clear(unescaped);
    CK_TRY(ck_bytes_reserve(unescaped, bytes));
    for (size_t i = 0; i < bytes; i++) {
        char c = p[i];
        if (c == '\\' && i + 1 < bytes) {
            const char *letter = strchr(letters, p[++i]);
            c = letter && *letter ? meant[letter - letters] : p[i];
        }
        unescaped->p[unescaped->n++] = c;
    }
    *out = ck_bytes_as_view(unescaped);
    return CK_OK;
}

ck_status ck_pg_copy_row(const ck_pg_row_builder *to, const char *line, size_t n, size_t at, const char **column) {
    for (uint32_t i = 0; i < to->schema->field_count; i++) {
        const ck_field *f = &to->schema->fields[i];
        ck_view text;
        bool in;
        if (!to->read[i]) continue;
        *column = f->name;
        CK_TRY(ck_pg_copy_field(to->unescaped, line, n, &at, &text, &in));
        CK_TRY(ck_pg_build(to->values, f, text, in ? to->in : NULL, &to->rows->columns[i]));
    }
    ck_batch_builder_row(to->rows, 1);
    return CK_OK;
}
