/* Connectors of plugins (clink/plugin.h) as ours: connector.c what SQL may say, source.c, sink.c, committer.c, bytes.c
 * what plugins keep as bytes, in JSON. All calls of a plugin but `check` and `endless` are made by I/O jobs. */
#ifndef CK_CONNECTOR_PLUGIN_INT_H
#define CK_CONNECTOR_PLUGIN_INT_H

#include "connector/background.h"
#include "connector/table.h"
#include "expr/library.h"

struct yyjson_val;

enum { CK_PLUGIN_POSITION_BYTES_MAX = 64 << 10, CK_PLUGIN_COMMITTABLE_BYTES_MAX = 1 << 20 };

/* ---- connector.c ---- */

/* The connector whose source or sink this is: "source.<name>", "sink.<name>". */
CK_NODISCARD ck_status ck_plugin_connector_of(const ck_op_spec *spec, const ck_plugin_connector **out, ck_error *err);
/* As the plugin sees the table; in the arena. resolve: secrets in options become what they stand for, which blocks;
 * NULL: they stay. */
CK_NODISCARD ck_status ck_plugin_table_make(const ck_plugin_connector *c, const char *name, const ck_schema *schema,
                                            const uint32_t *key, uint32_t key_count, const ck_table_options *options,
                                            ck_proc *resolve, ck_arena *a, clink_table *out, ck_error *err);
/* What the plugin said of a call that went wrong: "connector x of plugin y, write: ...". what: literal. */
CK_NODISCARD ck_status ck_plugin_said(const ck_plugin_connector *c, const char *table, const char *what, clink_status s,
                                      const clink_error *said, ck_error *err);

/* ---- bytes.c: {"text":...} where they are UTF-8, else {"hex":...} ---- */

/* Members of a JSON object without its brackets; in the arena. CK_NOMEM. */
CK_NODISCARD ck_status ck_plugin_bytes_write(ck_arena *a, ck_view bytes, const char **out);
/* false: the object has no such members. The bytes are in the arena or the document. CK_NOMEM: out->p is NULL. */
bool ck_plugin_bytes_read(ck_arena *a, struct yyjson_val *object, ck_view *out);

/* ---- committer.c ---- */

CK_NODISCARD ck_status ck_plugin_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
extern const ck_committer_vtbl ck_plugin_committer_vtbl;

extern const ck_source_vtbl ck_plugin_source_vtbl;
CK_NODISCARD ck_status ck_plugin_source_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
CK_NODISCARD ck_status ck_plugin_source_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out,
                                                  ck_error *err);

extern const ck_operator_vtbl ck_plugin_sink_vtbl;
CK_NODISCARD ck_status ck_plugin_sink_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err);
CK_NODISCARD ck_status ck_plugin_sink_slots(const ck_op_spec *spec, ck_arena *a, const ck_slot_schema **slots,
                                            uint32_t *count, ck_error *err);

#endif
