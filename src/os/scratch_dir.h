/* A folder of this process's own for files that are worth nothing once it is gone: DIR/<prefix>-XXXXXX with a locked
 * file in it. Folders there whose process is gone, however it went, are removed when the next one is made; those of
 * living processes are left alone. Always the real file system. Thread: one at a time. */
#ifndef CK_OS_SCRATCH_DIR_H
#define CK_OS_SCRATCH_DIR_H

#include "base/mem.h"

typedef struct ck_scratch_dir ck_scratch_dir;

/* `dir` is made when missing. CK_IO names the folder and says what the system said. */
CK_NODISCARD ck_status ck_scratch_dir_new(ck_mem mem, const char *dir, const char *prefix, ck_scratch_dir **out,
                                          ck_error *err);
const char *ck_scratch_dir_path(const ck_scratch_dir *s);
/* Removes it with all that is in it, as far as the system lets it; NULL is fine. */
void ck_scratch_dir_free(ck_scratch_dir *s);

#endif
