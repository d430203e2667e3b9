/* Time zone files: damaged ones are refused; of those that are read, offsets hold over the interval they claim. */
#include "fuzz.h"

#include "expr/timezone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const int64_t times[] = {INT64_MIN / 2, -1, 0, 1700000000000000, 4000000000000000, INT64_MAX / 2};
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_arena a;
    ck_arena_init(&a, (ck_mem){&budget, CK_MEM_PLAN}, 16 << 20);
    const ck_timezone *z;
    ck_error err = CK_ERROR_INIT;
    if (ck_timezone_parse(&a, (ck_view){(const char *)data, size}, "x", &z, &err) == CK_OK)
        for (size_t i = 0; i < CK_ARRAY_COUNT(times); i++) {
            int64_t from, until, offset = ck_timezone_offset(z, times[i], &from, &until);
            CK_ASSERT(from <= times[i] && times[i] < until);
            if (until != INT64_MAX) CK_ASSERT(ck_timezone_offset(z, until - 1, NULL, NULL) == offset);
            (void)ck_timezone_utc(z, times[i]);
        }
    ck_arena_destroy(&a);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
