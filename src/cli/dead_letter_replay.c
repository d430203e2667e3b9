/* clink dead-letter-replay: records a table has put aside are read again by the statements that read that table, after
 * its definition or the records themselves were repaired. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/script.h"
#include "cli/verbs.h"
#include "cli/wait.h"

typedef struct replay {
    const verb *v;
    const char *table, *export_path, *from;
    run_flags f;
    script s;
    clink_run run;
    char temporary[64]; /* "": there is none */
    char *dir;          /* of the letters' files; NULL: they are in none */
    char **parts;       /* names of those that are replayed, sorted */
    size_t part_count;
    bool nothing; /* is there to replay */
} replay;

static int cannot(const char *what, const char *path) {
    fprintf(stderr, "clink: cannot %s %s: %s\n", what, path, strerror(errno));
    return 1;
}

/* ---- the letters, out of the table they are in: CSV of raw (base64) and split ---- */

static size_t decode_base64(char *text, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t out = 0;
    unsigned bits = 0, have = 0;
    for (size_t i = 0; i < n && text[i] != '='; i++) {
        const char *d = memchr(digits, text[i], sizeof digits - 1);
        bits = bits << 6 | (unsigned)(d ? d - digits : 0);
        have += 6;
        if (have < 8) continue;
        have -= 8;
        text[out++] = (char)(bits >> have);
    }
    return out;
}

/* A CSV field in place, without its quotes. */
static void unquote(char *field) {
    char *to = field;
    if (*field != '"') return;
    for (const char *from = field + 1; *from && !(from[0] == '"' && from[1] != '"'); from++) {
        if (*from == '"') from++;
        *to++ = *from;
    }
    *to = 0;
}

/* The first record of a file, which names the columns. */
static int copy_header(const char *path, FILE *to) {
    char *line = NULL;
    size_t room = 0;
    FILE *in = fopen(path, "r");
    if (!in) return cannot("read the header of", path);
    ssize_t n = getline(&line, &room, in);
    fclose(in);
    if (n > 0) fwrite(line, 1, (size_t)n, to);
    if (n > 0 && line[n - 1] != '\n') fputc('\n', to);
    free(line);
    if (n > 0) return 0;
    fprintf(stderr, "clink: %s is empty and has no header\n", path);
    return 1;
}

static int copy_letters(const replay *r, FILE *letters, FILE *to, bool header) {
    char *line = NULL;
    size_t room = 0;
    unsigned long long copied = 0, unknown = 0;
    int rc = 0;
    ssize_t n = getline(&line, &room, letters); /* names of columns */
    while (rc == 0 && (n = getline(&line, &room, letters)) > 0) {
        if (line[n - 1] == '\n') line[n - 1] = 0;
        char *comma = strchr(line, ',');
        if (!comma) continue;
        if (header && copied == 0) {
            unquote(comma + 1);
            rc = copy_header(comma + 1, to);
        }
        size_t bytes = decode_base64(line, (size_t)(comma - line));
        if (bytes == 0) {
            unknown++;
            continue;
        }
        fwrite(line, 1, bytes, to);
        fputc('\n', to);
        copied++;
    }
    free(line);
    if (!rc && (fflush(to) != 0 || ferror(to))) rc = cannot("write", "the records");
    if (rc) return rc;
    if (unknown) fprintf(stderr, "clink: %llu records were too long to be kept and are not here\n", unknown);
    if (r->export_path)
        fprintf(stderr, "clink: %llu record%s of %s written to %s\n", copied, copied == 1 ? "" : "s", r->table,
                r->export_path);
    return 0;
}

static int run_to(clink_engine *engine, const char *sql, FILE *to) {
    clink_error e = {0};
    clink_run run = {
        .struct_bytes = sizeof run, .output = CLINK_OUTPUT_CSV, .fd = fileno(to), .source_name = "dead letters"};
    clink_job *job = NULL;
    clink_status st = wait_execute(engine, sql, &run, WAIT_QUIET, &job, &e);
    clink_job_free(job);
    rewind(to);
    return st == CLINK_OK ? 0 : report_error(st, &e);
}

/* ---- the letters' files: what was replayed is moved into a folder beside them, where no table looks ---- */

static int is_part(const struct dirent *e) { return strncmp(e->d_name, "part-", 5) == 0; }

