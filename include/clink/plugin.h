/* clink plugins: functions, aggregate functions, operators, sources, sinks and whole jobs in a shared library of your
 * own, in C or C++ (docs/plugins.md). Pure C; nothing is linked: the engine hands the plugin what it needs.
 *
 *     static const clink_function *const functions[] = {&initials, NULL};
 *     static const clink_plugin table = {.struct_bytes = sizeof(clink_plugin), .abi = CLINK_PLUGIN_ABI,
 *                                        .name = "names", .version = "1.0", .functions = functions};
 *     CLINK_PLUGIN(table)
 *
 *     cc -shared -fPIC -o names.so names.c        clink run --plugin names.so job.sql
 *
 * The ABI only grows at the end: every struct that crosses begins with its size, and what its maker did not know of is
 * taken as zero. A plugin made for another CLINK_PLUGIN_ABI is refused before a line of it runs.
 *
 * Data comes in columns of up to 4,096 rows, and a call is about a batch: nothing is called once a row. Threads: the
 * instances of a function or operator (one a subtask) are each used by one thread at a time, and several at once; what
 * is shared between them is yours to guard. No call may block, and none may throw. */
#ifndef CLINK_PLUGIN_H
#define CLINK_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "clink.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CLINK_PLUGIN_ABI 1u

#if defined(__GNUC__)
#define CLINK_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLINK_PRINTF(text, first)
#endif

/* ---- data ---- */

/* How the values of a column stand:
 *   BITS   BOOLEAN: a bit a row, 64 rows a word, the least significant first
 *   I64    int64_t: TINYINT to BIGINT; DATE in days; TIME, TIMESTAMP, TIMESTAMP_LTZ in microseconds (UTC); INTERVALs in
 *          months or microseconds
 *   F64    double: REAL, DOUBLE
 *   I128   DECIMAL, unscaled: 16 bytes, little-endian, two's complement
 *   TEXT   VARCHAR (UTF-8), BYTES: Arrow's string views
 *   OTHER  ARRAY, MAP and ROW, which plugins do not look into */
typedef enum clink_layout {
    CLINK_LAYOUT_OTHER = 0,
    CLINK_LAYOUT_BITS = 1,
    CLINK_LAYOUT_I64 = 2,
    CLINK_LAYOUT_F64 = 3,
    CLINK_LAYOUT_I128 = 4,
    CLINK_LAYOUT_TEXT = 5
} clink_layout;

/* A text of a column: up to 12 bytes stand in the view, longer ones in a heap. Use clink_text. */
typedef struct clink_view {
    int32_t length;
    union {
        char inlined[12];
        struct {
            char prefix[4];
            int32_t heap, offset;
        } at;
    } u;
} clink_view;

/* Bytes that are somebody else's: not ended by a NUL. */
typedef struct clink_bytes {
    const char *p;
    size_t n;
} clink_bytes;

/* Values to read. Borrowed: valid during the call that gives them. */
typedef struct clink_column {
    uint32_t layout;             /* clink_layout */
    int32_t constant;            /* one value for all rows: row 0 */
    const uint64_t *validity;    /* bit 1: there is a value; NULL: no row is NULL */
    const void *data;            /* by layout; NULL: every row is NULL */
    const uint8_t *const *heaps; /* TEXT */
    const char *name;            /* of the column, where it has one; else NULL */
    const void *reserved[2];
} clink_column;

/* The rows a call is about: for (CLINK_EACH(rows, k, row)) gives the k-th and where it stands in the columns. */
typedef struct clink_rows {
    const uint16_t *selected; /* ascending; NULL: 0 to count - 1 */
    uint32_t count;
    uint32_t length; /* rows of the columns, selected or not */
} clink_rows;
#define CLINK_EACH(rows, k, row)                                                                                       \
    uint32_t k = 0, row = 0;                                                                                           \
    k < (rows)->count && ((row = (rows)->selected ? (rows)->selected[k] : k), 1);                                      \
    k++

static inline uint32_t clink_at(const clink_column *c, uint32_t row) { return c->constant ? 0 : row; }
static inline int clink_is_null(const clink_column *c, uint32_t row) {
    row = clink_at(c, row);
    return !c->data || (c->validity && !(c->validity[row >> 6] >> (row & 63) & 1));
}
/* The value of a row that is not NULL. */
static inline int64_t clink_i64(const clink_column *c, uint32_t row) {
    return ((const int64_t *)c->data)[clink_at(c, row)];
}
static inline double clink_f64(const clink_column *c, uint32_t row) {
    return ((const double *)c->data)[clink_at(c, row)];
}
static inline int clink_bool(const clink_column *c, uint32_t row) {
    row = clink_at(c, row);
    return (int)(((const uint64_t *)c->data)[row >> 6] >> (row & 63) & 1);
}
/* A DECIMAL's unscaled value as its two halves. */
static inline void clink_decimal(const clink_column *c, uint32_t row, int64_t *high, uint64_t *low) {
    const char *p = (const char *)c->data + 16 * (size_t)clink_at(c, row);
    memcpy(low, p, 8);
    memcpy(high, p + 8, 8);
}
static inline clink_bytes clink_text(const clink_column *c, uint32_t row) {
    const clink_view *v = (const clink_view *)c->data + clink_at(c, row);
    clink_bytes b;
    b.n = (size_t)v->length;
    b.p = v->length <= 12 ? v->u.inlined : (const char *)c->heaps[v->u.at.heap] + v->u.at.offset;
    return b;
}

