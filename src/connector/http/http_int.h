/* The HTTP connector from the inside: options, addresses made of a row's values. */
#ifndef CK_CONNECTOR_HTTP_HTTP_INT_H
#define CK_CONNECTOR_HTTP_HTTP_INT_H

#include "net/http_client.h"
#include "connector/sink_rejects.h"

enum { CK_HTTP_HEADERS_MAX = 32, CK_HTTP_ANSWER_BYTES_MAX = 16 << 20 };

typedef struct ck_http_table {
    const char *url; /* with {column} in it */
    const char *method;
    int64_t timeout_ms, retries, pause_ms, in_flight;
    ck_on_error on_error;
    const char *dead_letter_table;
    /* writing */
    int64_t request_rows;
    /* looking up */
    int64_t ttl_ms, cache_bytes_max;
    const ck_table_options *all;
} ck_http_table;

CK_NODISCARD ck_status ck_http_table_read(const ck_table_options *o, ck_http_table *out, ck_error *err);
/* A client of the table's options, secrets resolved; a first look at files. Blocks. */
CK_NODISCARD ck_status ck_http_table_open(const ck_http_table *t, ck_proc *proc, ck_arena *a, ck_http_client *out,
                                          ck_error *err);

/* ---- addresses (address.c) ---- */

/* A piece of an address: text, or the value of a column. */
typedef struct ck_http_piece {
    ck_view text; /* p NULL: the column's value */
    uint32_t column;
} ck_http_piece;

typedef struct ck_http_address {
    const ck_http_piece *pieces;
    uint32_t count, columns; /* columns: of the pieces, those that are values */
} ck_http_address;

/* CK_INVALID: a brace without its other one, no column of that name, or one that has no text. */
CK_NODISCARD ck_status ck_http_address_parse(ck_arena *a, const char *url, const ck_schema *schema,
                                             ck_http_address *out, ck_error *err);
/* Appends the address; values stand percent-encoded, NULL as nothing. columns[i]: where column i of the schema is. */
CK_NODISCARD ck_status ck_http_address_print(const ck_http_address *p, const ck_schema *schema,
                                             ck_column *const *columns, uint32_t row, ck_bytes *scratch, ck_bytes *out);

#endif
