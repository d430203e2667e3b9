/* The `datagen` source: rows made from their number and a seed. Every value is a function of (seed, column, row
 * number), so that the same rows come at any parallelism and after any restart. Split i of n makes the rows i, i + n, i
 * + 2n ... */
#include <stdio.h>

#include "connector/connectors.h"

#include "base/hash.h"
#include "connector/pacer.h"
#include "connector/row_splits.h"
#include "connector/table.h"
#include "data/builder.h"
#include "data/text.h"
#include "os/clock.h"

enum { LENGTH_DEFAULT = 8, LENGTH_MAX = 65536 };

typedef struct generator { /* of one column */
    const ck_type *type;
    bool sequence;
    bool ranged;    /* min or max was given */
    int64_t lo, hi; /* unscaled for decimals */
    double flo, fhi;
    uint64_t step; /* of a sequence */
    uint32_t length;
    uint64_t seed;
} generator;

typedef struct datagen {
    ck_mem mem;
    ck_arena arena;
    ck_source_table table;
    generator *columns; /* of the table; those that are wanted are set */
    ck_event_time event_time;
    ck_pacer pacer;
    ck_row_splits splits;
    char *text; /* LENGTH_MAX */
} datagen;

/* ---- options ---- */

static const char *column_option(const ck_table_options *o, const char *column, const char *what) {
    size_t n = strlen(column);
    for (uint32_t i = 0; i < o->count; i++) {
        const char *name = o->names[i];
        if (strncmp(name, "fields.", 7) != 0 || strlen(name) != 7 + n + 1 + strlen(what)) continue;
        if (ck_view_eq_nocase((ck_view){name + 7, n}, (ck_view){column, n}) && name[7 + n] == '.' &&
            strcmp(name + 8 + n, what) == 0)
            return o->values[i];
    }
    return NULL;
}

static bool parse_bound(const ck_type *t, const char *text, generator *g, bool high) {
    ck_view v = ck_view_of(text);
    bool zoned, overflow;
    ck_i128 wide;
    int64_t *out = high ? &g->hi : &g->lo;
    switch (t->kind) {
    case CK_TYPE_DATE: return ck_parse_date(v, out);
    case CK_TYPE_TIME: return ck_parse_time(v, out);
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: return ck_parse_timestamp(v, out, &zoned);
    case CK_TYPE_REAL:
    case CK_TYPE_DOUBLE: return ck_parse_f64(v, high ? &g->fhi : &g->flo);
    case CK_TYPE_DECIMAL:
        if (!ck_parse_decimal(v, t->precision, t->scale, &wide, &overflow) || overflow) return false;
        *out = (int64_t)wide;
        return wide == *out;
    default: return ck_parse_i64(v, out);
    }
}

static void default_bounds(generator *g) {
    int64_t lo, hi;
    bool timestamp = g->type->kind == CK_TYPE_TIMESTAMP || g->type->kind == CK_TYPE_TIMESTAMP_LTZ;
    g->fhi = 1;
    g->hi = g->sequence ? INT64_MAX : INT32_MAX;
    g->step = timestamp ? 1000000 : 1;
    switch (g->type->kind) {
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER:
        ck_kind_int_range(g->type->kind, &lo, &hi);
        g->hi = hi;
        break;
    case CK_TYPE_DATE: g->hi = 36524; break;
    case CK_TYPE_TIME: g->hi = 86400000000LL - 1; break;
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: g->hi = 1893456000000000LL; break; /* 2030 */
    case CK_TYPE_DECIMAL:
        g->hi = 1;
        for (int i = 0; i < g->type->precision && i < (g->sequence ? 18 : 9); i++) g->hi *= 10;
        g->hi--;
        break;
    default: break;
    }
}

