/* A script beside a checkpoint, as the engine asks for it: before a start, before a submit, and only to look. */
#ifndef CK_ENGINE_EVOLVE_INT_H
#define CK_ENGINE_EVOLVE_INT_H

#include "engine/engine_int.h"
#include "runtime/evolve.h"

ck_added_state engine_added_state(const clink_run *r);
/* Of a job that does not run: what its operators have to know to say which slots they open. Borrows from both. */
ck_job_settings engine_look_settings(const ck_graph *graph, const char *job_name);
/* By the run's options; settings are those of the graph and must stay. */
ck_evolve_config engine_evolve_config(clink_engine *e, const clink_run *r, const ck_graph *graph,
                                      const ck_job_settings *settings);

#endif
