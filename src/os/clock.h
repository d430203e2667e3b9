/* Time comes from the proc's clock, never from the system directly: the simulator and tests hold it. Deadlines use the
 * monotonic reading; the wall clock is for display and SQL only. */
#ifndef CK_OS_CLOCK_H
#define CK_OS_CLOCK_H

#include "base/proc.h"

typedef struct ck_clock {
    int64_t (*mono_us)(struct ck_clock *c); /* never goes back; arbitrary zero */
    int64_t (*wall_us)(struct ck_clock *c); /* microseconds since 1970-01-01T00:00:00Z */
} ck_clock;

ck_clock *ck_clock_system(void); /* immutable, shared */

/* A clock that stands until moved. Thread: any. */
typedef struct ck_manual_clock {
    ck_clock base;
    _Atomic int64_t mono, wall;
} ck_manual_clock;
void ck_manual_clock_init(ck_manual_clock *c, int64_t mono_us, int64_t wall_us);
void ck_manual_clock_advance(ck_manual_clock *c, int64_t us); /* both readings */

static inline int64_t ck_mono_us(const ck_proc *p) { return p->clock->mono_us(p->clock); }
static inline int64_t ck_wall_us(const ck_proc *p) { return p->clock->wall_us(p->clock); }

#endif
