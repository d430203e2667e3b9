/* Connections over TLS between two loops, with certificates that the openssl command makes. */
#include "net/tls.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "net/connection.h"
#include "os/modules.h"
#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

/* ---- certificates ---- */

typedef struct files {
    char cert[160], key[160], ca[160];
} files;

typedef struct fixture {
    ck_test_proc t;
    files good, stranger, expired, elsewhere; /* of our CA, of another, too old, for another host */
} fixture;

static void run(const char *fmt, ...) {
    char line[4096];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    assert_true(n > 0 && (size_t)n < sizeof line);
    if (system(line) != 0) fail_msg("failed: %s", line);
}

#define NEW_KEY "openssl req -config %s/cnf -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "

static void make_ca(const char *dir, const char *name) {
    run(NEW_KEY
        "-x509 -days 30 -subj /CN=%s -addext basicConstraints=critical,CA:TRUE -keyout %s/%s.key -out %s/%s.pem "
        "2> %s/log",
        dir, name, dir, name, dir, name, dir);
}

static files make_cert(const char *dir, const char *name, const char *ca, const char *host, int days) {
    files f;
    run(NEW_KEY
        "-subj /CN=%s -addext subjectAltName=%s -keyout %s/%s.key -out %s/%s.csr 2> %s/log && openssl x509 -req "
        "-in %s/%s.csr -CA %s/%s.pem -CAkey %s/%s.key -days %d -copy_extensions copy -out %s/%s.pem 2> %s/log",
        dir, name, host, dir, name, dir, name, dir, dir, name, dir, ca, dir, ca, days, dir, name, dir);
    snprintf(f.cert, sizeof f.cert, "%s/%s.pem", dir, name);
    snprintf(f.key, sizeof f.key, "%s/%s.key", dir, name);
    snprintf(f.ca, sizeof f.ca, "%s/ca.pem", dir);
    return f;
}

