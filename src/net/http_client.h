/* HTTP through libcurl, opened on first use: some requests at once, each tried again after a pause that grows while
 * there is reason to hope - no connection, no answer in time, 408, 425, 429, 500, 502, 503, 504 - and at most so often.
 *
 * A client and its requests belong to one thread at a time: an I/O job's, which blocks here for at most a slice. */
#ifndef CK_NET_HTTP_CLIENT_H
#define CK_NET_HTTP_CLIENT_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/proc.h"

struct curl_slist;
struct ck_http_lib;

/* Strings are borrowed and outlive the client. */
typedef struct ck_http_options {
    const char *for_what;        /* "connector 'http'": who needs the library */
    const char *user, *password; /* NULL: none; secrets are resolved */
    const char *token;           /* a bearer's; NULL: none */
    const char *ca;              /* a file of certificates that are trusted; NULL: the system's */
    const char *const *headers;  /* "Name: value", with every request */
    uint32_t header_count;
    int64_t timeout_ms;     /* of one try */
    int64_t retries;        /* tries after the first */
    int64_t pause_ms;       /* before the first of them; twice as long before each further one */
    uint32_t in_flight_max; /* requests at once */
    size_t answer_bytes_max;
} ck_http_options;

/* Owner: the caller. Zero is an empty one; ck_http_request_destroy frees. */
typedef struct ck_http_request {
    /* the question, borrowed until it is done */
    const char *method, *url;
    const char *header; /* one more, "Name: value"; NULL: none */
    ck_view body;       /* p NULL: none */
    /* the answer, when it is done */
    bool done;
    long status; /* 0: there was none, trouble says why */
    ck_bytes answer;
    char trouble[256];
    unsigned tries;
    /* the client's */
    void *easy;
    struct curl_slist *headers;
    size_t answer_bytes_max;
    int64_t again_us; /* when it is tried (again) */
    bool running, too_large;
} ck_http_request;

void ck_http_request_init(ck_http_request *r, ck_mem mem);
void ck_http_request_destroy(ck_http_request *r); /* not while it is under way */

typedef struct ck_http_client {
    ck_proc *proc;
    const struct ck_http_lib *lib;
    ck_http_options options;
    void *multi;
    uint32_t running;
    uint64_t tried_again; /* in all */
} ck_http_client;

CK_NODISCARD ck_status ck_http_client_init(ck_http_client *c, ck_proc *proc, const ck_http_options *o, ck_error *err);
/* Gives up what is under way. Safe on zero. */
void ck_http_client_destroy(ck_http_client *c, ck_http_request *requests, uint32_t count);

/* CK_OK: all are done. CK_AGAIN: slice_ms are over; call again with the same. */
CK_NODISCARD ck_status ck_http_run(ck_http_client *c, ck_http_request *requests, uint32_t count, int slice_ms,
                                   ck_error *err);

/* What was answered, or why nothing was: "404 (no such thing)", "no answer: Connection refused, after 3 tries". */
const char *ck_http_said(const ck_http_request *r, char *out, size_t room);

#endif
