/* What was under way to one subtask when a checkpoint overtook it: for every channel of its gate the watermark it had
 * told, and the batches and watermarks that came between the subtask's mark and the barrier. As a file
 * inflight-<N>.cap (docs/formats.md, "In-flight files") it belongs to the checkpoint.
 *
 * Threads: one at a time; the batches in it may be read elsewhere meanwhile. */
#ifndef CK_RUNTIME_INFLIGHT_H
#define CK_RUNTIME_INFLIGHT_H

#include "checkpoint/manifest.h"
#include "stream/event.h"

/* Inputs a file can name. Barriers of the others, of an operator with so many, are never overtaken: nothing of them is
 * kept, and their channels are not in the file. */
enum { CK_INFLIGHT_INPUTS_MAX = 256 };

typedef struct ck_inflight_channel {
    uint32_t input, number; /* of the gate */
    int64_t watermark;      /* before the first event */
    bool idle, ended;
} ck_inflight_channel;

typedef struct ck_inflight ck_inflight;

CK_NODISCARD ck_status ck_inflight_new(ck_mem mem, uint32_t channels, ck_inflight **out);
void ck_inflight_free(ck_inflight *f); /* NULL is fine */
void ck_inflight_set_channel(ck_inflight *f, const ck_inflight_channel *c);
/* BATCH (a further reference is taken) or WATERMARK, behind the others of the channel. */
CK_NODISCARD ck_status ck_inflight_add(ck_inflight *f, uint32_t channel, const ck_event *ev);
uint64_t ck_inflight_batches(const ck_inflight *f); /* 0: there is nothing to store */

/* The rows of an input, alike for writer and reader. */
typedef struct ck_inflight_input {
    const ck_schema *schema;
    bool weights;
} ck_inflight_input;

typedef struct ck_inflight_place {
    ck_proc *proc;
    ck_mem mem;
    const char *dir; /* of the checkpoints */
    const ck_inflight_input *inputs;
    uint32_t input_count;
} ck_inflight_place;

/* Blocking: writes it durably under file->path, which is new, and fills in bytes and crc32c. */
CK_NODISCARD ck_status ck_inflight_write(const ck_inflight_place *p, const ck_inflight *f, uint64_t checkpoint,
                                         ck_manifest_file *file, ck_error *err);

/* channel: one begins, its events follow. batch: the receiver takes it. */
typedef struct ck_inflight_reader {
    void *arg;
    ck_status (*channel)(void *arg, const ck_inflight_channel *c, ck_error *err);
    ck_status (*event)(void *arg, const ck_event *ev, ck_error *err);
} ck_inflight_reader;
/* Blocking: checks the file against the manifest's size and checksum, then reads it. Damage is named. */
CK_NODISCARD ck_status ck_inflight_read(const ck_inflight_place *p, const ck_manifest_file *file, uint64_t checkpoint,
                                        const ck_inflight_reader *reader, ck_error *err);

#endif
