/* The timestamps that logs and events are full of, eight bytes a step; any other shape is ck_parse_timestamp's. */
#include "data/text.h"
#include "format/value_int.h"

/* Bytes of x as digits where the shape has '0', and equal to it elsewhere: then each is 0 to 9 after the exclusive or,
 * and 0 at the separators. */
static bool shaped(uint64_t x, uint64_t shape, uint64_t over, uint64_t *digits) {
    uint64_t d = x ^ shape;
    *digits = d;
    return (((d + over) | d) & CK_SWAR_HIGH) == 0;
}

static unsigned two(uint64_t digits, unsigned at) {
    return (unsigned)(digits >> (8 * at) & 15) * 10 + (unsigned)(digits >> (8 * at + 8) & 15);
}

/* .f to .fffffffff: microseconds, what is beyond them cut. */
static const uint8_t *fraction(const uint8_t *p, int64_t *us) {
    unsigned n = 0;
    int64_t v = 0;
    for (; p[n] >= '0' && p[n] <= '9'; n++) {
        if (n == 9) return NULL;
        if (n < 6) v = v * 10 + (p[n] - '0');
    }
    if (n == 0) return NULL;
    static const int64_t unit[] = {1000000, 100000, 10000, 1000, 100, 10, 1};
    *us += v * unit[n < 6 ? n : 6];
    return p + n;
}

const uint8_t *ck_timestamp_scan(const uint8_t *p, int64_t *us) {
    uint64_t date, time, seconds;
    uint8_t middle = p[10];
    if (middle != 'T' && middle != ' ') return NULL;
    /* "0000-00-", "00?00:00", ":00" with the lowest byte first; digits may be 9 over, separators nothing */
    if (!shaped(ck_load64(p), 0x2D30302D30303030ULL, 0x7F76767F76767676ULL, &date)) return NULL;
    if (!shaped(ck_load64(p + 8), 0x30303A3030003030ULL | (uint64_t)middle << 16, 0x76767F76767F7676ULL, &time))
        return NULL;
    if (!shaped(ck_load32(p + 16) & 0xFFFFFF, 0x30303AULL, 0x76767FULL, &seconds)) return NULL;
    unsigned year = two(date, 0) * 100 + two(date, 2), month = two(date, 5), day = two(time, 0);
    unsigned hour = two(time, 3), minute = two(time, 6), second = two(seconds, 1);
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year == 0 || month - 1 > 11 || day == 0 || hour > 23 || minute > 59 || second > 59) return NULL;
    bool leap_day = month == 2 && day == 29 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day > days[month - 1] && !leap_day) return NULL;
    int64_t t = ck_days_from_civil(year, month, day) * 86400 + (int64_t)(hour * 3600 + minute * 60 + second);
    *us = t * 1000000;
    p += 19;
    if (*p == '.' && !(p = fraction(p + 1, us))) return NULL;
    return *p == 'Z' ? p + 1 : p;
}
