/* The kernels for whatever the build targets (x86-64 baseline, NEON), and the choice between the tables. */
#define K(name) name##_base
#define KERNEL
#define KERNELS_NAME "base"
#include "expr/kernels_impl.inc"

const ck_kernels *ck_kernels_for(ck_cpu cpu) {
#if defined(__x86_64__)
    if (cpu.avx2 && cpu.bmi2) return &ck_kernels_avx2;
#endif
    (void)cpu;
    return &ck_kernels_base;
}
