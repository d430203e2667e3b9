/* CSV with AVX2, where the build is for x86-64 and the CPU has it. */
#if defined(__x86_64__)
#define CK_SIMD    1
#define CK_TARGET  __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define CK_NAME(x) x##_avx2
#include "format/csv_run_int.h"
#else
#include "format/csv_int.h"
#endif

const ck_csv_kernel *ck_csv_kernel_for(ck_cpu cpu) {
#if defined(__x86_64__)
    static const ck_csv_kernel kernel = {mark_avx2, column_avx2};
    if (cpu.avx2 && cpu.bmi2) return &kernel;
#endif
    (void)cpu;
    return ck_csv_kernel_scalar();
}
