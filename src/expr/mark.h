/* Error marks: what went wrong in one row, raised only if the row is still wanted where SQL would have evaluated the
 * expression. */
#ifndef CK_EXPR_MARK_H
#define CK_EXPR_MARK_H

typedef enum ck_mark {
    CK_MARK_NONE = 0,
    CK_MARK_OVERFLOW, /* "is out of range for BIGINT" */
    CK_MARK_DIVISION, /* "division by zero" */
    CK_MARK_CAST,     /* "'abc' is not a BIGINT" */
    CK_MARK_ARGUMENT, /* an argument outside the function's domain */
    CK_MARK_TOO_LONG, /* a string result above its ceiling */
    CK_MARK_STEPS,    /* a match of a regular expression that was given up */
    CK_MARK_PLUGIN,   /* what the plugin's function said: ck_eval.said */
    CK_MARK_COUNT
} ck_mark;

#endif
