/* What both directions of the Arrow bridge share. This room only. */
#ifndef CK_DATA_ARROW_INT_H
#define CK_DATA_ARROW_INT_H

#include <nanoarrow/nanoarrow.h>

#include "data/arrow.h"

/* The kind an Arrow type becomes, or CK_TYPE_COUNT when there is none. */
ck_kind ck_arrow_kind(const struct ArrowSchemaView *v);
/* An error of the library: ENOMEM or what was wrong with the input. */
ck_status ck_arrow_fail(ck_error *err, int code, ck_status otherwise, const char *what, const char *detail);

#endif
