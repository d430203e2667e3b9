/* See script.h. */
#include "cli/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/split.h"
#include "cli/wait.h"

static char *read_stream(FILE *in, size_t *bytes, bool *too_long) {
    size_t capacity = 64 * 1024, n = 0;
    char *text = malloc(capacity + 1);
    while (text) {
        n += fread(text + n, 1, capacity - n, in);
        if (n > SCRIPT_BYTES_MAX) *too_long = true;
        if (n < capacity || *too_long) break;
        char *more = realloc(text, capacity * 2 + 1);
        if (!more) {
            free(text);
            return NULL;
        }
        text = more;
        capacity *= 2;
    }
    if (text) text[n] = 0;
    *bytes = n;
    return text;
}

static int load_stream(const verb *v, FILE *in, const char *source, script *out) {
    size_t n = 0;
    bool too_long = false;
    out->text = read_stream(in, &n, &too_long);
    out->source = source;
    if (!out->text) {
        fprintf(stderr, "clink %s: out of memory reading %s\n", v->name, source);
        return 1;
    }
    if (ferror(in)) {
        fprintf(stderr, "clink %s: reading %s: %s\n", v->name, source, strerror(errno));
        return 1;
    }
    if (too_long) {
        fprintf(stderr, "clink %s: %s is longer than %d bytes\n", v->name, source, SCRIPT_BYTES_MAX);
        return 1;
    }
    if (n >= 3 && memcmp(out->text, "\xef\xbb\xbf", 3) == 0) memmove(out->text, out->text + 3, n + 1 - 3), n -= 3;
    const char *nul = memchr(out->text, 0, n);
    if (nul) {
        fprintf(stderr, "clink %s: %s has a NUL byte at offset %td\n", v->name, source, nul - out->text);
        return 1;
    }
    return 0;
}

bool script_leave_stdin(void) {
    int other_way = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (other_way < 0) return false;
    bool done = dup2(other_way, STDIN_FILENO) == STDIN_FILENO;
    close(other_way);
    return done;
}

static void stem_of(const char *path, char *out, size_t size) {
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    const char *dot = strrchr(base, '.');
    size_t n = dot && dot > base ? (size_t)(dot - base) : strlen(base);
    if (n >= size) n = size - 1;
    memcpy(out, base, n);
    out[n] = 0;
}

/* The texts of several -e are one script: what is between two of them ends a statement. */
static int load_arguments(const verb *v, const flag_list *texts, script *out) {
    size_t bytes = 1, at = 0;
    bool blank = true;
    for (size_t i = 0; i < texts->count; i++) {
        blank = blank && split_is_blank(texts->items[i], strlen(texts->items[i]));
        bytes += strlen(texts->items[i]) + 3;
    }
    if (blank) return usage_error(v, "-e is given no statement");
    out->source = "-e";
    if (!(out->text = malloc(bytes))) {
        fprintf(stderr, "clink %s: out of memory\n", v->name);
        return 1;
    }
    for (size_t i = 0; i < texts->count; i++) {
        size_t n = strlen(texts->items[i]), end = 0, one;
        memcpy(out->text + at, texts->items[i], n);
        while ((one = split_statement(texts->items[i] + end, n - end)) > 0) end += one;
        bool open = !split_is_blank(texts->items[i] + end, n - end);
        at += n;
        const char *between = i + 1 == texts->count ? "" : open ? "\n;\n" : "\n";
        memcpy(out->text + at, between, strlen(between));
        at += strlen(between);
    }
    out->text[at] = 0;
    return 0;
}

