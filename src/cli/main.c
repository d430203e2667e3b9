/* The command: `clink VERB ...`. Dispatches; knows nothing else. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "clink/clink.h"
#include "cli/verbs.h"

const verb *const *verbs_all(size_t *count) {
    static const verb *const all[] = {&verb_run, &verb_explain};
    *count = sizeof all / sizeof all[0];
    return all;
}

static const verb *find_verb(const char *name) {
    size_t n;
    const verb *const *all = verbs_all(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

static void print_overview(FILE *out) {
    fprintf(out, "clink %s - streaming SQL\n\nusage: clink VERB [arguments]\n\n", clink_version());
    size_t n;
    const verb *const *all = verbs_all(&n);
    for (size_t i = 0; i < n; i++) fprintf(out, "  %-12s %s\n", all[i]->name, all[i]->summary);
    fprintf(out, "  %-12s %s\n  %-12s %s\n\nclink help VERB shows a verb's flags and an example.\n", "help",
            "this, or a verb's page", "version", "the version");
}

static int unknown_verb(const char *name) {
    ck_suggest s;
    ck_suggest_init(&s, ck_view_of(name));
    size_t n;
    const verb *const *all = verbs_all(&n);
    for (size_t i = 0; i < n; i++) ck_suggest_offer(&s, ck_view_of(all[i]->name));
    if (s.best.n)
        fprintf(stderr, "clink: unknown verb '%s'; did you mean '%.*s'?\n", name, (int)s.best.n, s.best.p);
    else
        fprintf(stderr, "clink: unknown verb '%s'\n", name);
    fprintf(stderr, "usage: clink VERB [arguments]; clink help lists the verbs\n");
    return 2;
}

int verbs_help(const char *name) {
    const verb *v = find_verb(name);
    if (!v) return unknown_verb(name);
    char help[] = "--help";
    char *argv[] = {help, NULL};
    return v->main(v, 1, argv);
}

int main(int argc, char **argv) {
    sigset_t pipe_only; /* a closed pipe is an error of write, not a death */
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_only, NULL);
    if (argc < 2) {
        print_overview(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        if (argc > 2) return verbs_help(argv[2]);
        print_overview(stdout);
        return 0;
    }
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        printf("clink %s\n", clink_version());
        return 0;
    }
    const verb *v = find_verb(name);
    return v ? v->main(v, argc - 2, argv + 2) : unknown_verb(name);
}
