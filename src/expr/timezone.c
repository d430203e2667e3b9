/* See timezone.h. A file has its times twice, as 32-bit and (from version 2) as 64-bit numbers, and ends with a rule in
 * the notation of POSIX TZ for what comes after the last transition. */
#include "expr/timezone.h"

#include "base/cursor.h"
#include "data/text.h"
#include "expr/timezone_int.h"
#include "os/fs.h"

enum { FILE_BYTES_MAX = 1 << 20, TRANSITIONS_MAX = 10000, TYPES_MAX = 256 };
static const int64_t second_us = 1000000;
static const int64_t cycle_s = 12622780800; /* 400 years */

typedef struct change {
    int64_t at;     /* seconds, UTC */
    int64_t offset; /* seconds east, from there on */
} change;

struct ck_timezone {
    int64_t first_offset;
    change *changes;
    size_t count;
    size_t repeat; /* changes[repeat..count) are one cycle of the rule; count: no rule */
};

/* ---- the file ---- */

typedef struct header {
    uint64_t version, isut, isstd, leap, times, types, chars;
} header;

static bool read_header(ck_cursor *c, header *h) {
    ck_view magic, reserved;
    uint8_t version;
    if (!ck_cursor_take(c, 4, &magic) || memcmp(magic.p, "TZif", 4) != 0) return false;
    if (!ck_cursor_u8(c, &version) || !ck_cursor_take(c, 15, &reserved)) return false;
    h->version = version ? (uint64_t)(version - '0') : 1;
    uint64_t *counts[] = {&h->isut, &h->isstd, &h->leap, &h->times, &h->types, &h->chars};
    for (size_t i = 0; i < CK_ARRAY_COUNT(counts); i++)
        if (!ck_cursor_be(c, 4, counts[i])) return false;
    return h->times <= TRANSITIONS_MAX && h->types >= 1 && h->types <= TYPES_MAX && h->chars <= 10000 &&
           h->leap <= 10000 && h->isut <= h->types && h->isstd <= h->types;
}

static size_t block_bytes(const header *h, size_t width) {
    return h->times * (width + 1) + h->types * 6 + h->chars + h->leap * (width + 4) + h->isstd + h->isut;
}

/* The transitions of a data block of 4- or 8-byte times. */
static ck_status read_block(ck_arena *a, ck_cursor *c, const header *h, size_t width, ck_timezone *z, ck_error *err) {
    ck_view block;
    if (!ck_cursor_take(c, block_bytes(h, width), &block)) return CK_CORRUPT;
    ck_cursor times = ck_cursor_of(block.p, h->times * width);
    const uint8_t *which = (const uint8_t *)block.p + h->times * width;
    const uint8_t *types = which + h->times;
    int64_t offsets[TYPES_MAX];
    for (size_t i = 0; i < h->types; i++) {
        ck_cursor t = ck_cursor_of(types + i * 6, 6);
        uint64_t v;
        if (!ck_cursor_be(&t, 4, &v)) return CK_CORRUPT;
        offsets[i] = (int32_t)(uint32_t)v;
        if (offsets[i] < -26 * 3600 || offsets[i] > 26 * 3600) return CK_CORRUPT;
    }
    z->first_offset = offsets[0];
    size_t most = h->times + CK_RULE_CHANGES_MAX;
    z->changes = ck_arena_array(a, most, sizeof *z->changes);
    if (!z->changes) return ck_nomem(err, a->mem, most * sizeof *z->changes);
    for (size_t i = 0; i < h->times; i++) {
        uint64_t v;
        if (!ck_cursor_be(&times, width, &v) || which[i] >= h->types) return CK_CORRUPT;
        int64_t at = width == 8 ? (int64_t)v : (int32_t)(uint32_t)v;
        if (z->count && at <= z->changes[z->count - 1].at) return CK_CORRUPT;
        z->changes[z->count++] = (change){at, offsets[which[i]]};
    }
    return CK_OK;
}

/* Adds 400 years of the rule behind the last transition. */
static bool read_rule(ck_cursor *c, ck_timezone *z) {
    ck_view text = {(const char *)c->p, c->left};
    z->repeat = z->count;
    if (text.n < 2 || text.p[0] != '\n') return false;
    const char *end = memchr(text.p + 1, '\n', text.n - 1);
    if (!end) return false;
    ck_tz_rule rule;
    ck_view words = {text.p + 1, (size_t)(end - text.p - 1)};
    if (!words.n) return true; /* no rule: the last offset stays */
    if (!ck_tz_rule_parse(words, &rule)) return false;
    int64_t last = z->count ? z->changes[z->count - 1].at : INT64_MIN;
    if (!rule.has_dst) return true;
    int64_t year = 1970;
    unsigned month, day;
    if (z->count) ck_civil_from_days(last / 86400, &year, &month, &day);
    for (int64_t y = year; y <= year + 401 && z->count - z->repeat < CK_RULE_CHANGES_MAX - 1; y++) {
        change two[2];
        ck_tz_rule_year(&rule, y, &two[0].at, &two[1].at);
        two[0].offset = rule.dst_offset, two[1].offset = rule.std_offset;
        if (two[1].at < two[0].at) {
            change swap = two[0];
            two[0] = two[1], two[1] = swap;
        }
        for (int i = 0; i < 2; i++) {
            bool again = z->count > z->repeat && two[i].at >= z->changes[z->repeat].at + cycle_s;
            if (two[i].at > last && !again) z->changes[z->count++] = two[i];
        }
    }
    return true;
}

