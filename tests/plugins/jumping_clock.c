/* LD_PRELOAD: a wall clock that somebody sets, an hour, a minute or a second to and fro, every 5 ms. The monotonic one
 * goes on as it does. CLINK_JUMPS: the seed; CLINK_CLOCK: the second since 1970 that it stands at; without either the
 * clock is left alone. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t jump_s(void) {
    static const int64_t jumps[] = {0, 0, 1, -1, 60, -60, 3600, -3600};
    const char *seed = getenv("CLINK_JUMPS");
    struct timespec now;
    if (!seed) return 0;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    uint64_t x = (uint64_t)(now.tv_sec * 200 + now.tv_nsec / 5000000) + strtoull(seed, NULL, 10) * 1000003;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return jumps[x >> 61];
}

int clock_gettime(clockid_t clock, struct timespec *ts) {
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);
    const char *at = getenv("CLINK_CLOCK");
    if (rc == 0 && clock == CLOCK_REALTIME) ts->tv_sec = at ? strtoll(at, NULL, 10) : ts->tv_sec + jump_s();
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    struct timespec ts;
    (void)zone;
    int rc = clock_gettime(CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return rc;
}

time_t time(time_t *out) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out) *out = ts.tv_sec;
    return ts.tv_sec;
}
