/* See shape_int.h. */
#include "state/shape_int.h"

#include <string.h>

#include "state/pages_int.h"

static uint32_t width_of(ck_phys p) {
    switch (p) {
    case CK_PHYS_NULL: return 0;
    case CK_PHYS_BOOL: return 1;
    case CK_PHYS_I64:
    case CK_PHYS_F64: return 8;
    case CK_PHYS_I128:
    case CK_PHYS_VIEW:
    case CK_PHYS_LIST:
    case CK_PHYS_STRUCT: return 16;
    }
    return 0;
}

/* ---- copies ---- */

static bool copy_fields(ck_arena *a, const ck_field *from, uint32_t n, const ck_field **out) {
    ck_field *f = ck_arena_array(a, n ? n : 1, sizeof *f);
    if (!f) return false;
    for (uint32_t i = 0; i < n; i++) {
        f[i] = (ck_field){ck_arena_strdup(a, from[i].name), ck_type_copy(a, from[i].type), from[i].nullable};
        if (!f[i].name || !f[i].type) return false;
    }
    *out = f;
    return true;
}

ck_status ck_slot_schema_copy(ck_arena *a, const ck_slot_schema *s, const ck_slot_schema **out) {
    ck_slot_schema *c = CK_ARENA_NEW(a, ck_slot_schema);
    ck_order_field *order = ck_arena_array(a, s->order_count ? s->order_count : 1, sizeof *order);
    if (!c || !order) return CK_NOMEM;
    *c = *s;
    c->slot = ck_arena_strdup(a, s->slot);
    c->state_type = ck_arena_strdup(a, s->state_type ? s->state_type : "");
    bool ok = c->slot && c->state_type && copy_fields(a, s->partition, s->partition_count, &c->partition) &&
              copy_fields(a, s->values, s->value_count, &c->values);
    for (uint32_t i = 0; ok && i < s->order_count; i++) {
        const ck_field *f;
        ok = copy_fields(a, &s->order[i].field, 1, &f);
        if (ok) order[i] = (ck_order_field){*f, s->order[i].descending, s->order[i].nulls_first};
    }
    c->order = order;
    c->origins = NULL, c->origin = (ck_slot_origin){0};
    *out = c;
    return ok ? CK_OK : CK_NOMEM;
}

/* ---- checks ---- */

static ck_status check(const ck_slot_schema *s, ck_error *err) {
    if (!s->slot || !*s->slot || strlen(s->slot) > CK_NAME_BYTES_MAX || strpbrk(s->slot, "|\n"))
        return ck_fail(err, CK_REFUSED, "a slot name is 1 to %d bytes without '|' and newline: '%s'", CK_NAME_BYTES_MAX,
                       s->slot ? s->slot : "");
    if (s->state_type && (strlen(s->state_type) > CK_NAME_BYTES_MAX || strpbrk(s->state_type, "|\n")))
        return ck_fail(err, CK_REFUSED, "slot \"%s\": a state type is at most %d bytes without '|' and newline", s->slot,
                       CK_NAME_BYTES_MAX);
    if (s->ttl_us < 0 || (s->ttl_us && (s->mode != CK_SLOT_KEYED || s->bucketed)))
        return ck_fail(err, CK_REFUSED,
                       "slot \"%s\": only keyed state without buckets expires, after a time above zero", s->slot);
    if (s->mode != CK_SLOT_KEYED && (s->partition_count != 1 || s->order_count != 0 || s->partition[0].nullable ||
                                     s->partition[0].type->kind != CK_TYPE_VARCHAR))
        return ck_fail(err, CK_REFUSED,
                       "slot \"%s\": operator state has one VARCHAR NOT NULL partition column and no order", s->slot);
    if (s->bucketed &&
        (s->order_count == 0 || s->order[0].field.nullable || ck_type_phys(s->order[0].field.type) != CK_PHYS_I64))
        return ck_fail(err, CK_REFUSED, "slot \"%s\": the bucket is the first order column, integer-like and NOT NULL",
                       s->slot);
    if (s->listed && (s->order_count == 0 || s->bucketed || s->mode != CK_SLOT_KEYED))
        return ck_fail(err, CK_REFUSED, "slot \"%s\": lists need an order column, no bucket, and keyed state", s->slot);
    if (s->listed && !s->hashed &&
        (s->order_count != 1 || s->order[0].field.nullable || s->order[0].field.type->kind != CK_TYPE_BIGINT))
        return ck_fail(err, CK_REFUSED, "slot \"%s\": a list that is not hashed is numbered by one BIGINT NOT NULL",
                       s->slot);
    return CK_OK;
}

