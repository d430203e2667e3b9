/* The command: `clink VERB ...`. Dispatches, and sees to the three standard descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "clink/clink.h"
#include "cli/verbs.h"

const verb *const *verbs_all(size_t *count) {
    static const verb *const all[] = {&verb_run,
                                      &verb_sql,
                                      &verb_explain,
                                      &verb_coordinator,
                                      &verb_worker,
                                      &verb_submit,
                                      &verb_list,
                                      &verb_status,
                                      &verb_cancel,
                                      &verb_drop,
                                      &verb_resume,
                                      &verb_stop,
                                      &verb_savepoint,
                                      &verb_dead_letter_replay,
                                      &verb_checkpoint_verify,
                                      &verb_check_savepoint};
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
    for (size_t i = 0; i < n; i++) fprintf(out, "  %-20s %s\n", all[i]->name, all[i]->summary);
    fprintf(out, "  %-20s %s\n  %-20s %s\n\nclink help VERB shows a verb's flags and an example.\n", "help",
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
    else if (name[0] == '-')
        fprintf(stderr, "clink: a verb comes first, and '%s' is none: clink run -e SQL\n", name);
    else if (access(name, F_OK) == 0 || strchr(name, '.'))
        fprintf(stderr, "clink: unknown verb '%s'; clink run %s runs a script\n", name, name);
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

/* A closed pipe and a file size limit are errors of write, not a death. */
static void block_signals_of_write(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigaddset(&set, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

/* A standard descriptor that was closed would be given to the next file that is opened, and messages and rows would be
 * written into that. What stands in its place fails as a closed one does: it is open for the other direction only. */
static bool hold_standard_descriptors(void) {
    static const int other_way[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", other_way[fd]) != fd) return false;
    return true;
}

/* What stdio still holds is written; text that is lost is not a success. A reader that has gone has seen enough. */
static int flush_output(int rc) {
    errno = 0;
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (!lost || errno == EPIPE) return rc;
    fprintf(stderr, "clink: writing standard output: %s\n", strerror(errno ? errno : EIO));
    return rc ? rc : 1;
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        print_overview(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        if (argc > 2 && strcmp(argv[2], "--help") != 0) return verbs_help(argv[2]);
        print_overview(stdout);
        return 0;
    }
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        if (argc > 2) {
            fprintf(stderr, "clink: version takes no arguments; '%s' is one too many\n", argv[2]);
            return 2;
        }
        printf("clink %s\n", clink_version());
        return 0;
    }
    if (strcmp(name, "task-host") == 0) return task_host_main(argc - 2, argv + 2);
    const verb *v = find_verb(name);
    return v ? v->main(v, argc - 2, argv + 2) : unknown_verb(name);
}

int main(int argc, char **argv) {
    block_signals_of_write();
    if (!hold_standard_descriptors()) return 1;
    return flush_output(dispatch(argc, argv));
}
