/* What a sink has for a server that cannot resume a prepared transaction: the epoch's rows go to a file of the
 * checkpoint directory, durable before the barrier is acknowledged, and the file is the committable. The committer
 * sends the rows in one transaction together with a token that names the checkpoint, and finds "done before" by the
 * token. A token's key - job, sink, writer - is that of the subtask that wrote the file, whatever the parallelism is
 * later.
 *
 *   <checkpoint dir>/write-ahead/wal-<job uuid>-<op id>-<writer>-<8 hex of this instance>-<seq>.rows
 *
 *   a row: u32 LE bytes of the key + 1, u32 LE bytes of the value + 1 (0: there is none), key, value
 *
 * A file goes when its rows are with the server. */
#ifndef CK_CONNECTOR_WRITE_AHEAD_H
#define CK_CONNECTOR_WRITE_AHEAD_H

#include "connector/file/part_writer.h"
#include "state/operator_rows.h"
#include "stream/descriptor.h"

/* ---- writing: the sink ---- */

/* Thread: the subtask's. Zero may be destroyed. */
typedef struct ck_write_ahead {
    ck_part_writer writer;
    ck_mem mem;
    char *dir;  /* owned */
    char *path; /* of the file that is open, owned; NULL: the epoch has no row yet */
    size_t dir_bytes;
    ck_bytes rows; /* not handed over yet */
    uint64_t bytes, row_count, seq;
    uint32_t crc32c, nonce;
} ck_write_ahead;

CK_NODISCARD ck_status ck_write_ahead_init(ck_write_ahead *w, ck_op_ctx *ctx, ck_mem mem);
void ck_write_ahead_destroy(ck_write_ahead *w); /* removes an unfinished file */
/* Before rows are added: CK_AGAIN: not yet, a wake comes. */
CK_NODISCARD ck_status ck_write_ahead_room(ck_write_ahead *w);
/* p NULL: there is no key, no value. */
CK_NODISCARD ck_status ck_write_ahead_add(ck_write_ahead *w, ck_view key, ck_view value, ck_op_ctx *ctx);
/* After a batch: hands over what has come together. */
CK_NODISCARD ck_status ck_write_ahead_flush(ck_write_ahead *w, ck_op_ctx *ctx);
/* In pre_snapshot: the epoch's file becomes durable and its committable stands in the state; the acknowledgement waits
 * for the disk. An epoch without rows has no committable. */
CK_NODISCARD ck_status ck_write_ahead_prepare(ck_write_ahead *w, uint64_t checkpoint, ck_op_ctx *ctx);

/* ck_op_desc.slots of a sink that writes ahead: none where the table's option 'delivery' is 'at_least_once'. */
CK_NODISCARD ck_status ck_write_ahead_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots,
                                            uint32_t *count, ck_error *err);

/* ---- committing: the committer, on an I/O thread ---- */

typedef struct ck_write_ahead_file {
    const char *path; /* as it was recorded */
    const char *here; /* the same name in the committer's directory of checkpoints, which may have been moved */
    uint64_t bytes, rows;
    uint32_t crc32c;
    const char *job; /* UUID of the job that wrote it */
    uint64_t op_id;  /* of the sink */
    uint32_t writer; /* subtask */
} ck_write_ahead_file;
CK_NODISCARD ck_status ck_write_ahead_parse(ck_arena *a, const char *checkpoint_dir, const ck_committable *c,
                                            ck_write_ahead_file *out, ck_error *err);

/* The rows in order; key and value are valid until it returns. */
typedef ck_status (*ck_write_ahead_row)(void *arg, ck_view key, ck_view value, ck_error *err);
/* CK_CORRUPT: the file is gone, or is not what was recorded - known at its end at the latest: nothing of it counts
 * before this has returned CK_OK. */
CK_NODISCARD ck_status ck_write_ahead_read(ck_proc *proc, ck_mem mem, const ck_write_ahead_file *f,
                                           ck_write_ahead_row row, void *arg, ck_error *err);
/* Its rows are with the server. A file that is gone is fine; one in another's directory of checkpoints stays. */
CK_NODISCARD ck_status ck_write_ahead_drop(ck_proc *proc, const ck_write_ahead_file *f, ck_error *err);
/* Removes all files this sink of this job wrote in the directory of checkpoints, except those of keep. */
CK_NODISCARD ck_status ck_write_ahead_drop_others(ck_proc *proc, ck_mem mem, const char *checkpoint_dir,
                                                  const char *job_uuid, uint64_t op_id, const ck_committable *keep,
                                                  size_t keep_count, ck_error *err);

#endif
