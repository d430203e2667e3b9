/* The sending side of an edge between vertices: which subtask of the consumer gets which rows. FORWARD, GATHER,
 * REBALANCE and BROADCAST pass batches by reference. HASH gathers rows per target and sends a target's rows when
 * they reach a limit, when the source idles, before every control event, or after 5 ms; with one target it too passes
 * by reference, with two or three it shares large batches: each gets its rows as a selection.
 *
 * All exchanges of a subtask share 1 MiB for what they gather; beyond it the largest gathering is sent first.
 *
 * Thread: the subtask's. */
#ifndef CK_RUNTIME_EXCHANGE_H
#define CK_RUNTIME_EXCHANGE_H

#include "data/builder.h"
#include "data/key.h"
#include "graph/graph.h"
#include "runtime/channel.h"

enum { CK_EXCHANGE_SUBTASK_BYTES = 1 << 20, CK_EXCHANGE_DELAY_US = 5000 };

typedef struct ck_exchange ck_exchange;

/* What the exchanges of one subtask share. Zero with mem set is ready. */
typedef struct ck_exchange_group {
    ck_proc *proc;
    ck_mem mem; /* CK_MEM_QUEUE */
    ck_key_fnv16_fn *fnv16; /* for this processor */
    ck_exchange *exchanges;
    size_t gathered_bytes;
    int64_t since_us;         /* the oldest gathered row; INT64_MAX: nothing is gathered */
    uint64_t *hashes;         /* scratch, CK_BATCH_ROWS_MAX; where the number of key groups is no power of two */
    uint16_t *targets;        /* scratch: target of the k-th live row */
    uint16_t *rows;           /* scratch: row numbers sorted by target */
    bool full;                /* some target said so since the group was last looked at */
    _Atomic bool closed_hint; /* some target closed */
} ck_exchange_group;

typedef struct ck_exchange_config {
    ck_edge_kind kind;
    const ck_schema *schema; /* of the rows; HASH only */
    const uint32_t *key;     /* HASH; borrowed */
    uint32_t key_count;
    uint32_t key_groups;
    uint32_t producer;     /* this subtask's index */
    uint32_t target_count; /* FORWARD: the consumer's parallelism too; only `producer` is used */
    uint32_t batch_rows;   /* sent to a target at the latest with so many rows */
    const char *keeper; /* HASH: uid of a consumer that keeps these keys in checkpoints; NULL: nobody does. Borrowed */
} ck_exchange_config;

CK_NODISCARD ck_status ck_exchange_group_init(ck_exchange_group *g, ck_proc *proc, ck_mem mem);
void ck_exchange_group_destroy(ck_exchange_group *g); /* with its exchanges; zero is fine */

CK_NODISCARD ck_status ck_exchange_new(ck_exchange_group *g, const ck_exchange_config *cfg, ck_exchange **out,
                                       ck_error *err);
/* The channel to a target, before anything is sent. FORWARD: the only one is target 0. */
void ck_exchange_connect(ck_exchange *x, uint32_t target, ck_channel *ch);
uint32_t ck_exchange_channels(const ck_exchange *x);
ck_exchange *ck_exchange_next(const ck_exchange *x); /* of its group */

/* Before a batch is sent: CK_DATA for a key that is too long for who keeps it, with the row's place, while that is
 * known. */
CK_NODISCARD ck_status ck_exchange_check(const ck_exchange *x, const ck_batch *b, ck_error *err);
/* Takes *b always. CK_CLOSED: nobody wants any more. Full targets show in group->full. */
CK_NODISCARD ck_status ck_exchange_batch(ck_exchange *x, ck_batch **b);
/* Any event but a batch, to every target that still reads, after what was gathered. */
CK_NODISCARD ck_status ck_exchange_control(ck_exchange *x, const ck_event *ev);
/* Every target has closed: looks again when group->closed_hint was set. */
bool ck_exchange_is_closed(ck_exchange *x);

/* Sends everything gathered by all exchanges of the group. */
CK_NODISCARD ck_status ck_exchange_flush(ck_exchange_group *g);
/* When gathered rows must go; INT64_MAX: nothing is gathered. */
static inline int64_t ck_exchange_deadline(const ck_exchange_group *g) {
    return g->since_us == INT64_MAX ? INT64_MAX : g->since_us + CK_EXCHANGE_DELAY_US;
}
/* Whether some target still waits for room. */
bool ck_exchange_any_full(const ck_exchange_group *g);

#endif
