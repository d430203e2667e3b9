#include "cluster/coordinator/etcd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/base64.h"
#include "base/json.h"
#include "net/http_client.h"

enum { ARENA_BYTES_MAX = 256 << 20, ANSWER_BYTES_MAX = 128 << 20, KEY_BYTES_MAX = 512 };

struct ck_etcd {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena; /* the members and the prefix; behind the mark, of one call */
    ck_arena_mark mark;
    const char *scheme, *members[CK_ETCD_MEMBERS_MAX], *prefix;
    uint32_t member_count, turn; /* turn: who answered last */
    ck_http_client http;
};

/* ---- the address ---- */

static ck_status bad_url(const char *url, const char *why, ck_error *err) {
    return ck_fail(err, CK_INVALID, "'%s' is not etcd://HOST:PORT[,HOST:PORT...][/PREFIX]: %s", url, why);
}

static bool is_member(const char *p) {
    const char *colon = strrchr(p, ':');
    return colon && colon > p && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
           strtoul(colon + 1, NULL, 10) <= UINT16_MAX && !strpbrk(p, " @?#\\\"");
}

static ck_status read_url(ck_etcd *e, const char *url, ck_error *err) {
    bool tls = strncmp(url, "etcds://", 8) == 0;
    if (!tls && strncmp(url, "etcd://", 7) != 0) return bad_url(url, "it begins otherwise", err);
    char *list = ck_arena_strdup(&e->arena, url + (tls ? 8 : 7)), *slash = list ? strchr(list, '/') : NULL, *save;
    if (!list) return ck_nomem(err, e->mem, 0);
    e->scheme = tls ? "https" : "http";
    e->prefix = slash && slash[1] ? slash + 1 : "clink";
    if (slash) *slash = 0;
    if (strlen(e->prefix) > 200) return bad_url(url, "the prefix has over 200 bytes", err);
    for (char *m = strtok_r(list, ",", &save); m; m = strtok_r(NULL, ",", &save)) {
        if (e->member_count == CK_ETCD_MEMBERS_MAX) return bad_url(url, "it names over 16 members", err);
        if (!is_member(m)) return bad_url(url, "a member has no host or no port", err);
        e->members[e->member_count++] = m;
    }
    return e->member_count ? CK_OK : bad_url(url, "it names nobody", err);
}

ck_status ck_etcd_new(ck_proc *proc, const char *url, ck_etcd **out, ck_error *err) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_etcd *e = ck_alloc_zero(mem, sizeof *e);
    *out = NULL;
    if (!e) return ck_nomem(err, mem, sizeof *e);
    e->proc = proc, e->mem = mem;
    ck_arena_init(&e->arena, mem, ARENA_BYTES_MAX);
    const ck_http_options o = {
        .for_what = "--ha", .timeout_ms = CK_ETCD_TRY_MS, .in_flight_max = 1, .answer_bytes_max = ANSWER_BYTES_MAX};
    ck_status s = read_url(e, url, err);
    if (s == CK_OK) s = ck_http_client_init(&e->http, proc, &o, err);
    e->mark = ck_arena_mark_now(&e->arena);
    if (s != CK_OK)
        ck_etcd_free(e);
    else
        *out = e;
    return s;
}

void ck_etcd_free(ck_etcd *e) {
    if (!e) return;
    ck_http_client_destroy(&e->http, NULL, 0);
    ck_arena_destroy(&e->arena);
    ck_free(e->mem, e, sizeof *e);
}

/* ---- one question ---- */

static ck_status ask_member(ck_etcd *e, const char *member, const char *path, ck_view body, ck_http_request *r,
                            ck_error *err) {
    const char *url = ck_arena_printf(&e->arena, "%s://%s%s", e->scheme, member, path);
    if (!url) return ck_nomem(err, e->mem, 0);
    r->method = "POST", r->url = url, r->body = body;
    ck_status s;
    do s = ck_http_run(&e->http, r, 1, CK_ETCD_TRY_MS, err);
    while (s == CK_AGAIN);
    return s;
}

/* The sentence in an error's answer: {"error": "...", "code": ...}. */
static ck_status said_no(ck_etcd *e, const char *member, const ck_http_request *r, ck_error *err) {
    struct yyjson_doc *doc;
    char said[400];
    const char *why = NULL;
    if (ck_json_read(&e->arena, ck_bytes_as_view(&r->answer), &doc, NULL) == CK_OK)
        why = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "error"));
    if (why && strstr(why, "lease not found")) return ck_fail(err, CK_NOTFOUND, "the lease has expired");
    ck_status s = ck_fail(err, r->status >= 500 || !r->status ? CK_IO : CK_REFUSED, "etcd at %s: %s", member,
                          why ? why : ck_http_said(r, said, sizeof said));
    if (err) err->retriable = s == CK_IO;
    return s;
}

