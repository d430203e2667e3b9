/* The PostgreSQL connector from the inside: the library's functions, options, a connection, what a table is on the
 * server, values as text. */
#ifndef CK_CONNECTOR_POSTGRES_PG_INT_H
#define CK_CONNECTOR_POSTGRES_PG_INT_H

#include <postgresql/libpq-fe.h>

#include "connector/sink_rejects.h"
#include "connector/table.h"
#include "format/encoder.h"
#include "os/io.h"
#include "os/modules.h"

/* ---- the library, opened on first use ---- */

#define CK_PG_FUNCTIONS(X)                                                                                             \
    X(PQconnectStartParams)                                                                                            \
    X(PQconnectPoll)                                                                                                   \
    X(PQstatus)                                                                                                        \
    X(PQfinish)                                                                                                        \
    X(PQsocket)                                                                                                        \
    X(PQerrorMessage)                                                                                                  \
    X(PQsetNoticeProcessor)                                                                                            \
    X(PQsendQuery)                                                                                                     \
    X(PQsendQueryParams)                                                                                               \
    X(PQconsumeInput)                                                                                                  \
    X(PQisBusy)                                                                                                        \
    X(PQflush)                                                                                                         \
    X(PQsetnonblocking)                                                                                                \
    X(PQgetResult)                                                                                                     \
    X(PQresultStatus)                                                                                                  \
    X(PQresultErrorField)                                                                                              \
    X(PQclear)                                                                                                         \
    X(PQntuples)                                                                                                       \
    X(PQgetvalue)                                                                                                      \
    X(PQgetlength)                                                                                                     \
    X(PQgetisnull)                                                                                                     \
    X(PQcmdTuples)                                                                                                     \
    X(PQgetCopyData)                                                                                                   \
    X(PQputCopyData)                                                                                                   \
    X(PQputCopyEnd)                                                                                                    \
    X(PQfreemem)                                                                                                       \
    X(PQgetCancel)                                                                                                     \
    X(PQcancel)                                                                                                        \
    X(PQfreeCancel)                                                                                                    \
    X(PQtransactionStatus)

typedef struct ck_pg_lib {
    CK_MODULE_TABLE(CK_PG_FUNCTIONS)
} ck_pg_lib;

/* ---- options (options.c) ---- */

typedef struct ck_pg_options {
    const char *host, *port, *database, *user; /* NULL: the library's own default (PGHOST ...) */
    const char *password;                      /* "${env:NAME}" or "${file:PATH}", never the word itself; NULL: the
                                                  library's own ways (PGPASSFILE, PGPASSWORD) */
    const char *table;                         /* as the server's SQL names it; NULL: as the script does */
    int64_t timeout_ms;                        /* for a connection and for an answer */
    /* reading */
    bool cdc;         /* follows the table's changes */
    bool no_snapshot; /* cdc: only changes from now on */
    const char *slot; /* cdc: NULL: one of the job's own */
    const char *publication;
    bool strict;
    ck_on_error on_error;
    bool on_error_is_given;
    const char *dead_letter_table;
    /* writing */
    bool exactly_once; /* where checkpoints are on */
    const char *token_table;
    int64_t batch_bytes, retry_ms;
    const ck_table_options *all;
} ck_pg_options;
CK_NODISCARD ck_status ck_pg_options_read(const ck_table_options *o, ck_pg_options *out, ck_error *err);

/* ---- a connection (client.c) ---- */

/* Lives where it was made; one thread at a time. Every call here blocks, and none for longer than timeout_ms. */
typedef struct ck_pg {
    ck_proc *proc;
    const ck_pg_lib *lib;
    PGconn *conn; /* NULL: none */
    const ck_pg_options *options;
} ck_pg;

/* replication: for the commands of streaming replication too. */
CK_NODISCARD ck_status ck_pg_connect(ck_pg *c, ck_proc *proc, const ck_pg_options *o, bool replication, ck_error *err);
void ck_pg_close(ck_pg *c); /* safe on zero and twice; a query under way is left to the server to notice */
static inline bool ck_pg_is_open(const ck_pg *c) { return c->conn != NULL; }

