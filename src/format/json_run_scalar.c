/* The fast way in plain registers: every CPU, and the yardstick for the other one. */
#define CK_SIMD 0
#define CK_TARGET
#define CK_NAME(x) x##_scalar
#include "format/json_run_int.h"

const ck_json_kernel *ck_json_kernel_scalar(void) {
    static const ck_json_kernel kernel = {run_scalar, any_value_scalar, string_at_scalar, text_scalar};
    return &kernel;
}
