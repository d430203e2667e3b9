/* The loops of kernels.h, compiled once per instruction set: the including file defines K(name), the name a function
 * gets, and KERNEL, the attribute that selects the instruction set. Written so that gcc and clang vectorise them; AVX2
 * has comparisons by hand (CK_KERNELS_AVX2), because compilers make poor bitmaps. No guard: included once per file. */
#include "expr/kernels.h"
#include "expr/select_table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- comparisons to bitmaps ---- */

#define LESS_i64(x, y)  ((x) < (y))
#define SAME_i64(x, y)  ((x) == (y))
#define LESS_i128(x, y) ((x) < (y))
#define SAME_i128(x, y) ((x) == (y))
/* NaN is equal to itself and above everything: one total order. Bitwise operators, so that there is no branch. */
#define LESS_f64(x, y)    (((x) < (y)) | (((y) != (y)) & ((x) == (x))))
#define SAME_f64(x, y)    (((x) == (y)) | (((y) != (y)) & ((x) != (x))))

#define HOLDS_EQ(T, x, y) SAME_##T(x, y)
#define HOLDS_NE(T, x, y) !SAME_##T(x, y)
#define HOLDS_LT(T, x, y) LESS_##T(x, y)
#define HOLDS_LE(T, x, y) !LESS_##T(y, x)
#define HOLDS_GT(T, x, y) LESS_##T(y, x)
#define HOLDS_GE(T, x, y) !LESS_##T(x, y)

