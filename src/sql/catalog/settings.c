/* SET keys: their values, checks and defaults. A new one: a row in `known`, a case in set, get and reset_one. */
#include <stdio.h>

#include "base/limits.h"
#include "base/suggest.h"
#include "sql/catalog/catalog.h"
#include "sql/foreign.h"

enum { BATCH_ROWS, FLUSH_MS, ON_EVAL_ERROR, TIMEZONE, STATE_TTL, STATE_TTL_TIME };

static const ck_setting_desc known[] = {
    [BATCH_ROWS] = {"batch_rows", "1 to 4096", "rows of a batch; 1 emits a change for every input row"},
    [FLUSH_MS] = {"flush_ms", "1 to 60000", "how often changes of unbounded input are emitted"},
    [ON_EVAL_ERROR] = {"on_eval_error", "fail or null", "what an overflow, a division by zero, a bad cast gives"},
    [TIMEZONE] = {"timezone", "a zone as UTC or Europe/Berlin", "zone of TIMESTAMP_LTZ as text and of its parts"},
    [STATE_TTL] = {"state_ttl", "a time as '1h', or 0",
                   "state that was not written for so long is forgotten; 0: never"},
    [STATE_TTL_TIME] = {"state_ttl_time", "processing or event", "the clock state_ttl goes by"},
};

size_t ck_setting_count(void) { return CK_ARRAY_COUNT(known); }
const ck_setting_desc *ck_setting_at(size_t i) { return &known[i]; }

static int cut(ck_view v) { return v.n > 60 ? 60 : (int)v.n; }

static ck_status find(ck_view key, size_t *out, ck_error *err) {
    ck_suggest near;
    ck_suggest_init(&near, key);
    for (size_t i = 0; i < CK_ARRAY_COUNT(known); i++) {
        *out = i;
        if (ck_view_eq_nocase(key, ck_view_of(known[i].name))) return CK_OK;
        ck_suggest_offer(&near, ck_view_of(known[i].name));
    }
    const char *advice = ck_foreign_name(CK_FOREIGN_SETTING, key);
    if (advice) return ck_fail(err, CK_INVALID, "there is no setting \"%.*s\"; %s", cut(key), key.p, advice);
    if (near.best.n)
        return ck_fail(err, CK_INVALID, "there is no setting \"%.*s\"; did you mean \"%.*s\"?", cut(key), key.p,
                       (int)near.best.n, near.best.p);
    return ck_fail(err, CK_INVALID, "there is no setting \"%.*s\"; SET lists them", cut(key), key.p);
}

static ck_status bad(size_t i, ck_view value, ck_error *err) {
    return ck_fail(err, CK_INVALID, "%s is %s, not \"%.*s\"", known[i].name, known[i].values, cut(value), value.p);
}

static bool number(ck_view v, int64_t lo, int64_t hi, int64_t *out) {
    *out = 0;
    if (v.n == 0 || v.n > 9) return false;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9') return false;
        *out = *out * 10 + (v.p[i] - '0');
    }
    return *out >= lo && *out <= hi;
}

static bool zone_name(ck_view v, size_t room) {
    if (v.n == 0 || v.n >= room || v.p[0] == '/' || v.p[0] == '.') return false;
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && !strchr("/_+-:", c)) return false;
        if (c == 0) return false;
    }
    return true;
}

ck_status ck_settings_set(ck_settings *s, ck_view key, ck_view value, ck_error *err) {
    size_t i;
    int64_t n;
    CK_TRY(find(key, &i, err));
    if (ck_view_eq_nocase(value, CK_VIEW("default"))) return ck_settings_reset(s, key, err);
    switch (i) {
    case BATCH_ROWS:
        if (!number(value, 1, CK_BATCH_ROWS_MAX, &n)) return bad(i, value, err);
        s->batch_rows = (uint32_t)n;
        return CK_OK;
    case FLUSH_MS:
        if (!number(value, 1, 60000, &n)) return bad(i, value, err);
        s->flush_us = n * 1000;
        return CK_OK;
    case ON_EVAL_ERROR:
        s->eval_error_null = ck_view_eq_nocase(value, CK_VIEW("null"));
        return s->eval_error_null || ck_view_eq_nocase(value, CK_VIEW("fail")) ? CK_OK : bad(i, value, err);
    case STATE_TTL: return ck_duration_us(value, &s->state_ttl_us) ? CK_OK : bad(i, value, err);
    case STATE_TTL_TIME:
        s->state_ttl_events = ck_view_eq_nocase(value, CK_VIEW("event"));
        return s->state_ttl_events || ck_view_eq_nocase(value, CK_VIEW("processing")) ? CK_OK : bad(i, value, err);
    default:
        if (!zone_name(value, sizeof s->timezone)) return bad(i, value, err);
        snprintf(s->timezone, sizeof s->timezone, "%.*s", (int)value.n, value.p);
        return CK_OK;
    }
}

static void reset_one(ck_settings *s, size_t i) {
    switch (i) {
    case BATCH_ROWS: s->batch_rows = 0; break;
    case FLUSH_MS: s->flush_us = 0; break;
    case ON_EVAL_ERROR: s->eval_error_null = false; break;
    case STATE_TTL: s->state_ttl_us = 0; break;
    case STATE_TTL_TIME: s->state_ttl_events = false; break;
    default: snprintf(s->timezone, sizeof s->timezone, "UTC"); break;
    }
}

ck_status ck_settings_reset(ck_settings *s, ck_view key, ck_error *err) {
    size_t i;
    if (key.n) {
        CK_TRY(find(key, &i, err));
        reset_one(s, i);
        return CK_OK;
    }
    for (i = 0; i < CK_ARRAY_COUNT(known); i++) reset_one(s, i);
    return CK_OK;
}

ck_status ck_settings_get(const ck_settings *s, ck_view key, char *out, size_t room, ck_error *err) {
    size_t i;
    CK_TRY(find(key, &i, err));
    switch (i) {
    case BATCH_ROWS: snprintf(out, room, "%u", s->batch_rows ? s->batch_rows : (unsigned)CK_BATCH_ROWS_MAX); break;
    case FLUSH_MS: snprintf(out, room, "%lld", s->flush_us ? (long long)(s->flush_us / 1000) : 5LL); break;
    case ON_EVAL_ERROR: snprintf(out, room, "%s", s->eval_error_null ? "null" : "fail"); break;
    case STATE_TTL: snprintf(out, room, s->state_ttl_us ? "%lld ms" : "0", (long long)(s->state_ttl_us / 1000)); break;
    case STATE_TTL_TIME: snprintf(out, room, "%s", s->state_ttl_events ? "event" : "processing"); break;
    default: snprintf(out, room, "%s", s->timezone); break;
    }
    return CK_OK;
}
