/* Numbers that follow from a seed. */
#ifndef SIM_DICE_H
#define SIM_DICE_H

#include <stdint.h>

typedef struct dice { /* splitmix64 */
    uint64_t state;
} dice;

static inline uint64_t dice_draw(dice *d) {
    d->state += 0x9E3779B97F4A7C15ULL;
    uint64_t z = d->state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}
static inline uint32_t dice_below(dice *d, uint32_t n) { return (uint32_t)((dice_draw(d) >> 32) * n >> 32); }
/* 1..2^bits, small ones as likely as large ones. */
static inline uint64_t dice_spread(dice *d, uint32_t bits) {
    uint64_t value = dice_draw(d);
    return 1 + value % (1ULL << dice_below(d, bits + 1));
}

#endif