/* ---- errors ---- */

/* Fills error and gives the status back: return clink_fail(error, CLINK_DATA, "no such zone"). The engine puts the name
 * of the function or operator in front: say what is wrong, in a sentence without a full stop. */
static inline clink_status clink_fail(clink_error *error, clink_status status, const char *format, ...)
    CLINK_PRINTF(3, 4);
static inline clink_status clink_fail(clink_error *error, clink_status status, const char *format, ...) {
    va_list args;
    if (!error) return status;
    error->status = status;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return status;
}

/* ---- what the engine hands out ---- */

typedef struct clink_writer clink_writer;
typedef struct clink_call clink_call;
typedef struct clink_groups clink_groups;
typedef struct clink_context clink_context;
typedef struct clink_emitter clink_emitter;
typedef struct clink_key clink_key;
typedef struct clink_job_builder clink_job_builder;
typedef struct clink_stream clink_stream;
typedef struct clink_splits clink_splits;
typedef struct clink_read clink_read;
typedef struct clink_prepared clink_prepared;

/* Functions of the engine, reached through what calls are given: use the inline functions of this header. */
typedef struct clink_engine_table {
    uint32_t struct_bytes, abi;
    /* At least n bytes of heap in w. */
    clink_status (*grow)(clink_writer *w, size_t n);
    /* The row's value is an error, raised if the row comes to anything. text: said of the first. */
    void (*mark)(clink_call *call, uint32_t row, const char *text);
    /* The TEXT field of a group's state. */
    clink_bytes (*state_text)(const clink_groups *g, uint32_t i, uint32_t field);
    clink_status (*set_state_text)(const clink_groups *g, uint32_t i, uint32_t field, const char *p, size_t n);
    /* ---- operators ---- */
    clink_emitter *(*output)(clink_context *c, uint32_t port);
    clink_status (*flush)(clink_emitter *o);
    clink_status (*values)(clink_context *c, uint32_t state, int32_t create, clink_groups *out, const uint8_t **fresh);
    clink_status (*erase)(clink_context *c, uint32_t state, uint32_t k);
    clink_status (*entry)(clink_context *c, uint32_t state, uint32_t k, const clink_key *key, int32_t create,
                          clink_groups *out);
    clink_status (*append)(clink_context *c, uint32_t state, uint32_t k, clink_groups *out);
    clink_status (*erase_entries)(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                                  const clink_key *high);
    clink_status (*walk)(clink_context *c, uint32_t state, uint32_t k, const clink_key *low, const clink_key *high);
    int32_t (*next)(clink_context *c, clink_key *key, clink_groups *out);
    clink_status (*set_timer)(clink_context *c, uint32_t k, int64_t time_us, int32_t processing, int32_t on);
    void (*count)(clink_context *c, const char *counter, uint64_t add);
    /* ---- jobs ---- */
    clink_stream *(*query)(clink_job_builder *b, const char *sql);
    void (*define)(clink_job_builder *b, const char *sql);
    clink_stream *(*key_by)(clink_stream *s, const char *columns);
    clink_stream *(*process)(clink_stream *const *inputs, uint32_t count, const char *uid, const char *operator_name,
                             const char *parameters);
    clink_stream *(*side)(clink_stream *s, uint32_t port);
    void (*insert)(clink_stream *s, const char *table);
    /* ---- connectors ---- */
    clink_status (*add_split)(clink_splits *to, const char *id, const void *position, size_t n);
    clink_status (*set_position)(clink_read *r, const void *position, size_t n);
    clink_status (*add_committable)(clink_prepared *to, const void *p, size_t n);
} clink_engine_table;

/* A column to write: rows in any order. Rows nobody writes are whatever they are; those nobody asked for do not matter.
 */
struct clink_writer {
    uint32_t layout; /* clink_layout */
    uint32_t length;
    void *data;
    uint64_t *validity; /* all set at first */
    uint8_t *heap;      /* TEXT: where the next long text goes */
    size_t heap_used, heap_bytes;
    int32_t heap_index;
    int32_t reserved;
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};

