/* A hook on what an operator is handed: the recorder implements it, the runtime calls it. Best effort: a failing tap
 * disarms itself and never fails the job. */
#ifndef CK_STREAM_TAP_H
#define CK_STREAM_TAP_H

#include "stream/event.h"

typedef struct ck_tap {
    void *arg;
    void (*event)(void *arg, uint32_t input,
                  const ck_event *ev);               /* before the operator sees it; thread: the subtask's */
    void (*clock)(void *arg, int64_t now_us);        /* a due processing-time wake-up */
    void (*barrier)(void *arg, uint64_t checkpoint); /* the epoch ends */
} ck_tap;

#endif