static ck_status check_range(const generator *g, const char *column, bool max_given, ck_error *err) {
    int64_t lo = INT64_MIN, hi = INT64_MAX;
    if (ck_kind_is_integer(g->type->kind)) ck_kind_int_range(g->type->kind, &lo, &hi);
    bool fits = g->lo <= g->hi && g->flo <= g->fhi && g->lo >= lo && g->hi <= hi;
    return fits ? CK_OK
                : ck_fail(err, CK_INVALID, "option 'fields.%s.%s': min to max is not a range of %s", column,
                          max_given ? "max" : "min", ck_kind_is_float(g->type->kind) ? "numbers" : "the column's type");
}

/* A text is as long as its column at most: what is not said is made to fit, what is said has to. */
static ck_status fit_text(generator *g, const ck_field *f, bool length_given, bool max_given, ck_error *err) {
    size_t most = f->type->precision > 0 ? (size_t)f->type->precision : SIZE_MAX;
    char digits[24], type[64];
    if (f->type->kind != CK_TYPE_VARCHAR && f->type->kind != CK_TYPE_BYTES) return CK_OK;
    (void)snprintf(type, sizeof type, "%s(%zu)", f->type->kind == CK_TYPE_BYTES ? "VARBINARY" : "VARCHAR", most);
    if (g->length > most && length_given)
        return ck_fail(err, CK_INVALID, "option 'fields.%s.length' is %u, and the column is %s", f->name, g->length,
                       type);
    if (g->length > most) g->length = (uint32_t)most;
    for (int64_t hi = 9; !max_given && most < 19 && hi < g->hi; hi = hi * 10 + 9)
        if (ck_print_i64(digits, hi) == most) g->hi = hi;
    bool numbers = g->sequence || g->ranged;
    if (numbers && (ck_print_i64(digits, g->hi) > most || ck_print_i64(digits, g->lo) > most))
        return ck_fail(err, CK_INVALID, "option 'fields.%s.%s': the range has texts that are longer than %s", f->name,
                       max_given ? "max" : "min", type);
    return CK_OK;
}

static ck_status read_generator(generator *g, const ck_table_options *o, const ck_field *f, ck_error *err) {
    const char *kind = column_option(o, f->name, "kind"), *min = column_option(o, f->name, "min"),
               *max = column_option(o, f->name, "max"), *length = column_option(o, f->name, "length"),
               *step = column_option(o, f->name, "step");
    g->type = f->type;
    ck_phys phys = ck_type_phys(f->type);
    if (phys == CK_PHYS_LIST || phys == CK_PHYS_STRUCT || f->type->kind == CK_TYPE_NULL)
        return ck_fail(err, CK_INVALID, "datagen cannot make values for column %s", f->name);
    if (kind && strcmp(kind, "random") != 0 && strcmp(kind, "sequence") != 0)
        return ck_fail(err, CK_INVALID, "option 'fields.%s.kind' is '%s', which is neither random nor sequence",
                       f->name, kind);
    g->sequence = kind && strcmp(kind, "sequence") == 0;
    g->ranged = min || max;
    default_bounds(g);
    if (min && !parse_bound(f->type, min, g, false))
        return ck_fail(err, CK_INVALID, "option 'fields.%s.min' is '%s', which is not a value of the column", f->name,
                       min);
    if (max && !parse_bound(f->type, max, g, true))
        return ck_fail(err, CK_INVALID, "option 'fields.%s.max' is '%s', which is not a value of the column", f->name,
                       max);
    int64_t by = (int64_t)g->step, n = LENGTH_DEFAULT;
    if (step && (!ck_parse_i64(ck_view_of(step), &by) || by < 1))
        return ck_fail(err, CK_INVALID, "option 'fields.%s.step' is '%s', which is not a whole number of at least 1",
                       f->name, step);
    g->step = (uint64_t)by;
    if (length && (!ck_parse_i64(ck_view_of(length), &n) || n < 0 || n > LENGTH_MAX))
        return ck_fail(err, CK_INVALID, "option 'fields.%s.length' is '%s', which is not a whole number from 0 to %d",
                       f->name, length, LENGTH_MAX);
    g->length = (uint32_t)n;
    if (length && f->type->kind != CK_TYPE_VARCHAR)
        return ck_fail(err, CK_INVALID, "option 'fields.%s.length' is for texts, and the column is none", f->name);
    CK_TRY(fit_text(g, f, length != NULL, max != NULL, err));
    if (step && !g->sequence)
        return ck_fail(err, CK_INVALID, "option 'fields.%s.step' is for a column of kind = 'sequence'", f->name);
    return check_range(g, f->name, max != NULL, err);
}

