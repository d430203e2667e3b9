/* A catalog as text: the statements that make it, in order, behind a line with the version. What is temporary, settings
 * and rows in memory are left out. */
#include "sql/catalog/catalog.h"

#define FIRST_LINE "-- clink catalog, version "
enum { VERSION = 1 };

ck_status ck_catalog_print(const ck_catalog *c, ck_bytes *out) {
    CK_TRY(ck_bytes_printf(out, FIRST_LINE "%d\n", VERSION));
    for (const ck_catalog_entry *e = c->entries; e; e = e->next)
        if (!e->temporary) CK_TRY(ck_bytes_printf(out, "%s;\n", e->sql));
    return CK_OK;
}

ck_status ck_catalog_check_version(ck_view text, ck_error *err) {
    size_t n = sizeof FIRST_LINE - 1, digits = 0;
    uint64_t version = 0;
    bool ours = text.n > n && memcmp(text.p, FIRST_LINE, n) == 0;
    for (; ours && n + digits < text.n && text.p[n + digits] != '\n' && digits < 9; digits++) {
        char d = text.p[n + digits];
        ours = d >= '0' && d <= '9';
        version = version * 10 + (uint64_t)(d - '0');
    }
    if (!ours || !digits) return ck_fail(err, CK_CORRUPT, "is not a catalog: it begins otherwise than " FIRST_LINE "1");
    if (version != VERSION)
        return ck_fail(err, CK_REFUSED, "has version %llu, and this build reads version %d",
                       (unsigned long long)version, VERSION);
    return CK_OK;
}
