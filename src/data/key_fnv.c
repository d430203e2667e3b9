/* ck_key_fnv: FNV-1a 64 of encoded keys without the bytes, four chains at a time. */
#define LANE        uint64_t
#define LANE_WIDE   uint64_t
#define LANE_ONE(h) ck_key_scalar(h)
#define FNV_KEYS    ck_key_fnv
#include "data/key_fnv_impl.inc"

/* bytes is a constant where this is inlined. */
static inline __attribute__((always_inline)) void absorb_count(uint64_t *restrict h, const uint64_t *restrict v,
                                                               uint32_t n, unsigned bytes, uint64_t rest) {
    uint32_t whole = n & ~3U;
    for (const uint64_t *end = h + whole; h < end; h += 4, v += 4) {
        uint64_t a = h[0], b = h[1], c = h[2], d = h[3];
        uint64_t va = v[0], vb = v[1], vc = v[2], vd = v[3];
        for (unsigned k = 0; k < bytes; k++) {
            a = after(a, (uint8_t)va), b = after(b, (uint8_t)vb), c = after(c, (uint8_t)vc), d = after(d, (uint8_t)vd);
            va >>= 8, vb >>= 8, vc >>= 8, vd >>= 8;
        }
        h[0] = a * rest, h[1] = b * rest, h[2] = c * rest, h[3] = d * rest;
    }
    for (uint32_t i = 0; i < n - whole; i++) {
        uint64_t a = h[i], va = v[i];
        for (unsigned k = 0; k < bytes; k++, va >>= 8) a = after(a, (uint8_t)va);
        h[i] = a * rest;
    }
}

static void absorb_low(uint64_t *restrict h, const uint64_t *restrict v, uint32_t n, unsigned used, uint64_t rest) {
    switch (used) {
    case 1: absorb_count(h, v, n, 1, rest); break;
    case 2: absorb_count(h, v, n, 2, rest); break;
    case 3: absorb_count(h, v, n, 3, rest); break;
    case 4: absorb_count(h, v, n, 4, rest); break;
    case 5: absorb_count(h, v, n, 5, rest); break;
    case 6: absorb_count(h, v, n, 6, rest); break;
    case 7: absorb_count(h, v, n, 7, rest); break;
    default: absorb_count(h, v, n, 8, rest);
    }
}

static void absorb_same(uint64_t *h, uint32_t n, const uint8_t *p, size_t bytes) {
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t a = h[i], b = h[i + 1], c = h[i + 2], d = h[i + 3];
        for (size_t k = 0; k < bytes; k++)
            a = after(a, p[k]), b = after(b, p[k]), c = after(c, p[k]), d = after(d, p[k]);
        h[i] = a, h[i + 1] = b, h[i + 2] = c, h[i + 3] = d;
    }
    for (; i < n; i++) h[i] = absorb_bytes(h[i], p, bytes);
}