static inline void clink_set_null(clink_writer *w, uint32_t row) {
    w->validity[row >> 6] &= ~((uint64_t)1 << (row & 63));
    if (w->layout == CLINK_LAYOUT_TEXT) ((clink_view *)w->data)[row].length = 0;
}
static inline void clink_set_i64(clink_writer *w, uint32_t row, int64_t v) { ((int64_t *)w->data)[row] = v; }
static inline void clink_set_f64(clink_writer *w, uint32_t row, double v) { ((double *)w->data)[row] = v; }
static inline void clink_set_bool(clink_writer *w, uint32_t row, int v) {
    uint64_t *word = (uint64_t *)w->data + (row >> 6), bit = (uint64_t)1 << (row & 63);
    *word = v ? *word | bit : *word & ~bit;
}
static inline void clink_set_decimal(clink_writer *w, uint32_t row, int64_t high, uint64_t low) {
    char *p = (char *)w->data + 16 * (size_t)row;
    memcpy(p, &low, 8);
    memcpy(p + 8, &high, 8);
}
/* Room for a text of at most n bytes, to be written and then taken; NULL: there is no memory for it. */
static inline char *clink_text_room(clink_writer *w, size_t n) {
    if ((!w->heap || w->heap_bytes - w->heap_used < n) && w->engine->grow(w, n) != CLINK_OK) return NULL;
    return (char *)w->heap + w->heap_used;
}
/* The first n bytes of what clink_text_room gave. VARCHAR must be UTF-8. */
static inline void clink_text_take(clink_writer *w, uint32_t row, size_t n) {
    clink_view *v = (clink_view *)w->data + row;
    const uint8_t *p = w->heap + w->heap_used;
    v->length = (int32_t)n;
    if (n <= 12) {
        memset(v->u.inlined, 0, 12);
        memcpy(v->u.inlined, p, n);
        return;
    }
    memcpy(v->u.at.prefix, p, 4);
    v->u.at.heap = w->heap_index;
    v->u.at.offset = (int32_t)w->heap_used;
    w->heap_used += n;
}
static inline clink_status clink_set_text(clink_writer *w, uint32_t row, const char *p, size_t n) {
    char *to;
    if (n <= 12) {
        clink_view *v = (clink_view *)w->data + row;
        v->length = (int32_t)n;
        memset(v->u.inlined, 0, 12);
        if (n) memcpy(v->u.inlined, p, n);
        return CLINK_OK;
    }
    to = clink_text_room(w, n);
    if (!to) return CLINK_NOMEM;
    memcpy(to, p, n);
    clink_text_take(w, row, n);
    return CLINK_OK;
}

/* ---- scalar functions ---- */

typedef enum clink_function_flags {
    CLINK_SEES_NULLS = 1,  /* is called for rows with NULL arguments too; without it such a row is NULL by itself */
    CLINK_GIVES_NULLS = 2, /* may give NULL though no argument is */
    CLINK_FAILS = 4,       /* may call clink_fail_row */
    CLINK_VOLATILE = 8     /* gives another value each time, for the same arguments */
} clink_function_flags;

/* One call: `rows` of the arguments, to be written to the same rows of `out`. */
struct clink_call {
    uint32_t struct_bytes;
    uint32_t argument_count;
    const clink_column *const *arguments;
    const clink_rows *rows;
    clink_writer *out;
    void *state; /* what open made */
    clink_error *error;
    uint32_t failed_row; /* set it beside a failure that is of one row; UINT32_MAX at first */
    int32_t reserved;
    void *inside; /* the engine's */
};

typedef struct clink_function {
    uint32_t struct_bytes;
    uint32_t flags;        /* clink_function_flags */
    const char *name;      /* as SQL calls it, in any case; not one that is built in */
    const char *arguments; /* SQL types: "VARCHAR, DECIMAL(10,2)"; "": none. Several of one name are overloads. */
    const char *returns;   /* an SQL type */
    /* CLINK_OK: every row of call->rows is written. Else the job fails, with call->error. */
    clink_status (*call)(clink_call *call);
    /* Optional: once an instance. After a failure close is not called. */
    clink_status (*open)(void **state, clink_error *error);
    void (*close)(void *state);
    const char *summary; /* one sentence; may be NULL */
} clink_function;

/* The value of this row cannot be computed: NULL under SET on_eval_error = null, otherwise the job fails with the
 * function, the arguments and this text, if the row comes to anything. The function goes on. */
static inline void clink_fail_row(clink_call *call, uint32_t row, const char *text) {
    call->out->engine->mark(call, row, text);
}

/* ---- aggregate functions ---- */

typedef struct clink_field {
    const char *name;
    const char *type; /* an SQL type */
} clink_field;

/* Groups and where their state is: a packed row each, whose fields are read and written in place. Rows come up several
 * times where several rows of the batch are of one group. */
