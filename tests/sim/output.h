/* Looking at what sinks have committed, and whether it is what the input gives. */
#ifndef SIM_OUTPUT_H
#define SIM_OUTPUT_H

#include "os/fs.h"
#include "plan.h"

/* CK_OK, or CK_CORRUPT saying what is missing, doubled or wrong. */
ck_status output_check(ck_proc *proc, const plan *p, ck_error *err);

#endif
