/* See fingerprint.h. Each slot is written as one line of text - names, types as SQL prints them - and hashed; the
 * hashes of the slots are added, so that their order does not matter. */
#include "graph/fingerprint.h"

static ck_status write_field(ck_bytes *t, const ck_field *f) {
    CK_TRY(ck_bytes_printf(t, "|%s ", f->name));
    CK_TRY(ck_type_print(f->type, t));
    return ck_bytes_str(t, f->nullable ? "" : " NOT NULL");
}

static ck_status write_slot(ck_bytes *t, const ck_slot_schema *s) {
    CK_TRY(ck_bytes_printf(t, "%s|%s|%d|partition", s->slot, s->state_type, (int)s->mode));
    for (uint32_t i = 0; i < s->partition_count; i++) CK_TRY(write_field(t, &s->partition[i]));
    CK_TRY(ck_bytes_str(t, s->bucketed ? "|bucketed order" : "|order"));
    for (uint32_t i = 0; i < s->order_count; i++) {
        CK_TRY(write_field(t, &s->order[i].field));
        CK_TRY(ck_bytes_printf(t, "%s%s", s->order[i].descending ? " DESC" : "",
                               s->order[i].nulls_first ? " NULLS FIRST" : ""));
    }
    CK_TRY(ck_bytes_str(t, "|values"));
    for (uint32_t i = 0; i < s->value_count; i++) CK_TRY(write_field(t, &s->values[i]));
    return CK_OK;
}

ck_status ck_slots_fingerprint(ck_arena *scratch, const ck_slot_schema *slots, uint32_t count, uint64_t *out) {
    uint64_t sum = 0;
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < count && s == CK_OK; i++) {
        ck_bytes text;
        ck_bytes_init(&text, scratch->mem, 16 << 20);
        s = write_slot(&text, &slots[i]);
        sum += ck_fnv1a(text.p, text.n);
        ck_bytes_destroy(&text);
    }
    if (count && sum == 0) sum = 1;
    *out = sum;
    return s == CK_FULL ? CK_NOMEM : s;
}
