/* What a coordinator keeps for the next one: a record for itself and one for each job, in a directory (records_dir.h)
 * or in etcd (records_etcd.h). As bytes each is [u8 kind][u32 BE CRC-32C of the rest][protobuf].
 *
 * Blocking. One thread at a time. */
#ifndef CK_CLUSTER_COORDINATOR_RECORDS_H
#define CK_CLUSTER_COORDINATOR_RECORDS_H

#include "base/proc.h"
#include "cluster/coordinator/coordinator.h"

typedef struct ck_records ck_records;

typedef struct ck_records_vtbl {
    void (*close)(ck_records *r);
    ck_status (*recover)(ck_records *r, ck_coordinator *c, ck_error *err);
    ck_status (*keep)(ck_records *r, uint64_t number, const ck_frame *f, ck_error *err);
    ck_status (*forget)(ck_records *r, uint64_t number, ck_error *err);
    ck_status (*hold)(ck_records *r, ck_error *err); /* NULL: for ever */
} ck_records_vtbl;

struct ck_records {
    const ck_records_vtbl *v;
};

static inline void ck_records_close(ck_records *r) { /* NULL is fine; whoever waits may lead from here on */
    if (r) r->v->close(r);
}
/* Every record into a machine that has not begun. A damaged one is CK_CORRUPT by name. */
CK_NODISCARD static inline ck_status ck_records_recover(ck_records *r, ck_coordinator *c, ck_error *err) {
    return r->v->recover(r, c, err);
}
/* CK_REFUSED: another coordinator leads. */
CK_NODISCARD static inline ck_status ck_records_keep(ck_records *r, uint64_t number, const ck_frame *f, ck_error *err) {
    return r->v->keep(r, number, f, err);
}
CK_NODISCARD static inline ck_status ck_records_forget(ck_records *r, uint64_t number, ck_error *err) {
    return r->v->forget(r, number, err); /* one that is not is fine */
}
/* Whether they are still this coordinator's to write: CK_OK, or why they are not. Does not block. */
CK_NODISCARD static inline ck_status ck_records_hold(ck_records *r, ck_error *err) {
    return r->v->hold ? r->v->hold(r, err) : CK_OK;
}

/* ---- their bytes ---- */

enum { CK_RECORD_HEAD_BYTES = 5 };
void ck_record_head(const ck_frame *f, uint8_t head[CK_RECORD_HEAD_BYTES]);
/* name: of where they are, for errors. Views in *out borrow from bytes. */
CK_NODISCARD ck_status ck_record_read(ck_view bytes, const char *name, ck_arena *a, ck_message *out, ck_error *err);
/* The epoch of the next leader, by the last one's record. */
CK_NODISCARD ck_status ck_record_next_epoch(const ck_message *m, const char *name, uint64_t *epoch, ck_error *err);

#endif
