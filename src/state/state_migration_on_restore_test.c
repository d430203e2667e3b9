/* State under the schemas a job has now: verdicts slot by slot, a thousand values through two steps beside a slot whose
 * name begins alike, failing steps, times to live, renamed slots, slots that say no version. */
#include "state/state_migration_on_restore.h"

#include "os/modules.h"
#include "state/mark.h"
#include "state/rocks.h"
#include "state/schemas_test_support.h"

enum { VALUES = 1000, OP = 7 };

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        ck_error err_ = CK_ERROR_INIT, *err = &err_;                                                                   \
        if ((call) != CK_OK) fail_msg("%s: %s", #call, err->msg);                                                      \
    } while (0)

/* ---- slots ---- */

static const ck_type varchar = {.kind = CK_TYPE_VARCHAR}, bytes = {.kind = CK_TYPE_BYTES};
static const ck_type integer = {.kind = CK_TYPE_INTEGER}, bigint = {.kind = CK_TYPE_BIGINT};
static const ck_field key[] = {{"key", &varchar, false}}, opaque[] = {{CK_OPAQUE_FIELD, &bytes, false}};
static const ck_field n_int[] = {{"n", &integer, false}}, n_more[] = {{"n", &bigint, false}, {"more", &varchar, true}};

static ck_slot_schema slot(const char *name, const char *type, uint32_t version, const ck_field *values, uint32_t n) {
    return (ck_slot_schema){.slot = name,
                            .state_type = type,
                            .version = version,
                            .partition = key,
                            .partition_count = 1,
                            .values = values,
                            .value_count = n};
}

/* ---- a store restored from stored rows, and its rows and versions as the next snapshot would have them ---- */

static ck_state_store *new_store(fixture *f) {
    ck_state_store *s;
    const ck_state_config cfg = {
        .proc = &f->t.proc, .mem = f->mem, .key_groups = 128, .range = {0, 127}, .hash_seed = 7};
    OK(ck_state_store_new(&cfg, &s, err));
    return s;
}

/* Row i of a slot: key k<i>, content "v1:<i>" for slot buf and "other <i>" for others; head: [expiry][length]. */
static void put_rows(fixture *f, ck_state_store *s, const char *name, bool ttl, bool length) {
    for (uint32_t i = 0; i < VALUES; i++) {
        char k[48], content[32];
        uint32_t k_n = (uint32_t)snprintf(k, sizeof k, " %s|k%u", name, i);
        uint32_t n = (uint32_t)snprintf(content, sizeof content, strcmp(name, "buf") == 0 ? "v1:%u" : "other %u", i);
        const char *user = strchr(k, '|') + 1;
        k[0] = (char)ck_key_group_of_hash(ck_fnv1a(user, strlen(user)), 128);
        ck_bytes v;
        ck_bytes_init(&v, f->mem, SIZE_MAX);
        if (ttl) OK(ck_bytes_u64le(&v, 1000000 + i));
        if (length) OK(ck_bytes_u32le(&v, n));
        OK(ck_bytes_append(&v, content, n));
        OK(ck_state_restore_put(s, OP, (ck_stored_row){{k, k_n}, ck_bytes_as_view(&v)}, err));
        ck_bytes_destroy(&v);
    }
}

static void stamp(ck_state_store *s, const char *type, uint32_t version, const char *name) {
    const ck_state_version v = {OP, type, version, name};
    OK(ck_state_restore_version(s, &v, err));
}

typedef struct dump { /* rows as "<key>=<value>" in a map; versions as lines */
    ck_map rows;
    const char *versions;
} dump;

