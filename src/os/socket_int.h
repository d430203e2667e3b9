/* What socket.c and poller.c share. */
#ifndef CK_OS_SOCKET_INT_H
#define CK_OS_SOCKET_INT_H

#include "os/socket.h"

struct ck_socket {
    ck_proc *proc;
    int fd;
    ck_poller *poller; /* the one it is in, or NULL */
    bool unlink_path;  /* a listener on a path of its own */
    char address[256]; /* for messages */
};

#endif
