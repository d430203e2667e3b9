/* Standard input as a stream of bytes, unpacked where it is gzip or zstd: its first bytes tell, or the option does. It
 * cannot be read at an offset and may have nothing for hours: a read waits a little and ends. For jobs of the I/O
 * executor, one at a time. */
#ifndef CK_CONNECTOR_FILE_STDIN_H
#define CK_CONNECTOR_FILE_STDIN_H

#include "format/compression.h"

typedef struct ck_stdin ck_stdin;

/* compression: the option's value, NULL or "auto": its first bytes tell. */
CK_NODISCARD ck_status ck_stdin_new(const char *compression, ck_mem mem, ck_stdin **out, ck_error *err);
/* What has come, at most `bytes` of it, *got 0 where nothing has; *ended at the end. Damaged and cut input is
 * CK_CORRUPT, the message names the byte. */
CK_NODISCARD ck_status ck_stdin_read(ck_stdin *s, char *out, size_t bytes, size_t *got, bool *ended, ck_error *err);
void ck_stdin_free(ck_stdin *s); /* NULL is fine */

#endif
