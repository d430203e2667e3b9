/* Plugins that are offered, come in parts, are kept and go, in memory and in a directory. */
#include "cluster/coordinator/uploads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/durable.h"
#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)
enum { PART = CK_CLUSTER_PART_BYTES_MAX };

typedef struct fixture {
    ck_test_proc t;
    ck_arena arena;
    ck_plugin_store *store;
    ck_uploads *u;
    char named[CK_SHA256_CHARS + 1]; /* a job needs it */
    ck_error err;
} fixture;

static bool is_named(void *arg, ck_view hash) { return ck_view_is(hash, ((fixture *)arg)->named); }

static void allow(fixture *f, const char *what) {
    ck_uploads_free(f->u);
    const ck_uploads_config cfg = {
        .proc = &f->t.proc, .store = f->store, .allow = what, .is_named = is_named, .arg = f};
    OK(ck_uploads_new(&cfg, &f->u, NULL));
}

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    ck_arena_init(&f.arena, ck_proc_mem(&f.t.proc, CK_MEM_PLAN), 512 << 20);
    *state = &f;
    return 0;
}

static int setup_memory(void **state) {
    setup(state);
    fixture *f = *state;
    OK(ck_plugin_store_memory(&f->t.proc, &f->store, NULL));
    allow(f, "any");
    return 0;
}

