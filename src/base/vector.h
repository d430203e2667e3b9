/* After calls into libraries that leave the upper halves of vector registers in use, as isa-l's checksums do: on many
 * processors every SSE instruction behind them, ours and libc's, then merges into what stands there and takes several
 * times as long, until something clears them. A thread never recovers by itself. */
#ifndef CK_BASE_VECTOR_H
#define CK_BASE_VECTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Only from code compiled for the baseline: a function for AVX may have something there. */
static inline void ck_vector_uppers_clear(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx")) __asm__ volatile("vzeroupper");
#endif
}

/* Whether this thread has something there; false where the processor does not say. For tests. */
static inline bool ck_vector_uppers_in_use(void) {
#if defined(__x86_64__)
    uint32_t a = 0xD, b, c = 1, d; /* processor extended state: bit 2 of EAX is XGETBV(1) */
    if (!__builtin_cpu_supports("avx")) return false;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if (!(a & 4)) return false;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return a & 4;
#else
    return false;
#endif
}

#endif
