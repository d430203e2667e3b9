/* The syntax tree: what was written, with its place, before any name means anything. Built by the grammar in the
 * arena of one script, never changed afterwards. Lists are chained through `next`, so a node is in one list only. */
#ifndef CK_SQL_PARSE_AST_H
#define CK_SQL_PARSE_AST_H

#include "base/arena.h"
#include "sql/source.h"

typedef struct ck_ast_expr ck_ast_expr;
typedef struct ck_ast_query ck_ast_query;
typedef struct ck_ast_from ck_ast_from;
typedef struct ck_ast_type ck_ast_type;
typedef struct ck_ast_window ck_ast_window;
typedef struct ck_ast_statement ck_ast_statement;

typedef struct ck_ast_ident {
    ck_view text;
    ck_pos pos;
    bool quoted; /* matches with its case */
} ck_ast_ident;

typedef struct ck_ast_name { /* of a list of identifiers: columns, table names */
    ck_ast_ident ident;
    struct ck_ast_name *next;
} ck_ast_name;
typedef struct ck_ast_names {
    ck_ast_name *first, *last;
    uint32_t count;
} ck_ast_names;

typedef struct ck_ast_exprs {
    ck_ast_expr *first, *last;
    uint32_t count;
} ck_ast_exprs;

/* ---- expressions ---- */

typedef enum ck_ast_kind {
    CK_AST_NAME,          /* name */
    CK_AST_FIELD,         /* args[0] . name; a chain down to a NAME may be table.column.field */
    CK_AST_STAR,          /* * or args[0].* */
    CK_AST_NULL,          /* NULL */
    CK_AST_BOOL,          /* TRUE, FALSE: flag */
    CK_AST_INTEGER,       /* name = digits */
    CK_AST_DECIMAL,       /* name = text with a point */
    CK_AST_DOUBLE,        /* name = text with an exponent */
    CK_AST_STRING,        /* name = its value */
    CK_AST_BYTES,         /* name = its value */
    CK_AST_TYPED,         /* DATE '2020-01-01': type, name = value */
    CK_AST_INTERVAL,      /* name = text, interval units */
    CK_AST_CALL,          /* name(args), call */
    CK_AST_OPERATOR,      /* op over one or two args */
    CK_AST_AND,           /* two or more args */
    CK_AST_OR,            /* two or more args */
    CK_AST_NOT,           /* one arg */
    CK_AST_IS,            /* arg IS [NOT] test */
    CK_AST_DISTINCT_FROM, /* a IS [NOT] DISTINCT FROM b */
    CK_AST_BETWEEN,       /* a [NOT] BETWEEN [SYMMETRIC] b AND c */
    CK_AST_IN_LIST,       /* args[0] [NOT] IN (the rest) */
    CK_AST_IN_QUERY,      /* args[0] [NOT] IN (query) */
    CK_AST_LIKE,          /* a [NOT] LIKE b [ESCAPE c] */
    CK_AST_CASE,          /* flag: args[0] is the operand; then pairs; odd one out at the end is ELSE */
    CK_AST_CAST,          /* args[0], type; flag = TRY_CAST */
    CK_AST_EXISTS,        /* query */
    CK_AST_SUBQUERY,      /* query as a value */
    CK_AST_QUANTIFIED,    /* args[0] op ANY | ALL (query); flag = ALL */
    CK_AST_ROW,           /* (a, b) and ROW(a, b) */
    CK_AST_ARRAY,         /* ARRAY[...] */
    CK_AST_MAP,           /* MAP[k, v, ...] */
    CK_AST_SUBSCRIPT,     /* a[b] */
    CK_AST_NAMED_ARG,     /* name => args[0] */
    CK_AST_TABLE_ARG,     /* TABLE t [PARTITION BY ...], only as argument of a table function: from, args */
    CK_AST_GROUPING_SETS, /* GROUP BY only: args are the sets */
} ck_ast_kind;

typedef enum ck_ast_op {
    CK_OP_NEGATE,
    CK_OP_PLUS_SIGN,
    CK_OP_ADD,
    CK_OP_SUBTRACT,
    CK_OP_MULTIPLY,
    CK_OP_DIVIDE,
    CK_OP_MODULO,
    CK_OP_POWER,
    CK_OP_CONCAT,
    CK_OP_EQ,
    CK_OP_NE,
    CK_OP_LT,
    CK_OP_LE,
    CK_OP_GT,
    CK_OP_GE,
    CK_OP_MATCH,            /* ~ */
    CK_OP_MATCH_NOCASE,     /* ~* */
    CK_OP_NOT_MATCH,        /* !~ */
    CK_OP_NOT_MATCH_NOCASE, /* !~* */
    CK_OP_COUNT
} ck_ast_op;