/* ---- layout ---- */

static void put_field(ck_shape *s, const ck_field *f, bool descending, bool nulls_first) {
    ck_shape_field *d = &s->fields[s->field_count++];
    *d = (ck_shape_field){.name = f->name,
                          .type = f->type,
                          .nullable = f->nullable,
                          .descending = descending,
                          .nulls_first = nulls_first,
                          .phys = ck_type_phys(f->type),
                          .null_bit = UINT32_MAX};
    d->width = width_of(d->phys);
    if (d->phys == CK_PHYS_NULL) d->nullable = true;
}

static ck_status lay_out(ck_shape *s, ck_error *err) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < s->field_count; i++)
        if (s->fields[i].nullable) s->fields[i].null_bit = bits++;
    ck_row_field *rows = ck_arena_array(s->arena, s->field_count ? s->field_count : 1, sizeof *rows);
    s->var_fields = ck_arena_array(s->arena, s->field_count ? s->field_count : 1, sizeof *s->var_fields);
    if (!rows || !s->var_fields) return CK_NOMEM;
    uint32_t at = (bits + 7) / 8;
    for (uint32_t i = 0; i < s->field_count; i++) {
        ck_shape_field *f = &s->fields[i];
        f->offset = at;
        at += f->width;
        rows[i] = (ck_row_field){f->offset, f->null_bit, f->phys};
        if (ck_phys_is_var(f->phys)) s->var_fields[s->var_count++] = i;
    }
    s->extra_at = at;
    s->row_bytes = at + s->extra_bytes;
    if (s->row_bytes == 0) s->row_bytes = 1; /* a set of the empty key */
    if (s->row_bytes > CK_ROW_BYTES_MAX)
        return ck_fail(err, CK_REFUSED, "slot \"%s\": a row of %u bytes is over the limit of %d", s->schema->slot,
                       s->row_bytes, CK_ROW_BYTES_MAX);
    s->layout = (ck_row_layout){s->row_bytes, (bits + 7) / 8, s->field_count, s->value_first, rows};
    s->blank = ck_arena_zero(s->arena, s->row_bytes);
    if (!s->blank) return CK_NOMEM;
    for (uint32_t i = s->value_first; i < s->field_count; i++)
        if (s->fields[i].nullable) ck_row_set_null(s->blank, s->fields[i].null_bit, true);
    return CK_OK;
}

static ck_page_form form_of(uint32_t bytes, uint32_t row_bytes) {
    uint32_t rows = (bytes - (uint32_t)sizeof(ck_page_head)) / row_bytes + 1, words, need;
    do {
        rows--;
        words = (rows + 63) / 64;
        need = ((rows * row_bytes + 7) & ~7u) + (uint32_t)sizeof(ck_page_head) + 3 * words * 8;
    } while (rows > 0 && need > bytes);
    return (ck_page_form){bytes, rows, words, bytes - (uint32_t)sizeof(ck_page_head) - 3 * words * 8};
}

static void form_pages(ck_shape *s) {
    uint32_t max = 16 * 1024;
    while (form_of(max, s->row_bytes).rows == 0) max *= 2;
    s->forms[CK_SMALL_PAGES] = form_of(max, s->row_bytes);
    for (uint32_t i = 0; i < CK_SMALL_PAGES; i++) {
        uint32_t bytes = max >> (CK_SMALL_PAGES - i);
        ck_page_form f = form_of(bytes, s->row_bytes);
        s->forms[i] = bytes < CK_PAGE_MIN || f.rows < 2 ? s->forms[CK_SMALL_PAGES] : f;
    }
    s->slot_bits = 1;
    while ((1u << s->slot_bits) < s->forms[CK_SMALL_PAGES].rows) s->slot_bits++;
}

/* Of the first `count` key fields. */
static ck_key_path path_of(const ck_shape *s, uint32_t count) {
    ck_phys p0 = count > 0 ? s->fields[s->key_fields[0]].phys : CK_PHYS_NULL;
    ck_phys p1 = count > 1 ? s->fields[s->key_fields[1]].phys : CK_PHYS_NULL;
    bool i0 = p0 == CK_PHYS_I64, i1 = p1 == CK_PHYS_I64, text0 = p0 == CK_PHYS_VIEW, text1 = p1 == CK_PHYS_VIEW;
    if (count == 0) return CK_PATH_NONE;
    if (count == 1) return i0 ? CK_PATH_I64 : text0 ? CK_PATH_STR : CK_PATH_ANY;
    if (count > 2 || !(i0 || text0) || !(i1 || text1)) return CK_PATH_ANY;
    return i0 && i1 ? CK_PATH_I64X2 : CK_PATH_PAIR;
}

