/* Hashes of bytes. Digests (MD5, SHA) are those of OpenSSL's libcrypto, opened by the first query that calls one; each
 * evaluation has one context for all its rows. */
#include <openssl/evp.h>
#include <zlib.h>

#include "base/hash.h"
#include "expr/functions_int.h"
#include "expr/strout.h"
#include "os/modules.h"

static ck_status kernel_crc32(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = CK_ARG_STR(0, i);
        out->col->i64[i] = (int64_t)crc32_z(0, (const Bytef *)v.p, v.n);
    }
    return CK_OK;
}

static ck_status kernel_fnv(CK_KERNEL_ARGS) {
    (void)call;
    CK_TRY(ck_eval_result(ev, CK_PHYS_I64, rows, out, err));
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = CK_ARG_STR(0, i);
        out->col->i64[i] = (int64_t)ck_fnv1a(v.p, v.n);
    }
    return CK_OK;
}

/* ---- digests ---- */

#define CRYPTO_FUNCTIONS(X)                                                                                            \
    X(EVP_MD_fetch)                                                                                                    \
    X(EVP_MD_free)                                                                                                     \
    X(EVP_MD_CTX_new)                                                                                                  \
    X(EVP_MD_CTX_free)                                                                                                 \
    X(EVP_DigestInit_ex)                                                                                               \
    X(EVP_DigestUpdate)                                                                                                \
    X(EVP_DigestFinal_ex)
typedef struct crypto_lib {
    CK_MODULE_TABLE(CRYPTO_FUNCTIONS)
} crypto_lib;

static const char *const crypto_names[] = {CK_MODULE_NAMES(CRYPTO_FUNCTIONS)};
static const ck_module_desc crypto_module = {.file = "libcrypto.so.3",
                                             .package = "libssl3",
                                             .for_what = "a digest such as MD5 or SHA256",
                                             .functions = crypto_names,
                                             .count = CK_ARRAY_COUNT(crypto_names)};

typedef struct digest_state {
    const crypto_lib *lib;
    EVP_MD *digest;
    EVP_MD_CTX *context;
} digest_state;

static const char *const digest_names[] = {"MD5", "SHA1", "SHA224", "SHA256", "SHA384", "SHA512"};

static ck_status prepare_digest(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    digest_state *s = CK_ARENA_NEW(&ev->arena, digest_state);
    const void *table;
    if (!s) return ck_nomem(err, ev->mem, sizeof *s);
    *s = (digest_state){0};
    *state = s;
    if (!ev->proc) return ck_fail(err, CK_REFUSED, "%s is not computed here", digest_names[call->impl->op]);
    CK_TRY(ck_module_open(ev->proc, &crypto_module, &table, err));
    s->lib = table;
    s->digest = s->lib->EVP_MD_fetch(NULL, digest_names[call->impl->op], NULL);
    s->context = s->lib->EVP_MD_CTX_new();
    if (s->digest && s->context) return CK_OK;
    return ck_fail(err, CK_NOTFOUND, "libcrypto on this machine computes no %s", digest_names[call->impl->op]);
}

static void dispose_digest(ck_eval *ev, void *state) {
    digest_state *s = state;
    (void)ev;
    if (!s || !s->lib) return;
    s->lib->EVP_MD_CTX_free(s->context);
    s->lib->EVP_MD_free(s->digest);
}

static ck_status kernel_digest(CK_KERNEL_ARGS) {
    const digest_state *d = ck_eval_state(ev);
    unsigned char bytes[EVP_MAX_MD_SIZE];
    char text[2 * EVP_MAX_MD_SIZE];
    ck_strout w;
    CK_TRY(ck_strout_begin(&w, ev, rows, err));
    ck_status s = CK_OK;
    for (CK_EACH_ROW(k, i, rows)) {
        ck_view v = CK_ARG_STR(0, i);
        unsigned n = 0;
        bool fine = s == CK_OK && d->lib->EVP_DigestInit_ex(d->context, d->digest, NULL) &&
                    d->lib->EVP_DigestUpdate(d->context, v.p, v.n) && d->lib->EVP_DigestFinal_ex(d->context, bytes, &n);
        if (!fine && s == CK_OK) s = ck_fail(err, CK_IO, "libcrypto failed in %s", digest_names[call->impl->op]);
        for (unsigned b = 0; b < n; b++) {
            text[2 * b] = "0123456789abcdef"[bytes[b] >> 4];
            text[2 * b + 1] = "0123456789abcdef"[bytes[b] & 15];
        }
        if (s == CK_OK) s = ck_strout_put(&w, i, (ck_view){text, 2 * n});
    }
    return ck_strout_finish(&w, s, out);
}

