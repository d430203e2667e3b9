/* Threads as the engine makes them: with every signal blocked, so that only the command line's main thread handles any.
 */
#ifndef CK_OS_THREAD_H
#define CK_OS_THREAD_H

#include <pthread.h>

#include "base/proc.h"

/* name: at most 15 bytes, shown by top and gdb. */
CK_NODISCARD ck_status ck_thread_start(pthread_t *out, const char *name, void *(*fn)(void *arg), void *arg,
                                       ck_error *err);
unsigned ck_cores(void);                     /* usable by this process, at least 1 */
size_t ck_memory_limit_bytes(ck_proc *proc); /* the smaller of the cgroup's limit and the machine's memory */

#endif
