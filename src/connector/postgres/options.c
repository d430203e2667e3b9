/* Options of a table of connector 'postgres'. */
#include "connector/postgres/pg_int.h"
#include "connector/sink_rejects.h"

static bool is_reference(const char *v) {
    size_t n = strlen(v);
    return n > 7 && (strncmp(v, "${env:", 6) == 0 || strncmp(v, "${file:", 7) == 0) && v[n - 1] == '}';
}

/* A script is kept in the checkpoint directory and shown by EXPLAIN: a secret is named in it, not written. */
static ck_status check_secrets(const ck_table_options *o, ck_error *err) {
    static const char prefix[] = "properties.";
    for (uint32_t i = 0; i < o->count; i++) {
        const char *name = o->names[i];
        bool secret = strcmp(name, "password") == 0;
        if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
            const char *property = name + sizeof prefix - 1;
            if (strcmp(property, "password") == 0 || strcmp(property, "dbname") == 0 || strcmp(property, "host") == 0 ||
                strcmp(property, "port") == 0 || strcmp(property, "user") == 0 || strcmp(property, "options") == 0 ||
                strcmp(property, "replication") == 0 || strcmp(property, "client_encoding") == 0)
                return ck_fail(err, CK_INVALID, "option '%s' cannot be set: the table's own options say it", name);
            secret = strcmp(property, "sslpassword") == 0;
        }
        if (secret && !is_reference(o->values[i]))
            return ck_fail(
                err, CK_INVALID,
                "option '%s' must be '${env:NAME}' or '${file:PATH}': a script is kept with its checkpoints, "
                "and a secret must not stand in it (without the option PGPASSFILE and PGPASSWORD count)",
                name);
    }
    return CK_OK;
}

ck_status ck_pg_options_read(const ck_table_options *o, ck_pg_options *out, ck_error *err) {
    *out = (ck_pg_options){
        .host = ck_option_text(o, "host", NULL),
        .port = ck_option_text(o, "port", NULL),
        .database = ck_option_text(o, "database", NULL),
        .user = ck_option_text(o, "user", NULL),
        .password = ck_option_text(o, "password", NULL),
        .table = ck_option_text(o, "table", NULL),
        .slot = ck_option_text(o, "slot", NULL),
        .publication = ck_option_text(o, "publication", NULL),
        .token_table = ck_option_text(o, "token_table", "clink_tokens"),
        .all = o,
    };
    int64_t port;
    CK_TRY(ck_option_i64(o, "port", 5432, 1, 65535, &port, err));
    CK_TRY(ck_option_i64(o, "timeout_ms", 60000, 1, 3600000, &out->timeout_ms, err));
    CK_TRY(ck_option_bool(o, "strict", false, &out->strict, err));
    if (out->table && !out->table[0]) return ck_fail(err, CK_INVALID, "option 'table' is empty");
    const char *mode = ck_option_text(o, "mode", "scan"), *snapshot = ck_option_text(o, "snapshot", "initial");
    out->cdc = strcmp(mode, "cdc") == 0;
    if (!out->cdc && strcmp(mode, "scan") != 0)
        return ck_fail(err, CK_INVALID, "option 'mode' is '%s', which is neither scan nor cdc", mode);
    out->no_snapshot = strcmp(snapshot, "never") == 0;
    if (!out->no_snapshot && strcmp(snapshot, "initial") != 0)
        return ck_fail(err, CK_INVALID, "option 'snapshot' is '%s', which is neither initial nor never", snapshot);
    if (!out->cdc && (out->slot || out->publication || out->no_snapshot))
        return ck_fail(err, CK_INVALID, "the options 'slot', 'publication' and 'snapshot' are of mode = 'cdc'");
    if (out->cdc && !out->publication)
        return ck_fail(err, CK_INVALID,
                       "mode = 'cdc' needs the option 'publication' (CREATE PUBLICATION name FOR TABLE ... on the "
                       "server)");
    for (const char *p = out->slot; p && (*p || p == out->slot); p++)
        if (!*p || !strchr("abcdefghijklmnopqrstuvwxyz0123456789_", *p) || p - out->slot >= 63)
            return ck_fail(err, CK_INVALID,
                           "option 'slot' is '%s'; a slot's name has lower-case letters, digits and _, 63 at "
                           "most",
                           out->slot);
    const char *delivery = ck_option_text(o, "delivery", "exactly_once");
    out->exactly_once = strcmp(delivery, "exactly_once") == 0;
    if (!out->exactly_once && strcmp(delivery, "at_least_once") != 0)
        return ck_fail(err, CK_INVALID, "option 'delivery' is '%s', which is neither exactly_once nor at_least_once",
                       delivery);
    CK_TRY(ck_option_i64(o, "batch_bytes", 1 << 20, 1, 1 << 28, &out->batch_bytes, err));
    CK_TRY(ck_option_i64(o, "retry_ms", 120000, 0, INT64_MAX / 1000, &out->retry_ms, err));
    CK_TRY(check_secrets(o, err));
    out->on_error_is_given = ck_option_text(o, "on_error", NULL) != NULL;
    return ck_on_error_read(o, &out->on_error, &out->dead_letter_table, err);
}
