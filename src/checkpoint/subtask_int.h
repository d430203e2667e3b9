/* Inside the snapshots of a subtask: bases, deltas and what is under way (subtask.c); segments and materialisations
 * (changelog.c). */
#ifndef CK_CHECKPOINT_SUBTASK_INT_H
#define CK_CHECKPOINT_SUBTASK_INT_H

#include <stdatomic.h>

#include "checkpoint/changelog.h"

typedef enum ck_snapshot_plan {
    CK_PLAN_NOTHING, /* no row and no slot */
    CK_PLAN_SAME,    /* as it was */
    CK_PLAN_ALL,     /* all rows */
    CK_PLAN_CHANGES, /* on what is there */
} ck_snapshot_plan;
typedef enum ck_snapshot_word { CK_WORD_NONE, CK_WORD_COMPLETED, CK_WORD_ABORTED } ck_snapshot_word;

typedef struct ck_file_chain { /* of a completed checkpoint, in order of application */
    ck_arena arena;
    uint64_t checkpoint;     /* 0: none */
    ck_manifest_file *files; /* with room for two more */
    uint32_t count;
} ck_file_chain;

struct ck_subtask_snapshot {
    ck_subtask_snapshots *owner;
    ck_state_mark *mark;
    uint64_t checkpoint;
    ck_barrier_kind kind;
    ck_snapshot_plan plan;
    ck_file_chain chain; /* what it builds on, then what it is */
    bool written, ended;
    ck_snapshot_word word;
    ck_subtask_snapshot *next;
};

/* The one external materialisation that is under way or waits to be stood on. */
typedef enum ck_materialised_state {
    CK_MATERIALISED_NONE,
    CK_MATERIALISED_MARKED,
    CK_MATERIALISED_WRITING,
    CK_MATERIALISED_WRITTEN
} ck_materialised_state;
typedef struct ck_materialised {
    ck_materialised_state state;
    bool unwanted; /* its checkpoint was given up */
    _Atomic bool give_up;
    uint64_t checkpoint; /* whose state it is */
    ck_state_mark *mark; /* marked, writing */
    ck_arena arena;      /* file */
    ck_manifest_file file;
    uint64_t not_before; /* the checkpoint from which another one is tried, after a failure */
} ck_materialised;

struct ck_subtask_snapshots {
    ck_subtask_snapshots_config cfg;
    ck_mem mem;
    ck_file_chain chain;
    ck_subtask_snapshot *open; /* begun and not both ended and resolved */
    ck_materialised materialised;
};

/* A file of this subtask with its path, kind and the operators that have slots in the mark. CK_NOMEM says nothing. */
CK_NODISCARD ck_status ck_subtask_file(const ck_subtask_snapshots *s, ck_arena *a, const ck_state_mark *m,
                                       uint64_t checkpoint, ck_file_kind kind, ck_manifest_file *out);
CK_NODISCARD ck_status ck_subtask_file_copy(ck_arena *a, const ck_manifest_file *from, ck_manifest_file *to);
/* Subtasks of a job do not all write all their rows at one checkpoint: how many files with changes this one takes. */
uint32_t ck_subtask_changes_max(const ck_subtask_snapshots *s, uint32_t all);

/* ---- changelog.c ---- */

/* A copy of the materialisation that waits goes behind the files of the chain, where there is one. */
CK_NODISCARD ck_status ck_materialised_copy(const ck_subtask_snapshots *s, ck_file_chain *c);
/* Changes are to be written: the chain begins at that materialisation from here on. */
void ck_materialised_adopt(const ck_subtask_snapshots *s, ck_file_chain *c);
/* Whether changes go on the chain, or it has become so long that all rows are written at once. */
ck_snapshot_plan ck_changelog_plan(const ck_subtask_snapshots *s, const ck_file_chain *c);
/* The snapshot has been marked: marks what is to be materialised with it, where that is due. */
void ck_materialised_begin(ck_subtask_snapshots *s, const ck_subtask_snapshot *snap);
/* The chain is that of a completed checkpoint. */
void ck_materialised_settle(ck_subtask_snapshots *s);
void ck_materialised_aborted(ck_subtask_snapshots *s, uint64_t checkpoint);
void ck_materialised_destroy(ck_subtask_snapshots *s);

#endif
