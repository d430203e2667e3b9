/* Compressed files back to their bytes, in pieces of any size: gzip (several members, as gzip and pigz write them) and
 * zstd (several frames). Checksums are checked. What is held is bounded: 90 KiB for gzip, the frame's window for zstd,
 * at most 128 MiB and on the budget. One per split; one thread. */
#ifndef CK_FORMAT_COMPRESSION_H
#define CK_FORMAT_COMPRESSION_H

#include "base/mem.h"
#include "base/view.h"

typedef enum ck_compression { CK_COMPRESSION_NONE, CK_COMPRESSION_GZIP, CK_COMPRESSION_ZSTD } ck_compression;

/* What a file is: by the option "none", "gzip" or "zstd"; NULL or "auto": by the path's end .gz, .zst or .zstd. */
CK_NODISCARD ck_status ck_compression_of(const char *option, const char *path, ck_compression *out, ck_error *err);

typedef struct ck_inflater ck_inflater;

/* Not for CK_COMPRESSION_NONE. */
CK_NODISCARD ck_status ck_inflater_new(ck_compression c, ck_mem mem, ck_inflater **out, ck_error *err);
void ck_inflater_free(ck_inflater *i);
/* Takes bytes of in[0, in_bytes) and makes bytes of out[0, out_bytes), out_bytes > 0. CK_OK: all of in is taken, and
 * out has all that it gives. CK_MORE: out is full; call again with what is left of in, even if that is nothing.
 * CK_CORRUPT: not what it should be, or its checksum does not fit. CK_REFUSED: a window over the limit. CK_NOMEM. */
CK_NODISCARD ck_status ck_inflater_run(ck_inflater *i, const uint8_t *in, size_t in_bytes, size_t *taken, uint8_t *out,
                                       size_t out_bytes, size_t *made, ck_error *err);
/* CK_OK when the file may end after what was taken; else CK_CORRUPT: it was cut. */
CK_NODISCARD ck_status ck_inflater_end(const ck_inflater *i, ck_error *err);

#endif
