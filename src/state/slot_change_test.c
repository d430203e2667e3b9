/* Schemas against each other by rule, and stored rows that become rows of another schema. */
#include "state/slot_change.h"

#include "state/schemas_test_support.h"
#include "state/state.h"

/* "name:type name:type", type one of s i b (SMALLINT, INTEGER, BIGINT), v, 9 (VARCHAR(9)), d (DOUBLE); '!' NOT NULL. */
static const ck_field *fields_of(fixture *f, const char *text, uint32_t *count) {
    ck_field *fields = ck_arena_array(&f->arena, 8, sizeof *fields);
    for (*count = 0; *text; ++*count) {
        size_t n = strcspn(text, ":");
        ck_field *to = &fields[*count];
        to->name = ck_arena_strndup(&f->arena, text, n);
        to->nullable = true;
        for (text += n + 1; *text && *text != ' '; text++) {
            ck_type *t = CK_ARENA_NEW(&f->arena, ck_type);
            if (*text == '!') {
                to->nullable = false;
                continue;
            }
            t->kind = *text == 's'   ? CK_TYPE_SMALLINT
                      : *text == 'i' ? CK_TYPE_INTEGER
                      : *text == 'b' ? CK_TYPE_BIGINT
                      : *text == 'd' ? CK_TYPE_DOUBLE
                                     : CK_TYPE_VARCHAR;
            t->precision = *text == '9' ? 9 : 0;
            to->type = t;
        }
        if (*text) text++;
    }
    return fields;
}

static ck_slot_schema slot_of(fixture *f, const char *key, const char *values) {
    ck_slot_schema s = {.slot = "agg", .state_type = "group_agg", .version = 1};
    s.partition = fields_of(f, key, &s.partition_count);
    s.values = fields_of(f, values, &s.value_count);
    return s;
}