/* ---- the table ---- */

#define DIGEST(NAME, OP)                                                                                               \
    static const ck_impl impl_##NAME = {.kernel = kernel_digest,                                                       \
                                        .op = (OP),                                                                    \
                                        .flags = CK_FN_OUTSIDE,                                                        \
                                        .prepare = prepare_digest,                                                     \
                                        .dispose = dispose_digest};                                                    \
    static const ck_overload o_##NAME[] = {{"s>s", &impl_##NAME, false}, {"y>s", &impl_##NAME, false}}
DIGEST(md5, 0);
DIGEST(sha1, 1);
DIGEST(sha224, 2);
DIGEST(sha256, 3);
DIGEST(sha384, 4);
DIGEST(sha512, 5);

static const ck_impl impl_crc32 = {.kernel = kernel_crc32}, impl_fnv = {.kernel = kernel_fnv};
static const ck_overload o_crc32[] = {{"s>l", &impl_crc32, false}, {"y>l", &impl_crc32, false}},
                         o_fnv[] = {{"s>l", &impl_fnv, false}, {"y>l", &impl_fnv, false}};

static const ck_function functions[] = {
    {.name = "crc32",
     .overloads = o_crc32,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "CRC32(text or bytes)",
     .summary = "The CRC-32 of the bytes, as zlib and gzip compute it.",
     .example = "CRC32('hello')",
     .result = "907060870"},
    {.name = "fnv1a64",
     .overloads = o_fnv,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "FNV1A64(text or bytes)",
     .summary = "The FNV-1a hash of the bytes in 64 bits, as a signed number: what key groups are made of.",
     .example = "FNV1A64('')",
     .result = "-3750763034362895579"},
    {.name = "md5",
     .overloads = o_md5,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "MD5(text or bytes)",
     .summary = "The MD5 digest of the bytes, in hexadecimal digits. Broken as a protection; good for comparing.",
     .example = "MD5('hello')",
     .result = "5d41402abc4b2a76b9719d911017c592"},
    {.name = "sha1",
     .overloads = o_sha1,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "SHA1(text or bytes)",
     .summary = "The SHA-1 digest of the bytes, in hexadecimal digits. Broken as a protection; good for comparing.",
     .example = "SHA1('hello')",
     .result = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"},
    {.name = "sha224",
     .overloads = o_sha224,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "SHA224(text or bytes)",
     .summary = "The SHA-224 digest of the bytes, in hexadecimal digits.",
     .example = "LEFT(SHA224('hello'), 8)",
     .result = "ea09ae9c"},
    {.name = "sha256",
     .overloads = o_sha256,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "SHA256(text or bytes)",
     .summary = "The SHA-256 digest of the bytes, in hexadecimal digits.",
     .example = "SHA256('hello')",
     .result = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
    {.name = "sha384",
     .overloads = o_sha384,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "SHA384(text or bytes)",
     .summary = "The SHA-384 digest of the bytes, in hexadecimal digits.",
     .example = "LEFT(SHA384('hello'), 8)",
     .result = "59e17487"},
    {.name = "sha512",
     .overloads = o_sha512,
     .overload_count = 2,
     .group = "hashes",
     .syntax = "SHA512(text or bytes)",
     .summary = "The SHA-512 digest of the bytes, in hexadecimal digits.",
     .example = "LEFT(SHA512('hello'), 8)",
     .result = "9b71d224"},
};
const ck_function_table ck_functions_hash = {functions, CK_ARRAY_COUNT(functions)};
