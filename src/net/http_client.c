/* See http_client.h. */
#include "net/http_client.h"

#define CURL_DISABLE_TYPECHECK /* its macros cannot be members */
#include <curl/curl.h>
#include <stdio.h>

#include "os/clock.h"
#include "os/confined.h"
#include "os/modules.h"
#include "os/random.h"

#define CK_HTTP_FUNCTIONS(X)                                                                                           \
    X(curl_global_init)                                                                                                \
    X(curl_easy_init)                                                                                                  \
    X(curl_easy_cleanup)                                                                                               \
    X(curl_easy_setopt)                                                                                                \
    X(curl_easy_getinfo)                                                                                               \
    X(curl_easy_strerror)                                                                                              \
    X(curl_slist_append)                                                                                               \
    X(curl_slist_free_all)                                                                                             \
    X(curl_multi_init)                                                                                                 \
    X(curl_multi_cleanup)                                                                                              \
    X(curl_multi_add_handle)                                                                                           \
    X(curl_multi_remove_handle)                                                                                        \
    X(curl_multi_perform)                                                                                              \
    X(curl_multi_poll)                                                                                                 \
    X(curl_multi_info_read)                                                                                            \
    X(curl_multi_strerror)

typedef struct ck_http_lib {
    CK_MODULE_TABLE(CK_HTTP_FUNCTIONS)
} ck_http_lib;

static const char *const function_names[] = {CK_MODULE_NAMES(CK_HTTP_FUNCTIONS)};
static const ck_module_desc curl_module = {.file = "libcurl.so.4",
                                           .package = "libcurl4",
                                           .for_what = "HTTP",
                                           .functions = function_names,
                                           .count = CK_ARRAY_COUNT(function_names)};

enum { PAUSE_MAX_MS = 30000, RETRY_AFTER_MAX_S = 60, POLL_MS = 50, SAID_BYTES = 160 };

/* ---- requests ---- */

void ck_http_request_init(ck_http_request *r, ck_mem mem) {
    *r = (ck_http_request){0};
    ck_bytes_init(&r->answer, mem, SIZE_MAX);
}

void ck_http_request_destroy(ck_http_request *r) {
    ck_bytes_destroy(&r->answer);
    *r = (ck_http_request){0};
}

static size_t on_answer(char *p, size_t size, size_t n, void *arg) {
    ck_http_request *r = arg;
    n *= size;
    r->too_large = n > r->answer_bytes_max - r->answer.n;
    return !r->too_large && (n == 0 || ck_bytes_append(&r->answer, p, n) == CK_OK) ? n : 0;
}

const char *ck_http_said(const ck_http_request *r, char *out, size_t room) {
    char tries[40] = "";
    if (r->tries > 1) snprintf(tries, sizeof tries, ", after %u tries", r->tries);
    if (!r->status) {
        snprintf(out, room, "no answer: %s%s", r->trouble, tries);
        return out;
    }
    char text[SAID_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < r->answer.n && n + 1 < sizeof text; i++) {
        char c = r->answer.p[i];
        bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
        if ((unsigned char)c < ' ' && !space) break;
        if (space && (!n || text[n - 1] == ' ')) continue;
        text[n++] = space ? ' ' : c;
    }
    while (n && (text[n - 1] == ' ' || (text[n - 1] & 0x80))) n--; /* not in the middle of a character */
    text[n] = 0;
    if (r->status >= 300 && r->status <= 399)
        snprintf(out, room, "the answer is %ld, which points elsewhere: another 'url' may be meant%s", r->status,
                 tries);
    else
        snprintf(out, room, n ? "the answer is %ld (%s)%s" : "the answer is %ld%s%s", r->status, text, tries);
    return out;
}

/* ---- the client ---- */

ck_status ck_http_client_init(ck_http_client *c, ck_proc *proc, const ck_http_options *o, ck_error *err) {
    const void *table;
    *c = (ck_http_client){.proc = proc, .options = *o};
    ck_status s = proc->confined && o->ca ? ck_confined_check(proc->confined, o->ca, err) : CK_OK;
    if (s == CK_OK) s = ck_module_open(proc, &curl_module, &table, err);
    if (s != CK_OK) return o->for_what ? ck_error_prefix(err, "%s: ", o->for_what) : s;
    c->lib = table;
    if (c->lib->curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(c->multi = c->lib->curl_multi_init()))
        return ck_fail(err, CK_NOMEM, "libcurl does not begin");
    return CK_OK;
}

