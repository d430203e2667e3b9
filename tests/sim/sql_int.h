/* Between sql_case.c and sql_query.c: rows, and the queries over them. */
#ifndef SIM_SQL_INT_H
#define SIM_SQL_INT_H

#include "sql_case.h"

enum { KEYS_MAX = 60, NONE = INT64_MIN };

typedef struct row {
    int64_t i;    /* unique */
    uint32_t key; /* k = key_text(key) */
    int64_t g, v; /* NONE: NULL */
} row;

typedef struct rows {
    row *items;
    size_t count;
} rows;

const char *sql_key_text(uint32_t key);

/* One value of an output row. */
typedef struct cell {
    const char *text; /* NULL: a number */
    int64_t n;        /* NONE: NULL */
} cell;

enum { COLUMNS_MAX = 6 };

/* A sink's query as it is drawn: what goes into the script, and how a row is written. */
typedef struct sql_query {
    sql_case *c;
    sql_sink *sink;
    bool csv;
    const char *columns[COLUMNS_MAX]; /* names */
    const char *types[COLUMNS_MAX];
    uint32_t column_count;
    const char *key;    /* PRIMARY KEY columns of an upsert sink */
    const char *select; /* text */
    size_t line_capacity;
} sql_query;

/* Draws a query, fills the columns and the model's lines. upsert: the sink takes changes. */
void sql_query_draw(sql_query *q, dice *d, const rows *in, bool append_only);

void sql_emit(sql_query *q, const cell *cells);

#endif
