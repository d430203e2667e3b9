/* Looking at what sinks have committed, and whether it is what the input gives. */
#ifndef SIM_OUTPUT_H
#define SIM_OUTPUT_H

#include "os/fs.h"
#include "plan.h"

/* CK_OK, or CK_CORRUPT saying what is missing, doubled or wrong. */
ck_status output_check(ck_proc *proc, const plan *p, ck_error *err);
/* Splits that rows of c have come from so far. */
ck_status output_splits_of_c(ck_proc *proc, const plan *p, uint32_t *out, ck_error *err);

#endif