static void free_names(char **names, size_t n) {
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

static int list_parts(const char *dir, char ***names, size_t *count) {
    struct dirent **found = NULL;
    int n = scandir(dir, &found, is_part, alphasort), kept = 0;
    if (n < 0) return cannot("list", dir);
    *names = calloc((size_t)n + 1, sizeof **names);
    for (int i = 0; i < n; i++) {
        if (*names && ((*names)[kept] = strdup(found[i]->d_name))) kept++;
        free(found[i]);
    }
    free(found);
    *count = (size_t)kept;
    if (*names && kept == n) return 0;
    free_names(*names, *names ? (size_t)kept : 0);
    *names = NULL, *count = 0;
    errno = ENOMEM;
    return cannot("list", dir);
}

/* What was read is what was there before and is there now: a part never changes. */
static int same_parts(const replay *r) {
    char **now;
    size_t n;
    if (!r->dir) return 0;
    int rc = list_parts(r->dir, &now, &n);
    if (rc) return rc;
    bool same = n == r->part_count;
    for (size_t i = 0; same && i < n; i++) same = strcmp(now[i], r->parts[i]) == 0;
    free_names(now, n);
    if (same) return 0;
    fprintf(stderr, "clink: %s is being written; replay its letters when it is not\n", r->dir);
    return 1;
}

static int move_parts(const replay *r) {
    char *to_dir = NULL;
    if (!r->dir || r->part_count == 0) return 0;
    if (asprintf(&to_dir, "%s/replayed", r->dir) < 0) return cannot("move", r->dir);
    int rc = mkdir(to_dir, 0777) == 0 || errno == EEXIST ? 0 : cannot("make", to_dir);
    for (size_t i = 0; !rc && i < r->part_count; i++) {
        char *from = NULL, *to = NULL;
        bool named =
            asprintf(&from, "%s/%s", r->dir, r->parts[i]) >= 0 && asprintf(&to, "%s/%s", to_dir, r->parts[i]) >= 0;
        if (!named || rename(from, to) != 0) rc = cannot("move", r->parts[i]);
        free(from);
        free(to);
    }
    if (!rc)
        fprintf(stderr, "clink: the letters are in %s now and are not replayed again\n", to_dir);
    else
        fprintf(stderr, "clink: the letters were fed back, but are not all moved to %s: they would come again\n",
                to_dir);
    free(to_dir);
    return rc;
}

/* Writes the raw records to a file, as the table's own files have them. */
static int write_letters(replay *r, clink_engine *engine, FILE *to) {
    clink_error e = {0};
    char *letters = NULL, *sql = NULL;
    int32_t header = 0;
    clink_status st = clink_dead_letter_table(engine, r->s.text, &r->run, r->table, &letters, &header, &e);
    if (st != CLINK_OK) return report_error(st, &e);
    FILE *rows = tmpfile();
    int rc = rows ? 0 : cannot("make", "a temporary file");
    if (!rc) {
        st = clink_dead_letter_path(engine, letters, &r->dir, &e);
        rc = st == CLINK_OK ? 0 : report_error(st, &e);
    }
    struct stat is;
    if (!rc && r->dir && stat(r->dir, &is) == 0 && S_ISDIR(is.st_mode))
        rc = list_parts(r->dir, &r->parts, &r->part_count);
    else
        clink_free(r->dir), r->dir = NULL;
    if (!rc && asprintf(&sql, "SELECT raw, split FROM \"%s\" ORDER BY split, \"offset\"", letters) < 0) rc = 1;
    if (!rc && r->dir && r->part_count == 0) {
        fprintf(stderr, "clink: %s has no letters\n", r->dir);
        r->nothing = true;
    }
    if (!rc && !r->nothing) rc = run_to(engine, sql, rows);
    if (!rc && !r->nothing) rc = same_parts(r);
    if (!rc && !r->nothing) rc = copy_letters(r, rows, to, header);
    if (rows) fclose(rows);
    free(sql);
    clink_free(letters);
    return rc;
}

static int gather(replay *r, clink_engine *engine) {
    FILE *to = NULL;
    const char *path = r->export_path;
    if (!path) {
        snprintf(r->temporary, sizeof r->temporary, "/tmp/clink-letters-XXXXXX");
        int fd = mkstemp(r->temporary);
        if (fd < 0) r->temporary[0] = 0;
        path = r->from = r->temporary;
        to = fd < 0 ? NULL : fdopen(fd, "w");
    } else {
        to = fopen(path, "wx");
    }
    if (!to) return cannot("write", *path ? path : "a temporary file");
    int rc = write_letters(r, engine, to);
    if (fclose(to) != 0 && !rc) rc = cannot("write", path);
    return rc;
}

/* ---- reading them again ---- */

/* The letters were not repaired: what to do about them. */
static int not_fed(const replay *r, clink_status st, const clink_error *e) {
    int rc = report_error(st, e);
    if (st == CLINK_DATA && r->temporary[0])
        fprintf(
            stderr,
            "clink: that is a letter of %s; --export FILE writes them all, and --from FILE feeds them when repaired\n",
            r->table);
    return rc;
}

static int feed(replay *r, clink_engine *engine) {
    clink_error e = {0};
    clink_job *job = NULL;
    r->run.replay_table = r->table;
    r->run.replay_path = r->from;
    r->run.output = CLINK_OUTPUT_NDJSON;
    r->run.fd = STDOUT_FILENO;
    clink_status st = wait_execute(engine, r->s.text, &r->run, WAIT_NOTES, &job, &e);
    clink_progress p = {.struct_bytes = sizeof p};
    clink_job_progress(job, &p);
    clink_job_free(job);
    if (st != CLINK_OK) return not_fed(r, st, &e);
    fprintf(stderr, "clink: %llu record%s fed back%s\n", (unsigned long long)p.rows_in,
            p.rows_in == 1 ? " was" : "s were",
            r->dir ? "" : "; those in the dead letter table are still there and come again without --from");
    return move_parts(r);
}

static int with_engine(replay *r, int (*what)(replay *, clink_engine *)) {
    clink_engine *engine = NULL;
    clink_status st = run_flags_open(r->v, &r->f, &engine);
    int rc = st == CLINK_OK ? what(r, engine) : st == CLINK_INVALID ? 2 : 1;
    clink_close(engine);
    return rc;
}

static int replay_main(const verb *v, int argc, char **argv) {
    replay r = {.v = v};
    const char *path = NULL;
    bool help;
    run_flags_init(&r.f);
    flag table[] = {
        {"script", 0, FLAG_TEXT, &path, "FILE", NULL, "the script that makes the table and reads it"},
        {"export", 0, FLAG_TEXT, &r.export_path, "FILE", NULL, "write the raw records to a new file, to be repaired"},
        {"from", 0, FLAG_TEXT, &r.from, "FILE", NULL, "feed these records instead of those of the dead letter table"},
        {"parallelism", 'p', FLAG_COUNT, &r.f.parallelism, "N", "1", "subtasks of each operator"},
        {"set", 0, FLAG_LIST, &r.f.set, "KEY=VALUE", NULL, "SET for this run; may be repeated"},
    };
    size_t n = sizeof table / sizeof table[0];
    int rc = flags_parse(v, table, n, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, table, n);
        return 0;
    }
    if (argc != 1) return usage_error(v, "one TABLE is needed, not %d", argc);
    if (!path) return usage_error(v, "--script FILE.sql is needed");
    if (r.export_path && r.from) return usage_error(v, "--export and --from do not go together");
    r.table = argv[0];
    char *files[] = {(char *)(uintptr_t)path, NULL};
    rc = script_load(v, NULL, files, 1, &r.s);
    if (!rc) rc = run_flags_apply(v, &r.f, &r.s, &r.run);
    wait_block_stop_signals();
    if (!rc && !r.from) rc = with_engine(&r, gather);
    if (!rc && !r.export_path && !r.nothing) rc = with_engine(&r, feed);
    if (r.temporary[0]) unlink(r.temporary);
    free_names(r.parts, r.part_count);
    clink_free(r.dir);
    script_free(&r.s);
    return rc;
}

const verb verb_dead_letter_replay = {
    .name = "dead-letter-replay",
    .summary = "feed records that were put aside back into a script",
    .usage = "clink dead-letter-replay TABLE --script FILE.sql [--export FILE | --from FILE]",
    .example = "  clink dead-letter-replay orders --script job.sql --export bad.csv   # then repair bad.csv\n"
               "  clink dead-letter-replay orders --script job.sql --from bad.csv",
    .main = replay_main,
};
