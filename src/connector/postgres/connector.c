/* What SQL may say about a PostgreSQL table, and what such a table can promise. */
#include "connector/connectors.h"

#include "connector/postgres/pg_int.h"

static const ck_option_desc pg_options[] = {
    {"host", "text", NULL, "host name or directory of the socket; PGHOST where not given"},
    {"port", "integer", NULL, "PGPORT, or 5432"},
    {"database", "text", NULL, "PGDATABASE, or the user's name"},
    {"user", "text", NULL, "PGUSER, or the system's user"},
    {"password", "text", NULL,
     "'${env:NAME}' or '${file:PATH}', never the word itself; PGPASSFILE, ~/.pgpass or PGPASSWORD where not given"},
    {"table", "text", NULL,
     "the table's name on the server, with its schema where need be; this table's name where not given"},
    {"mode", "scan|cdc", "scan",
     "reading: the rows there are, then the end; or the rows and then every change of them"},
    {"publication", "text", NULL, "reading, cdc: the publication on the server that has the table"},
    {"slot", "text", NULL, "reading, cdc: the replication slot's name; one of the job's own where not given"},
    {"snapshot", "initial|never", "initial", "reading, cdc: the rows there are first, or only changes from now on"},
    {"strict", "boolean", "false", "reading: check the type of every column, also of those the query does not need"},
    {"on_error", "fail|skip|dead_letter", "fail",
     "what a row that does not fit the table does; writing: one that the server does not take"},
    {"dead_letter_table", "text", NULL,
     "the table that takes such rows, with columns raw BYTES, split VARCHAR, offset BIGINT, reason VARCHAR; writing "
     "exactly once: a table of the same database"},
    {"delivery", "exactly_once|at_least_once", "exactly_once",
     "writing: rows appear with their checkpoint, in one transaction with its token, or as they come"},
    {"token_table", "text", "clink_tokens",
     "writing exactly once: the table on the server that keeps the tokens; made where it is not"},
    {"batch_bytes", "integer", "1048576", "writing: how much is sent in one statement"},
    {"retry_ms", "integer", "120000", "writing: how long a server that is away is waited for"},
    {"lookup.cache_ttl_ms", "integer", "10000",
     "AS OF PROCTIME(): how long an answer of the server is good, also that there is no row; 0: it is asked anew"},
    {"lookup.max_bytes", "integer", "67108864", "AS OF PROCTIME(): how much of the answers a subtask keeps"},
    {"timeout_ms", "integer", "60000", "how long a connection and an answer of the server may take"},
    {"properties.*", "text", NULL,
     "a parameter of the client library, as properties.sslmode; ${env:NAME} and ${file:PATH} keep secrets out of the "
     "script"},
};

static ck_status pg_check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    ck_pg_options o;
    CK_TRY(ck_pg_options_read(&t->options, &o, err));
    for (uint32_t i = 0; i < t->schema->field_count; i++)
        if (!ck_pg_has_type(t->schema->fields[i].type))
            return ck_fail(err, CK_INVALID,
                           "column \"%s\" has a type that connector 'postgres' does not %s; declare it VARCHAR, the "
                           "text the server has for it",
                           t->schema->fields[i].name, as_sink ? "write" : "read");
    return CK_OK;
}

static bool follows(const ck_table_decl *t) {
    const char *mode = ck_table_decl_option(t, "mode");
    return mode && strcmp(mode, "cdc") == 0;
}
static bool ends(const ck_table_decl *t) { return !follows(t); }

static bool is_keyed(const ck_table_decl *t) { return t->primary_key_count > 0; }

static bool puts_aside(const ck_table_decl *t) {
    (void)t;
    return true;
}

static bool is_same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* Exactly once, what the server refuses is known when the checkpoint is committed: in that transaction the letters are
 * written, too. */
static ck_status pg_letters_to(const ck_table_decl *t, const char *connector, const ck_table_decl *to, bool *own,
                               ck_error *err) {
    ck_pg_options o, l;
    *own = false;
    CK_TRY(ck_pg_options_read(&t->options, &o, err));
    if (!o.exactly_once) return CK_OK;
    if (strcmp(connector, "postgres") == 0) {
        CK_TRY(ck_pg_options_read(&to->options, &l, err));
        *own = is_same(o.host, l.host) && is_same(o.port, l.port) && is_same(o.database, l.database);
    }
    if (*own) return CK_OK;
    return ck_fail(err, CK_INVALID,
                   "dead_letter_table = '%s' must be a table of connector 'postgres' with the same 'host', 'port' and "
                   "'database': exactly once, what the server refuses is written in the transaction of the rows (with "
                   "delivery = 'at_least_once' any table takes letters)",
                   to->name);
}

static ck_guarantee pg_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    ck_pg_options o;
    if (!checkpoints) {
        *why = "there is no checkpoint directory to continue from";
        return CK_NO_GUARANTEE;
    }
    if (ck_pg_options_read(&t->options, &o, NULL) == CK_OK && o.exactly_once) {
        *why = "a checkpoint's rows and its token are one transaction of the server";
        return CK_EXACTLY_ONCE;
    }
    *why = is_keyed(t) ? "rows are put before a checkpoint has them; the last one of a key is right"
                       : "rows are written before a checkpoint has them, and again after a restart";
    return CK_AT_LEAST_ONCE;
}

const ck_connector_desc ck_connector_postgres = {
    .name = "postgres",
    .options = pg_options,
    .option_count = CK_ARRAY_COUNT(pg_options),
    .source_type = "source.postgres",
    .sink_type = "sink.postgres",
    .lookup_type = "lookup.postgres",
    .check = pg_check,
    .bounded = ends,
    .changes = follows,
    .accepts_changes = is_keyed,
    .accepts_upserts = is_keyed,
    .guarantee = pg_guarantee,
    .sets_aside = puts_aside,
    .letters_to = pg_letters_to,
};