static void release(ck_http_client *c, ck_http_request *r) {
    if (r->easy) {
        c->lib->curl_multi_remove_handle(c->multi, r->easy);
        c->lib->curl_easy_cleanup(r->easy);
    }
    c->lib->curl_slist_free_all(r->headers);
    r->easy = NULL;
    r->headers = NULL;
    if (r->running) c->running--;
    r->running = false;
}

void ck_http_client_destroy(ck_http_client *c, ck_http_request *requests, uint32_t count) {
    if (!c->multi) return;
    for (uint32_t i = 0; i < count; i++) release(c, &requests[i]);
    c->lib->curl_multi_cleanup(c->multi);
    *c = (ck_http_client){0};
}

/* ---- one try ---- */

static bool add_header(ck_http_client *c, ck_http_request *r, const char *header) {
    struct curl_slist *list = c->lib->curl_slist_append(r->headers, header);
    if (list) r->headers = list;
    return list != NULL;
}

static bool add_headers(ck_http_client *c, ck_http_request *r) {
    bool ok = add_header(c, r, "Expect:"); /* no round trip before a body */
    for (uint32_t i = 0; ok && i < c->options.header_count; i++) ok = add_header(c, r, c->options.headers[i]);
    return ok && (!r->header || add_header(c, r, r->header));
}

static void set_who(const ck_http_client *c, CURL *e) {
    const ck_http_options *o = &c->options;
    if (o->user) {
        c->lib->curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        c->lib->curl_easy_setopt(e, CURLOPT_USERNAME, o->user);
        c->lib->curl_easy_setopt(e, CURLOPT_PASSWORD, o->password ? o->password : "");
    } else if (o->token) {
        c->lib->curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        c->lib->curl_easy_setopt(e, CURLOPT_XOAUTH2_BEARER, o->token);
    }
    if (o->ca) c->lib->curl_easy_setopt(e, CURLOPT_CAINFO, o->ca);
}

static bool prepare(ck_http_client *c, ck_http_request *r) {
    const ck_http_lib *lib = c->lib;
    CURL *e = r->easy = lib->curl_easy_init();
    if (!e || !add_headers(c, r)) return false;
    lib->curl_easy_setopt(e, CURLOPT_URL, r->url);
    lib->curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    lib->curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    lib->curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)c->options.timeout_ms);
    lib->curl_easy_setopt(e, CURLOPT_ERRORBUFFER, r->trouble);
    lib->curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_answer);
    lib->curl_easy_setopt(e, CURLOPT_WRITEDATA, r);
    lib->curl_easy_setopt(e, CURLOPT_HTTPHEADER, r->headers);
    lib->curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "");
    lib->curl_easy_setopt(e, CURLOPT_PRIVATE, r);
    set_who(c, e);
    if (r->body.p) {
        lib->curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
        lib->curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body.p);
    }
    lib->curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
    return true;
}

static ck_status begin(ck_http_client *c, ck_http_request *r, ck_error *err) {
    ck_bytes_clear(&r->answer);
    r->status = 0;
    r->trouble[0] = 0;
    r->too_large = false;
    r->answer_bytes_max = c->options.answer_bytes_max;
    r->tries++;
    if (!prepare(c, r) || c->lib->curl_multi_add_handle(c->multi, r->easy) != CURLM_OK) {
        release(c, r);
        return ck_fail(err, CK_NOMEM, "libcurl has no memory for a request");
    }
    r->running = true;
    c->running++;
    return CK_OK;
}

static bool is_hopeful(const ck_http_request *r, CURLcode code) {
    static const long waits[] = {408, 425, 429, 500, 502, 503, 504};
    if (code != CURLE_OK)
        return !r->too_large && code != CURLE_URL_MALFORMAT && code != CURLE_UNSUPPORTED_PROTOCOL &&
               code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE &&
               code != CURLE_OUT_OF_MEMORY;
    for (size_t i = 0; i < CK_ARRAY_COUNT(waits); i++)
        if (r->status == waits[i]) return true;
    return false;
}

