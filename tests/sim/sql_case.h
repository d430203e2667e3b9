/* The SQL job of a seed: a script over files of rows that follow from the seed, and for every sink the lines that a
 * plain model - loops over all rows, no batches, no state - says must come out. */
#ifndef SIM_SQL_CASE_H
#define SIM_SQL_CASE_H

#include "base/arena.h"
#include "dice.h"

typedef struct sql_sink {
    const char *dir, *ext;
    const char *header; /* first line of every file; NULL: none */
    bool upsert;        /* rows-<subtask>: replaced; else part-...: appear whole, never change, never vanish */
    bool settled;       /* every row that a reader sees at any time is one of the lines */
    uint64_t limit;     /* so many of the lines come, any of them; UINT64_MAX: all */
    const char **lines; /* sorted, without line ends */
    size_t line_count;
} sql_sink;

typedef struct sql_file {
    const char *path, *text;
    size_t bytes;
} sql_file;

enum { SQL_FILES_MAX = 6, SQL_SINKS_MAX = 3 };

typedef struct sql_case {
    ck_arena arena;
    ck_budget budget;
    const char *script;
    bool changes; /* results are not final: every change is passed on */
    bool follow;  /* the files grow, the job only ends where a LIMIT says so */
    bool ends;
    uint32_t batch_rows, row_count;
    sql_file files[SQL_FILES_MAX];
    uint32_t file_count;
    sql_sink sinks[SQL_SINKS_MAX];
    uint32_t sink_count;
} sql_case;

typedef struct sql_case_options {
    int batch_rows; /* 0: the seed chooses among 1, 7 and the default */
    bool no_follow; /* bounded inputs only */
    bool small;     /* a dozen rows: for sweeps */
    bool skewed;    /* many keys early, few later: checkpoints write deltas */
} sql_case_options;

void sql_case_make(sql_case *c, dice *d, const sql_case_options *o);
void sql_case_free(sql_case *c);

#endif
