/* Two changelog files under a manifest with the right sizes and checksums, restored at one and at two subtasks: a byte
 * that says where the rows are (even: inside the first file, odd: in a materialisation beside it), the first file's
 * length as 32 bits little-endian, both files. What must hold: both restores take them or both refuse, and then no row
 * of a keyed slot is lost or doubled. */
#include "fuzz.h"

#include <string.h>

#include "base/cursor.h"
#include "checkpoint/restore.h"
#include "os/durable.h"
#include "os/simfs.h"
#include "os/test_proc.h"
#include "state/mark.h"

enum { FILES = 2, GROUPS = 128 };
#define UID "agg(usr)<-orders" /* of the golden files */

typedef struct world {
    ck_test_proc t;
    ck_simfs *sim;
    ck_mem mem;
    ck_manifest m;
    ck_manifest_file files[FILES];
    ck_view texts[FILES];
} world;

static bool take_input(world *w, const uint8_t *data, size_t size, bool *external) {
    ck_cursor c = ck_cursor_of(data, size);
    uint8_t where;
    uint32_t n;
    if (!ck_cursor_u8(&c, &where) || !ck_cursor_u32le(&c, &n) || n > c.left) return false;
    *external = where % 2;
    w->texts[0] = (ck_view){(const char *)c.p, n};
    w->texts[1] = (ck_view){(const char *)c.p + n, c.left - n};
    return true;
}

static void write_files(world *w, const uint64_t *op, bool external) {
    static const char *const names[2][FILES] = {{"1/0/changelog-7.snap", "1/0/changelog-8.snap"},
                                                {"1/0/materialized/7.snap", "1/0/changelog-8.snap"}};
    CK_ASSERT(ck_fs_mkdirs(&w->t.proc, "/ck/1/0/materialized", NULL) == CK_OK);
    for (int i = 0; i < FILES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/ck/%s", names[external][i]);
        CK_ASSERT(ck_durable_replace_bytes(&w->t.proc, path, w->texts[i], NULL) == CK_OK);
        bool inside = i == 0 && !external;
        w->files[i] = (ck_manifest_file){.path = names[external][i],
                                         .bytes = w->texts[i].n,
                                         .crc32c = ck_crc32c(0, w->texts[i].p, w->texts[i].n),
                                         .ops = op,
                                         .op_count = 1,
                                         .key_groups = {0, GROUPS - 1},
                                         .kind = i == 0 && external ? CK_FILE_MATERIALIZED : CK_FILE_CHANGELOG,
                                         .base = inside ? NULL : names[0][0]};
    }
    w->m = (ck_manifest){.checkpoint = 8, .key_groups = GROUPS, .files = w->files, .file_count = FILES};
}

/* Of keyed slots, in all subtasks. */
static uint64_t keyed_rows(ck_state_store *s) {
    ck_state_mark *m;
    ck_mark_scan *scan;
    const ck_mark_row *rows;
    uint64_t total = 0;
    uint32_t n;
    CK_ASSERT(ck_state_mark_take(s, 1, &m, NULL) == CK_OK);
    CK_ASSERT(ck_mark_scan_new(m, CK_MARK_BASE, &scan, NULL) == CK_OK);
    do {
        CK_ASSERT(ck_mark_scan_next(scan, &rows, &n, NULL) == CK_OK);
        for (uint32_t i = 0; i < n; i++) total += rows[i].key.n > 0 && (uint8_t)rows[i].key.p[0] != 0xFF;
    } while (n > 0);
    ck_mark_scan_free(scan);
    ck_state_mark_release(m);
    return total;
}

static ck_status restore(world *w, const uint64_t *op, uint32_t parallelism, uint64_t *rows) {
    ck_restore *r;
    ck_state_store *stores[2] = {0};
    const ck_restore_as as = {.stored = *op};
    CK_ASSERT(ck_restore_new(&w->t.proc, w->mem, "/ck", &w->m, &r, NULL) == CK_OK);
    for (uint32_t p = 0; p < parallelism; p++) {
        const ck_key_group_range range = ck_key_group_range_for_subtask(p, parallelism, GROUPS);
        const ck_state_config cfg = {&w->t.proc, w->mem, GROUPS, range, 1, true};
        CK_ASSERT(ck_state_store_new(&cfg, &stores[p], NULL) == CK_OK);
        const ck_restore_target target = {stores[p], &as, 1, p, parallelism, range};
        CK_ASSERT(ck_restore_add(r, &target, NULL) == CK_OK);
    }
    ck_status s = ck_restore_run(r, NULL);
    *rows = 0;
    for (uint32_t p = 0; p < parallelism; p++) {
        if (s == CK_OK) *rows += keyed_rows(stores[p]);
        ck_state_store_free(stores[p]);
    }
    ck_restore_free(r);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    world w = {0};
    bool external;
    if (!take_input(&w, data, size, &external)) return 0;
    const uint64_t op = ck_op_id(UID);
    uint64_t one, two;
    ck_test_proc_init(&w.t);
    w.t.proc.budget.limit = (size_t)1 << 30;
    w.mem = ck_proc_mem(&w.t.proc, CK_MEM_STATE);
    CK_ASSERT(ck_simfs_new(&w.sim, 1) == CK_OK);
    w.t.proc.fs = ck_simfs_base(w.sim);
    write_files(&w, &op, external);
    ck_status s = restore(&w, &op, 1, &one), again = restore(&w, &op, 2, &two);
    CK_ASSERT((s == CK_OK) == (again == CK_OK) && one == two);
    ck_simfs_free(w.sim);
    ck_test_proc_destroy(&w.t);
    return 0;
}
