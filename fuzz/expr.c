/* Expressions as JSON: what is accepted comes back equal through print and JSON, compiles, and runs over a few rows
 * with and without a selection, all without harm and without leaving memory behind. */
#include "fuzz.h"

#include <yyjson.h>

#include "base/json.h"
#include "data/builder.h"
#include "expr/program.h"

enum { COLUMNS = 6, ROWS = 5, MEMORY_BYTES = 256 << 20 };

static const ck_kind kinds[COLUMNS] = {CK_TYPE_BIGINT,  CK_TYPE_DOUBLE,    CK_TYPE_VARCHAR,
                                       CK_TYPE_BOOLEAN, CK_TYPE_TIMESTAMP, CK_TYPE_DATE};

static ck_status put(ck_column_builder *b, ck_kind k, int row) {
    static const char *const texts[ROWS] = {"", "12", "a&channel_id=x", "a text that is longer than twelve",
                                            "2024-02-29"};
    static const int64_t numbers[ROWS] = {0, 1, -1, INT64_MAX, 1700000000};
    if (row == 3 && k != CK_TYPE_VARCHAR) return ck_build_null(b);
    switch (k) {
    case CK_TYPE_DOUBLE: return ck_build_f64(b, row == 2 ? __builtin_nan("") : row * 1.5);
    case CK_TYPE_VARCHAR: return ck_build_str(b, texts[row], strlen(texts[row]));
    case CK_TYPE_BOOLEAN: return ck_build_bool(b, row & 1);
    case CK_TYPE_DATE: return ck_build_i64(b, row * 5000);
    default: return ck_build_i64(b, numbers[row]);
    }
}

static ck_batch *make_batch(ck_mem mem) {
    ck_batch *b = ck_batch_new(mem, COLUMNS, ROWS, false, false);
    for (uint32_t c = 0; c < COLUMNS; c++) {
        ck_column_builder cb;
        CK_ASSERT(ck_column_builder_init(&cb, mem, ck_type_simple(kinds[c]), ROWS) == CK_OK);
        for (int r = 0; r < ROWS; r++) CK_ASSERT(put(&cb, kinds[c], r) == CK_OK);
        ck_column *col = ck_column_builder_finish(&cb);
        ck_batch_set_column(b, c, &col);
        ck_column_builder_destroy(&cb);
    }
    return b;
}

static void check_round_trip(ck_arena *a, const ck_expr *e) {
    yyjson_mut_doc *doc;
    yyjson_mut_val *v;
    yyjson_doc *again;
    ck_view text;
    ck_expr *back;
    ck_error err = CK_ERROR_INIT;
    CK_ASSERT(ck_json_new(a, &doc, &err) == CK_OK && ck_expr_to_json(e, doc, &v) == CK_OK);
    yyjson_mut_doc_set_root(doc, v);
    CK_ASSERT(ck_json_write(a, doc, &text, &err) == CK_OK && ck_json_read(a, text, &again, &err) == CK_OK);
    CK_ASSERT(ck_expr_from_json(a, NULL, yyjson_doc_get_root(again), &back, &err) == CK_OK);
    CK_ASSERT(ck_expr_equal(e, back));
}

static void run(ck_arena *a, ck_mem mem, ck_expr *e) {
    ck_batch *all = make_batch(mem);
    static const uint16_t some[] = {1, 2, 4};
    ck_batch *few = ck_batch_select(all, some, 3);
    ck_error err = CK_ERROR_INIT;
    ck_program *p;
    ck_eval *ev = NULL;
    const ck_eval_options o = {.mem = mem};
    ck_status s = ck_program_compile(a, &e, 1, &p, &err);
    if (s == CK_OK) s = ck_eval_new(p, &o, &ev, &err);
    for (int round = 0; s == CK_OK && round < 2; round++) {
        ck_batch *b = round ? few : all;
        ck_column *out = NULL;
        uint16_t sel[ROWS];
        uint32_t n;
        if (ck_eval_run(ev, b, &out, &err) == CK_OK) CK_ASSERT(out->length >= b->row_count && !out->err);
        ck_column_unref(&out);
        if (e->type->kind == CK_TYPE_BOOLEAN && ck_eval_filter(ev, b, sel, &n, &err) == CK_OK)
            CK_ASSERT(n <= b->sel_count);
    }
    ck_eval_free(ev);
    ck_batch_unref(&few);
    ck_batch_unref(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_mem mem = {&budget, CK_MEM_PLAN};
    ck_arena a;
    ck_arena_init(&a, mem, 64 << 20);
    ck_field fields[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) fields[c] = (ck_field){"c", ck_type_simple(kinds[c]), true};
    const ck_schema schema = {fields, COLUMNS};
    yyjson_doc *doc;
    ck_expr *e;
    ck_error err = CK_ERROR_INIT;
    if (ck_json_read(&a, (ck_view){(const char *)data, size}, &doc, &err) == CK_OK) {
        ck_status s = ck_expr_from_json(&a, NULL, yyjson_doc_get_root(doc), &e, &err);
        CK_ASSERT(s == CK_OK || s == CK_CORRUPT || s == CK_NOMEM);
        if (s == CK_OK) check_round_trip(&a, e);
        budget.limit = MEMORY_BYTES; /* REPEAT and its like ask for what they want */
        if (s == CK_OK && ck_expr_check_columns(e, &schema, &err) == CK_OK) run(&a, mem, e);
    }
    ck_arena_destroy(&a);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
