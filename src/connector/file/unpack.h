/* A compressed file as a stream of its bytes. Blocking: for jobs of the I/O executor and for enumeration. */
#ifndef CK_CONNECTOR_FILE_UNPACK_H
#define CK_CONNECTOR_FILE_UNPACK_H

#include "format/compression.h"
#include "os/fs.h"

typedef struct ck_unpacker ck_unpacker;

/* What the file is: by the option; without it (NULL, "auto") by the path's end, else by its first bytes. */
CK_NODISCARD ck_status ck_unpack_kind(ck_proc *proc, const char *option, const char *path, ck_compression *out,
                                      ck_error *err);
CK_NODISCARD ck_status ck_unpacker_open(ck_proc *proc, const char *path, ck_compression c, ck_mem mem,
                                        ck_unpacker **out, ck_error *err);
/* Fills out[0, bytes) or, at the end, less of it: *got < bytes only there. Damaged and cut files are CK_CORRUPT; errors
 * name the file and the byte of it. */
CK_NODISCARD ck_status ck_unpacker_read(ck_unpacker *u, void *out, size_t bytes, size_t *got, ck_error *err);
void ck_unpacker_free(ck_unpacker *u); /* NULL is fine */

#endif
