/* The tables and views of a session and its SET values. Each entry owns an arena with everything it is made of. What a
 * compilation drops lives on until it ends, so that plans may borrow; what a failed one changed is undone. One thread.
 */
#ifndef CK_SQL_CATALOG_CATALOG_H
#define CK_SQL_CATALOG_CATALOG_H

#include "base/suggest.h"
#include "expr/tree.h"
#include "sql/compile.h"
#include "sql/source.h"

typedef struct ck_table_column { /* as declared, in order */
    const char *name;
    const ck_type *type;
    bool nullable;
    int32_t physical;  /* index in decl.schema; -1: computed */
    ck_expr *computed; /* over the physical columns; NULL: physical */
    const char *computed_text;
    const char *comment;      /* NULL: none */
    const char *renamed_from; /* the name that state knows it by; NULL: its own */
} ck_table_column;

typedef struct ck_table_time { /* event time */
    ck_expr *expr;             /* over the physical columns: the column, or what it is computed as; NULL: none */
    uint32_t column;           /* as declared */
    int64_t lag_us, idle_us, lateness_us;
    bool clause; /* by WATERMARK FOR, not by options */
} ck_table_time;

typedef struct ck_table_def {
    ck_table_decl decl; /* physical columns, key, options with lower-cased names */
    const ck_connector_desc *connector;
    const ck_table_column *columns;
    uint32_t column_count;
    ck_table_time time;
    int64_t
        ttl_us; /* state of what reads it is forgotten when it was not written for so long; 0: as SET says, -1: never */
    const char *comment;     /* "": none */
    const char *instance;    /* of a table in memory: one of its own for each CREATE; else NULL */
    ck_source_text source;   /* the statement that made it */
    const ck_pos *option_at; /* where in it the values of decl.options stand; line 0: nowhere */
} ck_table_def;

/* The name that state knows a physical column by: what it was renamed from, else its own (the schema's pointer). */
static inline const char *ck_table_state_name(const ck_table_def *t, uint32_t physical) {
    for (uint32_t i = 0; i < t->column_count; i++)
        if (t->columns[i].physical == (int32_t)physical && t->columns[i].renamed_from)
            return t->columns[i].renamed_from;
    return t->decl.schema->fields[physical].name;
}

typedef struct ck_view_def {
    ck_source_text query;       /* text of the query, for binding and messages */
    const char *const *columns; /* renamed; NULL: as the query says */
    uint32_t column_count;
} ck_view_def;

typedef struct ck_function_def {
    const ck_schema *parameters;
    const ck_type *returns;
    ck_expr *body; /* over the parameters as columns */
} ck_function_def;

/* Functions have names of their own: one may be called as a table is. */
typedef enum ck_entry_kind { CK_ENTRY_TABLE, CK_ENTRY_VIEW, CK_ENTRY_FUNCTION } ck_entry_kind;

typedef struct ck_catalog_entry ck_catalog_entry;
struct ck_catalog_entry {
    ck_entry_kind kind;
    const char *name;
    const char *sql; /* the statement that made it */
    bool temporary;
    ck_arena arena;
    union {
        ck_table_def table;
        ck_view_def view;
        ck_function_def function;
    };
    bool fresh;      /* made by the compilation under way */
    bool rows_moved; /* to the table that ALTER made of this one: they outlive it */
    uint64_t order;
    uint64_t lineage;                    /* the same for a table before and after ALTER */
    ck_catalog_entry *next, *next_alike; /* of the list; of those whose names hash alike */
};

typedef struct ck_settings {
    uint32_t batch_rows; /* 0: default */
    int64_t flush_us;    /* 0: default */
    bool eval_error_null;
    char timezone[64];     /* "UTC" by default */
    int64_t state_ttl_us;  /* 0: state is kept for ever */
    bool state_ttl_events; /* by event time */
} ck_settings;

