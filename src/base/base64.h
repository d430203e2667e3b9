/* Base64 of RFC 4648, section 4, with padding. */
#ifndef CK_BASE_BASE64_H
#define CK_BASE_BASE64_H

#include "base/bytes.h"

CK_NODISCARD ck_status ck_base64_encode(ck_view v, ck_bytes *out); /* appends; CK_NOMEM, CK_FULL */
/* out has room for 3/4 of v.n and may be v's own memory. false: it is not base64. */
CK_NODISCARD bool ck_base64_decode(ck_view v, uint8_t *out, size_t *n);

#endif
