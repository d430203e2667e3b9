/* What all accumulators share: planning by name, binding to the tables, looking groups up in side slots. */
#include "operator/accumulator.h"

#include "base/bytes.h"
#include "data/text.h"

enum { NAME_KEPT_MAX = 200 };

ck_status ck_acc_plan(ck_acc *a, ck_arena *arena, const ck_acc_scope *scope, ck_error *err) {
    if (a->plugin) return ck_acc_plan_plugin(a, arena, err);
    if (strcmp(a->name, "count_star") == 0 || strcmp(a->name, "count") == 0) {
        ck_acc_plan_count(a);
        return CK_OK;
    }
    if (strcmp(a->name, "sum") == 0) return ck_acc_plan_sum(a, arena, scope, err);
    if (strcmp(a->name, "moments") == 0) return ck_acc_plan_moments(a, arena, err);
    if (strcmp(a->name, "min") == 0 || strcmp(a->name, "max") == 0) return ck_acc_plan_minmax(a, arena, scope, err);
    if (strcmp(a->name, "ordered") == 0 || strcmp(a->name, "first") == 0 || strcmp(a->name, "last") == 0)
        return ck_acc_plan_values(a, arena, scope, err);
    if (strcmp(a->name, "distinct_sketch") == 0) return ck_acc_plan_sketch(a, arena, err);
    return ck_fail(err, CK_INVALID, "there is no accumulator \"%s\"", a->name);
}

ck_status ck_acc_open(ck_acc *a, ck_table *table, ck_op_ctx *ctx) {
    const ck_row_layout *layout = ck_table_layout(table);
    a->table = table;
    for (uint32_t i = 0; i < a->field_count; i++) {
        const ck_row_field *f = &layout->fields[layout->value_first + a->first_field + i];
        a->offset[i] = f->offset;
        a->null_bit[i] = f->null_bit;
    }
    a->error_null = ctx->settings->eval_error_null;
    if (!a->side) return CK_OK;
    CK_TRY(ck_state_table(ctx->state, a->side, &a->side_table, ctx->error));
    const ck_row_layout *side = ck_table_layout(a->side_table);
    a->side_offset = side->fields[side->value_first].offset;
    a->side_field = a->side->partition_count + a->within + a->value_at; /* the value's, where values are in order */
    return CK_OK;
}

const char *ck_name_cut(ck_arena *arena, const char *name) {
    size_t n = name ? strlen(name) : 0;
    if (n <= NAME_KEPT_MAX) return name;
    size_t keep = NAME_KEPT_MAX - 17;
    while (keep > 0 && ((unsigned char)name[keep] & 0xC0) == 0x80) keep--; /* not inside a character */
    return ck_arena_printf(arena, "%.*s~%016llx", (int)keep, name, (unsigned long long)ck_fnv1a(name, n));
}

const char *ck_slot_name(ck_arena *arena, const char *prefix, const char *text, ck_error *err) {
    ck_bytes b;
    ck_bytes_init(&b, arena->mem, SIZE_MAX);
    ck_status s = ck_bytes_str(&b, prefix);
    for (const char *p = text; s == CK_OK && *p; p++) {
        bool escape = *p == '|' || *p == '%' || *p == '\n';
        s = escape ? ck_bytes_printf(&b, "%%%02X", (unsigned)(unsigned char)*p) : ck_bytes_char(&b, *p);
    }
    const char *name = s == CK_OK ? ck_name_cut(arena, ck_arena_strndup(arena, b.p, b.n)) : NULL;
    ck_bytes_destroy(&b);
    if (!name) ck_nomem(err, arena->mem, NAME_KEPT_MAX);
    return name;
}

