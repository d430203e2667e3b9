/* See datefmt.h. */
#include "expr/datefmt.h"

#include "expr/time_int.h"

typedef struct item {
    char letter; /* 0: plain text */
    uint32_t width;
    ck_view text;
} item;

struct ck_datefmt {
    item *items;
    size_t count;
    size_t bytes_max;
    int64_t grain_us;
};

static const char *const months[12] = {"January", "February", "March",     "April",   "May",      "June",
                                       "July",    "August",   "September", "October", "November", "December"};
static const char *const days[7] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static int64_t grain_of(char letter, uint32_t width) {
    switch (letter) {
    case 'H':
    case 'h': return CK_HOUR_US;
    case 'a': return 12 * CK_HOUR_US;
    case 'm': return CK_MINUTE_US;
    case 's': return CK_SECOND_US;
    case 'S': return width <= 3 ? 1000 : 1;
    default: return CK_DAY_US;
    }
}

static ck_status add_letters(ck_datefmt *f, char c, uint32_t width, ck_error *err) {
    if (!strchr("yuMdDEHhmsSa", c))
        return ck_fail(err, CK_INVALID, "a date pattern has no letter %c; text stands in quotes ('')", c);
    if (width > 9 || (strchr("dHhms", c) && width > 2))
        return ck_fail(err, CK_INVALID, "%u letters %c in a row are too many in a date pattern", width, c);
    f->items[f->count++] = (item){c == 'u' ? 'y' : c, width, {0}};
    f->bytes_max += width > 12 ? width : 12;
    int64_t grain = grain_of(c, width);
    if (grain < f->grain_us) f->grain_us = grain;
    return CK_OK;
}

ck_status ck_datefmt_compile(ck_arena *a, ck_view pattern, const ck_datefmt **out, ck_error *err) {
    if (pattern.n > CK_DATEFMT_PATTERN_MAX)
        return ck_fail(err, CK_INVALID, "the date pattern '%.60s...' is longer than %d bytes", pattern.p,
                       CK_DATEFMT_PATTERN_MAX);
    ck_datefmt *f = CK_ARENA_NEW(a, ck_datefmt);
    char *text = ck_arena_alloc(a, pattern.n + 1);
    if (!f || !text || !(f->items = ck_arena_array(a, pattern.n + 1, sizeof(item))))
        return ck_nomem(err, a->mem, pattern.n * sizeof(item));
    f->grain_us = CK_DAY_US;
    bool quoted = false;
    for (size_t i = 0; i < pattern.n;) {
        char c = pattern.p[i];
        if (c == '\'' && !(i + 1 < pattern.n && pattern.p[i + 1] == '\'')) {
            quoted = !quoted, i++;
            continue;
        }
        if (!quoted && is_letter(c)) {
            uint32_t width = 0;
            while (i < pattern.n && pattern.p[i] == c) width++, i++;
            CK_TRY(add_letters(f, c, width, err));
            continue;
        }
        i += c == '\'' ? 2 : 1; /* two quotes are one */
        item *last = f->count ? &f->items[f->count - 1] : NULL;
        if (last && !last->letter)
            last->text.n++;
        else
            f->items[f->count++] = (item){.text = {text, 1}};
        *text++ = c;
        f->bytes_max++;
    }
    if (quoted)
        return ck_fail(err, CK_INVALID, "a quote is open in the date pattern '%.*s'",
                       (int)(pattern.n > 60 ? 60 : pattern.n), pattern.p);
    *out = f;
    return CK_OK;
}

size_t ck_datefmt_bytes_max(const ck_datefmt *f) { return f->bytes_max; }
int64_t ck_datefmt_grain_us(const ck_datefmt *f) { return f->grain_us; }

/* ---- printing ---- */

static char *number(char *p, int64_t v, uint32_t width) {
    char digits[20];
    uint32_t n = 0;
    do digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    for (; width > n; width--) *p++ = '0';
    while (n) *p++ = digits[--n];
    return p;
}

static char *word(char *p, const char *name, bool whole) {
    size_t n = whole ? strlen(name) : 3;
    memcpy(p, name, n);
    return p + n;
}

static char *fraction(char *p, int64_t us, uint32_t width) {
    int64_t unit = 100000;
    for (; width; width--, unit /= 10) *p++ = (char)(unit ? '0' + us / unit % 10 : '0');
    return p;
}

size_t ck_datefmt_print(const ck_datefmt *f, int64_t local_us, char *p) {
    char *begin = p;
    int64_t day = ck_floor_div(local_us, CK_DAY_US), rest = ck_floor_mod(local_us, CK_DAY_US), year;
    unsigned month, mday;
    ck_civil_from_days(day, &year, &month, &mday);
    int64_t hour = rest / CK_HOUR_US;
    for (size_t i = 0; i < f->count; i++) {
        const item *it = &f->items[i];
        switch (it->letter) {
        case 0: memcpy(p, it->text.p, it->text.n), p += it->text.n; break;
        case 'y': p = number(p, it->width == 2 ? year % 100 : year, it->width); break;
        case 'M': p = it->width < 3 ? number(p, month, it->width) : word(p, months[month - 1], it->width > 3); break;
        case 'd': p = number(p, mday, it->width); break;
        case 'D': p = number(p, day - ck_days_from_civil(year, 1, 1) + 1, it->width); break;
        case 'E': p = word(p, days[ck_floor_mod(day + 3, 7)], it->width > 3); break;
        case 'H': p = number(p, hour, it->width); break;
        case 'h': p = number(p, hour % 12 ? hour % 12 : 12, it->width); break;
        case 'm': p = number(p, rest / CK_MINUTE_US % 60, it->width); break;
        case 's': p = number(p, rest / CK_SECOND_US % 60, it->width); break;
        case 'S': p = fraction(p, rest % CK_SECOND_US, it->width); break;
        default: memcpy(p, hour < 12 ? "AM" : "PM", 2), p += 2; break;
        }
    }
    return (size_t)(p - begin);
}