/* Runs commands (several, with ';', are one) and drops what they answer. */
CK_NODISCARD ck_status ck_pg_run(ck_pg *c, const char *sql, ck_error *err);
/* One command with text parameters; *out is the caller's to clear with lib->PQclear, NULL on failure. */
CK_NODISCARD ck_status ck_pg_query(ck_pg *c, const char *sql, int count, const char *const *values, PGresult **out,
                                   ck_error *err);
/* Runs commands up to the one that is answered with rows of COPY (status PGRES_COPY_OUT, PGRES_COPY_IN or
 * PGRES_COPY_BOTH). */
CK_NODISCARD ck_status ck_pg_begin_copy(ck_pg *c, const char *sql, ExecStatusType status, ck_error *err);
/* Sends n bytes, waits while the server takes none. */
CK_NODISCARD ck_status ck_pg_put_copy(ck_pg *c, const char *p, size_t n, ck_error *err);
CK_NODISCARD ck_status ck_pg_end_copy(ck_pg *c, ck_error *err); /* and takes the answer */
/* Behind the last row of COPY ... TO STDOUT: the answer. */
CK_NODISCARD ck_status ck_pg_end_rows(ck_pg *c, ck_error *err);
/* Waits until there is something to read, at most ms. */
void ck_pg_wait(ck_pg *c, int64_t ms);
/* What a command was answered with that is no success: "what: sentence". r may be NULL: the connection's own trouble.
 * CK_IO with err->retriable: waiting may help; CK_DATA: the rows; CK_REFUSED: who we are; CK_INVALID: the rest. */
ck_status ck_pg_fail(ck_pg *c, const PGresult *r, const char *what, ck_error *err);
const char *ck_pg_where(const ck_pg_options *o); /* host and port for a sentence: static text or the options' */

/* "name", with its quotes doubled; 'text'. NULL without memory. */
const char *ck_pg_ident(ck_arena *a, const char *name);
const char *ck_pg_literal(ck_arena *a, const char *text);

/* ---- what a table is on the server (catalog.c) ---- */

typedef struct ck_pg_column {
    const char *ident; /* quoted */
    const char *type;  /* "numeric(10,2)", as the server says it */
    const char *bare;  /* the same without what limits it: "numeric" */
    uint32_t type_oid;
    const char *base; /* "numeric": the type itself, a domain's base; of an array its element's */
    bool array, not_null, generated;
    int32_t precision, scale; /* numeric: -1 = any; timestamp and time: digits of a second */
} ck_pg_column;

typedef struct ck_pg_table {
    const char *name;  /* "schema"."table", quoted */
    const char *shown; /* for sentences */
    const char *schema_bare, *name_bare;
    uint32_t oid;
    char kind;             /* pg_class.relkind */
    char replica_identity; /* pg_class.relreplident */
    int64_t bytes;
    ck_pg_column *columns; /* one for each column of the declared schema; ident NULL where it was not asked for */
} ck_pg_table;

/* What of the server's table the declared columns are; wanted (a flag a column, NULL: all). CK_NOTFOUND: no such table
 * or column. CK_INVALID names a column whose types do not fit together, for_writing or for reading. */
CK_NODISCARD ck_status ck_pg_table_read(ck_pg *c, ck_arena *a, const char *table, const ck_schema *schema,
                                        const bool *wanted, bool for_writing, ck_pg_table *out, ck_error *err);
/* Until the transaction ends nobody empties, rewrites or drops the table or a part of it, which a snapshot from before
 * would see too; rows may change. Waits for whoever does so now. */
CK_NODISCARD ck_status ck_pg_table_lock(ck_pg *c, ck_arena *a, const ck_pg_table *t, ck_error *err);
/* Whether a key's columns (of the schema) are one unique index of the table without conditions. */
CK_NODISCARD ck_status ck_pg_key_is_unique(ck_pg *c, ck_arena *a, const ck_pg_table *t, const uint32_t *key,
                                           uint32_t count, bool *unique, ck_error *err);