#define CMP_LOOP(T, C, OP, FORM, B)                                                                                    \
    KERNEL static void K(cmp_##T##_##OP##_##FORM)(uint64_t * bits, const C *a, const C *b, size_t n) {                 \
        for (size_t w = 0; w < n; w += 64, bits++) {                                                                   \
            uint64_t word = 0;                                                                                         \
            size_t m = n - w < 64 ? n - w : 64;                                                                        \
            for (size_t i = 0; i < m; i++) word |= (uint64_t)(HOLDS_##OP(T, a[w + i], B)) << i;                        \
            *bits = word;                                                                                              \
        }                                                                                                              \
    }
#define CMP_FORMS(T, C, OP)                                                                                            \
    CMP_LOOP(T, C, OP, vv, b[w + i])                                                                                   \
    CMP_LOOP(T, C, OP, vs, b[0])
#define CMP_ALL(T, C)                                                                                                  \
    CMP_FORMS(T, C, EQ)                                                                                                \
    CMP_FORMS(T, C, NE)                                                                                                \
    CMP_FORMS(T, C, LT) CMP_FORMS(T, C, LE) CMP_FORMS(T, C, GT) CMP_FORMS(T, C, GE)
#define CMP_NAMES(KIND, T)                                                                                             \
    {                                                                                                                  \
        {K(KIND##_##T##_EQ_vv), K(KIND##_##T##_EQ_vs)}, {K(KIND##_##T##_NE_vv), K(KIND##_##T##_NE_vs)},                \
            {K(KIND##_##T##_LT_vv), K(KIND##_##T##_LT_vs)}, {K(KIND##_##T##_LE_vv), K(KIND##_##T##_LE_vs)},            \
            {K(KIND##_##T##_GT_vv), K(KIND##_##T##_GT_vs)}, {                                                          \
            K(KIND##_##T##_GE_vv), K(KIND##_##T##_GE_vs)                                                               \
        }                                                                                                              \
    }

#ifdef CK_KERNELS_AVX2
/* Four rows to four bits; NEGATE flips the word at the end. */
#define LOAD_i64(p)       _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define SET_i64(x)        _mm256_set1_epi64x(x)
#define MASK_i64(v)       (uint32_t) _mm256_movemask_pd(_mm256_castsi256_pd(v))
#define BASE_EQ_i64(x, y) _mm256_cmpeq_epi64(x, y)
#define BASE_LT_i64(x, y) _mm256_cmpgt_epi64(y, x)
#define LOAD_f64(p)       _mm256_loadu_pd(p)
#define SET_f64(x)        _mm256_set1_pd(x)
#define MASK_f64(v)       (uint32_t) _mm256_movemask_pd(v)
#define NAN_f64(x)        _mm256_cmp_pd(x, x, _CMP_UNORD_Q)
#define BASE_EQ_f64(x, y) _mm256_or_pd(_mm256_cmp_pd(x, y, _CMP_EQ_OQ), _mm256_and_pd(NAN_f64(x), NAN_f64(y)))
#define BASE_LT_f64(x, y) _mm256_or_pd(_mm256_cmp_pd(x, y, _CMP_LT_OQ), _mm256_andnot_pd(NAN_f64(x), NAN_f64(y)))
#define VEC_i64           __m256i
#define VEC_f64           __m256d

#define AVX_LOOP(T, C, OP, BASE, X, Y, FLIP, FORM, STEP)                                                               \
    KERNEL static void K(cmp_##T##_##OP##_##FORM)(uint64_t * bits, const C *a, const C *b, size_t n) {                 \
        size_t w = 0;                                                                                                  \
        VEC_##T constant = SET_##T(n ? b[0] : 0);                                                                      \
        for (; w + 64 <= n; w += 64, bits++) {                                                                         \
            uint64_t word = 0;                                                                                         \
            for (uint32_t i = 0; i < 64; i += 4) {                                                                     \
                VEC_##T va = LOAD_##T(a + w + i);                                                                      \
                VEC_##T vb = STEP ? LOAD_##T(b + (STEP ? w + i : 0)) : constant;                                       \
                word |= (uint64_t)(MASK_##T(BASE_##BASE##_##T(X, Y))) << i;                                            \
            }                                                                                                          \
            *bits = FLIP ? ~word : word;                                                                               \
        }                                                                                                              \
        if (w == n) return;                                                                                            \
        uint64_t word = 0;                                                                                             \
        for (size_t i = w; i < n; i++) word |= (uint64_t)(HOLDS_##OP(T, a[i], b[STEP ? i : 0])) << (i - w);            \
        *bits = word;                                                                                                  \
    }
#define AVX_FORMS(T, C, OP, BASE, X, Y, FLIP)                                                                          \
    AVX_LOOP(T, C, OP, BASE, X, Y, FLIP, vv, 1)                                                                        \
    AVX_LOOP(T, C, OP, BASE, X, Y, FLIP, vs, 0)
#define AVX_ALL(T, C)                                                                                                  \
    AVX_FORMS(T, C, EQ, EQ, va, vb, 0)                                                                                 \
    AVX_FORMS(T, C, NE, EQ, va, vb, 1)                                                                                 \
    AVX_FORMS(T, C, LT, LT, va, vb, 0)                                                                                 \
    AVX_FORMS(T, C, LE, LT, vb, va, 1) AVX_FORMS(T, C, GT, LT, vb, va, 0) AVX_FORMS(T, C, GE, LT, va, vb, 1)
AVX_ALL(i64, int64_t)
AVX_ALL(f64, double)
#else
CMP_ALL(i64, int64_t)
CMP_ALL(f64, double)
#endif
CMP_ALL(i128, ck_i128)

/* ---- comparisons over a selection ---- */

#define SEL_LOOP(T, C, OP, FORM, B)                                                                                    \
    KERNEL static uint32_t K(sel_##T##_##OP##_##FORM)(uint16_t * out, const C *a, const C *b, const uint16_t *sel,     \
                                                      uint32_t n) {                                                    \
        uint32_t kept = 0;                                                                                             \
        for (uint32_t k = 0; k < n; k++) {                                                                             \
            uint16_t row = sel[k];                                                                                     \
            out[kept] = row; /* kept when the next one does not write over it */                                       \
            kept += (uint32_t)(HOLDS_##OP(T, a[row], B));                                                              \
        }                                                                                                              \
        return kept;                                                                                                   \
    }
#define SEL_FORMS(T, C, OP)                                                                                            \
    SEL_LOOP(T, C, OP, vv, b[row])                                                                                     \
    SEL_LOOP(T, C, OP, vs, b[0])
#define SEL_ALL(T, C)                                                                                                  \
    SEL_FORMS(T, C, EQ)                                                                                                \
    SEL_FORMS(T, C, NE)                                                                                                \
    SEL_FORMS(T, C, LT) SEL_FORMS(T, C, LE) SEL_FORMS(T, C, GT) SEL_FORMS(T, C, GE)
SEL_ALL(i64, int64_t)
SEL_ALL(f64, double)
SEL_ALL(i128, ck_i128)

#if defined(__SSE2__)
/* A byte of the bitmap at a time: eight row numbers are stored, as many count as bits are set. */
KERNEL static uint32_t K(bits_to_sel)(uint16_t *out, const uint64_t *bits, uint32_t n) {
    uint32_t count = 0;
    for (uint32_t base = 0; base < n; base += 64) {
        uint64_t word = bits[base / 64];
        if (n - base < 64) word &= ~(~0ULL << (n - base));
        for (uint32_t byte = 0; word; byte++, word >>= 8) {
            __m128i rows = _mm_cvtsi64_si128((long long)ck_select_table[word & 255]);
            rows = _mm_unpacklo_epi8(rows, _mm_setzero_si128());
            rows = _mm_add_epi16(rows, _mm_set1_epi16((short)(base + byte * 8)));
            _mm_storeu_si128((__m128i *)(void *)(out + count), rows);
            count += (uint32_t)__builtin_popcountll(word & 255);
        }
    }
    return count;
}
#else
KERNEL static uint32_t K(bits_to_sel)(uint16_t *out, const uint64_t *bits, uint32_t n) {
    uint32_t count = 0;
    for (uint32_t base = 0; base < n; base += 64) {
        uint64_t word = bits[base / 64];
        if (n - base < 64) word &= ~(~0ULL << (n - base));
        for (; word; word &= word - 1) out[count++] = (uint16_t)(base + (uint32_t)__builtin_ctzll(word));
    }
    return count;
}
#endif

/* ---- arithmetic ---- */

/* The sign bit of OVER is set where x op y = r overflowed. */
#define WRAP_ADD(x, y)    (int64_t)((uint64_t)(x) + (uint64_t)(y))
#define OVER_ADD(x, y, r) (((x) ^ (r)) & ((y) ^ (r)))
#define WRAP_SUB(x, y)    (int64_t)((uint64_t)(x) - (uint64_t)(y))
#define OVER_SUB(x, y, r) (((x) ^ (y)) & ((x) ^ (r)))

#define ARITH_LOOP(OP, FORM, A, B)                                                                                     \
    KERNEL static bool K(i64_##OP##_##FORM)(int64_t *restrict out, const int64_t *a, const int64_t *b, size_t n) {     \
        int64_t over = 0;                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                                               \
            int64_t r = WRAP_##OP(A, B);                                                                               \
            over |= OVER_##OP(A, B, r);                                                                                \
            out[i] = r;                                                                                                \
        }                                                                                                              \
        return over < 0;                                                                                               \
    }
ARITH_LOOP(ADD, vv, a[i], b[i])
ARITH_LOOP(ADD, vs, a[i], b[0])
ARITH_LOOP(ADD, sv, a[0], b[i])
ARITH_LOOP(SUB, vv, a[i], b[i])
ARITH_LOOP(SUB, vs, a[i], b[0])
ARITH_LOOP(SUB, sv, a[0], b[i])

#define MUL_LOOP(FORM, A, B)                                                                                           \
    KERNEL static bool K(i64_MUL_##FORM)(int64_t *restrict out, const int64_t *a, const int64_t *b, size_t n) {        \
        bool over = false;                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                               \
            int64_t r;                                                                                                 \
            over |= __builtin_mul_overflow(A, B, &r);                                                                  \
            out[i] = r;                                                                                                \
        }                                                                                                              \
        return over;                                                                                                   \
    }
MUL_LOOP(vv, a[i], b[i])
MUL_LOOP(vs, a[i], b[0])
MUL_LOOP(sv, a[0], b[i])

#define DOUBLE_LOOP(OP, SIGN, FORM, A, B)                                                                              \
    KERNEL static void K(f64_##OP##_##FORM)(double *restrict out, const double *a, const double *b, size_t n) {        \
        for (size_t i = 0; i < n; i++) out[i] = A SIGN B;                                                              \
    }
#define DOUBLE_FORMS(OP, SIGN)                                                                                         \
    DOUBLE_LOOP(OP, SIGN, vv, a[i], b[i])                                                                              \
    DOUBLE_LOOP(OP, SIGN, vs, a[i], b[0])                                                                              \
    DOUBLE_LOOP(OP, SIGN, sv, a[0], b[i])
DOUBLE_FORMS(ADD, +)
DOUBLE_FORMS(SUB, -)
DOUBLE_FORMS(MUL, *)
DOUBLE_FORMS(DIV, /)

/* Signed division by a constant as a multiplication by its scaled reciprocal (Granlund and Montgomery): for |d| >= 2
 * there are m and s with n / d = (n * m >> 64 + s) - (n >> 63), for every n. */
typedef struct K(reciprocal) {
    int64_t m;
    int s;
} K(reciprocal);

static K(reciprocal) K(reciprocal_of)(int64_t d) {
    const uint64_t two63 = 1ULL << 63;
    uint64_t ad = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
    uint64_t t = two63 + ((uint64_t)d >> 63);
    uint64_t anc = t - 1 - t % ad;
    int p = 63;
    uint64_t q1 = two63 / anc, r1 = two63 - q1 * anc, q2 = two63 / ad, r2 = two63 - q2 * ad, delta;
    do {
        p++;
        q1 *= 2, r1 *= 2;
        if (r1 >= anc) q1++, r1 -= anc;
        q2 *= 2, r2 *= 2;
        if (r2 >= ad) q2++, r2 -= ad;
        delta = ad - r2;
    } while (q1 < delta || (q1 == delta && r1 == 0));
    int64_t m = (int64_t)(q2 + 1);
    return (K(reciprocal)){d < 0 ? (int64_t)(0 - (uint64_t)m) : m, p - 64};
}

KERNEL static void K(divide)(int64_t *restrict out, const int64_t *a, int64_t d, size_t n) {
    K(reciprocal) r = K(reciprocal_of)(d);
    /* m has 65 bits where its sign differs from d's: the missing n * 2^64 is added (or taken) afterwards. */
    uint64_t plus = d > 0 && r.m < 0 ? ~0ULL : 0, minus = d < 0 && r.m > 0 ? ~0ULL : 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (uint64_t)a[i];
        int64_t q = (int64_t)((uint64_t)((ck_i128)r.m * a[i] >> 64) + (x & plus) - (x & minus)) >> r.s;
        out[i] = q + (int64_t)((uint64_t)q >> 63);
    }
}

KERNEL static void K(modulo)(int64_t *restrict out, const int64_t *a, int64_t d, size_t n) {
    K(divide)(out, a, d, n);
    for (size_t i = 0; i < n; i++) out[i] = (int64_t)((uint64_t)a[i] - (uint64_t)out[i] * (uint64_t)d);
}

KERNEL static bool K(any_outside)(const int64_t *v, int64_t low, int64_t high, size_t n) {
    int64_t outside = 0;
    for (size_t i = 0; i < n; i++) outside |= (int64_t)(v[i] < low) | (int64_t)(v[i] > high);
    return outside != 0;
}

KERNEL static bool K(any_zero_f64)(const double *v, size_t n) {
    int64_t zero = 0;
    for (size_t i = 0; i < n; i++) zero |= (int64_t)(v[i] == 0);
    return zero != 0;
}

KERNEL static void K(i64_to_f64)(double *restrict out, const int64_t *v, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (double)v[i];
}

KERNEL static void K(widen_mul)(ck_i128 *restrict out, const int64_t *v, int64_t by, size_t n) {
    for (size_t i = 0; i < n; i++) out[i] = (ck_i128)v[i] * by;
}

#define ARITH_NAMES(T, OP)                                                                                             \
    { K(T##_##OP##_vv), K(T##_##OP##_vs), K(T##_##OP##_sv) }

const ck_kernels K(ck_kernels) = {
    .name = KERNELS_NAME,
    .cmp_i64 = CMP_NAMES(cmp, i64),
    .cmp_f64 = CMP_NAMES(cmp, f64),
    .cmp_i128 = CMP_NAMES(cmp, i128),
    .sel_i64 = CMP_NAMES(sel, i64),
    .sel_f64 = CMP_NAMES(sel, f64),
    .sel_i128 = CMP_NAMES(sel, i128),
    .bits_to_sel = K(bits_to_sel),
    .arith_i64 = {ARITH_NAMES(i64, ADD), ARITH_NAMES(i64, SUB), ARITH_NAMES(i64, MUL)},
    .arith_f64 = {ARITH_NAMES(f64, ADD), ARITH_NAMES(f64, SUB), ARITH_NAMES(f64, MUL), ARITH_NAMES(f64, DIV)},
    .divide_i64 = {K(divide), K(modulo)},
    .any_outside = K(any_outside),
    .any_zero_f64 = K(any_zero_f64),
    .i64_to_f64 = K(i64_to_f64),
    .widen_mul = K(widen_mul),
};
