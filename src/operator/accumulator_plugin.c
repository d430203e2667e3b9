/* Aggregates of plugins: their state fields stand in the group's row like those of any accumulator, and the plugin
 * reads and writes them there. Texts alone go through the table, which keeps them. */
#include "expr/library.h"
#include "expr/plugin_column.h"
#include "operator/accumulator.h"

typedef struct some_groups {
    clink_groups face; /* first: what the plugin is given */
    ck_acc *acc;
    ck_table *table;
    ck_status status; /* of the first text that could not be written */
} some_groups;

static bool is_text(const ck_acc *a, uint32_t field) { return ck_type_phys(a->fields[field].type) == CK_PHYS_VIEW; }

static uint32_t table_field(const ck_acc *a, uint32_t field) {
    return ck_table_layout(a->table)->value_first + a->first_field + field;
}

static clink_bytes state_text(const clink_groups *g, uint32_t i, uint32_t field) {
    const some_groups *s = (const some_groups *)g;
    const ck_acc *a = s->acc;
    if (field >= a->field_count || !is_text(a, field) || ck_row_null(g->states[i], a->null_bit[field]))
        return (clink_bytes){"", 0};
    ck_view v = ck_table_str(s->table, g->states[i], table_field(a, field));
    return (clink_bytes){v.p, v.n};
}

static clink_status set_state_text(const clink_groups *g, uint32_t i, uint32_t field, const char *p, size_t n) {
    some_groups *s = (some_groups *)(uintptr_t)g;
    if (field >= s->acc->field_count || !is_text(s->acc, field)) return CLINK_INVALID;
    ck_status st = ck_table_set_str(s->table, g->states[i], table_field(s->acc, field), (ck_view){p, n});
    if (s->status == CK_OK) s->status = st;
    return st == CK_OK ? CLINK_OK : CLINK_NOMEM;
}

static const clink_engine_table engine = {.struct_bytes = sizeof engine,
                                          .abi = CLINK_PLUGIN_ABI,
                                          .grow = ck_plugin_grow,
                                          .state_text = state_text,
                                          .set_state_text = set_state_text};

static some_groups groups_of(ck_acc *a, ck_table *table, ck_row *const *rows, uint32_t n) {
    return (some_groups){.face = {.struct_bytes = sizeof(clink_groups),
                                  .count = n,
                                  .states = (uint8_t *const *)rows,
                                  .offsets = a->offset,
                                  .engine = &engine},
                         .acc = a,
                         .table = table};
}

/* The sentence for a call that failed. */
static ck_status said(const ck_acc *a, const char *what, const some_groups *g, clink_status s, const clink_error *e,
                      ck_op_ctx *ctx) {
    const ck_plugin_aggregate *p = a->plugin;
    if (g->status != CK_OK) return ck_nomem(ctx->error, ctx->mem, 0);
    if (s == CLINK_OK) return CK_OK;
    ck_status st = ck_fail(ctx->error, ck_plugin_status(s), "%s of plugin %s, %s: %s", p->face->name, p->plugin, what,
                           e->message[0] ? e->message : "it failed and did not say why");
    ctx->error->fatal = st == CK_DATA;
    return st;
}

static ck_status update(ck_acc *a, const ck_lane *lane, const ck_batch *b, const ck_key_spec *keys, ck_op_ctx *ctx) {
    (void)keys;
    const clink_aggregate *f = a->plugin->face;
    some_groups g = groups_of(a, a->table, lane->rows, lane->n);
    ck_plugin_reader values = {0};
    clink_error e = {0};
    if (lane->n == 0) return CK_OK;
    if (a->arg >= 0 && ck_plugin_read(&values, ctx->mem, b->columns[a->arg], false, NULL) != CK_OK)
        return ck_nomem(ctx->error, ctx->mem, sizeof(void *));
    clink_status s = f->add(&g.face, a->arg >= 0 ? &values.view : NULL, lane->at, lane->weights, &e);
    ck_plugin_reader_destroy(&values, ctx->mem);
    return said(a, "adding", &g, s, &e, ctx);
}

static ck_status merge(ck_acc *a, ck_row *const *dst, ck_table *from, const ck_groups *src, const ck_batch *dst_keys,
                       ck_op_ctx *ctx) {
    (void)dst_keys;
    some_groups to = groups_of(a, a->table, dst, src->n);
    some_groups of = groups_of(a, from, (ck_row *const *)(uintptr_t)src->rows, src->n);
    clink_error e = {0};
    clink_status s = a->plugin->face->merge(&to.face, &of.face, &e);
    return said(a, "merging", &to, s, &e, ctx);
}

static ck_status check(const ck_acc *a, const ck_type *type, const ck_column *c, uint32_t n, const ck_groups *g,
                       ck_op_ctx *ctx) {
    uint32_t row = 0;
    if (ck_plugin_fits(type, c, NULL, n, &row)) return CK_OK;
    if (c->phys != CK_PHYS_VIEW) return ck_acc_out_of_range(a->field, type, g, row, ctx);
    ctx->error->fatal = true;
    return ck_fail(ctx->error, CK_DATA, "%s of plugin %s gave %s", a->plugin->face->name, a->plugin->plugin,
                   ck_plugin_misfit(type, c, row));
}

static ck_status value(ck_acc *a, const ck_groups *g, const ck_type *type, ck_column **out, ck_op_ctx *ctx) {
    some_groups of = groups_of(a, a->table, (ck_row *const *)(uintptr_t)g->rows, g->n);
    ck_column *col = ck_column_new(ctx->mem, ck_type_phys(type), g->n);
    ck_plugin_writer w;
    clink_error e = {0};
    *out = NULL;
    if (!col || ck_plugin_write(&w, ctx->mem, col, NULL) != CK_OK)
        return ck_nomem(ctx->error, ctx->mem, g->n * sizeof(int64_t));
    w.face.engine = &engine;
    clink_status s = a->plugin->face->result(&of.face, &w.face, &e);
    ck_status st = said(a, "its result", &of, s, &e, ctx);
    if (st == CK_OK && !(*out = ck_plugin_written(&w))) st = ck_nomem(ctx->error, ctx->mem, sizeof(void *));
    ck_plugin_writer_destroy(&w);
    if (st != CK_OK) return st;
    ck_plugin_round(type, *out);
    st = check(a, type, *out, g->n, g, ctx);
    if (st != CK_OK) ck_column_unref(out);
    return st;
}

ck_status ck_acc_plan_plugin(ck_acc *a, ck_arena *arena, ck_error *err) {
    const clink_aggregate *f = a->plugin->face;
    if (a->retract && !f->takes_back)
        return ck_fail(err, CK_INVALID, "%s: its input changes, and what it has taken cannot be taken back", a->field);
    CK_ASSERT(f->state_count <= CK_ACC_FIELDS_MAX);
    for (uint32_t i = 0; i < f->state_count; i++) {
        const char *name = ck_arena_printf(arena, "%s.%s", a->field, f->state[i].name);
        if (!name) return ck_nomem(err, arena->mem, CK_NAME_BYTES_MAX);
        const ck_type *t = a->plugin->state[i];
        a->fields[i] = (ck_field){ck_name_cut(arena, name), t, ck_type_phys(t) == CK_PHYS_VIEW};
        if (!a->fields[i].name) return ck_nomem(err, arena->mem, CK_NAME_BYTES_MAX);
    }
    a->field_count = f->state_count;
    a->update = update;
    a->merge = merge;
    a->value = value;
    return CK_OK;
}