/* Of the first member that answers. The answer is in the call's arena. */
static ck_status ask(ck_etcd *e, const char *path, const yyjson_mut_doc *question, yyjson_val **answer, ck_error *err) {
    ck_view body;
    CK_TRY(ck_json_write(&e->arena, question, &body, err));
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < e->member_count; i++) {
        uint32_t turn = (e->turn + i) % e->member_count;
        ck_http_request r;
        struct yyjson_doc *doc = NULL;
        ck_error_reset(err);
        ck_http_request_init(&r, e->mem);
        s = ask_member(e, e->members[turn], path, body, &r, err);
        if (s == CK_OK && r.status != 200) s = said_no(e, e->members[turn], &r, err);
        if (s == CK_OK && ck_json_read(&e->arena, ck_bytes_as_view(&r.answer), &doc, err) != CK_OK)
            s = ck_fail(err, CK_CORRUPT, "etcd at %s answers what is not JSON", e->members[turn]);
        ck_http_request_destroy(&r);
        if (s == CK_OK) *answer = yyjson_doc_get_root(doc);
        if (s != CK_IO) {
            e->turn = turn;
            break;
        }
    }
    return s;
}

static void forget_call(ck_etcd *e) { ck_arena_reset_to(&e->arena, e->mark); }

/* ---- its JSON: keys and values are base64, 64-bit numbers texts ---- */

static uint64_t number_of(yyjson_val *object, const char *key) {
    yyjson_val *v = yyjson_obj_get(object, key);
    return yyjson_is_str(v) ? strtoull(yyjson_get_str(v), NULL, 10) : yyjson_get_uint(v);
}

static bool put_number(yyjson_mut_doc *d, yyjson_mut_val *o, const char *key, int64_t n) {
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, n);
    return yyjson_mut_obj_add_strcpy(d, o, key, text);
}

static bool put_bytes(ck_etcd *e, yyjson_mut_doc *d, yyjson_mut_val *o, const char *key, ck_view v) {
    ck_bytes b;
    ck_bytes_init(&b, e->mem, ANSWER_BYTES_MAX);
    bool ok = ck_base64_encode(v, &b) == CK_OK && yyjson_mut_obj_add_strncpy(d, o, key, b.n ? b.p : "", b.n);
    ck_bytes_destroy(&b);
    return ok;
}

static const char *whole_key(ck_etcd *e, const char *key) {
    return ck_arena_printf(&e->arena, "%s/%s", e->prefix, key);
}

static bool put_key(ck_etcd *e, yyjson_mut_doc *d, yyjson_mut_val *o, const char *key) {
    const char *whole = whole_key(e, key);
    return whole && put_bytes(e, d, o, "key", ck_view_of(whole));
}

/* ---- reading ---- */

static bool read_bytes(ck_arena *a, yyjson_val *v, ck_view *out) {
    size_t n = yyjson_get_len(v), bytes = 0; /* also of lists, which are no text */
    if (v && !yyjson_is_str(v)) return false;
    uint8_t *p = ck_arena_alloc(a, n + 1);
    if (!p) return false;
    if (n && !ck_base64_decode((ck_view){yyjson_get_str(v), n}, p, &bytes)) return false;
    p[bytes] = 0;
    *out = (ck_view){(const char *)p, bytes};
    return true;
}

static ck_status read_pairs(const ck_etcd *e, yyjson_val *answer, ck_arena *a, ck_etcd_pair **out, uint32_t *count,
                            ck_error *err) {
    yyjson_val *list = yyjson_obj_get(answer, "kvs"), *kv;
    size_t i, n, prefix = strlen(e->prefix) + 1;
    ck_etcd_pair *pairs = ck_arena_array(a, yyjson_arr_size(list) + 1, sizeof *pairs);
    if (!pairs) return ck_nomem(err, a->mem, 0);
    yyjson_arr_foreach(list, i, n, kv) {
        ck_view key, value = {"", 0};
        yyjson_val *v = yyjson_obj_get(kv, "value"); /* an empty one is left out */
        if (!read_bytes(a, yyjson_obj_get(kv, "key"), &key) || (v && !read_bytes(a, v, &value)) || key.n < prefix)
            return ck_fail(err, CK_CORRUPT, "etcd answers a pair that cannot be read");
        pairs[i] = (ck_etcd_pair){key.p + prefix, value, number_of(kv, "create_revision")};
    }
    *out = pairs, *count = (uint32_t)yyjson_arr_size(list);
    return CK_OK;
}

