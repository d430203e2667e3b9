/* Flags of one verb, table-driven: parsing, did-you-mean, and the help page come from the same rows. */
#ifndef CK_CLI_FLAGS_H
#define CK_CLI_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum flag_kind {
    FLAG_SWITCH,   /* bool: --fresh */
    FLAG_TEXT,     /* const char *: --name x */
    FLAG_COUNT,    /* int64_t >= 0 */
    FLAG_POSITIVE, /* int64_t >= 1: what 0 stands for is left out */
    FLAG_BYTES,    /* uint64_t: 512M, 2G, plain bytes */
    FLAG_OPTIONAL, /* const char *: --changes or --changes=json; "" when bare */
    FLAG_LIST,     /* flag_list: may be repeated */
} flag_kind;

enum { FLAG_LIST_MAX = 64 };
typedef struct flag_list {
    const char *items[FLAG_LIST_MAX];
    size_t count;
} flag_list;

typedef struct flag {
    const char *name; /* without dashes */
    char letter;      /* 0 = none */
    flag_kind kind;
    void *target;      /* set when given; the caller put the default in */
    const char *value; /* what stands for the value in help: "N", "DIR" */
    const char *deflt; /* as help shows it; NULL = none */
    const char *help;
} flag;

/* One command of the program. */
typedef struct verb {
    const char *name;
    const char *summary;
    const char *usage;   /* "clink run FILE.sql [flags]" lines */
    const char *example; /* command lines; each runs, see tests/system/test_help.py */
    int (*main)(const struct verb *v, int argc, char **argv);
    const char *notes; /* behind the flags in help; NULL = none */
} verb;

/* Takes flags out of argv: what is left, the positional arguments, stands in argv[0..*argc). `--` ends flags. Returns
 * 0, or 2 after one line on stderr with did-you-mean and the usage; *help is set and 0 returned for --help and -h. */
int flags_parse(const verb *v, const flag *flags, size_t flag_count, int *argc, char **argv, bool *help);
void flags_print_help(const verb *v, const flag *flags, size_t flag_count);
/* The one line for a usage error, then the usage. Returns 2. */
int usage_error(const verb *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
