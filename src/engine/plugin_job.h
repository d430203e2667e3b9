/* A job that a plugin puts together (clink_job_builder): SQL between operators of plugins, as one graph. */
#ifndef CK_ENGINE_PLUGIN_JOB_H
#define CK_ENGINE_PLUGIN_JOB_H

#include "engine/engine_int.h"

/* Compiles the plugin's job into j->plan; o has everything but the names. The catalog's lock is held. Errors in SQL are
 * placed in the text that the job amounts to, which they show. */
CK_NODISCARD ck_status engine_plugin_compile(clink_engine *e, clink_job *j, const ck_plugin_job *job,
                                             const ck_sql_options *o, ck_error *err);
/* The same for what `build` makes of a builder and `arg`. */
CK_NODISCARD ck_status engine_built_compile(clink_engine *e, clink_job *j, const char *name,
                                            clink_status (*build)(clink_job_builder *b, const void *arg),
                                            const void *arg, const ck_sql_options *o, ck_error *err);
/* EXPLAIN of a graph: its operators from the sinks to the sources. In the arena. */
CK_NODISCARD ck_status engine_explain_graph(ck_arena *a, const ck_registry *r, ck_proc *proc, const ck_graph *g,
                                            const char **out, ck_error *err);

#endif