/* ---- values (value.c) ---- */

/* Appends values the server wrote as text, with the settings ck_pg_connect asks for. */
typedef struct ck_pg_values {
    ck_bytes scratch, element;
    char why[256];
} ck_pg_values;
void ck_pg_values_init(ck_pg_values *v, ck_mem mem);
void ck_pg_values_destroy(ck_pg_values *v);
/* text NULL (p): the value is NULL. in: the buffer text stands in, NULL: it is copied. CK_DATA: v->why says why it is
 * not a value of the field. CK_NOMEM. */
CK_NODISCARD ck_status ck_pg_build(ck_pg_values *v, const ck_field *f, ck_view text, ck_buffer *in,
                                   ck_column_builder *b);
/* Whether there is a way for this type; reading and writing. */
bool ck_pg_has_type(const ck_type *t);

/* Appends live row `row` of a column as the text of COPY: tab, newline and backslash escaped, NULL is \N. CK_DATA:
 * v->why says what the server has no text for. */
CK_NODISCARD ck_status ck_pg_print_copy(ck_pg_values *v, const ck_type *t, const ck_column *c, uint32_t row,
                                        ck_bytes *out);
/* The same bare, for a parameter: NULL is the caller's. */
CK_NODISCARD ck_status ck_pg_print(ck_pg_values *v, const ck_type *t, const ck_column *c, uint32_t row, ck_bytes *out);

/* ---- keys that are looked up (lookup_keys.c) ---- */

/* array: the text of one parameter, {"...",NULL,...}, of `count` elements; those the server cannot read as `type`
 * become NULL. Asks the server again and again; a is for the while. CK_NOMEM, or what ck_pg_query fails with. */
CK_NODISCARD ck_status ck_pg_blank_unfit(ck_pg *c, ck_arena *a, const char *type, uint32_t count, ck_bytes *array,
                                         ck_error *err);

/* ---- rows that do not fit (bad_row.c) ---- */

typedef struct ck_pg_bad_rows {
    ck_on_error on_error;
    bool on_error_is_given;
    ck_dead_letters letters;
    uint64_t count; /* since the last ck_pg_bad_rows_emit */
} ck_pg_bad_rows;
/* CK_OK: the row is left out. CK_DATA: the job ends with a sentence. CK_FULL: emit first, and come again. */
CK_NODISCARD ck_status ck_pg_bad_row(ck_pg_bad_rows *b, const char *table, const char *split, const char *where,
                                     uint64_t offset, ck_view raw, const char *column, const char *why, ck_error *err);
CK_NODISCARD ck_status ck_pg_bad_rows_emit(ck_pg_bad_rows *b, ck_op_ctx *ctx);

/* ---- rows to the server (writer.c) ---- */

/* Lines of COPY for one table, in a transaction: straight into it, or where it has a key through a temporary table
 * whose latest row of each key counts. Lives where it was made; one thread at a time; its calls block as ck_pg's do. */