static bool is_plain(const ck_shape *s) {
    if (s->schema->mode != CK_SLOT_KEYED || s->partition_count != 1 || s->order_count || s->extra_bytes) return false;
    bool text = s->fields[0].type->kind == CK_TYPE_VARCHAR;
    return (text || s->fields[0].phys == CK_PHYS_I64) && s->var_count == (text ? 1u : 0u);
}

static uint32_t stored_nulls(const ck_shape *s) {
    for (uint32_t i = s->value_first; i < s->field_count; i++)
        if (s->fields[i].nullable) return (s->value_count + 7) / 8;
    return 0;
}

static ck_status finish(ck_shape *s, ck_error *err) {
    CK_TRY(lay_out(s, err));
    form_pages(s);
    s->path = path_of(s, s->key_count);
    if (s->listed) s->list_path = path_of(s, s->partition_count);
    s->plain = is_plain(s);
    s->stored_nulls = stored_nulls(s);
    s->ttl_at = s->schema->ttl_us && s->extra_bytes && !s->is_hidden ? s->row_bytes - 8 : 0;
    return CK_OK;
}

static ck_shape *shape_alloc(ck_arena *a, const ck_slot_schema *schema, uint32_t field_count) {
    ck_shape *s = CK_ARENA_NEW(a, ck_shape);
    if (!s) return NULL;
    s->arena = a, s->schema = schema;
    s->fields = ck_arena_array(a, field_count ? field_count : 1, sizeof *s->fields);
    s->key_fields = ck_arena_array(a, field_count ? field_count : 1, sizeof *s->key_fields);
    return s->fields && s->key_fields ? s : NULL;
}

ck_status ck_shape_new(ck_arena *a, const ck_slot_schema *schema, ck_shape **out, ck_error *err) {
    CK_TRY(check(schema, err));
    const ck_slot_schema *c = NULL;
    if (ck_slot_schema_copy(a, schema, &c) != CK_OK) return ck_nomem(err, a->mem, sizeof *c);
    uint32_t n = c->partition_count + c->order_count + c->value_count;
    ck_shape *s = shape_alloc(a, c, n);
    if (!s) return ck_nomem(err, a->mem, sizeof *s);
    for (uint32_t i = 0; i < c->partition_count; i++) put_field(s, &c->partition[i], false, false);
    for (uint32_t i = 0; i < c->order_count; i++)
        put_field(s, &c->order[i].field, c->order[i].descending, c->order[i].nulls_first);
    for (uint32_t i = 0; i < c->value_count; i++) put_field(s, &c->values[i], false, false);
    s->partition_count = c->partition_count, s->order_count = c->order_count, s->value_count = c->value_count;
    s->value_first = c->partition_count + c->order_count;
    s->listed = c->listed;
    if (s->listed) s->extra_bytes = sizeof(ck_list_link);
    if (c->ttl_us) s->extra_bytes += 8;
    s->ordered = c->order_count > 0 && !c->hashed && !c->bucketed && !c->listed;
    for (uint32_t i = 0; i < s->value_first && !s->ordered; i++)
        if (!(c->bucketed && i == c->partition_count)) s->key_fields[s->key_count++] = i;
    ck_status st = finish(s, err);
    if (st == CK_NOMEM) return ck_nomem(err, a->mem, s->row_bytes);
    *out = s;
    return st;
}

ck_status ck_shape_partitions(ck_arena *a, const ck_shape *of, uint32_t extra_bytes, ck_shape **out, ck_error *err) {
    ck_shape *s = shape_alloc(a, of->schema, of->partition_count);
    if (!s) return ck_nomem(err, a->mem, sizeof *s);
    for (uint32_t i = 0; i < of->partition_count; i++) {
        put_field(s, &of->schema->partition[i], false, false);
        s->key_fields[s->key_count++] = i;
    }
    s->partition_count = s->value_first = of->partition_count;
    s->extra_bytes = extra_bytes;
    s->is_hidden = true;
    ck_status st = finish(s, err);
    if (st == CK_NOMEM) return ck_nomem(err, a->mem, s->row_bytes);
    *out = s;
    return st;
}
