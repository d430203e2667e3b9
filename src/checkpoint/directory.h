/* The checkpoint directory of one job: who owns it, which checkpoints it has, what may go (docs/formats.md, "Checkpoint
 * directory"). Opened once by the run that owns it; tools open it read-only.
 *
 * A job runs as a whole, or region by region (docs/decisions/0025-regions.md): then each region has an owner of its own
 * and a sequence of manifests with its vertices only, and what is restored is the cover: for every vertex the newest
 * manifest that has it, of manifests of one graph.
 *
 * Threads: any, calls may overlap (publishing N while N-1 is marked committed and retention runs). All but the small
 * getters block on the disk: run them on the I/O executor. */
#ifndef CK_CHECKPOINT_DIRECTORY_H
#define CK_CHECKPOINT_DIRECTORY_H

#include "checkpoint/manifest.h"

typedef struct ck_checkpoint_dir ck_checkpoint_dir;

/* What of the job this run is. Borrowed by the directory until it is closed. */
typedef struct ck_checkpoint_region {
    uint32_t index, count; /* count 0 or 1: the whole job, as without all this */
    uint64_t graph_hash;   /* of the graph of all */
    const uint64_t *ops;   /* ids of all operators of that graph, */
    const uint32_t *of_op; /* and the region of each */
    uint32_t op_count;
} ck_checkpoint_region;

typedef struct ck_checkpoint_dir_config {
    ck_proc *proc;
    ck_mem mem;             /* CK_MEM_PLAN */
    const char *path;       /* made when missing, unless read_only */
    const char *job_name;   /* read_only: NULL takes any */
    bool fresh;             /* forget what is there: a new UUID (see ck_checkpoint_dir_begin); ids go on above the old */
    const char *fresh_uuid; /* fresh: that UUID; where the directory has it already nothing is forgotten. NULL: any */
    bool read_only;         /* no lock, nothing is created or cleaned */
    ck_checkpoint_region region; /* read_only: what a read gives */
    int64_t lock_wait_us;        /* of a region: how long one other region's opening may take; 0 = 10 s */
} ck_checkpoint_dir_config;

/* Takes job.lock (CK_REFUSED when another run is alive, naming its process), reads or makes job.json (CK_REFUSED
 * when it belongs to another job), lists what is there, removes temporary files a dead run left behind. Damaged
 * manifests do not fail the opening: they are listed with `damage` and refused when used.
 *
 * A region takes and holds region-<n>.lock, and job.lock only while it opens; it removes temporary files of its own
 * vertices. Whoever runs the whole holds job.lock and is refused while a region's lock is held; a region is refused
 * while job.lock is held for longer than an opening takes, and while a region of another graph is alive. */
CK_NODISCARD ck_status ck_checkpoint_dir_open(const ck_checkpoint_dir_config *cfg, ck_checkpoint_dir **out,
                                              ck_error *err);
/* A fresh opening only draws its UUID: this makes it the directory's, and takes the markers of the life before away. To
 * be called before anything is prepared under it; a start that is refused until then leaves the job that was there.
 * Without effect after any other opening. */
CK_NODISCARD ck_status ck_checkpoint_dir_begin(ck_checkpoint_dir *d, ck_error *err);
void ck_checkpoint_dir_close(ck_checkpoint_dir *d); /* lets go of the lock; NULL is fine */

const char *ck_checkpoint_dir_path(const ck_checkpoint_dir *d);
const char *ck_checkpoint_dir_job_name(const ck_checkpoint_dir *d);
const char *ck_checkpoint_dir_job_uuid(const ck_checkpoint_dir *d);
uint64_t ck_checkpoint_dir_attempt(const ck_checkpoint_dir *d); /* grows with every opening that took the lock */
/* Above every id seen in a name anywhere in the directory: manifests, markers, snapshots, staged and temporary files,
 * of this UUID or an older one. Of a region: one of its own. */
uint64_t ck_checkpoint_dir_next_id(const ck_checkpoint_dir *d);
/* Ids of a region have its number in their lowest bits, as many as the greatest number needs: the least such id that is
 * not below `id`, and how far it is from one to the next. Of the whole: `id`, and 1. */
uint64_t ck_checkpoint_region_id(const ck_checkpoint_region *r, uint64_t id);
uint64_t ck_checkpoint_region_step(const ck_checkpoint_region *r);

