/* What run, explain and sql share: where the SQL text comes from, the flags that shape a plan, and how a verb starts.
 */
#ifndef CK_CLI_SCRIPT_H
#define CK_CLI_SCRIPT_H

#include "clink/clink.h"
#include "cli/flags.h"

enum { SCRIPT_BYTES_MAX = 16 << 20, MEMORY_BYTES_MIN = 1 << 20, THREADS_MAX = 1024, MATERIALISATION_EVERY = 10 };

typedef struct script {
    char *text;         /* NUL-terminated; freed with script_free */
    const char *source; /* for messages: the path, "-e" or "-" */
    char name[256];     /* default job name: the file's stem, "" for -e and - */
} script;

/* From FILE, "-" (standard input) or the texts of -e (NULL or none: there is no such flag), one after the other. 0, or
 * 2 (usage) or 1 (cannot be read) after one line on stderr. */
int script_load(const verb *v, const flag_list *execute, char **args, int arg_count, script *out);
void script_free(script *s);
/* What takes all of standard input as statements leaves none of it to a table that reads it: such a table fails and is
 * not empty. */
bool script_leave_stdin(void);

/* The flags of `run` that also shape a plan. */
typedef struct run_flags {
    flag_list execute;
    const char *name, *changes, *format, *checkpoint_dir, *savepoint_dir, *restore, *state_backend, *log_level,
        *catalog, *job;
    int64_t parallelism, key_groups, threads;
    int64_t checkpoint_interval_ms, checkpoint_timeout_ms, final_checkpoint_timeout_ms, tolerable_failed, retained;
    bool fresh, allow_duplicates, allow_semantic_change, explain;
    const char *added_state;
    uint64_t memory_bytes;
    flag_list set, plugins;
    const char *plugin_paths[FLAG_LIST_MAX + 2]; /* with that of the job */
    const char *alignment;
    int64_t alignment_stall_ms;
    const char *materialisation; /* changelog backends */
    int64_t materialisation_every;
    const char *restore_dir; /* the specified pair, for --restore DIR:ID */
    int64_t restore_id;
    char restore_pair[4352];
} run_flags;

void run_flags_init(run_flags *f);
/* Rows for flags_parse over *f; fills out (room for RUN_FLAG_COUNT). */
enum { RUN_FLAG_COUNT = 36 };
size_t run_flags_table(run_flags *f, flag *out);
/* Those of them that the shell takes, and those that explain takes. */
size_t run_flags_shell(run_flags *f, flag *out);
size_t run_flags_explain(run_flags *f, flag *out);
/* --format, or what standard output is; into run. 0 or 2. */
int run_flags_output(const verb *v, const run_flags *f, clink_run *run);
/* Opens the engine with the flags that are its own and applies --set. CLINK_OK or the code, with a message on stderr.
 */
clink_status run_flags_open(const verb *v, run_flags *f, clink_engine **engine);
/* --set alone; e->message is empty where the usage has been said. */
clink_status run_flags_set(const verb *v, const run_flags *f, clink_engine *engine, clink_error *e);
/* Into a clink_run, which borrows from *f and *s (output and fd are left to the caller). 0 or 2. */
int run_flags_apply(const verb *v, run_flags *f, const script *s, clink_run *run);
/* Of --added-state; NULL: it was not given. 0 or 2. */
int added_state_parse(const verb *v, const char *text, clink_added_state *out);

/* Where --job has none, an empty script; else as script_load. 0, 1 or 2. */
int run_flags_script(const verb *v, const run_flags *f, char **args, int arg_count, script *out);

/* ---- the start of run and explain ---- */

typedef struct run_start {
    run_flags f;
    script s;
    clink_run run;
    clink_engine *engine;
} run_start;
/* Flags, script, engine. true: go on, and end it with run_start_end. false: *rc is the exit status: help was shown
 * (0), usage (2), or what could not be read or opened (1). */
bool run_start_begin(const verb *v, size_t (*table)(run_flags *f, flag *out), int argc, char **argv, run_start *out,
                     int *rc);
void run_start_end(run_start *r);

/* "clink: <message>" on stderr; the process's exit status for it: 2 usage is never an engine's, 130 when cancelled,
 * else 1. */
int report_error(clink_status s, const clink_error *e);
/* As clink_options.log_level has it; -1: it is none. */
int32_t log_level_of(const char *name);

#endif
