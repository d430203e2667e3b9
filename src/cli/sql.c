/* clink sql: statements one by one, with a line editor on a terminal, from standard input otherwise. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/line.h"
#include "cli/script.h"
#include "cli/split.h"
#include "cli/verbs.h"
#include "cli/wait.h"

enum { STATEMENT_BYTES_MAX = SCRIPT_BYTES_MAX, WORDS_MAX = 20000 };

typedef struct shell {
    clink_engine *engine;
    clink_run run;
    int in; /* statements come from here where there is no terminal */
    const verb *verb;
    bool terminal, timing, failed, leave;
    bool stopped; /* by SIGTERM, or Ctrl-C where nobody could type the next statement */
    char *text;   /* typed so far, not run yet */
    size_t bytes, capacity;
} shell;

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- one statement ---- */

static void stop(shell *s) { s->stopped = s->leave = true; }

static void report(shell *s, clink_status st, const clink_error *e) {
    if (st == CLINK_CANCELLED && (!s->terminal || wait_is_terminated())) {
        stop(s);
    } else if (st == CLINK_CANCELLED) {
        fprintf(stderr, "cancelled\n");
    } else {
        s->failed = true;
        report_error(st, e);
    }
}

static void execute(shell *s, const char *sql) {
    clink_error e = {0};
    clink_job *job = NULL;
    int64_t started = now_us();
    if (s->terminal) wait_forget_stop(); /* a Ctrl-C that was for the one before */
    clink_status st = wait_execute(s->engine, sql, &s->run, WAIT_NOTES, &job, &e);
    clink_job_free(job);
    if (st != CLINK_OK) report(s, st, &e);
    if (s->timing) fprintf(stderr, "%.1f ms\n", (double)(now_us() - started) / 1000.0);
}

/* ---- commands with a backslash ---- */

static void help(void) {
    puts("Statements end with a semicolon. Tab completes names, Ctrl-C stops a query, Ctrl-D ends the shell.\n"
         "  \\d           tables and views; \\dv the views alone\n"
         "  \\d NAME      the columns of one\n"
         "  \\df [NAME]   functions: CREATE FUNCTION's, built in, plugins'; those that begin so\n"
         "  \\sf NAME     the statement that makes a table, with its options; so does \\d+ NAME\n"
         "  \\i FILE      run the statements of a file\n"
         "  \\timing      how long statements take, on or off\n"
         "  \\format F    ndjson, table or csv\n"
         "  \\r           forget what was typed since the last semicolon\n"
         "  \\?           this; so does help\n"
         "  \\q           leave; so do exit and quit");
    fflush(stdout); /* rows go past it */
}

static void run_text(shell *s, const char *text, size_t bytes);

static void include_file(shell *s, char *path) {
    script f;
    if (!*path) {
        fprintf(stderr, "clink: \\i takes a file\n");
        s->failed = true;
        return;
    }
    if (strcmp(path, "-") == 0) { /* it is being read already */
        fprintf(stderr, "clink: \\i takes a file; what is typed here runs as it is\n");
        s->failed = true;
        return;
    }
    char *args[] = {path};
    if (script_load(s->verb, NULL, args, 1, &f) != 0) {
        s->failed = true;
        return;
    }
    const char *before = s->run.source_name;
    s->run.source_name = f.source;
    run_text(s, f.text, strlen(f.text));
    s->run.source_name = before;
    script_free(&f);
}

static void out_of_memory(shell *s) {
    fprintf(stderr, "clink: out of memory\n");
    s->failed = true;
}

/* The functions whose name begins so. */
static void list_functions(shell *s, const char *begin) {
    char *sql = NULL;
    if (asprintf(&sql, "SHOW FUNCTIONS LIKE '%.*s%%';", (int)strcspn(begin, "'"), begin) < 0) {
        out_of_memory(s);
        return;
    }
    execute(s, sql);
    free(sql);
}

static void with_name(shell *s, const char *statement, const char *name) {
    char *sql = NULL;
    if (asprintf(&sql, "%s %s;", statement, name) < 0) {
        out_of_memory(s);
        return;
    }
    execute(s, sql);
    free(sql);
}

static void unknown_command(shell *s, const char *word) {
    fprintf(stderr, "clink: unknown command \\%s; \\? lists them\n", word);
    s->failed = true;
}