/* ---- reading ---- */

typedef struct fields {
    int64_t year, month, day, hour, minute, second, us, day_of_year;
    int half; /* -1: none given, 0 AM, 1 PM */
} fields;

/* Up to `most` digits; fewer only where the field's end shows it, so exactly `most` when digits follow each other. */
static bool read_number(ck_view *t, uint32_t least, uint32_t most, int64_t *v) {
    uint32_t n = 0;
    *v = 0;
    for (; n < most && n < t->n && t->p[n] >= '0' && t->p[n] <= '9'; n++) *v = *v * 10 + (t->p[n] - '0');
    t->p += n, t->n -= n;
    return n >= least && n > 0;
}

static bool read_word(ck_view *t, const char *const *names, size_t count, bool whole, int64_t *which) {
    for (size_t i = 0; i < count; i++) {
        size_t n = whole ? strlen(names[i]) : 3;
        if (t->n < n || !ck_view_eq_nocase((ck_view){t->p, n}, (ck_view){names[i], n})) continue;
        t->p += n, t->n -= n;
        *which = (int64_t)i;
        return true;
    }
    return false;
}

static bool read_fraction(ck_view *t, uint32_t width, int64_t *us) {
    int64_t unit = 100000;
    *us = 0;
    for (uint32_t i = 0; i < width; i++, unit /= 10) {
        if (!t->n || *t->p < '0' || *t->p > '9') return false;
        *us += (*t->p - '0') * unit;
        t->p++, t->n--;
    }
    return true;
}

static bool read_item(const item *it, bool next_is_number, ck_view *t, fields *f) {
    uint32_t w = it->width, most = next_is_number || w > 1 ? w : it->letter == 'y' ? 9 : 2;
    int64_t ignored;
    switch (it->letter) {
    case 0:
        if (t->n < it->text.n || memcmp(t->p, it->text.p, it->text.n) != 0) return false;
        t->p += it->text.n, t->n -= it->text.n;
        return true;
    case 'y':
        if (!read_number(t, w, w == 2 ? 2 : next_is_number ? w : w > 4 ? w : 4, &f->year)) return false;
        if (w == 2) f->year += f->year < 70 ? 2000 : 1900;
        return true;
    case 'M':
        if (w < 3) return read_number(t, w, most, &f->month);
        if (!read_word(t, months, 12, w > 3, &f->month)) return false;
        f->month++;
        return true;
    case 'd': return read_number(t, w, most, &f->day);
    case 'D': return read_number(t, w, w > 3 ? w : 3, &f->day_of_year);
    case 'E': return read_word(t, days, 7, w > 3, &ignored);
    case 'H':
    case 'h': return read_number(t, w, most, &f->hour);
    case 'm': return read_number(t, w, most, &f->minute);
    case 's': return read_number(t, w, most, &f->second);
    case 'S': return read_fraction(t, w, &f->us);
    default: {
        static const char *const halves[] = {"AM", "PM"};
        for (int i = 0; i < 2; i++) {
            if (t->n < 2 || !ck_view_eq_nocase((ck_view){t->p, 2}, (ck_view){halves[i], 2})) continue;
            t->p += 2, t->n -= 2, f->half = i;
            return true;
        }
        return false;
    }
    }
}

static bool is_number_item(const item *it) {
    return it->letter && !strchr("Ea", it->letter) && !(it->letter == 'M' && it->width > 2);
}

bool ck_datefmt_parse(const ck_datefmt *f, ck_view t, int64_t *local_us) {
    fields v = {.year = 1970, .month = 1, .day = 1, .half = -1};
    for (size_t i = 0; i < f->count; i++) {
        bool next = i + 1 < f->count && is_number_item(&f->items[i + 1]);
        if (!read_item(&f->items[i], next, &t, &v)) return false;
    }
    if (t.n || v.year < 1 || v.year > 9999 || v.month < 1 || v.month > 12 || v.day < 1) return false;
    if (v.day > ck_days_in_month(v.year, (unsigned)v.month) || v.minute > 59 || v.second > 59) return false;
    if (v.half >= 0) {
        if (v.hour < 1 || v.hour > 12) return false;
        v.hour = v.hour % 12 + 12 * v.half;
    }
    if (v.hour > 23 || v.day_of_year > 366) return false;
    int64_t day = ck_days_from_civil(v.year, (unsigned)v.month, (unsigned)v.day);
    if (v.day_of_year) day = ck_days_from_civil(v.year, 1, 1) + v.day_of_year - 1;
    *local_us = day * CK_DAY_US + v.hour * CK_HOUR_US + v.minute * CK_MINUTE_US + v.second * CK_SECOND_US + v.us;
    return true;
}
