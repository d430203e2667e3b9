/* Batches to text: NDJSON and CSV, for sinks, printing and tools. Appends to a byte buffer; whole records only. */
#ifndef CK_FORMAT_ENCODER_H
#define CK_FORMAT_ENCODER_H

#include "data/batch.h"
#include "base/bytes.h"
#include "base/proc.h"

typedef enum ck_change_style {
    CK_CHANGES_NONE,   /* rows alone; one of weight -1 is a bug where no kinds are given */
    CK_CHANGES_PREFIX, /* "-U ", "+U ", "-D " in front; inserts bare */
    CK_CHANGES_FIELD,  /* first field "op": "+I", "-U", "+U", "-D" */
} ck_change_style;

typedef struct ck_encoder_spec {
    const char *format; /* "json", "csv" */
    const ck_schema *schema;
    ck_change_style changes;
    bool header; /* csv: ck_encoder_header writes the names */
    char delimiter;
    const char *null_string; /* csv; NULL = empty */
} ck_encoder_spec;

typedef struct ck_encoder ck_encoder;
CK_NODISCARD ck_status ck_encoder_new(const ck_encoder_spec *spec, ck_mem mem, ck_encoder **out, ck_error *err);
void ck_encoder_free(ck_encoder *e);
CK_NODISCARD ck_status ck_encoder_header(ck_encoder *e, ck_bytes *out);
/* Live rows in order. kinds[k]: change kind of the k-th live row (enum ck_change); NULL: all inserts. ends (optional):
 * out->n after each row. */
typedef enum ck_change {
    CK_CHANGE_INSERT,
    CK_CHANGE_UPDATE_BEFORE,
    CK_CHANGE_UPDATE_AFTER,
    CK_CHANGE_DELETE
} ck_change;
CK_NODISCARD ck_status ck_encoder_rows(ck_encoder *e, const ck_batch *b, const uint8_t *kinds, ck_bytes *out,
                                       size_t *ends);

/* From weights to kinds at the end of a plan: a -1 directly followed by a +1 of equal key columns becomes -U, +U; other
 * -1 are -D, other +1 inserts. key NULL: no pairing; key_count 0: the rows are versions of one. kinds has room for
 * sel_count. */
CK_NODISCARD ck_status ck_change_kinds(const ck_batch *b, const uint32_t *key, uint32_t key_count, uint8_t *kinds);

#endif
