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

/* As many rows as came in are likely to go out. */
static uint32_t capacity_of(const ck_process *p) {
    uint32_t most = p->ctx->settings->batch_rows, want = p->batch ? p->batch->sel_count : 0;
    if (want < CAPACITY_LEAST) want = CAPACITY_LEAST;
    return want < most ? want : most;
}

static ck_status open_rows(ck_process_port *o) {
    ck_process *p = o->process;
    uint32_t capacity = capacity_of(p);
    ck_status s = ck_plugin_rows_open(&o->rows, capacity);
    return s == CK_OK ? s : ck_nomem(p->ctx->error, p->mem, capacity * sizeof(int64_t));
}

clink_emitter *ck_process_output(clink_context *c, uint32_t port) {
    ck_process *p = c->inside;
    if (port >= p->port_count) return NULL;
    ck_process_port *o = &p->ports[port];
    if (!o->rows.open && open_rows(o) != CK_OK) {
        ck_process_fail(p, CK_NOMEM);
        return NULL;
    }
    return &o->rows.face;
}

static ck_status flush(ck_process_port *o) {
    ck_process *p = o->process;
    const ck_plugin_operator *op = p->plan.op;
    ck_batch *b;
    ck_status s = ck_plugin_rows_take(&o->rows, &b, p->ctx->error);
    if (s == CK_DATA) {
        ck_error_prefix(p->ctx->error, "operator %s of plugin %s ", op->face->name, op->plugin);
        p->ctx->error->fatal = true;
    }
    return s == CK_OK && b ? ck_op_emit(p->ctx, o->port, &b) : s;
}

clink_status ck_process_flush(clink_emitter *face) {
    ck_process_port *o = port_of(face);
    ck_status s = flush(o);
    if (s == CK_OK) s = open_rows(o);
    return ck_process_fail(o->process, s);
}

ck_status ck_process_flush_all(ck_process *p) {
    for (uint32_t i = 0; i < p->port_count; i++)
        if (p->ports[i].rows.open) CK_TRY(flush(&p->ports[i]));
    return CK_OK;
}

void ck_process_ports_destroy(ck_process *p) {
    for (uint32_t i = 0; p->ports && i < p->port_count; i++) ck_plugin_rows_drop(&p->ports[i].rows);
}
