/* Options of a table of connector 'http', and the client they make. */
#include "connector/http/http_int.h"
#include "connector/secret.h"

enum { SECRET_BYTES_MAX = 1 << 16, IN_FLIGHT_MAX = 1024, REQUEST_ROWS_MAX = 4096 };

static const char header_prefix[] = "headers.";

/* Headers that say who we are. */
static bool is_secret(const char *header) {
    static const char *const words[] = {"auth", "token", "key", "secret", "cookie", "password"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(words); i++)
        if (strstr(header, words[i])) return true; /* names are in lower case here */
    return false;
}

static ck_status check_headers(const ck_table_options *o, ck_error *err) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        if (strncmp(o->names[i], header_prefix, sizeof header_prefix - 1) != 0) continue;
        if (++n > CK_HTTP_HEADERS_MAX)
            return ck_fail(err, CK_INVALID, "option '%s' is one header too many", o->names[i]);
        if (strpbrk(o->values[i], "\r\n"))
            return ck_fail(err, CK_INVALID, "option '%s' has a line end in it, which a header cannot have",
                           o->names[i]);
        if (is_secret(o->names[i] + sizeof header_prefix - 1)) CK_TRY(ck_secret_check(o->names[i], o->values[i], err));
    }
    return CK_OK;
}

static ck_status read_who(const ck_table_options *o, ck_error *err) {
    const char *user = ck_option_text(o, "user", NULL), *password = ck_option_text(o, "password", NULL),
               *token = ck_option_text(o, "token", NULL);
    if ((user != NULL) != (password != NULL))
        return ck_fail(err, CK_INVALID, "the options 'user' and 'password' go together");
    if (user && token) return ck_fail(err, CK_INVALID, "the options 'user' and 'token' exclude each other");
    CK_TRY(ck_secret_check("password", password, err));
    CK_TRY(ck_secret_check("token", token, err));
    return check_headers(o, err);
}

static ck_status read_method(const ck_table_options *o, ck_http_table *out, ck_error *err) {
    static const char *const words[] = {"post", "put", "patch"}, *const said[] = {"POST", "PUT", "PATCH"};
    const char *word = ck_option_text(o, "method", "post");
    for (size_t i = 0; i < CK_ARRAY_COUNT(words); i++)
        if (strcmp(word, words[i]) == 0) out->method = said[i];
    return out->method ? CK_OK
                       : ck_fail(err, CK_INVALID, "option 'method' is '%s', which is none of post, put, patch", word);
}

ck_status ck_http_table_read(const ck_table_options *o, ck_http_table *out, ck_error *err) {
    *out = (ck_http_table){.url = ck_option_text(o, "url", NULL), .all = o};
    const char *format = ck_option_text(o, "format", "json");
    if (!out->url || (strncmp(out->url, "http://", 7) != 0 && strncmp(out->url, "https://", 8) != 0))
        return ck_fail(err, CK_INVALID, "a table of connector 'http' needs the option 'url', as 'https://host/path'");
    CK_TRY(ck_secret_check_url("url", out->url, "the options 'user' and 'password', or 'token',", err));
    if (strcmp(format, "json") != 0)
        return ck_fail(err, CK_INVALID, "option 'format' is '%s'; only json is spoken", format);
    CK_TRY(read_method(o, out, err));
    CK_TRY(ck_option_i64(o, "timeout_ms", 10000, 1, 3600000, &out->timeout_ms, err));
    CK_TRY(ck_option_i64(o, "retries", 5, 0, 1000, &out->retries, err));
    CK_TRY(ck_option_i64(o, "retry_pause_ms", 200, 1, 30000, &out->pause_ms, err));
    CK_TRY(ck_option_i64(o, "in_flight", 16, 1, IN_FLIGHT_MAX, &out->in_flight, err));
    CK_TRY(ck_option_i64(o, "rows_per_request", 1, 1, REQUEST_ROWS_MAX, &out->request_rows, err));
    CK_TRY(ck_option_i64(o, "lookup.cache_ttl_ms", 10000, 0, INT64_MAX / 1000, &out->ttl_ms, err));
    CK_TRY(ck_option_i64(o, "lookup.max_bytes", 64 << 20, 1, INT64_MAX, &out->cache_bytes_max, err));
    CK_TRY(read_who(o, err));
    return ck_on_error_read(o, &out->on_error, &out->dead_letter_table, err);
}

static ck_status secret(const ck_http_table *t, ck_proc *proc, const char *name, ck_arena *a, const char **out,
                        ck_error *err) {
    const char *value = ck_option_text(t->all, name, NULL);
    *out = NULL;
    return value ? ck_secret_resolve(proc, name, value, SECRET_BYTES_MAX, a, out, err) : CK_OK;
}

/* What a secret stands for is seen here first: a line end in it would end the header. */
static ck_status open_headers(const ck_http_table *t, ck_proc *proc, ck_arena *a, ck_http_options *h, ck_error *err) {
    const char **list = ck_arena_array(a, CK_HTTP_HEADERS_MAX + 1, sizeof *list);
    if (!list) return ck_nomem(err, a->mem, sizeof *list);
    h->headers = list;
    list[h->header_count++] = "Content-Type: application/json";
    for (uint32_t i = 0; i < t->all->count; i++) {
        const char *name = t->all->names[i], *value;
        if (strncmp(name, header_prefix, sizeof header_prefix - 1) != 0) continue;
        CK_TRY(ck_secret_resolve(proc, name, t->all->values[i], SECRET_BYTES_MAX, a, &value, err));
        if (strpbrk(value, "\r\n"))
            return ck_fail(err, CK_INVALID, "option '%s' has a line end in it, which a header cannot have", name);
        const char *line = ck_arena_printf(a, "%s: %s", name + sizeof header_prefix - 1, value);
        if (!line) return ck_nomem(err, a->mem, strlen(value));
        if (strncmp(line, "content-type:", 13) == 0)
            list[0] = line;
        else
            list[h->header_count++] = line;
    }
    return CK_OK;
}

ck_status ck_http_table_open(const ck_http_table *t, ck_proc *proc, ck_arena *a, ck_http_client *out, ck_error *err) {
    ck_http_options h = {.for_what = "connector 'http'",
                         .user = ck_option_text(t->all, "user", NULL),
                         .ca = ck_option_text(t->all, "ca", NULL),
                         .timeout_ms = t->timeout_ms,
                         .retries = t->retries,
                         .pause_ms = t->pause_ms,
                         .in_flight_max = (uint32_t)t->in_flight,
                         .answer_bytes_max = CK_HTTP_ANSWER_BYTES_MAX};
    CK_TRY(secret(t, proc, "password", a, &h.password, err));
    CK_TRY(secret(t, proc, "token", a, &h.token, err));
    CK_TRY(open_headers(t, proc, a, &h, err));
    return ck_http_client_init(out, proc, &h, err);
}
