/* Heavy libraries, opened on first use: the binary starts in milliseconds, and says in a sentence which one is missing.
 * A user writes down the functions it needs once,
 *
 *     #define FOO_FUNCTIONS(X) X(foo_new) X(foo_free)
 *     typedef struct foo_lib { CK_MODULE_TABLE(FOO_FUNCTIONS) } foo_lib;
 *
 * and calls lib->foo_new(). A library stays open until the process ends: some have threads of their own. Thread: any.
 */
#ifndef CK_OS_MODULES_H
#define CK_OS_MODULES_H

#include "base/proc.h"

typedef struct ck_module_desc {
    const char *file;     /* "librdkafka.so.1" */
    const char *package;  /* "librdkafka1", Debian's name of what has it */
    const char *for_what; /* "connector 'kafka'" */
    const char *const *functions;
    size_t count; /* the table has a pointer a function, in this order */
} ck_module_desc;

#define CK_MODULE_POINTER(f)       __typeof__(&f) f;
#define CK_MODULE_NAME(f)          #f,
#define CK_MODULE_TABLE(FUNCTIONS) FUNCTIONS(CK_MODULE_POINTER)
#define CK_MODULE_NAMES(FUNCTIONS) FUNCTIONS(CK_MODULE_NAME)

CK_NODISCARD ck_status ck_modules_new(ck_heap *heap, struct ck_modules **out, ck_error *err);
void ck_modules_free(struct ck_modules *m); /* forgets the tables; NULL is fine */

/* *table stays valid as long as the proc. CK_NOTFOUND names library and package, or the function an old one lacks.
 * d is borrowed for as long. May block (reads the library) the first time. */
CK_NODISCARD ck_status ck_module_open(ck_proc *p, const ck_module_desc *d, const void **table, ck_error *err);

#endif
