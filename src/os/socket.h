/* TCP and local stream sockets, non-blocking, and the poller that waits on many. Knows bytes only. */
#ifndef CK_OS_SOCKET_H
#define CK_OS_SOCKET_H

#include "base/proc.h"
#include "base/view.h"

typedef struct ck_socket ck_socket; /* owner closes; one thread at a time */

/* Addresses: "HOST:PORT", "[IPV6]:PORT" or "unix:PATH" (made 0600, removed by close). A host that is a name is looked
 * up, which may block, and its first IPv4 address taken, else the first of all. Every socket is close-on-exec,
 * non-blocking and sends small writes at once. */

/* Port 0 picks one, bound_port (optional) says which. CK_EXISTS: somebody listens there. */
CK_NODISCARD ck_status ck_socket_listen(ck_proc *proc, const char *address, ck_socket **out, uint16_t *bound_port,
                                        ck_error *err);
/* A host as in an address: only this machine reaches it. A name is only "localhost": others are not looked up. */
bool ck_socket_is_loopback(const char *host);
CK_NODISCARD ck_status ck_socket_accept(ck_socket *l, ck_socket **out, ck_error *err); /* CK_AGAIN: none waits */
/* Starts to connect; writable says it is done, then ck_socket_connected tells how it went. CK_NOTFOUND, of either:
 * nobody listens there, which is known. */
CK_NODISCARD ck_status ck_socket_connect(ck_proc *proc, const char *address, ck_socket **out, ck_error *err);
CK_NODISCARD ck_status ck_socket_connected(ck_socket *s, ck_error *err);
/* CK_AGAIN with *n 0: would block. CK_CLOSED: the peer ended, by its will or not. */
CK_NODISCARD ck_status ck_socket_read(ck_socket *s, void *p, size_t max, size_t *n, ck_error *err);
CK_NODISCARD ck_status ck_socket_write(ck_socket *s, const void *p, size_t max, size_t *n, ck_error *err);
/* Several pieces as one, at most 64 of them; stops where the system does, perhaps inside one. */
CK_NODISCARD ck_status ck_socket_writev(ck_socket *s, const ck_view *parts, size_t count, size_t *n, ck_error *err);
const char *ck_socket_address(
    const ck_socket *s);            /* what was asked for; of an accepted one, the peer's; for messages */
void ck_socket_close(ck_socket *s); /* leaves its poller too; NULL is fine */

typedef struct ck_poller ck_poller;
typedef struct ck_poll_event {
    void *tag;
    bool readable, writable, closed;
} ck_poll_event;

CK_NODISCARD ck_status ck_poller_new(ck_proc *proc, ck_poller **out, ck_error *err);
void ck_poller_free(ck_poller *p);
/* Adds the socket or changes what it waits for. Events repeat until what they say is done; closed comes without being
 * asked for, once both directions are gone. A socket is in one poller at most. */
CK_NODISCARD ck_status ck_poller_set(ck_poller *p, ck_socket *s, bool want_read, bool want_write, void *tag,
                                     ck_error *err);
void ck_poller_remove(ck_poller *p, ck_socket *s);
/* Up to max events; timeout_ms -1 waits for ever. Only one thread waits. */
CK_NODISCARD ck_status ck_poller_wait(ck_poller *p, ck_poll_event *events, size_t max, int timeout_ms, size_t *count,
                                      ck_error *err);
void ck_poller_wake(ck_poller *p); /* ends a wait early; thread: any */

#endif
