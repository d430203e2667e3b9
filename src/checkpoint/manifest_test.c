/* Manifests: what is encoded decodes to the same, and every member that is missing, of another type or out of its range
 * is refused by name. */
#include "checkpoint/manifest_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "os/test_proc.h"

#define GOLDEN "tests/golden/state/checkpoint-8.json"

static ck_error err;

typedef struct world {
    ck_test_proc t;
    ck_mem mem;
    ck_arena a;
    ck_view golden;
} world;

static void open_world(world *w) {
    ck_test_proc_init(&w->t);
    w->mem = ck_proc_mem(&w->t.proc, CK_MEM_PLAN);
    ck_arena_init(&w->a, w->mem, SIZE_MAX);
    assert_int_equal(ck_fs_read_all(&w->t.proc, GOLDEN, 1 << 20, &w->a, &w->golden, &err), CK_OK);
}

static void close_world(world *w) {
    ck_arena_destroy(&w->a);
    ck_test_proc_destroy(&w->t);
}

static void encodes_what_it_decodes(void **state) {
    (void)state;
    world w;
    open_world(&w);
    ck_manifest *m;
    ck_bytes text;
    ck_bytes_init(&text, w.mem, 1 << 20);
    assert_int_equal(ck_manifest_decode(&w.a, w.golden, &m, &err), CK_OK);
    assert_int_equal(ck_manifest_encode(m, &text), CK_OK);
    /* Byte for byte, but for the checksum that the version of the golden file did not write. */
    assert_true(text.n > w.golden.n && memcmp(text.p, w.golden.p, w.golden.n - 2) == 0);
    assert_non_null(strstr(text.p + w.golden.n - 2, ",\"crc32c\":"));
    ck_view ours = {ck_arena_strndup(&w.a, text.p, text.n), text.n};
    assert_int_equal(ck_manifest_decode(&w.a, ours, &m, &err), CK_OK);
    for (uint64_t nth = 1;; nth++) {
        ck_bytes_clear(&text);
        ck_tracked_heap_fail_nth(w.t.heap, nth);
        ck_status s = ck_manifest_encode(m, &text);
        bool fired = ck_tracked_heap_fired(w.t.heap);
        ck_tracked_heap_fail_nth(w.t.heap, 0);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        if (!fired) break;
    }
    ck_bytes_destroy(&text);
    close_world(&w);
}

/* The golden text with one piece of it replaced. */
static const char *with(world *w, const char *from, const char *to) {
    const char *at = strstr(w->golden.p, from);
    if (!at) fail_msg("the golden manifest has no %s", from);
    return ck_arena_printf(&w->a, "%.*s%s%s", (int)(at - w->golden.p), w->golden.p, to, at + strlen(from));
}

