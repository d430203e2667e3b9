/* A connection carries frames both ways. Outgoing ones wait in a queue with a bound in bytes; incoming ones are
 * assembled from the budget given and handed to the owner. It knows nothing of what the frames say: handshakes, secrets
 * and heartbeats are its user's.
 *
 * Threads: callbacks on the loop's thread, without locks; send, resume, close, ref and unref from any. References: the
 * loop holds one until on_close has returned, dial gives one to its caller, on_open may take its own. */
#ifndef CK_NET_CONNECTION_H
#define CK_NET_CONNECTION_H

#include "net/frame.h"
#include "net/loop.h"
#include "net/tls.h"
#include "os/socket.h"

typedef struct ck_connection ck_connection;

typedef struct ck_connection_handler {
    /* Connected or accepted: the first callback, unless it is on_close. May be NULL. */
    void (*on_open)(void *arg, ck_connection *c);
    /* Required. Takes *f and sets it to NULL. CK_OK: go on. CK_FULL: go on when ck_connection_resume says so. Anything
     * else closes the connection for that reason. */
    ck_status (*on_frame)(void *arg, ck_connection *c, ck_frame **f, ck_error *err);
    /* A send said CK_FULL, and the queue is under half of its bound again. May be NULL. */
    void (*on_room)(void *arg, ck_connection *c);
    /* Required; once, the last callback. CK_OK: our own close. CK_CLOSED: the peer ended. CK_CANCELLED: the loop ends.
     * Else what went wrong. Frames not yet sent are dropped. */
    void (*on_close)(void *arg, ck_connection *c, ck_status why, const ck_error *err);
} ck_connection_handler;

typedef struct ck_connection_config {
    const ck_connection_handler *handler; /* outlives the connection */
    void *arg;
    ck_mem mem;             /* pays for incoming frames */
    size_t frame_bytes_max; /* ceiling of the length field, both ways: CK_FRAME_CONTROL_BYTES_MAX, CK_FRAME_BYTES_MAX */
    size_t queue_bytes_max; /* outgoing bytes from which send says CK_FULL */
    int64_t connect_timeout_us; /* dial only; 0 = the system's */
    /* Until ck_connection_trust: the ceiling of incoming frames (0: the peer is trusted at once), and how long it has
     * (0: for ever). */
    size_t greeting_bytes_max;
    int64_t greeting_timeout_us;
    ck_tls *tls; /* outlives the connection, which is open once both certificates are taken; NULL: plain bytes */
} ck_connection_config;

/* Starts to connect to an address of os/socket.h; frames sent meanwhile wait. A failure to connect comes by on_close. A
 * host name is looked up here and may block: not on the loop's thread then. */
CK_NODISCARD ck_status ck_connection_dial(ck_net_loop *l, const char *address, const ck_connection_config *cfg,
                                          ck_connection **out, ck_error *err);

/* Takes *f and sets it to NULL, always. Never blocks. CK_OK. CK_FULL: taken, and the bound is passed: stop after this
 * one until on_room. CK_CLOSED: dropped, the connection is gone. CK_INVALID: dropped, longer than the ceiling. */
CK_NODISCARD ck_status ck_connection_send(ck_connection *c, ck_frame **f);
void ck_connection_resume(ck_connection *c);
/* The peer has shown that it may talk: frames up to frame_bytes_max may come. Thread: the loop's only. */
void ck_connection_trust(ck_connection *c);
/* flush: what is queued is sent first. on_close follows. Safe twice. */
void ck_connection_close(ck_connection *c, bool flush);
const char *ck_connection_peer(const ck_connection *c); /* for messages; lives as long as the connection */

ck_connection *ck_connection_ref(ck_connection *c);
void ck_connection_unref(ck_connection **c); /* sets NULL; NULL is fine */

/* ---- the accepting side ---- */

typedef struct ck_listener ck_listener;

/* Fill *cfg for a connection that has come; false turns it away. */
typedef bool (*ck_accept_fn)(void *arg, ck_connection_config *cfg);

/* At most connections_max of them at a time, and an eighth of that, but 64, that are not trusted: more are turned away
 * with a line in the log, of those that are not trusted the one that came first. So who connects and says nothing
 * keeps nobody out. */
CK_NODISCARD ck_status ck_listener_open(ck_net_loop *l, const char *address, unsigned connections_max,
                                        ck_accept_fn on_accept, void *arg, ck_listener **out, uint16_t *bound_port,
                                        ck_error *err);
/* The same on a socket that listens already; takes *s and sets it to NULL, always. */
CK_NODISCARD ck_status ck_listener_on(ck_net_loop *l, ck_socket **s, unsigned connections_max, ck_accept_fn on_accept,
                                      void *arg, ck_listener **out, ck_error *err);
/* Accepts no more; on_accept is not called after it returns. Its connections stay. May block until the loop's thread
 * has seen it; thread: any. NULL is fine. */
void ck_listener_close(ck_listener *l);

#endif
