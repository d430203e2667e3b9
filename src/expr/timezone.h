/* Time zones from the TZif files of tzdata (RFC 8536), read through the proc's file system. A zone is immutable and
 * lives in the arena it was loaded into. Names: IANA names ("Europe/Berlin"), "UTC", "Z", and fixed offsets ("+05:30").
 * Times before the first transition use the first offset, those after the last the file's rule, as the Gregorian
 * calendar repeats every 400 years. */
#ifndef CK_EXPR_TIMEZONE_H
#define CK_EXPR_TIMEZONE_H

#include "base/arena.h"
#include "base/proc.h"

typedef struct ck_timezone ck_timezone;

/* proc may be NULL: then only UTC and fixed offsets are known. CK_INVALID names the zone. Blocks (reads a file). */
CK_NODISCARD ck_status ck_timezone_load(ck_proc *proc, ck_arena *a, const char *name, const ck_timezone **out,
                                        ck_error *err);
/* The bytes of a TZif file; what ck_timezone_load and the tests use. CK_CORRUPT when they are not one. */
CK_NODISCARD ck_status ck_timezone_parse(ck_arena *a, ck_view bytes, const char *name, const ck_timezone **out,
                                         ck_error *err);

/* Microseconds to add to UTC at an instant. *from and *until (optional): the interval [from, until) in which the answer
 * stays the same. */
int64_t ck_timezone_offset(const ck_timezone *z, int64_t utc_us, int64_t *from, int64_t *until);
static inline int64_t ck_timezone_local(const ck_timezone *z, int64_t utc_us) {
    return utc_us + ck_timezone_offset(z, utc_us, NULL, NULL);
}
/* The instant of a wall clock reading. One that happens twice is the earlier; one that is skipped counts on with the
 * offset before the gap. */
int64_t ck_timezone_utc(const ck_timezone *z, int64_t local_us);

#endif
