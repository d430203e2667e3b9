/* See socket.h. Every descriptor is made non-blocking and close-on-exec in the call that makes it. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/socket_int.h"

enum { LISTEN_BACKLOG = 128, WRITE_PARTS_MAX = 64 };

/* ---- addresses ---- */

typedef struct sock_address {
    struct sockaddr_storage any;
    socklen_t bytes;
} sock_address;

static ck_status path_address(const char *path, sock_address *out, ck_error *err) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof un.sun_path)
        return ck_fail(err, CK_INVALID, "unix:%s: a socket's path has 1 to %zu bytes", path, sizeof un.sun_path - 1);
    memcpy(un.sun_path, path, n + 1);
    *out = (sock_address){.bytes = (socklen_t)sizeof un};
    memcpy(&out->any, &un, sizeof un);
    return CK_OK;
}

/* Cuts "HOST:PORT" into its two parts. */
static ck_status split_address(const char *address, char *host, size_t host_bytes, char port[6], ck_error *err) {
    const char *colon = strrchr(address, ':'), *begin = address, *end = colon;
    if (colon && *begin == '[' && end > begin + 1 && end[-1] == ']') begin++, end--;
    size_t host_n = colon ? (size_t)(end - begin) : 0, port_n = colon ? strlen(colon + 1) : 0;
    bool digits = port_n > 0 && port_n <= 5 && strspn(colon + 1, "0123456789") == port_n;
    if (host_n == 0 || !digits || strtoul(colon + 1, NULL, 10) > 65535)
        return ck_fail(err, CK_INVALID, "'%s' is not an address: HOST:PORT, [IPV6]:PORT or unix:PATH", address);
    if (host_n >= host_bytes) return ck_fail(err, CK_INVALID, "a host name of %zu bytes is too long", host_n);
    memcpy(host, begin, host_n);
    host[host_n] = 0;
    memcpy(port, colon + 1, port_n + 1);
    return CK_OK;
}

static ck_status look_up(const char *address, sock_address *out, ck_error *err) {
    if (strncmp(address, "unix:", 5) == 0) return path_address(address + 5, out, err);
    char host[256], port[6];
    CK_TRY(split_address(address, host, sizeof host, port, err));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed == EAI_SYSTEM) return ck_fail_errno(err, errno, "looking up %s", host);
    if (failed) {
        ck_status s =
            ck_fail(err, failed == EAI_MEMORY ? CK_NOMEM : CK_IO, "looking up %s: %s", host, gai_strerror(failed));
        if (err) err->retriable = failed == EAI_AGAIN;
        return s;
    }
    const struct addrinfo *best = found;
    for (const struct addrinfo *a = found; a; a = a->ai_next)
        if (a->ai_family == AF_INET && best->ai_family != AF_INET) best = a;
    *out = (sock_address){.bytes = best->ai_addrlen};
    memcpy(&out->any, best->ai_addr, best->ai_addrlen);
    freeaddrinfo(found);
    return CK_OK;
}

bool ck_socket_is_loopback(const char *host) {
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp(host, "localhost") == 0) return true;
    if (inet_pton(AF_INET, host, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* ---- making them ---- */

/* Takes over fd, also when it fails. */
static ck_status wrap(ck_proc *proc, int fd, const char *address, ck_socket **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_socket *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) {
        close(fd);
        return ck_nomem(err, mem, sizeof *s);
    }
    s->proc = proc, s->fd = fd;
    snprintf(s->address, sizeof s->address, "%s", address);
    *out = s;
    return CK_OK;
}

static ck_status make(ck_proc *proc, const char *address, sock_address *where, ck_socket **out, ck_error *err) {
    *out = NULL;
    CK_TRY(look_up(address, where, err));
    int fd = socket(where->any.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return ck_fail_errno(err, errno, "making a socket for %s", address);
    return wrap(proc, fd, address, out, err);
}

/* Small writes go at once, and a machine that has gone without a word is noticed by whoever only waits for it, within
 * half a minute. All of it fails on a local socket, which needs none. */
static void set_up(int fd) {
    static const int on = 1, idle_s = 15, between_s = 5, probes = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static bool nobody_listens(const sock_address *where) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    bool dead = connect(fd, (const struct sockaddr *)&where->any, where->bytes) != 0 && errno == ECONNREFUSED;
    close(fd);
    return dead;
}

static int bind_and_listen(ck_socket *s, const sock_address *where) {
    int on = 1;
    bool is_path = where->any.ss_family == AF_UNIX;
    if (is_path) {
        if (fchmod(s->fd, 0600) != 0) return errno; /* the path takes the socket's mode */
    } else if (setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
        return errno;
    }
    int failed = bind(s->fd, (const struct sockaddr *)&where->any, where->bytes);
    if (failed && errno == EADDRINUSE && is_path && nobody_listens(where)) { /* left by one that was killed */
        if (unlink(s->address + strlen("unix:")) != 0) return errno;
        failed = bind(s->fd, (const struct sockaddr *)&where->any, where->bytes);
    }
    if (failed) return errno;
    s->unlink_path = is_path;
    return listen(s->fd, LISTEN_BACKLOG) == 0 ? 0 : errno;
}

static uint16_t port_of(int fd) {
    sock_address a = {.bytes = sizeof a.any};
    if (getsockname(fd, (struct sockaddr *)&a.any, &a.bytes) != 0) return 0;
    if (a.any.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&a.any)->sin_port);
    if (a.any.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&a.any)->sin6_port);
    return 0;
}

