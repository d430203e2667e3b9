/* A file system in memory that behaves like the worst disk the standard allows: at a crash it keeps a seeded random
 * subset of what was not synced - file data (in 512-byte sectors), new names, renames, unlinks - and everything that
 * was. fsync of a file makes its data durable, not its name; fsync_dir makes the names in that directory durable, not
 * that of the directory itself. A renamed file is never lost: its old name, its new one, or both survive. After a
 * failed fsync the lost pages count as clean, as on Linux: a second one succeeds and makes nothing of them durable.
 * Errors (ENOSPC, EIO on write or fsync) can be armed. For the simulator and the kill matrix. Thread: any. Its memory
 * is malloc's own, so that it outlives a dropped proc; files that proc had open are freed by close or with the simfs.
 */
#ifndef CK_OS_SIMFS_H
#define CK_OS_SIMFS_H

#include "os/fs.h"

typedef struct ck_simfs ck_simfs;

CK_NODISCARD ck_status ck_simfs_new(ck_simfs **out, uint64_t seed);
ck_fs *ck_simfs_base(ck_simfs *s);
void ck_simfs_free(ck_simfs *s);

/* The power goes: open files become invalid (their next use is CK_IO), unsynced changes survive or not by the seed. */
void ck_simfs_crash(ck_simfs *s);
/* The process is killed and the power stays: open files become invalid, their locks are let go, nothing else changes. */
void ck_simfs_kill(ck_simfs *s);
/* From the n-th write or fsync on (of files and directories, 1-based, counted together from now), calls fail with
 * errnum; 0 disarms. once: only that one. A failed write may have appended some of its bytes. */
void ck_simfs_fail(ck_simfs *s, uint64_t nth, int errnum, bool once);
void ck_simfs_set_capacity(ck_simfs *s, uint64_t bytes); /* ENOSPC beyond; 0 = none */
/* Copies of a file or a whole directory between the real file system and this one, durable there, with the directories
 * above it: for inputs and for looking at what was left. */
CK_NODISCARD ck_status ck_simfs_import(ck_simfs *s, const char *real_path, const char *path, ck_error *err);
CK_NODISCARD ck_status ck_simfs_export_tree(ck_simfs *s, const char *path, const char *real_dir, ck_error *err);

#endif