typedef struct ck_pg_writer {
    ck_pg pg;
    ck_mem mem;
    ck_arena arena; /* the statements */
    const ck_pg_options *options;
    const ck_schema *schema;
    const uint32_t *key;
    uint32_t key_count;
    const char *table;      /* its name in the script */
    const char *on_connect; /* a command for each new connection; NULL: none */
    ck_pg_table remote;
    const char *make_stage, *copy, *put, *erase; /* statements; put and erase NULL without a key */
    bool ready;                                  /* connected, staged */
    bool skips;                                  /* on_error: rows the server does not take are left out */
    ck_bytes *refused;                           /* NULL: such rows are named in the log; letters.c */
    uint64_t skipped;                            /* rows, since the caller set it to zero */
    uint64_t stage_at;                           /* lines put in this transaction: they are numbered through */
} ck_pg_writer;
void ck_pg_writer_init(ck_pg_writer *w, ck_proc *proc, ck_mem mem, const ck_pg_options *o, const ck_sink_table *t);
void ck_pg_writer_destroy(ck_pg_writer *w);
/* Connects where it is not, and looks at the table: its columns, key, and whether this user may write it. */
CK_NODISCARD ck_status ck_pg_writer_open(ck_pg_writer *w, ck_error *err);
/* The same, and begins a transaction. */
CK_NODISCARD ck_status ck_pg_writer_begin(ck_pg_writer *w, ck_error *err);
/* Whole lines (ck_pg_line). CK_DATA: the server does not take a row of them, which is named. */
CK_NODISCARD ck_status ck_pg_writer_put(ck_pg_writer *w, ck_view lines, ck_error *err);
CK_NODISCARD ck_status ck_pg_writer_commit(ck_pg_writer *w, ck_error *err);
void ck_pg_writer_abort(ck_pg_writer *w); /* a transaction under way is undone, by a new connection where need be */

/* Live row `row` as a line: the columns, and with a key whether the row is gone. */
CK_NODISCARD ck_status ck_pg_line(ck_pg_values *v, const ck_sink_table *t, const ck_batch *b, uint32_t row, bool gone,
                                  ck_bytes *out);

/* ---- rows the server refuses, for the dead letters (letters.c) ---- */

/* What the rows under way are, until it is known whether the server takes them: as JSON, a line for each line of COPY.
 * Thread: the sink's subtask; refused is the I/O job's while one runs. Off (every call does nothing) but where on_error
 * is dead_letter. */
typedef struct ck_pg_letters {
    bool on;
    ck_mem mem;
    ck_sink_rejects rejects;
    ck_encoder *encoder;
    size_t *ends;               /* of rows in batch: CK_BATCH_ROWS_MAX */
    ck_bytes batch;             /* all live rows of the batch in hand */
    ck_bytes gathered, sending; /* as the sink's lines */
    ck_bytes refused;           /* u32 LE line of sending, from 0 on and in order, u32 LE bytes of the reason, reason */
} ck_pg_letters;
CK_NODISCARD ck_status ck_pg_letters_init(ck_pg_letters *l, const ck_pg_options *o, const ck_sink_table *t, ck_arena *a,
                                          ck_mem mem, uint32_t batch_rows, ck_error *err);
void ck_pg_letters_destroy(ck_pg_letters *l); /* safe on zero */
CK_NODISCARD ck_status ck_pg_letters_begin(ck_pg_letters *l, const ck_batch *b, const uint8_t *kinds);
ck_view ck_pg_letters_row(const ck_pg_letters *l, uint32_t k); /* its JSON and the line's end; nothing where off */
CK_NODISCARD ck_status ck_pg_letters_keep(ck_pg_letters *l, uint32_t k); /* live row k has become a line */
/* Live row k has not: the server has no text for it. Also where on_error is skip. */
CK_NODISCARD ck_status ck_pg_letters_reject(ck_pg_letters *l, uint32_t k, const char *why, ck_op_ctx *ctx);
void ck_pg_letters_send(ck_pg_letters *l); /* the gathered lines are those to be sent */
/* They are committed, but for those refused, which are rejected. */
CK_NODISCARD ck_status ck_pg_letters_sent(ck_pg_letters *l, ck_op_ctx *ctx);

/* Line `line` was refused: into ck_pg_letters.refused, on the job's thread. */
CK_NODISCARD ck_status ck_pg_refused_add(ck_bytes *refused, uint32_t line, const char *reason);
/* Each of them with its row; rows: all lines, as JSON. */
typedef ck_status (*ck_pg_refused_row)(void *arg, ck_view row, const char *reason, ck_error *err);
CK_NODISCARD ck_status ck_pg_refused_each(const ck_bytes *refused, ck_view rows, ck_pg_refused_row take, void *arg,
                                          ck_error *err);