static int setup_dir(void **state) {
    setup(state);
    fixture *f = *state;
    OK(ck_plugin_store_dir(&f->t.proc, ck_test_dir(&f->t), &f->store, NULL));
    allow(f, "any");
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_uploads_free(f->u);
    ck_plugin_store_close(f->store);
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

/* n bytes of their own, by what they hold. */
static ck_msg_plugin plugin_of(fixture *f, size_t n, char filler, ck_view *content) {
    char *p = ck_arena_alloc(&f->arena, n + 1), *hash = ck_arena_alloc(&f->arena, CK_SHA256_CHARS + 1);
    memset(p, filler, n);
    *content = (ck_view){p, n};
    ck_sha256_of(*content, hash);
    return (ck_msg_plugin){ck_view_of(hash), n, CK_VIEW("x.so")};
}

/* What takes long is done here. */
static ck_status done(fixture *f, int64_t now_us, ck_status s, ck_uploads_work *w, bool *wanted, uint64_t *dropped) {
    assert_int_equal(s == CK_AGAIN, w != NULL);
    if (!w) return s;
    ck_uploads_run(w);
    return ck_uploads_end(f->u, now_us, &w, wanted, dropped, &f->err);
}

static ck_status offer_as(fixture *f, int64_t now_us, uint64_t conn, const ck_msg_plugin *p, bool may_upload,
                          bool *wanted, uint64_t *dropped) {
    ck_uploads_work *w;
    ck_error_reset(&f->err);
    ck_status s = ck_uploads_offer(f->u, now_us, conn, p, may_upload, wanted, dropped, &w, &f->err);
    return done(f, now_us, s, w, wanted, dropped);
}

static ck_status offer(fixture *f, int64_t now_us, uint64_t conn, const ck_msg_plugin *p, bool *wanted,
                       uint64_t *dropped) {
    return offer_as(f, now_us, conn, p, true, wanted, dropped);
}

static ck_status part(fixture *f, uint64_t conn, ck_view content, size_t at, size_t n) {
    ck_error_reset(&f->err);
    const ck_msg_upload_part m = {.offset = at, .part = {content.p + (at < content.n ? at : 0), n}};
    ck_uploads_work *w;
    bool wanted;
    uint64_t dropped;
    ck_status s = ck_uploads_part(f->u, 0, conn, &m, &w, &f->err);
    return done(f, 0, s, w, &wanted, &dropped);
}

static void upload(fixture *f, uint64_t conn, const ck_msg_plugin *p, ck_view content) {
    bool wanted;
    uint64_t dropped;
    OK(offer(f, 0, conn, p, &wanted, &dropped));
    assert_true(wanted);
    for (size_t at = 0; at < content.n; at += PART)
        OK(part(f, conn, content, at, content.n - at < PART ? content.n - at : PART));
}

static bool is_here(fixture *f, const ck_msg_plugin *p) {
    ck_error_reset(&f->err);
    return ck_uploads_check(f->u, &(ck_proto_list){p, 1}, &f->err) == CK_OK;
}

#define ASSERT_SAID(f, text)                                                                                           \
    do {                                                                                                               \
        if (!strstr((f)->err.msg, text)) fail_msg("\"%s\" has no \"%s\"", (f)->err.msg, text);                         \
    } while (0)

static void what_was_kept_is_given_part_by_part(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content, out;
    ck_msg_plugin p = plugin_of(f, 2 * PART + 7, 'a', &content);
    assert_false(is_here(f, &p));
    ASSERT_SAID(f, "x.so is not here");
    upload(f, 1, &p, content);
    assert_true(is_here(f, &p));
    OK(offer(f, 0, 2, &p, &wanted, &dropped));
    assert_false(wanted);
    static const size_t lengths[] = {PART, PART, 7};
    for (uint64_t i = 0; i < 3; i++) {
        const ck_msg_want_plugin want = {.hash = p.hash, .offset = i * PART};
        OK(ck_uploads_read(f->u, &want, &f->arena, &out, &f->err));
        assert_int_equal(out.n, lengths[i]);
        assert_memory_equal(out.p, content.p + i * PART, out.n);
    }
    const ck_msg_want_plugin beyond[] = {{.hash = p.hash, .offset = content.n},
                                         {.hash = p.hash, .offset = content.n + 1}};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(ck_uploads_read(f->u, &beyond[i], &f->arena, &out, &f->err), CK_NOTFOUND);
    ck_msg_plugin longer = p;
    longer.bytes++;
    assert_false(is_here(f, &longer));
}

static void hostile_lengths_end_an_upload(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content;
    ck_msg_plugin p = plugin_of(f, 1000, 'b', &content);
    static const struct { size_t at, n; } bad[] = {{0, 0}, {1, 10}, {0, 1001}, {SIZE_MAX, 1}, {1000, 1}};
    assert_int_equal(part(f, 9, content, 0, 10), CK_CORRUPT);
    ASSERT_SAID(f, "was not asked for");
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        OK(offer(f, 0, 1, &p, &wanted, &dropped));
        assert_int_equal(part(f, 1, content, bad[i].at, bad[i].n), CK_CORRUPT);
        ASSERT_SAID(f, "does not fit behind what has come");
        ck_uploads_closed(f->u, 1);
    }
    OK(offer(f, 0, 1, &p, &wanted, &dropped));
    OK(part(f, 1, content, 0, 999));
    assert_int_equal(part(f, 1, content, 999, 2), CK_CORRUPT);
    OK(offer(f, 0, 1, &p, &wanted, &dropped)); /* another offer begins anew */
    OK(part(f, 1, content, 0, 1000));
    assert_true(is_here(f, &p));
}

static void another_hash_than_was_said_is_not_kept(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content, other;
    ck_msg_plugin p = plugin_of(f, 100, 'c', &content), q = plugin_of(f, 100, 'd', &other);
    OK(offer(f, 0, 1, &p, &wanted, &dropped));
    assert_int_equal(part(f, 1, other, 0, 100), CK_CORRUPT);
    ASSERT_SAID(f, "another SHA-256 than was said");
    assert_int_equal(part(f, 1, content, 0, 100), CK_CORRUPT); /* that was it */
    assert_false(is_here(f, &p) || is_here(f, &q));
}

