/* Ceilings of the engine, one place. Every one has a test at it. Units last in the name. */
#ifndef CK_BASE_LIMITS_H
#define CK_BASE_LIMITS_H

enum {
    CK_BATCH_ROWS_MAX = 4096,            /* rows of a batch; selections are uint16 */
    CK_READ_BUFFER_BYTES = 256 * 1024,   /* a source's read buffer */
    CK_RECORD_BYTES_MAX = 64 << 20,      /* one record of text input; larger is a data error with its offset */
    CK_EXCHANGE_GATHER_ROWS = 2048,      /* rows gathered for a target before it is sent ... */
    CK_EXCHANGE_GATHER_BYTES = 64 << 10, /* ... or bytes */
    CK_KEY_BYTES_MAX = 1 << 20,          /* one encoded key */
    CK_KEY_GROUPS_MIN = 16,
    CK_KEY_GROUPS_DEFAULT = 128,
    CK_KEY_GROUPS_MAX = 1024,
    CK_PARALLELISM_MAX = 1024,
    CK_SQL_BYTES_MAX = 16 << 20,
    CK_PARAMS_BYTES_MAX = 256 << 20, /* what an operator or connector makes of its parameters: expressions, lists */
    CK_SQL_DEPTH_MAX = 500,          /* nesting of expressions and subqueries */
    CK_SQL_COLUMNS_MAX = 4096,
    CK_FRAME_BYTES_MAX = 64 << 20, /* data frame on the wire */
    CK_SNAPSHOT_BATCH_BYTES = 8 << 20,
    CK_NAME_BYTES_MAX = 255, /* table, column, slot, uid parts */
};

#endif
