/* See tls.h and tls_int.h. The library only turns bytes into bytes, in memory; the sockets are ours: no signal comes of
 * a peer that has gone, and what went wrong is said in our words.
 *
 * In TLS 1.3 who dials is done before the other has seen its certificate. So the one that accepts says a byte when it
 * has, and nothing is sent to it before: a certificate that is not taken is known to both sides as that. */
#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "net/tls_int.h"
#include "os/fs.h"
#include "os/modules.h"

#define SSL_FUNCTIONS(X)                                                                                               \
    X(TLS_method)                                                                                                      \
    X(SSL_CTX_new)                                                                                                     \
    X(SSL_CTX_free)                                                                                                    \
    X(SSL_CTX_ctrl)                                                                                                    \
    X(SSL_CTX_set_verify)                                                                                              \
    X(SSL_CTX_set_num_tickets)                                                                                         \
    X(SSL_CTX_load_verify_file)                                                                                        \
    X(SSL_CTX_use_certificate_chain_file)                                                                              \
    X(SSL_CTX_use_PrivateKey_file)                                                                                     \
    X(SSL_CTX_check_private_key)                                                                                       \
    X(SSL_CTX_set_default_passwd_cb)                                                                                   \
    X(SSL_new)                                                                                                         \
    X(SSL_free)                                                                                                        \
    X(SSL_set_bio)                                                                                                     \
    X(SSL_set_accept_state)                                                                                            \
    X(SSL_set_connect_state)                                                                                           \
    X(SSL_set1_host)                                                                                                   \
    X(SSL_get0_param)                                                                                                  \
    X(SSL_get_verify_result)                                                                                           \
    X(SSL_get_error)                                                                                                   \
    X(SSL_do_handshake)                                                                                                \
    X(SSL_read_ex)                                                                                                     \
    X(SSL_write_ex)

#define CRYPTO_FUNCTIONS(X)                                                                                            \
    X(BIO_s_mem)                                                                                                       \
    X(BIO_new)                                                                                                         \
    X(BIO_free)                                                                                                        \
    X(BIO_read)                                                                                                        \
    X(BIO_write)                                                                                                       \
    X(BIO_ctrl_pending)                                                                                                \
    X(ERR_clear_error)                                                                                                 \
    X(ERR_peek_error)                                                                                                  \
    X(ERR_reason_error_string)                                                                                         \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                                                                   \
    X(X509_verify_cert_error_string)

typedef struct ssl_lib {
    CK_MODULE_TABLE(SSL_FUNCTIONS)
} ssl_lib;
typedef struct crypto_lib {
    CK_MODULE_TABLE(CRYPTO_FUNCTIONS)
} crypto_lib;

static const char *const ssl_names[] = {CK_MODULE_NAMES(SSL_FUNCTIONS)};
static const char *const crypto_names[] = {CK_MODULE_NAMES(CRYPTO_FUNCTIONS)};
static const ck_module_desc ssl_module = {.file = "libssl.so.3",
                                          .package = "libssl3",
                                          .for_what = "TLS",
                                          .functions = ssl_names,
                                          .count = CK_ARRAY_COUNT(ssl_names)};
static const ck_module_desc crypto_module = {.file = "libcrypto.so.3",
                                             .package = "libssl3",
                                             .for_what = "TLS",
                                             .functions = crypto_names,
                                             .count = CK_ARRAY_COUNT(crypto_names)};

enum { RECORD_BYTES = 16384, CIPHER_BYTES = 2 * RECORD_BYTES, UNSENT_BYTES_MAX = 1 << 20 };

struct ck_tls {
    ck_proc *proc;
    const ssl_lib *ssl;
    const crypto_lib *crypto;
    SSL_CTX *context;
};

struct net_tls {
    ck_tls *tls;
    ck_socket *socket;
    SSL *ssl;
    BIO *in, *out; /* of ssl, which frees them */
    bool dialled;
    bool shaken;       /* certificates were looked at; a byte says so */
    bool said;         /* it is on its way */
    size_t plain;      /* bytes of a writev that are encrypted, and perhaps not sent */
    size_t begin, end; /* in cipher: bytes for the socket */
    char cipher[CIPHER_BYTES];
    char bytes[RECORD_BYTES]; /* small frames go in one record; what comes from the socket */
};

/* ---- the files ---- */

