/* Asking a coordinator about one job. */
#ifndef CK_CLI_JOBS_H
#define CK_CLI_JOBS_H

#include "cli/cluster.h"

/* Asks and prints the answer; the exit status. */
int jobs_ask(const cluster_flags *f, clink_job_command command, uint64_t id);
int jobs_id(const verb *v, const char *text, uint64_t *id); /* 0, or 2 after a line on stderr */

#endif