ck_status ck_timezone_parse(ck_arena *a, ck_view bytes, const char *name, const ck_timezone **out, ck_error *err) {
    ck_cursor c = ck_cursor_of(bytes.p, bytes.n);
    header h;
    ck_view old;
    ck_timezone *z = CK_ARENA_NEW(a, ck_timezone);
    if (!z) return ck_nomem(err, a->mem, sizeof *z);
    ck_status st = read_header(&c, &h) ? CK_OK : CK_CORRUPT;
    size_t width = st == CK_OK && h.version >= 2 ? 8 : 4;
    /* From version 2 the times in 32 bits come first, and then everything again. */
    if (width == 8 && !(ck_cursor_take(&c, block_bytes(&h, 4), &old) && read_header(&c, &h))) st = CK_CORRUPT;
    if (st == CK_OK) st = read_block(a, &c, &h, width, z, err);
    z->repeat = z->count;
    if (st == CK_OK && width == 8 && !read_rule(&c, z)) st = CK_CORRUPT;
    if (st == CK_CORRUPT) return ck_fail(err, CK_CORRUPT, "the time zone file of %s is damaged", name);
    CK_TRY(st);
    *out = z;
    return CK_OK;
}

/* ---- names ---- */

/* [+-]hh[[:]mm] */
static bool parse_offset(const char *s, int64_t *seconds) {
    if (*s != '+' && *s != '-') return false;
    int64_t sign = *s++ == '-' ? -1 : 1, digits = 0, value = 0;
    for (; *s; s++) {
        if (*s == ':' && digits == 2) continue;
        if (*s < '0' || *s > '9' || ++digits > 4) return false;
        value = value * 10 + (*s - '0');
    }
    if (digits != 2 && digits != 4) return false;
    int64_t hours = digits == 2 ? value : value / 100, minutes = digits == 2 ? 0 : value % 100;
    if (hours > 18 || minutes > 59) return false;
    *seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool is_zone_name(const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > 64 || name[0] == '/' || strstr(name, "..")) return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") == n;
}

static ck_status fixed(ck_arena *a, int64_t offset, const ck_timezone **out, ck_error *err) {
    ck_timezone *z = CK_ARENA_NEW(a, ck_timezone);
    if (!z) return ck_nomem(err, a->mem, sizeof *z);
    z->first_offset = offset;
    *out = z;
    return CK_OK;
}

ck_status ck_timezone_load(ck_proc *proc, ck_arena *a, const char *name, const ck_timezone **out, ck_error *err) {
    static const char *const utc[] = {"UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu"};
    static const char *const folders[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"};
    *out = NULL;
    for (size_t i = 0; i < CK_ARRAY_COUNT(utc); i++)
        if (ck_view_eq_nocase(ck_view_of(name), ck_view_of(utc[i]))) return fixed(a, 0, out, err);
    int64_t offset;
    if (parse_offset(name, &offset)) return fixed(a, offset, out, err);
    if (!is_zone_name(name)) return ck_fail(err, CK_INVALID, "'%.80s' is not the name of a time zone", name);
    for (size_t i = 0; proc && proc->fs && i < CK_ARRAY_COUNT(folders); i++) {
        char *path = ck_arena_printf(a, "%s/%s", folders[i], name);
        if (!path) return ck_nomem(err, a->mem, 128);
        ck_view bytes;
        ck_status s = ck_fs_read_all(proc, path, FILE_BYTES_MAX, a, &bytes, err);
        if (s == CK_OK) return ck_timezone_parse(a, bytes, name, out, err);
        if (s == CK_NOMEM) return s;
    }
    return ck_fail(err, CK_INVALID, "no time zone '%s' (zones are read from %s)", name, folders[0]);
}

/* ---- questions ---- */

/* Index of the last change at or before t, -1: none. */
static ptrdiff_t change_at(const ck_timezone *z, int64_t t) {
    size_t lo = 0, hi = z->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (z->changes[mid].at <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (ptrdiff_t)lo - 1;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static int64_t to_us(int64_t seconds) {
    if (seconds > INT64_MAX / second_us) return INT64_MAX;
    if (seconds < INT64_MIN / second_us) return INT64_MIN;
    return seconds * second_us;
}

int64_t ck_timezone_offset(const ck_timezone *z, int64_t utc_us, int64_t *from, int64_t *until) {
    int64_t t = floor_div(utc_us, second_us), shift = 0;
    if (z->repeat < z->count && t >= z->changes[z->repeat].at + cycle_s) {
        shift = (t - z->changes[z->repeat].at) / cycle_s * cycle_s;
        t -= shift;
    }
    ptrdiff_t i = change_at(z, t);
    if (from) *from = i < 0 ? INT64_MIN : to_us(z->changes[i].at + shift);
    if (until) {
        bool last = (size_t)(i + 1) == z->count;
        if (!last)
            *until = to_us(z->changes[i + 1].at + shift);
        else
            *until = z->repeat < z->count ? to_us(z->changes[z->repeat].at + cycle_s + shift) : INT64_MAX;
    }
    return (i < 0 ? z->first_offset : z->changes[i].offset) * second_us;
}

int64_t ck_timezone_utc(const ck_timezone *z, int64_t local_us) {
    /* The offsets a day before and after are those around any change near it. */
    const int64_t day = 86400 * second_us;
    int64_t before = ck_timezone_offset(z, local_us - day, NULL, NULL);
    int64_t after = ck_timezone_offset(z, local_us + day, NULL, NULL);
    int64_t early = local_us - before;
    if (before == after || ck_timezone_offset(z, early, NULL, NULL) == before) return early;
    int64_t late = local_us - after;
    return ck_timezone_offset(z, late, NULL, NULL) == after ? late : early;
}
