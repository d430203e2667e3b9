/* See proc.h. */
#include "base/proc.h"

#include <stdlib.h>
#include <string.h>

ck_cpu ck_cpu_detect(void) {
    ck_cpu c = {0};
#if defined(__x86_64__)
    __builtin_cpu_init();
    c.avx2 = __builtin_cpu_supports("avx2") != 0;
    c.bmi2 = __builtin_cpu_supports("bmi2") != 0;
    c.avx512 = __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
    const char *cap = getenv("CLINK_CPU");
    if (cap && strcmp(cap, "scalar") == 0) c = (ck_cpu){0};
    if (cap && strcmp(cap, "avx2") == 0) c.avx512 = false;
#endif
    return c;
}