int script_load(const verb *v, const flag_list *execute, char **args, int arg_count, script *out) {
    *out = (script){0};
    if (execute && execute->count) {
        if (arg_count)
            return usage_error(
                v,
                "-e takes the whole script; '%s' is one argument too many: (cat %s; echo 'SQL') | clink %s - "
                "takes both",
                args[0], args[0], v->name);
        return load_arguments(v, execute, out);
    }
    if (arg_count == 0) return usage_error(v, "a script is missing: FILE.sql, -e SQL, or - for standard input");
    if (arg_count > 1)
        return usage_error(v,
                           "one script at a time; '%s' is one argument too many: cat FILES | clink %s - takes several",
                           args[1], v->name);
    if (strcmp(args[0], "-") == 0) {
        int rc = load_stream(v, stdin, "-", out);
        if (!rc && !script_leave_stdin()) return 1;
        return rc;
    }
    FILE *in = fopen(args[0], "rb");
    if (!in) {
        bool sql = errno == ENOENT && strpbrk(args[0], " \n;");
        fprintf(stderr, "clink %s: %s: %s%s\n", v->name, args[0], strerror(errno), sql ? "; -e takes SQL itself" : "");
        return 1;
    }
    int rc = load_stream(v, in, args[0], out);
    fclose(in);
    stem_of(args[0], out->name, sizeof out->name);
    return rc;
}

void script_free(script *s) {
    free(s->text);
    s->text = NULL;
}

void run_flags_init(run_flags *f) {
    *f = (run_flags){.parallelism = 1,
                     .key_groups = 128,
                     .checkpoint_interval_ms = 10000,
                     .checkpoint_timeout_ms = 600000,
                     .final_checkpoint_timeout_ms = 300000,
                     .tolerable_failed = 3,
                     .retained = 3,
                     .alignment_stall_ms = 1000,
                     .materialisation_every = MATERIALISATION_EVERY};
}

size_t run_flags_table(run_flags *f, flag *out) {
    const flag rows[] = {
        {"execute", 'e', FLAG_LIST, &f->execute, "SQL", NULL, "the script itself; several are run in order, as one"},
        {"name", 0, FLAG_TEXT, &f->name, "NAME", "the script's file stem", "the job's name; -e needs one to resume"},
        {"parallelism", 'p', FLAG_COUNT, &f->parallelism, "N", "1", "subtasks of each operator"},
        {"key-groups", 0, FLAG_COUNT, &f->key_groups, "N", "128",
         "units of keyed state, 16 to 1024, fixed for a job's life"},
        {"changes", 0, FLAG_OPTIONAL, &f->changes, "json", NULL,
         "print every change with its kind, not the final result"},
        {"format", 0, FLAG_TEXT, &f->format, "F", "table on a terminal, else ndjson", "ndjson, table or csv"},
        {"explain", 0, FLAG_SWITCH, &f->explain, NULL, NULL, "show the plan and stop"},
        {"catalog", 0, FLAG_TEXT, &f->catalog, "DIR", "none is kept", "where tables, views and functions are kept"},
        {"set", 0, FLAG_LIST, &f->set, "KEY=VALUE", NULL, "as SET KEY = VALUE in front of the script; may be repeated"},
        {"plugin", 0, FLAG_LIST, &f->plugins, "FILE.so", NULL, "functions, tables and jobs of your own; may be repeated"},
        {"job", 0, FLAG_TEXT, &f->job, "FILE.so", NULL, "run the job of a plugin, in place of a script"},
        {"memory", 0, FLAG_BYTES, &f->memory_bytes, "SIZE", "the machine's or the cgroup's",
         "bound on the job's memory"},
        {"threads", 0, FLAG_POSITIVE, &f->threads, "N", "cores", "threads that run operators"},
        {"state-backend", 0, FLAG_TEXT, &f->state_backend, "B", "memory",
         "memory; file:DIR, rocksdb:DIR take what passes --memory; changelog+ any of them"},
        {"materialisation", 0, FLAG_TEXT, &f->materialisation, "WHERE", "inside; with rocksdb external",
         "changelog: all rows inside a checkpoint or external"},
        {"materialisation-every", 0, FLAG_COUNT, &f->materialisation_every, "N", "10",
         "changelog: all rows after so many checkpoints at the latest"},
        {"checkpoint-dir", 0, FLAG_TEXT, &f->checkpoint_dir, "DIR", "no checkpoints",
         "where checkpoints go; a job found there continues"},
        {"savepoint-dir", 0, FLAG_TEXT, &f->savepoint_dir, "DIR", "the checkpoint directory",
         "where savepoints (SIGUSR1; SIGUSR2 stops with one) are kept too"},
        {"checkpoint-interval-ms", 0, FLAG_COUNT, &f->checkpoint_interval_ms, "N", "10000",
         "time between checkpoints; 0: only at the end"},
        {"checkpoint-timeout-ms", 0, FLAG_POSITIVE, &f->checkpoint_timeout_ms, "N", "600000",
         "a checkpoint that takes longer is aborted"},
        {"final-checkpoint-timeout-ms", 0, FLAG_POSITIVE, &f->final_checkpoint_timeout_ms, "N", "300000",
         "the same for the one at the end, with its commit"},
        {"tolerable-failed-checkpoints", 0, FLAG_COUNT, &f->tolerable_failed, "N", "3",
         "failures in a row that the job outlives; 0: any number"},
        {"checkpoint-retained", 0, FLAG_COUNT, &f->retained, "N", "3", "complete checkpoints kept"},
        {"alignment", 0, FLAG_TEXT, &f->alignment, "HOW", "aligned",
         "aligned, unaligned (barriers overtake and what is under way is stored) or adaptive"},
        {"alignment-stall-ms", 0, FLAG_POSITIVE, &f->alignment_stall_ms, "N", "1000",
         "adaptive: how long one may stall before it overtakes"},
        {"restore", 0, FLAG_TEXT, &f->restore, "WHAT", "latest", "latest, a checkpoint id, or DIR[:ID]"},
        {"restore-from-dir", 0, FLAG_TEXT, &f->restore_dir, "DIR", "none", "as --restore DIR"},
        {"restore-from-checkpoint-id", 0, FLAG_POSITIVE, &f->restore_id, "N", "newest",
         "the checkpoint there, as --restore DIR:N"},
        {"fresh", 0, FLAG_SWITCH, &f->fresh, NULL, NULL, "start anew in a used directory"},
        {"allow-duplicates", 0, FLAG_SWITCH, &f->allow_duplicates, NULL, NULL, "go back behind committed output"},
        {"allow-semantic-change", 0, FLAG_SWITCH, &f->allow_semantic_change, NULL, NULL,
         "go on from another script's checkpoint where that gives state up or means something else"},
        {"added-state", 0, FLAG_TEXT, &f->added_state, "HOW", "refuse",
         "of new aggregates: refuse, from_now (later rows alone), backfill (input read again)"},
        {"log-level", 0, FLAG_TEXT, &f->log_level, "L", "warn", "debug, info, warn, error or off"},
    };
    _Static_assert(sizeof rows / sizeof rows[0] <= RUN_FLAG_COUNT, "room for every flag");
    memcpy(out, rows, sizeof rows);
    return sizeof rows / sizeof rows[0];
}

