/* What CSV options may be, for reading and writing alike. */
#ifndef CK_FORMAT_CSV_RULES_INT_H
#define CK_FORMAT_CSV_RULES_INT_H

#include "base/status.h"
#include "base/view.h"

/* Nothing a number is made of: "1.5" is one field, whatever the delimiter. */
static inline bool ck_csv_may_delimit(char c) {
    bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return (unsigned char)c < 0x80 && c != 0 && !word && !strchr("\"\r\n.+-", c);
}

static inline ck_status ck_csv_check_options(char delimiter, const char *null_string, ck_error *err) {
    if (!ck_csv_may_delimit(delimiter))
        return ck_fail(err, CK_INVALID,
                       "delimiter must be one ASCII character, not a letter, a digit, + - or ., a quote or a line end");
    if (null_string && (strpbrk(null_string, "\"\r\n") || strchr(null_string, delimiter)))
        return ck_fail(err, CK_INVALID, "null_string must not hold a quote, the delimiter or a line end");
    return CK_OK;
}

#endif
