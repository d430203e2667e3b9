/* Events as frames of the data wire (docs/formats.md, "Data wire"). Every payload begins with the edge's number, u32
 * big-endian: one channel of one edge, counted alike by both sides. Batches are Arrow IPC record batches; the schema
 * goes once per edge before the first of them; edges with weights have a last column `__weight`.
 *
 *   kind             payload behind the edge
 *   HELLO            (no edge) u32 version, u32 process, u64 graph hash, u64 restored checkpoint, 36 bytes job
 *                    UUID, u16 length and secret, u32 length and new splits (job_splits.c)
 *   SCHEMA           Arrow IPC schema message
 *   BATCH            u32 backlog: further batches that wait at the sender; Arrow IPC record batch message and body
 *   WATERMARK        i64 us, u8 idle
 *   BARRIER          u64 checkpoint, u8 barrier kind, plus 128 when it overtakes, u64 newest complete checkpoint
 *   CANCEL           u64 checkpoint, u8 barrier kind
 *   FLUSH, ROUTE     u64 number
 *   DRAIN, END       nothing
 *   CREDIT           u32 batches more may be sent            (towards the producer)
 *   CLOSE            nothing: nobody reads any more          (towards the producer)
 *   BYE              (no edge) nothing: the sender's last frame
 *   TELL, REPORT     (no edge) see wire_job.h
 *
 * One codec an edge and direction; one thread at a time. */
#ifndef CK_RUNTIME_WIRE_H
#define CK_RUNTIME_WIRE_H

#include "net/frame.h"
#include "stream/event.h"

enum { CK_WIRE_VERSION = 3, CK_WIRE_SECRET_BYTES_MAX = 1024, CK_WIRE_UUID_BYTES = 36 };
/* So that a HELLO with them is no larger than a frame may be. */
enum { CK_WIRE_SPLITS_BYTES_MAX = CK_FRAME_BYTES_MAX - 4096 };

typedef enum ck_wire_kind {
    CK_WIRE_HELLO = 1,
    CK_WIRE_SCHEMA,
    CK_WIRE_BATCH,
    CK_WIRE_WATERMARK,
    CK_WIRE_BARRIER,
    CK_WIRE_CANCEL,
    CK_WIRE_FLUSH,
    CK_WIRE_ROUTE,
    CK_WIRE_DRAIN,
    CK_WIRE_END,
    CK_WIRE_CREDIT,
    CK_WIRE_CLOSE,
    CK_WIRE_BYE,
    CK_WIRE_TELL,
    CK_WIRE_REPORT,
} ck_wire_kind;

/* ---- without a codec ---- */

typedef struct ck_wire_hello {
    uint32_t version, process;
    uint64_t graph_hash;
    /* The leader's word on what the job continues from; of others zeros. */
    uint64_t restored; /* checkpoint; 0: from the start */
    char uuid[CK_WIRE_UUID_BYTES + 1];
    ck_view secret, splits; /* decoded: borrowed from the frame */
} ck_wire_hello;
/* NULL without memory. */
ck_frame *ck_wire_hello_frame(ck_mem mem, const ck_wire_hello *h);
CK_NODISCARD ck_status ck_wire_read_hello(const ck_frame *f, ck_wire_hello *out, ck_error *err);

/* Any event but a batch; NULL without memory. */
ck_frame *ck_wire_control_frame(ck_mem mem, uint32_t edge, const ck_event *ev);
ck_frame *ck_wire_credit_frame(ck_mem mem, uint32_t edge, uint32_t count);
ck_frame *ck_wire_close_frame(ck_mem mem, uint32_t edge);
ck_frame *ck_wire_bye_frame(ck_mem mem);

/* The edge a frame is about. CK_CORRUPT: it is too short, or a kind nobody knows. */
CK_NODISCARD ck_status ck_wire_edge(const ck_frame *f, uint32_t *edge, ck_error *err);
/* Of a WATERMARK .. END frame. Bad bytes are CK_CORRUPT. */
CK_NODISCARD ck_status ck_wire_read_control(const ck_frame *f, ck_event *out, ck_error *err);
CK_NODISCARD ck_status ck_wire_read_credit(const ck_frame *f, uint32_t *count, ck_error *err);

/* ---- batches ---- */

typedef struct ck_wire_codec ck_wire_codec;
/* weights: the edge carries changes. schema outlives the codec. */
CK_NODISCARD ck_status ck_wire_codec_new(ck_mem mem, const ck_schema *schema, bool weights, ck_wire_codec **out,
                                         ck_error *err);
void ck_wire_codec_free(ck_wire_codec *c); /* NULL is fine */

/* The schema frame comes first, once (NULL without need). *used: live rows of b from `from` on that went into *out; the
 * caller comes again with the rest, which is for later frames: one frame stays under the ceiling. A single larger row
 * is CK_DATA. */
CK_NODISCARD ck_status ck_wire_schema_frame(ck_wire_codec *c, uint32_t edge, ck_frame **out, ck_error *err);
CK_NODISCARD ck_status ck_wire_batch_frame(ck_wire_codec *c, uint32_t edge, uint32_t backlog, const ck_batch *b,
                                           uint32_t from, uint32_t *used, ck_frame **out, ck_error *err);
/* Checks that the peer's schema is this edge's. */
CK_NODISCARD ck_status ck_wire_read_schema(ck_wire_codec *c, const ck_frame *f, ck_error *err);
CK_NODISCARD ck_status ck_wire_read_batch(ck_wire_codec *c, const ck_frame *f, uint32_t *backlog, ck_batch **out,
                                          ck_error *err);

#endif