size_t run_flags_explain(run_flags *f, flag *out) {
    size_t count = run_flags_table(f, out), n = 0;
    for (size_t i = 0; i < count; i++)
        if (out[i].target != &f->explain) out[n++] = out[i];
    return n;
}

size_t run_flags_shell(run_flags *f, flag *out) {
    static const char *const names[] = {"parallelism", "changes", "format", "catalog",  "set",
                                        "memory",      "threads", "plugin", "log-level"};
    flag all[RUN_FLAG_COUNT];
    size_t count = run_flags_table(f, all), n = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcmp(all[i].name, names[k]) == 0) out[n++] = all[i];
    return n;
}

int run_flags_output(const verb *v, const run_flags *f, clink_run *run) {
    run->fd = STDOUT_FILENO;
    if (!f->format)
        run->output = isatty(STDOUT_FILENO) ? CLINK_OUTPUT_TABLE : CLINK_OUTPUT_NDJSON;
    else if (strcmp(f->format, "ndjson") == 0 || strcmp(f->format, "json") == 0) /* as the option of tables */
        run->output = CLINK_OUTPUT_NDJSON;
    else if (strcmp(f->format, "csv") == 0)
        run->output = CLINK_OUTPUT_CSV;
    else if (strcmp(f->format, "table") == 0)
        run->output = CLINK_OUTPUT_TABLE;
    else
        return usage_error(v, "--format is ndjson, table or csv, not '%s'", f->format);
    return 0;
}

int32_t log_level_of(const char *name) {
    static const char *const names[] = {"debug", "info", "warn", "error", "off"};
    for (int32_t i = 0; i < 5; i++)
        if (strcmp(names[i], name) == 0) return i + 1;
    return -1;
}

