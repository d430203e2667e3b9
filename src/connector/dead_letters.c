/* See dead_letters.h. */
#include "connector/dead_letters.h"

#include <stdio.h>

enum { LETTER_BYTES_MAX = 1 << 20 }; /* gathered, before they are sent */

static const struct {
    const char *name;
    ck_kind kind;
} letter_columns[] = {
    {"raw", CK_TYPE_BYTES}, {"split", CK_TYPE_VARCHAR}, {"offset", CK_TYPE_BIGINT}, {"reason", CK_TYPE_VARCHAR}};

ck_status ck_dead_letters_init(ck_dead_letters *d, ck_arena *a, ck_mem mem, uint32_t batch_rows, ck_error *err) {
    uint32_t n = CK_ARRAY_COUNT(letter_columns);
    ck_schema *s = CK_ARENA_NEW(a, ck_schema);
    ck_field *fields = ck_arena_array(a, n, sizeof *fields);
    if (!s || !fields) return ck_nomem(err, a->mem, n * sizeof *fields);
    for (uint32_t i = 0; i < n; i++)
        fields[i] = (ck_field){letter_columns[i].name, ck_type_simple(letter_columns[i].kind), true};
    *s = (ck_schema){fields, n};
    if (ck_batch_builder_init(&d->rows, mem, s, batch_rows) != CK_OK) return ck_nomem(err, mem, n * sizeof *fields);
    d->on = true;
    return CK_OK;
}

void ck_dead_letters_destroy(ck_dead_letters *d) {
    if (d->on) ck_batch_builder_destroy(&d->rows);
    d->on = false;
}

bool ck_dead_letters_is_full(const ck_dead_letters *d) {
    return d->rows.row_count == d->rows.capacity || ck_batch_builder_bytes(&d->rows) > LETTER_BYTES_MAX;
}

static ck_status add_reason(ck_column_builder *to, const ck_bad_record *bad) {
    char text[512];
    int n = bad->field && bad->column ? snprintf(text, sizeof text, "column \"%s\", byte %lld: %s", bad->field,
                                                 (long long)bad->column, bad->reason)
            : bad->field              ? snprintf(text, sizeof text, "column \"%s\": %s", bad->field, bad->reason)
                                      : snprintf(text, sizeof text, "%s", bad->reason);
    return ck_build_str(to, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

ck_status ck_dead_letters_add(ck_dead_letters *d, const char *split, const ck_bad_record *bad, ck_error *err) {
    ck_column_builder *to = d->rows.columns;
    /* Of a record over the limit nobody has the whole. */
    ck_status s =
        bad->raw.n > CK_RECORD_BYTES_MAX ? ck_build_null(&to[0]) : ck_build_str(&to[0], bad->raw.p, bad->raw.n);
    if (s == CK_OK) s = ck_build_str(&to[1], split, strlen(split));
    if (s == CK_OK)
        s = bad->offset == CK_LETTER_NO_OFFSET ? ck_build_null(&to[2]) : ck_build_i64(&to[2], (int64_t)bad->offset);
    if (s == CK_OK) s = add_reason(&to[3], bad);
    if (s == CK_OK) {
        ck_batch_builder_row(&d->rows, 1);
        return CK_OK;
    }
    ck_batch_builder_undo(&d->rows);
    return ck_nomem(err, d->rows.mem, bad->raw.n);
}

ck_status ck_dead_letters_emit(ck_dead_letters *d, ck_op_ctx *ctx) {
    if (!d->on || d->rows.row_count == 0) return CK_OK;
    ck_batch *b = ck_batch_builder_finish(&d->rows);
    if (!b) return ck_nomem(ctx->error, d->rows.mem, d->rows.row_count * sizeof(ck_strview));
    return ck_op_emit(ctx, CK_PORT_DEAD_LETTERS, &b);
}
