/* etcd's version 3 as its JSON gateway has it: keys read and written in transactions, and leases. Any member of the
 * cluster may answer; one that does not is passed over for the next. Blocks. One thread at a time. */
#ifndef CK_CLUSTER_COORDINATOR_ETCD_H
#define CK_CLUSTER_COORDINATOR_ETCD_H

#include "base/arena.h"
#include "base/proc.h"

typedef struct ck_etcd ck_etcd;

enum {
    CK_ETCD_MEMBERS_MAX = 16,
    CK_ETCD_VALUE_BYTES_MAX = 1 << 20, /* etcd takes requests of 1.5 MiB */
    CK_ETCD_TRY_MS = 1000              /* one member's time to answer */
};

/* url: etcd://HOST:PORT[,HOST:PORT...][/PREFIX], etcds:// for TLS with a certificate the system trusts; the prefix is
 * "clink" where it is not said. CK_INVALID. Nothing is asked yet. */
CK_NODISCARD ck_status ck_etcd_new(ck_proc *proc, const char *url, ck_etcd **out, ck_error *err);
void ck_etcd_free(ck_etcd *e); /* NULL is fine */

typedef struct ck_etcd_pair {
    const char *key; /* behind PREFIX/ */
    ck_view value;
    uint64_t create_revision;
} ck_etcd_pair;

/* What all below may answer: CK_IO, with `retriable` where no member answered; CK_REFUSED: etcd said no; CK_CORRUPT. */

/* The pairs whose keys begin with `key`, in the arena. */
CK_NODISCARD ck_status ck_etcd_list(ck_etcd *e, const char *key, ck_arena *a, ck_etcd_pair **out, uint32_t *count,
                                    ck_error *err);

typedef struct ck_etcd_change {
    const char *key;
    const ck_view *value; /* NULL: the key goes */
    int64_t lease;        /* 0: none */
} ck_etcd_change;

/* If `key` was made at create_revision (0: it is not there), the change is done, all or nothing. *done: it was;
 * *revision: that of this answer. A change that was asked for and not answered may have been done. */
CK_NODISCARD ck_status ck_etcd_change_if(ck_etcd *e, const char *key, uint64_t create_revision,
                                         const ck_etcd_change *change, bool *done, uint64_t *revision, ck_error *err);

CK_NODISCARD ck_status ck_etcd_grant(ck_etcd *e, int64_t ttl_s, int64_t *lease, ck_error *err);
/* CK_NOTFOUND: it has expired. */
CK_NODISCARD ck_status ck_etcd_keep_alive(ck_etcd *e, int64_t lease, ck_error *err);
CK_NODISCARD ck_status ck_etcd_revoke(ck_etcd *e, int64_t lease, ck_error *err); /* its keys go */

#endif
