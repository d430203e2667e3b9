/* clink.slots and clink.state_versions, read. The bytes come from outside: everything is checked. */
#include "checkpoint/snapshot_int.h"

#include <yyjson.h>

#include "base/json.h"

typedef struct reader {
    ck_arena *a;
    ck_error *err;
    uint32_t slot;
    ck_status status; /* first failure */
} reader;

static void bad(reader *r, const char *member, const char *what) {
    if (r->status == CK_OK) r->status = ck_fail(r->err, CK_CORRUPT, CK_META_SLOTS "[%u].%s %s", r->slot, member, what);
}

static const char *text_of(reader *r, yyjson_val *o, const char *name, bool required) {
    yyjson_val *v = yyjson_obj_get(o, name);
    if (!v && !required) return "";
    if (!yyjson_is_str(v) || strlen(yyjson_get_str(v)) != yyjson_get_len(v) || yyjson_get_len(v) > 65536) {
        bad(r, name, v ? "is not a text" : "is missing");
        return "";
    }
    return yyjson_get_str(v);
}

static bool flag_of(reader *r, yyjson_val *o, const char *name) {
    yyjson_val *v = yyjson_obj_get(o, name);
    if (v && !yyjson_is_bool(v)) bad(r, name, "is not true or false");
    return v && yyjson_get_bool(v);
}

static uint64_t parse_u64(const char *p, bool *ok) {
    uint64_t v = 0;
    *ok = *p != 0;
    for (; *ok && *p; p++)
        *ok = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(v, 10, &v) &&
              !__builtin_add_overflow(v, (uint64_t)(*p - '0'), &v);
    return v;
}

/* As text, which is what we write, or as a number. */
static uint64_t id_of(reader *r, yyjson_val *o) {
    yyjson_val *v = yyjson_obj_get(o, "op_id");
    if (yyjson_is_uint(v)) return yyjson_get_uint(v);
    bool ok;
    uint64_t id = parse_u64(text_of(r, o, "op_id", true), &ok);
    if (!ok) bad(r, "op_id", "is not a decimal id");
    return id;
}

static void read_field(reader *r, yyjson_val *o, const char *list, ck_field *f) {
    if (!yyjson_is_obj(o)) {
        bad(r, list, "holds something that is not an object");
        return;
    }
    f->name = text_of(r, o, "name", true);
    f->nullable = flag_of(r, o, "nullable");
    const char *type = text_of(r, o, "type", true);
    if (r->status != CK_OK) return;
    ck_error why = CK_ERROR_INIT;
    ck_status s = ck_type_parse(r->a, ck_view_of(type), &f->type, &why);
    if (s == CK_NOMEM)
        r->status = ck_nomem(r->err, r->a->mem, 0);
    else if (s != CK_OK)
        bad(r, list, "has a type that is not known");
}

static yyjson_val *list_of(reader *r, yyjson_val *o, const char *name, size_t element, void **out, uint32_t *count) {
    yyjson_val *v = yyjson_obj_get(o, name);
    *count = 0;
    if (r->status != CK_OK) return NULL;
    if (!yyjson_is_arr(v) || yyjson_arr_size(v) > CK_SQL_COLUMNS_MAX) {
        bad(r, name, "is not an array of fields");
        return NULL;
    }
    size_t n = yyjson_arr_size(v);
    *out = ck_arena_array(r->a, n ? n : 1, element);
    if (!*out) {
        r->status = ck_nomem(r->err, r->a->mem, n * element);
        return NULL;
    }
    *count = (uint32_t)n;
    return v;
}

static void read_fields(reader *r, yyjson_val *o, const char *name, const ck_field **out, uint32_t *count) {
    void *room = NULL;
    yyjson_val *list = list_of(r, o, name, sizeof(ck_field), &room, count), *item;
    ck_field *f = room;
    size_t i, max;
    if (list) yyjson_arr_foreach(list, i, max, item) read_field(r, item, name, &f[i]);
    *out = f;
}

static void read_order(reader *r, yyjson_val *o, ck_slot_schema *s) {
    void *room = NULL;
    yyjson_val *list = list_of(r, o, "order", sizeof(ck_order_field), &room, &s->order_count), *item;
    ck_order_field *f = room;
    size_t i, max;
    if (list) yyjson_arr_foreach(list, i, max, item) {
            read_field(r, item, "order", &f[i].field);
            f[i].descending = flag_of(r, item, "desc");
            f[i].nulls_first = strcmp(text_of(r, item, "nulls", false), "first") == 0;
        }
    s->order = f;
}