typedef enum ck_ast_test { CK_TEST_NULL, CK_TEST_TRUE, CK_TEST_FALSE, CK_TEST_UNKNOWN } ck_ast_test;
typedef enum ck_ast_like { CK_LIKE_LIKE, CK_LIKE_ILIKE, CK_LIKE_SIMILAR } ck_ast_like;

typedef enum ck_ast_unit {
    CK_UNIT_NONE,
    CK_UNIT_YEAR,
    CK_UNIT_QUARTER,
    CK_UNIT_MONTH,
    CK_UNIT_WEEK,
    CK_UNIT_DAY,
    CK_UNIT_HOUR,
    CK_UNIT_MINUTE,
    CK_UNIT_SECOND,
    CK_UNIT_MILLISECOND,
    CK_UNIT_MICROSECOND,
} ck_ast_unit;

typedef enum ck_ast_nulls { CK_NULLS_DEFAULT, CK_NULLS_FIRST, CK_NULLS_LAST } ck_ast_nulls;

typedef struct ck_ast_order {
    ck_ast_expr *expr;
    bool descending;
    ck_ast_nulls nulls;
    ck_pos pos;
    struct ck_ast_order *next;
} ck_ast_order;
typedef struct ck_ast_orders {
    ck_ast_order *first, *last;
    uint32_t count;
} ck_ast_orders;

typedef enum ck_ast_null_treatment { CK_NULL_TREATMENT_NONE, CK_RESPECT_NULLS, CK_IGNORE_NULLS } ck_ast_null_treatment;

/* What a call may carry beside its arguments. */
typedef struct ck_ast_call {
    bool distinct, star; /* f(DISTINCT x), f(*) */
    ck_ast_null_treatment nulls;
    ck_ast_orders order_by; /* inside the parentheses, or WITHIN GROUP (within) */
    bool within;
    ck_ast_expr *filter;
    ck_ast_window *over;
} ck_ast_call;

struct ck_ast_expr {
    uint8_t kind;   /* ck_ast_kind */
    uint8_t what;   /* ck_ast_op, ck_ast_test, ck_ast_like by kind; INTERVAL: first unit */
    uint8_t what2;  /* INTERVAL: last unit */
    bool negated;   /* NOT IN, IS NOT ... */
    bool flag;      /* by kind */
    bool quoted;    /* NAME, FIELD, CALL */
    uint16_t depth; /* 1 + the deepest argument; bounded by CK_SQL_DEPTH_MAX */
    ck_pos pos;     /* of the whole text; operators: their sign is at `sign` */
    ck_pos sign;    /* of the operator, the function's name, the field's name */
    ck_view name;
    ck_ast_exprs args;
    union {
        ck_ast_type *type;
        ck_ast_query *query;
        ck_ast_call *call; /* NULL when plain */
        ck_ast_from *from;
    };
    ck_ast_expr *next;
};

/* ---- types as written ---- */

struct ck_ast_type {
    ck_pos pos;
    ck_view name;         /* as written, first word: "decimal", "timestamp", "row", "array" */
    int64_t params[2];    /* (p[, s]) */
    uint32_t param_count; /* 0..2 */
    enum { CK_TZ_DEFAULT, CK_TZ_WITH, CK_TZ_WITH_LOCAL, CK_TZ_WITHOUT } zone;
    ck_ast_unit from_unit, to_unit; /* INTERVAL DAY TO SECOND */
    ck_ast_type *fields;            /* ARRAY, MAP, ROW: element types, chained */
    uint32_t field_count;
    ck_ast_ident field_name; /* of this one as a ROW field */
    bool not_null;           /* of this one as an element */
    ck_ast_type *next;
    uint16_t depth;
};

/* ---- queries ---- */

typedef struct ck_ast_hint {
    ck_ast_ident name; /* OPTIONS, STATE_TTL */
    struct ck_ast_option *options;
    struct ck_ast_hint *next;
} ck_ast_hint;

typedef struct ck_ast_option { /* 'k' = 'v' of WITH, SET, hints */
    ck_view key, value;
    ck_pos pos, value_pos;
    struct ck_ast_option *next;
} ck_ast_option;
typedef struct ck_ast_options {
    ck_ast_option *first, *last;
    uint32_t count;
} ck_ast_options;

typedef enum ck_ast_join_kind {
    CK_JOIN_INNER,
    CK_JOIN_LEFT,
    CK_JOIN_RIGHT,
    CK_JOIN_FULL,
    CK_JOIN_SEMI,
    CK_JOIN_ANTI,
    CK_JOIN_CROSS
} ck_ast_join_kind;