static void set_format(shell *s, const char *name) {
    if (strcmp(name, "ndjson") == 0 || strcmp(name, "json") == 0)
        s->run.output = CLINK_OUTPUT_NDJSON;
    else if (strcmp(name, "csv") == 0)
        s->run.output = CLINK_OUTPUT_CSV;
    else if (strcmp(name, "table") == 0)
        s->run.output = CLINK_OUTPUT_TABLE;
    else
        fprintf(stderr, "clink: \\format takes ndjson, table or csv\n"), s->failed = true;
}

static void set_timing(shell *s, const char *to) {
    if (strcasecmp(to, "on") == 0 || strcasecmp(to, "off") == 0 || !*to)
        s->timing = *to ? strcasecmp(to, "on") == 0 : !s->timing;
    else
        fprintf(stderr, "clink: \\timing is on or off, and changes over alone\n"), s->failed = true;
    if (s->terminal) printf("timing is %s\n", s->timing ? "on" : "off"), fflush(stdout);
}

/* A backslash, a word, and what it is about: a path may have blanks in it. */
static void command(shell *s, char *line) {
    char *word = line + 1, *rest = word + strcspn(word, " \t"), *end = line + strlen(line);
    while (end > word && strchr(" \t\r;", end[-1])) *--end = 0;
    if (*rest) *rest++ = 0;
    rest += strspn(rest, " \t");
    if (strcmp(word, "q") == 0)
        s->leave = true;
    else if ((strcmp(word, "d") == 0 || strcmp(word, "dt") == 0) && !*rest)
        execute(s, "SHOW TABLES;");
    else if (strcmp(word, "dv") == 0)
        execute(s, "SHOW VIEWS;");
    else if (strcmp(word, "d") == 0)
        with_name(s, "DESCRIBE", rest);
    else if (strcmp(word, "df") == 0)
        list_functions(s, rest);
    else if (strcmp(word, "sf") == 0 || (strcmp(word, "d+") == 0 && *rest))
        with_name(s, "SHOW CREATE TABLE", rest);
    else if (strcmp(word, "i") == 0)
        include_file(s, rest);
    else if (strcmp(word, "timing") == 0)
        set_timing(s, rest);
    else if (strcmp(word, "format") == 0)
        set_format(s, rest);
    else if (strcmp(word, "r") == 0)
        s->bytes = 0;
    else if (strcmp(word, "?") == 0 || strcmp(word, "h") == 0)
        help();
    else
        unknown_command(s, word);
}

/* ---- text as it comes ---- */

static bool append(shell *s, const char *line) {
    size_t n = strlen(line);
    if (n + 2 > STATEMENT_BYTES_MAX - s->bytes) {
        fprintf(stderr, "clink: a statement is longer than %d bytes\n", STATEMENT_BYTES_MAX);
        s->bytes = 0;
        s->failed = true;
        return false;
    }
    if (s->bytes + n + 2 > s->capacity) {
        size_t more = (s->bytes + n + 2) * 2;
        char *p = realloc(s->text, more);
        if (!p) {
            fprintf(stderr, "clink: out of memory\n");
            s->bytes = 0;
            s->failed = true;
            return false;
        }
        s->text = p, s->capacity = more;
    }
    memcpy(s->text + s->bytes, line, n);
    s->bytes += n;
    s->text[s->bytes++] = '\n';
    s->text[s->bytes] = 0;
    return true;
}

/* Runs the complete statements at the front of what was typed. */
static void run_complete(shell *s) {
    size_t n, at = 0;
    while (!s->leave && (n = split_statement(s->text + at, s->bytes - at)) > 0) {
        char kept = s->text[at + n];
        s->text[at + n] = 0;
        if (!split_is_blank(s->text + at, n)) execute(s, s->text + at);
        s->text[at + n] = kept;
        at += n;
    }
    memmove(s->text, s->text + at, s->bytes - at + 1);
    s->bytes -= at;
    if (split_is_blank(s->text, s->bytes)) s->bytes = 0;
}

/* "exit", "quit;" and the like, where a statement would begin. */
static bool is_just(const char *line, const char *word) {
    size_t n = strlen(word);
    line += strspn(line, " \t");
    return strncasecmp(line, word, n) == 0 && line[n + strspn(line + n, " \t\r;")] == 0;
}