/* Per-column options must name a column: a typo is not ignored. */
static ck_status check_names(const ck_table_options *o, const ck_schema *s, ck_error *err) {
    for (uint32_t i = 0; i < o->count; i++) {
        const char *name = o->names[i], *dot = strrchr(name, '.');
        if (strncmp(name, "fields.", 7) != 0) continue;
        size_t n = dot > name + 6 ? (size_t)(dot - name) - 7 : 0;
        bool known = false;
        for (uint32_t c = 0; !known && c < s->field_count; c++)
            known = ck_view_eq_nocase((ck_view){name + 7, n}, ck_view_of(s->fields[c].name));
        if (!known) return ck_fail(err, CK_INVALID, "option '%s' names no column of the table", name);
    }
    return CK_OK;
}

/* Options of the whole table. */
typedef struct table_options {
    int64_t rows, seed; /* rows -1: for ever */
    double rate;
} table_options;

static ck_status read_options(const ck_table_options *o, const ck_schema *s, table_options *out, ck_error *err) {
    CK_TRY(check_names(o, s, err));
    CK_TRY(ck_option_i64(o, "rows", -1, 0, INT64_MAX, &out->rows, err));
    CK_TRY(ck_option_i64(o, "seed", 1, INT64_MIN, INT64_MAX, &out->seed, err));
    CK_TRY(ck_option_f64(o, "rate_limit", 0, &out->rate, err));
    return out->rate < 0 ? ck_fail(err, CK_INVALID, "option 'rate_limit' is negative") : CK_OK;
}

static ck_status datagen_init(datagen *d, const ck_op_spec *spec, ck_error *err) {
    table_options all;
    CK_TRY(ck_source_table_read(&d->arena, spec, &d->table, err));
    const ck_table_options *o = &d->table.options;
    CK_TRY(read_options(o, d->table.schema, &all, err));
    d->splits = (ck_row_splits){
        d->mem, &d->arena, &d->event_time, all.rows < 0 ? UINT64_MAX : (uint64_t)all.rows, NULL, 0, 0, 0};
    d->pacer = ck_pacer_of(all.rate, spec);
    d->columns = ck_arena_array(&d->arena, d->table.schema->field_count + 1u, sizeof *d->columns);
    d->text = ck_arena_alloc(&d->arena, LENGTH_MAX);
    if (!d->columns || !d->text) return ck_nomem(err, d->arena.mem, LENGTH_MAX);
    for (uint32_t i = 0; i < d->table.schema->field_count; i++) {
        if (!d->table.wanted[i]) continue;
        /* The seed is of the table's column, not of the query's: pruning changes no value. */
        d->columns[i].seed = ck_hash_combine(ck_mix64((uint64_t)all.seed), i);
        CK_TRY(read_generator(&d->columns[i], o, &d->table.schema->fields[i], err));
    }
    CK_TRY(ck_event_time_init(&d->event_time, d->table.event_time, spec, &d->arena, d->mem, err));
    return CK_OK;
}

static void datagen_free(datagen *d) {
    ck_pacer_share(&d->pacer, false);
    ck_event_time_destroy(&d->event_time);
    ck_row_splits_destroy(&d->splits);
    ck_arena_destroy(&d->arena);
    ck_free(d->mem, d, sizeof *d);
}

