/* Hashes of bytes. */
#include <zlib.h>

#include "base/hash.h"
#include "expr/functions_int.h"
#include "expr/eval_int.h"

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
};
const ck_function_table ck_functions_hash = {functions, CK_ARRAY_COUNT(functions)};
