/* Trying something that may end the process, in a child that is thrown away: without the environment, without the
 * parent's files, without a core file, and gone when the parent goes. */
#ifndef CK_OS_TRIAL_H
#define CK_OS_TRIAL_H

#include "base/proc.h"

/* fn's status and error as they came about in the child. what: for the sentence when the child dies of a signal or
 * takes longer than timeout_ms (CK_REFUSED): "loading plugin x.so". Blocking. fn may do what is allowed after fork in a
 * process with threads: nothing that waits for another thread. */
CK_NODISCARD ck_status ck_trial(const char *what, int64_t timeout_ms, ck_status (*fn)(void *arg, ck_error *err),
                                void *arg, ck_error *err);

#endif
