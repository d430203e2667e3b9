/* See keys_met.h. */
#include "connector/keys_met.h"

void ck_keys_met_note(const ck_decoder *d, const ck_schema *decoded, const ck_schema *table, ck_op_ctx *ctx) {
    ck_keys_note note = {0};
    uint64_t met;
    if (!ck_decoder_keys(d, &met, &note.spelled, &note.like)) return;
    if (decoded != table) { /* what is not decoded stands beside the record: nobody misses it there */
        note.met = UINT64_MAX;
        for (uint32_t i = 0; i < decoded->field_count && i < 64; i++) {
            int at = ck_schema_find(table, ck_view_of(decoded->fields[i].name));
            if (at >= 0 && at < 64 && !(met >> i & 1)) note.met &= ~(1ULL << at);
        }
        int at = note.spelled ? ck_schema_find(table, ck_view_of(decoded->fields[note.like].name)) : 0;
        note.like = at < 0 ? 0 : (uint32_t)at;
    } else {
        note.met = met;
    }
    ck_op_note_keys(ctx, &note);
}