static dump dump_of(fixture *f, ck_state_store *s) {
    dump d;
    ck_state_mark *m;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t n;
    ck_map_init(&d.rows, &f->arena, false);
    OK(ck_state_mark_take(s, 0, &m, err));
    OK(ck_mark_scan_new(m, CK_MARK_BASE, &scan, err));
    do {
        OK(ck_mark_scan_next(scan, &rows, &n, err));
        for (uint32_t i = 0; i < n; i++) {
            ck_view *copy = CK_ARENA_NEW(&f->arena, ck_view);
            *copy = (ck_view){ck_arena_strndup(&f->arena, rows[i].value.p, rows[i].value.n), rows[i].value.n};
            OK(ck_map_put(&d.rows, rows[i].key, copy, NULL));
        }
    } while (n);
    ck_mark_scan_free(scan);
    const ck_marked_slot *slots;
    ck_version_map all;
    ck_version_map_init(&all, &f->arena);
    OK(ck_version_map_merge(&all, ck_state_mark_versions(m)));
    for (uint32_t i = 0, count = ck_state_mark_slots(m, &slots); i < count; i++) {
        const ck_state_version v = {slots[i].op_id, slots[i].schema->state_type, slots[i].schema->version,
                                    slots[i].schema->slot};
        if (v.version) OK(ck_version_map_stamp(&all, &v));
    }
    d.versions = ck_version_map_encode(&all, &f->arena);
    ck_state_mark_release(m);
    return d;
}

/* The rows of a slot: `count` of them are byte for byte those of the other dump. */
static uint32_t rows_alike(const dump *a, const dump *b, const char *prefix) {
    uint32_t n = 0;
    for (size_t i = 0; i < a->rows.count; i++) {
        ck_view k = a->rows.entries[i].key, *was = ck_map_get(&b->rows, k), *is = a->rows.entries[i].value;
        if (memcmp(k.p + 1, prefix, strlen(prefix)) == 0) n += was && ck_view_eq(*was, *is);
    }
    return n;
}

/* Row i of slot `name` is this, behind `head` bytes. */
static void check_values(const dump *d, const char *name, size_t head, const char *format) {
    for (uint32_t i = 0; i < VALUES; i++) {
        char k[48], content[48];
        uint32_t k_n = (uint32_t)snprintf(k, sizeof k, " %s|k%u", name, i);
        const char *user = strchr(k, '|') + 1;
        k[0] = (char)ck_key_group_of_hash(ck_fnv1a(user, strlen(user)), 128);
        snprintf(content, sizeof content, format, i);
        const ck_view *v = ck_map_get(&d->rows, (ck_view){k, k_n});
        if (!v || v->n < head || !ck_view_is((ck_view){v->p + head, v->n - head}, content))
            fail_msg("row %u of %s is not %s", i, name, content);
    }
}

/* ---- steps ---- */

static ck_status two(void *user, ck_view v, ck_bytes *out, ck_error *err) { /* v1:<i> -> <i> */
    (void)user;
    if (v.n < 3 || memcmp(v.p, "v1:", 3) != 0)
        return ck_fail(err, CK_DATA, "'%.*s' is not of version 1", (int)v.n, v.p);
    return ck_bytes_append(out, v.p + 3, v.n - 3);
}
static ck_status three(void *user, ck_view v, ck_bytes *out, ck_error *err) { /* <i> -> three <i>! */
    const uint32_t *fail_at = user;
    char text[32];
    int n = snprintf(text, sizeof text, "three %.*s!", (int)v.n, v.p);
    if (fail_at && strtoul(v.p, NULL, 10) == *fail_at) return ck_fail(err, CK_DATA, "value %u will not do", *fail_at);
    return ck_bytes_append(out, text, (size_t)n);
}

static void register_steps(fixture *f, uint32_t *fail_at) {
    OK(ck_state_migrations_step(&f->m, "buffer", 1, 2, two, NULL, err));
    OK(ck_state_migrations_step(&f->m, "buffer", 2, 3, three, fail_at, err));
}

static ck_status migrate(fixture *f, ck_state_store *s, const ck_slot_schema *wanted, ck_error *err) {
    const ck_expected_slot e = {OP, "op", wanted};
    return ck_migrate_restored_state(s, &e, 1, &f->m, err);
}

/* buf and buf2 as they are in a file: described by it or not, with a time to live or without. */
static void fill_buffers(fixture *f, ck_state_store *s, bool described, bool ttl) {
    ck_slot_schema buf = slot("buf", "buffer", 1, opaque, 1), buf2 = slot("buf2", "buffer", 1, opaque, 1);
    buf.ttl_us = buf2.ttl_us = ttl ? 60000000 : 0;
    stamp(s, "buffer", 1, "buf");
    stamp(s, "buffer", 1, "buf2");
    if (described) OK(ck_state_restore_slot(s, OP, "op", "plugin", &buf, err));
    if (described) OK(ck_state_restore_slot(s, OP, "op", "plugin", &buf2, err));
    put_rows(f, s, "buf", ttl, described);
    put_rows(f, s, "buf2", ttl, described);
    OK(ck_state_restore_end(s, err));
}

