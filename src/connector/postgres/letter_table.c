/* Dead letters of rows that are sent when their checkpoint is committed: the server says then what it does not take,
 * and the letter is a row of a table of the same database, in the same transaction. It stands or falls with the token:
 * what is repeated makes no second one. See pg_int.h. */
#include <yyjson.h>

#include "connector/postgres/pg_int.h"

static const ck_type bytes_type = {.kind = CK_TYPE_BYTES}, text_type = {.kind = CK_TYPE_VARCHAR},
                     offset_type = {.kind = CK_TYPE_BIGINT};
static const ck_field letter_fields[] = {{"raw", &bytes_type, true},
                                         {"split", &text_type, true},
                                         {"offset", &offset_type, true},
                                         {"reason", &text_type, true}};
static const ck_schema letter_schema = {letter_fields, CK_ARRAY_COUNT(letter_fields)};

ck_status ck_pg_letter_table_read(ck_arena *a, struct yyjson_val *params, const char *rows_of, ck_pg_letter_table *out,
                                  ck_error *err) {
    *out = (ck_pg_letter_table){0};
    yyjson_val *letters = yyjson_obj_get(params, "letters");
    const char *name = yyjson_get_str(yyjson_obj_get(letters, "table"));
    const char *remote = yyjson_get_str(yyjson_obj_get(yyjson_obj_get(letters, "options"), "table"));
    if (!name) return CK_OK;
    out->name = ck_arena_strdup(a, name);
    out->remote = ck_arena_strdup(a, remote ? remote : name);
    out->split = ck_arena_printf(a, "table \"%s\"", rows_of ? rows_of : "");
    return out->name && out->remote && out->split ? CK_OK : ck_nomem(err, a->mem, strlen(name));
}

static ck_status open_table(ck_pg *c, ck_arena *a, ck_pg_letter_table *t, ck_error *err) {
    ck_pg_table remote;
    PGresult *r;
    CK_TRY(ck_pg_table_read(c, a, t->remote, &letter_schema, NULL, true, &remote, err));
    CK_TRY(ck_pg_query(c, "SELECT has_table_privilege($1, 'INSERT')", 1, &remote.name, &r, err));
    bool may = c->lib->PQgetvalue(r, 0, 0)[0] == 't';
    c->lib->PQclear(r);
    if (!may) return ck_fail(err, CK_REFUSED, "this user may not write %s on the server", remote.shown);
    t->put = ck_arena_printf(
        a,
        "WITH i AS (INSERT INTO %s (%s, %s, %s) VALUES ($1::bytea, $2, $3) RETURNING 1) SELECT count(*) "
        "FROM i",
        remote.name, remote.columns[0].ident, remote.columns[1].ident, remote.columns[3].ident);
    return t->put ? CK_OK : ck_nomem(err, a->mem, strlen(remote.name));
}

ck_status ck_pg_letter_table_open(ck_pg *c, ck_arena *a, ck_pg_letter_table *t, ck_error *err) {
    if (!t->name || t->put) return CK_OK;
    ck_status s = open_table(c, a, t, err);
    if (s != CK_OK) ck_error_prefix(err, "dead_letter_table '%s': ", t->name);
    return s;
}

typedef struct putting {
    ck_pg *c;
    const ck_pg_letter_table *table;
    ck_bytes raw; /* the row as the text of a bytea */
    uint64_t count;
} putting;

static ck_status put_letter(void *arg, ck_view row, const char *reason, ck_error *err) {
    static const char hex[] = "0123456789abcdef";
    putting *p = arg;
    ck_bytes_clear(&p->raw);
    ck_status s = ck_bytes_reserve(&p->raw, 2 * row.n + 3);
    if (s == CK_OK) s = ck_bytes_str(&p->raw, "\\x");
    for (size_t i = 0; s == CK_OK && i < row.n; i++) {
        s = ck_bytes_char(&p->raw, hex[(uint8_t)row.p[i] >> 4]);
        if (s == CK_OK) s = ck_bytes_char(&p->raw, hex[(uint8_t)row.p[i] & 15]);
    }
    if (s == CK_OK) s = ck_bytes_terminate(&p->raw);
    if (s != CK_OK) return ck_nomem(err, p->raw.mem, 2 * row.n);
    const char *values[] = {p->raw.p, p->table->split, reason};
    PGresult *r;
    s = ck_pg_query(p->c, p->table->put, 3, values, &r, err);
    if (s != CK_OK) {
        ck_error_prefix(err, "dead_letter_table '%s': ", p->table->name);
        return s;
    }
    p->c->lib->PQclear(r);
    p->count++;
    return CK_OK;
}

ck_status ck_pg_letter_table_put(ck_pg *c, ck_mem mem, const ck_pg_letter_table *t, const ck_bytes *refused,
                                 ck_view rows, uint64_t *count, ck_error *err) {
    putting p = {.c = c, .table = t};
    ck_bytes_init(&p.raw, mem, SIZE_MAX);
    ck_status s = ck_pg_refused_each(refused, rows, put_letter, &p, err);
    ck_bytes_destroy(&p.raw);
    *count = p.count;
    return s;
}
