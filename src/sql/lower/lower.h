/* From the optimised plan to the job graph: operators with parameters, edges, uids and fingerprints. */
#ifndef CK_SQL_LOWER_LOWER_H
#define CK_SQL_LOWER_LOWER_H

#include "sql/bind/bind.h"

typedef struct ck_lowering {
    const ck_catalog *catalog; /* registry and settings */
    const ck_sql_options *options;
    ck_plan *plan;               /* arena, err */
    const char *const *warnings; /* shown by EXPLAIN */
    uint32_t warning_count;
} ck_lowering;

/* Fills graph, bounded, result members, guarantee, explain of *step. */
CK_NODISCARD ck_status ck_lower(const ck_lowering *l, const ck_output *outputs, uint32_t count, ck_sql_step *step);

#endif