static ck_state_store *two_buffers(fixture *f, bool described, bool ttl) {
    ck_state_store *s = new_store(f);
    fill_buffers(f, s, described, ttl);
    return s;
}

static void a_thousand_values_in_two_steps(void **state) {
    fixture *f = *state;
    register_steps(f, NULL);
    for (int described = 0; described < 2; described++)
        for (int ttl = 0; ttl < 2; ttl++) {
            ck_state_store *s = two_buffers(f, described, ttl);
            dump before = dump_of(f, s);
            assert_string_equal(before.versions, "7|buffer|1|buf\n7|buffer|1|buf2");
            ck_slot_schema wanted = slot("buf", "buffer", 3, opaque, 1);
            wanted.ttl_us = ttl ? 60000000 : 0;
            OK(migrate(f, s, &wanted, err));
            dump after = dump_of(f, s);
            assert_int_equal(after.rows.count, 2 * VALUES);
            assert_int_equal(rows_alike(&after, &before, "buf2|"), VALUES);
            assert_string_equal(after.versions, "7|buffer|1|buf2\n7|buffer|3|buf");
            check_values(&after, "buf", (ttl ? 8 : 0) + 4, "three %u!"); /* its own length is in front */
            for (size_t i = 0; ttl && i < after.rows.count; i++) {       /* when it expires has not changed */
                ck_view *is = after.rows.entries[i].value, *was = ck_map_get(&before.rows, after.rows.entries[i].key);
                assert_memory_equal(is->p, was->p, 8);
            }
            OK(migrate(f, s, &wanted, err)); /* once more: nothing to do */
            dump again = dump_of(f, s);
            assert_int_equal(rows_alike(&again, &after, "buf"), 2 * VALUES);
            assert_string_equal(again.versions, after.versions);
            ck_state_store_free(s);
        }
}

/* All rows are in RocksDB when it begins, as after a restore of more than fits into memory. */
static void rows_that_are_not_in_memory(void **state) {
    fixture *f = *state;
    uint32_t fail_at = 617;
    ck_rocks *db;
    OK(ck_modules_new(ck_heap_system(), &f->t.proc.modules, err));
    OK(ck_rocks_new(&f->t.proc, f->mem, ck_test_dir(&f->t), &db, err));
    register_steps(f, &fail_at);
    for (int fails = 1; fails >= 0; fails--) {
        if (!fails) fail_at = UINT32_MAX;
        ck_state_store *s = new_store(f);
        OK(ck_state_evict_to(s, db, err));
        fill_buffers(f, s, true, false);
        dump before = dump_of(f, s);
        OK(ck_state_evict(s, SIZE_MAX, err));
        assert_int_equal(ck_state_cold_rows(s), 2 * VALUES);
        const ck_slot_schema wanted = slot("buf", "buffer", 3, opaque, 1);
        ck_error e = CK_ERROR_INIT;
        assert_int_equal(migrate(f, s, &wanted, &e), fails ? CK_DATA : CK_OK);
        dump after = dump_of(f, s);
        assert_int_equal(after.rows.count, 2 * VALUES);
        assert_int_equal(rows_alike(&after, &before, "buf2|"), VALUES);
        if (fails)
            assert_int_equal(rows_alike(&after, &before, "buf|"), VALUES);
        else
            check_values(&after, "buf", 4, "three %u!");
        assert_string_equal(after.versions, fails ? before.versions : "7|buffer|1|buf2\n7|buffer|3|buf");
        ck_state_store_free(s);
    }
    ck_rocks_free(db);
    ck_modules_free(f->t.proc.modules);
    f->t.proc.modules = NULL;
}

