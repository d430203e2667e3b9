/* The manifest: what belongs to a checkpoint. Creating checkpoint-<N>.json exclusively is what completes checkpoint N;
 * it is never rewritten. Everything else - restore, rescale, retention, tools - is a lookup in it (docs/formats.md,
 * "Checkpoint directory"). */
#ifndef CK_CHECKPOINT_MANIFEST_H
#define CK_CHECKPOINT_MANIFEST_H

#include "stream/descriptor.h"
#include "stream/key_groups.h"

typedef enum ck_file_kind {
    CK_FILE_BASE,
    CK_FILE_DELTA,
    CK_FILE_INFLIGHT,
    CK_FILE_WAL,
    CK_FILE_CHANGELOG,    /* changes since the file before it; without one, all rows */
    CK_FILE_MATERIALIZED, /* all rows as they were behind the segment `base`, written beside the checkpoints */
} ck_file_kind;
static inline bool ck_file_is_state(ck_file_kind k) { return k != CK_FILE_INFLIGHT && k != CK_FILE_WAL; }

typedef struct ck_manifest_file {
    const char *path; /* relative to the checkpoint directory */
    uint64_t bytes;
    uint32_t crc32c;
    uint64_t vertex; /* id */
    uint32_t subtask;
    const uint64_t *ops; /* operators with state in it */
    uint32_t op_count;
    ck_key_group_range key_groups;
    ck_file_kind kind;
    const char *base; /* deltas, segments: path of the parent file, of a completed manifest; materialisations: above */
} ck_manifest_file;

typedef struct ck_manifest_vertex {
    uint64_t id;
    const char *const *ops; /* uids, chain order */
    uint32_t op_count;
    uint32_t parallelism;
    const uint32_t *finished; /* subtasks that had ended */
    uint32_t finished_count;
} ck_manifest_vertex;

/* Of a cover, not of a file: a manifest that is in it; one of the whole with what no region has newer. */
typedef struct ck_manifest_part {
    uint64_t checkpoint;
    uint32_t region; /* 0 of the whole */
    ck_barrier_kind kind;
    bool committed; /* its marker says so */
    uint32_t first_vertex, vertex_count;
} ck_manifest_part;

typedef struct ck_manifest_phase {
    const char *name;
    int64_t ms;
} ck_manifest_phase;

typedef struct ck_manifest {
    uint32_t format; /* 1; 2 of a region */
    const char *job_name, *job_uuid;
    uint64_t checkpoint, attempt;
    ck_barrier_kind kind;
    int64_t started_ms, completed_ms;
    const ck_manifest_phase *phases; /* how long the parts of it took, for people */
    uint32_t phase_count;
    uint32_t key_groups;
    const char *graph; /* JSON */
    uint64_t graph_hash;
    uint32_t region, regions; /* of how many: its vertices only, but the graph of all; regions 0: of the whole job */
    const char *state_versions;
    ck_manifest_vertex *vertices;
    uint32_t vertex_count;
    ck_manifest_file *files; /* of each subtask its rows and the changes on them, in order of application */
    uint32_t file_count;
    const ck_manifest_part *parts; /* of a cover, as ck_checkpoint_dir_read gives it; else none */
    uint32_t part_count;
} ck_manifest;

/* As in CK_GRAPH_OPS_MAX: no graph has more. */
enum { CK_REGIONS_MAX = 4096 };

/* The checkpoint that an operator, or the vertex with this id, is from: of a cover that of its part. 0: it has none. */
uint64_t ck_manifest_checkpoint_of_op(const ck_manifest *m, const char *uid);
uint64_t ck_manifest_checkpoint_of_vertex(const ck_manifest *m, uint64_t vertex);

CK_NODISCARD ck_status ck_manifest_encode(const ck_manifest *m, ck_bytes *out);
/* Every member checked; unknown members are ignored, a newer format is refused. */
CK_NODISCARD ck_status ck_manifest_decode(ck_arena *a, ck_view json, ck_manifest **out, ck_error *err);

#endif
