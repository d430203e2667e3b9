/* What the model operators share. */
#ifndef SIM_MODEL_INT_H
#define SIM_MODEL_INT_H

#include <stdio.h>
#include <stdlib.h>

#include "data/batch.h"
#include "model.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/io.h"
#include "os/random.h"
#include "state/operator_rows.h"
#include "state/state.h"

/* "name":123 in a flat JSON object; deflt when absent. */
int64_t model_param(const char *json, const char *name, int64_t deflt);
/* A batch of BIGINT columns, no NULLs; columns[c] has n values. */
ck_batch *model_batch(ck_mem mem, const int64_t *const *columns, uint32_t column_count, uint32_t n);

#endif