ck_status ck_socket_listen(ck_proc *proc, const char *address, ck_socket **out, uint16_t *bound_port, ck_error *err) {
    sock_address where;
    CK_TRY(make(proc, address, &where, out, err));
    int errnum = bind_and_listen(*out, &where);
    if (errnum != 0) {
        ck_socket_close(*out);
        *out = NULL;
        if (errnum == EADDRINUSE) return ck_fail(err, CK_EXISTS, "listening on %s: the address is in use", address);
        return ck_fail_errno(err, errnum, "listening on %s", address);
    }
    if (bound_port) *bound_port = port_of((*out)->fd);
    return CK_OK;
}

const char *ck_socket_address(const ck_socket *s) { return s->address; }

static void describe_peer(int fd, const ck_socket *listener, char *out, size_t out_bytes) {
    sock_address a = {.bytes = sizeof a.any};
    char host[INET6_ADDRSTRLEN];
    if (getpeername(fd, (struct sockaddr *)&a.any, &a.bytes) != 0) a.any.ss_family = AF_UNSPEC;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&a.any;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&a.any;
    if (a.any.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host))
        snprintf(out, out_bytes, "%s:%u", host, ntohs(v4->sin_port));
    else if (a.any.ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host))
        snprintf(out, out_bytes, "[%s]:%u", host, ntohs(v6->sin6_port));
    else
        snprintf(out, out_bytes, "a peer of %.200s", listener->address);
}

ck_status ck_socket_accept(ck_socket *l, ck_socket **out, ck_error *err) {
    *out = NULL;
    int fd;
    do fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED)); /* aborted: it left before we came */
    if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return CK_AGAIN;
    if (fd < 0) return ck_fail_errno(err, errno, "accepting on %s", l->address);
    set_up(fd);
    char address[sizeof l->address];
    describe_peer(fd, l, address, sizeof address);
    return wrap(l->proc, fd, address, out, err);
}

/* Nobody listening is an answer, and not the silence that everything else may be. */
static ck_status connect_failed(ck_error *err, int errnum, const char *address) {
    ck_status s = ck_fail_errno(err, errnum, "connecting to %s", address);
    if (errnum != ECONNREFUSED) return s;
    if (err) err->status = CK_NOTFOUND;
    return CK_NOTFOUND;
}

ck_status ck_socket_connect(ck_proc *proc, const char *address, ck_socket **out, ck_error *err) {
    sock_address where;
    CK_TRY(make(proc, address, &where, out, err));
    set_up((*out)->fd);
    int failed = connect((*out)->fd, (const struct sockaddr *)&where.any, where.bytes);
    if (failed == 0 || errno == EINPROGRESS || errno == EINTR) return CK_OK; /* interrupted: it goes on by itself */
    int errnum = errno;
    ck_socket_close(*out);
    *out = NULL;
    return connect_failed(err, errnum, address);
}

ck_status ck_socket_connected(ck_socket *s, ck_error *err) {
    int errnum = 0;
    socklen_t bytes = sizeof errnum;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &errnum, &bytes) != 0) errnum = errno;
    return errnum == 0 ? CK_OK : connect_failed(err, errnum, s->address);
}

/* ---- bytes ---- */

static ck_status failed_transfer(const ck_socket *s, const char *what, ck_error *err) {
    int errnum = errno;
    if (errnum == EAGAIN || errnum == EWOULDBLOCK) return CK_AGAIN;
    ck_status status = ck_fail_errno(err, errnum, "%s %s", what, s->address);
    bool gone = errnum == EPIPE || errnum == ECONNRESET || errnum == ETIMEDOUT || errnum == ENOTCONN;
    if (gone && err) err->status = CK_CLOSED;
    return gone ? CK_CLOSED : status;
}

ck_status ck_socket_read(ck_socket *s, void *p, size_t max, size_t *n, ck_error *err) {
    *n = 0;
    ssize_t r;
    do r = recv(s->fd, p, max, 0);
    while (r < 0 && errno == EINTR);
    if (r < 0) return failed_transfer(s, "reading from", err);
    if (r == 0 && max > 0) return ck_fail(err, CK_CLOSED, "%s has closed the connection", s->address);
    *n = (size_t)r;
    return CK_OK;
}

ck_status ck_socket_writev(ck_socket *s, const ck_view *parts, size_t count, size_t *n, ck_error *err) {
    CK_ASSERT(count <= WRITE_PARTS_MAX);
    *n = 0;
    struct iovec iov[WRITE_PARTS_MAX];
    for (size_t i = 0; i < count; i++) iov[i] = (struct iovec){(void *)(uintptr_t)parts[i].p, parts[i].n};
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t r;
    do r = sendmsg(s->fd, &message, MSG_NOSIGNAL);
    while (r < 0 && errno == EINTR);
    if (r < 0) return failed_transfer(s, "writing to", err);
    *n = (size_t)r;
    return CK_OK;
}

ck_status ck_socket_write(ck_socket *s, const void *p, size_t max, size_t *n, ck_error *err) {
    ck_view part = {p, max};
    return ck_socket_writev(s, &part, 1, n, err);
}

void ck_socket_close(ck_socket *s) {
    if (!s) return;
    if (s->poller) ck_poller_remove(s->poller, s);
    if (s->unlink_path) unlink(s->address + strlen("unix:")); /* gone already is as good */
    close(s->fd);
    ck_free(ck_proc_mem(s->proc, CK_MEM_PLAN), s, sizeof *s);
}
