/* The `file` sink from the inside: what append and upsert share, names, and the payload of a committable. */
#ifndef CK_CONNECTOR_FILE_SINK_INT_H
#define CK_CONNECTOR_FILE_SINK_INT_H

#include "connector/file/file_int.h"
#include "connector/file/part_writer.h"
#include "format/encoder.h"
#include "state/operator_rows.h"

enum {
    CK_PARTS_OF_CHECKPOINT =
        1000,                   /* part numbers are checkpoint * 1000 + k: they tell which checkpoint committed them */
    CK_ENCODE_BYTES = 256 << 10 /* handed to the writer at once */
};

/* ---- names ---- */

/* Final:  part-<8 hex of the job>-<subtask>-<n>.<ext>, rows-<subtask>.<ext>
 * Staged: .staged-<job uuid>-<subtask>-<8 hex of this instance>-<seq>.<ext>; upsert: .staged-<job uuid>-rows-<subtask>-
 *         <checkpoint>.<ext> */
#define CK_STAGED_PREFIX ".staged-"
const char *ck_sink_part_path(ck_arena *a, const char *dir, const char *job_uuid, uint32_t subtask, uint64_t n,
                              const char *ext);
const char *ck_sink_rows_path(ck_arena *a, const char *dir, uint32_t subtask, const char *ext);
/* Whether name is a rows file of a subtask from `of` on: there are no more so many. */
bool ck_sink_is_stale_rows(const char *name, const char *ext, uint64_t of);

/* ---- committables: name = final path ---- */

typedef struct ck_sink_payload {
    const char *staged;
    uint64_t bytes;
    uint32_t crc32c;
    bool replace;         /* an upsert file */
    uint32_t subtask, of; /* upsert: rows-<s> with s >= of are stale when the last of them is committed */
} ck_sink_payload;
CK_NODISCARD ck_status ck_sink_payload_print(ck_arena *a, const ck_sink_payload *p, const char **out, ck_error *err);
CK_NODISCARD ck_status ck_sink_payload_parse(ck_arena *a, const char *text, ck_sink_payload *out, ck_error *err);

/* ---- a file being written ---- */

typedef struct ck_part {
    char *path; /* what it is written as; NULL while none is open */
    uint64_t bytes;
    uint32_t crc32c;
} ck_part;

/* What both modes have, first in either's instance. */
typedef struct ck_file_sink {
    const ck_operator_vtbl *mode; /* append or upsert */
    ck_mem mem;
    ck_arena arena; /* options, the directory's name */
    ck_sink_table table;
    ck_file_options options;
    char *dir;
    bool commits; /* output appears by committables; otherwise by itself */
    uint32_t subtask, parallelism;
    char uuid[64];
    ck_encoder *encoder;
    ck_part_writer writer;
    ck_bytes text; /* encoded, not handed over */
    ck_part part;  /* the open one; its path is path_buf */
    char path_buf[4096];
} ck_file_sink;

CK_NODISCARD ck_status ck_file_sink_init(ck_file_sink *s, const ck_op_spec *spec, ck_mem mem, ck_error *err);
void ck_file_sink_destroy(ck_file_sink *s);
/* Begins a file (with the csv header) when none is open. */
CK_NODISCARD ck_status ck_file_sink_begin(ck_file_sink *s, const char *path, ck_op_ctx *ctx);
/* Counts what was encoded since `from` into the part. */
void ck_file_sink_count(ck_file_sink *s, size_t from);
/* Hands text over when there is enough, or at all with force. */
CK_NODISCARD ck_status ck_file_sink_hand_over(ck_file_sink *s, bool force);

extern const ck_operator_vtbl ck_append_vtbl;
CK_NODISCARD ck_status ck_append_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
extern const ck_operator_vtbl ck_upsert_vtbl;
CK_NODISCARD ck_status ck_upsert_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
CK_NODISCARD ck_status ck_upsert_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots,
                                       uint32_t *count, ck_error *err);
extern const ck_committer_vtbl ck_file_committer_vtbl;
CK_NODISCARD ck_status ck_file_sink_look(const ck_op_spec *spec, ck_error *err);
CK_NODISCARD ck_status ck_file_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);

#endif
