/* The body of a checkpoint directory. Files: directory.c (opening, reading), directory_lock.c (who owns it),
 * directory_names.c (names and walking), cover.c (which manifests belong together), region.c (what of it is this
 * run's), publish.c, retention.c. */
#ifndef CK_CHECKPOINT_DIRECTORY_INT_H
#define CK_CHECKPOINT_DIRECTORY_INT_H

#include <pthread.h>

#include "checkpoint/directory.h"
#include "checkpoint/manifest_int.h"
#include "os/fs.h"

/* The folder of a subtask that <N>.snap with all rows as they were at N are in. */
#define CK_MATERIALIZED "materialized"

typedef struct ck_dir_entry {
    ck_checkpoint_entry e;
    uint64_t graph_hash;
    ck_arena arena; /* damage and paths */
    const char **paths;
    uint32_t path_count;
    struct ck_dir_entry *next; /* ascending by checkpoint */
} ck_dir_entry;

struct ck_checkpoint_dir {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena; /* path, names */
    const char *path, *job_name, *job_uuid;
    bool read_only;
    ck_checkpoint_region region;
    ck_file *lock_file;   /* job.lock; a region has it while it opens */
    ck_file *region_lock; /* of a region */
    bool lock_torn;       /* job.lock's last line has no end: whoever wrote it died */
    bool unbegun;         /* opened fresh, and the directory is still the other life's */
    uint64_t attempt;
    uint64_t lost;        /* see ck_checkpoint_dir_lost; set by opening */
    pthread_mutex_t lock; /* guards what follows; no I/O under it */
    bool lock_made;
    ck_dir_entry *entries;
    ck_dir_entry *publishing; /* from before their files are looked at until they are entries */
    const char *removing;     /* the data file that retention takes away just now; NULL: none */
    uint64_t next_id;
};

/* What a name in the directory is. */
typedef enum ck_name_kind {
    CK_NAME_OTHER,
    CK_NAME_MANIFEST,
    CK_NAME_COMMITTED,
    CK_NAME_ABANDONED,
    CK_NAME_DATA, /* snapshots, deltas, captures, write-ahead files: retention's */
    CK_NAME_TEMPORARY,
} ck_name_kind;
/* *id: the checkpoint in the name, 0 without one. */
ck_name_kind ck_name_parse(const char *name, uint64_t *id);
/* Decimal digits only, no leading zero, at most INT64_MAX. */
bool ck_id_parse(const char *text, size_t n, uint64_t *id);

/* Calls fn for every file in the root (vertex and subtask empty), in <vertex>/<subtask>/ and in materialized/ there;
 * path is relative. */
typedef ck_status (*ck_dir_visit)(void *arg, const char *path, const char *name, ck_error *err);
CK_NODISCARD ck_status ck_dir_walk(const ck_checkpoint_dir *d, ck_dir_visit fn, void *arg, ck_error *err);
const char *ck_dir_join(ck_arena *a, const char *dir, const char *name); /* NULL without memory */

/* Makes entries of other regions' manifests above this id that have come since the directory was opened. */
CK_NODISCARD ck_status ck_dir_look_again(ck_checkpoint_dir *d, uint64_t above, ck_error *err);

/* ---- directory_lock.c ---- */
/* Who else is here is told; nothing is written yet. */
CK_NODISCARD ck_status ck_dir_take_locks(ck_checkpoint_dir *d, int64_t wait_us, ck_error *err);
/* Behind the manifests, whose attempts may be greater when the lock file was lost. */
CK_NODISCARD ck_status ck_dir_sign_locks(ck_checkpoint_dir *d, ck_error *err);
void ck_dir_let_go_of_locks(ck_checkpoint_dir *d);
/* Whether a run of some region is alive; of a directory that is open as the whole. */
CK_NODISCARD ck_status ck_dir_has_regions_alive(ck_checkpoint_dir *d, bool *alive, ck_error *err);

/* ---- region.c ---- */
static inline bool ck_dir_by_region(const ck_checkpoint_dir *d) { return d->region.count > 1; }
/* Of the graph that this run is a region of. */
bool ck_dir_is_of_this_graph(const ck_checkpoint_dir *d, const ck_dir_entry *e);
/* A manifest that is damaged, and whose marker does not say otherwise, may be anybody's. Under the lock. */
bool ck_dir_entry_is_mine(const ck_checkpoint_dir *d, const ck_dir_entry *e);
/* Whether this run clears away what is at a path: a file of one of its vertices, or of none that the graph has and this
 * is region 0; in the root what has a number of this region. */
bool ck_dir_path_is_mine(const ck_checkpoint_dir *d, const char *path, uint64_t id);

/* ---- cover.c ---- */
/* The manifest of this checkpoint alone, whatever belongs to it. */
CK_NODISCARD ck_status ck_dir_read_alone(ck_checkpoint_dir *d, uint64_t checkpoint, ck_arena *a, ck_manifest **out,
                                         ck_error *err);
/* Whether there is all of the job's state, of this UUID, in checkpoints that are newer than this one: a whole one, or
 * one of each region of a graph. Under the lock. */
bool ck_dir_is_superseded(const ck_checkpoint_dir *d, uint64_t than, const char *uuid);

/* Decodes the manifest's text, or notes its damage. */
CK_NODISCARD ck_status ck_dir_entry_new(const ck_checkpoint_dir *d, uint64_t id, ck_view text, ck_dir_entry **out,
                                        ck_error *err);
void ck_dir_entry_free(const ck_checkpoint_dir *d, ck_dir_entry *e);
void ck_dir_entry_unlink(ck_dir_entry **list, const ck_dir_entry *e); /* where it is in the list; under the lock */
bool ck_dir_entry_names(const ck_dir_entry *e, const char *path);
/* Of the entries; it is published no more. Locks. */
void ck_dir_entry_add(ck_checkpoint_dir *d, ck_dir_entry *e);

#endif
