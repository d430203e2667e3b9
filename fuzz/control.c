/* Control frames of a cluster: the first byte is the frame's kind, the rest its payload. What must hold: what is read
 * can be written, and read and written once more it is the same bytes; memory stays in proportion to what has come. */
#include "fuzz.h"

#include <string.h>

#include "cluster/message.h"

enum { ARENA_BYTES_MAX = 64 << 20, BYTES_A_BYTE = 200, BYTES_BESIDE = 1 << 20 };

static ck_frame *frame_of(ck_mem mem, uint8_t kind, const uint8_t *p, size_t n) {
    ck_frame *f = ck_frame_new(mem, kind, n);
    CK_ASSERT(f);
    if (n) memcpy(f->p, p, n);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > CK_FRAME_CONTROL_BYTES_MAX) return 0;
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), 0);
    ck_mem mem = {&budget, CK_MEM_PLAN};
    ck_arena arena;
    ck_arena_init(&arena, mem, ARENA_BYTES_MAX);
    ck_frame *in = frame_of(mem, data[0], data + 1, size - 1), *first = NULL, *second = NULL;
    ck_message m;
    ck_status s = ck_message_read(in, &arena, &m, NULL);
    CK_ASSERT(s == CK_OK || s == CK_CORRUPT);
    CK_ASSERT(arena.bytes <= BYTES_BESIDE + BYTES_A_BYTE * size);
    if (s == CK_OK) {
        CK_ASSERT(ck_message_frame(mem, &m, &first, NULL) == CK_OK && first->n <= in->n);
        CK_ASSERT(ck_message_read(first, &arena, &m, NULL) == CK_OK);
        CK_ASSERT(ck_message_frame(mem, &m, &second, NULL) == CK_OK);
        CK_ASSERT(first->n == second->n && memcmp(first->p, second->p, first->n) == 0);
    }
    ck_frame_free(&in), ck_frame_free(&first), ck_frame_free(&second);
    ck_arena_destroy(&arena);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
