/* Where in the SQL text something is, and the one way an SQL error is written:
 *
 *     orders.sql:3:14: unknown column "amout"; did you mean "amount"?
 *       SELECT usr, amout FROM orders
 *                   ^
 *
 * Columns count characters (code points), so that they agree with what an editor shows. */
#ifndef CK_SQL_SOURCE_H
#define CK_SQL_SOURCE_H

#include "base/status.h"
#include "base/view.h"

typedef struct ck_pos {
    uint32_t line, column; /* 1-based; line 0 = nowhere */
    uint32_t begin, end;   /* byte range in the text */
} ck_pos;

/* A piece of a text that was made, and where in the statement it was made for it is from. */
typedef struct ck_source_part {
    uint32_t begin, end; /* bytes of the made text */
    ck_pos at;
    bool copied; /* letter by letter: a place within it is as far behind the beginning of `at` */
} ck_source_part;

/* A text being compiled: a script, or the definition of a view. Borrowed. A text that was made for a statement (ALTER)
 * is seen by nobody: what is wrong in it is placed in that statement, at the part it is from, else at made_at. */
typedef struct ck_source_text {
    const char *name; /* "orders.sql", "-e", "view v" */
    ck_view text;
    const struct ck_source_text *made_for; /* NULL: written by a person */
    ck_pos made_at;
    const ck_source_part *parts;
    uint32_t part_count;
} ck_source_text;

/* From the start of a to the end of b. */
static inline ck_pos ck_pos_span(ck_pos a, ck_pos b) {
    a.end = b.end;
    return a;
}
static inline ck_view ck_source_slice(const ck_source_text *s, ck_pos p) {
    return (ck_view){s->text.p + p.begin, p.end - p.begin};
}

/* Fill *err (may be NULL) with the place, the sentence, the line and a caret; returns status. A long line is cut to a
 * window around the caret. */
ck_status ck_source_fail(const ck_source_text *s, ck_pos at, ck_error *err, ck_status status, const char *fmt, ...)
    CK_PRINTF(5, 6);
/* Give a placeless error of a lower room (expressions, connectors) this place: prefix before, line and caret after its
 * message. CK_NOMEM stays as it is. Returns err's status, or `status` where err is NULL. */
ck_status ck_source_place(const ck_source_text *s, ck_pos at, ck_status status, ck_error *err);

/* Line and column of a byte offset: for errors found without a token. */
ck_pos ck_source_locate(const ck_source_text *s, size_t begin, size_t end);

#endif
