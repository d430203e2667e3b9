/* Mode 'cdc' of the `postgres` source from the inside: where it is, and what is read on an I/O thread. */
#ifndef CK_CONNECTOR_POSTGRES_CDC_INT_H
#define CK_CONNECTOR_POSTGRES_CDC_INT_H

#include "connector/postgres/pg_int.h"
#include "connector/postgres/pgoutput.h"

/* ---- where it is (cdc_position.c) ---- */

/* The rows of one first reading, all keys up to `upto`, were seen as of lsn: of a transaction whose commit is before it
 * they have the changes, of others not. Ranges ascend; the last has no upto. */
typedef struct ck_pg_range {
    const char *const *upto; /* a value for each column of the key; NULL: to the end */
    uint64_t lsn;
} ck_pg_range;

/* As JSON in the one split's spec. */
typedef struct ck_pg_cdc_position {
    const char *slot;
    uint32_t table;     /* its oid: one of the same name is another; 0: not known (an earlier build) */
    bool reading;       /* the first reading is not over; the last range is the one under way */
    uint64_t lsn;       /* where streaming goes on: transactions that commit behind it come again, whole ... */
    uint64_t tx;        /* ... of the first of them, if it is this one, */
    uint64_t skip;      /* so many changes have gone out */
    uint32_t key_count; /* columns of the server's key; 0: it has none */
    ck_pg_range *ranges;
    uint32_t range_count;
    int64_t time_us;
} ck_pg_cdc_position;
enum { CK_PG_RANGES_MAX = 1000, CK_PG_KEY_MAX = 64 }; /* columns of a key: no server has more than 32 */
CK_NODISCARD ck_status ck_pg_cdc_print(ck_arena *a, const ck_pg_cdc_position *p, const char **out, ck_error *err);
CK_NODISCARD ck_status ck_pg_cdc_parse(ck_arena *a, const char *spec, ck_pg_cdc_position *out, ck_error *err);

/* The server's key: columns in the order of its PRIMARY KEY. Keys are compared as the first reading is ordered:
 * integers as numbers, all else by the bytes of its text. */
typedef struct ck_pg_key {
    const char **idents, **names; /* quoted, bare */
    bool *integer;
    uint32_t count;
} ck_pg_key;
CK_NODISCARD ck_status ck_pg_key_read(ck_pg *c, ck_arena *a, uint32_t oid, ck_pg_key *out, ck_error *err);
/* Whether a transaction that commits at lsn is seen by the range the key is in. */
bool ck_pg_is_seen(const ck_pg_key *k, const ck_pg_range *ranges, uint32_t count, const ck_view *key, uint64_t lsn);

/* ---- before anything runs (cdc_look.c) ---- */

CK_NODISCARD ck_status ck_pg_cdc_enumerate(const ck_op_spec *spec, ck_split_list *out, ck_error *err);

/* A slot of this name is to be made: one that is there goes (own), or is refused. */
CK_NODISCARD ck_status ck_pg_slot_clear(ck_pg *c, ck_arena *a, const char *slot, bool own, ck_error *err);
/* The slot is there and has all that commits from lsn on (0: whatever it has). CK_REFUSED: not so. */
CK_NODISCARD ck_status ck_pg_slot_check(ck_pg *c, ck_arena *a, const char *slot, uint64_t lsn, ck_error *err);

/* ---- what the server sends (cdc_feed.c) ---- */

/* What a job has read: lines of the first reading, or messages, u32 LE length and bytes. */
typedef struct ck_pg_chunk {
    ck_buffer *buffer;
    size_t begin, end;
    bool lines;
    bool last; /* lines: the first reading is over */
} ck_pg_chunk;

/* The connection. The job's while one runs, else the step's. */
typedef struct ck_pg_feed {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena;
    const ck_pg_options *options;
    const ck_schema *schema;
    const bool *read;
    const char *table; /* its name in the script */
    const char *slot;
    bool temporary; /* the slot goes with the connection: nothing is kept anyway */
    ck_pg pg;
    ck_pg_table remote;
    ck_pg_key key;
    bool looked;  /* remote and key are there */
    bool created; /* the slot is */
    bool streaming, copying;
    uint64_t consistent; /* the snapshot of the first reading is of here */
    char *held;          /* a row that was too long for its chunk */
    size_t held_bytes;
    int64_t told_us;   /* monotonic: when the server last heard of us */
    bool asked;        /* it wants to hear */
    int64_t looked_us; /* monotonic: when it was last asked whether the table is there */
    uint64_t
        gone_lsn; /* it is not, or not in the publication: all of it was before here; 0: nothing is known of that */
    bool dropped;
    ck_pg_chunk chunk;
} ck_pg_feed;

void ck_pg_feed_close(ck_pg_feed *f);
void ck_pg_feed_destroy(ck_pg_feed *f);
/* Fills the chunk with what comes within a moment; connects first where it is not. at: where the step is; confirmed:
 * what a completed checkpoint has. */
CK_NODISCARD ck_status ck_pg_feed_read(ck_pg_feed *f, const ck_pg_cdc_position *at, uint64_t confirmed, ck_error *err);

/* While streaming: CK_REFUSED: the table is gone, and a completed checkpoint has all that came of it (cdc_gone.c). */
CK_NODISCARD ck_status ck_pg_feed_watch(ck_pg_feed *f, uint64_t confirmed, ck_error *err);

/* ---- the source (cdc.c) ---- */

CK_NODISCARD ck_status ck_pg_cdc_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);

#endif
