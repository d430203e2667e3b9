/* A file of working memory: bytes that may leave RAM. One unlinked file, mapped whole and shared, so that the system
 * writes back and drops what is not used and reads it again when it is touched. Nothing of it survives the process, and
 * nothing is meant to.
 *
 * The address range is taken once; disk space is reserved as it grows, so a full disk is an answer of grow and never a
 * signal on a touch. (A disk that fails to read kills the process, as bad memory would.) Always the real file system.
 *
 * Thread: one at a time for the calls; any for the bytes. */
#ifndef CK_OS_WORK_FILE_H
#define CK_OS_WORK_FILE_H

#include "base/mem.h"

typedef struct ck_work_file ck_work_file;

/* In `dir`, which is made when missing. max_bytes of addresses, aligned to 2 MiB; no disk space yet. CK_REFUSED: the
 * file system there cannot reserve space. */
CK_NODISCARD ck_status ck_work_file_new(ck_mem mem, const char *dir, size_t max_bytes, ck_work_file **out,
                                        ck_error *err);
void ck_work_file_free(ck_work_file *f); /* NULL is fine */

/* The first of max_bytes bytes, of which the grown ones may be used; they begin as zeros. */
uint8_t *ck_work_file_base(const ck_work_file *f);
size_t ck_work_file_bytes(const ck_work_file *f); /* grown so far */
/* `more` bytes more, whole OS pages. CK_FULL: past max_bytes; CK_IO: no space, or the disk says no. */
CK_NODISCARD ck_status ck_work_file_grow(ck_work_file *f, size_t more, ck_error *err);
/* Both are advice, which the system may not follow. Begins to write these bytes, without waiting; asks that those of
 * them that are written leave RAM (they come back when touched). */
void ck_work_file_write_back(ck_work_file *f, size_t from, size_t bytes);
void ck_work_file_page_out(ck_work_file *f, size_t from, size_t bytes);

#endif
