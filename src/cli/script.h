/* What run and explain share: where the SQL text comes from and the flags that shape a plan. */
#ifndef CK_CLI_SCRIPT_H
#define CK_CLI_SCRIPT_H

#include "clink/clink.h"
#include "cli/flags.h"

typedef struct script {
    char *text;         /* NUL-terminated; freed with script_free */
    const char *source; /* for messages: the path, "-e" or "-" */
    char name[256];     /* default job name: the file's stem, "" for -e and - */
} script;

/* From FILE, "-" (standard input) or the text of -e. 0, or 2 (usage) or 1 (cannot be read) after one line on stderr. */
int script_load(const verb *v, const char *execute, char **args, int arg_count, script *out);
void script_free(script *s);

/* The flags of `run` that also shape a plan. */
typedef struct run_flags {
    const char *execute, *name, *changes, *format, *checkpoint_dir, *savepoint_dir, *restore, *state_backend,
        *log_level, *catalog;
    int64_t parallelism, key_groups, threads;
    int64_t checkpoint_interval_ms, checkpoint_timeout_ms, final_checkpoint_timeout_ms, tolerable_failed, retained;
    bool fresh, allow_duplicates, explain;
    uint64_t memory_bytes;
    flag_list set;
    const char *restore_dir; /* the specified pair, for --restore DIR:ID */
    int64_t restore_id;
    char restore_pair[4352];
} run_flags;

void run_flags_init(run_flags *f);
/* Rows for flags_parse over *f; fills out (room for RUN_FLAG_COUNT). */
enum { RUN_FLAG_COUNT = 26 };
size_t run_flags_table(run_flags *f, flag *out);
/* Those of them that the shell takes. */
size_t run_flags_shell(run_flags *f, flag *out);
/* --format, or what standard output is; into run. 0 or 2. */
int run_flags_output(const verb *v, const run_flags *f, clink_run *run);
/* Opens the engine with the flags that are its own and applies --set. CLINK_OK or the code, with a message on stderr.
 */
clink_status run_flags_open(const verb *v, const run_flags *f, clink_engine **engine);
/* Into a clink_run, which borrows from *f and *s (output and fd are left to the caller). 0 or 2. */
int run_flags_apply(const verb *v, run_flags *f, const script *s, clink_run *run);

/* "clink: <message>" on stderr; the process's exit status for it: 2 usage is never an engine's, 130 when cancelled,
 * else 1. */
int report_error(clink_status s, const clink_error *e);

#endif
