/* Inside of the JSON decoder. A record takes one of two ways:
 *
 *   run      (json_run_int.h, once per instruction set) expects the bytes between two values - the run `,"price":` - to
 * be those that followed the last value the last time, and parses the value in line. Another known run is found by its
 * bytes. Anything else gives the record up. record   (json_record.c) checks the whole record by the grammar, notes
 * where each column's value stands, converts the last one of each, says what is wrong, and teaches the runs it met.
 *
 * All text is followed by a sentinel newline and CK_BUFFER_PADDING readable bytes: scanners stop at the newline (a
 * control character, no digit) without looking at an end. */
#ifndef CK_FORMAT_JSON_INT_H
#define CK_FORMAT_JSON_INT_H

#include "format/rows_int.h"
#include "format/utf8.h"
#include "format/value_int.h"

enum {
    CK_JSON_DEPTH_MAX = 1024, /* nesting of arrays and objects in one record */
    CK_JSON_RUN_HEAD = 32,    /* bytes of a run compared in one step */
    CK_JSON_RUN_BYTES_MAX = 512,
};

/* ---- values (json_value.c) ---- */

typedef enum ck_json_kind {
    CK_JSON_NULL,
    CK_JSON_FALSE,
    CK_JSON_TRUE,
    CK_JSON_NUMBER,
    CK_JSON_STRING,
    CK_JSON_ARRAY,
    CK_JSON_OBJECT
} ck_json_kind;

/* A value found valid. For strings p and end leave out the quotes. */
typedef struct ck_json_value {
    const uint8_t *p, *end;
    ck_json_kind kind;
    bool escaped; /* a string with backslashes */
} ck_json_value;

/* Where and why text is not JSON. */
typedef enum ck_json_what {
    CK_JSON_UNEXPECTED, /* what stands there */
    CK_JSON_CONTROL,    /* a control character in a string, or its end */
    CK_JSON_ESCAPE,
    CK_JSON_SURROGATE,
    CK_JSON_UTF8,
    CK_JSON_DEPTH,
    CK_JSON_TRAILING,
} ck_json_what;
typedef struct ck_json_fault {
    const uint8_t *at;
    ck_json_what what;
} ck_json_fault;

struct ck_json;
struct ck_json_span;
typedef enum ck_json_stop {
    CK_JSON_ALL,    /* span->p has reached span->last */
    CK_JSON_FULL,   /* the batch is full */
    CK_JSON_GIVEUP, /* the record at span->p is for ck_json_record */
    CK_JSON_FAILED, /* span->status */
} ck_json_stop;

/* What depends on the instruction set. */
typedef struct ck_json_kernel {
    ck_json_stop (*run)(struct ck_json *j, struct ck_json_span *s);
    /* One value of any kind at p, all of it checked. Behind it, or NULL. end as in json_value_int.h. */
    const uint8_t *(*value)(const uint8_t *p, const uint8_t *end, ck_json_value *out, ck_json_fault *f);
    /* The string whose opening quote is before p. Behind its closing quote, or NULL. */
    const uint8_t *(*string)(const uint8_t *p, ck_json_value *out, ck_json_fault *f);
    const uint8_t *(*text)(const uint8_t *p); /* first quote, backslash or control byte */
} ck_json_kernel;
const ck_json_kernel *ck_json_kernel_scalar(void);
const ck_json_kernel *ck_json_kernel_for(ck_cpu cpu);

