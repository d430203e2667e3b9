/* A file system in front of another, for one process at a time. Once the process has crashed (ck_faults.crashed)
 * nothing gets through any more: between a crash point and the scheduler's next look error paths still run, and a dead
 * process must not tidy up. It can also kill the process at the n-th call that changes something, fail its n-th write
 * or fsync, and tell an observer of every change of a name. */
#ifndef SIM_GATE_FS_H
#define SIM_GATE_FS_H

#include "os/simfs.h"

typedef enum gate_death {
    GATE_BEFORE, /* the call does not happen */
    GATE_HALF,   /* a write brings half of its bytes; other calls as GATE_AFTER */
    GATE_AFTER,  /* the call happens, its caller never hears of it */
} gate_death;

typedef struct gate {
    ck_simfs *disk;
    ck_faults *faults;
    uint64_t crash_at; /* the call that the process dies in, 1-based; 0: none */
    gate_death death;
    uint64_t calls;   /* that change something, so far */
    uint64_t fail_at; /* the write or fsync that fails, 1-based; 0: none */
    int errnum;
    bool lasting;               /* and all that follow */
    uint64_t syncs;             /* writes and fsyncs so far */
    void (*renamed)(void *arg); /* after each call that changed a name; NULL: nobody looks */
    void *renamed_arg;
} gate;

/* The gate is borrowed and written to. */
ck_fs *gate_fs(gate *g);

#endif