ck_slot_schema *ck_acc_side_slot(ck_arena *arena, const char *slot, const char *state_type, const ck_acc_scope *scope,
                                 const ck_order_field *order, uint32_t order_count, const char *value) {
    ck_slot_schema *s = CK_ARENA_NEW(arena, ck_slot_schema);
    ck_field *v = CK_ARENA_NEW(arena, ck_field);
    uint32_t n = scope->within_count;
    ck_order_field *all = ck_arena_array(arena, n + order_count + 1u, sizeof *all);
    if (!s || !v || !all) return NULL;
    for (uint32_t i = 0; i < n; i++) all[i] = scope->within[i];
    for (uint32_t i = 0; i < order_count; i++) all[n + i] = order[i];
    *v = (ck_field){value, ck_type_simple(CK_TYPE_BIGINT), false};
    *s = (ck_slot_schema){.slot = slot,
                          .state_type = state_type,
                          .version = 1,
                          .mode = CK_SLOT_KEYED,
                          .partition = scope->partition,
                          .partition_count = scope->partition_count,
                          .order = all,
                          .order_count = n + order_count,
                          .values = v,
                          .value_count = 1,
                          .hashed = n > 0,
                          .ttl_us = scope->ttl_us};
    return s;
}

uint64_t *ck_keys_hash(const ck_key_spec *spec, const ck_batch *b, const ck_table *t, ck_op_ctx *ctx) {
    uint64_t *hashes = ck_arena_alloc(ctx->arena, (b->sel_count + 1u) * sizeof *hashes);
    if (hashes)
        ck_key_hash(spec, b, ck_table_seed(t), hashes);
    else
        ck_nomem(ctx->error, ctx->mem, b->sel_count * sizeof *hashes);
    return hashes;
}

ck_status ck_groups_find(const ck_groups *g, ck_table *t, const ck_row **out, ck_op_ctx *ctx) {
    uint64_t *hashes = ck_keys_hash(g->spec, g->batch, t, ctx);
    if (!hashes) return CK_NOMEM;
    ck_keys k = {g->spec, g->batch, hashes, g->n};
    return ck_table_find(t, &k, out, ctx->error);
}

ck_status ck_rows_erase_zero(ck_table *t, ck_row *const *rows, uint32_t n, uint32_t offset, ck_op_ctx *ctx) {
    ck_row **zero = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (CK_LIKELY(ck_row_i64(rows[i], offset) != 0)) continue;
        if (!zero && !(zero = ck_arena_alloc(ctx->arena, n * sizeof *zero)))
            return ck_nomem(ctx->error, ctx->mem, n * sizeof *zero);
        ck_row_set_i64(rows[i], offset, INT64_MIN); /* so that a repeat is not listed again */
        zero[count++] = rows[i];
    }
    return count ? ck_table_erase(t, zero, count, ctx->error) : CK_OK;
}

/* "usr = alice, day = 3" of the key, cut to fit a sentence. */
static void print_key(const ck_groups *g, uint32_t i, ck_bytes *out) {
    const ck_batch *b = g->named ? g->named : g->batch;
    uint32_t row = ck_batch_row(b, i);
    for (uint32_t k = 0; k < g->spec->count && out->n < 200; k++) {
        const ck_column *c = b->columns[g->spec->columns[k]];
        if (ck_bytes_str(out, k ? ", " : "") != CK_OK) return;
        if (ck_print_value(g->spec->types[k], c, row, out) != CK_OK) return;
    }
}

/* "what is <is>, in the group of key (usr = alice)" as the error of the context: bad data, which comes again. */
static void fail_in_group(const char *what, const char *is, const ck_groups *g, uint32_t i, ck_op_ctx *ctx) {
    ck_bytes key;
    ck_bytes_init(&key, ctx->mem, 4096);
    print_key(g, i, &key);
    int n = key.n > 200 ? 200 : (int)key.n;
    ck_fail(ctx->error, CK_DATA, "%s is %s%s%.*s%s", what, is, n ? " in the group of key (" : "", n, n ? key.p : "",
            n ? ")" : "");
    ctx->error->fatal = true;
    ck_bytes_destroy(&key);
}

ck_status ck_acc_out_of_range(const char *what, const ck_type *type, const ck_groups *g, uint32_t i, ck_op_ctx *ctx) {
    const char *is = ck_arena_printf(ctx->arena, "out of range for %s", ck_type_name(ctx->arena, type));
    fail_in_group(what, is ? is : "out of range", g, i, ctx);
    return CK_DATA;
}

ck_status ck_acc_over_limit(const char *what, const char *limit, const ck_groups *g, uint32_t i, ck_op_ctx *ctx) {
    const char *is = ck_arena_printf(ctx->arena, "over %s", limit);
    fail_in_group(what, is ? is : "too large", g, i, ctx);
    return CK_DATA;
}
