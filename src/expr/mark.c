/* See mark.h. */
#include "expr/mark.h"

const char *ck_mark_text(ck_mark m) {
    switch (m) {
    case CK_MARK_NONE: return "no error";
    case CK_MARK_OVERFLOW: return "out of range";
    case CK_MARK_DIVISION: return "division by zero";
    case CK_MARK_CAST: return "not a value of the type";
    case CK_MARK_ARGUMENT: return "an argument the function is not defined for";
    case CK_MARK_TOO_LONG: return "a text that is too long";
    case CK_MARK_COUNT: break;
    }
    return "unknown error";
}
