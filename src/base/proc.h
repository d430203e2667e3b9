/* What is global in other programs hangs off a ck_proc: a process, or one simulated process among many. It is made
 * first and destroyed last; everything below borrows it. There are no mutable globals (make nm-globals checks). */
#ifndef CK_BASE_PROC_H
#define CK_BASE_PROC_H

#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"

/* Defined in os/, metrics/, expr/ and plugin/. base/ only knows that they exist. */
struct ck_clock;
struct ck_random;
struct ck_fs;
struct ck_io;
struct ck_net;
struct ck_metrics;
struct ck_modules;
struct ck_library;
struct ck_plugins;
struct ck_confined;

/* x86-64 baseline and NEON are implied by the build; the rest is chosen per kernel table at start. */
typedef struct ck_cpu {
    bool avx2, bmi2, avx512;
} ck_cpu;

typedef struct ck_proc {
    ck_heap *heap;
    ck_budget budget;         /* for what no job owns; jobs have their own */
    struct ck_clock *clock;   /* monotonic and wall */
    struct ck_random *random; /* seeds: hash seeds, uuids */
    struct ck_fs *fs;
    struct ck_io *io; /* the I/O executor */
    struct ck_net *net;
    struct ck_metrics *metrics;
    struct ck_modules *modules;         /* libraries opened on first use */
    const struct ck_library *library;   /* functions of plugins; NULL: none. expr/library.h */
    const struct ck_plugins *plugins;   /* NULL: none. plugin/plugins.h */
    const struct ck_confined *confined; /* NULL: what our user may touch, jobs may. os/confined.h; fs is then its */
    ck_faults *faults;
    const ck_log *log;
    ck_cpu cpu;
    bool spills_all, evicts_all; /* for tests: every page of state spills; every row that can leaves for RocksDB */
} ck_proc;

static inline ck_mem ck_proc_mem(ck_proc *p, ck_mem_category c) { return (ck_mem){&p->budget, c}; }
ck_cpu ck_cpu_detect(void); /* CLINK_CPU=scalar|avx2 lowers it */

#endif
