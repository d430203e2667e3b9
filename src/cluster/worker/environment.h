/* The environment of a task host: what a process needs to run, and the secrets that its job names. */
#ifndef CK_CLUSTER_WORKER_ENVIRONMENT_H
#define CK_CLUSTER_WORKER_ENVIRONMENT_H

#include "base/mem.h"
#include "base/view.h"

/* From `environ`, NULL at the end; free the list, its texts stay the environment's. job: what the host is told of its
 * job, in which ${env:NAME} names a variable. confined: of what a job names only CLINK_SECRET_*, and nothing by which
 * libraries would find what is our user's. NULL without memory. */
char **ck_host_environment(ck_mem mem, char *const *environ_of_ours, ck_view job, bool confined);
void ck_host_environment_free(ck_mem mem, char **list, char *const *environ_of_ours);

#endif