static int setup(void **state) {
    static fixture f;
    ck_test_proc_init(&f.t);
    OK(ck_modules_new(f.t.proc.heap, &f.t.proc.modules, NULL));
    const char *dir = ck_test_dir(&f.t);
    run("printf '[req]\\ndistinguished_name=dn\\n[dn]\\n' > %s/cnf", dir);
    make_ca(dir, "ca");
    make_ca(dir, "other");
    f.good = make_cert(dir, "good", "ca", "IP:127.0.0.1,DNS:localhost", 30);
    f.stranger = make_cert(dir, "stranger", "other", "IP:127.0.0.1", 30);
    f.expired = make_cert(dir, "expired", "ca", "IP:127.0.0.1", -1);
    f.elsewhere = make_cert(dir, "elsewhere", "ca", "IP:10.1.2.3,DNS:example.org", 30);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    ck_modules_free(f->t.proc.modules);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static ck_tls *tls_of(fixture *f, const files *of) {
    ck_tls *t;
    ck_error err = CK_ERROR_INIT;
    const ck_tls_files names = {of->cert, of->key, of->ca};
    if (ck_tls_new(&f->t.proc, &names, &t, &err) != CK_OK) fail_msg("%s", err.msg);
    return t;
}

/* ---- two ends ---- */

typedef struct end {
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    ck_connection *c;
    unsigned opened, frames, closed;
    size_t bytes;
    uint32_t sum;
    ck_status why;
    char why_text[400];
    bool echo, one_by_one;
} end;

static void on_open(void *arg, ck_connection *c) {
    end *e = arg;
    pthread_mutex_lock(&e->lock);
    e->opened++;
    if (!e->c) e->c = ck_connection_ref(c);
    pthread_mutex_unlock(&e->lock);
    ck_connection_trust(c);
}

static ck_status on_frame(void *arg, ck_connection *c, ck_frame **f, ck_error *err) {
    end *e = arg;
    (void)err;
    pthread_mutex_lock(&e->lock);
    e->frames++;
    e->bytes += (*f)->n;
    for (size_t i = 0; i < (*f)->n; i += 997) e->sum = e->sum * 31 + (*f)->p[i];
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    if (e->echo && ck_connection_send(c, f) == CK_CLOSED) return CK_CLOSED;
    return e->one_by_one ? CK_FULL : CK_OK;
}

static void on_close(void *arg, ck_connection *c, ck_status why, const ck_error *err) {
    end *e = arg;
    (void)c;
    pthread_mutex_lock(&e->lock);
    e->closed++;
    e->why = why;
    if (err) snprintf(e->why_text, sizeof e->why_text, "%.390s", err->msg);
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static const ck_connection_handler handler = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close};

static void wait_for(end *e, const unsigned *what, unsigned n) {
    pthread_mutex_lock(&e->lock);
    while (*what < n) pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

typedef struct net {
    fixture *f;
    ck_tls *server_tls, *client_tls; /* NULL: plain */
    ck_net_loop *near, *far;
    ck_listener *listener;
    end client, server;
    char address[64];
    int64_t greeting_timeout_us;
} net;

static ck_connection_config config_of(net *n, end *e) {
    return (ck_connection_config){.handler = &handler,
                                  .arg = e,
                                  .mem = ck_proc_mem(&n->f->t.proc, CK_MEM_QUEUE),
                                  .frame_bytes_max = CK_FRAME_BYTES_MAX,
                                  .queue_bytes_max = 1 << 20,
                                  .tls = e == &n->server ? n->server_tls : n->client_tls};
}

static bool accepted(void *arg, ck_connection_config *cfg) {
    net *n = arg;
    *cfg = config_of(n, &n->server);
    cfg->greeting_bytes_max = 1000;
    cfg->greeting_timeout_us = n->greeting_timeout_us;
    return true;
}

static void open_net(net *n, fixture *f, const files *server, const files *client) {
    uint16_t port;
    *n = (net){.f = f};
    for (end *e = &n->client; e; e = e == &n->client ? &n->server : NULL) {
        pthread_mutex_init(&e->lock, NULL);
        pthread_cond_init(&e->changed, NULL);
    }
    if (server) n->server_tls = tls_of(f, server);
    if (client) n->client_tls = tls_of(f, client);
    OK(ck_net_loop_new(&f->t.proc, "near", &n->near, NULL));
    OK(ck_net_loop_new(&f->t.proc, "far", &n->far, NULL));
    OK(ck_listener_open(n->far, "127.0.0.1:0", 10, accepted, n, &n->listener, &port, NULL));
    snprintf(n->address, sizeof n->address, "127.0.0.1:%u", port);
}

static void dial(net *n) {
    const ck_connection_config cfg = config_of(n, &n->client);
    OK(ck_connection_dial(n->near, n->address, &cfg, &n->client.c, NULL));
}

static void close_net(net *n) {
    ck_net_loop_free(n->near);
    ck_net_loop_free(n->far);
    ck_tls_free(n->server_tls);
    ck_tls_free(n->client_tls);
    for (end *e = &n->client; e; e = e == &n->client ? &n->server : NULL) {
        ck_connection_unref(&e->c);
        pthread_mutex_destroy(&e->lock);
        pthread_cond_destroy(&e->changed);
    }
}

static void send_bytes(net *n, uint8_t kind, size_t bytes) {
    ck_frame *f = ck_frame_new(ck_proc_mem(&n->f->t.proc, CK_MEM_QUEUE), kind, bytes);
    assert_non_null(f);
    for (size_t i = 0; i < bytes; i++) f->p[i] = (uint8_t)(i * 7 + kind);
    ck_status s = ck_connection_send(n->client.c, &f);
    assert_true(s == CK_OK || s == CK_FULL || s == CK_CLOSED); /* who is refused may have heard of it already */
}

/* ---- those whose certificates are taken ---- */

static void frames_go_there_and_back(void **state) {
    static const size_t sizes[] = {0, 1, 100, 16383, 16384, 70000, 5000000, 3, 0, 1200000};
    net n;
    size_t total = 0;
    open_net(&n, *state, &((fixture *)*state)->good, &((fixture *)*state)->good);
    n.server.echo = true;
    dial(&n);
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < CK_ARRAY_COUNT(sizes); i++) send_bytes(&n, (uint8_t)i, sizes[i]), total += sizes[i];
    wait_for(&n.client, &n.client.frames, 4 * CK_ARRAY_COUNT(sizes));
    assert_int_equal(n.client.bytes, total);
    assert_int_equal(n.server.bytes, total);
    assert_int_equal(n.client.sum, n.server.sum);
    ck_connection_close(n.client.c, true);
    wait_for(&n.client, &n.client.closed, 1);
    wait_for(&n.server, &n.server.closed, 1);
    assert_int_equal(n.client.why, CK_OK);
    assert_int_equal(n.server.why, CK_CLOSED);
    close_net(&n);
}

/* Frames that came in one record are in neither the socket nor the reader's buffer when it goes on. */
static void a_reader_that_stopped_goes_on(void **state) {
    enum { FRAMES = 300 };
    net n;
    open_net(&n, *state, &((fixture *)*state)->good, &((fixture *)*state)->good);
    n.server.one_by_one = true;
    dial(&n);
    for (unsigned i = 0; i < FRAMES; i++) send_bytes(&n, 1, i % 7 == 0 ? 40000 : 30);
    for (unsigned i = 1; i <= FRAMES; i++) {
        wait_for(&n.server, &n.server.frames, i);
        ck_connection_resume(n.server.c);
    }
    close_net(&n);
}

static void a_name_in_the_certificate_is_as_good_as_an_address(void **state) {
    net n;
    open_net(&n, *state, &((fixture *)*state)->good, &((fixture *)*state)->good);
    char port[16];
    snprintf(port, sizeof port, "%s", strrchr(n.address, ':'));
    snprintf(n.address, sizeof n.address, "localhost%s", port);
    dial(&n);
    send_bytes(&n, 1, 10);
    wait_for(&n.server, &n.server.frames, 1);
    close_net(&n);
}

/* ---- those whose are not ---- */

typedef struct refusal {
    const files *server, *client;
    const char *server_text, *client_text; /* in what each says of it; NULL: any */
} refusal;

static void refuse(fixture *f, const refusal *r) {
    net n;
    open_net(&n, f, r->server, r->client);
    dial(&n);
    send_bytes(&n, 1, 10); /* what is not to be read */
    wait_for(&n.client, &n.client.closed, 1);
    wait_for(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.opened, 0);
    assert_int_equal(n.server.frames, 0);
    if (r->server && r->client) assert_int_equal(n.client.opened, 0);
    if (r->client_text && !strstr(n.client.why_text, r->client_text))
        fail_msg("the client says: %s", n.client.why_text);
    if (r->server_text && !strstr(n.server.why_text, r->server_text))
        fail_msg("the server says: %s", n.server.why_text);
    close_net(&n);
}

static void who_is_not_of_our_ca_is_refused(void **state) {
    fixture *f = *state;
    const refusal both_ways[] = {
        {&f->good, &f->stranger, "is not accepted: unable to get local issuer certificate",
         "does not accept our certificate: unknown ca"},
        {&f->stranger, &f->good, "does not accept our certificate: unknown ca",
         "is not accepted: unable to get local issuer certificate"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(both_ways); i++) refuse(f, &both_ways[i]);
}

static void who_has_expired_is_refused(void **state) {
    fixture *f = *state;
    refuse(f, &(refusal){&f->good, &f->expired, "is not accepted: certificate has expired",
                         "does not accept our certificate: certificate expired"});
    refuse(f, &(refusal){&f->expired, &f->good, "does not accept our certificate: certificate expired",
                         "is not accepted: certificate has expired"});
}

/* A certificate of our CA, but not of the host that was dialled: somebody else of the cluster has its port. */
static void who_is_somebody_else_is_refused(void **state) {
    fixture *f = *state;
    refuse(f, &(refusal){&f->elsewhere, &f->good, NULL, "is not accepted: IP address mismatch"});
}

static void who_speaks_no_tls_is_refused(void **state) {
    fixture *f = *state;
    refuse(f, &(refusal){&f->good, NULL, "does not speak TLS as we do", NULL});
}

static void a_server_without_tls_is_known(void **state) {
    fixture *f = *state;
    net n;
    open_net(&n, f, NULL, &f->good);
    dial(&n);
    wait_for(&n.client, &n.client.closed, 1);
    assert_int_equal(n.client.opened, 0);
    assert_non_null(strstr(n.client.why_text, "in the TLS handshake"));
    close_net(&n);
}

static void a_handshake_has_its_time(void **state) {
    fixture *f = *state;
    net n;
    open_net(&n, f, &f->good, NULL);
    n.greeting_timeout_us = 50000;
    dial(&n); /* and says nothing */
    wait_for(&n.server, &n.server.closed, 1);
    assert_int_equal(n.server.why, CK_REFUSED);
    assert_non_null(strstr(n.server.why_text, "has not said who it is within 50 ms"));
    close_net(&n);
}

/* ---- files ---- */

static void files_are_refused_by_name(void **state) {
    fixture *f = *state;
    char missing[160], encrypted[160];
    snprintf(missing, sizeof missing, "%s/none.pem", ck_test_dir(&f->t));
    snprintf(encrypted, sizeof encrypted, "%s/encrypted.key", ck_test_dir(&f->t));
    run("openssl ec -in %s -aes128 -passout pass:secret -out %s 2> /dev/null", f->good.key, encrypted);
    const struct {
        ck_tls_files files;
        const char *text;
    } cases[] = {
        {{f->good.cert, NULL, NULL}, "--tls-key is missing"},
        {{f->good.cert, f->good.key, NULL}, "--tls-ca is missing"},
        {{NULL, f->good.key, f->good.ca}, "--tls-cert is missing"},
        {{missing, f->good.key, f->good.ca}, "none.pem cannot be read as a certificate"},
        {{f->good.cert, missing, f->good.ca}, "none.pem cannot be read as the key of"},
        {{f->good.cert, f->good.key, missing}, "--tls-ca"},
        {{f->good.key, f->good.key, f->good.ca}, "cannot be read as a certificate"},
        {{f->good.cert, f->stranger.key, f->good.ca}, "--tls-key"},
        {{f->good.cert, encrypted, f->good.ca}, "without a passphrase"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        ck_tls *t;
        ck_error err = CK_ERROR_INIT;
        assert_int_not_equal(ck_tls_new(&f->t.proc, &cases[i].files, &t, &err), CK_OK);
        assert_null(t);
        if (!strstr(err.msg, cases[i].text)) fail_msg("\"%s\" has no \"%s\"", err.msg, cases[i].text);
    }
    ck_tls *none;
    OK(ck_tls_new(&f->t.proc, &(ck_tls_files){0}, &none, NULL));
    assert_null(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_go_there_and_back),
        cmocka_unit_test(a_reader_that_stopped_goes_on),
        cmocka_unit_test(a_name_in_the_certificate_is_as_good_as_an_address),
        cmocka_unit_test(who_is_not_of_our_ca_is_refused),
        cmocka_unit_test(who_has_expired_is_refused),
        cmocka_unit_test(who_is_somebody_else_is_refused),
        cmocka_unit_test(who_speaks_no_tls_is_refused),
        cmocka_unit_test(a_server_without_tls_is_known),
        cmocka_unit_test(a_handshake_has_its_time),
        cmocka_unit_test(files_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