struct clink_groups {
    uint32_t struct_bytes;
    uint32_t count;
    uint8_t *const *states;
    const uint32_t *offsets; /* of each field */
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
static inline int64_t clink_state_i64(const clink_groups *g, uint32_t i, uint32_t field) {
    int64_t v;
    memcpy(&v, g->states[i] + g->offsets[field], 8);
    return v;
}
static inline void clink_set_state_i64(const clink_groups *g, uint32_t i, uint32_t field, int64_t v) {
    memcpy(g->states[i] + g->offsets[field], &v, 8);
}
static inline double clink_state_f64(const clink_groups *g, uint32_t i, uint32_t field) {
    double v;
    memcpy(&v, g->states[i] + g->offsets[field], 8);
    return v;
}
static inline void clink_set_state_f64(const clink_groups *g, uint32_t i, uint32_t field, double v) {
    memcpy(g->states[i] + g->offsets[field], &v, 8);
}
static inline int clink_state_bool(const clink_groups *g, uint32_t i, uint32_t field) {
    return g->states[i][g->offsets[field]] != 0;
}
static inline void clink_set_state_bool(const clink_groups *g, uint32_t i, uint32_t field, int v) {
    g->states[i][g->offsets[field]] = v != 0;
}
/* Empty at first. Valid until the field is written. */
static inline clink_bytes clink_state_text(const clink_groups *g, uint32_t i, uint32_t field) {
    return g->engine->state_text(g, i, field);
}
static inline clink_status clink_set_state_text(const clink_groups *g, uint32_t i, uint32_t field, const char *p,
                                                size_t n) {
    return g->engine->set_state_text(g, i, field, p, n);
}

typedef struct clink_aggregate {
    uint32_t struct_bytes;
    uint32_t state_count;
    const char *name;
    const char *argument; /* an SQL type; NULL: none, called as NAME(*). NULL values are left out. */
    const char *returns;  /* an SQL type; NULL is among its values */
    /* BOOLEAN, BIGINT, DOUBLE, VARCHAR or BYTES; zero, false or empty at first. It is in checkpoints: names and types
     * stay as they are, or are migrated. */
    const clink_field *state;
    /* Value i of the batch is row at[i] of `values` (at NULL: row i; values NULL: no argument) and goes into group i.
     * weights NULL: all are added; otherwise -1 takes a value back that was added before. */
    clink_status (*add)(const clink_groups *g, const clink_column *values, const uint16_t *at, const int8_t *weights,
                        clink_error *error);
    /* The state of group i of `from` is added to group i of `to` (session windows, HOP). NULL: not possible, and such
     * queries are refused. */
    clink_status (*merge)(const clink_groups *to, const clink_groups *from, clink_error *error);
    /* The result of group i to row i of out. */
    clink_status (*result)(const clink_groups *g, clink_writer *out, clink_error *error);
    int32_t takes_back;  /* add knows weights of -1; otherwise input that changes is refused */
    const char *summary; /* one sentence; may be NULL */
} clink_aggregate;

/* ---- operators: process functions ---- */

/* What is kept for each key. VALUE: one entry. MAP: entries in the order of a key of their own, the first field. LIST:
 * entries in the order they were appended. */
typedef enum clink_state_kind { CLINK_VALUE = 0, CLINK_MAP = 1, CLINK_LIST = 2 } clink_state_kind;

typedef struct clink_state {
    uint32_t struct_bytes;
    uint32_t kind;    /* clink_state_kind */
    const char *name; /* of the slot; it is in checkpoints */
    const char *type; /* of what is kept, for versions and migrations; NULL: as name */
    uint32_t version; /* of type; 0: 1 */
    uint32_t field_count;
    /* BOOLEAN, BIGINT, DOUBLE, VARCHAR or BYTES; zero, false or empty at first. The key of a MAP is the first and a
     * BIGINT or VARCHAR. */
    const clink_field *fields;
    int64_t ttl_ms; /* entries that no call has given out for so long go (it counts as written); 0: they stay */
} clink_state;

/* Which entry of a MAP (or LIST: i64, its position). */
struct clink_key {
    int64_t i64;
    clink_bytes text;
};

/* Rows that have come in, in the order of their input. */
typedef struct clink_batch {
    uint32_t struct_bytes;
    uint32_t input; /* which one */
    uint32_t column_count;
    uint32_t reserved;
    const clink_column *const *columns; /* as the input names them */
    const clink_rows *rows;
    const int8_t *weights; /* by row: -1 takes a row back; NULL: all are new */
} clink_batch;

/* Timers that are due, in the order of their times. */
typedef struct clink_timers {
    uint32_t struct_bytes;
    uint32_t count;
    const int64_t *times_us;
    int32_t processing;
    uint32_t key_count;
    const clink_column *const *keys; /* row k is the key of timer k */
} clink_timers;

/* What an operator is called with. State and timers are those of the k-th row of the batch, or of the k-th timer. */
struct clink_context {
    uint32_t struct_bytes;
    uint32_t subtask, parallelism;
    uint32_t reserved;
    int64_t watermark_us; /* rows at or below it are late; INT64_MIN: nothing known yet */
    int64_t now_us;       /* the wall clock, fixed within a call */
    void *self;           /* what open made */
    clink_error *error;
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};

/* Rows to emit: clink_add_row, then every column of the row. They go when the call returns, or when there are many. */
struct clink_emitter {
    uint32_t column_count;
    uint32_t count, capacity;
    uint32_t reserved;
    clink_writer *const *columns;
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
/* Port 0 is the main output, 1 and up are side outputs. NULL: there is none, or no memory. */
static inline clink_emitter *clink_out(clink_context *c, uint32_t port) { return c->engine->output(c, port); }
static inline clink_status clink_add_row(clink_emitter *o, uint32_t *row) {
    if (o->count == o->capacity) {
        clink_status s = o->engine->flush(o);
        if (s != CLINK_OK) return s;
    }
    *row = o->count++;
    return CLINK_OK;
}

/* VALUE: the entries of all rows, to be read and written with clink_state_i64(out, k, field) and the like. With create
 * those that are missing are made, and fresh[k] (optional) says which; without it out->states[k] is NULL for them.
 * Valid until the next call about the same state. */
static inline clink_status clink_values(clink_context *c, uint32_t state, int create, clink_groups *out,
                                        const uint8_t **fresh) {
    return c->engine->values(c, state, create, out, fresh);
}
/* VALUE: the k-th row's entry, which clink_values gave, is zero, false and empty again, and goes unless it is written
 * before the call returns. */
static inline clink_status clink_erase(clink_context *c, uint32_t state, uint32_t k) {
    return c->engine->erase(c, state, k);
}
/* MAP: the entry under `key`, as group 0 of *out, where field 0 is the key. Without create: out->states is NULL where
 * it is missing. Valid until the next call about the same state. */
static inline clink_status clink_entry(clink_context *c, uint32_t state, uint32_t k, const clink_key *key, int create,
                                       clink_groups *out) {
    return c->engine->entry(c, state, k, key, create, out);
}
/* LIST: a new entry behind the others, as group 0 of *out. Fields are numbered from 0. */
static inline clink_status clink_append(clink_context *c, uint32_t state, uint32_t k, clink_groups *out) {
    return c->engine->append(c, state, k, out);
}
/* MAP, LIST: the entries from low (inclusive; NULL: the first) to high (exclusive; NULL: the last) go. */
static inline clink_status clink_erase_entries(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                                               const clink_key *high) {
    return c->engine->erase_entries(c, state, k, low, high);
}
/* MAP, LIST: a walk over them in order: begin it, then next until it gives 0. One walk at a time; entries may be
 * written meanwhile, not added or erased. */
static inline clink_status clink_walk(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                                      const clink_key *high) {
    return c->engine->walk(c, state, k, low, high);
}
static inline int clink_next(clink_context *c, clink_key *key, clink_groups *out) {
    return c->engine->next(c, key, out);
}
/* A timer of the k-th row's key. One of a time that has come fires with the next watermark. Setting one that is set
 * changes nothing. Those of event time fire when the watermark comes to them, all that are left when the input has
 * ended; those of processing time by the clock. */
static inline clink_status clink_set_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 0, 1);
}
static inline clink_status clink_clear_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 0, 0);
}
static inline clink_status clink_set_clock_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 1, 1);
}
static inline clink_status clink_clear_clock_timer(clink_context *c, uint32_t k, int64_t time_us) {
    return c->engine->set_timer(c, k, time_us, 1, 0);
}
/* Adds to a counter of this operator. The name is a literal. */
static inline void clink_count(clink_context *c, const char *counter, uint64_t add) {
    c->engine->count(c, counter, add);
}

