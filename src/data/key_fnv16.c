/* ck_key_fnv16: the low 16 bits of ck_key_fnv. The low bits of a product and of an exclusive or come from the low bits
 * alone, so that vectors of 16-bit hashes do what one 64-bit multiplication a row and byte does else. */
#define LANE        uint16_t
#define LANE_WIDE   uint32_t
#define LANE_ONE(h) (h)
#define FNV_KEYS    ck_key_fnv16
#include "data/key_fnv_impl.inc"

typedef uint16_t lanes __attribute__((vector_size(16)));
enum { LANES = sizeof(lanes) / sizeof(lane), ABREAST = 4 }; /* as many vectors hide a multiplication's latency */

/* Two bytes of each word at a time, so that words are packed half as often. */
static void absorb_low(lane *restrict h, const uint64_t *restrict v, uint32_t n, unsigned used, lane rest) {
    for (unsigned at = 0; at < used; at += 2) {
        unsigned shift = at * 8;
        lane last = at + 2 < used ? 1 : rest;
        if (at + 1 == used)
            for (uint32_t i = 0; i < n; i++) h[i] = times(after(h[i], (uint8_t)(v[i] >> shift)), last);
        else
            for (uint32_t i = 0; i < n; i++) {
                uint16_t two = (uint16_t)(v[i] >> shift);
                h[i] = times(after(after(h[i], (uint8_t)two), (uint8_t)(two >> 8)), last);
            }
    }
}

static void absorb_same(lane *h, uint32_t n, const uint8_t *p, size_t bytes) {
    uint32_t i = 0;
    for (; i + LANES * ABREAST <= n; i += LANES * ABREAST) {
        lanes a, b, c, d;
        memcpy(&a, h + i, sizeof a), memcpy(&b, h + i + LANES, sizeof b);
        memcpy(&c, h + i + 2 * LANES, sizeof c), memcpy(&d, h + i + 3 * LANES, sizeof d);
        for (size_t k = 0; k < bytes; k++) {
            uint16_t byte = p[k], prime = (uint16_t)CK_FNV_PRIME;
            a = (a ^ byte) * prime, b = (b ^ byte) * prime, c = (c ^ byte) * prime, d = (d ^ byte) * prime;
        }
        memcpy(h + i, &a, sizeof a), memcpy(h + i + LANES, &b, sizeof b);
        memcpy(h + i + 2 * LANES, &c, sizeof c), memcpy(h + i + 3 * LANES, &d, sizeof d);
    }
    for (; i < n; i++) h[i] = absorb_bytes(h[i], p, bytes);
}