int report_error(clink_status s, const clink_error *e) {
    if (s == CLINK_CANCELLED) return 130;
    fprintf(stderr, "clink: %s\n", e->message);
    return 1;
}

clink_status run_flags_set(const verb *v, const run_flags *f, clink_engine *engine, clink_error *e) {
    clink_status s = CLINK_OK;
    for (size_t i = 0; s == CLINK_OK && i < f->set.count; i++) {
        const char *eq = strchr(f->set.items[i], '=');
        char key[256];
        if (!eq || eq == f->set.items[i] || (size_t)(eq - f->set.items[i]) >= sizeof key) {
            usage_error(v, "--set takes KEY=VALUE, not '%s'", f->set.items[i]);
            e->message[0] = 0;
            return CLINK_INVALID;
        }
        memcpy(key, f->set.items[i], (size_t)(eq - f->set.items[i]));
        key[eq - f->set.items[i]] = 0;
        s = clink_set(engine, key, eq + 1, e);
    }
    return s;
}

clink_status run_flags_open(const verb *v, run_flags *f, clink_engine **engine) {
    clink_error e = {0};
    clink_options o = {.struct_bytes = sizeof o,
                       .threads = (uint32_t)f->threads,
                       .memory_bytes = f->memory_bytes,
                       .catalog_dir = f->catalog,
                       .plugins = f->plugin_paths};
    /* The one with the job comes first: it is its first job that runs. */
    const char **to = f->plugin_paths;
    if (f->job) *to++ = f->job;
    memcpy(to, f->plugins.items, f->plugins.count * sizeof *to);
    if (f->memory_bytes && f->memory_bytes < MEMORY_BYTES_MIN) {
        usage_error(v, "--memory %llu is less than a job begins with; 1M is the least",
                    (unsigned long long)f->memory_bytes);
        return CLINK_INVALID;
    }
    if (f->threads > THREADS_MAX) {
        usage_error(v, "--threads is 1 to %d", THREADS_MAX);
        return CLINK_INVALID;
    }
    if (f->log_level && (o.log_level = log_level_of(f->log_level)) < 0) {
        usage_error(v, "--log-level is debug, info, warn, error or off, not '%s'", f->log_level);
        return CLINK_INVALID;
    }
    clink_status s = clink_open(&o, engine, &e);
    if (s != CLINK_OK) {
        report_error(s, &e);
        return CLINK_FAILED; /* of a stored catalog, not of the usage */
    }
    s = run_flags_set(v, f, *engine, &e);
    if (s != CLINK_OK) {
        if (e.message[0]) report_error(s, &e);
        clink_close(*engine);
        *engine = NULL;
    }
    return s;
}

/* --restore-from-dir and --restore-from-checkpoint-id say what --restore says. */
static int join_restore_pair(const verb *v, run_flags *f) {
    if (!f->restore_dir && !f->restore_id) return 0;
    if (f->restore) return usage_error(v, "--restore and --restore-from-... say the same thing: give one");
    long long id = f->restore_id;
    int n = !f->restore_dir ? snprintf(f->restore_pair, sizeof f->restore_pair, "%lld", id)
            : id            ? snprintf(f->restore_pair, sizeof f->restore_pair, "%s:%lld", f->restore_dir, id)
                            : snprintf(f->restore_pair, sizeof f->restore_pair, "%s", f->restore_dir);
    if (n < 0 || (size_t)n >= sizeof f->restore_pair) return usage_error(v, "--restore-from-dir is too long");
    f->restore = f->restore_pair;
    return 0;
}

static int apply_backend(const verb *v, const char *name, clink_run *run) {
    static const char *const dirs[] = {"file:", "rocksdb:"};
    static const char log[] = "changelog+";
    const char *backend = name;
    if (!backend) return 0;
    if (strcmp(backend, "changelog") == 0) backend = "changelog+memory";
    if (strncmp(backend, log, sizeof log - 1) == 0) {
        backend += sizeof log - 1;
        run->changelog = CLINK_MATERIALISE_AUTO;
    }
    if (strcmp(backend, "memory") == 0) return 0;
    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        size_t n = strlen(dirs[i]);
        if (strncmp(backend, dirs[i], n) != 0) continue;
        if (!backend[n]) return usage_error(v, "--state-backend %sDIR needs a directory", dirs[i]);
        run->spill_dir = backend + n;
        run->rocksdb = i == 1;
        return 0;
    }
    return usage_error(
        v, "--state-backend is memory, file:DIR or rocksdb:DIR, with changelog+ in front or not, not '%s'", name);
}

