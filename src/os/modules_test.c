/* Libraries opened on first use: once a description, and a sentence where something is missing. */
#include "os/modules.h"
#include "os/test_proc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <zlib.h>

#define ZLIB_FUNCTIONS(X) X(zlibVersion) X(crc32)
typedef struct zlib_lib {
    CK_MODULE_TABLE(ZLIB_FUNCTIONS)
} zlib_lib;
static const char *const zlib_names[] = {CK_MODULE_NAMES(ZLIB_FUNCTIONS)};

static void a_library_is_opened_once(void **state) {
    (void)state;
    static const ck_module_desc desc = {"libz.so.1", "zlib1g", "this test", zlib_names, CK_ARRAY_COUNT(zlib_names)};
    ck_test_proc t;
    ck_test_proc_init(&t);
    assert_int_equal(ck_modules_new(t.proc.heap, &t.proc.modules, NULL), CK_OK);
    const void *table = NULL, *again = NULL;
    assert_int_equal(ck_module_open(&t.proc, &desc, &table, NULL), CK_OK);
    assert_int_equal(ck_module_open(&t.proc, &desc, &again, NULL), CK_OK);
    assert_ptr_equal(table, again);
    const zlib_lib *lib = table;
    assert_int_equal(lib->crc32(0, (const Bytef *)"123456789", 9), 0xCBF43926);
    assert_string_equal(lib->zlibVersion(), zlibVersion());
    ck_modules_free(t.proc.modules);
    ck_test_proc_destroy(&t);
}

static void what_is_missing_is_named(void **state) {
    (void)state;
    static const char *const unknown[] = {"crc32", "no_such_function"};
    static const ck_module_desc no_library = {"libnothere.so.7", "libnothere7", "connector 'x'", zlib_names, 1};
    static const ck_module_desc no_function = {"libz.so.1", "zlib1g", "connector 'x'", unknown, 2};
    ck_test_proc t;
    ck_test_proc_init(&t);
    const void *table = NULL;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(ck_module_open(&t.proc, &no_library, &table, &err), CK_REFUSED);
    assert_int_equal(ck_modules_new(t.proc.heap, &t.proc.modules, NULL), CK_OK);
    err = CK_ERROR_INIT;
    assert_int_equal(ck_module_open(&t.proc, &no_library, &table, &err), CK_NOTFOUND);
    assert_string_equal(err.msg, "connector 'x' needs the library libnothere.so.7, which is not there (Debian: "
                                 "apt-get install libnothere7)");
    err = CK_ERROR_INIT;
    assert_int_equal(ck_module_open(&t.proc, &no_function, &table, &err), CK_NOTFOUND);
    assert_string_equal(err.msg, "connector 'x' needs a newer libz.so.1: this one lacks no_such_function");
    assert_null(table);
    ck_modules_free(t.proc.modules);
    ck_test_proc_destroy(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_library_is_opened_once),
                                       cmocka_unit_test(what_is_missing_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