/* Up to the first key that does not begin so: the last byte one higher. A key ends in no byte 255. */
ck_status ck_etcd_list(ck_etcd *e, const char *key, ck_arena *a, ck_etcd_pair **out, uint32_t *count, ck_error *err) {
    yyjson_mut_doc *d;
    yyjson_val *answer = NULL;
    char end[KEY_BYTES_MAX];
    int n = snprintf(end, sizeof end, "%s/%s", e->prefix, key);
    CK_ASSERT(n > 0 && (size_t)n < sizeof end);
    end[n - 1]++;
    ck_status s = ck_json_new(&e->arena, &d, err);
    if (s == CK_OK) {
        yyjson_mut_val *o = yyjson_mut_obj(d);
        yyjson_mut_doc_set_root(d, o);
        bool ok = put_key(e, d, o, key) && put_bytes(e, d, o, "range_end", ck_view_of(end));
        s = ok ? ask(e, "/v3/kv/range", d, &answer, err) : ck_nomem(err, e->mem, 0);
    }
    if (s == CK_OK) s = read_pairs(e, answer, a, out, count, err);
    forget_call(e);
    return s;
}

/* ---- writing ---- */

static bool put_condition(ck_etcd *e, yyjson_mut_doc *d, yyjson_mut_val *o, const char *key, uint64_t revision) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(d, o, "compare"), *c = yyjson_mut_arr_add_obj(d, list);
    return c && put_key(e, d, c, key) && yyjson_mut_obj_add_str(d, c, "target", "CREATE") &&
           yyjson_mut_obj_add_str(d, c, "result", "EQUAL") && put_number(d, c, "create_revision", (int64_t)revision);
}

static bool put_change(ck_etcd *e, yyjson_mut_doc *d, yyjson_mut_val *o, const ck_etcd_change *c) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(d, o, "success"), *op = yyjson_mut_arr_add_obj(d, list);
    yyjson_mut_val *x = op ? yyjson_mut_obj_add_obj(d, op, c->value ? "request_put" : "request_delete_range") : NULL;
    if (!x || !put_key(e, d, x, c->key)) return false;
    if (c->value && !put_bytes(e, d, x, "value", *c->value)) return false;
    return !c->lease || put_number(d, x, "lease", c->lease);
}

ck_status ck_etcd_change_if(ck_etcd *e, const char *key, uint64_t create_revision, const ck_etcd_change *change,
                            bool *done, uint64_t *revision, ck_error *err) {
    yyjson_mut_doc *d;
    yyjson_val *answer = NULL;
    if (change->value && change->value->n > CK_ETCD_VALUE_BYTES_MAX)
        return ck_fail(err, CK_REFUSED, "a record of %zu bytes, and etcd takes %d", change->value->n,
                       (int)CK_ETCD_VALUE_BYTES_MAX);
    ck_status s = ck_json_new(&e->arena, &d, err);
    if (s == CK_OK) {
        yyjson_mut_val *o = yyjson_mut_obj(d);
        yyjson_mut_doc_set_root(d, o);
        bool ok = put_condition(e, d, o, key, create_revision) && put_change(e, d, o, change);
        s = ok ? ask(e, "/v3/kv/txn", d, &answer, err) : ck_nomem(err, e->mem, 0);
    }
    if (s == CK_OK) {
        *done = yyjson_get_bool(yyjson_obj_get(answer, "succeeded"));
        *revision = number_of(yyjson_obj_get(answer, "header"), "revision");
    }
    forget_call(e);
    return s;
}

/* ---- leases ---- */

static ck_status ask_lease(ck_etcd *e, const char *path, const char *key, int64_t n, yyjson_val **answer,
                           ck_error *err) {
    yyjson_mut_doc *d;
    CK_TRY(ck_json_new(&e->arena, &d, err));
    yyjson_mut_val *o = yyjson_mut_obj(d);
    yyjson_mut_doc_set_root(d, o);
    return put_number(d, o, key, n) ? ask(e, path, d, answer, err) : ck_nomem(err, e->mem, 0);
}

ck_status ck_etcd_grant(ck_etcd *e, int64_t ttl_s, int64_t *lease, ck_error *err) {
    yyjson_val *answer = NULL;
    ck_status s = ask_lease(e, "/v3/lease/grant", "TTL", ttl_s, &answer, err);
    if (s == CK_OK) *lease = (int64_t)number_of(answer, "ID");
    if (s == CK_OK && !*lease) s = ck_fail(err, CK_CORRUPT, "etcd grants a lease without a number");
    forget_call(e);
    return s;
}

ck_status ck_etcd_keep_alive(ck_etcd *e, int64_t lease, ck_error *err) {
    yyjson_val *answer = NULL;
    ck_status s = ask_lease(e, "/v3/lease/keepalive", "ID", lease, &answer, err);
    if (s == CK_OK && number_of(yyjson_obj_get(answer, "result"), "TTL") == 0)
        s = ck_fail(err, CK_NOTFOUND, "the lease has expired");
    forget_call(e);
    return s;
}

ck_status ck_etcd_revoke(ck_etcd *e, int64_t lease, ck_error *err) {
    yyjson_val *answer = NULL;
    ck_status s = ask_lease(e, "/v3/lease/revoke", "ID", lease, &answer, err);
    forget_call(e);
    return s;
}
