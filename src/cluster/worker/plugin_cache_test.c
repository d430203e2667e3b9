/* Files of a worker's plugins: whole or not had, for their owner alone, and not too many. */
#include "cluster/worker/plugin_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <utime.h>

#include "os/durable.h"
#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct fixture {
    ck_test_proc t;
    char dir[100], needed[CK_SHA256_CHARS + 1];
    ck_plugin_cache *c;
} fixture;

static void open_cache(fixture *f) {
    ck_plugin_cache_free(f->c);
    OK(ck_plugin_cache_new(&f->t.proc, f->dir, 2500, &f->c, NULL));
}

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    snprintf(f.dir, sizeof f.dir, "%s/plugins", ck_test_dir(&f.t));
    open_cache(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_plugin_cache_free(f->c);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static bool is_needed(void *arg, const char *hash) { return strcmp(((fixture *)arg)->needed, hash) == 0; }

typedef struct plugin {
    char content[1000], hash[CK_SHA256_CHARS + 1], path[200];
} plugin;

static plugin plugin_of(const fixture *f, char filler) {
    plugin p;
    memset(p.content, filler, sizeof p.content);
    ck_sha256_of((ck_view){p.content, sizeof p.content}, p.hash);
    snprintf(p.path, sizeof p.path, "%s/%s.so", f->dir, p.hash);
    return p;
}

static void keep(fixture *f, const plugin *p) {
    OK(ck_plugin_cache_keep(f->c, p->hash, (ck_view){p->content, sizeof p->content}, is_needed, f, NULL));
}

static bool has(fixture *f, const plugin *p) {
    bool is;
    OK(ck_plugin_cache_has(f->c, p->hash, sizeof p->content, &is, NULL));
    return is;
}

static void a_plugin_is_kept_for_its_owner_alone(void **state) {
    fixture *f = *state;
    const plugin p = plugin_of(f, 'a');
    struct stat st;
    assert_false(has(f, &p));
    keep(f, &p);
    assert_true(has(f, &p));
    assert_int_equal(stat(p.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(f->dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    open_cache(f); /* the worker is started again */
    assert_true(has(f, &p));
}

/* Cut by a crash, or changed: what is there is not what it is called, and goes. */
static void what_is_not_whole_is_not_had(void **state) {
    fixture *f = *state;
    plugin p = plugin_of(f, 'a');
    for (int cut = 0; cut < 2; cut++) {
        keep(f, &p);
        open_cache(f);
        p.content[7] ^= 1;
        OK(ck_durable_replace_bytes(&f->t.proc, p.path, (ck_view){p.content, cut ? 500 : 1000}, NULL));
        p.content[7] ^= 1;
        assert_false(has(f, &p));
        struct stat st;
        assert_int_not_equal(stat(p.path, &st), 0);
    }
}

static void the_oldest_that_nobody_needs_go(void **state) {
    fixture *f = *state;
    plugin p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = plugin_of(f, (char)('a' + i));
        if (i == 2) memcpy(f->needed, p[0].hash, sizeof f->needed);
        keep(f, &p[i]);
        const struct utimbuf at = {1000 + i, 1000 + i};
        assert_int_equal(utime(p[i].path, &at), 0);
    }
    assert_true(has(f, &p[0]) && !has(f, &p[1]) && !has(f, &p[2]) && has(f, &p[3]));
}

static void a_directory_that_cannot_be_is_a_sentence(void **state) {
    fixture *f = *state;
    const plugin p = plugin_of(f, 'a');
    ck_error err = CK_ERROR_INIT;
    OK(ck_durable_replace_bytes(&f->t.proc, f->dir, CK_VIEW("a file"), NULL));
    assert_int_not_equal(ck_plugin_cache_keep(f->c, p.hash, (ck_view){p.content, sizeof p.content}, is_needed, f, &err),
                         CK_OK);
    assert_non_null(strstr(err.msg, f->dir));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_plugin_is_kept_for_its_owner_alone),
        T(what_is_not_whole_is_not_had),
        T(the_oldest_that_nobody_needs_go),
        T(a_directory_that_cannot_be_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
