/* The ELF note of a plugin: read or refused, never beyond the file. */
#include "fuzz.h"

#include "plugin/note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ck_plugin_note note;
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_plugin_note_read((ck_view){(const char *)data, size}, &note, &err);
    CK_ASSERT(s == CK_OK || s == CK_INVALID);
    CK_ASSERT(s == CK_OK || err.msg[0]);
    return 0;
}