/* Between half and the whole of what has doubled with each try, so that many do not come at once; or what the server
 * asks for. */
static int64_t pause_us(const ck_http_client *c, const ck_http_request *r, curl_off_t asked_s) {
    int64_t ms = c->options.pause_ms;
    for (unsigned i = 1; i < r->tries && ms < PAUSE_MAX_MS; i++) ms *= 2;
    if (ms > PAUSE_MAX_MS) ms = PAUSE_MAX_MS;
    if (asked_s > RETRY_AFTER_MAX_S) asked_s = RETRY_AFTER_MAX_S;
    int64_t us = ms * 500 + (int64_t)ck_random_below(c->proc, (uint64_t)ms * 500 + 1);
    return asked_s * 1000000 > us ? asked_s * 1000000 : us;
}

static void finish(ck_http_client *c, ck_http_request *r, CURLcode code) {
    curl_off_t asked = 0;
    if (code == CURLE_OK)
        c->lib->curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &r->status);
    else if (r->too_large)
        snprintf(r->trouble, sizeof r->trouble, "it is larger than %zu bytes", r->answer_bytes_max);
    else if (!r->trouble[0])
        snprintf(r->trouble, sizeof r->trouble, "%s", c->lib->curl_easy_strerror(code));
    c->lib->curl_easy_getinfo(r->easy, CURLINFO_RETRY_AFTER, &asked);
    release(c, r);
    if (!is_hopeful(r, code) || r->tries > c->options.retries) {
        r->done = true;
        return;
    }
    c->tried_again++;
    r->again_us = ck_mono_us(c->proc) + pause_us(c, r, asked);
}

/* ---- all of them ---- */

/* *next_us: when the first of those that wait is due. */
static ck_status begin_due(ck_http_client *c, ck_http_request *list, uint32_t count, int64_t *next_us, bool *all,
                           ck_error *err) {
    int64_t now = ck_mono_us(c->proc);
    *next_us = INT64_MAX;
    *all = true;
    for (uint32_t i = 0; i < count; i++) {
        ck_http_request *r = &list[i];
        if (r->done) continue;
        *all = false;
        if (r->running || c->running >= c->options.in_flight_max) continue;
        if (r->again_us <= now)
            CK_TRY(begin(c, r, err));
        else if (r->again_us < *next_us)
            *next_us = r->again_us;
    }
    return CK_OK;
}

static void take_done(ck_http_client *c) {
    int left;
    for (CURLMsg *m; (m = c->lib->curl_multi_info_read(c->multi, &left));) {
        ck_http_request *r = NULL;
        if (m->msg != CURLMSG_DONE) continue;
        CURLcode code = m->data.result;
        c->lib->curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&r);
        finish(c, r, code);
    }
}

ck_status ck_http_run(ck_http_client *c, ck_http_request *requests, uint32_t count, int slice_ms, ck_error *err) {
    int64_t end = ck_mono_us(c->proc) + (int64_t)slice_ms * 1000;
    for (;;) {
        int64_t next_us;
        bool all;
        int active;
        CK_TRY(begin_due(c, requests, count, &next_us, &all, err));
        if (all) return CK_OK;
        CURLMcode code = c->lib->curl_multi_perform(c->multi, &active);
        if (code != CURLM_OK) return ck_fail(err, CK_IO, "libcurl: %s", c->lib->curl_multi_strerror(code));
        uint32_t before = c->running;
        take_done(c);
        int64_t now = ck_mono_us(c->proc);
        if (c->running < before) continue; /* there is room for another */
        if (now >= end) return CK_AGAIN;
        int64_t wait = (next_us < end ? next_us : end) - now;
        int ms = wait < 0 ? 0 : wait > POLL_MS * 1000 ? POLL_MS : (int)(wait / 1000) + 1;
        (void)c->lib->curl_multi_poll(c->multi, NULL, 0, ms, NULL);
    }
}