static void what_is_no_hash_names_nothing(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content, out;
    static const char *const names[] = {"", "../../../../../../../../../../../../../../../../../../../etc/pas",
                                        "ABCDEF0000000000000000000000000000000000000000000000000000000000",
                                        "00000000000000000000000000000000000000000000000000000000000000000"};
    ck_msg_plugin p = plugin_of(f, 10, 'e', &content);
    for (size_t i = 0; i < CK_ARRAY_COUNT(names); i++) {
        p.hash = ck_view_of(names[i]);
        assert_int_equal(offer(f, 0, 1, &p, &wanted, &dropped), CK_CORRUPT);
        const ck_msg_want_plugin want = {.hash = p.hash};
        assert_int_equal(ck_uploads_read(f->u, &want, &f->arena, &out, &f->err), CK_CORRUPT);
    }
    p = plugin_of(f, 10, 'e', &content);
    p.bytes = 0;
    assert_int_equal(offer(f, 0, 1, &p, &wanted, &dropped), CK_CORRUPT);
    p.bytes = CK_CLUSTER_PLUGIN_BYTES_MAX + 1ull;
    assert_int_equal(offer(f, 0, 1, &p, &wanted, &dropped), CK_REFUSED);
    ASSERT_SAID(f, "takes 67108864");
}

/* Nothing of it is sent, and nothing is asked for. */
static void what_is_not_allowed_is_refused_when_it_is_offered(void **state) {
    fixture *f = *state;
    bool wanted = true;
    uint64_t dropped;
    char path[120], text[400];
    ck_view content, other;
    ck_msg_plugin p = plugin_of(f, 10, 'f', &content), q = plugin_of(f, 10, 'g', &other);
    upload(f, 1, &p, content);
    allow(f, NULL);
    assert_int_equal(offer(f, 0, 1, &p, &wanted, &dropped), CK_REFUSED);
    assert_false(wanted);
    ASSERT_SAID(f, "plugin x.so: this coordinator takes none; clink coordinator --allow-plugins");
    assert_false(is_here(f, &p)); /* nor may a new job run with it */
    snprintf(path, sizeof path, "%s/sums", ck_test_dir(&f->t));
    snprintf(text, sizeof text, "# ours\n\n%.*s  x.so\n", (int)p.hash.n, p.hash.p);
    OK(ck_durable_replace_bytes(&f->t.proc, path, ck_view_of(text), NULL));
    allow(f, path);
    assert_true(is_here(f, &p));
    assert_int_equal(offer(f, 0, 1, &q, &wanted, &dropped), CK_REFUSED);
    ASSERT_SAID(f, "is not in ");
    ASSERT_SAID(f, "(--allow-plugins)");
    snprintf(text, sizeof text, "%.*s", (int)q.hash.n, q.hash.p); /* read each time */
    OK(ck_durable_replace_bytes(&f->t.proc, path, ck_view_of(text), NULL));
    OK(offer(f, 0, 1, &q, &wanted, &dropped));
    assert_false(is_here(f, &p));
    OK(ck_durable_replace_bytes(&f->t.proc, path, CK_VIEW("\nfeed\n"), NULL));
    assert_int_equal(offer(f, 0, 1, &q, &wanted, &dropped), CK_INVALID);
    ASSERT_SAID(f, "sums:2: a line begins with a SHA-256");
    const ck_uploads_config cfg = {
        .proc = &f->t.proc, .store = f->store, .allow = "/no/such/file", .is_named = is_named};
    ck_uploads *none;
    assert_int_equal(ck_uploads_new(&cfg, &none, &f->err), CK_NOTFOUND);
}

static void uploading_has_a_role_of_its_own(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content;
    ck_msg_plugin p = plugin_of(f, 10, 'h', &content);
    assert_int_equal(offer_as(f, 0, 1, &p, false, &wanted, &dropped), CK_REFUSED);
    ASSERT_SAID(f, "uploading it wants a token with the role plugin");
    upload(f, 2, &p, content);
    OK(offer_as(f, 0, 1, &p, false, &wanted, &dropped)); /* it is here: whoever submits may use it */
    assert_false(wanted);
}

