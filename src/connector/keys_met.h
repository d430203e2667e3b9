/* What a source's decoder has met of the table's columns, told to the runtime with each batch. */
#ifndef CK_CONNECTOR_KEYS_MET_H
#define CK_CONNECTOR_KEYS_MET_H

#include "connector/table.h"
#include "format/decoder.h"

/* decoded: the columns the decoder makes, which are the table's or some of them. */
void ck_keys_met_note(const ck_decoder *d, const ck_schema *decoded, const ck_schema *table, ck_op_ctx *ctx);

#endif
