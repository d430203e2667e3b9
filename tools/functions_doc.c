/* Prints docs/functions.md from the function tables, or with --examples the examples as lines `expression <TAB>
 * result`, which a test runs as SQL. */
#include <stdio.h>
#include <string.h>

#include "expr/aggregate.h"
#include "expr/function.h"

/* Groups in the order in which they first appear. */
static size_t collect_groups(const char **groups, size_t max) {
    size_t n = 0;
    for (size_t i = 0; i < ck_function_count(); i++) {
        const char *g = ck_function_at(i)->group;
        size_t k = 0;
        if (!g) continue; /* nothing that SQL writes */
        while (k < n && strcmp(groups[k], g) != 0) k++;
        if (k == n && n < max) groups[n++] = g;
    }
    return n;
}

/* A table cell: pipes would end it. */
static void cell(const char *text) {
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
}

static void entry(const char *syntax, const char *summary, const char *example, const char *result) {
    fputs("| `", stdout);
    cell(syntax);
    fputs("` | ", stdout);
    cell(summary);
    fputs(" | `", stdout);
    cell(example);
    fputs("` → `", stdout);
    cell(result);
    fputs("` |\n", stdout);
}

static void heading(const char *group) {
    printf("\n## %c%s\n\n| call | what it gives | example |\n|---|---|---|\n",
           group[0] >= 'a' && group[0] <= 'z' ? group[0] - 32 : group[0], group + 1);
}

static void print_page(void) {
    const char *groups[64];
    size_t n = collect_groups(groups, 64);
    puts("# Functions\n\nEvery function and operator, generated from the function tables (`make docs`). Each example "
         "runs in the tests. A NULL "
         "argument gives\nNULL unless a line says otherwise. `TRY_CAST` and `SET on_eval_error = null` turn run-time "
         "errors into NULL.");
    for (size_t g = 0; g < n; g++) {
        heading(groups[g]);
        for (size_t i = 0; i < ck_function_count(); i++) {
            const ck_function *f = ck_function_at(i);
            if (f->group && strcmp(f->group, groups[g]) == 0) entry(f->syntax, f->summary, f->example, f->result);
        }
    }
    heading("aggregates");
    for (size_t i = 0; i < ck_aggregate_count(); i++) {
        const ck_aggregate *a = ck_aggregate_at(i);
        entry(a->syntax, a->summary, a->example, a->result);
    }
}

static void print_examples(void) {
    for (size_t i = 0; i < ck_function_count(); i++)
        if (ck_function_at(i)->group) printf("%s\t%s\n", ck_function_at(i)->example, ck_function_at(i)->result);
    for (size_t i = 0; i < ck_aggregate_count(); i++)
        printf("%s\t%s\n", ck_aggregate_at(i)->example, ck_aggregate_at(i)->result);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--examples") == 0)
        print_examples();
    else
        print_page();
    return ferror(stdout) || fflush(stdout) != 0;
}
