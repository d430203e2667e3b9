/* Inside of encoders: single values as text, and the two record formats. */
#ifndef CK_FORMAT_ENCODE_INT_H
#define CK_FORMAT_ENCODE_INT_H

#include "format/encoder.h"

enum { CK_SCALAR_BYTES_MAX = 64 }; /* of any value that is neither string nor nested */

typedef struct ck_encoded_column {
    const ck_field *field;
    char *prefix; /* json: what stands before the value, brace or comma, key and colon */
    size_t prefix_bytes;
    bool checked; /* csv: its text may need quotes */
} ck_encoded_column;

struct ck_encoder {
    ck_mem mem;
    bool csv;
    const ck_schema *schema;
    ck_change_style changes;
    bool header;
    char delimiter;
    char *null_text;
    size_t null_bytes;
    ck_encoded_column *columns; /* as many as the schema has */
    ck_bytes text;              /* csv: a nested value on its way into a field */
};

/* What a row is preceded by. */
ck_view ck_change_prefix(ck_change c); /* "-U ", or "" */
ck_view ck_change_name(ck_change c);   /* "-U" */

/* A value that is neither string nor nested, not NULL; how many bytes (at most CK_SCALAR_BYTES_MAX). *text: JSON puts
 * it in quotes. */
size_t ck_encode_scalar(const ck_type *t, const ck_column *c, uint32_t row, char *p, bool *text);
CK_NODISCARD ck_status ck_encode_json_string(ck_view v, ck_bytes *out); /* with its quotes */
CK_NODISCARD ck_status ck_encode_json_value(const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out);

CK_NODISCARD ck_status ck_json_encode_init(ck_encoder *e);
void ck_json_encode_free(ck_encoder *e); /* also half made */
CK_NODISCARD ck_status ck_json_encode_row(ck_encoder *e, const ck_batch *b, uint32_t row, ck_change change,
                                          ck_bytes *out);
void ck_csv_encode_init(ck_encoder *e);
CK_NODISCARD ck_status ck_csv_encode_header(ck_encoder *e, ck_bytes *out);
CK_NODISCARD ck_status ck_csv_encode_row(ck_encoder *e, const ck_batch *b, uint32_t row, ck_change change,
                                         ck_bytes *out);

#endif
