/* See random.h. */
#include "os/random.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

static uint64_t system_next(ck_random *r) {
    (void)r;
    uint64_t v;
    ssize_t n;
    do n = getrandom(&v, sizeof v, 0);
    while (n < 0 && errno == EINTR);
    CK_ASSERT(n ==
              (ssize_t)sizeof v); /* up to 256 bytes come whole or not at all; a guessable seed must never be used */
    return v;
}

ck_random *ck_random_system(void) {
    static const ck_random system_random = {system_next};
    return (ck_random *)(uintptr_t)&system_random; /* stateless: nobody writes through it */
}

/* splitmix64: the state is a counter, so that any number of threads may draw, each draw a different word. */
static uint64_t seeded_next(ck_random *r) {
    uint64_t z = atomic_fetch_add(&((ck_seeded_random *)r)->state, 0x9E3779B97F4A7C15ULL) + 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

void ck_seeded_random_init(ck_seeded_random *r, uint64_t seed) {
    r->base = (ck_random){seeded_next};
    atomic_init(&r->state, seed);
}

uint64_t ck_random_below(const ck_proc *p, uint64_t bound) {
    if (bound == 0) return 0;
    uint64_t uneven = (0 - bound) % bound; /* 2^64 mod bound: that many low words would favour small results */
    uint64_t v;
    do v = ck_random_u64(p);
    while (v < uneven);
    return v % bound;
}

void ck_random_uuid(const ck_proc *p, char out[37]) {
    uint64_t a = ck_random_u64(p), b = ck_random_u64(p);
    a = (a & ~0xF000ULL) | 0x4000;                            /* version 4 */
    b = (b & ~0xC000000000000000ULL) | 0x8000000000000000ULL; /* the RFC's variant */
    snprintf(out, 37, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xFFFF),
             (unsigned)(a & 0xFFFF), (unsigned)(b >> 48), (unsigned long long)(b & 0xFFFFFFFFFFFFULL));
}
