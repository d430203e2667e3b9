/* What a submitted job is made of: the coordinator only keeps it, task hosts read it. */
#ifndef CK_ENGINE_CLUSTER_INT_H
#define CK_ENGINE_CLUSTER_INT_H

#include "cluster/client.h"
#include "engine/engine_int.h"

/* Protobuf; numbers are never used again for something else. */
typedef struct engine_job_spec {
    ck_view graph; /* JSON */
    uint64_t parallelism, batch_rows, flush_us;
    uint64_t memory_bytes; /* of all its tasks together; 0: what the slots have */
    int64_t interval_us, timeout_us, final_timeout_us;
    uint64_t tolerable_failed, retained, alignment;
    int64_t stall_us;
    uint64_t allow_semantic_change, added;
    ck_view spill_dir; /* of whatever machine a host runs on; each makes a folder of its own in it */
    uint64_t rocksdb, changelog_where, changelog_every;
} engine_job_spec;

extern const ck_proto_type engine_job_spec_type;

/* Of a run's options. */
ck_checkpoint_config engine_checkpoint_config(const clink_run *r);

/* The engine's plugins, read whole into the arena. */
CK_NODISCARD ck_status engine_client_plugins(clink_engine *e, ck_arena *a, ck_client_plugin **out, uint32_t *count,
                                             ck_error *err);

#endif