static void a_step_that_fails_midway_changes_nothing(void **state) {
    fixture *f = *state;
    uint32_t fail_at = 617;
    register_steps(f, &fail_at);
    for (int described = 0; described < 2; described++) {
        ck_state_store *s = two_buffers(f, described, false);
        dump before = dump_of(f, s);
        /* buf2 could be migrated, and comes first: its rows are of another kind, so its step fails, too, but later. */
        const ck_slot_schema other = slot("buf2", "others", 1, opaque, 1), buf = slot("buf", "buffer", 3, opaque, 1);
        const ck_expected_slot both[] = {{OP, "op", &buf}, {OP, "op", &other}};
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(ck_migrate_restored_state(s, both, described ? 1 : 2, &f->m, &err), CK_DATA);
        assert_string_equal(err.msg,
                            "operator 'op', slot \"buf\": state type 'buffer', version 2 to 3: value 617 will not do");
        dump after = dump_of(f, s);
        assert_int_equal(after.rows.count, before.rows.count);
        assert_int_equal(rows_alike(&after, &before, "buf"), 2 * VALUES);
        assert_string_equal(after.versions, before.versions);
        ck_state_store_free(s);
    }
}

static void all_or_nothing_over_slots(void **state) {
    fixture *f = *state;
    uint32_t fail_at = 3;
    OK(ck_state_migrations_step(&f->m, "buffer", 1, 2, two, NULL, err));
    OK(ck_state_migrations_step(&f->m, "buffer", 1, 3, three, &fail_at, err)); /* fails on "3"; v1:3 is no 3 */
    ck_state_store *s = two_buffers(f, true, false);
    dump before = dump_of(f, s);
    const ck_slot_schema first = slot("buf", "buffer", 2, opaque, 1), second = slot("buf2", "buffer", 2, opaque, 1);
    const ck_expected_slot both[] = {{OP, "op", &first}, {OP, "op", &second}};
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_migrate_restored_state(s, both, 2, &f->m, &err),
                     CK_DATA); /* the second slot's rows are no v1 */
    assert_non_null(strstr(err.msg, "slot \"buf2\""));
    dump after = dump_of(f, s);
    assert_int_equal(rows_alike(&after, &before, "buf"), 2 * VALUES);
    assert_string_equal(after.versions, before.versions);
    ck_state_store_free(s);
}

static void failing_allocations_change_nothing(void **state) {
    fixture *f = *state;
    register_steps(f, NULL);
    const ck_slot_schema wanted = slot("buf", "buffer", 3, opaque, 1);
    for (uint64_t nth = 1;; nth++) {
        ck_state_store *s = two_buffers(f, true, false);
        dump before = dump_of(f, s);
        ck_error err = CK_ERROR_INIT;
        ck_tracked_heap_fail_nth(f->t.heap, nth);
        ck_status got = migrate(f, s, &wanted, &err);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        dump after = dump_of(f, s);
        if (got != CK_OK) {
            assert_int_equal(got, CK_NOMEM);
            assert_int_equal(rows_alike(&after, &before, "buf2|"), VALUES);
            assert_int_equal(after.rows.count, before.rows.count);
        }
        ck_state_store_free(s);
        if (!fired) break;
        nth += nth / 8;
    }
}

/* ---- fresh, renamed, additive ---- */

static void a_fresh_start_only_stamps(void **state) {
    fixture *f = *state;
    ck_state_store *s = new_store(f);
    OK(ck_state_restore_end(s, err));
    const ck_slot_schema buf = slot("buf", "buffer", 3, opaque, 1);
    OK(migrate(f, s, &buf, err)); /* no way from 1 to 3 is needed */
    dump d = dump_of(f, s);
    assert_int_equal(d.rows.count, 0);
    assert_string_equal(d.versions, "7|buffer|3|buf");
    ck_state_store_free(s);
}

static void slots_and_types_get_other_names(void **state) {
    fixture *f = *state;
    register_steps(f, NULL);
    OK(ck_state_migrations_type_renamed(&f->m, "ring", "buffer", err));
    OK(ck_state_migrations_slot_renamed(&f->m, "ring", "ring", "buf", err));
    for (int described = 0; described < 2; described++) {
        ck_state_store *s = two_buffers(f, described, false);
        dump before = dump_of(f, s);
        const ck_slot_schema ring = slot("ring", "ring", 3, opaque, 1);
        OK(migrate(f, s, &ring, err));
        dump after = dump_of(f, s);
        assert_int_equal(rows_alike(&after, &before, "buf2|"), VALUES);
        check_values(&after, "ring", 4, "three %u!");
        assert_int_equal(after.rows.count, 2 * VALUES);
        assert_string_equal(after.versions, "7|buffer|1|buf2\n7|ring|3|ring");
        ck_state *st;
        ck_table *t;
        OK(ck_state_of(s, "op-of-this-test", "plugin", &st, err)); /* another operator has none of it */
        OK(ck_state_table(st, &ring, &t, err));
        assert_int_equal(ck_table_row_count(t), 0);
        ck_state_store_free(s);
    }
}