static void every_member_is_checked(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *says;
        ck_status status;
    } cases[] = {
        {"\"format\":1", "\"format\":0", "format", CK_CORRUPT},
        {"\"format\":1", "\"format\":3", "newer clink", CK_REFUSED},
        {"\"format\":1", "\"format\":2", "region is missing", CK_CORRUPT},
        {"\"format\":1", "\"format\":2,\"region\":0", "regions is missing", CK_CORRUPT},
        {"\"format\":1", "\"format\":2,\"region\":0,\"regions\":1", "regions", CK_CORRUPT},
        {"\"format\":1", "\"format\":2,\"region\":2,\"regions\":2", "region 2 of 2", CK_CORRUPT},
        {"\"format\":1", "\"format\":2,\"region\":1,\"regions\":2", "another region", CK_CORRUPT},
        {"\"format\":1", "\"format\":2,\"region\":0,\"regions\":5000", "regions", CK_CORRUPT},
        {"\"format\":1", "\"format\":\"1\"", "format", CK_CORRUPT},
        {"\"format\":1,", "", "format is missing", CK_CORRUPT},
        {"\"name\":\"orders\"", "\"name\":7", "job.name", CK_CORRUPT},
        {"\"name\":\"orders\"", "\"name\":\"\"", "no job name", CK_CORRUPT},
        {"01234567-89ab", "0123", "UUID", CK_CORRUPT},
        {"\"checkpoint\":8", "\"checkpoint\":0", "checkpoint 0", CK_CORRUPT},
        {"\"checkpoint\":8", "\"checkpoint\":-8", "checkpoint", CK_CORRUPT},
        {"\"checkpoint\":8", "\"checkpoint\":8.5", "checkpoint", CK_CORRUPT},
        {"\"kind\":\"periodic\"", "\"kind\":\"often\"", "kind", CK_CORRUPT},
        {"\"started_ms\":17", "\"started_ms\":-17", "started_ms", CK_CORRUPT},
        {"\"phases\":{\"write\":12}", "\"phases\":[1]", "phases", CK_CORRUPT},
        {"\"phases\":{\"write\":12}", "\"phases\":{\"write\":\"x\"}", "phases", CK_CORRUPT},
        {"\"key_groups\":128", "\"key_groups\":0", "key groups", CK_CORRUPT},
        {"\"key_groups\":128", "\"key_groups\":1025", "key_groups", CK_CORRUPT},
        {"\"graph\":{", "\"graph\":[],\"x\":{", "graph", CK_CORRUPT},
        {"0123456789abcdef", "0123456789ABCDEF", "graph_hash", CK_CORRUPT},
        {"0123456789abcdef", "123", "graph_hash", CK_CORRUPT},
        {"\"state_versions\":\"\"", "\"state_versions\":null", "state_versions", CK_CORRUPT},
        {"\"state_versions\":\"\"", "\"state_versions\":\"1|t|1.0\"", "state_versions: line 1", CK_CORRUPT},
        {"\"state_versions\":\"\"", "\"state_versions\":\"1|t| 1\"", "state_versions: line 1", CK_CORRUPT},
        {"\"state_versions\":\"\"", "\"state_versions\":\"1|t|1\\n1|u|0|s\"", "state_versions: line 2", CK_CORRUPT},
        {"\"vertices\":[{", "\"vertices\":[7,{", "vertices", CK_CORRUPT},
        {"\"vertices\":[{\"id\":\"11", "\"vertices\":[{\"id\":\"12", "calls the vertex", CK_CORRUPT},
        {"\"vertices\":[{\"id\":\"1", "\"vertices\":[{\"id\":\"01", "not a decimal id", CK_CORRUPT},
        {"\"ops\":[\"agg(usr)<-orders\"]", "\"ops\":[]", "without operators", CK_CORRUPT},
        {"\"parallelism\":2", "\"parallelism\":0", "parallelism", CK_CORRUPT},
        {"\"parallelism\":2", "\"parallelism\":5000", "parallelism", CK_CORRUPT},
        {"\"finished\":[1]", "\"finished\":[2]", "finished", CK_CORRUPT},
        {"\"finished\":[1]", "\"finished\":[1,0]", "finished", CK_CORRUPT},
        {"\"path\":\"1/0/checkpoint-7.snap\"", "\"path\":\"/etc/passwd\"", "not below", CK_CORRUPT},
        {"\"path\":\"1/0/checkpoint-7.snap\"", "\"path\":\"1/../../x\"", "not below", CK_CORRUPT},
        {"\"path\":\"1/0/checkpoint-7.snap\"", "\"path\":\"1//x\"", "not below", CK_CORRUPT},
        {"\"path\":\"1/0/checkpoint-7.snap\"", "\"path\":\"1/0/\"", "not below", CK_CORRUPT},
        {"\"path\":\"1/0/checkpoint-7.snap\"", "\"path\":\"\"", "not below", CK_CORRUPT},
        {"\"path\":\"1/0/checkpoint-7.snap\"", "\"path\":\"a\\u0000b\"", "path", CK_CORRUPT},
        {"\"path\":\"1/0/checkpoint-7.snap\"", "\"path\":\"1/0/delta-8.snap\"", "twice", CK_CORRUPT},
        {"\"crc32c\":", "\"crc32c\":9", "crc32c", CK_CORRUPT},
        {"\"subtask\":0", "\"subtask\":2", "subtask 2", CK_CORRUPT},
        {"\"key_groups\":[0,127]", "\"key_groups\":[0,128]", "key groups 0 to 128", CK_CORRUPT},
        {"\"key_groups\":[0,127]", "\"key_groups\":[0]", "key_groups", CK_CORRUPT},
        {"\"ops\":[\"11", "\"ops\":[\"12", "does not have", CK_CORRUPT},
        {"\"kind\":\"delta\",\"base\":\"1/0/checkpoint-7.snap\"", "\"kind\":\"delta\"", "without its parent",
         CK_CORRUPT},
        {"\"base\":\"1/0/checkpoint-7.snap\"", "\"base\":\"1/0/checkpoint-6.snap\"", "without its parent", CK_CORRUPT},
        {"\"kind\":\"delta\",\"base\":\"1/0/checkpoint-7.snap\"", "\"kind\":\"base\"", "second base", CK_CORRUPT},
        {"\"kind\":\"base\"", "\"kind\":\"base\",\"base\":\"x\"", "no delta", CK_CORRUPT},
    };
    world w;
    open_world(&w);
    ck_manifest *m;
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        const char *text = with(&w, cases[i].from, cases[i].to);
        ck_status s = ck_manifest_decode(&w.a, ck_view_of(text), &m, &err);
        if (s != cases[i].status || !strstr(err.msg, cases[i].says))
            fail_msg("%s -> %s: %s: %s", cases[i].from, cases[i].to, ck_status_name(s), err.msg);
    }
    const char *more =
        with(&w, "\"format\":1", "\"format\":1,\"something\":{\"new\":[]}"); /* unknown ones are ignored */
    assert_int_equal(ck_manifest_decode(&w.a, ck_view_of(more), &m, &err), CK_OK);
    close_world(&w);
}

static void every_damage(void **state) {
    (void)state;
    world w;
    open_world(&w);
    for (size_t n = 0; n + 1 < w.golden.n; n++) { /* the last byte is a newline */
        ck_arena a;
        ck_manifest *m;
        ck_arena_init(&a, w.mem, 1 << 20);
        assert_int_not_equal(ck_manifest_decode(&a, (ck_view){w.golden.p, n}, &m, &err), CK_OK);
        char *bad = ck_arena_strndup(&a, w.golden.p, w.golden.n);
        bad[n] ^= (char)(1 << n % 8);
        ck_status s = ck_manifest_decode(&a, (ck_view){bad, w.golden.n}, &m, &err);
        assert_true(s == CK_OK || s == CK_CORRUPT || s == CK_REFUSED);
        ck_arena_destroy(&a);
    }
    for (uint64_t nth = 1;; nth++) {
        ck_arena a;
        ck_manifest *m;
        ck_arena_init(&a, w.mem, SIZE_MAX);
        ck_tracked_heap_fail_nth(w.t.heap, nth);
        ck_status s = ck_manifest_decode(&a, w.golden, &m, &err);
        bool fired = ck_tracked_heap_fired(w.t.heap);
        ck_tracked_heap_fail_nth(w.t.heap, 0);
        ck_arena_destroy(&a);
        assert_int_equal(s, fired ? CK_NOMEM : CK_OK);
        if (!fired) break;
    }
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_what_it_decodes),
        cmocka_unit_test(every_member_is_checked),
        cmocka_unit_test(every_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