static void so_many_are_under_way_and_who_stands_still_goes(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content;
    ck_msg_plugin p = {0};
    for (uint64_t conn = 1; conn <= CK_UPLOADS_MAX; conn++) {
        p = plugin_of(f, 100, (char)('a' + conn), &content);
        OK(offer(f, (int64_t)conn, conn, &p, &wanted, &dropped));
        assert_true(wanted && !dropped);
    }
    p = plugin_of(f, 100, 'z', &content);
    assert_int_equal(offer(f, CK_UPLOAD_IDLE_US, 9, &p, &wanted, &dropped), CK_FULL);
    ASSERT_SAID(f, "others upload plugins just now");
    assert_int_equal(dropped, 0);
    OK(offer(f, CK_UPLOAD_IDLE_US + 1, 9, &p, &wanted, &dropped));
    assert_true(wanted && dropped == 1);
    assert_int_equal(part(f, 1, content, 0, 10), CK_CORRUPT);
    ck_uploads_closed(f->u, 3);
    OK(offer(f, CK_UPLOAD_IDLE_US + 1, 10, &p, &wanted, &dropped));
    assert_true(wanted && dropped == 0);
}

/* What they have announced is bounded, too, and takes no memory before it comes. */
static void announced_bytes_are_bounded(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content;
    ck_msg_plugin p = plugin_of(f, 10, 'a', &content);
    p.bytes = CK_CLUSTER_PLUGIN_BYTES_MAX;
    size_t before = ck_budget_total(&f->t.proc.budget);
    for (uint64_t conn = 1; conn <= CK_UPLOADS_BYTES_MAX / CK_CLUSTER_PLUGIN_BYTES_MAX; conn++)
        OK(offer(f, 0, conn, &p, &wanted, &dropped));
    assert_true(ck_budget_total(&f->t.proc.budget) - before < 8192);
    p.bytes = 1;
    assert_int_equal(offer(f, 0, 9, &p, &wanted, &dropped), CK_FULL);
}

static void the_oldest_that_no_job_needs_make_room(void **state) {
    fixture *f = *state;
    ck_view content[4];
    ck_msg_plugin p[4];
    bool wanted;
    uint64_t dropped;
    f->store->bytes_max = 3000;
    for (int i = 0; i < 3; i++) {
        p[i] = plugin_of(f, 1000, (char)('a' + i), &content[i]);
        upload(f, 1, &p[i], content[i]);
    }
    snprintf(f->named, sizeof f->named, "%.*s", (int)p[0].hash.n, p[0].hash.p);
    p[3] = plugin_of(f, 1000, 'd', &content[3]);
    upload(f, 1, &p[3], content[3]);
    assert_true(is_here(f, &p[0]) && !is_here(f, &p[1]) && is_here(f, &p[2]) && is_here(f, &p[3]));
    ck_view large;
    ck_msg_plugin q = plugin_of(f, 2001, 'e', &large);
    assert_int_equal(offer(f, 0, 1, &q, &wanted, &dropped), CK_FULL);
    ASSERT_SAID(f, "the plugins of the jobs here have 1000 bytes, and 3000 are the most");
    q = plugin_of(f, 3001, 'f', &large);
    assert_int_equal(offer(f, 0, 1, &q, &wanted, &dropped), CK_FULL);
}

/* A file that is not what its name says is not had: it is taken anew. */
static void a_damaged_file_is_asked_for_again(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    char path[200];
    ck_view content;
    ck_msg_plugin p = plugin_of(f, 1000, 'a', &content);
    upload(f, 1, &p, content);
    snprintf(path, sizeof path, "%s/plugins/%.*s.so", ck_test_dir(&f->t), (int)p.hash.n, p.hash.p);
    char *other = ck_arena_strndup(&f->arena, content.p, content.n);
    other[500] ^= 1;
    OK(ck_durable_replace_bytes(&f->t.proc, path, (ck_view){other, 1000}, NULL));
    OK(offer(f, 0, 1, &p, &wanted, &dropped));
    assert_true(wanted);
    OK(part(f, 1, content, 0, 1000));
    OK(offer(f, 0, 1, &p, &wanted, &dropped));
    assert_false(wanted);
    ck_plugin_store *again; /* whoever comes next finds it */
    ck_kept_plugin *kept;
    uint32_t count;
    OK(ck_plugin_store_dir(&f->t.proc, ck_test_dir(&f->t), &again, NULL));
    OK(ck_plugin_store_list(again, &f->arena, &kept, &count, NULL));
    assert_int_equal(count, 1);
    assert_int_equal(kept[0].bytes, 1000);
    OK(ck_plugin_store_forget(again, kept[0].hash, NULL));
    OK(ck_plugin_store_forget(again, kept[0].hash, NULL)); /* is not: fine */
    OK(ck_plugin_store_list(again, &f->arena, &kept, &count, NULL));
    assert_int_equal(count, 0);
    ck_plugin_store_close(again);
}

