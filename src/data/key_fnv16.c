/* ck_key_fnv16 for whatever the build targets, and the choice between the forms. */
#define FNV_KEYS     ck_key_fnv16
#define VECTOR_BYTES 16
#include "data/key_fnv16_impl.inc"

#if defined(__x86_64__)
void ck_key_fnv16_avx2(const ck_key_spec *k, const ck_batch *b, uint16_t *out);
#endif

ck_key_fnv16_fn *ck_key_fnv16_for(ck_cpu cpu) {
#if defined(__x86_64__)
    if (cpu.avx2 && cpu.bmi2) return ck_key_fnv16_avx2;
#endif
    (void)cpu;
    return ck_key_fnv16;
}
