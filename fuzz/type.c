/* Type texts: what is accepted prints back as the same bytes. */
#include "fuzz.h"

#include "data/type.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_arena arena;
    ck_arena_init(&arena, (ck_mem){&budget, CK_MEM_PLAN}, 64 << 20);
    ck_view text = {(const char *)data, size};
    const ck_type *t = NULL;
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_type_parse(&arena, text, &t, &err);
    CK_ASSERT(s == CK_OK || s == CK_INVALID || s == CK_NOMEM);
    if (s == CK_OK) {
        ck_bytes printed;
        ck_bytes_init(&printed, arena.mem, 2 * size + 64);
        CK_ASSERT(ck_type_print(t, &printed) == CK_OK);
        CK_ASSERT(ck_view_eq(ck_bytes_as_view(&printed), text));
        CK_ASSERT(ck_type_eq(t, ck_type_copy(&arena, t)));
        ck_bytes_destroy(&printed);
    }
    ck_arena_destroy(&arena);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
