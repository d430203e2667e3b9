/* Snapshot files, bases and deltas: what the reader accepts goes into a state store as a restore would put it, and what
 * the store took comes out of a mark again as rows that the store takes once more. */
#include "fuzz.h"

#include "checkpoint/snapshot.h"
#include "state/mark.h"

static void restore_rows(ck_state_store *s, ck_snapshot_reader *r) {
    const ck_snapshot_row *rows;
    uint32_t n;
    while (ck_snapshot_next(r, &rows, &n, NULL) == CK_OK && n > 0)
        for (uint32_t i = 0; i < n; i++) {
            ck_stored_key k;
            (void)ck_stored_key_parse(rows[i].key, 128, &k);
            ck_status st = rows[i].kind == 2 ? ck_state_restore_erase(s, rows[i].op_id, rows[i].key, NULL)
                                             : ck_state_restore_put(s, rows[i].op_id,
                                                                    (ck_stored_row){rows[i].key, rows[i].value}, NULL);
            (void)st; /* rows that do not parse are refused one by one here */
        }
}

static void scan_again(ck_state_store *s) {
    ck_state_mark *m;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint32_t n;
    CK_ASSERT(ck_state_mark_take(s, 1, &m, NULL) == CK_OK);
    CK_ASSERT(ck_mark_scan_new(m, CK_MARK_BASE, &scan, NULL) == CK_OK);
    uint64_t total = 0;
    do {
        CK_ASSERT(ck_mark_scan_next(scan, &rows, &n, NULL) == CK_OK);
        total += n;
        for (uint32_t i = 0; i < n; i++)
            CK_ASSERT(ck_state_restore_put(s, rows[i].op_id, (ck_stored_row){rows[i].key, rows[i].value}, NULL) ==
                      CK_OK);
    } while (n > 0);
    CK_ASSERT(total == ck_state_mark_rows(m));
    ck_mark_scan_free(scan);
    ck_state_mark_release(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ck_proc proc;
    ck_budget budget;
    ck_budget_init(&budget, ck_heap_system(), (size_t)1 << 30);
    ck_mem mem = {&budget, CK_MEM_STATE};
    ck_arena a;
    ck_arena_init(&a, mem, 256 << 20);
    ck_snapshot_reader *r;
    if (ck_snapshot_open_bytes(mem, &a, "fuzz.snap", (ck_view){(const char *)data, size}, &r, NULL) == CK_OK) {
        const ck_state_config cfg = {&proc, mem, 128, {0, 127}, 1, true};
        const ck_snapshot_header *h = ck_snapshot_header_of(r);
        ck_state_store *s;
        CK_ASSERT(ck_state_store_new(&cfg, &s, NULL) == CK_OK);
        for (uint32_t i = 0; i < h->slot_count; i++) {
            const ck_stored_slot *slot = &h->slots[i];
            ck_status st = ck_state_restore_slot(s, slot->op_id, slot->uid, slot->op_type, slot->schema, NULL);
            (void)st; /* schemas no table can hold are refused */
        }
        restore_rows(s, r);
        scan_again(s);
        ck_state_store_free(s);
        ck_snapshot_close(r);
    }
    ck_arena_destroy(&a);
    CK_ASSERT(ck_budget_total(&budget) == 0);
    return 0;
}
