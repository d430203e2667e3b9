/* The fast way with AVX2, where the build is for x86-64 and the CPU has it. */
#if defined(__x86_64__)
#define CK_SIMD    1
#define CK_TARGET  __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define CK_NAME(x) x##_avx2
#include "format/json_run_int.h"
#else
#include "format/json_int.h"
#endif

const ck_json_kernel *ck_json_kernel_for(ck_cpu cpu) {
#if defined(__x86_64__)
    static const ck_json_kernel kernel = {run_avx2, any_value_avx2, string_at_avx2, text_avx2};
    if (cpu.avx2 && cpu.bmi2) return &kernel;
#endif
    (void)cpu;
    return ck_json_kernel_scalar();
}
