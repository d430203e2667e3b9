/* Messages of PostgreSQL's logical replication, protocol version 1 of the plugin pgoutput: chapter "Logical Replication
 * Message Formats" of its manual. All numbers are big-endian. Pure functions over bytes of the server; any thread. */
#ifndef CK_CONNECTOR_POSTGRES_PGOUTPUT_H
#define CK_CONNECTOR_POSTGRES_PGOUTPUT_H

#include "base/cursor.h"
#include "base/status.h"

typedef enum ck_pgo_kind {
    CK_PGO_BEGIN = 'B',
    CK_PGO_COMMIT = 'C',
    CK_PGO_RELATION = 'R',
    CK_PGO_INSERT = 'I',
    CK_PGO_UPDATE = 'U',
    CK_PGO_DELETE = 'D',
    CK_PGO_TRUNCATE = 'T',
    CK_PGO_OTHER = 0, /* origins, types, messages: nothing to us */
} ck_pgo_kind;

typedef struct ck_pgo_message {
    ck_pgo_kind kind;
    uint64_t lsn;               /* begin: of the commit; commit: behind it, where the next transaction may begin */
    uint32_t relation;          /* relation and changes */
    ck_view schema, name;       /* relation: of the table; bare */
    char identity;              /* relation: 'f': old rows come whole */
    char old_kind;              /* 'O': the whole old row; 'K': its key; 0: none */
    uint32_t count;             /* truncate: relations */
    ck_cursor old_row, new_row; /* of values (ck_pgo_value); relation, in new_row: of columns; truncate: of numbers */
    uint32_t old_count, new_count;
} ck_pgo_message;
/* CK_CORRUPT: the message ends early, or is none. Borrows from bytes. */
CK_NODISCARD ck_status ck_pgo_parse(ck_view bytes, ck_pgo_message *out, ck_error *err);

typedef struct ck_pgo_value {
    ck_view text;   /* p NULL: it is NULL */
    bool unchanged; /* not sent: a large value that an update left as it was */
} ck_pgo_value;
CK_NODISCARD bool ck_pgo_next_value(ck_cursor *row, ck_pgo_value *out);

typedef struct ck_pgo_column {
    ck_view name;
    uint32_t type; /* oid */
    bool key;
} ck_pgo_column;
CK_NODISCARD bool ck_pgo_next_column(ck_cursor *columns, ck_pgo_column *out);

/* "16/B374D848". */
CK_NODISCARD bool ck_pg_lsn_parse(const char *text, uint64_t *out);
enum { CK_PG_LSN_BYTES = 24 };
const char *ck_pg_lsn_print(char out[CK_PG_LSN_BYTES], uint64_t lsn);

#endif