/* ---- the table of letters that a committer writes (letter_table.c) ---- */

/* Letters of rows that are committed go into a table of the same database in the transaction of the rows. */
typedef struct ck_pg_letter_table {
    const char *name;   /* in the script; NULL: none */
    const char *remote; /* on the server, as its SQL names it */
    const char *split;  /* in each letter: which table's row it was */
    const char *put;    /* the statement; NULL: the server has not been looked at */
} ck_pg_letter_table;
/* From the sink's parameters; rows_of: the script's name of the table that is written. */
CK_NODISCARD ck_status ck_pg_letter_table_read(ck_arena *a, struct yyjson_val *params, const char *rows_of,
                                               ck_pg_letter_table *out, ck_error *err);
/* Whether it is there, with the columns of letters, and this user may write it. Does nothing where there is none. */
CK_NODISCARD ck_status ck_pg_letter_table_open(ck_pg *c, ck_arena *a, ck_pg_letter_table *t, ck_error *err);
/* In the transaction: a letter for each refused row (ck_pg_refused_each). *count: how many. */
CK_NODISCARD ck_status ck_pg_letter_table_put(ck_pg *c, ck_mem mem, const ck_pg_letter_table *t,
                                              const ck_bytes *refused, ck_view rows, uint64_t *count, ck_error *err);

/* ---- exactly once (committer.c) ---- */

CK_NODISCARD ck_status ck_pg_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
extern const ck_committer_vtbl ck_pg_committer_vtbl;

/* ---- lines of COPY (lines.c) ---- */

/* The field at *at of a line of n bytes, up to its tab or the line's end, which *at goes behind. p NULL: it is NULL.
 * *in: it stands in the line, not in unescaped. CK_NOMEM. */
CK_NODISCARD ck_status ck_pg_copy_field(ck_bytes *unescaped, const char *line, size_t n, size_t *at, ck_view *out,
                                        bool *in);

/* What rows are made with. */
typedef struct ck_pg_row_builder {
    ck_pg_values *values;
    ck_bytes *unescaped;
    const ck_schema *schema;
    const bool *read; /* a column each: it stands in the line */
    ck_buffer *in;    /* where the line stands */
    ck_batch_builder *rows;
} ck_pg_row_builder;
/* The columns that are read, from *at on, as one more row. CK_DATA: *column does not fit, and to->values says why: undo
 * the row. CK_NOMEM. */
CK_NODISCARD ck_status ck_pg_copy_row(const ck_pg_row_builder *to, const char *line, size_t n, size_t at,
                                      const char **column);

/* ---- splits of a scan (splits.c, scan.c) ---- */

CK_NODISCARD ck_status ck_pg_scan_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
extern const ck_source_vtbl ck_pg_scan_vtbl; /* an instance of either mode begins with the pointer to its own */

/* Pages of one table on the server. As JSON in ck_split.spec. */
typedef struct ck_pg_split {
    const char *table;    /* quoted, with its schema */
    const char *snapshot; /* of the transaction that all splits are read in */
    uint32_t from, to;    /* pages; to UINT32_MAX: as many as there are */
    uint32_t block, item; /* the last row that was emitted; 0, 0: none (rows count from 1) */
    bool finished;
    bool stored;     /* it was in a checkpoint: the snapshot may be gone */
    int64_t time_us; /* the greatest event time before; INT64_MIN: none */
} ck_pg_split;
CK_NODISCARD ck_status ck_pg_split_print(ck_arena *a, const ck_pg_split *s, const char **out, ck_error *err);
CK_NODISCARD ck_status ck_pg_split_parse(ck_arena *a, const char *spec, ck_pg_split *out, ck_error *err);
CK_NODISCARD ck_status ck_pg_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err);
/* Columns a scan reads: what is wanted, what is checked; all with strict. */
const bool *ck_pg_columns_read(ck_arena *a, const ck_source_table *t, const ck_pg_options *o);

#endif
