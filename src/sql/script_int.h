/* A script being compiled: its outputs so far, and the steps it becomes. */
#ifndef CK_SQL_SCRIPT_INT_H
#define CK_SQL_SCRIPT_INT_H

#include "sql/bind/bind.h"

typedef struct ck_script_output {
    ck_output output;
    uint32_t statement; /* outputs of one statement run together in any case */
} ck_script_output;

typedef struct ck_script {
    ck_binder b;
    ck_script_output *outputs;
    uint32_t output_count, output_capacity;
    uint32_t statement;
    ck_sql_step *steps;
    uint32_t step_count, step_capacity;
} ck_script;

/* ---- script.c ---- */
CK_NODISCARD ck_status ck_script_add_step(ck_script *s, const ck_sql_step *step);
CK_NODISCARD ck_status ck_script_add_output(ck_script *s, const ck_output *o);

/* ---- jobs.c: outputs become jobs ---- */
/* One job of these outputs; several into one table are united. */
CK_NODISCARD ck_status ck_script_job(ck_script *s, const ck_script_output *outputs, uint32_t count, ck_sql_step *step);
/* All outputs: one job, or one a statement where the script reads what it writes or shows several results. */
CK_NODISCARD ck_status ck_script_jobs(ck_script *s);

/* ---- growth.c ---- */
/* Warns of what keeps growing, with about how much each takes and what would bound it. */
CK_NODISCARD ck_status ck_script_warn_of_growth(ck_script *s, const ck_output *outputs, uint32_t count);

/* ---- sink_keys.c ---- */
/* Fills rows_meet, and warns where it is set. */
CK_NODISCARD ck_status ck_script_sink_keys(ck_script *s, ck_output *o);

/* ---- late_rows.c: rows that come too late for what is no window ---- */
/* Joins and OVER over tables with a late_table get it, and the columns it takes: behind ck_optimise_rows. */
CK_NODISCARD ck_status ck_script_late_rows(ck_script *s, ck_output *outputs, uint32_t count);
/* The table that late rows of an input of n go to, or would go to if n asked for time; NULL: none. */
const ck_catalog_entry *ck_script_late_table(ck_script *s, const ck_plan_node *n, uint32_t input);

/* ---- show.c: what prints text; a step each ---- */
CK_NODISCARD ck_status ck_script_describe(ck_script *s, const ck_ast_statement *st);
CK_NODISCARD ck_status ck_script_show(ck_script *s, const ck_ast_statement *st);
CK_NODISCARD ck_status ck_script_list_settings(ck_script *s);

#endif
