/* See clock.h. */
#include "os/clock.h"

#include <time.h>

#define WALL_SECONDS_LEAST 0LL            /* 1970-01-01 00:00:00 */
#define WALL_SECONDS_MOST  253402300799LL /* 9999-12-31 23:59:59 */

static int64_t read_us(clockid_t id) {
    struct timespec t;
    int failed = clock_gettime(id, &t);
    CK_ASSERT(failed == 0); /* only for an unknown clock */
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t system_mono_us(ck_clock *c) {
    (void)c;
    return read_us(CLOCK_MONOTONIC);
}
/* What checkpoints and SQL can hold, whatever the machine believes. */
static int64_t system_wall_us(ck_clock *c) {
    (void)c;
    struct timespec t;
    int failed = clock_gettime(CLOCK_REALTIME, &t);
    CK_ASSERT(failed == 0);
    if (t.tv_sec < WALL_SECONDS_LEAST) return WALL_SECONDS_LEAST * 1000000;
    if (t.tv_sec > WALL_SECONDS_MOST) return WALL_SECONDS_MOST * 1000000;
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

ck_clock *ck_clock_system(void) {
    static const ck_clock system_clock = {system_mono_us, system_wall_us};
    return (ck_clock *)(uintptr_t)&system_clock; /* stateless: nobody writes through it */
}

static int64_t manual_mono_us(ck_clock *c) { return atomic_load(&((ck_manual_clock *)c)->mono); }
static int64_t manual_wall_us(ck_clock *c) { return atomic_load(&((ck_manual_clock *)c)->wall); }

void ck_manual_clock_init(ck_manual_clock *c, int64_t mono_us, int64_t wall_us) {
    c->base = (ck_clock){manual_mono_us, manual_wall_us};
    atomic_init(&c->mono, mono_us);
    atomic_init(&c->wall, wall_us);
}

void ck_manual_clock_advance(ck_manual_clock *c, int64_t us) {
    CK_ASSERT(us >= 0); /* the monotonic reading never goes back */
    atomic_fetch_add(&c->mono, us);
    atomic_fetch_add(&c->wall, us);
}