static void additive_schemas_migrate_themselves(void **state) {
    fixture *f = *state;
    ck_state_store *s = new_store(f);
    const ck_slot_schema was = slot("counts", "counts", 1, n_int, 1), now = slot("counts", "counts", 2, n_more, 2);
    OK(ck_state_migrations_schema(&f->m, "counts", 1, (ck_value_fields){n_int, 1}, err));
    OK(ck_state_restore_slot(s, OP, "op", "plugin", &was, err));
    const char k = (char)ck_key_group_of_hash(ck_fnv1a("a", 1), 128);
    char stored[16];
    snprintf(stored, sizeof stored, "%ccounts|a", k);
    const char value[8] = {42};
    OK(ck_state_restore_put(s, OP, (ck_stored_row){{stored, 9}, {value, 8}}, err));
    OK(ck_state_restore_end(s, err));
    ck_error e = CK_ERROR_INIT;
    assert_int_equal(migrate(f, s, &now, &e), CK_REFUSED); /* version 2 has no schema yet */
    assert_string_equal(e.msg, "operator 'op', slot \"counts\": type 'counts' is stored in version 1, and no migration "
                               "leads from there to 2");
    OK(ck_state_migrations_schema(&f->m, "counts", 2, (ck_value_fields){n_more, 2}, err));
    OK(migrate(f, s, &now, err));
    dump d = dump_of(f, s);
    const ck_view *v = ck_map_get(&d.rows, (ck_view){stored, 9});
    assert_int_equal(v->n, 9);
    assert_memory_equal(v->p, "\x02\x2a\0\0\0\0\0\0\0", 9); /* `more` is NULL */
    ck_state_store_free(s);
}

/* A name that was given to another slot: which of the two has the rows cannot be told. */
static void two_slots_from_one_are_refused(void **state) {
    fixture *f = *state;
    ck_state_store *s = two_buffers(f, true, false);
    dump before = dump_of(f, s);
    OK(ck_state_migrations_slot_renamed(&f->m, "buffer", "ring", "buf", err));
    const ck_slot_schema ring = slot("ring", "buffer", 1, opaque, 1), buf = slot("buf", "buffer", 1, opaque, 1);
    const ck_expected_slot both[] = {{OP, "op", &ring}, {OP, "op", &buf}};
    ck_error e = CK_ERROR_INIT;
    assert_int_equal(ck_migrate_restored_state(s, both, 2, &f->m, &e), CK_REFUSED);
    assert_string_equal(e.msg, "operator 'op', slot \"ring\": \"buf\" goes on from the same stored slot");
    dump after = dump_of(f, s);
    assert_int_equal(rows_alike(&after, &before, "buf"), 2 * VALUES);
    OK(migrate(f, s, &ring, err)); /* one of them alone */
    after = dump_of(f, s);
    assert_int_equal(rows_alike(&after, &before, "buf2|"), VALUES);
    check_values(&after, "ring", 4, "v1:%u");
    ck_state_store_free(s);
}

/* A file of another writer may say a version of a whole type and another one of a slot, under the name a type had. */
static void an_entry_of_the_slot_goes_before_one_of_the_type(void **state) {
    fixture *f = *state;
    register_steps(f, NULL);
    OK(ck_state_migrations_type_renamed(&f->m, "ring", "buffer", err));
    const char *const lines[] = {"7|buffer|1\n7|buffer|3|buf", "7|buffer|3|buf\n7|ring|1"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(lines); i++) {
        ck_version_map v;
        ck_slot_plan plan;
        bool there;
        const ck_slot_schema now = slot("buf", "ring", 3, opaque, 1), other = slot("other", "ring", 3, opaque, 1);
        const ck_expected_slot want = {OP, "op", &now}, want_other = {OP, "op", &other};
        ck_version_map_init(&v, &f->arena);
        OK(ck_version_map_decode(&v, ck_view_of(lines[i]), err));
        const ck_stored_state stored = {.versions = &v};
        OK(ck_slot_plan_expected(&f->arena, &stored, &f->m, &want, &plan, &there));
        assert_true(there && plan.from == 3 && plan.verdict == CK_SLOT_SAME);
        OK(ck_slot_plan_expected(&f->arena, &stored, &f->m, &want_other, &plan, &there));
        assert_true(there && plan.from == 1 && plan.verdict == CK_SLOT_CONVERTS);
    }
}