static int apply_changelog(const verb *v, const run_flags *f, clink_run *run) {
    if (run->changelog == CLINK_NO_CHANGELOG) {
        if (!f->materialisation && f->materialisation_every == MATERIALISATION_EVERY) return 0;
        return usage_error(v, "--materialisation%s is for --state-backend changelog+...",
                           f->materialisation ? "" : "-every");
    }
    if (!run->checkpoint_dir)
        return usage_error(v, "--state-backend changelog+... is about checkpoints and needs --checkpoint-dir");
    if (f->materialisation_every < 1 || f->materialisation_every > 1000)
        return usage_error(v, "--materialisation-every is 1 to 1000");
    run->materialisation_every = (int32_t)f->materialisation_every;
    if (!f->materialisation) return 0;
    bool inside = strcmp(f->materialisation, "inside") == 0;
    if (!inside && strcmp(f->materialisation, "external") != 0)
        return usage_error(v, "--materialisation is inside or external, not '%s'", f->materialisation);
    run->changelog = inside ? CLINK_MATERIALISE_INSIDE : CLINK_MATERIALISE_EXTERNAL;
    return 0;
}

int added_state_parse(const verb *v, const char *text, clink_added_state *out) {
    static const char *const names[] = {"refuse", "from_now", "backfill"};
    static const clink_added_state states[] = {CLINK_ADDED_REFUSED, CLINK_ADDED_FROM_NOW, CLINK_ADDED_BACKFILL};
    *out = CLINK_ADDED_REFUSED;
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = states[i];
        return 0;
    }
    return text ? usage_error(v, "--added-state is refuse, from_now or backfill, not '%s'", text) : 0;
}