/* Nobody waits for the answer any more: the upload goes with its work, and has its place until then. */
static void a_connection_that_closes_while_its_plugin_is_kept_leaves_nothing(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content, other;
    ck_uploads_work *w;
    ck_msg_plugin p = plugin_of(f, 1000, 'a', &content), q = plugin_of(f, 3000, 'b', &other);
    f->store->bytes_max = 3000;
    OK(offer(f, 0, 1, &p, &wanted, &dropped));
    const ck_msg_upload_part m = {.part = content};
    assert_int_equal(ck_uploads_part(f->u, 0, 1, &m, &w, &f->err), CK_AGAIN);
    assert_int_equal(offer(f, 0, 2, &q, &wanted, &dropped), CK_FULL); /* what is being kept is counted */
    ck_uploads_closed(f->u, 1);
    ck_uploads_run(w);
    ck_uploads_drop(f->u, &w);
    assert_null(w);
    OK(offer(f, 0, 2, &q, &wanted, &dropped));
    assert_true(wanted);
}

/* One that stands still makes way, and not one whose bytes a disk is at. */
static void what_is_being_kept_does_not_make_way(void **state) {
    fixture *f = *state;
    bool wanted;
    uint64_t dropped;
    ck_view content;
    ck_uploads_work *w[CK_UPLOADS_MAX];
    ck_msg_plugin p;
    for (uint64_t conn = 1; conn <= CK_UPLOADS_MAX; conn++) {
        p = plugin_of(f, 100, (char)('a' + conn), &content);
        OK(offer(f, 0, conn, &p, &wanted, &dropped));
        const ck_msg_upload_part m = {.part = content};
        assert_int_equal(ck_uploads_part(f->u, 0, conn, &m, &w[conn - 1], &f->err), CK_AGAIN);
    }
    p = plugin_of(f, 100, 'z', &content);
    assert_int_equal(offer(f, 2ll * CK_UPLOAD_IDLE_US, 9, &p, &wanted, &dropped), CK_FULL);
    assert_int_equal(dropped, 0);
    for (int i = 0; i < CK_UPLOADS_MAX; i++) {
        ck_uploads_run(w[i]);
        OK(ck_uploads_end(f->u, 0, &w[i], &wanted, &dropped, &f->err));
    }
    OK(offer(f, 0, 9, &p, &wanted, &dropped));
}

int main(void) {
#define M(name) cmocka_unit_test_setup_teardown(name, setup_memory, teardown)
#define D(name) cmocka_unit_test_setup_teardown(name, setup_dir, teardown)
    const struct CMUnitTest tests[] = {
        M(what_was_kept_is_given_part_by_part),
        D(what_was_kept_is_given_part_by_part),
        M(hostile_lengths_end_an_upload),
        M(another_hash_than_was_said_is_not_kept),
        D(another_hash_than_was_said_is_not_kept),
        M(what_is_no_hash_names_nothing),
        D(what_is_no_hash_names_nothing),
        M(what_is_not_allowed_is_refused_when_it_is_offered),
        M(uploading_has_a_role_of_its_own),
        M(so_many_are_under_way_and_who_stands_still_goes),
        M(announced_bytes_are_bounded),
        M(the_oldest_that_no_job_needs_make_room),
        D(a_damaged_file_is_asked_for_again),
        M(a_connection_that_closes_while_its_plugin_is_kept_leaves_nothing),
        D(a_connection_that_closes_while_its_plugin_is_kept_leaves_nothing),
        M(what_is_being_kept_does_not_make_way),
        D(what_is_being_kept_does_not_make_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