static void schemas_by_rule(void **state) {
    fixture *f = *state;
    static const struct {
        const char *key, *values, *new_key, *new_values;
        ck_slot_verdict verdict;
        const char *what;
    } cases[] = {
        {"k:v", "n:b m:v", "k:v", "n:b m:v", CK_SLOT_SAME, ""},
        {"k:v", "n:b", "another_name:v", "n:b", CK_SLOT_SAME, ""},
        {"k:v", "n:b m:v", "k:v", "m:v n:b", CK_SLOT_CONVERTS, "another order of fields"},
        {"k:v", "n:b m:v", "k:v", "m:v", CK_SLOT_CONVERTS, "drops 'n'"},
        {"k:v", "n:i", "k:v", "n:b", CK_SLOT_CONVERTS, "'n' INTEGER -> BIGINT"},
        {"k:v", "n:i!", "k:v", "n:b", CK_SLOT_CONVERTS, "'n' INTEGER NOT NULL -> BIGINT"},
        {"k:v", "n:i", "k:v", "n:b!", CK_SLOT_REFUSED, "'n' is stored as INTEGER, this job has BIGINT NOT NULL"},
        {"k:v", "n:i", "k:v", "n:s", CK_SLOT_REFUSED, "'n' is stored as INTEGER, this job has SMALLINT"},
        {"k:v", "n:i", "k:v", "n:d", CK_SLOT_REFUSED, "'n' is stored as INTEGER, this job has DOUBLE"},
        {"k:v", "n:9", "k:v", "n:v", CK_SLOT_CONVERTS, "'n' VARCHAR(9) -> VARCHAR"},
        {"k:v", "n:v", "k:v", "n:9", CK_SLOT_REFUSED, "'n' is stored as VARCHAR, this job has VARCHAR(9)"},
        {"k:v", "n:b", "k:v", "n:b m:b", CK_SLOT_REFUSED, "'m' is not in the checkpoint"},
        {"k:i", "n:b", "k:b", "n:b", CK_SLOT_CONVERTS, "'k' INTEGER -> BIGINT"},
        {"k:b", "n:b", "k:v", "n:b", CK_SLOT_REFUSED, "'k' is stored as BIGINT, this job has VARCHAR"},
        {"k:9", "n:b", "k:v", "n:b", CK_SLOT_REFUSED, "'k' is stored as VARCHAR(9), this job has VARCHAR"},
        {"k:b l:b", "n:b", "k:b", "n:b", CK_SLOT_REFUSED, "it is stored with 2 key fields, this job has 1"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_slot_schema was = slot_of(f, cases[i].key, cases[i].values),
                       now = slot_of(f, cases[i].new_key, cases[i].new_values);
        ck_slot_change c;
        assert_int_equal(ck_slot_compare(&f->arena, &was, &now, &c), CK_OK);
        if (c.verdict != cases[i].verdict || strcmp(c.what, cases[i].what) != 0)
            fail_msg("case %zu: verdict %d, %s", i, (int)c.verdict, c.what);
    }
}

static void types_versions_and_modes_must_agree(void **state) {
    fixture *f = *state;
    for (int change = 0; change < 3; change++) {
        ck_slot_schema was = slot_of(f, "k:v", "n:b"), now = was;
        ck_slot_change c;
        if (change == 0) now.state_type = "distinct";
        if (change == 1) now.version = 2;
        if (change == 2) now.mode = CK_SLOT_UNION;
        assert_int_equal(ck_slot_compare(&f->arena, &was, &now, &c), CK_OK);
        assert_int_equal(c.verdict, CK_SLOT_REFUSED);
        assert_true(c.what[0]);
    }
}

/* ---- rows ---- */

static ck_state_store *new_store(fixture *f) {
    ck_state_store *s;
    const ck_state_config cfg = {.proc = &f->t.proc, .mem = f->mem, .key_groups = 16, .range = {0, 15}, .hash_seed = 7};
    assert_int_equal(ck_state_store_new(&cfg, &s, NULL), CK_OK);
    return s;
}

/* Rows k0, k1 ... as a snapshot has them: text "t<i>" (NULL in every third), n = i * 10, big = -i, note "note ..". */
static void store_rows(fixture *f, ck_state_store *s, uint64_t op, uint32_t rows) {
    for (uint32_t i = 0; i < rows; i++) {
        ck_bytes key, value;
        char k[16], text[64], note[64];
        ck_bytes_init(&key, f->mem, SIZE_MAX);
        ck_bytes_init(&value, f->mem, SIZE_MAX);
        snprintf(k, sizeof k, "k%u", i);
        snprintf(text, sizeof text, "a text of some length, number %u", i);
        snprintf(note, sizeof note, "n%u", i);
        bool is_null = i % 3 == 0;
        uint32_t group = ck_key_group_of_hash(ck_fnv1a(k, strlen(k)), 16);
        assert_int_equal(ck_bytes_char(&key, (char)group), CK_OK);
        assert_int_equal(ck_bytes_printf(&key, "agg|%s", k), CK_OK);
        assert_int_equal(ck_bytes_char(&value, is_null ? 1 : 0), CK_OK); /* the null bits: text, n, big, note */
        assert_int_equal(ck_bytes_u64le(&value, i * 10), CK_OK);
        assert_int_equal(ck_bytes_u64le(&value, -(uint64_t)i), CK_OK);
        for (int part = is_null; part < 2; part++) {
            const char *z = part ? note : text;
            uint32_t n = (uint32_t)strlen(z);
            char length[4] = {(char)n, 0, 0, 0};
            assert_int_equal(ck_bytes_append(&value, length, 4), CK_OK);
            assert_int_equal(ck_bytes_str(&value, z), CK_OK);
        }
        ck_error err = CK_ERROR_INIT;
        if (ck_state_restore_put(s, op, (ck_stored_row){ck_bytes_as_view(&key), ck_bytes_as_view(&value)}, &err) !=
            CK_OK)
            fail_msg("%s", err.msg);
        ck_bytes_destroy(&key);
        ck_bytes_destroy(&value);
    }
}

static void check_row(const ck_table *t, const ck_row *row) {
    const ck_row_layout *l = ck_table_layout(t);
    ck_view k = ck_table_str(t, row, 0);
    uint32_t i = (uint32_t)strtoul(k.p + 1, NULL, 10);
    char note[64], text[64];
    snprintf(note, sizeof note, "n%u", i);
    snprintf(text, sizeof text, "a text of some length, number %u", i);
    assert_true(ck_view_is(ck_table_str(t, row, 1), note)); /* note, text, n: big is gone */
    assert_int_equal(ck_row_null(row, l->fields[2].null_bit), i % 3 == 0);
    if (i % 3) assert_true(ck_view_is(ck_table_str(t, row, 2), text));
    assert_int_equal(ck_row_i64(row, l->fields[3].offset), i * 10);
}

static void stored_rows_become_rows_of_the_new_schema(void **state) {
    fixture *f = *state;
    enum { ROWS = 1000 };
    const char *uid = "group_agg(k)<-t";
    const ck_slot_schema was = slot_of(f, "k:v", "text:v n:i! big:b! note:9"),
                         now = slot_of(f, "k:v", "note:v text:v n:b");
    for (int64_t ttl_us = 0; ttl_us <= 1000000; ttl_us += 1000000) {
        ck_state_store *s = new_store(f);
        ck_state *st;
        ck_table *t;
        ck_error err = CK_ERROR_INIT;
        ck_slot_schema wanted = now;
        wanted.ttl_us = ttl_us; /* switched on in the same step */
        assert_int_equal(ck_state_restore_slot(s, ck_op_id(uid), uid, "group_agg", &was, &err), CK_OK);
        store_rows(f, s, ck_op_id(uid), ROWS);
        assert_int_equal(ck_state_restore_end(s, &err), CK_OK);
        assert_int_equal(ck_state_of(s, uid, "group_agg", &st, &err), CK_OK);
        if (ck_state_table(st, &wanted, &t, &err) != CK_OK) fail_msg("%s", err.msg);
        assert_int_equal(ck_table_row_count(t), ROWS);
        ck_table_scan scan = {0};
        ck_row *rows[64];
        for (uint32_t n; (n = ck_table_scan_next(t, &scan, rows, 64)) > 0;)
            for (uint32_t i = 0; i < n; i++) check_row(t, rows[i]);
        ck_state_store_free(s);
    }
}

/* Rows of windows: each bucket has the long keys of its rows itself. */
static void rows_of_buckets_keep_their_strings(void **state) {
    fixture *f = *state;
    enum { ROWS = 600, BUCKETS = 3 };
    const char *uid = "window_agg(k)<-t";
    ck_slot_schema was = slot_of(f, "k:v", "n:b! text:v"), now = slot_of(f, "k:v", "text:v");
    uint32_t order_count;
    const ck_order_field order = {.field = *fields_of(f, "slice_end:b!", &order_count)};
    was.order = now.order = &order;
    was.order_count = now.order_count = order_count;
    was.bucketed = now.bucketed = true;
    ck_state_store *s = new_store(f);
    ck_state *st;
    ck_table *t;
    ck_error err = CK_ERROR_INIT;
    ck_bytes key, value;
    ck_bytes_init(&key, f->mem, SIZE_MAX);
    ck_bytes_init(&value, f->mem, SIZE_MAX);
    assert_int_equal(ck_state_restore_slot(s, ck_op_id(uid), uid, "group_agg", &was, &err), CK_OK);
    for (uint32_t i = 0; i < ROWS; i++) {
        char k[64];
        snprintf(k, sizeof k, "the key of a row of a window, number %u", i / BUCKETS);
        uint32_t bytes = (uint32_t)strlen(k);
        ck_bytes_clear(&key);
        ck_bytes_clear(&value);
        assert_int_equal(ck_bytes_char(&key, (char)ck_key_group_of_hash(ck_fnv1a(k, bytes), 16)), CK_OK);
        assert_int_equal(ck_bytes_str(&key, "agg|"), CK_OK);
        assert_int_equal(ck_bytes_append(&key, (char[]){0, 0, 0, (char)bytes}, 4), CK_OK);
        assert_int_equal(ck_bytes_str(&key, k), CK_OK);
        assert_int_equal(ck_bytes_u64be(&key, (uint64_t)(i % BUCKETS) ^ 1ULL << 63), CK_OK);
        assert_int_equal(ck_bytes_char(&value, 0), CK_OK); /* the null bits */
        assert_int_equal(ck_bytes_u64le(&value, i), CK_OK);
        assert_int_equal(ck_bytes_u32le(&value, bytes), CK_OK);
        assert_int_equal(ck_bytes_str(&value, k), CK_OK);
        const ck_stored_row row = {ck_bytes_as_view(&key), ck_bytes_as_view(&value)};
        if (ck_state_restore_put(s, ck_op_id(uid), row, &err) != CK_OK) fail_msg("%s", err.msg);
    }
    ck_bytes_destroy(&key);
    ck_bytes_destroy(&value);
    assert_int_equal(ck_state_restore_end(s, &err), CK_OK);
    assert_int_equal(ck_state_of(s, uid, "group_agg", &st, &err), CK_OK);
    if (ck_state_table(st, &now, &t, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_table_row_count(t), ROWS);
    for (int64_t b = 0; b < BUCKETS; b++) {
        ck_table *bucket;
        assert_int_equal(ck_table_bucket(t, b, false, &bucket, &err), CK_OK);
        assert_int_equal(ck_table_row_count(bucket), ROWS / BUCKETS);
        ck_table_scan scan = {0};
        ck_row *rows[64];
        for (uint32_t n; (n = ck_table_scan_next(bucket, &scan, rows, 64)) > 0;)
            for (uint32_t i = 0; i < n; i++) {
                ck_view k = ck_table_str(bucket, rows[i], 0);
                assert_true(ck_view_eq(k, ck_table_str(bucket, rows[i], 2)));
                assert_true(k.n > 30 && memcmp(k.p, "the key of a row", 16) == 0);
            }
    }
    ck_state_store_free(s);
}

static void what_does_not_fit_is_refused_by_name(void **state) {
    fixture *f = *state;
    const char *uid = "group_agg(k)<-t";
    const ck_slot_schema was = slot_of(f, "k:v", "text:v n:i! big:b! note:9"), now = slot_of(f, "k:v", "n:s");
    ck_state_store *s = new_store(f);
    ck_state *st;
    ck_table *t;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_state_restore_slot(s, ck_op_id(uid), uid, "group_agg", &was, &err), CK_OK);
    store_rows(f, s, ck_op_id(uid), 3);
    assert_int_equal(ck_state_restore_end(s, &err), CK_OK);
    assert_int_equal(ck_state_of(s, uid, "group_agg", &st, &err), CK_OK);
    assert_int_equal(ck_state_table(st, &now, &t, &err), CK_REFUSED);
    assert_string_equal(err.msg,
                        "operator 'group_agg(k)<-t', slot \"agg\": 'n' is stored as INTEGER NOT NULL, this job "
                        "has SMALLINT");
    ck_state_store_free(s);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(schemas_by_rule),
        T(types_versions_and_modes_must_agree),
        T(stored_rows_become_rows_of_the_new_schema),
        T(rows_of_buckets_keep_their_strings),
        T(what_does_not_fit_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
