/* UNNEST against a weighted multiset of what it should give; one behaviour at a time; failing allocations. */
#include "operator/operators.h"

#include "operator/fixture_test_support.h"
#include "os/test_proc.h"

HARNESS_FIXTURE

#define LIST(type)                      "{\"col\":1,\"type\":\"" type "\",\"null\":true}"
#define TAGS                            "ARRAY<VARCHAR>"
#define PARAMS(type, ordinality, outer) "{\"expr\":" LIST(type) ",\"ordinality\":" #ordinality ",\"outer\":" #outer "}"

static uint64_t seed;
static int pick(int n) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int)((seed >> 33) % (unsigned)n);
}

typedef struct tags {      /* one row of the input */
    int id, count, weight; /* count -1: NULL */
    const char *at[8];     /* NULL: NULL */
} tags;

static ck_batch *tags_batch(harness *h, const tags *rows, uint32_t n) {
    ck_batch_builder b;
    assert_int_equal(ck_batch_builder_init(&b, h->mem, h->inputs[0].schema, n), CK_OK);
    for (uint32_t r = 0; r < n; r++) {
        ck_column_builder *list = &b.columns[1];
        assert_int_equal(ck_build_i64(&b.columns[0], rows[r].id), CK_OK);
        for (int i = 0; i < rows[r].count; i++) {
            const char *t = rows[r].at[i];
            assert_int_equal(t ? ck_build_str(list->children, t, strlen(t)) : ck_build_null(list->children), CK_OK);
        }
        assert_int_equal(rows[r].count < 0 ? ck_build_null(list) : ck_build_end(list), CK_OK);
        ck_batch_builder_row(&b, rows[r].weight);
    }
    ck_batch *out = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    assert_non_null(out);
    return out;
}

static void give(harness *h, ck_batch *b) {
    harness_ok(h, harness_event(h, 0, ck_event_batch(b)));
    ck_batch_unref(&b);
}

static const tags three[] = {{1, 3, 1, {"a", NULL, "longer than twelve bytes"}}, {2, 0, 1, {0}}, {3, -1, 1, {0}}};

static void null_and_empty_give_nothing(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "id BIGINT; l " TAGS, CK_MODE_APPEND);
    harness_start(h, &ck_op_unnest, PARAMS(TAGS, true, false), "id BIGINT; l " TAGS "; t VARCHAR; n BIGINT NOT NULL");
    give(h, tags_batch(h, three, 3));
    HARNESS_EXPECT(h, "+1|[\"a\",null,\"longer than twelve bytes\"]|a|1",
                   "+1|[\"a\",null,\"longer than twelve bytes\"]|NULL|2",
                   "+1|[\"a\",null,\"longer than twelve bytes\"]|longer than twelve bytes|3");
}

static void outer_keeps_them(void **state) {
    harness *h = &((fixture *)*state)->h;
    h->settings.batch_rows = 2;
    harness_input(h, "id BIGINT; l " TAGS, CK_MODE_APPEND);
    harness_start(h, &ck_op_unnest, PARAMS(TAGS, true, true), "id BIGINT; l " TAGS "; t VARCHAR; n BIGINT");
    give(h, tags_batch(h, three, 3));
    HARNESS_EXPECT(h, "+1|[\"a\",null,\"longer than twelve bytes\"]|a|1",
                   "+1|[\"a\",null,\"longer than twelve bytes\"]|NULL|2",
                   "+1|[\"a\",null,\"longer than twelve bytes\"]|longer than twelve bytes|3", "+2|[]|NULL|NULL",
                   "+3|NULL|NULL|NULL");
    assert_int_equal(h->largest_batch, 2);
}

static void an_entry_of_a_map_is_a_key_and_a_value(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "id BIGINT; m MAP<VARCHAR, BIGINT>", CK_MODE_APPEND);
    harness_start(h, &ck_op_unnest, PARAMS("MAP<VARCHAR, BIGINT>", false, true),
                  "id BIGINT; m MAP<VARCHAR, BIGINT>; k VARCHAR; v BIGINT");
    ck_batch_builder b;
    assert_int_equal(ck_batch_builder_init(&b, h->mem, h->inputs[0].schema, 2), CK_OK);
    ck_column_builder *map = &b.columns[1], *entry = map->children;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ck_build_str(&entry->children[0], i ? "b" : "a", 1), CK_OK);
        assert_int_equal(i ? ck_build_null(&entry->children[1]) : ck_build_i64(&entry->children[1], 5), CK_OK);
        assert_int_equal(ck_build_end(entry), CK_OK);
    }
    assert_int_equal(ck_build_end(map), CK_OK);
    assert_int_equal(ck_build_i64(&b.columns[0], 1), CK_OK);
    ck_batch_builder_row(&b, 1);
    assert_int_equal(ck_build_end(map), CK_OK); /* an empty one */
    assert_int_equal(ck_build_i64(&b.columns[0], 2), CK_OK);
    ck_batch_builder_row(&b, 1);
    ck_batch *batch = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    give(h, batch);
    HARNESS_EXPECT(h, "+1|{\"a\":5,\"b\":null}|a|5", "+1|{\"a\":5,\"b\":null}|b|NULL", "+2|{}|NULL|NULL");
}

