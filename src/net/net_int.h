/* What the loop and those that live on it share. All of it belongs to the loop's thread, except where it says so. */
#ifndef CK_NET_NET_INT_H
#define CK_NET_NET_INT_H

#include "net/connection.h"
#include "os/socket.h"

/* Something with a socket in the loop's poller: a connection or a listener. */
typedef struct net_watch net_watch;
struct net_watch {
    void (*ready)(net_watch *w, const ck_poll_event *e);
    void (*stop)(net_watch *w);   /* the loop ends: close, with retire */
    void (*retire)(net_watch *w); /* no event of this turn can name it any more: give up the loop's reference */
    net_watch *next, *prev;       /* all of the loop, or those to retire */
};

ck_proc *net_loop_proc(ck_net_loop *l);
ck_poller *net_loop_poller(ck_net_loop *l);
void net_loop_add(ck_net_loop *l, net_watch *w);
void net_loop_retire(ck_net_loop *l, net_watch *w); /* out of the loop's list, retired after this turn's events */

/* What a listener knows of the connections that came by it. */
typedef struct net_acceptor net_acceptor;
struct net_acceptor {
    void (*gone)(net_acceptor *a);           /* one of them is */
    unsigned stranger_count;                 /* of those that are not trusted */
    ck_connection *oldest_stranger, *newest; /* and they, in the order they came */
};

/* An accepted socket becomes an open connection; takes over s. The acceptor is told when it is gone, unless this fails
 * at once. */
ck_status net_connection_adopt(ck_net_loop *l, ck_socket *s, const ck_connection_config *cfg, net_acceptor *a,
                               ck_error *err);
void net_connection_turn_away(ck_connection *stranger);

#endif