ck_status ck_tls_check_files(const ck_tls_files *f, ck_error *err) {
    const struct {
        const char *flag, *file;
    } all[] = {{"--tls-cert", f->cert}, {"--tls-key", f->key}, {"--tls-ca", f->ca}};
    bool any = f->cert || f->key || f->ca;
    for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++)
        if (any && !all[i].file)
            return ck_fail(err, CK_INVALID, "--tls-cert, --tls-key and --tls-ca belong together: %s is missing",
                           all[i].flag);
    return CK_OK;
}

static const char *reason(const ck_tls *t) {
    const char *text = t->crypto->ERR_reason_error_string(t->crypto->ERR_peek_error());
    return text ? text : "the TLS library does not say why";
}

/* Nobody is there to be asked: a key that needs a passphrase is refused. */
static int no_passphrase(char *buf, int size, int rwflag, void *arg) {
    (void)buf, (void)size, (void)rwflag, (void)arg;
    return 0;
}

/* The library would wait for the writer of a pipe. What is not there is for it to say. */
static ck_status must_be_file(ck_proc *proc, const char *flag, const char *path, ck_error *err) {
    ck_stat st;
    if (proc->fs->stat(proc->fs, path, &st, NULL) != CK_OK || st.is_file) return CK_OK;
    return ck_fail(err, CK_REFUSED, "%s %s is %s, and a file is expected there", flag, path,
                   st.is_dir ? "a directory" : "a pipe or a device");
}

static ck_status load(ck_tls *t, const ck_tls_files *f, ck_error *err) {
    const ssl_lib *l = t->ssl;
    CK_TRY(must_be_file(t->proc, "--tls-ca", f->ca, err));
    CK_TRY(must_be_file(t->proc, "--tls-cert", f->cert, err));
    CK_TRY(must_be_file(t->proc, "--tls-key", f->key, err));
    t->crypto->ERR_clear_error();
    l->SSL_CTX_set_default_passwd_cb(t->context, no_passphrase);
    if (l->SSL_CTX_load_verify_file(t->context, f->ca) != 1)
        return ck_fail(err, CK_REFUSED, "--tls-ca %s cannot be read as a certificate: %s", f->ca, reason(t));
    if (l->SSL_CTX_use_certificate_chain_file(t->context, f->cert) != 1)
        return ck_fail(err, CK_REFUSED, "--tls-cert %s cannot be read as a certificate: %s", f->cert, reason(t));
    if (l->SSL_CTX_use_PrivateKey_file(t->context, f->key, SSL_FILETYPE_PEM) != 1)
        return ck_fail(err, CK_REFUSED, "--tls-key %s cannot be read as the key of %s, without a passphrase: %s",
                       f->key, f->cert, reason(t));
    if (l->SSL_CTX_check_private_key(t->context) != 1)
        return ck_fail(err, CK_REFUSED, "--tls-key %s is not the key of %s", f->key, f->cert);
    return CK_OK;
}