typedef struct clink_columns {
    const clink_field *fields; /* types as SQL writes them: "BIGINT NOT NULL" */
    uint32_t count;
} clink_columns;

/* How an instance begins. Borrowed until open returns. */
typedef struct clink_start {
    uint32_t struct_bytes;
    uint32_t input_count;
    const char *parameters; /* as the job gave them: JSON by convention; "" */
    const char *uid;
    uint32_t subtask, parallelism;
} clink_start;

/* An operator: one instance a subtask. With keyed input (clink_key_by) it has state and timers. */
typedef struct clink_operator {
    uint32_t struct_bytes;
    uint32_t input_count; /* 0: 1 */
    const char *name;
    /* What it needs of each input: columns by name and type, found wherever they stand, and given in this order.
     * Further ones are left out. Keyed: one or more columns named by the job; they must be among them. */
    const clink_columns *inputs;
    clink_columns output;
    const clink_columns *sides; /* side outputs, from port 1 on */
    uint32_t side_count;
    uint32_t state_count;
    const clink_state *const *states;                                                /* numbered as they stand here */
    clink_status (*open)(void **self, const clink_start *start, clink_error *error); /* optional */
    clink_status (*on_batch)(clink_context *c, const clink_batch *batch);
    clink_status (*on_timers)(clink_context *c, const clink_timers *timers); /* optional */
    /* Optional. The watermark has risen, and timers that were due have fired. */
    clink_status (*on_watermark)(clink_context *c, int64_t watermark_us);
    clink_status (*on_end)(clink_context *c); /* optional: all inputs have ended, all timers of event time have fired */
    void (*close)(void *self);                /* optional */
    const char *summary;                      /* one sentence; may be NULL */
} clink_operator;

