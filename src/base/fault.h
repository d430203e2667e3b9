/* Named fault points. Every durable or commit step has one on each side; tests arm (name, ordinal, action) and the
 * process dies, fails or stops there. All names stand in fault_points.h, which the kill matrix reads; a script checks
 * that each is placed. Armed from the environment (CLINK_FAULT=name:ordinal:action, so that child processes inherit it)
 * or by a test. */
#ifndef CK_BASE_FAULT_H
#define CK_BASE_FAULT_H

#include <stdatomic.h>

#include "base/status.h"

typedef enum ck_fault_point {
#define CK_FAULT_POINT(id, name, what) CK_FAULT_##id,
#define CK_FAULT_SERVER_POINT(id, name, what)
#include "base/fault_points.h"
#undef CK_FAULT_POINT
#undef CK_FAULT_SERVER_POINT
    CK_FAULT_LOCAL_COUNT, /* those before it need no server, no plugin and no changed script */
    CK_FAULT_LOCAL_LAST = CK_FAULT_LOCAL_COUNT - 1,
#define CK_FAULT_POINT(id, name, what)
#define CK_FAULT_SERVER_POINT(id, name, what) CK_FAULT_##id,
#include "base/fault_points.h"
#undef CK_FAULT_POINT
#undef CK_FAULT_SERVER_POINT
    CK_FAULT_COUNT
} ck_fault_point;

typedef enum ck_fault_action {
    CK_FAULT_KILL,  /* SIGKILL to this process: nothing is flushed, no destructor runs */
    CK_FAULT_ERROR, /* the step fails with CK_IO */
    CK_FAULT_STOP,  /* SIGSTOP to this process, CK_OK when it is continued: a process that was thought dead and wakes */
    CK_FAULT_CRASH, /* simulator: the step returns CK_CANCELLED and `crashed` is set; the simulator drops the process */
} ck_fault_action;

typedef struct ck_faults {
    _Atomic uint64_t hits[CK_FAULT_COUNT];
    uint64_t fire_at[CK_FAULT_COUNT]; /* ordinal, 1-based; 0 = not armed. Set before threads start. */
    ck_fault_action action[CK_FAULT_COUNT];
    _Atomic bool crashed;
} ck_faults;

void ck_faults_init(ck_faults *f);
void ck_faults_arm(ck_faults *f, ck_fault_point p, uint64_t ordinal, ck_fault_action action);
/* "name:ordinal[:kill|error|stop|crash]", several separated by commas; NULL or empty arms nothing. */
CK_NODISCARD ck_status ck_faults_parse(ck_faults *f, const char *spec, ck_error *err);
const char *ck_fault_name(ck_fault_point p);
/* Counts the hit and acts. CK_OK unless armed for this ordinal. Thread: any. */
ck_status ck_fault_hit(ck_faults *f, ck_fault_point p);

/* In a function that returns ck_status, holding nothing. */
#define CK_FAULT(proc, id) CK_TRY(ck_fault_hit((proc)->faults, CK_FAULT_##id))

#endif