enum { CK_CATALOG_BUCKETS = 1024, CK_CATALOG_ENTRIES_MAX = 100000 };

struct ck_catalog {
    ck_proc *proc;
    const ck_registry *registry;
    ck_settings settings, settings_before;
    ck_catalog_entry *entries, *last, *dropped;  /* by order of creation */
    ck_catalog_entry *alike[CK_CATALOG_BUCKETS]; /* entries by name, whatever its case */
    uint32_t entry_count;
    uint64_t next_order, next_instance;
    void (*forget)(void *arg, const char *instance); /* NULL: nobody asks */
    void *forget_arg;
    const char *base_dir; /* see ck_catalog_set_base */
};

/* NULL when absent. A quoted name matches with its case; an unquoted one matches exactly if it can, else whatever the
 * case. */
ck_catalog_entry *ck_catalog_find(const ck_catalog *c, ck_view name, bool quoted); /* a table or view */
ck_catalog_entry *ck_catalog_find_function(const ck_catalog *c, ck_view name, bool quoted);
/* The names of tables and views, or of functions, for "did you mean". */
void ck_catalog_offer(const ck_catalog *c, bool functions, ck_suggest *near);
/* An entry to fill, not yet in the catalog. Discard it or add it. */
CK_NODISCARD ck_status ck_catalog_entry_new(ck_catalog *c, ck_entry_kind kind, ck_view name, ck_catalog_entry **out,
                                            ck_error *err);
void ck_catalog_entry_discard(ck_catalog *c, ck_catalog_entry **e);
void ck_catalog_add(ck_catalog *c, ck_catalog_entry *e); /* takes it; its name is free */
void ck_catalog_drop(ck_catalog *c, ck_catalog_entry *e);
void ck_catalog_undrop(ck_catalog *c, ck_catalog_entry *e); /* dropped by this compilation, its name is free */

/* The CREATE TABLE that makes the table; table_text.c. */
CK_NODISCARD ck_status ck_table_text(const ck_catalog_entry *e, ck_bytes *out);

/* Of the options, the one a connector's message speaks of: 'name', or name = 'value'; NULL: of none. */
const char *ck_table_option_said(const ck_table_options *o, const char *message);
/* Gives a message about the table the place of this option in its CREATE TABLE. NULL: of the one it speaks of, else of
 * its connector. Returns s. table_place.c. */
ck_status ck_table_place(const ck_table_def *t, const char *option, ck_status s, ck_error *err);

/* Around a compilation: rollback takes back every change since begin. The plan borrows from what commit drops, so that
 * goes to `dropped`, which lives as long as the plan and may be freed by any thread. */
typedef struct ck_catalog_dropped {
    ck_catalog_entry *first;
    ck_mem mem;
    void (*forget)(void *arg, const char *instance);
    void *forget_arg;
} ck_catalog_dropped;
void ck_catalog_begin(ck_catalog *c);
void ck_catalog_commit(ck_catalog *c, ck_catalog_dropped *dropped);
void ck_catalog_dropped_free(void *dropped);
void ck_catalog_rollback(ck_catalog *c);

/* '1h', '30 min', '2 days', '0': duration.c. */
bool ck_duration_us(ck_view text, int64_t *us);

/* ---- settings.c ---- */

typedef struct ck_setting_desc {
    const char *name, *values, *help;
} ck_setting_desc;
size_t ck_setting_count(void);
const ck_setting_desc *ck_setting_at(size_t i);
/* Unknown keys are CK_INVALID with the nearest name. */
CK_NODISCARD ck_status ck_settings_set(ck_settings *s, ck_view key, ck_view value, ck_error *err);
CK_NODISCARD ck_status ck_settings_reset(ck_settings *s, ck_view key, ck_error *err); /* empty key: all */
CK_NODISCARD ck_status ck_settings_get(const ck_settings *s, ck_view key, char *out, size_t room, ck_error *err);

#endif
