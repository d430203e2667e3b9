/* Links: the wires between this process and the others of one job. One connection a pair of processes carries all edges
 * between them as frames of runtime/wire.h. The higher process dials the lower one and says who it is, for which graph,
 * with which secret; the other answers who shows the right one. Until he has, he is heard for a few seconds and a few
 * hundred bytes, and strangers keep nobody out. When all are there nobody listens any more.
 *
 *   exchange --> channel --> uplink task --frames--> connection ==> connection --frames--> downlink task --> channel
 * --> gate
 *
 * An uplink sends a batch only with a credit of its edge, so a slow edge holds back its own sender and nobody else's;
 * control frames need none, but keep their place behind batches of their edge. A downlink grants credits as consumers
 * take batches.
 *
 * A link ends well when both sides have said BYE: the job has finished, and needs nothing of what is still on edges. So
 * does one whose peer goes away without a word after `finish`. Anything else is a failure. */
#ifndef CK_RUNTIME_LINK_H
#define CK_RUNTIME_LINK_H

#include "data/type.h"
#include "net/frame.h"
#include "net/tls.h"
#include "runtime/channel.h"

typedef struct ck_links ck_links;

typedef struct ck_links_config {
    ck_proc *proc;
    ck_scheduler *scheduler;
    ck_mem mem;       /* CK_MEM_PLAN */
    ck_mem queue_mem; /* CK_MEM_QUEUE */
    uint32_t process, process_count;
    const char *const *addresses; /* of every process; borrowed until links are up */
    ck_socket **listening; /* at our address; taken by up, which sets it to NULL. NULL: up listens there itself */
    const char *secret;    /* NULL = empty */
    ck_tls *tls;           /* NULL: none */
    uint64_t graph_hash;
    size_t bytes_max; /* of each outgoing channel */
    uint32_t events_max;
    uint32_t floating_credits; /* a peer; besides one an edge */
    void *arg;
    void (*failed)(void *arg, uint32_t peer, const ck_error *err); /* thread: any; perhaps several times */
    void (*retired)(void *arg);                                    /* a task's last word; two a peer; thread: any */
    /* A TELL, REPORT or BYE has come; takes f. Not CK_OK breaks the link. Thread: the loop's, may not block. */
    ck_status (*heard)(void *arg, uint32_t peer, ck_frame *f, ck_error *err);
    ck_task *boss; /* notified when something was heard, once the links have started */
} ck_links_config;

/* What process 0 says to the others when they connect. */
typedef struct ck_links_word {
    uint64_t restored;
    char uuid[37];
    ck_view splits; /* new ones of all processes; said: borrowed until free, heard: the links' */
} ck_links_word;

CK_NODISCARD ck_status ck_links_new(const ck_links_config *cfg, ck_links **out, ck_error *err);
/* An edge of ours to a subtask of another process, and one from there: number counts alike on both sides. Before up. */
CK_NODISCARD ck_status ck_links_add_out(ck_links *l, uint32_t peer, uint32_t number, const ck_schema *schema,
                                        bool weights, ck_channel **out, ck_error *err);
CK_NODISCARD ck_status ck_links_add_in(ck_links *l, uint32_t peer, uint32_t number, const ck_schema *schema,
                                       bool weights, ck_channel *to, ck_error *err);
void ck_links_say(ck_links *l, const ck_links_word *w);          /* process 0: before up */
const ck_links_word *ck_links_word_of_leader(const ck_links *l); /* after up */
/* Listens, dials, waits until every peer is there or the time is up. Blocks. Frames that come early wait. */
CK_NODISCARD ck_status ck_links_up(ck_links *l, int64_t timeout_us, ck_error *err);
uint32_t ck_links_task_count(const ck_links *l); /* that will retire */
void ck_links_start(ck_links *l);                /* after up: the tasks may run */
/* A TELL or REPORT to a peer, after up. Takes *f; NULL is CK_NOMEM. CK_CLOSED: the peer is gone. Thread: any. */
CK_NODISCARD ck_status ck_links_send(ck_links *l, uint32_t peer, ck_frame **f);
/* As send, and it is the last thing said: close waits until the peer has seen it. */
void ck_links_say_last(ck_links *l, uint32_t peer, ck_frame **f);
/* finish: nothing more goes out, say BYE and wait for theirs, or for the end of the connection; otherwise drop
 * everything. Thread: any. */
void ck_links_end(ck_links *l, bool finish);
/* After the tasks have retired, or when they never started: connections, listener, loop. Last
 * words are waited for, a second at most. Blocks. Safe twice. */
void ck_links_close(ck_links *l);
void ck_links_free(ck_links *l); /* after close; the channels go with it; NULL is fine */

#endif
