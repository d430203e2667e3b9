/* From the engine's error to the one of the C ABI. */
#include <stdio.h>

#include "engine/engine_int.h"

static clink_status code_of(ck_status s) {
    switch (s) {
    case CK_OK: return CLINK_OK;
    case CK_AGAIN: return CLINK_TIMEOUT;
    case CK_INVALID: return CLINK_INVALID;
    case CK_REFUSED: return CLINK_REFUSED;
    case CK_DATA: return CLINK_DATA;
    case CK_IO:
    case CK_NOTFOUND:
    case CK_EXISTS: return CLINK_IO;
    case CK_NOMEM: return CLINK_NOMEM;
    case CK_CORRUPT: return CLINK_CORRUPT;
    case CK_CANCELLED: return CLINK_CANCELLED;
    default: return CLINK_FAILED;
    }
}

clink_status engine_refuse_null(const char *what, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    return engine_error(ck_fail(&err, CK_INVALID, "%s is NULL", what), &err, error);
}

static size_t append(clink_error *to, size_t used, const char *text) {
    int n = snprintf(to->message + used, sizeof to->message - used, "%s", text);
    used += n > 0 ? (size_t)n : 0;
    return used < sizeof to->message ? used : sizeof to->message - 1;
}

clink_status engine_error(ck_status s, const ck_error *from, clink_error *to) {
    clink_status code = code_of(s);
    if (!to) return code;
    *to = (clink_error){.status = code, .byte_offset = -1};
    if (s == CK_OK || !from) return code;
    to->retriable = from->retriable;
    to->line = from->place.line;
    to->column = from->place.column;
    to->byte_offset = from->place.byte_offset;
    size_t used = append(to, 0, from->msg[0] ? from->msg : ck_status_name(s));
    if (from->place.object[0] && from->place.subtask >= 0) {
        char where[320];
        snprintf(where, sizeof where, " (in %s, subtask %d)", from->place.object, from->place.subtask);
        append(to, used, where);
    }
    return code;
}