static void an_array_of_rows_gives_their_fields(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "id BIGINT; r ARRAY<ROW<a BIGINT, b VARCHAR>>", CK_MODE_RETRACT);
    harness_start(h, &ck_op_unnest, PARAMS("ARRAY<ROW<a BIGINT, b VARCHAR>>", false, false),
                  "id BIGINT; r ARRAY<ROW<a BIGINT, b VARCHAR>>; a BIGINT; b VARCHAR");
    ck_batch_builder b;
    assert_int_equal(ck_batch_builder_init(&b, h->mem, h->inputs[0].schema, 1), CK_OK);
    ck_column_builder *list = &b.columns[1], *row = list->children;
    assert_int_equal(ck_build_i64(&row->children[0], 7), CK_OK);
    assert_int_equal(ck_build_str(&row->children[1], "x", 1), CK_OK);
    assert_int_equal(ck_build_end(row), CK_OK);
    assert_int_equal(ck_build_null(row), CK_OK);
    assert_int_equal(ck_build_end(list), CK_OK);
    assert_int_equal(ck_build_i64(&b.columns[0], 1), CK_OK);
    ck_batch_builder_row(&b, -1);
    ck_batch *batch = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    give(h, batch);
    assert_int_equal(h->line_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(h->lines[i].weight, -1);
        const char *end = i ? "|NULL|NULL" : "|7|x";
        assert_string_equal(h->lines[i].text + strlen(h->lines[i].text) - strlen(end), end);
    }
}

static void a_list_may_be_longer_than_any_batch(void **state) {
    harness *h = &((fixture *)*state)->h;
    enum { ELEMENTS = 70000 };
    harness_input(h, "id BIGINT; l ARRAY<BIGINT>", CK_MODE_APPEND);
    harness_start(h, &ck_op_unnest, "{\"expr\":" LIST("ARRAY<BIGINT>") ",\"ordinality\":true,\"unused\":[1]}",
                  "id BIGINT; l ARRAY<BIGINT>; v BIGINT; n BIGINT NOT NULL");
    h->keep_batches = true;
    ck_batch_builder b;
    assert_int_equal(ck_batch_builder_init(&b, h->mem, h->inputs[0].schema, 1), CK_OK);
    for (int64_t i = 0; i < ELEMENTS; i++) assert_int_equal(ck_build_i64(b.columns[1].children, -i), CK_OK);
    assert_int_equal(ck_build_end(&b.columns[1]), CK_OK);
    assert_int_equal(ck_build_i64(&b.columns[0], 1), CK_OK);
    ck_batch_builder_row(&b, 1);
    ck_batch *batch = ck_batch_builder_finish(&b);
    ck_batch_builder_destroy(&b);
    give(h, batch);
    int64_t next = 0;
    for (size_t i = 0; i < h->batch_count; i++)
        for (uint32_t r = 0; r < h->batches[i]->row_count; r++, next++) {
            assert_int_equal(h->batches[i]->columns[2]->i64[r], -next);
            assert_int_equal(h->batches[i]->columns[3]->i64[r], next + 1);
            assert_int_equal(h->batches[i]->columns[1]->offsets[r + 1], 0);
        }
    assert_int_equal(next, ELEMENTS);
    assert_int_equal(h->largest_batch, CK_BATCH_ROWS_MAX);
}

/* ---- random ---- */

static const char *const words[] = {NULL, "", "a", "bb", "longer than twelve bytes", "\xc3\xa9"};

