/* clink.slots and clink.state_versions, written. One object a slot:
 *
 *   {"op_id":"decimal","uid","op_type","slot","state_type","version":N,"mode":"keyed|broadcast|union|split",
 *    "partition":[{"name","type","nullable"}],
 *    "order":[{"name","type","nullable","desc","nulls":"first|last"}],
 *    "values":[{"name","type","nullable"}],"ttl":ms,"hashed":true,"bucketed":true,
 *    "listed":true}
 *
 * ttl 0 is for ever; hashed, bucketed and listed stand only where true: they are hints for holding the slot in memory.
 */
#include "checkpoint/snapshot_int.h"

#include <inttypes.h>
#include <yyjson.h>

#include "base/json.h"

static const char *const mode_names[] = {"keyed", "broadcast", "union", "split"};

typedef struct writer {
    ck_arena *a;
    yyjson_mut_doc *doc;
    bool ok;
} writer;

static void put(writer *w, yyjson_mut_val *o, const char *key, yyjson_mut_val *v) {
    w->ok = w->ok && v && yyjson_mut_obj_add(o, yyjson_mut_str(w->doc, key), v);
}

/* Not ck_type_name, whose "?" without memory must never reach a file. */
static yyjson_mut_val *type_value(writer *w, const ck_type *t) {
    ck_bytes text;
    ck_bytes_init(&text, w->a->mem, SIZE_MAX);
    yyjson_mut_val *v = NULL;
    if (ck_type_print(t, &text) == CK_OK) v = yyjson_mut_strncpy(w->doc, text.p, text.n);
    ck_bytes_destroy(&text);
    return v;
}

static yyjson_mut_val *field_value(writer *w, const ck_field *f) {
    yyjson_mut_val *o = yyjson_mut_obj(w->doc);
    if (!o) return NULL;
    put(w, o, "name", yyjson_mut_str(w->doc, f->name));
    put(w, o, "type", type_value(w, f->type));
    put(w, o, "nullable", yyjson_mut_bool(w->doc, f->nullable));
    return o;
}

static yyjson_mut_val *fields_value(writer *w, const ck_field *f, uint32_t n) {
    yyjson_mut_val *array = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; array && i < n; i++) {
        yyjson_mut_val *v = field_value(w, &f[i]);
        w->ok = w->ok && v && yyjson_mut_arr_append(array, v);
    }
    return array;
}

static yyjson_mut_val *order_value(writer *w, const ck_order_field *f, uint32_t n) {
    yyjson_mut_val *array = yyjson_mut_arr(w->doc);
    for (uint32_t i = 0; array && i < n; i++) {
        yyjson_mut_val *v = field_value(w, &f[i].field);
        if (v) put(w, v, "desc", yyjson_mut_bool(w->doc, f[i].descending));
        if (v) put(w, v, "nulls", yyjson_mut_str(w->doc, f[i].nulls_first ? "first" : "last"));
        w->ok = w->ok && v && yyjson_mut_arr_append(array, v);
    }
    return array;
}

static yyjson_mut_val *slot_value(writer *w, const ck_marked_slot *m) {
    const ck_slot_schema *s = m->schema;
    yyjson_mut_val *o = yyjson_mut_obj(w->doc);
    const char *id = ck_arena_printf(w->a, "%" PRIu64, m->op_id);
    if (!o || !id) return NULL;
    put(w, o, "op_id", yyjson_mut_str(w->doc, id));
    put(w, o, "uid", yyjson_mut_str(w->doc, m->uid));
    put(w, o, "op_type", yyjson_mut_str(w->doc, m->op_type));
    put(w, o, "slot", yyjson_mut_str(w->doc, s->slot));
    put(w, o, "state_type", yyjson_mut_str(w->doc, s->state_type));
    if (s->version) put(w, o, "version", yyjson_mut_uint(w->doc, s->version));
    put(w, o, "mode", yyjson_mut_str(w->doc, mode_names[s->mode]));
    put(w, o, "partition", fields_value(w, s->partition, s->partition_count));
    put(w, o, "order", order_value(w, s->order, s->order_count));
    put(w, o, "values", fields_value(w, s->values, s->value_count));
    put(w, o, "ttl", yyjson_mut_sint(w->doc, s->ttl_us / 1000));
    if (s->hashed) put(w, o, "hashed", yyjson_mut_bool(w->doc, true));
    if (s->bucketed) put(w, o, "bucketed", yyjson_mut_bool(w->doc, true));
    if (s->listed) put(w, o, "listed", yyjson_mut_bool(w->doc, true));
    return o;
}

ck_status ck_slots_encode(ck_arena *a, const ck_marked_slot *slots, uint32_t count, const char **out, ck_error *err) {
    writer w = {.a = a, .ok = true};
    ck_view text;
    CK_TRY(ck_json_new(a, &w.doc, err));
    yyjson_mut_val *array = yyjson_mut_arr(w.doc);
    for (uint32_t i = 0; array && i < count; i++) {
        yyjson_mut_val *v = slot_value(&w, &slots[i]);
        w.ok = w.ok && v && yyjson_mut_arr_append(array, v);
    }
    if (!array || !w.ok) return ck_nomem(err, a->mem, 0);
    yyjson_mut_doc_set_root(w.doc, array);
    CK_TRY(ck_json_write(a, w.doc, &text, err));
    *out = text.p;
    return CK_OK;
}

/* ---- versions ---- */

ck_status ck_versions_encode(ck_arena *a, const ck_version_map *others, const ck_marked_slot *slots, uint32_t count,
                             const char **out, ck_error *err) {
    ck_version_map all;
    ck_version_map_init(&all, a);
    ck_status s = others ? ck_version_map_merge(&all, others) : CK_OK;
    for (uint32_t i = 0; s == CK_OK && i < count; i++) {
        const ck_slot_schema *slot = slots[i].schema;
        const ck_state_version v = {slots[i].op_id, slot->state_type, slot->version, slot->slot};
        if (v.version) s = ck_version_map_stamp(&all, &v); /* without one: nobody has said, and nobody says now */
    }
    *out = s == CK_OK ? ck_version_map_encode(&all, a) : NULL;
    return *out ? CK_OK : ck_nomem(err, a->mem, 0);
}
