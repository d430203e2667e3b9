#include "engine/evolve_int.h"

ck_added_state engine_added_state(const clink_run *r) {
    return r->added_state == CLINK_ADDED_FROM_NOW   ? CK_ADDED_FROM_NOW
           : r->added_state == CLINK_ADDED_BACKFILL ? CK_ADDED_BACKFILL
                                                    : CK_ADDED_REFUSED;
}

ck_job_settings engine_look_settings(const ck_graph *graph, const char *job_name) {
    return (ck_job_settings){.batch_rows = CK_BATCH_ROWS_MAX,
                             .key_groups = graph->key_groups,
                             .timezone = graph->timezone,
                             .job_name = job_name,
                             .checkpoints = true};
}

ck_evolve_config engine_evolve_config(clink_engine *e, const clink_run *r, const ck_graph *graph,
                                      const ck_job_settings *settings) {
    return (ck_evolve_config){.proc = &e->proc,
                              .registry = &e->registry,
                              .wanted = graph,
                              .settings = settings,
                              .added = engine_added_state(r),
                              .allow = r->allow_semantic_change != 0};
}
