/* Randomness comes from the proc: seeded and repeatable in tests and the simulator, from getrandom(2) otherwise. For
 * hash seeds, UUIDs and back-off; tokens use it only on the system source. */
#ifndef CK_OS_RANDOM_H
#define CK_OS_RANDOM_H

#include "base/proc.h"

typedef struct ck_random {
    uint64_t (*next)(struct ck_random *r); /* thread: any */
} ck_random;

ck_random *ck_random_system(void);

typedef struct ck_seeded_random { /* splitmix64; thread: any */
    ck_random base;
    _Atomic uint64_t state;
} ck_seeded_random;
void ck_seeded_random_init(ck_seeded_random *r, uint64_t seed);

static inline uint64_t ck_random_u64(const ck_proc *p) { return p->random->next(p->random); }
uint64_t ck_random_below(const ck_proc *p, uint64_t bound); /* uniform in [0, bound); 0 for bound 0 */
/* 36 characters and a NUL: version 4. */
void ck_random_uuid(const ck_proc *p, char out[37]);

#endif