static void restore_one(ck_state_store *s, const ck_slot_schema *was, ck_view value) {
    char stored[16];
    int n = snprintf(stored, sizeof stored, "%c%s|a", (char)ck_key_group_of_hash(ck_fnv1a("a", 1), 128), was->slot);
    OK(ck_state_restore_slot(s, OP, "op", "plugin", was, err));
    OK(ck_state_restore_put(s, OP, (ck_stored_row){{stored, (size_t)n}, value}, err));
    OK(ck_state_restore_end(s, err));
}

/* Of a set only the keys are kept: a value of no bytes is one like others. */
static void values_of_no_bytes_are_migrated(void **state) {
    fixture *f = *state;
    static const ck_field more[] = {{"more", &varchar, true}};
    ck_state_store *s = new_store(f);
    const ck_slot_schema was = slot("set", "set", 1, NULL, 0), now = slot("set", "set", 2, more, 1);
    OK(ck_state_migrations_schema(&f->m, "set", 1, (ck_value_fields){NULL, 0}, err));
    OK(ck_state_migrations_schema(&f->m, "set", 2, (ck_value_fields){more, 1}, err));
    restore_one(s, &was, (ck_view){NULL, 0});
    OK(migrate(f, s, &now, err));
    dump d = dump_of(f, s);
    assert_int_equal(d.rows.count, 1);
    const ck_view *v = d.rows.entries[0].value;
    assert_true(v->n == 1 && v->p[0] == 1); /* `more` is NULL */
    ck_state_store_free(s);
    s = new_store(f); /* and of another writer's opaque rows */
    char k[8];
    int n = snprintf(k, sizeof k, "%cbuf|a", (char)ck_key_group_of_hash(ck_fnv1a("a", 1), 128));
    OK(ck_state_restore_put(s, OP, (ck_stored_row){{k, (size_t)n}, {NULL, 0}}, err));
    OK(ck_state_restore_end(s, err));
    const ck_slot_schema buf = slot("buf", "buffer", 1, opaque, 1);
    OK(migrate(f, s, &buf, err));
    d = dump_of(f, s);
    assert_int_equal(d.rows.count, 1);
    v = d.rows.entries[0].value;
    assert_true(v->n == 4 && memcmp(v->p, "\0\0\0", 4) == 0); /* its length */
    ck_state_store_free(s);
}

static ck_status too_short(void *user, ck_view v, ck_bytes *out, ck_error *err) {
    (void)user, (void)v, (void)err;
    return ck_bytes_char(out, 'x');
}

static void what_a_step_gives_is_looked_at(void **state) {
    fixture *f = *state;
    ck_state_store *s = new_store(f);
    const ck_slot_schema was = slot("counts", "counts", 1, n_int, 1), now = slot("counts", "counts", 2, n_more, 2);
    OK(ck_state_migrations_step(&f->m, "counts", 1, 2, too_short, NULL, err));
    const char value[8] = {42};
    restore_one(s, &was, (ck_view){value, 8});
    dump before = dump_of(f, s);
    ck_error e = CK_ERROR_INIT;
    assert_int_equal(migrate(f, s, &now, &e), CK_REFUSED);
    assert_string_equal(e.msg, "operator 'op', slot \"counts\": what the steps of state type 'counts' give is no value "
                               "of version 2");
    dump after = dump_of(f, s);
    assert_int_equal(rows_alike(&after, &before, "counts|"), 1);
    assert_string_equal(after.versions, before.versions);
    ck_state_store_free(s);
}

/* ---- verdicts ---- */

