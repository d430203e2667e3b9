#include "cluster/worker/supervisor_int.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/addresses.h"
#include "cluster/token.h"
#include "cluster/worker/environment.h"
#include "os/confined.h"
#include "os/fs.h"
#include "os/random.h"

enum {
    DIR_BYTES_MAX = 80,                      /* a socket's path below it has to fit into 107 */
    HOST_BYTES_MAX = CK_CLUSTER_NAME_MAX - 8 /* with brackets and a port it is an address */
};

/* Whose jobs are not those of our user alone. The task host goes by the same. */
static bool is_confined(const ck_supervisor_config *cfg) { return cfg->tls.cert || cfg->data_root || cfg->secret_dir; }

static const char *reached_at(const ck_supervisor_config *cfg) {
    return cfg->advertise ? cfg->advertise : cfg->data_host;
}

/* ---- requests of the loop ---- */

static void wake_main(supervisor *s) { (void)pthread_kill(s->main_thread, SIGUSR1); }

void supervisor_fail(supervisor *s, ck_status why, const ck_error *err) {
    pthread_mutex_lock(&s->lock);
    if (s->status == CK_OK) s->status = why, s->error = *err;
    pthread_mutex_unlock(&s->lock);
    wake_main(s);
}

static void ask(supervisor *s, const request *what) {
    ck_error err = CK_ERROR_INIT;
    request *r = what->kill || what->environment ? ck_alloc_zero(s->mem, sizeof *r) : NULL;
    if (!r) {
        ck_host_environment_free(s->mem, what->environment, environ);
        supervisor_fail(s, ck_nomem(&err, s->mem, sizeof *r), &err);
        return;
    }
    *r = *what;
    pthread_mutex_lock(&s->lock);
    *s->requests_end = r, s->requests_end = &r->next;
    pthread_mutex_unlock(&s->lock);
    wake_main(s);
}

void supervisor_kill(supervisor *s, uint64_t job, uint64_t attempt) {
    ask(s, &(request){.kill = true, .job = job, .attempt = attempt});
}

void supervisor_spawn(supervisor *s, uint64_t job, uint64_t attempt, ck_view deploy) {
    ask(s, &(request){.job = job,
                      .attempt = attempt,
                      .environment = ck_host_environment(s->mem, environ, deploy, is_confined(s->cfg))});
}

static void free_request(supervisor *s, request *r) {
    ck_host_environment_free(s->mem, r->environment, environ);
    ck_free(s->mem, r, sizeof *r);
}