int run_flags_apply(const verb *v, run_flags *f, const script *s, clink_run *run) {
    int rc = join_restore_pair(v, f);
    if (rc) return rc;
    if (f->parallelism < 1 || f->parallelism > 1024) return usage_error(v, "--parallelism is 1 to 1024");
    if (f->key_groups < 16 || f->key_groups > 1024) return usage_error(v, "--key-groups is 16 to 1024");
    if (f->parallelism > f->key_groups)
        return usage_error(v, "--parallelism %lld is more than the %lld key groups", (long long)f->parallelism,
                           (long long)f->key_groups);
    if (f->tolerable_failed > INT32_MAX || f->retained > INT32_MAX || f->retained < 1)
        return usage_error(v, "--checkpoint-retained is 1 to %d", INT32_MAX);
    const char *dir = f->checkpoint_dir;
    rc = apply_backend(v, f->state_backend, run);
    if (rc) return rc;
    if (!dir && !run->rocksdb) dir = run->spill_dir;
    if (f->changes && *f->changes && strcmp(f->changes, "json") != 0)
        return usage_error(v, "--changes stands alone or is --changes=json");
    const int64_t times[] = {f->checkpoint_interval_ms, f->checkpoint_timeout_ms, f->final_checkpoint_timeout_ms,
                             f->alignment_stall_ms};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (times[i] > INT64_MAX / 1000)
            return usage_error(v, "the times of checkpoints are at most %lld milliseconds",
                               (long long)(INT64_MAX / 1000));
    const char *needs_dir = f->fresh              ? "--fresh"
                            : f->allow_duplicates ? "--allow-duplicates"
                            : f->restore          ? "--restore"
                            : f->savepoint_dir    ? "--savepoint-dir"
                                                  : NULL;
    if (needs_dir && !dir) return usage_error(v, "%s needs --checkpoint-dir", needs_dir);
    const char *where = f->checkpoint_dir ? "--checkpoint-dir" : "--state-backend file:DIR, which keeps checkpoints,";
    clink_alignment alignment = CLINK_ALIGNED;
    rc = added_state_parse(v, f->added_state, &run->added_state);
    if (rc) return rc;
    if (!f->alignment || strcmp(f->alignment, "aligned") == 0)
        alignment = CLINK_ALIGNED;
    else if (strcmp(f->alignment, "unaligned") == 0)
        alignment = CLINK_UNALIGNED;
    else if (strcmp(f->alignment, "adaptive") == 0)
        alignment = CLINK_ADAPTIVE;
    else
        return usage_error(v, "--alignment is aligned, unaligned or adaptive, not '%s'", f->alignment);
    const char *name = f->name ? f->name : s->name;
    if (f->job && !*name) name = NULL; /* the job says */
    if (dir && name && !*name)
        return usage_error(v, "%s needs --name when the script is not a file: it is what the job is found by", where);
    run->struct_bytes = sizeof *run;
    run->name = name;
    run->source_name = s->source;
    run->plugin_job = f->job ? "" : NULL;
    run->parallelism = (uint32_t)f->parallelism;
    run->key_groups = (uint32_t)f->key_groups;
    run->changes = !f->changes ? CLINK_CHANGES_FINAL : *f->changes ? CLINK_CHANGES_FIELD : CLINK_CHANGES_PREFIX;
    run->checkpoint_dir = dir;
    run->savepoint_dir = f->savepoint_dir;
    run->checkpoint_interval_ms = f->checkpoint_interval_ms ? f->checkpoint_interval_ms : -1;
    run->checkpoint_timeout_ms = f->checkpoint_timeout_ms;
    run->final_checkpoint_timeout_ms = f->final_checkpoint_timeout_ms;
    run->tolerable_failed_checkpoints = f->tolerable_failed ? (int32_t)f->tolerable_failed : -1;
    run->checkpoint_retained = (int32_t)f->retained;
    run->restore = f->restore;
    run->fresh = f->fresh;
    run->alignment_stall_ms = f->alignment_stall_ms;
    run->alignment = alignment;
    run->allow_duplicates = f->allow_duplicates;
    run->allow_semantic_change = f->allow_semantic_change;
    return apply_changelog(v, f, run);
}

/* ---- the start ---- */

/* --job has it. */
static int no_script(const verb *v, const run_flags *f, char **args, int arg_count, script *out) {
    *out = (script){.source = f->job};
    if (arg_count || f->execute.count)
        return usage_error(v, "--job runs the job of a plugin; '%s' is one argument too many",
                           arg_count ? args[0] : "-e");
    if (!(out->text = calloc(1, 1))) {
        fprintf(stderr, "clink %s: out of memory\n", v->name);
        return 1;
    }
    return 0;
}

int run_flags_script(const verb *v, const run_flags *f, char **args, int arg_count, script *out) {
    return f->job ? no_script(v, f, args, arg_count, out) : script_load(v, &f->execute, args, arg_count, out);
}

bool run_start_begin(const verb *v, size_t (*table)(run_flags *f, flag *out), int argc, char **argv, run_start *out,
                     int *rc) {
    flag rows[RUN_FLAG_COUNT];
    bool help;
    *out = (run_start){0};
    run_flags_init(&out->f);
    size_t n = table(&out->f, rows);
    *rc = flags_parse(v, rows, n, &argc, argv, &help);
    if (*rc) return false;
    if (help) {
        flags_print_help(v, rows, n);
        return false;
    }
    *rc = run_flags_script(v, &out->f, argv, argc, &out->s);
    if (!*rc) *rc = run_flags_apply(v, &out->f, &out->s, &out->run);
    if (!*rc) *rc = run_flags_output(v, &out->f, &out->run);
    if (!*rc) {
        wait_block_stop_signals(); /* before the engine's first thread */
        clink_status st = run_flags_open(v, &out->f, &out->engine);
        *rc = st == CLINK_OK ? 0 : st == CLINK_INVALID ? 2 : 1;
    }
    if (*rc) run_start_end(out);
    return *rc == 0;
}

void run_start_end(run_start *r) {
    clink_close(r->engine);
    script_free(&r->s);
    r->engine = NULL;
}
