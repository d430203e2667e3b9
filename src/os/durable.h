/* The one durable-write path: temporary file, write, fsync, publish (exclusive) or replace, fsync of the directory,
 * with a fault point between any two steps. Manifests, snapshots, markers, parts and upsert files all go through here.
 * Blocking: run on the I/O executor. */
#ifndef CK_OS_DURABLE_H
#define CK_OS_DURABLE_H

#include "os/fs.h"

/* A temporary file beside its final place: `.tmp-<name>-<16 hex>`. Zero may be destroyed. Owner: whoever inits; one
 * thread. */
typedef struct ck_tmpfile {
    ck_proc *proc;
    ck_file *file;
    char *path, *final_path;
    ck_mem mem;
    uint64_t bytes;
    uint64_t out_bytes; /* of them the disk was offered already */
    uint32_t crc32c;    /* of all bytes written */
    bool synced;
} ck_tmpfile;

CK_NODISCARD ck_status ck_tmpfile_init(ck_tmpfile *t, ck_proc *proc, ck_mem mem, const char *final_path, ck_error *err);
/* The same for output, which others may read as far as the umask lets them. */
CK_NODISCARD ck_status ck_tmpfile_init_shared(ck_tmpfile *t, ck_proc *proc, ck_mem mem, const char *final_path,
                                              ck_error *err);
CK_NODISCARD ck_status ck_tmpfile_write(ck_tmpfile *t, const void *p, size_t n, ck_error *err);
CK_NODISCARD ck_status ck_tmpfile_fsync(ck_tmpfile *t, ck_error *err);
void ck_tmpfile_destroy(ck_tmpfile *t); /* closes and unlinks what was not published; safe twice */

/* fsync if not done, then make the final name appear. publish: CK_EXISTS when the name is taken (read it, it may be
 * ours). Both sync the directory; after CK_OK the content survives a power cut. */
CK_NODISCARD ck_status ck_durable_publish(ck_tmpfile *t, ck_error *err);
CK_NODISCARD ck_status ck_durable_replace(ck_tmpfile *t, ck_error *err);

/* A final name that was found in place (CK_EXISTS, and it is our own): its maker may have died between making the name
 * and syncing it. Makes content and name durable. */
CK_NODISCARD ck_status ck_durable_confirm(ck_proc *proc, const char *final_path, ck_error *err);

/* Whole small files in one call. */
CK_NODISCARD ck_status ck_durable_publish_bytes(ck_proc *proc, const char *path, ck_view content, ck_error *err);
CK_NODISCARD ck_status ck_durable_replace_bytes(ck_proc *proc, const char *path, ck_view content, ck_error *err);

/* CRC-32C (Castagnoli) as in formats: of an empty input 0; more continues a former value. */
uint32_t ck_crc32c(uint32_t crc, const void *p, size_t n);

#endif
