/* Patterns of dates as Java writes them, compiled once: y M d D E H h m s S a and text in quotes. Printing and reading.
 *
 *   yyyy yy   year, of two digits the last ones (reading: 1970..2069)    HH H   hour 0..23      a     AM, PM
 *   MM M      month         MMM MMMM   its name, short and long          hh h   hour 1..12      D DDD day of the year
 *   dd d      day           E.. EEEE   weekday, short and long           mm m   minute   ss s   second   S.. fraction
 */
#ifndef CK_EXPR_DATEFMT_H
#define CK_EXPR_DATEFMT_H

#include "base/arena.h"

typedef struct ck_datefmt ck_datefmt;
enum { CK_DATEFMT_PATTERN_MAX = 4096 }; /* bytes: a pattern may come out of a row */

/* CK_INVALID names the letter it does not know, or an open quote. */
CK_NODISCARD ck_status ck_datefmt_compile(ck_arena *a, ck_view pattern, const ck_datefmt **out, ck_error *err);
/* Most bytes a value takes. */
size_t ck_datefmt_bytes_max(const ck_datefmt *f);
/* Values within the same interval of so many microseconds (from the epoch) print the same. */
int64_t ck_datefmt_grain_us(const ck_datefmt *f);
size_t ck_datefmt_print(const ck_datefmt *f, int64_t local_us, char *p);
/* false: the text is not as the pattern says, or is no date. Fields that the pattern lacks are those of 1970-01-01. */
bool ck_datefmt_parse(const ck_datefmt *f, ck_view text, int64_t *local_us);

#endif
