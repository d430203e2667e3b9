/* Pieces of CREATE TABLE. */
#ifndef CK_SQL_BIND_CREATE_INT_H
#define CK_SQL_BIND_CREATE_INT_H

#include "sql/bind/bind_int.h"

/* Fills connector and options of the entry's table. */
CK_NODISCARD ck_status ck_bind_options(ck_binder *b, const ck_ast_options *list, ck_catalog_entry *e, ck_pos at);

/* Whether the name may be taken; *skip: IF NOT EXISTS, and it exists. With `replaced`, OR REPLACE is allowed: what it
 * replaces is dropped and handed out, else NULL. */
CK_NODISCARD ck_status ck_bind_free_name(ck_binder *b, const ck_ast_names *name, bool if_not_exists, ck_entry_kind kind,
                                         bool *skip, ck_catalog_entry **replaced);

#endif