/* ---- connectors: sources and sinks of tables ----
 *
 * CREATE TABLE t (...) WITH (connector = 'name', ...) makes a table of a plugin's connector. What is called here is
 * called on a thread for input and output, one call at a time for an instance: it may wait for a disk or a server, but
 * ends in bounded time - a second or so - since nothing of the job can stop before it has. */

/* An option of WITH. The list ends with a name of NULL. */
typedef struct clink_option {
    const char *name;     /* in lower case: "path"; "fields.*.min": the star is a column's name */
    const char *values;   /* "text", "integer", "boolean", "path", "a|b|c" */
    const char *fallback; /* what it is where it is not given; NULL: nothing */
    const char *help;     /* one sentence */
} clink_option;

/* A table as it was declared. */
typedef struct clink_table {
    uint32_t struct_bytes;
    uint32_t column_count;
    const char *name;
    const clink_field *columns; /* "BIGINT NOT NULL" */
    const uint32_t *key;        /* columns of the PRIMARY KEY */
    uint32_t key_count;
    uint32_t option_count;
    const char *const
        *option_names; /* given, or with a fallback. ${env:...} and ${file:...} are resolved, but in check */
    const char *const *option_values;
} clink_table;
/* NULL: it is not given and has no fallback. */
static inline const char *clink_table_option(const clink_table *t, const char *name) {
    uint32_t i;
    for (i = 0; i < t->option_count; i++)
        if (strcmp(t->option_names[i], name) == 0) return t->option_values[i];
    return NULL;
}

/* Parts of a source's input, each read by one subtask at a time: a file, a partition, a range of keys. An id is unique
 * in the table and the same whenever the job starts. position: where reading begins, in whatever way the source says
 * it, up to 64 KiB; it is kept in checkpoints. */