static ck_status datagen_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    datagen *d = ck_alloc_zero(mem, sizeof *d);
    if (!d) return ck_nomem(err, mem, sizeof *d);
    d->mem = mem;
    ck_arena_init(&d->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = datagen_init(d, spec, err);
    if (s == CK_OK)
        *self = d;
    else
        datagen_free(d);
    return s;
}

/* ---- splits ---- */

static ck_status datagen_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    return ck_row_splits_enumerate(spec, parallelism, out, err);
}

static ck_status datagen_add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    datagen *d = self;
    CK_TRY(ck_row_splits_add(&d->splits, split, ctx));
    if (ck_row_splits_left(&d->splits)) ck_pacer_share(&d->pacer, true);
    return CK_OK;
}

static ck_status datagen_snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    return ck_row_splits_snapshot(&((datagen *)self)->splits, out, ctx);
}

/* ---- values ---- */

static uint64_t random_below(uint64_t r, uint64_t span) { /* [0, span]; span UINT64_MAX: any */
    __extension__ typedef unsigned __int128 u128;
    return span == UINT64_MAX ? r : (uint64_t)((u128)r * (span + 1) >> 64);
}

static int64_t int_value(const generator *g, uint64_t row) {
    uint64_t span = (uint64_t)g->hi - (uint64_t)g->lo;
    uint64_t at = row * g->step;
    uint64_t r = !g->sequence         ? random_below(ck_hash_u64(g->seed, row), span)
                 : span == UINT64_MAX ? at
                                      : at % (span + 1);
    return (int64_t)((uint64_t)g->lo + r);
}

static ck_status text_value(const generator *g, uint64_t row, char *text, ck_column_builder *b) {
    if (g->sequence || g->ranged) { /* a number in the range, with zeros in front */
        char digits[24];
        size_t n = ck_print_i64(digits, int_value(g, row)), pad = n < g->length ? g->length - n : 0;
        memset(text, '0', pad);
        memcpy(text + pad, digits, n);
        return ck_build_str(b, text, pad + n);
    }
    uint64_t r = ck_hash_u64(g->seed, row);
    for (uint32_t i = 0; i < g->length; i++) {
        if (i > 0 && i % 8 == 0) r = ck_mix64(r + i);
        text[i] = (char)('a' + (r >> (i % 8 * 8) & 0xFF) % 26);
    }
    return ck_build_str(b, text, g->length);
}

static bool is_time(const ck_type *t) {
    return t->kind == CK_TYPE_TIME || t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ;
}

static ck_status one_value(const generator *g, uint64_t row, char *text, ck_column_builder *b) {
    switch (b->phys) {
    case CK_PHYS_BOOL: return ck_build_bool(b, g->sequence ? row & 1 : ck_hash_u64(g->seed, row) >> 63);
    case CK_PHYS_I64: {
        int64_t v = int_value(g, row);
        return ck_build_i64(b, is_time(g->type) ? ck_time_at_precision(g->type->precision, v) : v);
    }
    case CK_PHYS_I128: return ck_build_i128(b, int_value(g, row));
    case CK_PHYS_F64: {
        double unit = (double)(ck_hash_u64(g->seed, row) >> 11) * 0x1p-53;
        double v = g->sequence ? g->flo + (double)row * (double)g->step : g->flo + unit * (g->fhi - g->flo);
        return ck_build_f64(b, g->type->kind == CK_TYPE_REAL ? (double)(float)v : v);
    }
    default: return text_value(g, row, text, b);
    }
}

/* The next n rows of a split, columns that nobody wants left out. */
static ck_status make_batch(const datagen *d, const ck_row_split *s, uint32_t n, ck_batch **out, ck_op_ctx *ctx) {
    const ck_schema *schema = d->table.schema;
    ck_batch_builder b;
    ck_status status = ck_batch_builder_init(&b, ctx->mem, schema, n);
    for (uint32_t c = 0; status == CK_OK && c < schema->field_count; c++)
        for (uint32_t i = 0; d->table.wanted[c] && status == CK_OK && i < n; i++)
            status = one_value(&d->columns[c], s->next + i * s->step, d->text, &b.columns[c]);
    for (uint32_t i = 0; status == CK_OK && i < n; i++) ck_batch_builder_row(&b, 1);
    *out = status == CK_OK ? ck_batch_builder_finish(&b) : NULL;
    ck_batch_builder_destroy(&b);
    return *out ? CK_OK : ck_nomem(ctx->error, ctx->mem, n * sizeof(ck_strview));
}