typedef enum ck_ast_from_kind {
    CK_FROM_TABLE,    /* name */
    CK_FROM_QUERY,    /* (query) */
    CK_FROM_FUNCTION, /* f(args), TABLE(f(args)), UNNEST(x): call */
    CK_FROM_JOIN,     /* left, right */
} ck_ast_from_kind;

struct ck_ast_from {
    ck_ast_from_kind kind;
    ck_pos pos;
    ck_ast_names name; /* TABLE: one part, more when qualified */
    ck_ast_hint *hints;
    ck_ast_expr *as_of; /* FOR SYSTEM_TIME AS OF */
    ck_ast_query *query;
    ck_ast_expr *call;
    bool lateral, ordinality;
    ck_ast_join_kind join;
    bool natural;
    ck_ast_from *left, *right;
    ck_ast_expr *on;
    ck_ast_names using_columns;
    ck_ast_ident alias; /* empty text: none */
    ck_ast_names alias_columns;
    uint16_t depth;
    ck_ast_from *next; /* FROM a, b */
};

typedef enum ck_ast_frame_unit { CK_FRAME_NONE, CK_FRAME_ROWS, CK_FRAME_RANGE, CK_FRAME_GROUPS } ck_ast_frame_unit;
typedef enum ck_ast_bound_kind {
    CK_BOUND_UNBOUNDED_PRECEDING,
    CK_BOUND_PRECEDING,
    CK_BOUND_CURRENT_ROW,
    CK_BOUND_FOLLOWING,
    CK_BOUND_UNBOUNDED_FOLLOWING,
} ck_ast_bound_kind;
typedef struct ck_ast_bound {
    ck_ast_bound_kind kind;
    ck_ast_expr *offset;
    ck_pos pos;
} ck_ast_bound;

struct ck_ast_window {
    ck_pos pos;
    ck_ast_ident name; /* OVER w, or the name it is given in WINDOW w AS (...) */
    bool reference;    /* OVER w: nothing else is set */
    ck_ast_exprs partition_by;
    ck_ast_orders order_by;
    ck_ast_frame_unit frame;
    ck_ast_bound from, to;
    ck_ast_window *next;
};

typedef struct ck_ast_item { /* of a select list */
    ck_ast_expr *expr;
    ck_ast_ident alias; /* empty text: none */
    struct ck_ast_item *next;
} ck_ast_item;
typedef struct ck_ast_items {
    ck_ast_item *first, *last;
    uint32_t count;
} ck_ast_items;

typedef struct ck_ast_select {
    ck_pos pos;
    ck_ast_hint *hints;
    bool distinct;
    ck_ast_exprs distinct_on;
    ck_ast_items items;
    ck_ast_from *from, *from_last; /* comma list; NULL: no FROM */
    ck_ast_expr *where;
    bool grouped; /* there is a GROUP BY, maybe of () only */
    ck_ast_exprs group_by;
    ck_pos group_pos;
    ck_ast_expr *having;
    ck_ast_window *windows;
} ck_ast_select;

typedef struct ck_ast_cte {
    ck_ast_ident name;
    ck_ast_names columns;
    ck_ast_query *query;
    struct ck_ast_cte *next;
} ck_ast_cte;

typedef enum ck_ast_query_kind {
    CK_QUERY_SELECT,
    CK_QUERY_VALUES,
    CK_QUERY_UNION,
    CK_QUERY_INTERSECT,
    CK_QUERY_EXCEPT
} ck_ast_query_kind;

struct ck_ast_query {
    ck_ast_query_kind kind;
    ck_pos pos;
    uint16_t depth;
    bool parenthesised;
    bool all; /* set operations */
    bool recursive;
    ck_pos with_pos;
    ck_ast_cte *ctes;
    ck_ast_select *select;
    ck_ast_exprs rows;              /* VALUES: ROW nodes */
    ck_ast_query *arms, *arms_last; /* set operations: two or more (one operator, associated to the left) */
    ck_ast_orders order_by;
    ck_pos order_pos;
    ck_ast_expr *limit, *offset; /* NULL: none */
    ck_pos limit_pos;
    bool emit_on_close;
    ck_pos emit_pos;
    ck_ast_query *next;
};

/* ---- statements ---- */

typedef struct ck_ast_column {
    ck_ast_ident name;
    ck_ast_type *type;     /* NULL: computed */
    ck_ast_expr *computed; /* name AS expr */
    bool not_null, null, primary_key;
    ck_pos primary_pos;
    bool enforced;         /* PRIMARY KEY without NOT ENFORCED */
    ck_pos metadata_pos;   /* METADATA column: line > 0 */
    ck_ast_ident metadata; /* FROM 'name'; no text: the column's own name */
    ck_ast_ident renamed_from; /* what state calls the column; no text: its name */
    ck_view comment;       /* p NULL: none */
    struct ck_ast_column *next;
} ck_ast_column;

