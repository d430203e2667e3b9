/* See encoder.h. */
#include "format/csv_rules_int.h"
#include "format/encode_int.h"

static ck_status init(ck_encoder *e, const ck_encoder_spec *spec, ck_error *err) {
    ck_bytes_init(&e->text, e->mem, CK_RECORD_BYTES_MAX);
    if (spec->null_string && spec->null_string[0]) {
        e->null_bytes = strlen(spec->null_string);
        e->null_text = ck_alloc(e->mem, e->null_bytes);
        if (!e->null_text) return ck_nomem(err, e->mem, e->null_bytes);
        memcpy(e->null_text, spec->null_string, e->null_bytes);
    }
    size_t bytes = spec->schema->field_count * sizeof *e->columns;
    e->columns = ck_alloc_zero(e->mem, bytes);
    if (!e->columns) return ck_nomem(err, e->mem, bytes);
    for (uint32_t i = 0; i < spec->schema->field_count; i++) e->columns[i].field = &spec->schema->fields[i];
    if (e->csv) ck_csv_encode_init(e);
    if (!e->csv && ck_json_encode_init(e) != CK_OK) return ck_nomem(err, e->mem, bytes);
    return CK_OK;
}

ck_status ck_encoder_new(const ck_encoder_spec *spec, ck_mem mem, ck_encoder **out, ck_error *err) {
    *out = NULL;
    bool csv = strcmp(spec->format, "csv") == 0;
    if (!csv && strcmp(spec->format, "json") != 0)
        return ck_fail(err, CK_INVALID, "format %s is not known", spec->format);
    if (csv) CK_TRY(ck_csv_check_options(spec->delimiter ? spec->delimiter : ',', spec->null_string, err));
    ck_encoder *e = ck_alloc_zero(mem, sizeof *e);
    if (!e) return ck_nomem(err, mem, sizeof *e);
    e->mem = mem;
    e->csv = csv;
    e->schema = spec->schema;
    e->changes = spec->changes;
    e->header = spec->header;
    e->delimiter = spec->delimiter ? spec->delimiter : ',';
    ck_status s = init(e, spec, err);
    if (s == CK_OK)
        *out = e;
    else
        ck_encoder_free(e);
    return s;
}

void ck_encoder_free(ck_encoder *e) {
    if (!e) return;
    if (e->columns) ck_json_encode_free(e);
    if (e->columns) ck_free(e->mem, e->columns, e->schema->field_count * sizeof *e->columns);
    ck_free(e->mem, e->null_text, e->null_bytes);
    ck_bytes_destroy(&e->text);
    ck_free(e->mem, e, sizeof *e);
}

ck_status ck_encoder_header(ck_encoder *e, ck_bytes *out) {
    size_t before = out->n;
    if (!e->csv || !e->header) return CK_OK;
    ck_status s = ck_csv_encode_header(e, out);
    if (s != CK_OK) out->n = before;
    return s;
}

ck_status ck_encoder_rows(ck_encoder *e, const ck_batch *b, const uint8_t *kinds, ck_bytes *out, size_t *ends) {
    CK_ASSERT(b->column_count == e->schema->field_count);
    size_t before = out->n;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        ck_change change = kinds ? (ck_change)kinds[k] : CK_CHANGE_INSERT;
        CK_ASSERT(e->changes != CK_CHANGES_NONE || kinds || ck_batch_weight(b, row) > 0);
        ck_status s = e->csv ? ck_csv_encode_row(e, b, row, change, out) : ck_json_encode_row(e, b, row, change, out);
        if (s != CK_OK) {
            out->n = before;
            return s;
        }
        if (ends) ends[k] = out->n;
    }
    return CK_OK;
}
