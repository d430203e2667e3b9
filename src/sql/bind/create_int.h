/* Pieces of CREATE TABLE. */
#ifndef CK_SQL_BIND_CREATE_INT_H
#define CK_SQL_BIND_CREATE_INT_H

#include "sql/bind/bind_int.h"

/* Fills connector and options of the entry's table. statement: it makes the table; e->sql, where it is there, is its
 * text, in which paths are made absolute, too. */
CK_NODISCARD ck_status ck_bind_options(ck_binder *b, const ck_ast_options *list, ck_catalog_entry *e, ck_pos at,
                                       ck_pos statement);
/* Whether the connector could read or write the table as it is declared; when all else of it is known. */
CK_NODISCARD ck_status ck_bind_check_options(ck_binder *b, const ck_ast_options *list, const ck_catalog_entry *e,
                                             ck_pos at);
/* Asks the connector whether the table can be read, or written; what is wrong is placed in its CREATE TABLE. */
CK_NODISCARD ck_status ck_bind_check_table(ck_binder *b, const ck_table_def *t, bool as_sink);

/* Of the connector's options and those that every table has; NULL: there is none of that name. */
const ck_option_desc *ck_bind_option_named(const ck_connector_desc *d, ck_view name);

/* METADATA columns become options metadata.<column> of the table, where its connector has such. After the options. */
CK_NODISCARD ck_status ck_bind_metadata(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t);

/* WATERMARK FOR and the options about event time, which every connector's tables have. After columns and options. */
CK_NODISCARD ck_status ck_bind_state_ttl(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t);
CK_NODISCARD ck_status ck_bind_event_time(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t);
const ck_option_desc *ck_bind_time_options(uint32_t *count);

/* Whether the name may be taken; *skip: IF NOT EXISTS, and it exists. With `replaced`, OR REPLACE is allowed: what it
 * replaces is dropped and handed out, else NULL. */
CK_NODISCARD ck_status ck_bind_free_name(ck_binder *b, const ck_ast_names *name, bool if_not_exists, ck_entry_kind kind,
                                         bool *skip, ck_catalog_entry **replaced);

/* PRIMARY KEY, of columns or of the table: the schema's fields become NOT NULL. The schema is still the entry's alone.
 */
CK_NODISCARD ck_status ck_bind_table_key(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t,
                                         ck_table_column *columns, uint32_t count);
/* Whether the table can be written, and the query's rows as an output into it. */
CK_NODISCARD ck_status ck_bind_check_sink(ck_binder *b, const ck_table_def *t, ck_pos at);
CK_NODISCARD ck_status ck_bind_rows_into(ck_binder *b, const ck_catalog_entry *e, const ck_ast_insert *i,
                                         ck_plan_node *n, ck_pos pos, ck_output *out);
/* Every column has a type: a NULL that nothing gave one becomes text. */
CK_NODISCARD ck_status ck_bind_typed_nulls(ck_binder *b, ck_plan_node **n, ck_pos at);
/* CREATE TABLE ... AS: the table from the query's columns, and the query's rows as an output into it. */
CK_NODISCARD ck_status ck_bind_create_as(ck_binder *b, ck_catalog_entry *e, const ck_ast_create_table *t, ck_pos pos,
                                         ck_output *out);
/* The table in memory has the rows of another, which it replaces. */
CK_NODISCARD ck_status ck_bind_same_instance(ck_binder *b, ck_catalog_entry *e, const char *instance);

#endif
