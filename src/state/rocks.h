/* RocksDB as the home of state that memory does not hold: one database for all subtasks of a job. docs/backends.md. */
#ifndef CK_STATE_ROCKS_H
#define CK_STATE_ROCKS_H

#include "base/mem.h"
#include "base/proc.h"

typedef struct ck_rocks ck_rocks;

/* Below `dir` (made when missing), where a folder of the process's own is made; what dead processes left there is
 * removed. No database yet. CK_NOTFOUND: the library is not there; CK_IO: the folder will not do. Blocks. */
CK_NODISCARD ck_status ck_rocks_new(ck_proc *proc, ck_mem mem, const char *dir, ck_rocks **out, ck_error *err);
/* Every store that uses it must have gone. Removes the folder. Blocks; NULL is fine. */
void ck_rocks_free(ck_rocks *r);

#endif