ck_status ck_tls_new(ck_proc *proc, const ck_tls_files *f, ck_tls **out, ck_error *err) {
    const void *ssl, *crypto;
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    *out = NULL;
    CK_TRY(ck_tls_check_files(f, err));
    if (!f->cert) return CK_OK;
    CK_TRY(ck_module_open(proc, &ssl_module, &ssl, err));
    CK_TRY(ck_module_open(proc, &crypto_module, &crypto, err));
    ck_tls *t = ck_alloc_zero(mem, sizeof *t);
    if (!t) return ck_nomem(err, mem, sizeof *t);
    *t = (ck_tls){.proc = proc, .ssl = ssl, .crypto = crypto};
    t->context = t->ssl->SSL_CTX_new(t->ssl->TLS_method());
    ck_status s = t->context ? load(t, f, err) : ck_nomem(err, mem, 0);
    if (s != CK_OK) {
        ck_tls_free(t);
        return s;
    }
    t->ssl->SSL_CTX_ctrl(t->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL);
    t->ssl->SSL_CTX_ctrl(t->context, SSL_CTRL_MODE, SSL_MODE_NO_AUTO_CHAIN, NULL); /* what the file has, not the CA */
    t->ssl->SSL_CTX_ctrl(t->context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    (void)t->ssl->SSL_CTX_set_num_tickets(t->context, 0); /* nobody resumes a session */
    t->ssl->SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    *out = t;
    return CK_OK;
}

void ck_tls_free(ck_tls *t) {
    if (!t) return;
    t->ssl->SSL_CTX_free(t->context);
    ck_free(ck_proc_mem(t->proc, CK_MEM_PLAN), t, sizeof *t);
}

/* ---- a connection's ---- */

/* The host of "HOST:PORT" or "[IPV6]:PORT" is the one that the certificate has to be for. */
static bool expect_host(net_tls *n, const char *address) {
    const ck_tls *t = n->tls;
    char host[256];
    unsigned char ip[16];
    const char *colon = strrchr(address, ':'), *begin = address[0] == '[' ? address + 1 : address;
    size_t len = colon ? (size_t)(colon - begin) - (address[0] == '[') : strlen(begin);
    if (len == 0 || len >= sizeof host) return false;
    memcpy(host, begin, len);
    host[len] = 0;
    if (inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1)
        return t->crypto->X509_VERIFY_PARAM_set1_ip_asc(t->ssl->SSL_get0_param(n->ssl), host) == 1;
    return t->ssl->SSL_set1_host(n->ssl, host) == 1;
}

static ck_status begin(net_tls *n, const char *dialled, ck_error *err) {
    const ck_tls *t = n->tls;
    n->ssl = t->ssl->SSL_new(t->context);
    n->in = n->ssl ? t->crypto->BIO_new(t->crypto->BIO_s_mem()) : NULL;
    n->out = n->in ? t->crypto->BIO_new(t->crypto->BIO_s_mem()) : NULL;
    if (!n->out) {
        if (n->in) t->crypto->BIO_free(n->in);
        return ck_nomem(err, ck_proc_mem(t->proc, CK_MEM_PLAN), 0);
    }
    t->ssl->SSL_set_bio(n->ssl, n->in, n->out);
    if (dialled)
        t->ssl->SSL_set_connect_state(n->ssl);
    else
        t->ssl->SSL_set_accept_state(n->ssl);
    if (dialled && !expect_host(n, dialled)) return ck_fail(err, CK_INVALID, "%s has no host", dialled);
    return CK_OK;
}

ck_status net_tls_new(ck_tls *t, ck_socket *s, const char *dialled, net_tls **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(t->proc, CK_MEM_PLAN);
    net_tls *n = ck_alloc(mem, sizeof *n);
    *out = NULL;
    if (!n) return ck_nomem(err, mem, sizeof *n);
    memset(n, 0, offsetof(net_tls, cipher));
    n->tls = t, n->socket = s, n->dialled = dialled != NULL;
    ck_status st = begin(n, dialled, err);
    if (st != CK_OK)
        net_tls_free(n);
    else
        *out = n;
    return st;
}

void net_tls_free(net_tls *n) {
    if (!n) return;
    n->tls->ssl->SSL_free(n->ssl); /* NULL is fine */
    ck_free(ck_proc_mem(n->tls->proc, CK_MEM_PLAN), n, sizeof *n);
}

/* ---- between the library and the socket ---- */

static ck_status flush(net_tls *n, ck_error *err) {
    for (;;) {
        if (n->begin == n->end) {
            int got = n->tls->crypto->BIO_read(n->out, n->cipher, CIPHER_BYTES);
            if (got <= 0) return CK_OK;
            n->begin = 0, n->end = (size_t)got;
        }
        size_t sent;
        CK_TRY(ck_socket_write(n->socket, n->cipher + n->begin, n->end - n->begin, &sent, err));
        n->begin += sent;
    }
}

/* More of what the peer sends, for the library. */
static ck_status fetch(net_tls *n, ck_error *err) {
    size_t got;
    CK_TRY(ck_socket_read(n->socket, n->bytes, RECORD_BYTES, &got, err));
    if (n->tls->crypto->BIO_write(n->in, n->bytes, (int)got) != (int)got)
        return ck_nomem(err, ck_proc_mem(n->tls->proc, CK_MEM_PLAN), got);
    return CK_OK;
}

/* ---- the handshake ---- */

/* "tlsv1 alert unknown ca" without what is before it. */
static const char *alert_text(const char *reason) {
    const char *p = strstr(reason, "alert ");
    return p ? p + strlen("alert ") : reason;
}

static ck_status shake_failed(net_tls *n, ck_error *err) {
    const ck_tls *t = n->tls;
    const char *peer = ck_socket_address(n->socket);
    unsigned long code = t->crypto->ERR_peek_error();
    int why = ERR_GET_REASON(code);
    long verify = t->ssl->SSL_get_verify_result(n->ssl);
    (void)flush(n, NULL); /* the alert: it tells the peer */
    if (verify != X509_V_OK)
        return ck_fail(err, CK_REFUSED, "the certificate of %s is not accepted: %s", peer,
                       t->crypto->X509_verify_cert_error_string(verify));
    if (why == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        return ck_fail(err, CK_REFUSED, "%s has shown no certificate", peer);
    if (why > SSL_AD_REASON_OFFSET)
        return ck_fail(err, CK_REFUSED, "%s does not accept our certificate: %s", peer, alert_text(reason(t)));
    return ck_fail(err, CK_REFUSED, "%s does not speak TLS as we do: %s", peer, reason(t));
}

/* One try of what is next. CK_AGAIN: the library needs more bytes. */
static ck_status shake_once(net_tls *n, ck_error *err) {
    const ssl_lib *l = n->tls->ssl;
    char byte = 0;
    size_t count;
    int rc;
    n->tls->crypto->ERR_clear_error();
    if (!n->shaken)
        rc = l->SSL_do_handshake(n->ssl);
    else if (n->dialled)
        rc = l->SSL_read_ex(n->ssl, &byte, 1, &count);
    else
        rc = l->SSL_write_ex(n->ssl, &byte, 1, &count);
    if (rc == 1) return CK_OK;
    return l->SSL_get_error(n->ssl, rc) == SSL_ERROR_WANT_READ ? CK_AGAIN : shake_failed(n, err);
}

ck_status net_tls_shake(net_tls *n, bool *writes, ck_error *err) {
    for (;;) {
        ck_status s = n->said ? CK_OK : shake_once(n, err);
        if (s != CK_OK && s != CK_AGAIN) return s;
        if (s == CK_OK) n->said = n->shaken, n->shaken = true;
        ck_status sent = flush(n, err);
        *writes = sent == CK_AGAIN;
        if (sent != CK_OK) return sent;
        if (s == CK_OK && n->said) return CK_OK;
        if (s == CK_AGAIN) s = fetch(n, err);
        if (s == CK_CLOSED) ck_error_prefix(err, "in the TLS handshake: ");
        if (s != CK_OK) return s;
    }
}

/* ---- bytes ---- */

static ck_status failed(net_tls *n, ck_error *err) {
    return ck_fail(err, CK_CORRUPT, "%s: what came over TLS does not check out: %s", ck_socket_address(n->socket),
                   reason(n->tls));
}

ck_status net_tls_read(net_tls *n, void *p, size_t max, size_t *got, ck_error *err) {
    const ssl_lib *l = n->tls->ssl;
    *got = 0;
    for (;;) {
        n->tls->crypto->ERR_clear_error();
        int rc = l->SSL_read_ex(n->ssl, p, max, got);
        if (n->tls->crypto->BIO_ctrl_pending(n->out) > UNSENT_BYTES_MAX) /* answers to what nobody of ours says */
            return ck_fail(err, CK_CORRUPT, "%s asks for more than it reads", ck_socket_address(n->socket));
        if (rc == 1) return CK_OK;
        int why = l->SSL_get_error(n->ssl, rc);
        if (why == SSL_ERROR_ZERO_RETURN)
            return ck_fail(err, CK_CLOSED, "%s has closed the connection", ck_socket_address(n->socket));
        if (why != SSL_ERROR_WANT_READ) return failed(n, err);
        CK_TRY(fetch(n, err));
    }
}

static size_t gather(net_tls *n, const ck_view *parts, size_t count) {
    size_t used = 0;
    for (size_t i = 0; i < count && used < RECORD_BYTES; i++) {
        size_t room = RECORD_BYTES - used, take = parts[i].n < room ? parts[i].n : room;
        memcpy(n->bytes + used, parts[i].p, take);
        used += take;
    }
    return used;
}

ck_status net_tls_writev(net_tls *n, const ck_view *parts, size_t count, size_t *sent, ck_error *err) {
    *sent = 0;
    if (!n->plain) {
        size_t bytes = gather(n, parts, count);
        n->tls->crypto->ERR_clear_error();
        if (n->tls->ssl->SSL_write_ex(n->ssl, n->bytes, bytes, &n->plain) != 1) return failed(n, err);
    }
    CK_TRY(flush(n, err));
    *sent = n->plain;
    n->plain = 0;
    return CK_OK;
}
