/* See fault.h. */
#include "base/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const fault_names[CK_FAULT_COUNT] = {
#define CK_FAULT_POINT(id, name, what) [CK_FAULT_##id] = name,
#define CK_FAULT_SERVER_POINT          CK_FAULT_POINT
#include "base/fault_points.h"
#undef CK_FAULT_POINT
#undef CK_FAULT_SERVER_POINT
};

void ck_faults_init(ck_faults *f) {
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < CK_FAULT_COUNT; i++) atomic_init(&f->hits[i], 0);
    atomic_init(&f->crashed, false);
}

void ck_faults_arm(ck_faults *f, ck_fault_point p, uint64_t ordinal, ck_fault_action action) {
    atomic_store(&f->hits[p], 0);
    f->fire_at[p] = ordinal;
    f->action[p] = action;
}

const char *ck_fault_name(ck_fault_point p) { return (size_t)p < CK_FAULT_COUNT ? fault_names[p] : "unknown"; }

static ck_status parse_one(ck_faults *f, const char *item, size_t n, ck_error *err) {
    const char *colon = memchr(item, ':', n);
    size_t name_n = colon ? (size_t)(colon - item) : n;
    for (size_t i = 0; i < CK_FAULT_COUNT; i++) {
        if (strlen(fault_names[i]) != name_n || memcmp(fault_names[i], item, name_n) != 0) continue;
        uint64_t ordinal = 1;
        ck_fault_action action = CK_FAULT_KILL;
        if (colon) {
            char *end;
            ordinal = strtoull(colon + 1, &end, 10);
            if (colon[1] < '0' || colon[1] > '9' || ordinal == 0) break; /* no sign, no blank */
            size_t rest = (size_t)(item + n - end);
            if (rest == 6 && memcmp(end, ":error", 6) == 0)
                action = CK_FAULT_ERROR;
            else if (rest == 6 && memcmp(end, ":crash", 6) == 0)
                action = CK_FAULT_CRASH;
            else if (rest == 5 && memcmp(end, ":stop", 5) == 0)
                action = CK_FAULT_STOP;
            else if (rest != 0 && !(rest == 5 && memcmp(end, ":kill", 5) == 0))
                break;
        }
        ck_faults_arm(f, (ck_fault_point)i, ordinal, action);
        return CK_OK;
    }
    return ck_fail(err, CK_INVALID,
                   "CLINK_FAULT: '%.*s' is not name:ordinal[:kill|error|stop|crash] of a known fault point", (int)n,
                   item);
}

ck_status ck_faults_parse(ck_faults *f, const char *spec, ck_error *err) {
    while (spec && *spec) {
        size_t n = strcspn(spec, ",");
        CK_TRY(parse_one(f, spec, n, err));
        spec += n + (spec[n] == ',');
    }
    return CK_OK;
}

ck_status ck_fault_hit(ck_faults *f, ck_fault_point p) {
    if (CK_LIKELY(!f || f->fire_at[p] == 0)) return CK_OK;
    if (atomic_fetch_add(&f->hits[p], 1) + 1 != f->fire_at[p]) return CK_OK;
    if (f->action[p] == CK_FAULT_ERROR) return CK_IO;
    if (f->action[p] == CK_FAULT_CRASH) {
        atomic_store(&f->crashed, true);
        return CK_CANCELLED;
    }
    if (f->action[p] == CK_FAULT_STOP) {
        kill(getpid(), SIGSTOP);
        return CK_OK;
    }
    kill(getpid(), SIGKILL);
    pause();
    return CK_CANCELLED;
}