static inline bool ck_json_is_space(uint8_t c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
static inline const uint8_t *ck_json_space(const uint8_t *p, const uint8_t *end) {
    while (p < end && ck_json_is_space(*p)) p++;
    return p;
}
const uint8_t *ck_json_escape(const uint8_t *p, ck_json_fault *f); /* behind the escape at the backslash p, or NULL */
/* Writes the string without escapes, at most end - p bytes; how many. */
size_t ck_json_unescape(const uint8_t *p, const uint8_t *end, char *out);
/* The sentence of a fault in a record that begins at `record` (`where`: "of the record"). CK_DATA. */
ck_status ck_json_explain(ck_why *w, const ck_json_fault *f, const uint8_t *record, const uint8_t *end,
                          const char *where);

/* ---- learned runs (json_runs.c) ---- */

typedef enum ck_json_op {
    CK_JSON_OP_NONE,    /* nothing is predicted */
    CK_JSON_OP_END,     /* the run ends the record */
    CK_JSON_OP_SKIP,    /* any value, not wanted */
    CK_JSON_OP_PRESENT, /* any value, only checked for NULL */
    CK_JSON_OP_INTEGER,
    CK_JSON_OP_STRING,
    CK_JSON_OP_DOUBLE,
    CK_JSON_OP_DECIMAL,
    CK_JSON_OP_BOOLEAN,
    CK_JSON_OP_TIMESTAMP,
    CK_JSON_OP_ANY, /* the general conversion */
} ck_json_op;

struct ck_json_run;
/* What followed a run the last time, and what else did before. Never NULL. */
typedef struct ck_json_follow {
    struct ck_json_run *last, *before;
} ck_json_follow;

/* The bytes from a value (or the record's start) to the next value (or behind the newline), seen valid before. */
typedef struct ck_json_run {
    union {
        uint8_t head[CK_JSON_RUN_HEAD]; /* zeros behind the run */
        uint64_t word[CK_JSON_RUN_HEAD / 8];
    };
    uint64_t mask[CK_JSON_RUN_HEAD / 8]; /* of words: which bytes count */
    uint32_t head_mask;                  /* the same, a bit a byte */
    uint32_t bytes;
    const uint8_t *rest; /* what is beyond the head */
    ck_json_op op;
    bool first; /* begins with the brace of the record */
    ck_target *target;
    ck_json_follow follow;
    struct ck_json_run *chain;
    uint64_t hash;
} ck_json_run;

typedef struct ck_json_runs {
    ck_mem mem;
    ck_json_run *runs;
    uint32_t count, capacity;
    uint8_t *pool; /* rests */
    size_t pool_used, pool_bytes;
    ck_json_run **slots; /* power of two */
    uint32_t slot_count;
    ck_json_run none;     /* predicts nothing */
    ck_json_follow first; /* how records began */
    uint64_t forgot_at;   /* records decoded when the table was last emptied, so that it is not emptied all the time */
} ck_json_runs;

CK_NODISCARD ck_status ck_json_runs_init(ck_json_runs *r, ck_mem mem, uint32_t column_count);
void ck_json_runs_destroy(ck_json_runs *r);
/* The run at p when it is a known one. first: p is a record's start. */
ck_json_run *ck_json_runs_find(ck_json_runs *r, const ck_json_kernel *k, const uint8_t *p, bool first);
/* Enters p[0, n). NULL when there is no room for it (not an error). serial: records so far. */
ck_json_run *ck_json_runs_learn(ck_json_runs *r, const uint8_t *p, size_t n, bool first, ck_json_op op,
                                ck_target *target, uint64_t serial);

/* ---- the decoder ---- */

typedef struct ck_json_key {
    const char *name; /* NULL = free slot */
    size_t bytes;
    uint32_t index;
} ck_json_key;

/* Column and field names by text. */
typedef struct ck_json_keys {
    ck_mem mem;
    ck_json_key *slots; /* power of two; NULL without keys */
    uint32_t slot_count;
} ck_json_keys;
CK_NODISCARD ck_status ck_json_keys_init(ck_json_keys *k, ck_mem mem, uint32_t count);
void ck_json_keys_destroy(ck_json_keys *k);
void ck_json_keys_add(ck_json_keys *k, const char *name, uint32_t index); /* name is borrowed */
int64_t ck_json_keys_find(const ck_json_keys *k, ck_view name);           /* -1: none */

/* Members of a nested object while it is converted. */
typedef struct ck_json_member {
    ck_json_value key, value;
    uint64_t hash; /* of the unescaped key */
    bool present;  /* false: missing, or a later one has the same key */
} ck_json_member;

typedef struct ck_json {
    ck_mem mem;
    ck_rows *rows;
    ck_why *why;
    const ck_json_kernel *kernel;
    ck_json_runs runs;
    ck_json_keys keys;
    ck_json_value *values;   /* per target: the last value of the record at hand */
    uint64_t serial;         /* records begun; a target's stamp equals it once its key was seen */
    ck_json_member *members; /* a stack: nested conversions take their part and give it back */
    size_t member_count, member_capacity;
    uint32_t *slots; /* scratch of finding equal keys */
    size_t slot_capacity;
    ck_bytes text; /* scratch of unescaping keys */
    const ck_target *like; /* with spelled: the column it would be in other letters */
    char spelled[64];      /* "": no such key was seen */
    uint32_t strangers;    /* keys compared for it */
} ck_json;

CK_NODISCARD ck_status ck_json_init(ck_json *j, ck_mem mem, ck_rows *rows, ck_why *why, ck_cpu cpu);
void ck_json_destroy(ck_json *j);

/* The bytes at hand: whole records [p, last), the byte before last a newline. */
typedef struct ck_json_span {
    const uint8_t *p, *last;
    ck_buffer *buf;  /* they stand in it; views may point into it */
    uint64_t offset; /* of buf->p[0] in the file */
    bool origins;
    ck_status status;
} ck_json_span;

/* The record [p, end), end being its newline, by the grammar. CK_DATA: it is bad and j->why says why. *blank: there was
 * none. */
CK_NODISCARD ck_status ck_json_record(ck_json *j, ck_json_span *s, const uint8_t *p, const uint8_t *end, bool *blank);

/* Before a nested value is converted: the scratch is empty, and not larger than small records need. */
void ck_json_trim_scratch(ck_json *j);

/* ---- storing (json_store.c) ---- */

/* Any value into its column at row. buf: strings may be views into it; NULL: they are copied. */
CK_NODISCARD ck_status ck_json_store(ck_json *j, ck_target *t, uint32_t row, const ck_json_value *v, ck_buffer *buf);
/* A string value of a VARCHAR column without a limit. */
CK_NODISCARD ck_status ck_json_store_string(ck_json *j, ck_target *t, uint32_t row, const ck_json_value *v,
                                            ck_buffer *buf);
/* NULL or missing. CK_DATA for a NOT NULL column. */
CK_NODISCARD ck_status ck_json_store_null(ck_json *j, ck_target *t, uint32_t row, const char *how);
/* A value appended to a builder of that type (json_nested.c). */
CK_NODISCARD ck_status ck_json_append(ck_json *j, const ck_field *field, ck_column_builder *b, const ck_json_value *v,
                                      ck_buffer *buf);
/* A scalar that is no string type from its JSON value. */
CK_NODISCARD ck_status ck_json_scalar(ck_json *j, const ck_type *t, const ck_json_value *v, ck_scalar *out);
/* A length limit of VARCHAR and BYTES. */
CK_NODISCARD ck_status ck_value_limit(const ck_type *t, ck_view v, ck_why *w);

#endif
