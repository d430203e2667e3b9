/* One connection's side of TLS, over a socket that its connection owns. Thread: the loop's. */
#ifndef CK_NET_TLS_INT_H
#define CK_NET_TLS_INT_H

#include "base/view.h"
#include "net/tls.h"
#include "os/socket.h"

typedef struct net_tls net_tls;

/* dialled: the address, whose host the peer's certificate has to be for; NULL: it was accepted. */
ck_status net_tls_new(ck_tls *t, ck_socket *s, const char *dialled, net_tls **out, ck_error *err);
void net_tls_free(net_tls *n); /* before the socket is closed; NULL is fine */
/* CK_AGAIN: once more when the socket is readable, or writable when *writes. CK_REFUSED: one does not take the other's
 * certificate. */
ck_status net_tls_shake(net_tls *n, bool *writes, ck_error *err);
/* As those of a socket. What is left of a read may be here and not in the socket: it is read until CK_AGAIN. After a
 * writev that would block the same bytes come again, perhaps with more behind them. */
ck_status net_tls_read(net_tls *n, void *p, size_t max, size_t *got, ck_error *err);
ck_status net_tls_writev(net_tls *n, const ck_view *parts, size_t count, size_t *sent, ck_error *err);

#endif
