/* What a plugin was made for, read from its file without loading it: the ELF note of clink/plugin.h. */
#ifndef CK_PLUGIN_NOTE_H
#define CK_PLUGIN_NOTE_H

#include "base/view.h"
#include "base/status.h"

typedef struct ck_plugin_note {
    uint32_t abi, table_bytes;
} ck_plugin_note;

/* Of the whole file. CK_INVALID: it is no shared library of this machine's kind, or has no note; the sentence does not
 * name the file. */
CK_NODISCARD ck_status ck_plugin_note_read(ck_view file, ck_plugin_note *out, ck_error *err);

#endif
