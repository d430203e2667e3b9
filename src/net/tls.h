/* Mutual TLS 1.3 for connections: who we are, and whose certificates we take. One for any number of connections; the
 * library is opened with dlopen. Both sides show a certificate that our CA has signed; who dials looks, too, whether
 * the one shown is for the host it has dialled. */
#ifndef CK_NET_TLS_H
#define CK_NET_TLS_H

#include "base/proc.h"

typedef struct ck_tls ck_tls;

typedef struct ck_tls_files { /* PEM */
    const char *cert;         /* ours, perhaps with those between it and the CA */
    const char *key;          /* without a passphrase */
    const char *ca;           /* of everybody's */
} ck_tls_files;

/* All or none; else a sentence with the flag that is missing. */
CK_NODISCARD ck_status ck_tls_check_files(const ck_tls_files *f, ck_error *err);
/* Reads the files (blocks). No file at all: *out is NULL and CK_OK. Outlives its connections. Thread: any. */
CK_NODISCARD ck_status ck_tls_new(ck_proc *proc, const ck_tls_files *f, ck_tls **out, ck_error *err);
void ck_tls_free(ck_tls *t); /* NULL is fine */

#endif