static ck_status datagen_poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    datagen *d = self;
    int64_t now = ck_mono_us(ctx->proc);
    *result = CK_POLL_IDLE;
    if (!ck_pacer_ready(&d->pacer, now, until_us)) return CK_OK;
    uint32_t n = ck_pacer_rows(&d->pacer, ctx->settings->batch_rows);
    ck_row_split *s = ck_row_splits_next(&d->splits, &n);
    *result = s ? CK_POLL_MORE : CK_POLL_END;
    ck_pacer_share(&d->pacer, s != NULL);
    if (!s) return CK_OK;
    ck_batch *b = NULL;
    CK_TRY(make_batch(d, s, n, &b, ctx));
    ck_batch *out = ck_source_output(&d->table, b);
    ck_status status = out ? ck_event_time_see(&d->event_time, s->clock, b, ctx)
                           : ck_nomem(ctx->error, ctx->mem, d->table.column_count * sizeof(ck_column *));
    ck_batch_unref(&b);
    if (status != CK_OK) {
        ck_batch_unref(&out);
        return status;
    }
    ck_row_splits_took(&d->splits, s, n);
    ck_pacer_took(&d->pacer, now, n);
    ck_op_count(ctx, "rows_in", n);
    CK_TRY(ck_op_emit(ctx, 0, &out));
    return ck_event_time_say(&d->event_time, ctx);
}

static void datagen_close(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    datagen_free(self);
}

static const ck_source_vtbl datagen_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl),
    .add_split = datagen_add_split,
    .poll = datagen_poll,
    .snapshot = datagen_snapshot,
    .close = datagen_close,
};

const ck_op_desc ck_op_source_datagen = {
    .type = "source.datagen",
    .source = &datagen_vtbl,
    .create = datagen_create,
    .enumerate = datagen_enumerate,
    .again = ck_source_again,
    .rewind = ck_row_splits_rewind,
};

/* ---- the connector ---- */

static const ck_option_desc datagen_options[] = {
    {"rows", "integer", NULL, "how many rows; without it they never end"},
    {"rate_limit", "text", NULL, "rows a second for the whole table"},
    {"seed", "integer", "1", "another seed, other random values"},
    {"fields.*.kind", "random|sequence", "random", "how the column's values come"},
    {"fields.*.min", "text", "0", "least value; with min or max, texts are numbers"},
    {"fields.*.max", "text", NULL, "greatest value; a sequence begins again after it"},
    {"fields.*.step", "integer", "1", "distance of a sequence's values; of timestamps in microseconds, 1000000"},
    {"fields.*.length", "integer", "8", "characters of a text"},
};

static ck_status datagen_check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    if (as_sink) return ck_fail(err, CK_INVALID, "datagen only makes rows, it does not take any");
    table_options all;
    CK_TRY(read_options(&t->options, t->schema, &all, err));
    for (uint32_t i = 0; i < t->schema->field_count; i++) {
        generator g = {0};
        CK_TRY(read_generator(&g, &t->options, &t->schema->fields[i], err));
    }
    return CK_OK;
}

static bool datagen_bounded(const ck_table_decl *t) { return ck_option_text(&t->options, "rows", NULL) != NULL; }

const ck_connector_desc ck_connector_datagen = {
    .name = "datagen",
    .options = datagen_options,
    .option_count = CK_ARRAY_COUNT(datagen_options),
    .source_type = "source.datagen",
    .check = datagen_check,
    .bounded = datagen_bounded,
};
