/* Records in a directory, one file each, for the next coordinator of the same directory: `leader.rec` and `job-N.rec`,
 * each [u8 kind][u32 BE CRC-32C of the rest][protobuf], replaced durably. `coordinator.lock` is held while one leads.
 * Blocking. One thread at a time. */
#ifndef CK_CLUSTER_COORDINATOR_RECORDS_H
#define CK_CLUSTER_COORDINATOR_RECORDS_H

#include "base/proc.h"
#include "cluster/coordinator/coordinator.h"

typedef struct ck_records ck_records;

/* Takes the lock (CK_EXISTS: another coordinator has it). *epoch: one above the last leader's. */
CK_NODISCARD ck_status ck_records_open(ck_proc *proc, const char *dir, ck_records **out, uint64_t *epoch,
                                       ck_error *err);
void ck_records_close(ck_records *r); /* NULL is fine */
/* Every record into a machine that has not begun. A damaged one is CK_CORRUPT by name. */
CK_NODISCARD ck_status ck_records_recover(ck_records *r, ck_coordinator *c, ck_error *err);
CK_NODISCARD ck_status ck_records_keep(ck_records *r, uint64_t number, const ck_frame *f, ck_error *err);
CK_NODISCARD ck_status ck_records_forget(ck_records *r, uint64_t number, ck_error *err); /* one that is not is fine */

#endif
