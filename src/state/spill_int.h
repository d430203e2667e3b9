/* The second home of pages: a file of working memory (os/work_file.h) that takes what would fill the job's account. A
 * page there is read and written like any other - the rows, the index, the marks know no difference - but it may leave
 * RAM. Blocks are powers of two, cut in halves, aligned to their size; freed ones are taken again, and the file goes
 * with the store.
 *
 * Thread: the store's owner. */
#ifndef CK_STATE_SPILL_INT_H
#define CK_STATE_SPILL_INT_H

#include "base/mem.h"

enum { CK_SPILL_CLASSES = 18 }; /* 1 KiB to 128 MiB */

typedef struct ck_spill ck_spill;

/* Whether the folder will do is tried out; the file is made when the first block is taken. `dir` outlives it. */
CK_NODISCARD ck_status ck_spill_new(ck_mem mem, const char *dir, ck_spill **out, ck_error *err);
void ck_spill_free(ck_spill *s); /* NULL is fine */
/* A block of `bytes` (a power of two from 1 KiB), content unspecified. NULL: see ck_spill_error. */
void *ck_spill_take(ck_spill *s, size_t bytes);
void ck_spill_give(ck_spill *s, void *block, size_t bytes);
/* Of this file. */
bool ck_spill_has(const ck_spill *s, const void *block);
size_t ck_spill_bytes(const ck_spill *s); /* taken and not given back */
/* Why the last block could not be had; CK_OK in it: all could. */
const ck_error *ck_spill_error(const ck_spill *s);

#endif
