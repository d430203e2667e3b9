/* The I/O executor: where blocking work goes. A job runs on one of its threads, then its completion runs on the same
 * thread and should only publish and notify. The only maker of threads beside the step pool and connectors that own
 * theirs. The simulator has one that runs jobs inline at seeded times. */
#ifndef CK_OS_IO_H
#define CK_OS_IO_H

#include "base/proc.h"

/* Embedded by the submitter, who keeps it alive until `done` was called. */
typedef struct ck_io_job {
    void (*run)(struct ck_io_job *j);  /* may block */
    void (*done)(struct ck_io_job *j); /* after run, once; may free the job */
    struct ck_io_job *next;            /* the executor's */
} ck_io_job;

typedef struct ck_io {
    void (*submit)(struct ck_io *io, ck_io_job *job); /* thread: any; never blocks; jobs start in order of submission */
} ck_io;

/* Real threads, made on demand up to threads_max, which end after some idle time. */
CK_NODISCARD ck_status ck_io_pool_new(ck_proc *proc, unsigned threads_max, ck_io **out, ck_error *err);
void ck_io_pool_free(ck_io *io); /* runs what was submitted, then joins; NULL is fine */

#endif
