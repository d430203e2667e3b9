/* A file system in memory that behaves like the worst disk the standard allows: at a crash it keeps a seeded random
 * subset of what was not synced - file data (in 512-byte sectors), new names, renames, unlinks - and everything that
 * was. Errors (ENOSPC, EIO on write or fsync) can be armed. For the simulator and the kill matrix. */
#ifndef CK_OS_SIMFS_H
#define CK_OS_SIMFS_H

#include "os/fs.h"

typedef struct ck_simfs ck_simfs;

CK_NODISCARD ck_status ck_simfs_new(ck_simfs **out, uint64_t seed);
ck_fs *ck_simfs_base(ck_simfs *s);
void ck_simfs_free(ck_simfs *s);

/* The power goes: open files become invalid (their next use is CK_IO), unsynced changes survive or not by the seed. */
void ck_simfs_crash(ck_simfs *s);
/* From the n-th write or fsync on (1-based, counted together from now), calls fail with errnum; 0 disarms. once: only
 * that one. */
void ck_simfs_fail(ck_simfs *s, uint64_t nth, int errnum, bool once);
void ck_simfs_set_capacity(ck_simfs *s, uint64_t bytes); /* ENOSPC beyond; 0 = none */
/* Copies between the real file system and this one, for inputs and for looking at what was left. */
CK_NODISCARD ck_status ck_simfs_import(ck_simfs *s, const char *real_path, const char *path, ck_error *err);
CK_NODISCARD ck_status ck_simfs_export_tree(ck_simfs *s, const char *path, const char *real_dir, ck_error *err);

#endif