struct clink_splits {
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
static inline clink_status clink_add_split(clink_splits *to, const char *id, const void *position, size_t n) {
    return to->engine->add_split(to, id, position, n);
}

/* How an instance of a source begins: one a subtask. The table is valid until close. */
typedef struct clink_source_start {
    uint32_t struct_bytes;
    uint32_t subtask, parallelism;
    uint32_t batch_rows; /* how many rows a call of read gives, about */
    const clink_table *table;
    const char *uid;
    const uint8_t *wanted; /* by column: 0: nobody looks at it, whatever is in it */
} clink_source_start;

/* A split as it is handed to a subtask: at its first position, or at a restart where the checkpoint has it. */
typedef struct clink_split {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *id;
    clink_bytes position;
} clink_split;

typedef enum clink_then {
    CLINK_READ_ON = 0,   /* there is more */
    CLINK_READ_WAIT = 1, /* there is nothing now: again after wait_us */
    CLINK_READ_END = 2   /* the split is finished */
} clink_then;

/* One call of read: some rows of one split, up to out->capacity or a few times as many. With clink_set_position it says
 * where the next call goes on. Rows and position count together, when the call has returned CLINK_OK: a checkpoint has
 * both or none. */
struct clink_read {
    uint32_t struct_bytes;
    int32_t then; /* clink_then */
    void *self;   /* what open made */
    void *split;  /* what open_split made */
    clink_emitter *out;
    int64_t wait_us; /* READ_WAIT: 10 ms at first */
    /* To be set where the source knows more than its rows say: no row older than this comes from the split any more.
     * INT64_MIN at first. It counts where the table has a WATERMARK. */
    int64_t watermark_us;
    clink_error *error;
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
static inline clink_status clink_set_position(clink_read *r, const void *position, size_t n) {
    return r->engine->set_position(r, position, n);
}

typedef struct clink_source {
    uint32_t struct_bytes;
    uint32_t reserved;
    /* Optional: the table never ends. Looked at when a query is planned; NULL: every table ends. */
    int32_t (*endless)(const clink_table *t);
    /* The splits as they are now, asked once when a job starts, not by a subtask. At a restart those of a table that
     * ends are what they were; of an endless one the new ones are added. */
    clink_status (*splits)(const clink_table *t, uint32_t parallelism, clink_splits *out, clink_error *error);
    clink_status (*open)(void **self, const clink_source_start *start, clink_error *error);          /* optional */
    clink_status (*open_split)(void **split, void *self, const clink_split *at, clink_error *error); /* optional */
    clink_status (*read)(clink_read *r);
    void (*close_split)(void *split); /* optional */
    void (*close)(void *self);        /* optional */
} clink_source;

typedef enum clink_sink_flags {
    CLINK_TAKES_CHANGES = 1, /* rows of weight -1 take back an equal row that was written */
    CLINK_TAKES_UPSERTS = 2  /* tables with a PRIMARY KEY: a row replaces the one of its key, weight -1 removes it */
} clink_sink_flags;

/* How an instance of a sink begins: one a subtask. The table is valid until close. */
typedef struct clink_sink_start {
    uint32_t struct_bytes;
    uint32_t subtask, parallelism;
    uint32_t reserved;
    const clink_table *table;
    const char *job; /* UUID of the job, the same after every restart; "": there are no checkpoints */
    const char *uid;
} clink_sink_start;

/* What is prepared: bytes that say to commit what it has to make seen, up to 1 MiB each. */
struct clink_prepared {
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
static inline clink_status clink_add_committable(clink_prepared *to, const void *p, size_t n) {
    return to->engine->add_committable(to, p, n);
}

typedef struct clink_committable {
    uint32_t struct_bytes;
    uint32_t reserved;
    uint64_t checkpoint; /* the first that carries it; 0: there are no checkpoints */
    clink_bytes bytes;
} clink_committable;

/* After a restart. */
typedef struct clink_abort {
    uint32_t struct_bytes;
    int32_t allow_duplicates; /* the user has said that output newer than the restored checkpoint may stay */
    uint64_t restored;        /* the checkpoint; 0: none, the job begins */
    const char *job;
    const clink_committable *keep; /* what the restored checkpoint carries; it is committed */
    uint32_t keep_count;
} clink_abort;

/* A sink writes and flushes, which makes every row appear at least once; or it prepares and commits, which makes it
 * appear exactly once:
 *
 *   write ... write -> barrier: prepare -> committables are in the checkpoint -> it is complete -> commit each
 *
 * A job that was killed goes on from its last checkpoint: what that carries is committed - perhaps again - and what was
 * prepared beside it is aborted. Without checkpoints prepare and commit follow each other, once a second and at the
 * end. Commits are done by one instance for all subtasks. */
typedef struct clink_sink {
    uint32_t struct_bytes;
    uint32_t flags;                                                                       /* clink_sink_flags */
    clink_status (*open)(void **self, const clink_sink_start *start, clink_error *error); /* optional */
    /* Columns as the table has them. */
    clink_status (*write)(void *self, const clink_batch *batch, clink_error *error);
    /* All that was written is safe in the outside: before each checkpoint and at the end. One of flush and prepare. */
    clink_status (*flush)(void *self, clink_error *error);
    /* All that was written since the last call is safe, whatever happens, but not seen by anybody. */
    clink_status (*prepare)(void *self, uint64_t checkpoint, clink_prepared *out, clink_error *error);
    void (*close)(void *self); /* optional */
    /* ---- with prepare ---- */
    clink_status (*open_committer)(void **self, const clink_sink_start *start, clink_error *error); /* optional */
    /* Makes it seen. It may have been done before, wholly or in part: that is seen by looking, and is CLINK_OK. */
    clink_status (*commit)(void *self, const clink_committable *c, clink_error *error);
    /* Undoes what this job has prepared for this sink and is not kept. Before anything is written. */
    clink_status (*abort_others)(void *self, const clink_abort *a, clink_error *error);
    void (*close_committer)(void *self); /* optional */
} clink_sink;

typedef struct clink_connector {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *name;            /* lower case, not one that is built in */
    const clink_option *options; /* NULL: none */
    const clink_source *source;  /* NULL: its tables are not read */
    const clink_sink *sink;      /* NULL: nor written */
    /* Optional: what may be wrong with options and columns, when the table is made or read or written. Blocks not. Say
     * "option 'path' ...": the place is found by it. */
    clink_status (*check)(const clink_table *t, int32_t as_sink, clink_error *error);
    const char *summary; /* one sentence; may be NULL */
} clink_connector;

/* ---- jobs ---- */

/* A job is put together of SQL and operators:
 *
 *     clink_define(b, "CREATE TABLE readings (...) WITH (...); CREATE TABLE alerts (...) WITH (...)");
 *     clink_insert(clink_process(clink_key_by(clink_query(b, "SELECT device, ts, value FROM readings"), "device"),
 *                                "quiet-devices", "quiet", "{\"after_s\":60}"),
 *                  "alerts");
 *
 * The first thing that is wrong is kept and said when the job is built: nothing here need be checked. uid names the
 * operator in checkpoints: its state is found again by it, whatever else changes. */
struct clink_job_builder {
    const clink_engine_table *engine;
    void *inside; /* the engine's */
};
struct clink_stream {
    clink_job_builder *builder;
    void *inside; /* the engine's */
};
/* Statements that define tables, views and functions, and SET. */
static inline void clink_define(clink_job_builder *b, const char *sql) { b->engine->define(b, sql); }
/* The rows of a query, which do not change once they have come. */
static inline clink_stream *clink_query(clink_job_builder *b, const char *sql) { return b->engine->query(b, sql); }
/* Rows that are equal in these columns go to one subtask, and have state and timers of their own: "device, port". */
static inline clink_stream *clink_key_by(clink_stream *s, const char *columns) {
    return s->builder->engine->key_by(s, columns);
}
/* Through the operator of this name, of any plugin that is loaded. */
static inline clink_stream *clink_process(clink_stream *s, const char *uid, const char *operator_name,
                                          const char *parameters) {
    return s->builder->engine->process(&s, 1, uid, operator_name, parameters);
}
static inline clink_stream *clink_process_all(clink_stream *const *inputs, uint32_t count, const char *uid,
                                              const char *operator_name, const char *parameters) {
    return inputs[0]->builder->engine->process(inputs, count, uid, operator_name, parameters);
}
/* A side output of what clink_process gave. */
static inline clink_stream *clink_side(clink_stream *s, uint32_t port) { return s->builder->engine->side(s, port); }
/* INSERT INTO table SELECT * FROM the stream: columns in their order. */
static inline void clink_insert(clink_stream *s, const char *table) { s->builder->engine->insert(s, table); }

typedef struct clink_job_description {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *name; /* of the job, unless --name says otherwise */
    clink_status (*build)(clink_job_builder *b, clink_error *error);
    const char *summary; /* one sentence; may be NULL */
} clink_job_description;

/* ---- state of earlier versions ---- */

/* Where a migrated value goes. */
typedef struct clink_migrated {
    clink_status (*append)(struct clink_migrated *to, const void *p, size_t n);
    void *inside; /* the engine's */
} clink_migrated;

/* One step of a state's type to a later version. Steps are put together: 1 to 2 and 2 to 3 lead from 1 to 3. A job
 * whose state no chain of steps reaches does not start. A value is the packed fields of an entry, without the key of a
 * MAP (docs/formats.md, "Value"): a byte of NULL bits for every eight fields where some field is VARCHAR or BYTES, then
 * BOOLEANs as a byte and BIGINTs and DOUBLEs as eight bytes, little-endian, then each text that is not NULL with its
 * length in four bytes in front. */
typedef struct clink_migration {
    uint32_t struct_bytes;
    uint32_t from, to;
    uint32_t reserved;
    const char *state_type; /* clink_state.type, or its name */
    clink_status (*step)(clink_bytes value, clink_migrated *to, clink_error *error);
} clink_migration;

/* What had another name: a type of state, or the slot of one. */
typedef struct clink_rename {
    uint32_t struct_bytes;
    uint32_t reserved;
    const char *state_type;
    const char *slot; /* as it is called now; NULL: the type has another name */
    const char *from; /* as it was called */
} clink_rename;

/* ---- the plugin itself ---- */

typedef struct clink_plugin {
    uint32_t struct_bytes;
    uint32_t abi; /* CLINK_PLUGIN_ABI */
    const char *name, *version;
    const clink_function *const *functions; /* each list ends with NULL; NULL: none */
    const clink_aggregate *const *aggregates;
    const clink_operator *const *operators;
    const clink_job_description *const *jobs; /* `clink run --job` runs the first */
    const clink_migration *const *migrations;
    const clink_rename *const *renames;
    const clink_connector *const *connectors;
} clink_plugin;

/* Says what a plugin is made for, where it can be read without loading it: an ELF note "clink" of type 1. */
typedef struct clink_plugin_note {
    uint32_t name_bytes, note_bytes, type;
    char name[8];
    uint32_t abi, table_bytes;
} clink_plugin_note;

#ifdef __cplusplus
#define CLINK_EXPORT_C extern "C"
#else
#define CLINK_EXPORT_C
#endif

/* Once in a plugin. */
#define CLINK_PLUGIN(table)                                                                                            \
    __attribute__((section(".note.clink"), used, aligned(4))) static const clink_plugin_note clink_plugin_note_ = {    \
        6, 8, 1, {'c', 'l', 'i', 'n', 'k', 0, 0, 0}, CLINK_PLUGIN_ABI, (uint32_t)sizeof(clink_plugin)};                \
    CLINK_EXPORT_C CLINK_API const clink_plugin *clink_plugin_table(void);                                             \
    CLINK_EXPORT_C CLINK_API const clink_plugin *clink_plugin_table(void) { return &(table); }

#ifdef __cplusplus
}
#endif

#endif