static void one_case(uint64_t case_seed) {
    ck_test_proc proc;
    harness h, model = {0};
    seed = case_seed;
    bool outer = pick(2), retract = pick(2);
    ck_test_proc_init(&proc);
    harness_init(&h, &proc.proc);
    h.settings.batch_rows = (uint32_t[]){1, 3, 64, 4096}[pick(4)];
    harness_input(&h, "id BIGINT; l " TAGS, retract ? CK_MODE_RETRACT : CK_MODE_APPEND);
    harness_start(&h, &ck_op_unnest, outer ? PARAMS(TAGS, true, true) : PARAMS(TAGS, true, false),
                  "id BIGINT; l " TAGS "; t VARCHAR; n BIGINT");
    for (int step = pick(6); step >= 0; step--) {
        tags rows[50];
        uint16_t sel[50];
        uint32_t n = (uint32_t)pick(50) + 1, live = 0;
        for (uint32_t r = 0; r < n; r++) {
            rows[r] = (tags){.id = pick(4), .count = pick(8) - 1, .weight = retract && pick(2) ? -1 : 1};
            for (int i = 0; i < rows[r].count; i++) rows[r].at[i] = words[pick(CK_ARRAY_COUNT(words))];
            if (pick(3)) sel[live++] = (uint16_t)r;
        }
        for (uint32_t k = 0; k < live; k++) {
            const tags *t = &rows[sel[k]];
            char list[512] = "NULL", text[1024];
            if (t->count >= 0) snprintf(list, sizeof list, "[");
            for (int i = 0; i < t->count; i++)
                snprintf(list + strlen(list), sizeof list - strlen(list), t->at[i] ? "%s\"%s\"" : "%snull",
                         i ? "," : "", t->at[i]);
            if (t->count >= 0) strcat(list, "]");
            for (int i = 0; i < t->count; i++) {
                snprintf(text, sizeof text, "%d|%s|%s|%d", t->id, list, t->at[i] ? t->at[i] : "NULL", i + 1);
                harness_keep(&model, text, t->weight);
            }
            snprintf(text, sizeof text, "%d|%s|NULL|NULL", t->id, list);
            if (t->count <= 0 && outer) harness_keep(&model, text, t->weight);
        }
        ck_batch *all = tags_batch(&h, rows, n), *some = ck_batch_select(all, sel, live);
        ck_batch_unref(&all);
        give(&h, some);
    }
    harness_end(&h);
    assert_true(h.largest_batch <= h.settings.batch_rows);
    harness_net(&h);
    harness_net(&model);
    if (h.line_count != model.line_count) fail_msg("seed %llu", (unsigned long long)case_seed);
    for (size_t i = 0; i < model.line_count; i++)
        if (strcmp(h.lines[i].text, model.lines[i].text) != 0 || h.lines[i].weight != model.lines[i].weight)
            fail_msg("seed %llu: %+d %s, not %+d %s", (unsigned long long)case_seed, h.lines[i].weight, h.lines[i].text,
                     model.lines[i].weight, model.lines[i].text);
    harness_forget_lines(&model);
    free(model.lines);
    harness_destroy(&h);
    ck_test_proc_destroy(&proc);
}

static void random_lists_net_to_the_model(void **state) {
    (void)state;
    for (uint64_t s = 1; s <= 300; s++) one_case(s);
}

/* ---- failures ---- */

static ck_status scenario(harness *h, ck_batch *b) {
    h->spec.type = "unnest";
    h->spec.params = PARAMS(TAGS, true, true);
    h->desc = &ck_op_unnest;
    CK_TRY(h->desc->create(&h->spec, h->mem, &h->self, &h->error));
    ck_event ev = ck_event_batch(b);
    ck_status s;
    while ((s = h->desc->op->on_event(h->self, 0, &ev, &h->ctx)) == CK_MORE) harness_end_call(h);
    harness_end_call(h);
    return s;
}

static void running_out_of_memory_is_said(void **state) {
    fixture *f = *state;
    harness *h = &f->h;
    for (uint64_t n = 1;; n++) {
        harness_destroy(h);
        harness_init(h, &f->proc.proc);
        h->settings.batch_rows = 2;
        harness_input(h, "id BIGINT; l " TAGS, CK_MODE_RETRACT);
        h->spec.schema = harness_schema(h, "id BIGINT; l " TAGS "; t VARCHAR; n BIGINT");
        h->keep_batches = true;
        harness_context(h);
        ck_batch *b = tags_batch(h, three, 3);
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = scenario(h, b);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        ck_batch_unref(&b);
        if (s != (fired ? CK_NOMEM : CK_OK)) fail_msg("allocation %llu: %s", (unsigned long long)n, ck_status_name(s));
        if (!fired) return;
    }
}

static void bad_parameters_are_named(void **state) {
    harness *h = &((fixture *)*state)->h;
    harness_input(h, "id BIGINT; l " TAGS, CK_MODE_APPEND);
    static const char *const bad[][2] = {
        {"{\"expr\":3}", "\"expr\" must be"},
        {"{\"expr\":{\"col\":0,\"type\":\"BIGINT\",\"null\":true}}", "neither an ARRAY nor a MAP"},
        {"{\"expr\":{\"col\":7,\"type\":\"ARRAY<VARCHAR>\",\"null\":true}}", "\"expr\" must be"},
        {"{\"expr\":" LIST(TAGS) ",\"outer\":1}", "\"outer\" must be"},
        {"{\"expr\":" LIST(TAGS) ",\"left\":true}", "no parameter \"left\""},
        {"{\"expr\":" LIST(TAGS) "}", "its output"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_status s = harness_create(h, &ck_op_unnest, bad[i][0], "id BIGINT; l " TAGS);
        assert_true(s == CK_INVALID || s == CK_CORRUPT);
        if (!strstr(h->error.msg, bad[i][1])) fail_msg("%zu: %s", i, h->error.msg);
    }
    h->inputs[0].mode = CK_MODE_UPSERT;
    assert_int_equal(harness_create(h, &ck_op_unnest, PARAMS(TAGS, false, false), "id BIGINT; l " TAGS "; t VARCHAR"),
                     CK_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(null_and_empty_give_nothing),
        T(outer_keeps_them),
        T(an_entry_of_a_map_is_a_key_and_a_value),
        T(an_array_of_rows_gives_their_fields),
        T(a_list_may_be_longer_than_any_batch),
        T(random_lists_net_to_the_model),
        T(running_out_of_memory_is_said),
        T(bad_parameters_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
