/* See flags.h. */
#include "cli/flags.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

int usage_error(const verb *v, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "clink %s: ", v->name);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nusage: %s\n", v->usage);
    return 2;
}

static const flag *find_long(const flag *flags, size_t n, const char *name, size_t name_n) {
    for (size_t i = 0; i < n; i++)
        if (strlen(flags[i].name) == name_n && memcmp(flags[i].name, name, name_n) == 0) return &flags[i];
    return NULL;
}

static const flag *find_short(const flag *flags, size_t n, char letter) {
    for (size_t i = 0; i < n; i++)
        if (flags[i].letter == letter) return &flags[i];
    return NULL;
}

static int unknown_flag(const verb *v, const flag *flags, size_t n, const char *name, size_t name_n) {
    ck_suggest s;
    ck_suggest_init(&s, (ck_view){name, name_n});
    for (size_t i = 0; i < n; i++) ck_suggest_offer(&s, ck_view_of(flags[i].name));
    if (s.best.n)
        return usage_error(v, "unknown flag --%.*s; did you mean --%.*s?", (int)name_n, name, (int)s.best.n, s.best.p);
    return usage_error(v, "unknown flag --%.*s", (int)name_n, name);
}

static bool parse_count(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno) return false; /* no sign, no space */
    *out = x;
    return true;
}

static bool parse_bytes(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long x = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno) return false;
    unsigned shift = 0;
    switch (*end) {
    case 'k':
    case 'K': shift = 10; break;
    case 'm':
    case 'M': shift = 20; break;
    case 'g':
    case 'G': shift = 30; break;
    case 't':
    case 'T': shift = 40; break;
    default: break;
    }
    if (shift) end++;
    if (*end == 'i') end++;
    if (*end == 'B' || *end == 'b') end++;
    if (*end || (shift && x > (UINT64_MAX >> shift))) return false;
    *out = (uint64_t)x << shift;
    return true;
}

static int set_value(const verb *v, const flag *f, const char *text) {
    /* A path, a name, a word of a list: none of them is empty, and what is not given is not "". -e says it by itself.
     */
    bool is_text = f->kind == FLAG_TEXT || (f->kind == FLAG_LIST && f->letter != 'e');
    if (is_text && !*text) return usage_error(v, "--%s is empty; it takes %s", f->name, f->value);
    switch (f->kind) {
    case FLAG_SWITCH: *(bool *)f->target = true; return 0;
    case FLAG_TEXT:
    case FLAG_OPTIONAL: *(const char **)f->target = text; return 0;
    case FLAG_COUNT:
        if (parse_count(text, f->target)) return 0;
        return usage_error(v, "--%s takes a whole number, not '%s'", f->name, text);
    case FLAG_POSITIVE:
        if (parse_count(text, f->target) && *(int64_t *)f->target > 0) return 0;
        return usage_error(v, "--%s takes a whole number from 1 on, not '%s'", f->name, text);
    case FLAG_BYTES:
        if (parse_bytes(text, f->target) && *(uint64_t *)f->target > 0) return 0;
        return usage_error(v, "--%s takes a size such as 512M or 2G, not '%s'", f->name, text);
    case FLAG_LIST: {
        flag_list *l = f->target;
        if (l->count == FLAG_LIST_MAX)
            return usage_error(v, "--%s is given more than %d times", f->name, FLAG_LIST_MAX);
        l->items[l->count++] = text;
        return 0;
    }
    }
    return 2;
}

/* What other shells call -e. */
static int unknown_letter(const verb *v, const flag *flags, size_t flag_count, char letter) {
    bool script = strchr("cefq", letter) != NULL, here = find_short(flags, flag_count, 'e') != NULL;
    const char *hint = !script ? ""
                       : here  ? "; -e takes SQL, and a file stands alone"
                               : "; clink run takes -e SQL or a file";
    return usage_error(v, "unknown flag -%c%s", letter, hint);
}

static bool takes_value(const flag *f) { return f->kind != FLAG_SWITCH && f->kind != FLAG_OPTIONAL; }

int flags_parse(const verb *v, const flag *flags, size_t flag_count, int *argc, char **argv, bool *help) {
    bool only_args = false;
    int given = *argc;
    *argc = 0;
    *help = false;
    for (int i = 0; i < given; i++) {
        char *a = argv[i];
        if (only_args || a[0] != '-' || a[1] == 0) {
            argv[(*argc)++] = a;
            continue;
        }
        if (strcmp(a, "--") == 0) {
            only_args = true;
            continue;
        }
        if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            *help = true;
            return 0;
        }
        const flag *f;
        const char *text = NULL;
        if (a[1] == '-') {
            size_t n = strcspn(a + 2, "=");
            f = find_long(flags, flag_count, a + 2, n);
            if (!f) return unknown_flag(v, flags, flag_count, a + 2, n);
            if (a[2 + n] == '=') text = a + 3 + n;
        } else {
            f = find_short(flags, flag_count, a[1]);
            if (!f) return unknown_letter(v, flags, flag_count, a[1]);
            if (a[2]) text = a[2] == '=' ? a + 3 : a + 2; /* -p4 and -p=4 */
        }
        if (f->kind == FLAG_SWITCH && text) return usage_error(v, "--%s takes no value", f->name);
        if (f->kind == FLAG_OPTIONAL && !text) text = "";
        if (takes_value(f) && !text) {
            if (i + 1 >= given) return usage_error(v, "--%s needs a value", f->name);
            text = argv[++i];
        }
        int rc = set_value(v, f, text);
        if (rc) return rc;
    }
    return 0;
}

void flags_print_help(const verb *v, const flag *flags, size_t flag_count) {
    printf("clink %s - %s\n\nusage: %s\n", v->name, v->summary, v->usage);
    if (flag_count) printf("\nflags:\n");
    for (size_t i = 0; i < flag_count; i++) {
        const flag *f = &flags[i];
        char left[80];
        int n = f->letter ? snprintf(left, sizeof left, "-%c, --%s", f->letter, f->name)
                          : snprintf(left, sizeof left, "--%s", f->name);
        if (f->value && n > 0 && (size_t)n < sizeof left)
            snprintf(left + n, sizeof left - (size_t)n, f->kind == FLAG_OPTIONAL ? "[=%s]" : " %s", f->value);
        printf("  %-34s %s", left, f->help);
        if (f->deflt) printf(" (%s)", f->deflt);
        printf("\n");
    }
    if (v->notes) printf("\n%s\n", v->notes);
    if (v->example) printf("\nexample:\n%s\n", v->example);
}