static ck_slot_mode mode_of(reader *r, yyjson_val *o) {
    static const char *const names[] = {"keyed", "broadcast", "union", "split"};
    const char *text = text_of(r, o, "mode", true);
    for (unsigned i = 0; i < CK_ARRAY_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0) return (ck_slot_mode)i;
    bad(r, "mode", "is not one of the known modes");
    return CK_SLOT_UNION;
}

static void read_slot(reader *r, yyjson_val *o, ck_stored_slot *out) {
    ck_slot_schema *s = CK_ARENA_NEW(r->a, ck_slot_schema);
    if (!s) {
        r->status = ck_nomem(r->err, r->a->mem, sizeof *s);
        return;
    }
    if (!yyjson_is_obj(o)) {
        bad(r, "", "is not an object");
        return;
    }
    *out = (ck_stored_slot){id_of(r, o), text_of(r, o, "uid", false), text_of(r, o, "op_type", false), s, false};
    s->slot = text_of(r, o, "slot", true);
    s->state_type = text_of(r, o, "state_type", false);
    s->mode = mode_of(r, o);
    yyjson_val *version = yyjson_obj_get(o, "version"), *ttl = yyjson_obj_get(o, "ttl");
    s->version = version ? (uint32_t)yyjson_get_uint(version) : 0;
    if (version && (!yyjson_is_uint(version) || yyjson_get_uint(version) > UINT32_MAX || s->version == 0))
        bad(r, "version", "is not a version");
    s->ttl_us = ttl ? yyjson_get_sint(ttl) : 0;
    if (ttl && (!yyjson_is_int(ttl) || s->ttl_us < 0 || s->ttl_us > INT64_MAX / 1000)) bad(r, "ttl", "is not a time");
    s->ttl_us *= r->status == CK_OK ? 1000 : 0;
    s->hashed = flag_of(r, o, "hashed");
    s->bucketed = flag_of(r, o, "bucketed");
    s->listed = flag_of(r, o, "listed");
    read_fields(r, o, "partition", &s->partition, &s->partition_count);
    read_order(r, o, s);
    read_fields(r, o, "values", &s->values, &s->value_count);
}

ck_status ck_slots_decode(ck_arena *a, ck_view json, ck_snapshot_header *h, ck_error *err) {
    yyjson_doc *doc;
    CK_TRY(ck_json_read(a, json, &doc, err));
    yyjson_val *array = yyjson_doc_get_root(doc), *item;
    if (!yyjson_is_arr(array) || yyjson_arr_size(array) > CK_SNAPSHOT_SLOTS_MAX)
        return ck_fail(err, CK_CORRUPT, CK_META_SLOTS " is not an array of at most %d slots", CK_SNAPSHOT_SLOTS_MAX);
    size_t n = yyjson_arr_size(array), i, max;
    ck_stored_slot *slots = ck_arena_array(a, n ? n : 1, sizeof *slots);
    if (!slots) return ck_nomem(err, a->mem, n * sizeof *slots);
    reader r = {.a = a, .err = err};
    yyjson_arr_foreach(array, i, max, item) {
        r.slot = (uint32_t)i;
        read_slot(&r, item, &slots[i]);
        CK_TRY(r.status);
    }
    h->slots = slots, h->slot_count = (uint32_t)n;
    return CK_OK;
}

/* ---- versions ---- */

/* A slot that does not say its version gets the one the lines have for it, else stays without. */
static ck_status agree(ck_snapshot_header *h, uint32_t i, ck_error *err) {
    ck_slot_schema *s = (ck_slot_schema *)(uintptr_t)h->slots[i].schema; /* made by ck_slots_decode */
    uint32_t version = ck_version_map_get(&h->versions, h->slots[i].op_id, s->state_type, s->slot);
    if (version && s->version && version != s->version)
        return ck_fail(err, CK_CORRUPT,
                       "slot \"%s\" is in version %u by " CK_META_SLOTS " and in %u by " CK_META_STATE_VERSIONS,
                       s->slot, s->version, version);
    if (!s->version) s->version = version;
    return CK_OK;
}

ck_status ck_versions_decode(ck_arena *a, ck_view lines, ck_snapshot_header *h, ck_error *err) {
    ck_version_map_init(&h->versions, a);
    CK_TRY(ck_version_map_decode(&h->versions, lines, err));
    for (uint32_t i = 0; i < h->slot_count; i++) CK_TRY(agree(h, i, err));
    return CK_OK;
}
