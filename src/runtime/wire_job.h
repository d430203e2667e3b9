/* What the processes of a job say to each other about it, as frames of the data wire (wire.h). Process 0 leads: it
 * numbers the checkpoints, gathers their acknowledgements, publishes and commits, and says when the job has ended. All
 * numbers big-endian; a string is u32 length and bytes.
 *
 *   TELL     from the leader: u32 subtask, u8 ck_tell_kind, u8 barrier kind and flags (64 stop, 128 overtakes), u64
 * checkpoint REPORT   to the leader, FAILED both ways: u32 subtask, u8 ck_report_kind, u64 checkpoint, then of an ACK
 * u8 had ended; u32 files: string path, u64 bytes, u32 crc32c, u64 vertex, u32 subtask, u32 first and u32 last key
 * group, u8 kind, string base (empty: none), u32 operators, u64 each; u32 lists of committables: u32 operator in the
 * chain, u32 items: string name, u64 checkpoint, string payload NACK, FAILED  u8 status, u8 flags (1 retriable, 2
 * fatal), string message */
#ifndef CK_RUNTIME_WIRE_JOB_H
#define CK_RUNTIME_WIRE_JOB_H

#include "net/frame.h"
#include "runtime/subtask.h"

/* NULL without memory. */
ck_frame *ck_wire_tell_frame(ck_mem mem, uint32_t subtask, const ck_tell *t);
/* *subtask is below subtask_count; the message in *out is not set. Bad bytes are CK_CORRUPT. */
CK_NODISCARD ck_status ck_wire_read_tell(const ck_frame *f, uint32_t subtask_count, uint32_t *subtask, ck_tell *out,
                                         ck_error *err);

/* CK_NOMEM; CK_FULL: an acknowledgement larger than a frame. */
CK_NODISCARD ck_status ck_wire_report_frame(ck_mem mem, const ck_report *r, ck_frame **out);
/* The report is the caller's (ck_report_free), whatever its kind. */
CK_NODISCARD ck_status ck_wire_read_report(ck_mem mem, const ck_frame *f, uint32_t subtask_count, ck_report **out,
                                           ck_error *err);

#endif