static void take_line(shell *s, char *line) {
    char *word = line + strspn(line, " \t");
    if (s->bytes == 0 && *word == '\\') {
        command(s, word);
    } else if (s->bytes == 0 && *word == '.' && word[1] >= 'a' && word[1] <= 'z') { /* no statement begins so */
        fprintf(stderr, "clink: commands begin with a backslash here; \\? lists them\n");
        s->failed = true;
    } else if (s->bytes == 0 && (is_just(line, "exit") || is_just(line, "quit"))) {
        s->leave = true;
    } else if (s->bytes == 0 && is_just(line, "help")) {
        help();
    } else if (append(s, line)) {
        run_complete(s);
    }
}

/* What is left at the end of a file needs no semicolon. */
static void run_rest(shell *s) {
    if (s->bytes && !split_is_blank(s->text, s->bytes)) execute(s, s->text);
    s->bytes = 0;
}

static void run_text(shell *s, const char *text, size_t bytes) {
    const char *end = text + bytes;
    size_t n;
    while (text < end && !s->leave) {
        n = split_statement(text, (size_t)(end - text));
        if (n == 0) n = (size_t)(end - text);
        char *one = strndup(text, n);
        if (!one) {
            out_of_memory(s);
            return;
        }
        if (!split_is_blank(one, n)) execute(s, one);
        free(one);
        text += n;
    }
}

/* Standard input as long as no signal has come. */
static ssize_t read_input(void *cookie, char *to, size_t bytes) {
    shell *s = cookie;
    if (wait_readable(s->in, true)) return read(s->in, to, bytes);
    stop(s);
    return 0;
}

static void read_plain(shell *s) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    s->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    bool taken = s->in >= 0 && script_leave_stdin();
    FILE *in = taken ? fopencookie(s, "r", (cookie_io_functions_t){.read = read_input}) : NULL;
    if (!in) {
        out_of_memory(s);
        return;
    }
    while (!s->leave && (n = getline(&line, &capacity, in)) >= 0 && !s->stopped) {
        if (memchr(line, 0, (size_t)n)) {
            fprintf(stderr, "clink: the input has a NUL byte\n");
            s->failed = true;
            break;
        }
        line[strcspn(line, "\n")] = 0;
        take_line(s, line);
    }
    if (!s->leave && ferror(in)) {
        fprintf(stderr, "clink: standard input cannot be read: %s\n", strerror(errno));
        s->failed = true;
    }
    if (!s->leave) run_rest(s);
    fclose(in);
    close(s->in);
    free(line);
}

/* ---- on a terminal ---- */

static const char *const keywords[] = {
    "SELECT",  "FROM",  "WHERE",    "GROUP",    "ORDER",   "HAVING",    "LIMIT",  "OFFSET",   "JOIN",
    "LEFT",    "RIGHT", "FULL",     "INNER",    "CROSS",   "UNION",     "EXCEPT", "VALUES",   "INTERSECT",
    "INSERT",  "INTO",  "CREATE",   "TABLE",    "VIEW",    "DROP",      "ALTER",  "DESCRIBE", "SHOW",
    "EXPLAIN", "WITH",  "DISTINCT", "FUNCTION", "RETURNS", "TEMPORARY", "EXISTS", "BETWEEN",  "PARTITION"};

typedef enum kept { LINES, FIRST_WORDS, AND_COLUMNS } kept;

/* The lines a statement prints, as words: whole, their first word, or names of tables with those of their columns. */
static void add_lines(shell *s, const char *sql, void (*add)(void *to, const char *word), void *to, kept what) {
    clink_run quiet = {.struct_bytes = sizeof quiet};
    clink_job *job = NULL;
    clink_error e = {0};
    if (clink_execute(s->engine, sql, &quiet, &job, &e) != CLINK_OK || !job) return;
    char *text = strdup(clink_job_text(job)), *save = NULL;
    clink_job_free(job);
    char *line = text ? strtok_r(text, "\n", &save) : NULL;
    for (size_t i = 0; line && i < WORDS_MAX; i++, line = strtok_r(NULL, "\n", &save)) {
        if (what == FIRST_WORDS) line[strcspn(line, " ")] = 0;
        add(to, line);
        char describe[256];
        int n = snprintf(describe, sizeof describe, "DESCRIBE \"%s\"", line);
        if (what == AND_COLUMNS && n > 0 && (size_t)n < sizeof describe) add_lines(s, describe, add, to, FIRST_WORDS);
    }
    free(text);
}

