/* The kernels for x86-64 with AVX2 and BMI2. */
#if defined(__x86_64__)
#define CK_KERNELS_AVX2 1
#define K(name)         name##_avx2
#define KERNEL          __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define KERNELS_NAME    "avx2"
#include "expr/kernels_impl.inc"
#else
typedef int ck_no_avx2_here;
#endif
