/* What plugins read and write: columns, rows, texts, groups of state; errors; and what the engine hands out. A part of
 * plugin.h, which says how it is used. */
#ifndef CLINK_PLUGIN_DATA_H
#define CLINK_PLUGIN_DATA_H

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

/* ---- state in fields ---- */

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

#ifdef __cplusplus
}
#endif

#endif