static request *take_request(supervisor *s) {
    pthread_mutex_lock(&s->lock);
    request *r = s->requests;
    if (r && !(s->requests = r->next)) s->requests_end = &s->requests;
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- back to the loop ---- */

typedef struct reaped_note {
    ck_net_post post;
    supervisor *s;
    uint64_t job, attempt;
    int status;
} reaped_note;

static void run_reaped(ck_net_post *m) {
    reaped_note *n = (reaped_note *)m;
    hosts_reaped(n->s, n->job, n->attempt, n->status);
    ck_free(n->s->mem, n, sizeof *n);
}

static void tell_reaped(supervisor *s, uint64_t job, uint64_t attempt, int status) {
    ck_error err = CK_ERROR_INIT;
    reaped_note *n = ck_alloc_zero(s->mem, sizeof *n);
    if (!n) {
        supervisor_fail(s, ck_nomem(&err, s->mem, sizeof *n), &err);
        return;
    }
    *n = (reaped_note){{.run = run_reaped}, s, job, attempt, status};
    ck_net_loop_post(s->loop, &n->post);
}

/* ---- processes ---- */

static int spawn_process(const supervisor *s, const request *r, pid_t *pid) {
    char job[24], attempt[24], parent[24], slot_bytes[24];
    const ck_tls_files *tls = &s->cfg->tls;
    const char *const argv[] = {"clink",
                                s->cfg->verb,
                                s->socket + 5,
                                job,
                                attempt,
                                parent,
                                s->cfg->data_host,
                                reached_at(s->cfg),
                                tls->cert ? tls->cert : "",
                                tls->key ? tls->key : "",
                                tls->ca ? tls->ca : "",
                                s->cfg->data_root ? s->cfg->data_root : "",
                                s->cfg->secret_dir ? s->cfg->secret_dir : "",
                                slot_bytes,
                                s->plugin_dir,
                                NULL};
    snprintf(job, sizeof job, "%llu", (unsigned long long)r->job);
    snprintf(attempt, sizeof attempt, "%llu", (unsigned long long)r->attempt);
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    snprintf(slot_bytes, sizeof slot_bytes, "%zu", s->cfg->slot_bytes);
    posix_spawn_file_actions_t files;
    int rc = posix_spawn_file_actions_init(&files);
    if (rc) return rc;
    rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", 0, 0);
    if (rc == 0) rc = posix_spawn(pid, "/proc/self/exe", &files, NULL, (char **)(uintptr_t)argv, r->environment);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

static void spawn_child(supervisor *s, const request *r) {
    child *c = ck_alloc_zero(s->mem, sizeof *c);
    int rc = c ? spawn_process(s, r, &c->pid) : ENOMEM;
    if (rc) {
        ck_log_line(s->proc->log, CK_LOG_ERROR, "no process for job %llu: %s", (unsigned long long)r->job,
                    strerror(rc));
        ck_free(s->mem, c, sizeof *c);
        tell_reaped(s, r->job, r->attempt, -rc);
        return;
    }
    ck_log_line(s->proc->log, CK_LOG_INFO, "job %llu, attempt %llu: task host %ld", (unsigned long long)r->job,
                (unsigned long long)r->attempt, (long)c->pid);
    c->job = r->job, c->attempt = r->attempt;
    c->next = s->children;
    s->children = c;
}

static void perform_requests(supervisor *s) {
    for (request *r; (r = take_request(s)) != NULL; free_request(s, r)) {
        if (!r->kill) {
            spawn_child(s, r);
            continue;
        }
        for (const child *c = s->children; c; c = c->next)
            if (c->job == r->job && c->attempt == r->attempt) (void)kill(c->pid, SIGKILL);
    }
}

static void reap(supervisor *s) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (child **link = &s->children, *c; (c = *link) != NULL; link = &c->next) {
            if (c->pid != pid) continue;
            *link = c->next;
            tell_reaped(s, c->job, c->attempt, status);
            ck_free(s->mem, c, sizeof *c);
            break;
        }
}

static void end_children(supervisor *s) {
    for (const child *c = s->children; c; c = c->next) (void)kill(c->pid, SIGKILL);
    for (child *c; (c = s->children) != NULL;) {
        s->children = c->next;
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        ck_free(s->mem, c, sizeof *c);
    }
}

/* ---- the main thread ---- */

static ck_status state_of(supervisor *s, ck_error *err) {
    pthread_mutex_lock(&s->lock);
    ck_status st = s->status;
    if (st != CK_OK) *err = s->error;
    pthread_mutex_unlock(&s->lock);
    return st;
}

static ck_status wait_for_signals(supervisor *s, const sigset_t *set, ck_error *err) {
    for (;;) {
        int sig = 0;
        ck_status st = state_of(s, err);
        if (st != CK_OK) return st;
        if (sigwait(set, &sig) != 0) continue;
        if (sig == SIGINT || sig == SIGTERM) return CK_OK;
        perform_requests(s);
        reap(s);
    }
}

static ck_status make_dir(supervisor *s, ck_error *err) {
    const char *runtime;
    s->name = s->cfg->name ? s->cfg->name : ck_arena_printf(&s->arena, "worker-%ld", (long)getpid());
    s->dir = s->cfg->state_dir;
    if (!s->dir) {
        CK_TRY(ck_runtime_dir(s->proc, &s->arena, &runtime, err));
        s->dir = ck_arena_printf(&s->arena, "%s/w-%ld", runtime, (long)getpid());
    }
    if (!s->name || !s->dir) return ck_nomem(err, s->mem, 0);
    if (strlen(s->dir) > DIR_BYTES_MAX)
        return ck_fail(err, CK_INVALID, "%s is longer than %d bytes: sockets below it would have no name", s->dir,
                       DIR_BYTES_MAX);
    CK_TRY(ck_fs_mkdirs(s->proc, s->dir, err));
    s->socket = ck_arena_printf(&s->arena, "unix:%s/worker.sock", s->dir);
    s->plugin_dir = ck_arena_printf(&s->arena, "%s/plugins", s->dir);
    if (!s->socket || !s->plugin_dir) return ck_nomem(err, s->mem, 0);
    return ck_plugin_cache_new(s->proc, s->plugin_dir, CK_PLUGIN_CACHE_BYTES_MAX, &s->plugins, err);
}

static bool all_on_this_machine(const char *addresses) {
    for (uint32_t i = 0; i < ck_addresses_count(addresses); i++) {
        char address[CK_ADDRESS_BYTES_MAX], *host = address;
        ck_addresses_at(addresses, i, address);
        char *colon = strrchr(address, ':');
        if (colon) *colon = 0;
        size_t n = strlen(host);
        if (n && host[0] == '[' && host[n - 1] == ']') host[n - 1] = 0, host++;
        if (*host && !ck_socket_is_loopback(host)) return false;
    }
    return true;
}

static bool is_any_address(const char *host) { return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0; }

/* Where others reach the hosts here has to be an address that leads here from wherever they are. */
static ck_status check_data_host(const ck_supervisor_config *cfg, ck_error *err) {
    const char *at = cfg->data_host, *flag = cfg->advertise ? "--advertise" : "--data-host";
    bool here = ck_socket_is_loopback(at);
    if (strlen(at) > HOST_BYTES_MAX || strlen(reached_at(cfg)) > HOST_BYTES_MAX)
        return ck_fail(err, CK_INVALID, "a host's name has at most %d bytes", HOST_BYTES_MAX);
    if (is_any_address(reached_at(cfg)))
        return ck_fail(err, CK_REFUSED, "%s %s: others dial it, so that it has to be one address of this machine%s",
                       flag, reached_at(cfg),
                       cfg->advertise ? "" : "; --advertise says which where all are listened at");
    if (!here && !cfg->tls.cert)
        return ck_fail(
            err, CK_REFUSED,
            "--data-host %s: without --tls-cert, --tls-key and --tls-ca only a loopback address is listened on", at);
    if (here && cfg->advertise && !ck_socket_is_loopback(cfg->advertise))
        return ck_fail(err, CK_REFUSED,
                       "--advertise %s: what is listened on is --data-host %s, which only this machine reaches",
                       cfg->advertise, at);
    if (ck_socket_is_loopback(reached_at(cfg)) && !all_on_this_machine(cfg->coordinator))
        return ck_fail(err, CK_REFUSED,
                       "the coordinator is at %s: --data-host has to say under which address this worker is reached",
                       cfg->coordinator);
    return CK_OK;
}

static bool turned_away(void *arg, ck_connection_config *cfg) {
    (void)arg, (void)cfg;
    return false;
}

/* On this machine the hosts' socket shows that the worker lives; from elsewhere a port that takes nobody in. */
static ck_status listen_for_probes(supervisor *s, ck_view *address, ck_error *err) {
    const char *host = s->cfg->data_host, *reached = reached_at(s->cfg);
    char any_port[CK_CLUSTER_NAME_MAX + 1];
    uint16_t port;
    *address = ck_view_of(s->socket);
    if (ck_socket_is_loopback(host)) return CK_OK;
    snprintf(any_port, sizeof any_port, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, 0u);
    CK_TRY(ck_listener_open(s->loop, any_port, 1, turned_away, s, &s->probed, &port, err));
    char *at = ck_arena_alloc(&s->arena, CK_CLUSTER_NAME_MAX + 1);
    if (!at) return ck_nomem(err, s->mem, CK_CLUSTER_NAME_MAX + 1);
    snprintf(at, CK_CLUSTER_NAME_MAX + 1, strchr(reached, ':') ? "[%s]:%u" : "%s:%u", reached, port);
    *address = ck_view_of(at);
    return CK_OK;
}

static ck_status start(supervisor *s, ck_error *err) {
    ck_view address;
    ck_confined roots; /* the hosts make their own: whether they can is said now */
    CK_TRY(check_data_host(s->cfg, err));
    CK_TRY(ck_confined_init(&roots, s->mem, s->proc->fs, s->cfg->data_root, s->cfg->secret_dir, err));
    ck_confined_destroy(&roots);
    CK_TRY(ck_tls_new(s->proc, &s->cfg->tls, &s->tls, err));
    CK_TRY(make_dir(s, err));
    CK_TRY(ck_net_loop_new(s->proc, "worker", &s->loop, err));
    CK_TRY(listen_for_probes(s, &address, err));
    uint64_t incarnation = ck_random_u64(s->proc);
    const ck_session_config session = {.mem = s->mem,
                                       .worker = ck_view_of(s->name),
                                       .address = address,
                                       .incarnation = incarnation ? incarnation : 1,
                                       .slots = s->cfg->slots};
    CK_TRY(ck_session_new(&session, &s->session, err));
    CK_TRY(hosts_listen(s, err));
    uplink_start(s);
    if (s->cfg->began) s->cfg->began(s->cfg->arg, s->name);
    return CK_OK;
}

static void stop(supervisor *s) {
    end_children(s);
    ck_listener_close(s->listener);
    ck_listener_close(s->probed);
    ck_net_loop_free(s->loop);
    ck_tls_free(s->tls);
    for (request *r; (r = take_request(s)) != NULL;) free_request(s, r);
    for (hosted *h; (h = s->hosts) != NULL;) {
        s->hosts = h->next;
        hosts_free(s, h);
    }
    fetch_free_all(s);
    ck_plugin_cache_free(s->plugins);
    ck_session_free(s->session);
    ck_error err = CK_ERROR_INIT;
    if (s->dir && !s->cfg->state_dir && ck_fs_remove_tree(s->proc, s->dir, &err) != CK_OK)
        ck_log_line(s->proc->log, CK_LOG_WARN, "%s", err.msg);
    ck_arena_destroy(&s->arena);
    pthread_mutex_destroy(&s->lock);
}

ck_status ck_supervisor_run(const ck_supervisor_config *cfg, ck_error *err) {
    sigset_t set;
    supervisor s = {.cfg = cfg, .proc = cfg->proc, .mem = ck_proc_mem(cfg->proc, CK_MEM_PLAN)};
    s.main_thread = pthread_self();
    s.requests_end = &s.requests;
    s.error = CK_ERROR_INIT;
    pthread_mutex_init(&s.lock, NULL);
    ck_arena_init(&s.arena, s.mem, ARENA_BYTES_MAX);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    ck_status st = start(&s, err);
    if (st == CK_OK) st = wait_for_signals(&s, &set, err);
    stop(&s);
    return st;
}
