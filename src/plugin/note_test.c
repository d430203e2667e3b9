#include "plugin/note.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

typedef struct library { /* as small as one can be */
    Elf64_Ehdr head;
    Elf64_Phdr segments[2];
    uint32_t foreign[3];
    char foreign_name[4], foreign_note[8];
    uint32_t note[3];
    char name[8];
    uint32_t abi, bytes;
} library;

static library made(void) {
    library l = {.head = {.e_type = ET_DYN,
                          .e_machine = MACHINE,
                          .e_phoff = offsetof(library, segments),
                          .e_phentsize = sizeof(Elf64_Phdr),
                          .e_phnum = 2},
                 .segments = {{.p_type = PT_LOAD},
                              {.p_type = PT_NOTE,
                               .p_offset = offsetof(library, foreign),
                               .p_filesz = sizeof(library) - offsetof(library, foreign)}},
                 .foreign = {4, 6, 1},
                 .foreign_name = "GNU",
                 .note = {6, 8, 1},
                 .name = "clink",
                 .abi = 7,
                 .bytes = 40};
    memcpy(l.head.e_ident, ELFMAG, SELFMAG);
    l.head.e_ident[EI_CLASS] = ELFCLASS64;
    l.head.e_ident[EI_DATA] = ELFDATA2LSB;
    return l;
}

static ck_status read_note(const library *l, size_t n, ck_plugin_note *out, ck_error *err) {
    char copy[sizeof *l];
    memcpy(copy, l, n);
    return ck_plugin_note_read((ck_view){copy, n}, out, err);
}

static void the_note_is_found_behind_others(void **state) {
    (void)state;
    ck_plugin_note n;
    ck_error err = CK_ERROR_INIT;
    library l = made();
    assert_int_equal(read_note(&l, sizeof l, &n, &err), CK_OK);
    assert_int_equal(n.abi, 7);
    assert_int_equal(n.table_bytes, 40);
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    ck_plugin_note n;
    ck_error err = CK_ERROR_INIT;
    library l = made();
    l.head.e_type = ET_EXEC;
    assert_int_equal(read_note(&l, sizeof l, &n, &err), CK_INVALID);
    assert_non_null(strstr(err.msg, "no shared library"));
    l = made();
    l.head.e_machine = EM_386;
    assert_int_equal(read_note(&l, sizeof l, &n, &err), CK_INVALID);
    assert_string_equal(err.msg, "this is a library for another machine");
    l = made();
    l.name[0] = 'k';
    assert_int_equal(read_note(&l, sizeof l, &n, &err), CK_INVALID);
    assert_non_null(strstr(err.msg, "CLINK_PLUGIN(table)"));
    l = made();
    l.segments[1].p_offset = UINT64_MAX - 4;
    assert_int_equal(read_note(&l, sizeof l, &n, &err), CK_INVALID);
    assert_string_equal(err.msg, "its notes are damaged");
    l = made();
    l.head.e_phoff = UINT64_MAX;
    assert_int_equal(read_note(&l, sizeof l, &n, &err), CK_INVALID);
    assert_string_equal(err.msg, "its program headers are damaged");
    l = made();
    l.foreign[0] = UINT32_MAX;
    assert_int_equal(read_note(&l, sizeof l, &n, &err), CK_INVALID);
}

/* Cut anywhere it is refused; with any byte changed it is read or refused, within its bounds (the sanitizer looks). */
static void damage_is_survived(void **state) {
    (void)state;
    ck_plugin_note n;
    library l = made();
    for (size_t cut = 0; cut < sizeof l; cut++) assert_int_equal(read_note(&l, cut, &n, NULL), CK_INVALID);
    for (size_t i = 0; i < sizeof l; i++)
        for (unsigned v = 0; v < 256; v += 17) {
            library bad = l;
            ((uint8_t *)&bad)[i] = (uint8_t)v;
            ck_status s = read_note(&bad, sizeof bad, &n, NULL);
            assert_true(s == CK_OK || s == CK_INVALID);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_note_is_found_behind_others),
                                       cmocka_unit_test(what_is_wrong_is_said), cmocka_unit_test(damage_is_survived)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
