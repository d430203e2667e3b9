/* A file system in front of another that does nothing any more once the process has crashed (ck_faults.crashed):
 * between a crash point and the scheduler's next look, error paths still run, and a dead process must not tidy up. One
 * at a time. */
#ifndef SIM_GATE_FS_H
#define SIM_GATE_FS_H

#include "os/fs.h"

ck_fs *gate_fs(ck_fs *inner, ck_faults *faults);

#endif
