/* Links: the wires between this process and the others of one job. One connection a pair of processes carries all edges
 * between them as frames of runtime/wire.h. The higher process dials the lower one; the first frames say who it is, for
 * which graph, with which secret.
 *
 *   exchange --> channel --> uplink task --frames--> connection ==> connection --frames--> downlink task --> channel
 * --> gate
 *
 * An uplink sends a batch only with a credit of its edge, so a slow edge holds back its own sender and nobody else's;
 * control frames need none, but keep their place behind batches of their edge. A downlink grants credits as consumers
 * take batches.
 *
 * A link ends well when both sides have said BYE: every edge has ended or was closed. Anything else is a failure. */
#ifndef CK_RUNTIME_LINK_H
#define CK_RUNTIME_LINK_H

#include "data/type.h"
#include "runtime/channel.h"

typedef struct ck_links ck_links;

typedef struct ck_links_config {
    ck_proc *proc;
    ck_scheduler *scheduler;
    ck_mem mem;       /* CK_MEM_PLAN */
    ck_mem queue_mem; /* CK_MEM_QUEUE */
    uint32_t process, process_count;
    const char *const *addresses; /* of every process; borrowed until links are up */
    const char *secret;           /* NULL = empty */
    uint64_t graph_hash;
    size_t bytes_max; /* of each outgoing channel */
    uint32_t events_max;
    uint32_t floating_credits; /* a peer; besides one an edge */
    void *arg;
    void (*failed)(void *arg, const ck_error *err); /* a link broke; thread: any; perhaps several times */
    void (*retired)(void *arg);                     /* a task's last word; two a peer; thread: any */
} ck_links_config;

CK_NODISCARD ck_status ck_links_new(const ck_links_config *cfg, ck_links **out, ck_error *err);
/* An edge of ours to a subtask of another process, and one from there: number counts alike on both sides. Before up. */
CK_NODISCARD ck_status ck_links_add_out(ck_links *l, uint32_t peer, uint32_t number, const ck_schema *schema,
                                        bool weights, ck_channel **out, ck_error *err);
CK_NODISCARD ck_status ck_links_add_in(ck_links *l, uint32_t peer, uint32_t number, const ck_schema *schema,
                                       bool weights, ck_channel *to, ck_error *err);
/* Listens, dials, waits until every peer is there or the time is up. Blocks. Frames that come early wait. */
CK_NODISCARD ck_status ck_links_up(ck_links *l, int64_t timeout_us, ck_error *err);
uint32_t ck_links_task_count(const ck_links *l); /* that will retire */
void ck_links_start(ck_links *l);                /* after up: the tasks may run */
/* finish: every edge here has ended, say BYE and wait for theirs; otherwise drop everything. Thread: any. */
void ck_links_end(ck_links *l, bool finish);
/* After the tasks have retired, or when they never started: connections, listener, loop. Blocks. Safe twice. */
void ck_links_close(ck_links *l);
void ck_links_free(ck_links *l); /* after close; the channels go with it; NULL is fine */

#endif