typedef struct ck_checkpoint_entry {
    uint64_t checkpoint;
    ck_barrier_kind kind;
    bool committed;           /* checkpoint-<N>.committed exists */
    bool own;                 /* of this directory's present UUID */
    bool mine;                /* own, and not of another region than this run's */
    uint32_t region, regions; /* regions 0: of the whole job, or not known; of a damaged one as its marker says */
    const char *damage;       /* why its manifest cannot be read; NULL = it can */
} ck_checkpoint_entry;
/* All complete checkpoints, ascending, copied into the arena. */
CK_NODISCARD ck_status ck_checkpoint_dir_list(ck_checkpoint_dir *d, ck_arena *a, ck_checkpoint_entry **out,
                                              uint32_t *count);
/* The newest complete one of this UUID, of a region the newest that is `mine`. CK_NOTFOUND: none. */
CK_NODISCARD ck_status ck_checkpoint_dir_newest(ck_checkpoint_dir *d, ck_checkpoint_entry *out);
/* The same to restore from: an id, and a sentence where there is none. */
CK_NODISCARD ck_status ck_checkpoint_dir_newest_id(ck_checkpoint_dir *d, uint64_t *id, ck_error *err);
/* The newest checkpoint that all sinks have committed, as its marker says, and whose manifest is gone; 0 where a
 * manifest of this UUID is newer, or the job has gone back behind it. A fresh start removes such markers. */
uint64_t ck_checkpoint_dir_lost(const ck_checkpoint_dir *d);
/* Read and checked. CK_NOTFOUND names the ids there are; CK_CORRUPT names the damage.
 *
 * Of a job that ran region by region that is the cover as of `checkpoint`, as one manifest with `parts`: of each region
 * the newest up to there, or one of the whole; where `checkpoint` is a savepoint, the newest savepoint. It is final
 * when all parts are. A region for which nothing was ever published has no part: it begins anew. CK_REFUSED: some
 * region has a checkpoint of this graph and another only of the graph before, or none that is as old.
 *
 * For a region, of its own graph: its own manifest alone; where it has none, the cover of the graph before. CK_NOTFOUND
 * with an empty message: it has neither, and begins anew. */
CK_NODISCARD ck_status ck_checkpoint_dir_read(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a, ck_manifest **out,
                                              ck_error *err);
/* The same of each region's newest up to there, whatever it is: for who takes the newest there is. */
CK_NODISCARD ck_status ck_checkpoint_dir_read_newest(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a,
                                                     ck_manifest **out, ck_error *err);

/* Completes m->checkpoint: checks the manifest against itself and that every file it names is there with its size, then
 * creates it exclusively. When the name is taken by the same owner, attempt and content that is a lost reply and
 * success. On failure err->fatal says that it is not known whether the checkpoint is visible, or that it is another
 * owner's: the job must end. */
CK_NODISCARD ck_status ck_checkpoint_dir_publish(ck_checkpoint_dir *d, const ck_manifest *m, ck_error *err);
/* Whether a file that a manifest names, or is to name, is there with its size. */
bool ck_checkpoint_dir_has(const ck_checkpoint_dir *d, const ck_manifest_file *f);
/* A checkpoint that cannot be restored and that the job has gone back behind: its manifest is renamed to
 * checkpoint-<N>.abandoned, durably, and it counts no more. */
CK_NODISCARD ck_status ck_checkpoint_dir_abandon(ck_checkpoint_dir *d, uint64_t checkpoint, ck_error *err);
/* Writes checkpoint-<N>.committed. Again is fine. */
CK_NODISCARD ck_status ck_checkpoint_dir_mark_committed(ck_checkpoint_dir *d, uint64_t checkpoint, ck_error *err);
/* Keeps the newest `retained` (at least 1) completed ones, every savepoint, every one not committed, and what these
 * name; deletes the manifests of the rest, then every snapshot, delta, capture and write-ahead file nobody names that
 * is older than the newest complete checkpoint; nothing that a checkpoint published meanwhile names. Deletes no data
 * file while some manifest is damaged. */
CK_NODISCARD ck_status ck_checkpoint_dir_retain(ck_checkpoint_dir *d, uint32_t retained, ck_error *err);

/* "latest", "N", "DIR", "DIR:N" to a directory (NULL: this one) and an id (0: the newest). For --restore. */
CK_NODISCARD ck_status ck_restore_point_parse(ck_arena *a, const char *text, const char **dir, uint64_t *checkpoint,
                                              ck_error *err);

/* Relative paths, in the arena. */
const char *ck_checkpoint_path_manifest(ck_arena *a, uint64_t checkpoint);
const char *ck_checkpoint_path_committed(ck_arena *a, uint64_t checkpoint);
const char *ck_checkpoint_path_file(ck_arena *a, uint64_t vertex, uint32_t subtask, uint64_t checkpoint,
                                    ck_file_kind kind);

#endif
