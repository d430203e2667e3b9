/* Rows on their way into a plugin's operator and out of it. */
#include "operator/process_int.h"

enum { CAPACITY_LEAST = 64 };

ck_status ck_process_views(ck_process *p, const ck_batch *b, const uint32_t *columns, uint32_t count,
                           const ck_schema *schema) {
    CK_ASSERT(count <= p->reader_count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = columns ? columns[i] : i;
        const char *name = schema ? schema->fields[at].name : NULL;
        if (ck_plugin_read(&p->readers[i], p->mem, b->columns[at], false, name) != CK_OK)
            return ck_nomem(p->ctx->error, p->mem, sizeof(void *));
    }
    return CK_OK;
}

static ck_process_port *port_of(clink_emitter *o) { return o->inside; }

static void drop_writers(ck_process_port *o) {
    for (uint32_t i = 0; o->writers && i < o->schema->field_count; i++) ck_plugin_writer_destroy(&o->writers[i]);
    o->open = false;
    o->face.count = o->face.capacity = 0;
}

/* As many rows as came in are likely to go out. */
static uint32_t capacity_of(const ck_process *p) {
    uint32_t most = p->ctx->settings->batch_rows, want = p->batch ? p->batch->sel_count : 0;
    if (want < CAPACITY_LEAST) want = CAPACITY_LEAST;
    return want < most ? want : most;
}

static ck_status open_writers(ck_process_port *o) {
    ck_process *p = o->process;
    uint32_t capacity = capacity_of(p);
    o->open = true;
    for (uint32_t i = 0; i < o->schema->field_count; i++) {
        ck_column *c = ck_column_new(p->mem, ck_type_phys(o->schema->fields[i].type), capacity);
        if (!c || ck_plugin_write(&o->writers[i], p->mem, c, NULL) != CK_OK) {
            drop_writers(o);
            return ck_nomem(p->ctx->error, p->mem, capacity * sizeof(int64_t));
        }
        if (c->phys != CK_PHYS_VIEW && c->phys != CK_PHYS_BOOL) /* a column that is not written is 0, not anything */
            memset(c->data, 0, capacity * (c->phys == CK_PHYS_I128 ? 16u : 8u));
        o->writers[i].face.engine = p->face.engine;
        o->columns[i] = &o->writers[i].face;
    }
    o->face.count = 0;
    o->face.capacity = capacity;
    return CK_OK;
}

clink_emitter *ck_process_output(clink_context *c, uint32_t port) {
    ck_process *p = c->inside;
    if (port >= p->port_count) return NULL;
    ck_process_port *o = &p->ports[port];
    if (!o->open && open_writers(o) != CK_OK) {
        ck_process_fail(p, CK_NOMEM);
        return NULL;
    }
    return &o->face;
}

/* What the column's type does not allow is the plugin's fault. */
static ck_status check(ck_process_port *o, uint32_t i, const ck_column *c, uint32_t rows) {
    const ck_field *f = &o->schema->fields[i];
    const ck_plugin_operator *op = o->process->plan.op;
    ck_error *err = o->process->ctx->error;
    uint32_t row = 0;
    const char *what = NULL;
    for (uint32_t r = 0; !f->nullable && !what && r < rows; r++)
        if (!ck_bit_get(c->validity, r)) what = "NULL, and the column is NOT NULL";
    if (!what && !ck_plugin_fits(f->type, c, NULL, rows, &row))
        what = f->type->kind == CK_TYPE_VARCHAR ? "a text that is not UTF-8" : "a number out of range for its type";
    if (!what) return CK_OK;
    ck_fail(err, CK_DATA, "operator %s of plugin %s emitted %s in column %s", op->face->name, op->plugin, what,
            f->name);
    err->fatal = true;
    return CK_DATA;
}

static ck_status flush(ck_process_port *o) {
    ck_process *p = o->process;
    uint32_t rows = o->face.count, n = o->schema->field_count;
    ck_batch *b = rows ? ck_batch_new(p->mem, n, rows, false, false) : NULL;
    ck_status s = CK_OK;
    if (rows && !b) s = ck_nomem(p->ctx->error, p->mem, rows);
    for (uint32_t i = 0; s == CK_OK && rows && i < n; i++) {
        ck_column *c = ck_plugin_written(&o->writers[i]);
        if (!c) {
            s = ck_nomem(p->ctx->error, p->mem, sizeof(void *));
            break;
        }
        ck_plugin_round(o->schema->fields[i].type, c);
        s = check(o, i, c, rows);
        ck_batch_set_column(b, i, &c);
    }
    drop_writers(o);
    if (s == CK_OK && rows) s = ck_op_emit(p->ctx, o->port, &b);
    ck_batch_unref(&b);
    return s;
}

clink_status ck_process_flush(clink_emitter *face) {
    ck_process_port *o = port_of(face);
    ck_status s = flush(o);
    if (s == CK_OK) s = open_writers(o);
    return ck_process_fail(o->process, s);
}

ck_status ck_process_flush_all(ck_process *p) {
    for (uint32_t i = 0; i < p->port_count; i++)
        if (p->ports[i].open) CK_TRY(flush(&p->ports[i]));
    return CK_OK;
}

void ck_process_ports_destroy(ck_process *p) {
    for (uint32_t i = 0; p->ports && i < p->port_count; i++) drop_writers(&p->ports[i]);
}
