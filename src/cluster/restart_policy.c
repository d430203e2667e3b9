#include "cluster/restart_policy.h"

uint32_t ck_effective_max_restarts(int64_t max, ck_view checkpoint_dir) {
    if (max == CK_RESTART_AUTO) return checkpoint_dir.n ? CK_DEFAULT_SELF_HEAL_RESTARTS : 0;
    return max < 0 ? 0 : max > UINT32_MAX ? UINT32_MAX : (uint32_t)max;
}

int64_t ck_restart_delay_us(uint32_t n, int64_t first_us, int64_t max_us, uint64_t random) {
    if (n <= 1 || first_us <= 0) return 0;
    int64_t delay = first_us;
    for (uint32_t i = 2; i < n && delay < max_us; i++) delay = delay > max_us / 2 ? max_us : delay * 2;
    if (delay > max_us) delay = max_us;
    return delay - (int64_t)(random % (uint64_t)(delay / 2 + 1));
}
