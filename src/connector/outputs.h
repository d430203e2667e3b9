/* What an engine gives its jobs: where rows go that stay in the process. */
#ifndef CK_CONNECTOR_OUTPUTS_H
#define CK_CONNECTOR_OUTPUTS_H

struct ck_collector;    /* connector/collect/collect.h */
struct ck_memory_stage; /* connector/memory/memory.h */

/* What ck_job_config.job_data points to: where the job's collect and memory sinks put their rows. Outlives the job. */
typedef struct ck_job_outputs {
    struct ck_collector *result; /* of the bare SELECT; NULL when it prints */
    /* The collector of a table with connector = 'collect', by the table's name; NULL: nobody listens, rows are counted
     * and dropped. */
    struct ck_collector *(*table)(void *arg, const char *name);
    void *arg;
    struct ck_memory_stage *memory; /* connector/memory/memory.h; NULL: no tables in memory */
} ck_job_outputs;

#endif
