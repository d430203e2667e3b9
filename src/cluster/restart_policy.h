/* When a job restarts, how often, and how long it waits before it does. */
#ifndef CK_CLUSTER_RESTART_POLICY_H
#define CK_CLUSTER_RESTART_POLICY_H

#include <stdint.h>

#include "cluster/message.h"

enum { CK_DEFAULT_SELF_HEAL_RESTARTS = 10 };

/* max: CK_RESTART_AUTO resolves to 10 with a checkpoint directory and to 0 without one, since there is nothing to
 * restore from; an explicit number is itself. Asked at every restart decision; what is stored is `max`. */
uint32_t ck_effective_max_restarts(int64_t max, ck_view checkpoint_dir);

/* Before restart number n (1-based) in a row: nothing for the first, then first_us, twice that, and so on up to max_us,
 * of which between half and all, by `random`, so that jobs hit by one loss do not come back in step. */
int64_t ck_restart_delay_us(uint32_t n, int64_t first_us, int64_t max_us, uint64_t random);

#endif
