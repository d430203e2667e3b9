/* Records in etcd, for whichever coordinator leads. PREFIX/leader says who does: it is bound to a lease, and every
 * record is written in a transaction that asks whether that key is still the one this coordinator has made. So one that
 * was stopped, or cut off, and replaced writes nothing any more, whatever it believes.
 *
 *   PREFIX/leader      its address; its lease is kept alive by a thread
 *   PREFIX/token       the cluster's token, the same for all leaders
 *   PREFIX/leader.rec  its record, PREFIX/job-N.rec those of the jobs
 *
 * It stops by itself before the lease can have run out: whoever comes next may lead from then on. */
#ifndef CK_CLUSTER_COORDINATOR_RECORDS_ETCD_H
#define CK_CLUSTER_COORDINATOR_RECORDS_ETCD_H

#include "cluster/coordinator/etcd.h"
#include "cluster/coordinator/plugin_store.h"
#include "cluster/coordinator/records.h"
#include "cluster/token.h"

typedef struct ck_records_etcd_config {
    ck_proc *proc;
    const char *url;     /* etcd.h; borrowed during the call */
    const char *address; /* this coordinator's, for others to know */
    int64_t lease_s;     /* 2 to 600 */
} ck_records_etcd_config;

/* CK_AGAIN: another one leads, with its address; try again. *token: the cluster's. Blocks. */
CK_NODISCARD ck_status ck_records_etcd_open(const ck_records_etcd_config *cfg, ck_records **out, uint64_t *epoch,
                                            ck_token *token, ck_error *err);

/* Other keys behind PREFIX/, for as long as it leads: written as records are, and read. value NULL: the key goes. */
CK_NODISCARD ck_status ck_records_etcd_put(ck_records *r, const char *key, const ck_view *value, ck_error *err);
/* The same from another thread, one at a time, beside all else. */
CK_NODISCARD ck_status ck_records_etcd_put_aside(ck_records *r, const char *key, const ck_view *value, ck_error *err);
CK_NODISCARD ck_status ck_records_etcd_list(ck_records *r, const char *key, ck_arena *a, ck_etcd_pair **out,
                                            uint32_t *count, ck_error *err);
/* Plugins beside the records, which outlive it. Blocks. */
CK_NODISCARD ck_status ck_plugin_store_etcd(ck_proc *proc, ck_records *records, ck_plugin_store **out, ck_error *err);

#endif