typedef struct ck_ast_watermark {
    ck_ast_ident column;
    ck_ast_expr *expr;
    ck_pos pos;
    struct ck_ast_watermark *next;
} ck_ast_watermark;

typedef struct ck_ast_key {
    ck_ast_names columns;
    bool enforced;
    ck_pos pos;
    struct ck_ast_key *next;
} ck_ast_key;

typedef struct ck_ast_create_table {
    ck_ast_names name;
    bool if_not_exists, or_replace, temporary;
    ck_ast_column *columns, *columns_last;
    ck_ast_watermark *watermarks;
    ck_ast_key *keys;
    ck_pos partitioned_pos; /* PARTITIONED BY: line > 0 */
    ck_view comment;
    ck_ast_options options;
    ck_ast_query *query; /* AS query */
} ck_ast_create_table;

typedef struct ck_ast_create_view {
    ck_ast_names name;
    bool if_not_exists, or_replace, temporary;
    ck_ast_names columns;
    ck_ast_query *query;
} ck_ast_create_view;

typedef struct ck_ast_create_function {
    ck_ast_names name;
    bool if_not_exists, or_replace, temporary;
    ck_ast_column *params;
    ck_ast_type *returns;
    ck_ast_expr *body;
} ck_ast_create_function;

typedef struct ck_ast_insert {
    ck_ast_names table;
    ck_ast_hint *hints;
    bool overwrite;
    ck_ast_names columns;
    ck_ast_query *query;
} ck_ast_insert;

typedef enum ck_ast_object { CK_OBJECT_TABLE, CK_OBJECT_VIEW, CK_OBJECT_FUNCTION } ck_ast_object;

typedef enum ck_ast_show {
    CK_SHOW_TABLES,
    CK_SHOW_VIEWS,
    CK_SHOW_FUNCTIONS,
    CK_SHOW_SETTINGS,
    CK_SHOW_SETTING,
    CK_SHOW_CREATE,
    CK_SHOW_COLUMNS,
} ck_ast_show;

typedef enum ck_ast_alter {
    CK_ALTER_RENAME,
    CK_ALTER_ADD_COLUMNS,
    CK_ALTER_DROP_COLUMN,
    CK_ALTER_RENAME_COLUMN,
    CK_ALTER_MODIFY_COLUMNS,
    CK_ALTER_SET_OPTIONS,
    CK_ALTER_RESET_OPTIONS,
} ck_ast_alter;

typedef enum ck_ast_statement_kind {
    CK_STATEMENT_CREATE_TABLE,
    CK_STATEMENT_CREATE_VIEW,
    CK_STATEMENT_CREATE_FUNCTION,
    CK_STATEMENT_INSERT,
    CK_STATEMENT_SET_OF, /* EXECUTE STATEMENT SET: body */
    CK_STATEMENT_QUERY,
    CK_STATEMENT_EXPLAIN, /* body: one statement */
    CK_STATEMENT_DESCRIBE,
    CK_STATEMENT_SHOW,
    CK_STATEMENT_DROP,
    CK_STATEMENT_SET,
    CK_STATEMENT_RESET,
    CK_STATEMENT_ALTER,
} ck_ast_statement_kind;

struct ck_ast_statement {
    ck_ast_statement_kind kind;
    ck_pos pos; /* from its first to its last token */
    union {
        ck_ast_create_table *create_table;
        ck_ast_create_view *create_view;
        ck_ast_create_function *create_function;
        ck_ast_insert *insert;
        ck_ast_query *query;
        struct {
            ck_ast_statement *first, *last;
        } body;
        struct {
            ck_ast_names name; /* empty: query */
            ck_ast_query *query;
        } describe;
        struct {
            ck_ast_show what;
            ck_ast_object object;
            ck_ast_names name;
            ck_view like; /* p NULL: none */
        } show;
        struct {
            ck_ast_object object;
            bool if_exists;
            ck_ast_names names; /* each one object */
        } drop;
        struct {
            ck_ast_option *option; /* NULL: list all (SET), or reset all (RESET) */
        } set;
        struct {
            ck_ast_alter what;
            ck_ast_names table;
            bool if_exists;
            ck_ast_column *columns;
            ck_ast_ident from, to;
            ck_ast_options options;
        } alter;
    };
    ck_ast_statement *next;
};

typedef struct ck_ast_script {
    ck_ast_statement *first, *last;
    uint32_t count;
} ck_ast_script;

#endif
