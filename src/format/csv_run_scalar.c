/* CSV in plain registers: every CPU, and the yardstick for the other form. */
#define CK_SIMD 0
#define CK_TARGET
#define CK_NAME(x) x##_scalar
#include "format/csv_run_int.h"

const ck_csv_kernel *ck_csv_kernel_scalar(void) {
    static const ck_csv_kernel kernel = {mark_scalar, column_scalar};
    return &kernel;
}
