/* See note.h. ELF64, little-endian: header, program headers, and in those of type PT_NOTE notes of
 *   u32 name bytes, u32 note bytes, u32 type, name and note each padded to 4
 * All of it comes from outside: every offset is checked against the file's end. */
#include "plugin/note.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "which machine is this?"
#endif

static bool inside(ck_view file, uint64_t offset, uint64_t bytes) {
    return offset <= file.n && bytes <= file.n - offset;
}

static uint64_t padded(uint32_t n) { return ((uint64_t)n + 3) & ~3ULL; }

/* One segment of notes. */
static bool find_in(ck_view notes, ck_plugin_note *out) {
    for (uint64_t at = 0; notes.n - at >= 12;) {
        uint32_t head[3];
        memcpy(head, notes.p + at, 12);
        at += 12;
        uint64_t bytes = padded(head[0]) + padded(head[1]);
        if (bytes > notes.n - at) return false;
        const char *name = notes.p + at, *note = name + padded(head[0]);
        if (head[0] == 6 && memcmp(name, "clink", 6) == 0 && head[2] == 1 && head[1] >= 8) {
            memcpy(&out->abi, note, 4);
            memcpy(&out->table_bytes, note + 4, 4);
            return true;
        }
        at += bytes;
    }
    return false;
}

ck_status ck_plugin_note_read(ck_view file, ck_plugin_note *out, ck_error *err) {
    Elf64_Ehdr h;
    if (file.n < sizeof h || memcmp(file.p, ELFMAG, SELFMAG) != 0)
        return ck_fail(err, CK_INVALID, "this is no shared library");
    memcpy(&h, file.p, sizeof h);
    if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_machine != MACHINE)
        return ck_fail(err, CK_INVALID, "this is a library for another machine");
    if (h.e_type != ET_DYN) return ck_fail(err, CK_INVALID, "this is no shared library; cc -shared -fPIC makes one");
    if (h.e_phentsize != sizeof(Elf64_Phdr) || !inside(file, h.e_phoff, (uint64_t)h.e_phnum * sizeof(Elf64_Phdr)))
        return ck_fail(err, CK_INVALID, "its program headers are damaged");
    for (uint32_t i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, file.p + h.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type != PT_NOTE) continue;
        if (!inside(file, p.p_offset, p.p_filesz)) return ck_fail(err, CK_INVALID, "its notes are damaged");
        if (find_in((ck_view){file.p + p.p_offset, p.p_filesz}, out)) return CK_OK;
    }
    return ck_fail(err, CK_INVALID, "this is no clink plugin: it does not say CLINK_PLUGIN(table)");
}