static void verdicts_slot_by_slot(void **state) {
    fixture *f = *state;
    register_steps(f, NULL);
    OK(ck_state_migrations_schema(&f->m, "counts", 1, (ck_value_fields){n_int, 1}, err));
    OK(ck_state_migrations_schema(&f->m, "counts", 2, (ck_value_fields){n_more, 2}, err));
    const ck_slot_schema buf1 = slot("s", "buffer", 1, opaque, 1), buf3 = slot("s", "buffer", 3, opaque, 1),
                         buf4 = slot("s", "buffer", 4, opaque, 1), c1 = slot("s", "counts", 1, n_int, 1),
                         c2 = slot("s", "counts", 2, n_more, 2), lie = slot("s", "counts", 1, n_more, 2),
                         p1 = slot("s", "plain", 1, n_int, 1), p1w = slot("s", "plain", 1, n_more, 1),
                         p2 = slot("s", "plain", 2, n_int, 1);
    ck_slot_schema no_key = buf3;
    no_key.partition_count = 0;
    const struct {
        const ck_slot_schema *stored; /* NULL: not described */
        uint32_t version;
        const ck_slot_schema *wanted;
        ck_slot_verdict verdict;
        const char *what;
    } cases[] = {
        {&buf1, 1, &buf1, CK_SLOT_SAME, ""},
        {&buf1, 1, &buf3, CK_SLOT_CONVERTS, "'buffer' version 1 -> 3"},
        {&buf1, 2, &buf3, CK_SLOT_CONVERTS, "'buffer' version 2 -> 3"},
        {&buf1, 3, &buf3, CK_SLOT_SAME, ""},
        {&buf1, 5, &buf3, CK_SLOT_REFUSED, "type 'buffer' is stored in version 5, this job knows up to 3"},
        {&buf1, 1, &buf4, CK_SLOT_REFUSED,
         "type 'buffer' is stored in version 1, and no migration leads from there to 4"},
        {&buf1, 0, &buf3, CK_SLOT_CONVERTS, "'buffer' version 1 -> 3"}, /* it describes nothing to hold it against */
        {&buf1, 1, &no_key, CK_SLOT_REFUSED, "it is stored with 1 key fields, this job has 0"},
        {&buf1, 1, &c1, CK_SLOT_REFUSED, "it is stored as type 'buffer', this job has 'counts'"},
        {NULL, 0, &buf3, CK_SLOT_CONVERTS, "'buffer' version 1 -> 3"},
        {NULL, 2, &buf3, CK_SLOT_CONVERTS, "'buffer' version 2 -> 3"},
        {NULL, 0, &buf1, CK_SLOT_SAME, ""},
        {NULL, 9, &buf3, CK_SLOT_REFUSED, "type 'buffer' is stored in version 9, this job knows up to 3"},
        {&c1, 1, &c2, CK_SLOT_CONVERTS, "'counts' version 1 -> 2"},
        {&c1, 0, &c2, CK_SLOT_CONVERTS, "'counts' version 1 -> 2"},
        {&lie, 0, &c2, CK_SLOT_REFUSED, "its stored layout is not that of type 'counts' in version 1"},
        {&lie, 1, &c2, CK_SLOT_REFUSED, "its stored layout is not that of type 'counts' in version 1"},
        {&c1, 2, &c2, CK_SLOT_REFUSED, "its stored layout is not that of type 'counts' in version 2"},
        {&p1, 0, &p1, CK_SLOT_SAME, ""}, /* no layout is registered: the fields are compared */
        {&p1, 0, &p1w, CK_SLOT_CONVERTS, "'n' INTEGER NOT NULL -> BIGINT NOT NULL"},
        {&p1w, 0, &p1, CK_SLOT_REFUSED, "'n' is stored as BIGINT NOT NULL, this job has INTEGER NOT NULL"},
        {&p1, 0, &p2, CK_SLOT_REFUSED,
         "it is stored without a version, this job has type 'plain' in version 2, and no layout of version 1 is known "
         "to "
         "hold it against"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_slot_plan p;
        assert_int_equal(ck_slot_plan_of(&f->arena, &f->m, cases[i].stored, cases[i].version, cases[i].wanted, &p),
                         CK_OK);
        if (p.verdict != cases[i].verdict || strcmp(p.what, cases[i].what) != 0)
            fail_msg("case %zu: verdict %d, %s", i, (int)p.verdict, p.what);
    }
}

/* An earlier version that a slot reads as its own is compared by the names of its fields, without any step. */
static void versions_that_are_read_as_they_are(void **state) {
    fixture *f = *state;
    ck_slot_plan plan;
    ck_slot_schema was = slot("s", "read", 1, n_int, 1), now = slot("s", "read", 3, n_int, 1);
    OK(ck_slot_plan_of(&f->arena, &f->m, &was, 1, &now, &plan));
    assert_int_equal(plan.verdict, CK_SLOT_REFUSED);
    now.reads_from = 1;
    OK(ck_slot_plan_of(&f->arena, &f->m, &was, 1, &now, &plan));
    assert_int_equal(plan.verdict, CK_SLOT_SAME);
    was.version = 0;
    OK(ck_slot_plan_of(&f->arena, &f->m, &was, 0, &now, &plan));
    assert_int_equal(plan.verdict, CK_SLOT_SAME);
    OK(ck_slot_plan_of(&f->arena, &f->m, &now, 4, &now, &plan));
    assert_int_equal(plan.verdict, CK_SLOT_REFUSED);
    assert_string_equal(plan.what, "type 'read' is stored in version 4, this job knows up to 3");
    now.reads_from = 2;
    OK(ck_slot_plan_of(&f->arena, &f->m, &was, 1, &now, &plan));
    assert_int_equal(plan.verdict, CK_SLOT_REFUSED);
    now.reads_from = 1, now.value_count = 1, now.values = n_more;
    OK(ck_slot_plan_of(&f->arena, &f->m, &was, 1, &now, &plan));
    assert_int_equal(plan.verdict, CK_SLOT_CONVERTS); /* a wider integer */
    assert_int_equal(plan.chain.count, 0);
}

static void the_one_comparison_lists_what_cannot_be_bridged(void **state) {
    fixture *f = *state;
    register_steps(f, NULL);
    const ck_slot_schema buf1 = slot("buf", "buffer", 1, opaque, 1), later = slot("later", "buffer", 9, opaque, 1);
    const ck_slot_schema buf3 = slot("buf", "buffer", 3, opaque, 1), later3 = slot("later", "buffer", 3, opaque, 1),
                         fresh = slot("fresh", "buffer", 4, opaque, 1);
    const ck_stored_slot slots[] = {{OP, "op", "plugin", &buf1, false}, {OP, "op", "plugin", &later, false}};
    ck_stored_state stored = {.slots = slots, .slot_count = 2};
    const ck_expected_slot want[] = {
        {OP, "op", &buf3}, {OP, "op", &later3}, {OP, "op", &fresh}, {OP + 1, "new", &fresh}};
    const ck_incompatible_slot *bad;
    uint32_t n;
    OK(ck_check_restore_compatibility(&f->arena, &stored, want, 4, &f->m, &bad, &n));
    assert_int_equal(n, 1);
    assert_true(bad[0].op_id == OP && bad[0].from == 9 && bad[0].to == 3 && strcmp(bad[0].slot, "later") == 0);
    assert_string_equal(bad[0].why, "type 'buffer' is stored in version 9, this job knows up to 3");
    OK(ck_check_restore_compatibility(&f->arena, &stored, want, 1, &f->m, &bad, &n));
    assert_int_equal(n, 0);
    stored = (ck_stored_state){.silent = true}; /* another writer's file: what has no stamp is version 1 */
    OK(ck_check_restore_compatibility(&f->arena, &stored, want, 3, &f->m, &bad, &n));
    assert_int_equal(n, 1); /* nothing leads from 1 to 4 */
    assert_string_equal(bad[0].slot, "fresh");
    ck_version_map v;
    ck_version_map_init(&v, &f->arena);
    OK(ck_version_map_decode(&v, ck_view_of("7|buffer|4|fresh"), err));
    stored.versions = &v;
    OK(ck_check_restore_compatibility(&f->arena, &stored, want, 3, &f->m, &bad, &n));
    assert_int_equal(n, 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_thousand_values_in_two_steps),
        T(rows_that_are_not_in_memory),
        T(a_step_that_fails_midway_changes_nothing),
        T(all_or_nothing_over_slots),
        T(failing_allocations_change_nothing),
        T(a_fresh_start_only_stamps),
        T(slots_and_types_get_other_names),
        T(additive_schemas_migrate_themselves),
        T(two_slots_from_one_are_refused),
        T(an_entry_of_the_slot_goes_before_one_of_the_type),
        T(values_of_no_bytes_are_migrated),
        T(what_a_step_gives_is_looked_at),
        T(verdicts_slot_by_slot),
        T(versions_that_are_read_as_they_are),
        T(the_one_comparison_lists_what_cannot_be_bridged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
