/* See table.h. */
#include "engine/table.h"

#include "data/text.h"
#include "format/encoder.h"

enum { CELL_BYTES_MAX = 1 << 20, HELD_BYTES_MAX = 64 << 20 };

ck_status ck_table_view_init(ck_table_view *v, ck_mem mem, const ck_schema *schema, bool changes) {
    *v = (ck_table_view){
        .mem = mem, .schema = schema, .changes = changes, .column_count = schema->field_count + changes};
    ck_bytes_init(&v->cells, mem, HELD_BYTES_MAX);
    ck_bytes_init(&v->cell_ends, mem, HELD_BYTES_MAX);
    v->widths = ck_alloc_zero(mem, v->column_count * sizeof *v->widths);
    v->right = ck_alloc_zero(mem, v->column_count * sizeof *v->right);
    if (!v->widths || !v->right) {
        ck_table_view_destroy(v);
        return CK_NOMEM;
    }
    for (uint32_t i = 0; i < schema->field_count; i++)
        v->right[i + changes] = ck_kind_is_numeric(schema->fields[i].type->kind);
    return CK_OK;
}

void ck_table_view_destroy(ck_table_view *v) {
    if (v->widths) ck_free(v->mem, v->widths, v->column_count * sizeof *v->widths);
    if (v->right) ck_free(v->mem, v->right, v->column_count * sizeof *v->right);
    v->widths = NULL;
    v->right = NULL;
    ck_bytes_destroy(&v->cells);
    ck_bytes_destroy(&v->cell_ends);
}

/* Code points, so that accents do not shift the columns. */
static uint32_t width_of(ck_view text) {
    uint32_t n = 0;
    for (size_t i = 0; i < text.n; i++) n += ((unsigned char)text.p[i] & 0xC0) != 0x80;
    return n;
}

static const char *kind_text(uint8_t kind) {
    static const char *const names[] = {"+I", "-U", "+U", "-D"};
    return kind < CK_ARRAY_COUNT(names) ? names[kind] : "?";
}

/* Control characters would break the table: they show as escapes. */
static ck_status append_clean(ck_bytes *to, ck_view text) {
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '\n')
            CK_TRY(ck_bytes_str(to, "\\n"));
        else if (c == '\t')
            CK_TRY(ck_bytes_str(to, "\\t"));
        else if (c == '\r')
            CK_TRY(ck_bytes_str(to, "\\r"));
        else if (c < 0x20 || c == 0x7f)
            CK_TRY(ck_bytes_printf(to, "\\x%02x", c));
        else
            CK_TRY(ck_bytes_char(to, (char)c));
    }
    return CK_OK;
}

static ck_status end_cell(ck_table_view *v, uint32_t column, size_t begin) {
    uint32_t w = width_of((ck_view){v->cells.p + begin, v->cells.n - begin});
    if (!v->started && w > v->widths[column]) v->widths[column] = w;
    uint32_t end = (uint32_t)v->cells.n;
    return ck_bytes_append(&v->cell_ends, &end, sizeof end);
}

static ck_status hold_row(ck_table_view *v, const ck_batch *b, uint32_t row, uint8_t kind, ck_bytes *scratch) {
    if (v->changes) {
        size_t begin = v->cells.n;
        CK_TRY(ck_bytes_str(&v->cells, kind_text(kind)));
        CK_TRY(end_cell(v, 0, begin));
    }
    for (uint32_t i = 0; i < v->schema->field_count; i++) {
        ck_bytes_clear(scratch);
        CK_TRY(ck_print_value(v->schema->fields[i].type, b->columns[i], row, scratch));
        size_t begin = v->cells.n;
        CK_TRY(append_clean(&v->cells, ck_bytes_as_view(scratch)));
        CK_TRY(end_cell(v, i + v->changes, begin));
    }
    v->row_count++;
    return CK_OK;
}

static ck_status pad(ck_bytes *out, uint32_t n, char c) {
    for (uint32_t i = 0; i < n; i++) CK_TRY(ck_bytes_char(out, c));
    return CK_OK;
}

static ck_status put_cell(const ck_table_view *v, uint32_t column, ck_view text, ck_bytes *out) {
    uint32_t w = width_of(text), gap = w < v->widths[column] ? v->widths[column] - w : 0;
    bool last = column + 1 == v->column_count;
    if (column) CK_TRY(ck_bytes_str(out, " | "));
    if (v->right[column]) CK_TRY(pad(out, gap, ' '));
    CK_TRY(ck_bytes_view(out, text));
    if (!v->right[column] && !last) CK_TRY(pad(out, gap, ' '));
    return last ? ck_bytes_char(out, '\n') : CK_OK;
}

static ck_status put_header(ck_table_view *v, ck_bytes *out) {
    for (uint32_t i = 0; i < v->column_count; i++) {
        const char *name = v->changes && i == 0 ? "op" : v->schema->fields[i - v->changes].name;
        uint32_t w = width_of(ck_view_of(name));
        if (w > v->widths[i]) v->widths[i] = w;
    }
    for (uint32_t i = 0; i < v->column_count; i++)
        CK_TRY(put_cell(v, i, ck_view_of(v->changes && i == 0 ? "op" : v->schema->fields[i - v->changes].name), out));
    for (uint32_t i = 0; i < v->column_count; i++) {
        if (i) CK_TRY(ck_bytes_str(out, "-+-"));
        CK_TRY(pad(out, v->widths[i], '-'));
    }
    v->started = true;
    return ck_bytes_char(out, '\n');
}

ck_status ck_table_view_flush(ck_table_view *v, ck_bytes *out) {
    if (!v->started && v->row_count == 0) return CK_OK;
    if (!v->started) CK_TRY(put_header(v, out));
    size_t begin = 0, count = v->cell_ends.n / sizeof(uint32_t);
    for (size_t i = 0; i < count; i++) {
        uint32_t end;
        memcpy(&end, v->cell_ends.p + i * sizeof end, sizeof end);
        CK_TRY(put_cell(v, (uint32_t)(i % v->column_count), (ck_view){v->cells.p + begin, end - begin}, out));
        begin = end;
    }
    ck_bytes_clear(&v->cells);
    ck_bytes_clear(&v->cell_ends);
    return CK_OK;
}

ck_status ck_table_view_add(ck_table_view *v, const ck_batch *b, const uint8_t *kinds, ck_bytes *out) {
    ck_bytes scratch;
    ck_bytes_init(&scratch, v->mem, CELL_BYTES_MAX);
    ck_status s = CK_OK;
    for (uint32_t k = 0; s == CK_OK && k < b->sel_count; k++) {
        s = hold_row(v, b, ck_batch_row(b, k), kinds ? kinds[k] : (uint8_t)CK_CHANGE_INSERT, &scratch);
        if (s == CK_OK && (v->started || v->row_count >= CK_TABLE_HELD_ROWS) && v->cells.n > 64 * 1024)
            s = ck_table_view_flush(v, out);
    }
    ck_bytes_destroy(&scratch);
    return s == CK_OK && (v->started || v->row_count >= CK_TABLE_HELD_ROWS) ? ck_table_view_flush(v, out) : s;
}

ck_status ck_table_view_end(ck_table_view *v, ck_bytes *out) {
    if (!v->started) CK_TRY(put_header(v, out));
    CK_TRY(ck_table_view_flush(v, out));
    return ck_bytes_printf(out, "(%llu row%s)\n", (unsigned long long)v->row_count, v->row_count == 1 ? "" : "s");
}
