/* Raw bytes of a record as one line of text in a message: control bytes and what is not ASCII or UTF-8 text shown as
 * dots, cut with "..." where `room` (at least 8, the NUL included) is too small. */
#ifndef CK_CONNECTOR_SHOW_RAW_H
#define CK_CONNECTOR_SHOW_RAW_H

#include <stddef.h>

#include "base/view.h"

void ck_show_raw(char *to, size_t room, ck_view raw);

#endif
