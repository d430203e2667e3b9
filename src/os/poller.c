/* The poller of socket.h over epoll; an eventfd wakes it. Level-triggered: what is not read now is told again. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/socket_int.h"

enum { EVENTS_AT_ONCE = 128 };

struct ck_poller {
    ck_proc *proc;
    int epoll_fd, wake_fd;
};

ck_status ck_poller_new(ck_proc *proc, ck_poller **out, ck_error *err) {
    *out = NULL;
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_poller *p = ck_alloc(mem, sizeof *p);
    if (!p) return ck_nomem(err, mem, sizeof *p);
    *p = (ck_poller){.proc = proc, .epoll_fd = epoll_create1(EPOLL_CLOEXEC), .wake_fd = -1};
    if (p->epoll_fd >= 0) p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event wake = {.events = EPOLLIN, .data = {.ptr = p}};
    if (p->wake_fd < 0 || epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &wake) != 0) {
        ck_status s = ck_fail_errno(err, errno, "making a poller");
        ck_poller_free(p);
        return s;
    }
    *out = p;
    return CK_OK;
}

void ck_poller_free(ck_poller *p) {
    if (!p) return;
    if (p->wake_fd >= 0) close(p->wake_fd);
    if (p->epoll_fd >= 0) close(p->epoll_fd);
    ck_free(ck_proc_mem(p->proc, CK_MEM_PLAN), p, sizeof *p);
}

ck_status ck_poller_set(ck_poller *p, ck_socket *s, bool want_read, bool want_write, void *tag, ck_error *err) {
    CK_ASSERT(!s->poller || s->poller == p);
    CK_ASSERT(tag != p); /* stands for the wake-up */
    struct epoll_event e = {.events = (want_read ? EPOLLIN : 0) | (want_write ? EPOLLOUT : 0), .data = {.ptr = tag}};
    if (epoll_ctl(p->epoll_fd, s->poller ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e) != 0)
        return ck_fail_errno(err, errno, "waiting on %s", s->address);
    s->poller = p;
    return CK_OK;
}

void ck_poller_remove(ck_poller *p, ck_socket *s) {
    if (!s->poller) return;
    CK_ASSERT(s->poller == p);
    int failed = epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    CK_ASSERT(failed == 0); /* it is there */
    s->poller = NULL;
}

static void drain_wakes(ck_poller *p) {
    uint64_t count;
    ssize_t n;
    do n = read(p->wake_fd, &count, sizeof count);
    while (n < 0 && errno == EINTR); /* EAGAIN: another read took it */
}

ck_status ck_poller_wait(ck_poller *p, ck_poll_event *events, size_t max, int timeout_ms, size_t *count,
                         ck_error *err) {
    *count = 0;
    struct epoll_event got[EVENTS_AT_ONCE];
    int room = max < EVENTS_AT_ONCE ? (int)max : EVENTS_AT_ONCE;
    int n = epoll_wait(p->epoll_fd, got, room, timeout_ms);
    if (n < 0 && errno == EINTR) return CK_OK; /* a stop and continue: no events is a fine answer */
    if (n < 0) return ck_fail_errno(err, errno, "polling");
    for (int i = 0; i < n; i++) {
        if (got[i].data.ptr == p) {
            drain_wakes(p);
            continue;
        }
        events[(*count)++] = (ck_poll_event){
            .tag = got[i].data.ptr,
            .readable = (got[i].events & EPOLLIN) != 0,
            .writable = (got[i].events & EPOLLOUT) != 0,
            .closed = (got[i].events & (EPOLLHUP | EPOLLERR)) != 0,
        };
    }
    return CK_OK;
}

void ck_poller_wake(ck_poller *p) {
    uint64_t one = 1;
    ssize_t n;
    do n = write(p->wake_fd, &one, sizeof one);
    while (n < 0 && errno == EINTR); /* EAGAIN: so many wakes wait that one more says nothing new */
}
