/* Records in a directory, one file each, for the next coordinator of the same directory: `leader.rec` and `job-N.rec`,
 * replaced durably. `coordinator.lock` is held while one leads. */
#ifndef CK_CLUSTER_COORDINATOR_RECORDS_DIR_H
#define CK_CLUSTER_COORDINATOR_RECORDS_DIR_H

#include "cluster/coordinator/records.h"

/* Takes the lock (CK_EXISTS: another coordinator has it). *epoch: one above the last leader's. */
CK_NODISCARD ck_status ck_records_dir_open(ck_proc *proc, const char *dir, ck_records **out, uint64_t *epoch,
                                           ck_error *err);

#endif
