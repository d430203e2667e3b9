/* The forms that do not evaluate all their arguments on all rows: what a ck_impl without a kernel has as op. */
#ifndef CK_EXPR_LAZY_H
#define CK_EXPR_LAZY_H

typedef enum ck_lazy_form {
    CK_LAZY_AND,
    CK_LAZY_OR,
    CK_LAZY_CASE,
    CK_LAZY_COALESCE,
    CK_LAZY_NULLIF,
    CK_LAZY_BETWEEN,
    CK_LAZY_IN, /* a list that is not constant */
} ck_lazy_form;

#endif
