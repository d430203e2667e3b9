/* Manifests. What decodes keeps its rules, and encodes to a text that decodes and encodes to the same. */
#include "fuzz.h"

#include "checkpoint/manifest.h"

static ck_status encode(const ck_manifest *m, ck_mem mem, ck_bytes *out) {
    ck_bytes_init(out, mem, 256 << 20);
    return ck_manifest_encode(m, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), (size_t)1 << 30);
    ck_mem mem = {&budget, CK_MEM_PLAN};
    ck_arena a;
    ck_arena_init(&a, mem, 512 << 20);
    ck_manifest *m, *again;
    if (ck_manifest_decode(&a, (ck_view){(const char *)data, size}, &m, NULL) == CK_OK) {
        ck_bytes one, two;
        CK_ASSERT(m->checkpoint > 0 && m->key_groups > 0);
        CK_ASSERT(encode(m, mem, &one) == CK_OK);
        CK_ASSERT(ck_manifest_decode(&a, ck_bytes_as_view(&one), &again, NULL) == CK_OK);
        CK_ASSERT(encode(again, mem, &two) == CK_OK);
        CK_ASSERT(ck_view_eq(ck_bytes_as_view(&one), ck_bytes_as_view(&two)));
        ck_bytes_destroy(&one);
        ck_bytes_destroy(&two);
    }
    ck_arena_destroy(&a);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
