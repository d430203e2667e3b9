/* Times as options, settings and hints write them: '1h', '30 min', '2 days', '500 ms'. */
#include "sql/catalog/catalog.h"

bool ck_duration_us(ck_view text, int64_t *us) {
    static const struct {
        const char *names; /* '|' between and around */
        int64_t us;
    } units[] = {{"|ms|millisecond|milliseconds|", 1000},
                 {"|s|sec|second|seconds|", 1000000},
                 {"|m|min|minute|minutes|", 60000000},
                 {"|h|hour|hours|", 3600000000},
                 {"|d|day|days|", 86400000000}};
    const int64_t most = 8000 * 366 * 86400000000LL;
    int64_t n = 0;
    size_t i = 0;
    for (; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++)
        if ((n = n * 10 + (text.p[i] - '0')) > most) return false;
    if (i == 0) return false;
    while (i < text.n && text.p[i] == ' ') i++;
    char unit[24] = "|";
    size_t at = 1;
    for (; i < text.n && at + 2 < sizeof unit; i++) unit[at++] = ck_ascii_lower(text.p[i]);
    if (i < text.n) return false;
    *us = 0;
    if (at == 1) return n == 0; /* 0: for ever; other numbers have a unit */
    unit[at++] = '|';
    unit[at] = 0;
    for (size_t k = 0; k < CK_ARRAY_COUNT(units); k++) {
        if (!strstr(units[k].names, unit)) continue;
        return !__builtin_mul_overflow(n, units[k].us, us) && *us <= most;
    }
    return false;
}
