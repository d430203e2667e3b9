/* See plugin_rows.h. */
#include "expr/plugin_rows.h"

ck_status ck_plugin_rows_init(ck_plugin_rows *r, ck_arena *a, ck_mem mem, const ck_schema *schema,
                              const clink_engine_table *engine, void *inside) {
    uint32_t n = schema->field_count;
    *r = (ck_plugin_rows){.mem = mem, .schema = schema, .engine = engine};
    r->writers = ck_arena_array(a, n + 1u, sizeof *r->writers);
    r->columns = ck_arena_array(a, n + 1u, sizeof(clink_writer *));
    if (!r->writers || !r->columns) return CK_NOMEM;
    r->face = (clink_emitter){.column_count = n, .columns = r->columns, .engine = engine, .inside = inside};
    return CK_OK;
}

void ck_plugin_rows_drop(ck_plugin_rows *r) {
    for (uint32_t i = 0; r->writers && i < r->schema->field_count; i++) ck_plugin_writer_destroy(&r->writers[i]);
    r->open = false;
    r->face.count = r->face.capacity = 0;
}

ck_status ck_plugin_rows_open(ck_plugin_rows *r, uint32_t capacity) {
    r->open = true;
    for (uint32_t i = 0; i < r->schema->field_count; i++) {
        ck_column *c = ck_column_new(r->mem, ck_type_phys(r->schema->fields[i].type), capacity);
        if (!c || ck_plugin_write(&r->writers[i], r->mem, c, NULL) != CK_OK) {
            ck_plugin_rows_drop(r);
            return CK_NOMEM;
        }
        if (c->phys != CK_PHYS_VIEW && c->phys != CK_PHYS_BOOL) /* a column that is not written is 0, not anything */
            memset(c->data, 0, capacity * (c->phys == CK_PHYS_I128 ? 16u : 8u));
        r->writers[i].face.engine = r->engine;
        r->columns[i] = &r->writers[i].face;
    }
    r->face.count = 0;
    r->face.capacity = capacity;
    return CK_OK;
}

/* What the column's type does not allow is the plugin's fault. */
static ck_status check(const ck_field *f, const ck_column *c, uint32_t rows, ck_error *err) {
    uint32_t row = 0;
    const char *what = NULL;
    for (uint32_t i = 0; !f->nullable && !what && i < rows; i++)
        if (!ck_bit_get(c->validity, i)) what = "NULL, and the column is NOT NULL";
    if (!what && !ck_plugin_fits(f->type, c, NULL, rows, &row)) what = ck_plugin_misfit(f->type, c, row);
    return what ? ck_fail(err, CK_DATA, "emitted %s in column %s", what, f->name) : CK_OK;
}

ck_status ck_plugin_rows_take(ck_plugin_rows *r, ck_batch **out, ck_error *err) {
    uint32_t rows = r->face.count, n = r->schema->field_count;
    ck_batch *b = rows ? ck_batch_new(r->mem, n, rows, false, false) : NULL;
    ck_status s = CK_OK;
    if (rows && !b) s = ck_nomem(err, r->mem, rows);
    for (uint32_t i = 0; s == CK_OK && rows && i < n; i++) {
        ck_column *c = ck_plugin_written(&r->writers[i]);
        if (!c) {
            s = ck_nomem(err, r->mem, sizeof(void *));
            break;
        }
        ck_plugin_round(r->schema->fields[i].type, c);
        s = check(&r->schema->fields[i], c, rows, err);
        ck_batch_set_column(b, i, &c);
    }
    ck_plugin_rows_drop(r);
    if (s != CK_OK) ck_batch_unref(&b);
    *out = b;
    return s;
}
