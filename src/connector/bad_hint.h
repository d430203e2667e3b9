/* What a person could do about a record that does not fit, for the sentence that fails the job with it. Guessed from the
 * record alone, so it is advice: the sentence in front says what is so. */
#ifndef CK_CONNECTOR_BAD_HINT_H
#define CK_CONNECTOR_BAD_HINT_H

#include <stdbool.h>

#include "format/decoder.h"

typedef struct ck_bad_hint {
    const char *format;     /* "json", "csv"; NULL: records have no format of their own */
    bool first_is_row;      /* csv without a header */
    bool on_error_is_given; /* 'fail' is what was asked for */
} ck_bad_hint;

/* "; header = 'true' ..." or "". Static. bad->offset 0 is the beginning of the input. */
const char *ck_bad_hint_for(const ck_bad_hint *of, const ck_bad_record *bad);

#endif