static bool takes_table(const char *before) {
    static const char *const words[] = {"FROM",     "JOIN", "INTO", "TABLE", "VIEW",
                                        "DESCRIBE", "DESC", "\\d",  "\\d+",  "\\sf"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(before, words[i]) == 0) return true;
    return false;
}

static void words(void *arg, const char *before, void (*add)(void *to, const char *word), void *to) {
    if (takes_table(before)) {
        add_lines(arg, "SHOW TABLES", add, to, LINES);
        return;
    }
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) add(to, keywords[i]);
    add_lines(arg, "SHOW TABLES", add, to, AND_COLUMNS);
    add_lines(arg, "SHOW FUNCTIONS", add, to, LINES);
}

/* ${XDG_STATE_HOME:-~/.local/state}/clink/history; false: nowhere. */
static bool history_path(char *out, size_t size) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = state && *state ? snprintf(out, size, "%s", state)
            : home && *home ? snprintf(out, size, "%s/.local/state", home)
                            : -1;
    if (n <= 0 || (size_t)n + 16 >= size) return false;
    for (char *p = out + 1; *p; p++) {
        if (*p != '/') continue;
        *p = 0;
        mkdir(out, 0700); /* where that fails, writing the history will */
        *p = '/';
    }
    mkdir(out, 0700);
    memcpy(out + n, "/clink", 7);
    mkdir(out, 0700);
    memcpy(out + n + 6, "/history", 9);
    return true;
}

static int read_terminal(shell *s) {
    char path[1024];
    line_editor *l = line_editor_new(history_path(path, sizeof path) ? path : NULL, words, s);
    if (!l) {
        fprintf(stderr, "clink sql: the terminal cannot be used\n");
        return 1;
    }
    printf("clink %s; \\? for help\n", clink_version());
    while (!s->leave) {
        char *line;
        line_result r = line_read(l, s->bytes ? "   ... " : "clink> ", &line);
        if (r == LINE_END) {
            if (wait_is_terminated()) stop(s);
            break;
        }
        if (r == LINE_CANCELLED)
            s->bytes = 0;
        else
            take_line(s, line);
    }
    if (!s->leave) printf("\n");
    line_editor_free(l);
    return 0;
}

static int sql_main(const verb *v, int argc, char **argv) {
    run_flags f;
    run_flags_init(&f);
    flag table[RUN_FLAG_COUNT];
    size_t n = run_flags_shell(&f, table);
    bool is_help;
    int rc = flags_parse(v, table, n, &argc, argv, &is_help);
    if (rc) return rc;
    if (is_help) {
        flags_print_help(v, table, n);
        return 0;
    }
    if (argc) return usage_error(v, "takes no arguments, and '%s' is one; clink run FILE runs a script", argv[0]);
    shell s = {.verb = v, .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    s.timing = s.terminal;
    if (s.terminal) line_use_utf8();
    const script none = {.source = "sql", .name = "sql"};
    rc = run_flags_apply(v, &f, &none, &s.run);
    if (!rc) rc = run_flags_output(v, &f, &s.run);
    if (!rc) {
        wait_block_stop_signals();
        clink_status st = run_flags_open(v, &f, &s.engine);
        rc = st == CLINK_OK ? 0 : st == CLINK_INVALID ? 2 : 1;
    }
    if (!rc && s.terminal)
        rc = read_terminal(&s);
    else if (!rc)
        read_plain(&s);
    clink_close(s.engine);
    free(s.text);
    if (s.stopped) return 130;
    return rc ? rc : s.failed && !s.terminal;
}

const verb verb_sql = {
    .name = "sql",
    .summary = "an interactive shell; or statements from standard input, one by one",
    .usage = "clink sql [flags]",
    .example = "  clink sql --catalog tables                   # on a terminal: \\? lists what it knows\n"
               "  echo \"SELECT 1 AS one;\" | clink sql",
    .main = sql_main,
};
