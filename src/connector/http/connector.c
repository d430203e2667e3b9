/* What SQL may say about a table behind HTTP: one that rows are looked up in, or that rows are sent to. */
#include "connector/connectors.h"
#include "connector/http/http_int.h"

static const ck_option_desc http_options[] = {
    {"url", "text", NULL, "where: http:// or https://; {column} stands for the value of a column"},
    {"format", "json", "json", "how rows are written"},
    {"method", "post|put|patch", "post", "writing: how rows are sent"},
    {"rows_per_request", "integer", "1", "writing: 1: an object a request; more: an array of up to so many objects"},
    {"user", "text", NULL, "who we are"},
    {"password", "text", NULL, "the same; ${env:NAME} or ${file:PATH}"},
    {"token", "text", NULL, "instead: a bearer's token; ${env:NAME} or ${file:PATH}"},
    {"ca", "text", NULL, "a file of certificates that may vouch for the server; the system's where not given"},
    {"headers.*", "property", NULL,
     "a header with every request; ${env:NAME} and ${file:PATH} keep secrets out of the script"},
    {"timeout_ms", "integer", "10000", "how long one try may take"},
    {"retries", "integer", "5", "tries after the first: without an answer, or with 408, 425, 429, 500, 502, 503, 504"},
    {"retry_pause_ms", "integer", "200", "before the second try; twice as long before each further one, up to 30 s"},
    {"in_flight", "integer", "16", "requests at once, of each subtask"},
    {"on_error", "fail|skip|dead_letter", "fail",
     "writing: what rows that are refused, or that nobody takes after all tries, do; looking up: the same of an answer "
     "that is none (dead_letter: writing)"},
    {"dead_letter_table", "text", NULL,
     "writing: the table that takes such rows, with columns raw BYTES, split VARCHAR, offset BIGINT, reason VARCHAR"},
    {"lookup.cache_ttl_ms", "integer", "10000",
     "looking up: how long an answer is good, also that there is none; 0: each batch asks anew"},
    {"lookup.max_bytes", "integer", "67108864", "looking up: how much of the answers a subtask keeps"},
};

/* A row that changes is one address: whoever is to be deleted must be said by it, and a row that is gone has no more
 * than its key. */
static ck_status check_key(const ck_table_decl *t, const ck_http_address *a, ck_error *err) {
    uint32_t keys = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        bool is_key = a->pieces[i].text.p != NULL;
        for (uint32_t k = 0; k < t->primary_key_count; k++) is_key |= t->primary_key[k] == a->pieces[i].column;
        if (!is_key)
            return ck_fail(
                err, CK_INVALID,
                "option 'url' has the value of \"%s\" in it, which is not of the PRIMARY KEY: the address of a "
                "row that changes must stay the same",
                t->schema->fields[a->pieces[i].column].name);
    }
    for (uint32_t k = 0; k < t->primary_key_count; k++)
        for (uint32_t i = 0; i < a->count; i++)
            if (!a->pieces[i].text.p && a->pieces[i].column == t->primary_key[k]) {
                keys++;
                break;
            }
    if (keys == t->primary_key_count) return CK_OK;
    return ck_fail(
        err, CK_INVALID,
        "option 'url' must have the columns of the PRIMARY KEY in it, as in 'https://host/customers/{id}': a "
        "row that is gone is deleted there (without a PRIMARY KEY the table takes rows that do not change)");
}

static ck_status http_check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    ck_http_table o;
    ck_http_address address;
    ck_arena a;
    CK_TRY(ck_http_table_read(&t->options, &o, err));
    ck_arena_init(&a, (ck_mem){ck_budget_uncounted(), CK_MEM_PLAN}, CK_PARAMS_BYTES_MAX);
    ck_status s = ck_http_address_parse(&a, o.url, t->schema, &address, err);
    if (s == CK_OK && as_sink && address.columns && o.request_rows > 1)
        s = ck_fail(err, CK_INVALID,
                    "option 'url' has values of a row in it, and 'rows_per_request' puts %lld rows into one request",
                    (long long)o.request_rows);
    if (s == CK_OK && as_sink && t->primary_key_count) s = check_key(t, &address, err);
    if (s == CK_OK && !as_sink && address.columns == 0)
        s = ck_fail(err, CK_INVALID,
                    "option 'url' names no column, as in 'https://host/customers/{id}': rows are looked up by such");
    ck_arena_destroy(&a);
    return s;
}

static bool is_keyed(const ck_table_decl *t) { return t->primary_key_count > 0; }

static bool puts_aside(const ck_table_decl *t) {
    (void)t;
    return true;
}

static ck_guarantee http_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    (void)t;
    if (!checkpoints) {
        *why = "there is no checkpoint directory to continue from";
        return CK_NO_GUARANTEE;
    }
    *why = "requests are answered before a checkpoint counts, and sent again after a restart or a lost answer with the "
           "same Idempotency-Key";
    return CK_AT_LEAST_ONCE;
}

const ck_connector_desc ck_connector_http = {
    .name = "http",
    .options = http_options,
    .option_count = CK_ARRAY_COUNT(http_options),
    .source_type = "source.http",
    .sink_type = "sink.http",
    .lookup_type = "lookup.http",
    .check = http_check,
    .accepts_changes = is_keyed,
    .accepts_upserts = is_keyed,
    .sets_aside = puts_aside,
    .guarantee = http_guarantee,
};

/* ---- a table that is looked up in has no rows to read one after the other ---- */

static ck_status refuse(ck_error *err) {
    return ck_fail(
        err, CK_REFUSED,
        "connector 'http': rows are looked up, not read one after the other: write JOIN table FOR SYSTEM_TIME AS OF "
        "PROCTIME() ON ...");
}

static ck_status create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)spec, (void)mem, (void)self;
    return refuse(err);
}

static ck_status enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    (void)spec, (void)parallelism, (void)out;
    return refuse(err);
}

/* No instance is ever made. */
static ck_status add_split(void *self, const ck_split *split, ck_op_ctx *ctx) {
    (void)self, (void)split;
    return refuse(ctx->error);
}
static ck_status poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    (void)self, (void)result, (void)until_us;
    return refuse(ctx->error);
}
static ck_status snapshot(void *self, ck_split_list *out, ck_op_ctx *ctx) {
    (void)self, (void)out;
    return refuse(ctx->error);
}
static void close(void *self, ck_op_ctx *ctx) { (void)self, (void)ctx; }

static const ck_source_vtbl nothing_vtbl = {
    .struct_bytes = sizeof(ck_source_vtbl), .add_split = add_split, .poll = poll, .snapshot = snapshot, .close = close};
const ck_op_desc ck_op_source_http = {
    .type = "source.http", .source = &nothing_vtbl, .create = create, .enumerate = enumerate};
