/* ALTER TABLE from the inside. */
#ifndef CK_SQL_BIND_ALTER_INT_H
#define CK_SQL_BIND_ALTER_INT_H

#include "sql/bind/create_int.h"

/* The table as it is to be: a copy that is only printed. */
typedef struct ck_altered {
    ck_catalog_entry entry;
    ck_table_column *columns; /* entry.table.columns */
    ck_pos at;                /* what the statement changes: where it is wrong unless something says better */
} ck_altered;

/* A copy with room for more columns. */
CK_NODISCARD ck_status ck_alter_begin(ck_binder *b, const ck_catalog_entry *e, uint32_t extra, ck_altered *a);

/* ---- alter_columns.c ---- */
CK_NODISCARD ck_status ck_alter_add_columns(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e,
                                            ck_altered *a);
CK_NODISCARD ck_status ck_alter_modify_columns(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e,
                                               ck_altered *a);
CK_NODISCARD ck_status ck_alter_drop_column(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e,
                                            ck_altered *a);
CK_NODISCARD ck_status ck_alter_rename_column(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e,
                                              ck_altered *a);

/* ---- alter_options.c ---- */
CK_NODISCARD ck_status ck_alter_set_options(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e,
                                            ck_altered *a);
CK_NODISCARD ck_status ck_alter_reset_options(ck_binder *b, const ck_ast_statement *s, const ck_catalog_entry *e,
                                              ck_altered *a);
/* Options that are about a column, or name it, follow it to its new name; `to` NULL: those about it go. *named: an
 * option that still names it, NULL: none. */
CK_NODISCARD ck_status ck_alter_options_of_column(ck_binder *b, ck_altered *a, const char *column, const char *to,
                                                  const char **named);

#endif
