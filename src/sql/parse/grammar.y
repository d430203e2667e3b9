/* The grammar of the dialect. LALR(1) without conflicts; words that would need more lookahead come as *_LA tokens from
 * the filter in tokens.c. What parses here and cannot be planned is refused by the binder with its place.
 *
 * Sections: script, statements, tables, types, queries, FROM, windows, expressions (one nonterminal a precedence, loosest
 * first), names (which words may be names where). */
%require "3.8"
%define api.pure full
%define api.prefix {ck_grammar_}
%define api.location.type {ck_pos}
%define parse.error custom
%define lr.type ielr
%locations
%param {ck_parser *ps}

%code requires {
#include "sql/parse/parser_int.h"
}

%code {
#define YYMAXDEPTH      20000 /* far above CK_SQL_DEPTH_MAX levels of the deepest construct */
#define YYMALLOC(bytes) ck_parser_alloc(ps, (bytes))
#define YYFREE(p)       ((void)(p)) /* the arena's */
#define YYLLOC_DEFAULT(cur, rhs, n)                                                                                    \
    ((cur) = (n) ? ck_pos_span(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n)) : ck_pos_after(YYRHSLOC(rhs, 0)))
#define NEED(x)                                                                                                        \
    do {                                                                                                               \
        if (!(x)) YYABORT;                                                                                             \
    } while (0)
#define NEW(type) CK_PARSER_NEW(ps, type)

static ck_pos ck_pos_after(ck_pos p) {
    p.begin = p.end;
    return p;
}
static const char *trim_name(int side) { return side == 0 ? "trim" : side == 1 ? "ltrim" : "rtrim"; }
int ck_grammar_lex(CK_GRAMMAR_STYPE *value, ck_pos *pos, ck_parser *ps); /* tokens.c */
static void ck_grammar_error(const ck_pos *at, ck_parser *ps, const char *message);

static ck_ast_expr *binary(ck_parser *ps, ck_ast_op op, ck_pos pos, ck_pos sign, ck_ast_expr *a, ck_ast_expr *b) {
    return ck_ast_build_binary(ps, CK_AST_OPERATOR, (int)op, pos, sign, a, b);
}
static bool push_order(ck_parser *ps, ck_ast_orders *list, ck_ast_order o) {
    ck_ast_order *n = NEW(ck_ast_order);
    if (!n) return false;
    *n = o;
    if (list->last) {
        list->last->next = n;
    } else {
        list->first = n;
    }
    list->last = n;
    list->count++;
    return true;
}
}

%union {
    ck_ast_ident ident;
    ck_ast_names names;
    ck_ast_expr *expr;
    ck_ast_exprs exprs;
    ck_ast_order order;
    ck_ast_orders orders;
    ck_ast_type *type;
    ck_ast_query *query;
    ck_ast_select *select;
    ck_ast_cte *cte;
    struct { ck_ast_cte *first, *last; } ctes;
    ck_ast_from *from;
    struct { ck_ast_from *first, *last; } froms;
    ck_ast_window *window;
    ck_ast_bound bound;
    struct { ck_ast_frame_unit unit; ck_ast_bound from, to; } frame;
    struct { ck_ast_ident ident; ck_ast_names columns; } alias;
    ck_ast_item *item;
    ck_ast_items items;
    ck_ast_hint *hint;
    ck_ast_options options;
    ck_ast_column *column;
    struct { ck_ast_column *first, *last; } columns;
    struct { ck_ast_type *first, *last; } types;
    ck_ast_create_table *create_table;
    ck_ast_statement *statement;
    struct { ck_ast_statement *first, *last; } statements;
    struct { ck_ast_expr *limit, *offset; } limits;
    struct { bool distinct; ck_ast_exprs on; } distinct;
    ck_ast_call *call;
    int number;
    bool flag;
}

%token <ident>
    K_ADD "ADD" K_ALL "ALL" K_ALTER "ALTER" K_AND "AND" K_ANTI "ANTI" K_ANY "ANY" K_ARRAY "ARRAY" K_AS "AS"
    K_ASC "ASC" K_AT "AT" K_BEGIN "BEGIN" K_BETWEEN "BETWEEN" K_BOTH "BOTH" K_BY "BY" K_CASE "CASE" K_CAST "CAST"
    K_CHARACTER "CHARACTER" K_CLOSE "CLOSE" K_COLUMN "COLUMN" K_COMMENT "COMMENT" K_CONSTRAINT "CONSTRAINT"
    K_CREATE "CREATE" K_CROSS "CROSS" K_CURRENT "CURRENT" K_DATE "DATE" K_DAY "DAY" K_DESC "DESC"
    K_DESCRIBE "DESCRIBE" K_DISTINCT "DISTINCT" K_DOUBLE "DOUBLE" K_DROP "DROP" K_ELSE "ELSE" K_EMIT "EMIT"
    K_END "END" K_ENFORCED "ENFORCED" K_ESCAPE "ESCAPE" K_EXCEPT "EXCEPT" K_EXECUTE "EXECUTE" K_EXISTS "EXISTS"
    K_EXPLAIN "EXPLAIN" K_EXTRACT "EXTRACT" K_FALSE "FALSE" K_FETCH "FETCH" K_FILTER "FILTER" K_FIRST "FIRST"
    K_FOLLOWING "FOLLOWING" K_FOR "FOR" K_FROM "FROM" K_FULL "FULL" K_FUNCTION "FUNCTION" K_GROUP "GROUP"
    K_GROUPING "GROUPING" K_GROUPS "GROUPS" K_HAVING "HAVING" K_HOUR "HOUR" K_IF "IF" K_IGNORE "IGNORE"
    K_ILIKE "ILIKE" K_IN "IN" K_INNER "INNER" K_INSERT "INSERT" K_INTERSECT "INTERSECT" K_INTERVAL "INTERVAL"
    K_INTO "INTO" K_IS "IS" K_ISNULL "ISNULL" K_JOIN "JOIN" K_KEY "KEY" K_LAST "LAST" K_LATERAL "LATERAL"
    K_LEADING "LEADING" K_LEFT "LEFT" K_LIKE "LIKE" K_LIMIT "LIMIT" K_LOCAL "LOCAL" K_MAP "MAP"
    K_MATCH_RECOGNIZE "MATCH_RECOGNIZE" K_METADATA "METADATA" K_MICROSECOND "MICROSECOND"
    K_MILLISECOND "MILLISECOND" K_MINUTE "MINUTE" K_MODIFY "MODIFY" K_MONTH "MONTH" K_NATURAL "NATURAL"
    K_NEXT "NEXT" K_NOT "NOT" K_NOTNULL "NOTNULL" K_NULL "NULL" K_NULLS "NULLS" K_OF "OF" K_OFFSET "OFFSET"
    K_ON "ON" K_ONLY "ONLY" K_OR "OR" K_ORDER "ORDER" K_ORDINALITY "ORDINALITY" K_OUTER "OUTER" K_OVER "OVER"
    K_OVERLAY "OVERLAY" K_OVERWRITE "OVERWRITE" K_PARTITION "PARTITION" K_PARTITIONED "PARTITIONED"
    K_PLACING "PLACING" K_PLAN "PLAN" K_POSITION "POSITION" K_PRECEDING "PRECEDING" K_PRECISION "PRECISION"
    K_PRIMARY "PRIMARY" K_QUARTER "QUARTER" K_RANGE "RANGE" K_RECURSIVE "RECURSIVE" K_RENAME "RENAME" K_RENAMED "RENAMED"
    K_REPLACE "REPLACE" K_RESET "RESET" K_RESPECT "RESPECT" K_RETURN "RETURN" K_RETURNS "RETURNS" K_RIGHT "RIGHT"
    K_ROW "ROW" K_ROWS "ROWS" K_SECOND "SECOND" K_SELECT "SELECT" K_SEMI "SEMI" K_SET "SET" K_SETS "SETS"
    K_SHOW "SHOW" K_SIMILAR "SIMILAR" K_SOME "SOME" K_STATEMENT "STATEMENT" K_SUBSTRING "SUBSTRING"
    K_SYMMETRIC "SYMMETRIC" K_SYSTEM_TIME "SYSTEM_TIME" K_TABLE "TABLE" K_TEMPORARY "TEMPORARY" K_THEN "THEN"
    K_TIME "TIME" K_TIMESTAMP "TIMESTAMP" K_TO "TO" K_TRAILING "TRAILING" K_TRIM "TRIM" K_TRUE "TRUE"
    K_TRY_CAST "TRY_CAST" K_UNBOUNDED "UNBOUNDED" K_UNION "UNION" K_UNKNOWN "UNKNOWN" K_USING "USING"
    K_VALUES "VALUES" K_VARYING "VARYING" K_VIEW "VIEW" K_VIRTUAL "VIRTUAL" K_WATERMARK "WATERMARK" K_WEEK "WEEK"
    K_WHEN "WHEN" K_WHERE "WHERE" K_WINDOW "WINDOW" K_WITH "WITH" K_WITHIN "WITHIN" K_WITHOUT "WITHOUT"
    K_YEAR "YEAR" K_ZONE "ZONE"

/* The same words where the filter saw that they are meant as syntax. */
%token <ident>
    ANTI_LA "ANTI " ANY_LA "ANY " AT_LA "AT " BOTH_LA "BOTH " COLUMN_LA "COLUMN " CONSTRAINT_LA "CONSTRAINT " CURRENT_LA "CURRENT "
    EMIT_LA "EMIT " GROUPING_LA "GROUPING " IF_LA "IF " IGNORE_LA "IGNORE " INTERVAL_LA "INTERVAL " LATERAL_LA "LATERAL "
    LEADING_LA "LEADING " NOT_LA "NOT " RESPECT_LA "RESPECT " SEMI_LA "SEMI " SYMMETRIC_LA "SYMMETRIC " TRAILING_LA "TRAILING "
    UNBOUNDED_LA "UNBOUNDED " WITH_LA "WITH "

%token END_OF_TEXT 0 "the end of the text"
%token <ident> IDENT "a name" STRING_TEXT "a string" BYTES_TEXT "a byte string"
%token <ident> INTEGER_TEXT "a whole number" DECIMAL_TEXT "a number" DOUBLE_TEXT "a number with an exponent"
%token NOT_EQUAL "<>" LESS_EQUAL "<=" GREATER_EQUAL ">=" CONCAT "||" TYPECAST "::" ARROW "=>"
%token MATCH_NOCASE "~*" NOT_MATCH "!~" NOT_MATCH_NOCASE "!~*" HINT_OPEN "/*+" HINT_CLOSE "*/"

/* Set operations by precedence; the rest of the list settles five shifts (see the rules that name them). */
%precedence QUERY_AS_VALUE
%precedence ')'
%precedence UNIT_ALONE TYPE_DONE WORD_ALONE
%precedence K_TO '['
%left K_UNION K_EXCEPT
%left K_INTERSECT

%type <statement> statement create insert statement_set explain explained describe show drop set alter
%type <statements> inserts
%type <create_table> table_head table_body
%type <column> column_def column_constraints function_param
%type <columns> function_params column_defs column_def_list
%type <names> names table_name parenthesised_names opt_columns drop_names
%type <options> options option_list opt_with_options reset_keys
%type <ident> option_key option_value set_value signed_number opt_comment opt_metadata_from
%type <flag> opt_if_not_exists opt_if_exists opt_or_replace opt_temporary not_enforced opt_all_distinct opt_desc
%type <flag> opt_ordinality into
%type <number> object_kind opt_nulls unit opt_to_unit opt_zone join_kind comparison
%type <type> type element_type simple_type row_field
%type <types> row_fields
%type <query> query query_body query_clause simple_query query_parens values_clause
%type <cte> cte
%type <ctes> ctes
%type <select> select_core
%type <distinct> select_distinct
%type <flag> opt_emit
%type <expr> opt_where opt_having
%type <item> select_item
%type <items> select_items
%type <orders> order_list opt_order_by order_by
%type <order> order_item
%type <limits> limit_clause
%type <expr> limit_value
%type <exprs> value_rows group_items opt_group_by
%type <expr> value_row group_item
%type <from> table_ref table_primary opt_from_base
%type <froms> from_list opt_from
%type <alias> opt_alias alias
%type <hint> opt_hint hint_items hint_item
%type <window> window_spec window_defs opt_windows opt_over
%type <frame> opt_frame
%type <bound> bound
%type <exprs> opt_partition_by
%type <expr> expr and_expr not_expr is_expr cmp_expr range_expr op_expr add_expr mul_expr pow_expr at_expr unary postfix
%type <expr> primary function_call function_head case_expr opt_case_operand opt_else func_arg table_arg opt_filter
%type <exprs> expr_list opt_expr_list func_args when_list in_list
%type <number> opt_null_treatment trim_side is_test like frame_unit
%type <flag> opt_not opt_not_infix opt_symmetric quantifier
%type <orders> opt_within
%type <ident> col_id label bare_label func_name typed_word free_word name_word form_word unit_word reserved_word type_word
%type <ident> extract_field alter_column

%%

/* ---- script ---- */

script:
    statement_opt
  | script ';' statement_opt
  ;

statement_opt:
    %empty
  | statement {
        if (ps->script.last) {
            ps->script.last->next = $1;
        } else {
            ps->script.first = $1;
        }
        ps->script.last = $1;
        ps->script.count++;
    }
  ;

statement:
    create
  | insert
  | statement_set
  | query       { NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_QUERY, @$)); $$->query = $1; }
  | query_parens { NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_QUERY, @$)); $$->query = $1; }
  | explain
  | describe
  | show
  | drop
  | set
  | alter
  ;

/* ---- CREATE ---- */

create:
    K_CREATE opt_or_replace opt_temporary K_TABLE opt_if_not_exists table_name table_body {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_CREATE_TABLE, @$));
        $7->name = $6, $7->if_not_exists = $5, $7->or_replace = $2, $7->temporary = $3;
        $$->create_table = $7;
    }
  | K_CREATE opt_or_replace opt_temporary K_VIEW opt_if_not_exists table_name opt_columns opt_comment K_AS query {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_CREATE_VIEW, @$));
        NEED($$->create_view = NEW(ck_ast_create_view));
        *$$->create_view = (ck_ast_create_view){$6, $5, $2, $3, $7, $10};
    }
  | K_CREATE opt_or_replace opt_temporary K_VIEW opt_if_not_exists table_name opt_columns opt_comment K_AS query_parens {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_CREATE_VIEW, @$));
        NEED($$->create_view = NEW(ck_ast_create_view));
        *$$->create_view = (ck_ast_create_view){$6, $5, $2, $3, $7, $10};
    }
  | K_CREATE opt_or_replace opt_temporary K_FUNCTION opt_if_not_exists table_name '(' function_params ')'
    K_RETURNS type K_RETURN expr {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_CREATE_FUNCTION, @$));
        NEED($$->create_function = NEW(ck_ast_create_function));
        *$$->create_function = (ck_ast_create_function){$6, $5, $2, $3, $8.first, $11, $13};
    }
  ;

opt_or_replace: %empty { $$ = false; } | K_OR K_REPLACE { $$ = true; };
opt_temporary: %empty { $$ = false; } | K_TEMPORARY { $$ = true; };
opt_if_not_exists: %empty { $$ = false; } | IF_LA K_NOT K_EXISTS { $$ = true; };
opt_if_exists: %empty { $$ = false; } | IF_LA K_EXISTS { $$ = true; };
opt_comment: %empty { $$ = (ck_ast_ident){0}; } | K_COMMENT STRING_TEXT { $$ = $2; };

function_params:
    %empty { $$.first = $$.last = NULL; }
  | function_param { $$.first = $$.last = $1; }
  | function_params ',' function_param {
        $$ = $1;
        if ($$.last) {
            $$.last->next = $3;
        } else {
            $$.first = $3;
        }
        $$.last = $3;
    }
  ;
function_param: col_id type { NEED($$ = NEW(ck_ast_column)); $$->name = $1; $$->type = $2; };

table_body:
    table_head
  | table_head K_AS query { $$ = $1; $$->query = $3; }
  | table_head K_AS query_parens { $$ = $1; $$->query = $3; }
  ;

table_head:
    '(' { NEED(ps->creating = NEW(ck_ast_create_table)); }
    table_elements ')' opt_comment opt_partitioned opt_with_options {
        $$ = ps->creating, $$->comment = $5.text, $$->options = $7;
        if (@6.begin != @6.end) $$->partitioned_pos = @6;
    }
  | opt_comment opt_with_options {
        NEED($$ = NEW(ck_ast_create_table));
        $$->comment = $1.text, $$->options = $2;
    }
  ;

opt_partitioned: %empty | K_PARTITIONED K_BY parenthesised_names;
opt_with_options:
    %empty { $$ = (ck_ast_options){0}; }
  | K_WITH '(' options ')' { $$ = $3; }
  ;

table_elements: table_element | table_elements ',' table_element;
table_element:
    column_def { ck_ast_build_table_column(ps->creating, $1); }
  | K_WATERMARK K_FOR postfix K_AS expr { NEED(ck_ast_build_watermark(ps, @$, $3, $5)); }
  | K_PRIMARY K_KEY parenthesised_names not_enforced { NEED(ck_ast_build_table_key(ps, @$, $3, !$4)); }
  | CONSTRAINT_LA col_id K_PRIMARY K_KEY parenthesised_names not_enforced {
        NEED(ck_ast_build_table_key(ps, ck_pos_span(@3, @6), $5, !$6));
    }
  ;
not_enforced: %empty { $$ = false; } | K_ENFORCED { $$ = false; } | NOT_LA K_ENFORCED { $$ = true; };

column_def:
    col_id type column_constraints { $$ = $3; $$->name = $1; $$->type = $2; }
  | col_id K_AS expr opt_comment {
        NEED($$ = NEW(ck_ast_column));
        $$->name = $1, $$->computed = $3, $$->comment = $4.text;
    }
  ;
column_constraints:
    %empty { NEED($$ = NEW(ck_ast_column)); }
  | column_constraints K_NOT K_NULL { $$ = $1; $$->not_null = true; }
  | column_constraints K_NULL { $$ = $1; $$->null = true; }
  | column_constraints K_PRIMARY K_KEY not_enforced {
        $$ = $1;
        $$->primary_key = true, $$->enforced = !$4, $$->primary_pos = ck_pos_span(@2, @4);
    }
  | column_constraints K_COMMENT STRING_TEXT { $$ = $1; $$->comment = $3.text; }
  | column_constraints K_RENAMED K_FROM col_id { $$ = $1; $$->renamed_from = $4; }
  | column_constraints K_METADATA opt_metadata_from opt_virtual { $$ = $1; $$->metadata_pos = @2, $$->metadata = $3; }
  ;
opt_metadata_from: %empty { $$ = (ck_ast_ident){0}; } | K_FROM STRING_TEXT { $$ = $2; };
opt_virtual: %empty | K_VIRTUAL;

options:
    %empty { $$ = (ck_ast_options){0}; }
  | option_list
  ;
option_list:
    option_key '=' option_value { $$ = (ck_ast_options){0}; NEED(ck_options_add(ps, &$$, $1, $3)); }
  | option_list ',' option_key '=' option_value { $$ = $1; NEED(ck_options_add(ps, &$$, $3, $5)); }
  ;
option_key:
    STRING_TEXT
  | label
  | option_key '.' label { $$ = $1; $$.pos = @$; $$.text = ck_source_slice(ps->source, @$); }
  | option_key '-' label { $$ = $1; $$.pos = @$; $$.text = ck_source_slice(ps->source, @$); }
  ;
option_value: STRING_TEXT | signed_number | K_TRUE | K_FALSE;
signed_number:
    INTEGER_TEXT | DECIMAL_TEXT | DOUBLE_TEXT
  | '-' INTEGER_TEXT { $$ = $2; $$.pos = @$; $$.text = ck_source_slice(ps->source, @$); }
  | '-' DECIMAL_TEXT { $$ = $2; $$.pos = @$; $$.text = ck_source_slice(ps->source, @$); }
  ;

/* ---- INSERT, statement sets ---- */

/* Written out, so that "(" after the table may begin a column list or a query. */
insert:
    K_INSERT into table_name opt_hint query {
        NEED($$ = ck_ast_build_insert(ps, @$, (ck_ast_insert){$3, $4, $2, {0}, $5}));
    }
  | K_INSERT into table_name opt_hint query_parens {
        NEED($$ = ck_ast_build_insert(ps, @$, (ck_ast_insert){$3, $4, $2, {0}, $5}));
    }
  | K_INSERT into table_name opt_hint parenthesised_names query {
        NEED($$ = ck_ast_build_insert(ps, @$, (ck_ast_insert){$3, $4, $2, $5, $6}));
    }
  | K_INSERT into table_name opt_hint parenthesised_names query_parens {
        NEED($$ = ck_ast_build_insert(ps, @$, (ck_ast_insert){$3, $4, $2, $5, $6}));
    }
  ;
into: K_INTO { $$ = false; } | K_OVERWRITE { $$ = true; };
opt_columns: %empty { $$ = (ck_ast_names){0}; } | parenthesised_names;

statement_set:
    K_EXECUTE K_STATEMENT K_SET K_BEGIN inserts K_END {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SET_OF, @$));
        $$->body.first = $5.first, $$->body.last = $5.last;
    }
  | K_BEGIN K_STATEMENT K_SET ';' inserts K_END {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SET_OF, @$));
        $$->body.first = $5.first, $$->body.last = $5.last;
    }
  ;
inserts:
    insert ';' { $$.first = $$.last = $1; }
  | inserts insert ';' { $$ = $1; $$.last->next = $2; $$.last = $2; }
  ;

/* ---- EXPLAIN, DESCRIBE, SHOW, DROP, SET, ALTER ---- */

explain:
    K_EXPLAIN explained {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_EXPLAIN, @$));
        $$->body.first = $$->body.last = $2;
    }
  | K_EXPLAIN K_PLAN K_FOR explained {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_EXPLAIN, @$));
        $$->body.first = $$->body.last = $4;
    }
  ;
explained:
    query       { NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_QUERY, @$)); $$->query = $1; }
  | query_parens { NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_QUERY, @$)); $$->query = $1; }
  | insert
  | statement_set
  ;

describe:
    describe_word table_name {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_DESCRIBE, @$));
        $$->describe.name = $2;
    }
  | describe_word K_TABLE table_name {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_DESCRIBE, @$));
        $$->describe.name = $3;
    }
  | describe_word query {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_DESCRIBE, @$));
        $$->describe.query = $2;
    }
  ;
describe_word: K_DESCRIBE | K_DESC;

show:
    K_SHOW col_id {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SHOW, @$));
        NEED(ck_ast_build_show(ps, $$, $2));
    }
  | K_SHOW K_ALL { NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SHOW, @$)); $$->show.what = CK_SHOW_SETTINGS; }
  | K_SHOW col_id K_LIKE STRING_TEXT {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SHOW, @$));
        NEED(ck_ast_build_show(ps, $$, $2));
        $$->show.like = $4.text;
    }
  | K_SHOW K_CREATE object_kind table_name {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SHOW, @$));
        $$->show.what = CK_SHOW_CREATE, $$->show.object = (ck_ast_object)$3, $$->show.name = $4;
    }
  | K_SHOW col_id K_FROM table_name {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SHOW, @$));
        NEED(ck_ast_build_show_of(ps, $$, $2));
        $$->show.name = $4;
    }
  ;
object_kind:
    K_TABLE { $$ = CK_OBJECT_TABLE; }
  | K_VIEW { $$ = CK_OBJECT_VIEW; }
  | K_FUNCTION { $$ = CK_OBJECT_FUNCTION; }
  ;

drop:
    K_DROP opt_temporary object_kind opt_if_exists drop_names {
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_DROP, @$));
        $$->drop.object = (ck_ast_object)$3, $$->drop.if_exists = $4, $$->drop.names = $5;
    }
  ;
drop_names: names;

set:
    K_SET { NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SET, @$)); }
  | K_SET option_key '=' set_value {
        ck_ast_options o = {0};
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SET, @$));
        NEED(ck_options_add(ps, &o, $2, $4));
        $$->set.option = o.first;
    }
  | K_SET option_key K_TO set_value {
        ck_ast_options o = {0};
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SET, @$));
        NEED(ck_options_add(ps, &o, $2, $4));
        $$->set.option = o.first;
    }
  | K_SET K_TIME K_ZONE set_value {
        ck_ast_options o = {0};
        ck_ast_ident key = {CK_VIEW("timezone"), ck_pos_span(@2, @3), false};
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_SET, @$));
        NEED(ck_options_add(ps, &o, key, $4));
        $$->set.option = o.first;
    }
  | K_RESET option_key {
        ck_ast_options o = {0};
        NEED($$ = ck_ast_build_statement(ps, CK_STATEMENT_RESET, @$));
        NEED(ck_options_add(ps, &o, $2, $2));
        $$->set.option = ck_view_eq_nocase($2.text, CK_VIEW("all")) ? NULL : o.first;
    }
  ;
set_value: option_value | col_id | K_NULL;

alter:
    K_ALTER K_TABLE opt_if_exists table_name K_RENAME K_TO col_id {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_RENAME, $4, $3));
        $$->alter.to = $7;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_RENAME alter_column K_TO col_id {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_RENAME_COLUMN, $4, $3));
        $$->alter.from = $6, $$->alter.to = $8;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_RENAME COLUMN_LA col_id K_TO col_id {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_RENAME_COLUMN, $4, $3));
        $$->alter.from = $7, $$->alter.to = $9;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_ADD column_defs {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_ADD_COLUMNS, $4, $3));
        $$->alter.columns = $6.first;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_MODIFY column_defs {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_MODIFY_COLUMNS, $4, $3));
        $$->alter.columns = $6.first;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_DROP alter_column {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_DROP_COLUMN, $4, $3));
        $$->alter.from = $6;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_DROP COLUMN_LA col_id {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_DROP_COLUMN, $4, $3));
        $$->alter.from = $7;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_SET '(' option_list ')' {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_SET_OPTIONS, $4, $3));
        $$->alter.options = $7;
    }
  | K_ALTER K_TABLE opt_if_exists table_name K_RESET '(' reset_keys ')' {
        NEED($$ = ck_ast_build_alter(ps, @$, CK_ALTER_RESET_OPTIONS, $4, $3));
        $$->alter.options = $7;
    }
  ;
reset_keys:
    option_key { $$ = (ck_ast_options){0}; NEED(ck_options_add(ps, &$$, $1, $1)); }
  | reset_keys ',' option_key { $$ = $1; NEED(ck_options_add(ps, &$$, $3, $3)); }
  ;
column_defs:
    column_def { $$.first = $$.last = $1; }
  | COLUMN_LA column_def { $$.first = $$.last = $2; }
  | '(' column_def_list ')' { $$ = $2; }
  ;
column_def_list:
    column_def { $$.first = $$.last = $1; }
  | column_def_list ',' column_def { $$ = $1; $$.last->next = $3; $$.last = $3; }
  ;
alter_column: IDENT | free_word | name_word | form_word | unit_word;

/* ---- types ---- */

type:
    simple_type %prec TYPE_DONE
  | type K_ARRAY { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("array"), $1)); }
  | type '[' ']' { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("array"), $1)); }
  ;

simple_type:
    type_word { NEED($$ = ck_ast_build_type(ps, @$, $1.text, NULL)); }
  | type_word '(' INTEGER_TEXT ')' {
        NEED($$ = ck_ast_build_type(ps, @$, $1.text, NULL));
        NEED(ck_ast_build_type_param(ps, $$, $3));
    }
  | type_word '(' INTEGER_TEXT ',' INTEGER_TEXT ')' {
        NEED($$ = ck_ast_build_type(ps, @$, $1.text, NULL));
        NEED(ck_ast_build_type_param(ps, $$, $3) && ck_ast_build_type_param(ps, $$, $5));
    }
  | K_DOUBLE { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("double"), NULL)); }
  | K_DOUBLE K_PRECISION { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("double"), NULL)); }
  | K_CHARACTER { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("char"), NULL)); }
  | K_CHARACTER '(' INTEGER_TEXT ')' {
        NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("char"), NULL));
        NEED(ck_ast_build_type_param(ps, $$, $3));
    }
  | K_CHARACTER K_VARYING { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("varchar"), NULL)); }
  | K_CHARACTER K_VARYING '(' INTEGER_TEXT ')' {
        NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("varchar"), NULL));
        NEED(ck_ast_build_type_param(ps, $$, $4));
    }
  | K_TIME opt_zone { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("time"), NULL)); $$->zone = $2; }
  | K_TIME '(' INTEGER_TEXT ')' opt_zone {
        NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("time"), NULL));
        NEED(ck_ast_build_type_param(ps, $$, $3));
        $$->zone = $5;
    }
  | K_TIMESTAMP opt_zone { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("timestamp"), NULL)); $$->zone = $2; }
  | K_TIMESTAMP '(' INTEGER_TEXT ')' opt_zone {
        NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("timestamp"), NULL));
        NEED(ck_ast_build_type_param(ps, $$, $3));
        $$->zone = $5;
    }
  | K_INTERVAL { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("interval"), NULL)); }
  | K_INTERVAL unit opt_to_unit {
        NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("interval"), NULL));
        $$->from_unit = $2, $$->to_unit = $3;
    }
  | K_ARRAY '<' element_type '>' { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("array"), $3)); }
  | K_MAP '<' element_type ',' element_type '>' { $3->next = $5; NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("map"), $3)); }
  | K_ROW '<' row_fields '>' { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("row"), $3.first)); }
  | K_ROW '(' row_fields ')' { NEED($$ = ck_ast_build_type(ps, @$, CK_VIEW("row"), $3.first)); }
  ;
type_word: IDENT | K_DATE;
opt_zone:
    %empty { $$ = CK_TZ_DEFAULT; }
  | WITH_LA K_TIME K_ZONE { $$ = CK_TZ_WITH; }
  | WITH_LA K_LOCAL K_TIME K_ZONE { $$ = CK_TZ_WITH_LOCAL; }
  | K_WITHOUT K_TIME K_ZONE { $$ = CK_TZ_WITHOUT; }
  ;
row_fields:
    row_field { $$.first = $$.last = $1; }
  | row_fields ',' row_field { $$ = $1; $$.last->next = $3, $$.last = $3; }
  ;
row_field: col_id element_type { $$ = $2; $$->field_name = $1; };
element_type: type | type K_NOT K_NULL { $$ = $1; $$->not_null = true; } | type K_NULL;

unit:
    K_YEAR { $$ = CK_UNIT_YEAR; } | K_QUARTER { $$ = CK_UNIT_QUARTER; } | K_MONTH { $$ = CK_UNIT_MONTH; }
  | K_WEEK { $$ = CK_UNIT_WEEK; } | K_DAY { $$ = CK_UNIT_DAY; } | K_HOUR { $$ = CK_UNIT_HOUR; }
  | K_MINUTE { $$ = CK_UNIT_MINUTE; } | K_SECOND { $$ = CK_UNIT_SECOND; }
  | K_MILLISECOND { $$ = CK_UNIT_MILLISECOND; } | K_MICROSECOND { $$ = CK_UNIT_MICROSECOND; }
  ;
/* In CEIL(... INTERVAL '1' YEAR TO MONTH) the TO belongs to the interval. */
opt_to_unit: %empty %prec UNIT_ALONE { $$ = CK_UNIT_NONE; } | K_TO unit { $$ = $2; };

/* ---- queries ----
 * query: without parentheses around the whole; query_parens: with. An expression in parentheses around a query in
 * parentheses is the query (QUERY_AS_VALUE shifts the closing parenthesis). */

query:
    query_body
  | K_WITH ctes query_body {
        NEED($$ = ck_ast_build_query_tail(ps, $3, @$));
        $$->ctes = $2.first, $$->with_pos = @1;
        NEED(ck_ast_build_query_done(ps, $$));
    }
  | K_WITH ctes query_parens {
        NEED($$ = ck_ast_build_query_tail(ps, $3, @$));
        $$->ctes = $2.first, $$->with_pos = @1;
        NEED(ck_ast_build_query_done(ps, $$));
    }
  | K_WITH K_RECURSIVE ctes query_body {
        $$ = $4;
        ck_parser_fail(ps, @2, CK_REFUSED, "WITH RECURSIVE is not supported: a stream has no fixed point to reach");
        YYABORT;
    }
  ;
query_body:
    simple_query
  | query_clause order_by opt_emit {
        NEED($$ = ck_ast_build_query_tail(ps, $1, @$));
        $$->order_by = $2, $$->order_pos = @2, $$->emit_on_close = $3, $$->emit_pos = @3;
        NEED(ck_ast_build_query_done(ps, $$));
    }
  | query_clause opt_order_by limit_clause opt_emit {
        NEED($$ = ck_ast_build_query_tail(ps, $1, @$));
        $$->order_by = $2, $$->order_pos = @2, $$->limit = $3.limit, $$->offset = $3.offset, $$->limit_pos = @3;
        $$->emit_on_close = $4, $$->emit_pos = @4;
        NEED(ck_ast_build_query_done(ps, $$));
    }
  | query_clause emit {
        NEED($$ = ck_ast_build_query_tail(ps, $1, @$));
        $$->emit_on_close = true, $$->emit_pos = @2;
    }
  ;
opt_emit: %empty { $$ = false; } | emit { $$ = true; };
emit: EMIT_LA K_ON K_CLOSE;

query_parens:
    '(' query ')' { $$ = $2; $$->parenthesised = true; }
  | '(' query_parens ')' { $$ = $2; }
  ;
query_clause: simple_query | query_parens;

simple_query:
    select_core { NEED($$ = ck_ast_build_select(ps, @$, $1)); }
  | values_clause
  | query_clause K_UNION opt_all_distinct query_clause {
        NEED($$ = ck_ast_build_set_operation(ps, @$, CK_QUERY_UNION, $3, $1, $4));
    }
  | query_clause K_INTERSECT opt_all_distinct query_clause {
        NEED($$ = ck_ast_build_set_operation(ps, @$, CK_QUERY_INTERSECT, $3, $1, $4));
    }
  | query_clause K_EXCEPT opt_all_distinct query_clause {
        NEED($$ = ck_ast_build_set_operation(ps, @$, CK_QUERY_EXCEPT, $3, $1, $4));
    }
  ;
opt_all_distinct: %empty { $$ = false; } | K_ALL { $$ = true; } | K_DISTINCT { $$ = false; };

ctes:
    cte { $$.first = $$.last = $1; }
  | ctes ',' cte { $$ = $1; $$.last->next = $3; $$.last = $3; }
  ;
cte: col_id opt_columns K_AS query_parens {
        NEED($$ = NEW(ck_ast_cte));
        *$$ = (ck_ast_cte){.name = $1, .columns = $2, .query = $4};
    };

values_clause: K_VALUES value_rows { NEED($$ = ck_ast_build_values(ps, @$, $2)); };
value_rows:
    value_row { $$ = ck_exprs_of($1); }
  | value_rows ',' value_row { $$ = ck_exprs_add($1, $3); }
  ;
value_row: '(' expr_list ')' { NEED($$ = ck_ast_build_expr(ps, CK_AST_ROW, @$, @1, $2)); };

select_core:
    K_SELECT opt_hint select_distinct select_items opt_from opt_where opt_group_by opt_having opt_windows {
        NEED($$ = NEW(ck_ast_select));
        *$$ = (ck_ast_select){.pos = @1, .hints = $2, .distinct = $3.distinct, .distinct_on = $3.on, .items = $4,
                              .from = $5.first, .from_last = $5.last, .where = $6, .grouped = @7.begin != @7.end,
                              .group_by = $7, .group_pos = @7, .having = $8, .windows = $9};
    }
  ;
select_distinct:
    %empty { $$.distinct = false, $$.on = (ck_ast_exprs){0}; }
  | K_ALL { $$.distinct = false, $$.on = (ck_ast_exprs){0}; }
  | K_DISTINCT { $$.distinct = true, $$.on = (ck_ast_exprs){0}; }
  | K_DISTINCT K_ON '(' expr_list ')' { $$.distinct = true, $$.on = $4; }
  ;

select_items:
    select_item { $$ = (ck_ast_items){$1, $1, 1}; }
  | select_items ',' select_item { $$ = $1; $$.last->next = $3, $$.last = $3, $$.count++; }
  ;
select_item:
    expr { NEED($$ = NEW(ck_ast_item)); $$->expr = $1; }
  | expr K_AS label { NEED($$ = NEW(ck_ast_item)); $$->expr = $1, $$->alias = $3; }
  | expr bare_label { NEED($$ = NEW(ck_ast_item)); $$->expr = $1, $$->alias = $2; }
  | '*' {
        NEED($$ = NEW(ck_ast_item));
        NEED($$->expr = ck_ast_build_leaf(ps, CK_AST_STAR, @$, CK_VIEW("*")));
    }
  | postfix '.' '*' {
        NEED($$ = NEW(ck_ast_item));
        NEED($$->expr = ck_ast_build_unary(ps, CK_AST_STAR, 0, @$, @3, $1));
    }
  ;

opt_where: %empty { $$ = NULL; } | K_WHERE expr { $$ = $2; };
opt_having: %empty { $$ = NULL; } | K_HAVING expr { $$ = $2; };
opt_group_by: %empty { $$ = (ck_ast_exprs){0}; } | K_GROUP K_BY group_items { $$ = $3; };
group_items:
    group_item { $$ = ck_exprs_of($1); }
  | group_items ',' group_item { $$ = ck_exprs_add($1, $3); }
  ;
group_item:
    expr
  | '(' ')' { NEED($$ = ck_ast_build_expr(ps, CK_AST_ROW, @$, @1, (ck_ast_exprs){0})); }
  | GROUPING_LA K_SETS '(' group_items ')' { NEED($$ = ck_ast_build_expr(ps, CK_AST_GROUPING_SETS, @$, @1, $4)); }
  ;

opt_order_by: %empty { $$ = (ck_ast_orders){0}; } | order_by;
order_by: K_ORDER K_BY order_list { $$ = $3; };
order_list:
    order_item { $$ = (ck_ast_orders){0}; NEED(push_order(ps, &$$, $1)); }
  | order_list ',' order_item { $$ = $1; NEED(push_order(ps, &$$, $3)); }
  ;
order_item: expr opt_desc opt_nulls { $$ = (ck_ast_order){$1, $2, (ck_ast_nulls)$3, @$, NULL}; };
opt_desc: %empty { $$ = false; } | K_ASC { $$ = false; } | K_DESC { $$ = true; };
opt_nulls:
    %empty { $$ = CK_NULLS_DEFAULT; }
  | K_NULLS K_FIRST { $$ = CK_NULLS_FIRST; }
  | K_NULLS K_LAST { $$ = CK_NULLS_LAST; }
  ;

limit_clause:
    K_LIMIT limit_value { $$.limit = $2, $$.offset = NULL; }
  | K_LIMIT limit_value K_OFFSET limit_value opt_rows { $$.limit = $2, $$.offset = $4; }
  | K_OFFSET limit_value opt_rows { $$.limit = NULL, $$.offset = $2; }
  | K_OFFSET limit_value opt_rows K_LIMIT limit_value { $$.limit = $5, $$.offset = $2; }
  | K_OFFSET limit_value opt_rows K_FETCH first_or_next limit_value rows K_ONLY { $$.limit = $6, $$.offset = $2; }
  | K_FETCH first_or_next limit_value rows K_ONLY { $$.limit = $3, $$.offset = NULL; }
  ;
limit_value: add_expr | K_ALL { $$ = NULL; };
opt_rows: %empty | rows;
rows: K_ROW | K_ROWS;
first_or_next: K_FIRST | K_NEXT;

opt_hint:
    %empty { $$ = NULL; }
  | HINT_OPEN hint_items HINT_CLOSE { $$ = $2; }
  ;
hint_items:
    hint_item
  | hint_items ',' hint_item { $$ = $3; $$->next = $1; }
  | hint_items hint_item { $$ = $2; $$->next = $1; }
  ;
hint_item:
    IDENT '(' options ')' { NEED($$ = NEW(ck_ast_hint)); $$->name = $1, $$->options = $3.first; }
  | IDENT { NEED($$ = NEW(ck_ast_hint)); $$->name = $1; }
  ;

/* ---- FROM ---- */

opt_from: %empty { $$.first = $$.last = NULL; } | K_FROM from_list { $$ = $2; };
from_list:
    table_ref { $$.first = $$.last = $1; }
  | from_list ',' table_ref { $$ = $1; $$.last->next = $3, $$.last = $3; }
  ;

table_ref:
    table_primary
  | table_ref K_CROSS K_JOIN table_primary { NEED($$ = ck_ast_build_join(ps, @$, CK_JOIN_CROSS, $1, $4)); }
  | table_ref join_kind K_JOIN table_primary K_ON expr {
        NEED($$ = ck_ast_build_join(ps, @$, (ck_ast_join_kind)$2, $1, $4));
        $$->on = $6;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  | table_ref join_kind K_JOIN table_primary K_USING parenthesised_names {
        NEED($$ = ck_ast_build_join(ps, @$, (ck_ast_join_kind)$2, $1, $4));
        $$->using_columns = $6;
    }
  | table_ref K_NATURAL join_kind K_JOIN table_primary {
        NEED($$ = ck_ast_build_join(ps, @$, (ck_ast_join_kind)$3, $1, $5));
        $$->natural = true;
    }
  ;
join_kind:
    %empty { $$ = CK_JOIN_INNER; } | K_INNER { $$ = CK_JOIN_INNER; }
  | K_LEFT opt_outer { $$ = CK_JOIN_LEFT; } | K_RIGHT opt_outer { $$ = CK_JOIN_RIGHT; }
  | K_FULL opt_outer { $$ = CK_JOIN_FULL; }
  | SEMI_LA { $$ = CK_JOIN_SEMI; } | ANTI_LA { $$ = CK_JOIN_ANTI; }
  | K_LEFT SEMI_LA { $$ = CK_JOIN_SEMI; } | K_LEFT ANTI_LA { $$ = CK_JOIN_ANTI; }
  ;
opt_outer: %empty | K_OUTER;

table_primary:
    opt_from_base opt_alias { $$ = $1; $$->alias = $2.ident, $$->alias_columns = $2.columns; $$->pos = @$; }
  | '(' table_ref ')' { $$ = $2; }
  ;
opt_from_base:
    table_name opt_hint {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_TABLE, @$));
        $$->name = $1, $$->hints = $2;
    }
  | table_name opt_hint K_FOR K_SYSTEM_TIME K_AS K_OF add_expr {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_TABLE, @$));
        $$->name = $1, $$->hints = $2, $$->as_of = $7;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  | query_parens %prec QUERY_AS_VALUE {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_QUERY, @$));
        $$->query = $1;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  | LATERAL_LA query_parens {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_QUERY, @$));
        $$->query = $2, $$->lateral = true;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  | function_head opt_ordinality {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_FUNCTION, @$));
        $$->call = $1, $$->ordinality = $2;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  | LATERAL_LA function_head opt_ordinality {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_FUNCTION, @$));
        $$->call = $2, $$->ordinality = $3, $$->lateral = true;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  | K_TABLE '(' function_head ')' {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_FUNCTION, @$));
        $$->call = $3;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  | LATERAL_LA K_TABLE '(' function_head ')' {
        NEED($$ = ck_ast_build_from(ps, CK_FROM_FUNCTION, @$));
        $$->call = $4, $$->lateral = true;
        NEED(ck_ast_build_from_done(ps, $$));
    }
  ;
opt_ordinality: %empty { $$ = false; } | K_WITH K_ORDINALITY { $$ = true; };
opt_alias: %empty { $$.ident = (ck_ast_ident){0}; $$.columns = (ck_ast_names){0}; } | alias;
alias:
    K_AS col_id opt_columns { $$.ident = $2; $$.columns = $3; }
  | bare_label opt_columns { $$.ident = $1; $$.columns = $2; }
  ;

/* ---- windows ---- */

opt_windows: %empty { $$ = NULL; } | K_WINDOW window_defs { $$ = $2; };
window_defs:
    col_id K_AS window_spec { $$ = $3; $$->name = $1; }
  | window_defs ',' col_id K_AS window_spec { $$ = $5; $$->name = $3; $$->next = $1; }
  ;
window_spec:
    '(' opt_partition_by opt_order_by opt_frame ')' {
        NEED($$ = NEW(ck_ast_window));
        $$->pos = @$, $$->partition_by = $2, $$->order_by = $3;
        $$->frame = $4.unit, $$->from = $4.from, $$->to = $4.to;
    }
  ;
opt_partition_by: %empty { $$ = (ck_ast_exprs){0}; } | K_PARTITION K_BY expr_list { $$ = $3; };
opt_frame:
    %empty { $$.unit = CK_FRAME_NONE, $$.from = $$.to = (ck_ast_bound){0}; }
  | frame_unit bound {
        $$.unit = (ck_ast_frame_unit)$1;
        $$.from = $2, $$.to = (ck_ast_bound){CK_BOUND_CURRENT_ROW, NULL, @2};
    }
  | frame_unit K_BETWEEN bound K_AND bound { $$.unit = (ck_ast_frame_unit)$1, $$.from = $3, $$.to = $5; }
  ;
frame_unit:
    K_ROWS { $$ = CK_FRAME_ROWS; } | K_RANGE { $$ = CK_FRAME_RANGE; } | K_GROUPS { $$ = CK_FRAME_GROUPS; };
bound:
    UNBOUNDED_LA K_PRECEDING { $$ = (ck_ast_bound){CK_BOUND_UNBOUNDED_PRECEDING, NULL, @$}; }
  | UNBOUNDED_LA K_FOLLOWING { $$ = (ck_ast_bound){CK_BOUND_UNBOUNDED_FOLLOWING, NULL, @$}; }
  | CURRENT_LA K_ROW { $$ = (ck_ast_bound){CK_BOUND_CURRENT_ROW, NULL, @$}; }
  | add_expr K_PRECEDING { $$ = (ck_ast_bound){CK_BOUND_PRECEDING, $1, @$}; }
  | add_expr K_FOLLOWING { $$ = (ck_ast_bound){CK_BOUND_FOLLOWING, $1, @$}; }
  ;

/* ---- expressions, loosest first ---- */

expr:
    and_expr
  | expr K_OR and_expr { NEED($$ = ck_ast_build_logic(ps, CK_AST_OR, @$, @2, $1, $3)); }
  ;
and_expr:
    not_expr
  | and_expr K_AND not_expr { NEED($$ = ck_ast_build_logic(ps, CK_AST_AND, @$, @2, $1, $3)); }
  ;
not_expr:
    is_expr
  | K_NOT not_expr { NEED($$ = ck_ast_build_unary(ps, CK_AST_NOT, 0, @$, @1, $2)); }
  ;
is_expr:
    cmp_expr
  | is_expr K_IS opt_not is_test {
        NEED($$ = ck_ast_build_unary(ps, CK_AST_IS, $4, @$, @2, $1));
        $$->negated = $3;
    }
  | is_expr K_ISNULL { NEED($$ = ck_ast_build_unary(ps, CK_AST_IS, CK_TEST_NULL, @$, @2, $1)); }
  | is_expr K_NOTNULL {
        NEED($$ = ck_ast_build_unary(ps, CK_AST_IS, CK_TEST_NULL, @$, @2, $1));
        $$->negated = true;
    }
  | is_expr K_IS opt_not K_DISTINCT K_FROM cmp_expr {
        NEED($$ = ck_ast_build_binary(ps, CK_AST_DISTINCT_FROM, 0, @$, @2, $1, $6));
        $$->negated = $3;
    }
  ;
opt_not: %empty { $$ = false; } | K_NOT { $$ = true; };
is_test:
    K_NULL { $$ = CK_TEST_NULL; } | K_TRUE { $$ = CK_TEST_TRUE; } | K_FALSE { $$ = CK_TEST_FALSE; }
  | K_UNKNOWN { $$ = CK_TEST_UNKNOWN; }
  ;
cmp_expr:
    range_expr
  | range_expr comparison range_expr { NEED($$ = binary(ps, (ck_ast_op)$2, @$, @2, $1, $3)); }
  | range_expr comparison quantifier query_parens {
        NEED($$ = ck_ast_build_with_query(ps, CK_AST_QUANTIFIED, @$, @2, $1, $4));
        $$->what = (uint8_t)$2, $$->flag = $3;
    }
  ;
comparison:
    '=' { $$ = CK_OP_EQ; } | NOT_EQUAL { $$ = CK_OP_NE; } | '<' { $$ = CK_OP_LT; } | LESS_EQUAL { $$ = CK_OP_LE; }
  | '>' { $$ = CK_OP_GT; } | GREATER_EQUAL { $$ = CK_OP_GE; }
  ;
quantifier: ANY_LA { $$ = false; } | K_ALL { $$ = true; };

range_expr:
    op_expr
  | op_expr opt_not_infix K_BETWEEN opt_symmetric op_expr K_AND op_expr {
        ck_ast_exprs args = ck_exprs_add(ck_exprs_of2($1, $5), $7);
        NEED($$ = ck_ast_build_expr(ps, CK_AST_BETWEEN, @$, @3, args));
        $$->negated = $2, $$->flag = $4;
    }
  | op_expr opt_not_infix K_IN in_list {
        NEED($$ = ck_ast_build_expr(ps, CK_AST_IN_LIST, @$, @3, ck_exprs_before($1, $4)));
        $$->negated = $2;
    }
  | op_expr opt_not_infix K_IN query_parens {
        NEED($$ = ck_ast_build_with_query(ps, CK_AST_IN_QUERY, @$, @3, $1, $4));
        $$->negated = $2;
    }
  | op_expr opt_not_infix like op_expr {
        NEED($$ = ck_ast_build_binary(ps, CK_AST_LIKE, $3, @$, @3, $1, $4));
        $$->negated = $2;
    }
  | op_expr opt_not_infix like op_expr K_ESCAPE op_expr {
        ck_ast_exprs args = ck_exprs_add(ck_exprs_of2($1, $4), $6);
        NEED($$ = ck_ast_build_expr(ps, CK_AST_LIKE, @$, @3, args));
        $$->what = (uint8_t)$3, $$->negated = $2;
    }
  ;
opt_not_infix: %empty { $$ = false; } | K_NOT { $$ = true; };
opt_symmetric: %empty { $$ = false; } | SYMMETRIC_LA { $$ = true; };
like: K_LIKE { $$ = CK_LIKE_LIKE; } | K_ILIKE { $$ = CK_LIKE_ILIKE; } | K_SIMILAR K_TO { $$ = CK_LIKE_SIMILAR; };
in_list: '(' expr_list ')' { $$ = $2; };

op_expr:
    add_expr
  | op_expr CONCAT add_expr { NEED($$ = binary(ps, CK_OP_CONCAT, @$, @2, $1, $3)); }
  | op_expr '~' add_expr { NEED($$ = binary(ps, CK_OP_MATCH, @$, @2, $1, $3)); }
  | op_expr MATCH_NOCASE add_expr { NEED($$ = binary(ps, CK_OP_MATCH_NOCASE, @$, @2, $1, $3)); }
  | op_expr NOT_MATCH add_expr { NEED($$ = binary(ps, CK_OP_NOT_MATCH, @$, @2, $1, $3)); }
  | op_expr NOT_MATCH_NOCASE add_expr { NEED($$ = binary(ps, CK_OP_NOT_MATCH_NOCASE, @$, @2, $1, $3)); }
  ;
add_expr:
    mul_expr
  | add_expr '+' mul_expr { NEED($$ = binary(ps, CK_OP_ADD, @$, @2, $1, $3)); }
  | add_expr '-' mul_expr { NEED($$ = binary(ps, CK_OP_SUBTRACT, @$, @2, $1, $3)); }
  ;
mul_expr:
    pow_expr
  | mul_expr '*' pow_expr { NEED($$ = binary(ps, CK_OP_MULTIPLY, @$, @2, $1, $3)); }
  | mul_expr '/' pow_expr { NEED($$ = binary(ps, CK_OP_DIVIDE, @$, @2, $1, $3)); }
  | mul_expr '%' pow_expr { NEED($$ = binary(ps, CK_OP_MODULO, @$, @2, $1, $3)); }
  ;
pow_expr:
    at_expr
  | pow_expr '^' at_expr { NEED($$ = binary(ps, CK_OP_POWER, @$, @2, $1, $3)); }
  ;
at_expr:
    unary
  | at_expr AT_LA K_TIME K_ZONE unary {
        NEED($$ = ck_ast_build_call_of(ps, @$, "timezone", ck_exprs_of2($5, $1)));
        $$->sign = @2;
    }
  ;
unary:
    postfix
  | '-' unary { NEED($$ = ck_ast_build_unary(ps, CK_AST_OPERATOR, CK_OP_NEGATE, @$, @1, $2)); }
  | '+' unary { NEED($$ = ck_ast_build_unary(ps, CK_AST_OPERATOR, CK_OP_PLUS_SIGN, @$, @1, $2)); }
  ;
postfix:
    primary
  | postfix '.' label { NEED($$ = ck_ast_build_field(ps, @$, $1, $3)); }
  | postfix '[' expr ']' { NEED($$ = ck_ast_build_binary(ps, CK_AST_SUBSCRIPT, 0, @$, @2, $1, $3)); }
  | postfix TYPECAST type %prec TYPE_DONE {
        NEED($$ = ck_ast_build_unary(ps, CK_AST_CAST, 0, @$, @2, $1));
        $$->type = $3;
    }
  ;

primary:
    col_id { NEED($$ = ck_ast_build_ident(ps, $1)); }
  | K_NULL { NEED($$ = ck_ast_build_leaf(ps, CK_AST_NULL, @$, $1.text)); }
  | K_TRUE { NEED($$ = ck_ast_build_leaf(ps, CK_AST_BOOL, @$, $1.text)); $$->flag = true; }
  | K_FALSE { NEED($$ = ck_ast_build_leaf(ps, CK_AST_BOOL, @$, $1.text)); }
  | INTEGER_TEXT { NEED($$ = ck_ast_build_leaf(ps, CK_AST_INTEGER, @$, $1.text)); }
  | DECIMAL_TEXT { NEED($$ = ck_ast_build_leaf(ps, CK_AST_DECIMAL, @$, $1.text)); }
  | DOUBLE_TEXT { NEED($$ = ck_ast_build_leaf(ps, CK_AST_DOUBLE, @$, $1.text)); }
  | STRING_TEXT { NEED($$ = ck_ast_build_leaf(ps, CK_AST_STRING, @$, $1.text)); }
  | BYTES_TEXT { NEED($$ = ck_ast_build_leaf(ps, CK_AST_BYTES, @$, $1.text)); }
  | typed_word STRING_TEXT {
        NEED($$ = ck_ast_build_leaf(ps, CK_AST_TYPED, @$, $2.text));
        NEED($$->type = ck_ast_build_type(ps, @1, $1.text, NULL));
    }
  | INTERVAL_LA STRING_TEXT { NEED($$ = ck_ast_build_leaf(ps, CK_AST_INTERVAL, @$, $2.text)); }
  | INTERVAL_LA STRING_TEXT unit opt_to_unit {
        NEED($$ = ck_ast_build_leaf(ps, CK_AST_INTERVAL, @$, $2.text));
        $$->what = (uint8_t)$3, $$->what2 = (uint8_t)$4;
    }
  | INTERVAL_LA INTEGER_TEXT unit {
        NEED($$ = ck_ast_build_leaf(ps, CK_AST_INTERVAL, @$, $2.text));
        $$->what = (uint8_t)$3;
    }
  | '(' expr ')' { $$ = $2; $$->pos = @$; }
  | '(' expr ',' expr_list ')' { NEED($$ = ck_ast_build_expr(ps, CK_AST_ROW, @$, @1, ck_exprs_before($2, $4))); }
  | query_parens %prec QUERY_AS_VALUE { NEED($$ = ck_ast_build_with_query(ps, CK_AST_SUBQUERY, @$, @$, NULL, $1)); }
  | K_EXISTS query_parens { NEED($$ = ck_ast_build_with_query(ps, CK_AST_EXISTS, @$, @1, NULL, $2)); }
  | K_ROW '(' opt_expr_list ')' { NEED($$ = ck_ast_build_expr(ps, CK_AST_ROW, @$, @1, $3)); $$->flag = true; }
  | K_ARRAY '[' opt_expr_list ']' { NEED($$ = ck_ast_build_expr(ps, CK_AST_ARRAY, @$, @1, $3)); }
  | K_MAP '[' opt_expr_list ']' { NEED($$ = ck_ast_build_map(ps, @$, @1, $1.text, $3)); }
  | K_CAST '(' expr K_AS type ')' {
        NEED($$ = ck_ast_build_unary(ps, CK_AST_CAST, 0, @$, @1, $3));
        $$->type = $5;
    }
  | K_TRY_CAST '(' expr K_AS type ')' {
        NEED($$ = ck_ast_build_unary(ps, CK_AST_CAST, 0, @$, @1, $3));
        $$->type = $5, $$->flag = true;
    }
  | case_expr
  | K_EXTRACT '(' extract_field K_FROM expr ')' {
        ck_ast_expr *field;
        NEED(field = ck_ast_build_leaf(ps, CK_AST_STRING, @3, $3.text));
        NEED($$ = ck_ast_build_call_of(ps, @$, "extract", ck_exprs_of2(field, $5)));
    }
  | K_SUBSTRING '(' expr K_FROM expr ')' { NEED($$ = ck_ast_build_call_of(ps, @$, "substring", ck_exprs_of2($3, $5))); }
  | K_SUBSTRING '(' expr K_FROM expr K_FOR expr ')' {
        NEED($$ = ck_ast_build_call_of(ps, @$, "substring", ck_exprs_add(ck_exprs_of2($3, $5), $7)));
    }
  | K_SUBSTRING '(' expr_list ')' { NEED($$ = ck_ast_build_call_of(ps, @$, "substring", $3)); }
  | K_TRIM '(' expr_list ')' { NEED($$ = ck_ast_build_call_of(ps, @$, "trim", $3)); }
  | K_TRIM '(' expr K_FROM expr ')' { NEED($$ = ck_ast_build_call_of(ps, @$, "trim", ck_exprs_of2($5, $3))); }
  | K_TRIM '(' trim_side K_FROM expr ')' { NEED($$ = ck_ast_build_call_of(ps, @$, trim_name($3), ck_exprs_of($5))); }
  | K_TRIM '(' trim_side expr K_FROM expr ')' {
        NEED($$ = ck_ast_build_call_of(ps, @$, trim_name($3), ck_exprs_of2($6, $4)));
    }
  | K_TRIM '(' trim_side expr ')' { NEED($$ = ck_ast_build_call_of(ps, @$, trim_name($3), ck_exprs_of($4))); }
  | K_POSITION '(' op_expr K_IN op_expr ')' {
        NEED($$ = ck_ast_build_call_of(ps, @$, "position", ck_exprs_of2($3, $5)));
    }
  | K_OVERLAY '(' expr K_PLACING expr K_FROM expr ')' {
        NEED($$ = ck_ast_build_call_of(ps, @$, "overlay", ck_exprs_add(ck_exprs_of2($3, $5), $7)));
    }
  | K_OVERLAY '(' expr K_PLACING expr K_FROM expr K_FOR expr ')' {
        NEED($$ = ck_ast_build_call_of(ps, @$, "overlay", ck_exprs_add(ck_exprs_add(ck_exprs_of2($3, $5), $7), $9)));
    }
  | function_call
  ;
typed_word: IDENT | K_DATE | K_TIME | K_TIMESTAMP;
extract_field: label | STRING_TEXT;
trim_side: BOTH_LA { $$ = 0; } | LEADING_LA { $$ = 1; } | TRAILING_LA { $$ = 2; };

case_expr:
    K_CASE opt_case_operand when_list opt_else K_END {
        ck_ast_exprs args = $2 ? ck_exprs_before($2, $3) : $3;
        if ($4) args = ck_exprs_add(args, $4);
        NEED($$ = ck_ast_build_expr(ps, CK_AST_CASE, @$, @1, args));
        $$->flag = $2 != NULL;
    }
  ;
opt_case_operand: %empty { $$ = NULL; } | expr;
when_list:
    K_WHEN expr K_THEN expr { $$ = ck_exprs_of2($2, $4); }
  | when_list K_WHEN expr K_THEN expr { $$ = ck_exprs_add(ck_exprs_add($1, $3), $5); }
  ;
opt_else: %empty { $$ = NULL; } | K_ELSE expr { $$ = $2; };

function_call:
    function_head opt_within opt_filter opt_null_treatment opt_over {
        $$ = $1;
        if ($2.count || $3 || $4 || $5) {
            ck_ast_call *extra;
            NEED(extra = ck_ast_build_call_extra(ps, $$));
            if ($2.count) extra->order_by = $2, extra->within = true;
            extra->filter = $3, extra->nulls = (ck_ast_null_treatment)$4, extra->over = $5;
            $$->pos = @$;
            NEED(ck_ast_build_call_done(ps, $$));
        }
    }
  ;
function_head:
    func_name '(' ')' { NEED($$ = ck_ast_build_call(ps, @$, $1, (ck_ast_exprs){0})); }
  | func_name '(' func_args opt_order_by ')' {
        NEED($$ = ck_ast_build_call(ps, @$, $1, $3));
        if ($4.count) {
            NEED(ck_ast_build_call_extra(ps, $$));
            $$->call->order_by = $4;
            NEED(ck_ast_build_call_done(ps, $$));
        }
    }
  | func_name '(' K_ALL func_args opt_order_by ')' {
        NEED($$ = ck_ast_build_call(ps, @$, $1, $4));
        NEED(ck_ast_build_call_extra(ps, $$));
        $$->call->order_by = $5;
        NEED(ck_ast_build_call_done(ps, $$));
    }
  | func_name '(' K_DISTINCT func_args opt_order_by ')' {
        NEED($$ = ck_ast_build_call(ps, @$, $1, $4));
        NEED(ck_ast_build_call_extra(ps, $$));
        $$->call->distinct = true, $$->call->order_by = $5;
        NEED(ck_ast_build_call_done(ps, $$));
    }
  | func_name '(' '*' ')' {
        NEED($$ = ck_ast_build_call(ps, @$, $1, (ck_ast_exprs){0}));
        NEED(ck_ast_build_call_extra(ps, $$));
        $$->call->star = true;
    }
  | func_name '(' expr K_TO unit_word ')' { /* CEIL(ts TO DAY) */
        ck_ast_expr *word;
        NEED(word = ck_ast_build_leaf(ps, CK_AST_STRING, @5, $5.text));
        NEED($$ = ck_ast_build_call(ps, @$, $1, ck_exprs_of2($3, word)));
    }
  ;
func_args:
    func_arg { $$ = ck_exprs_of($1); }
  | func_args ',' func_arg { $$ = ck_exprs_add($1, $3); }
  ;
func_arg:
    expr
  | col_id ARROW expr {
        NEED($$ = ck_ast_build_unary(ps, CK_AST_NAMED_ARG, 0, @$, @1, $3));
        $$->name = $1.text;
    }
  | table_arg
  | col_id ARROW table_arg {
        NEED($$ = ck_ast_build_unary(ps, CK_AST_NAMED_ARG, 0, @$, @1, $3));
        $$->name = $1.text;
    }
  ;
table_arg:
    K_TABLE table_name {
        NEED($$ = ck_ast_build_leaf(ps, CK_AST_TABLE_ARG, @$, (ck_view){0}));
        NEED($$->from = ck_ast_build_from(ps, CK_FROM_TABLE, @$));
        $$->from->name = $2;
    }
  | K_TABLE table_name K_PARTITION K_BY expr {
        ck_ast_exprs by = $5->kind == CK_AST_ROW && !$5->flag ? $5->args : ck_exprs_of($5);
        NEED($$ = ck_ast_build_expr(ps, CK_AST_TABLE_ARG, @$, @1, by));
        NEED($$->from = ck_ast_build_from(ps, CK_FROM_TABLE, @$));
        $$->from->name = $2;
    }
  | K_TABLE query_parens {
        NEED($$ = ck_ast_build_leaf(ps, CK_AST_TABLE_ARG, @$, (ck_view){0}));
        NEED($$->from = ck_ast_build_from(ps, CK_FROM_QUERY, @$));
        $$->from->query = $2;
        NEED(ck_ast_build_from_done(ps, $$->from));
        $$->depth = $$->from->depth;
    }
  | K_TABLE query_parens K_PARTITION K_BY expr {
        ck_ast_exprs by = $5->kind == CK_AST_ROW && !$5->flag ? $5->args : ck_exprs_of($5);
        NEED($$ = ck_ast_build_expr(ps, CK_AST_TABLE_ARG, @$, @1, by));
        NEED($$->from = ck_ast_build_from(ps, CK_FROM_QUERY, @$));
        $$->from->query = $2;
        NEED(ck_ast_build_from_done(ps, $$->from));
        if ($$->from->depth > $$->depth) $$->depth = $$->from->depth;
    }
  ;
opt_within: %empty { $$ = (ck_ast_orders){0}; } | K_WITHIN K_GROUP '(' order_by ')' { $$ = $4; };
opt_filter: %empty { $$ = NULL; } | K_FILTER '(' K_WHERE expr ')' { $$ = $4; };
opt_null_treatment:
    %empty { $$ = CK_NULL_TREATMENT_NONE; }
  | RESPECT_LA K_NULLS { $$ = CK_RESPECT_NULLS; }
  | IGNORE_LA K_NULLS { $$ = CK_IGNORE_NULLS; }
  ;
opt_over:
    %empty { $$ = NULL; }
  | K_OVER window_spec { $$ = $2; }
  | K_OVER col_id {
        NEED($$ = NEW(ck_ast_window));
        $$->pos = @$, $$->name = $2, $$->reference = true;
    }
  ;

expr_list:
    expr { $$ = ck_exprs_of($1); }
  | expr_list ',' expr { $$ = ck_exprs_add($1, $3); }
  ;
opt_expr_list: %empty { $$ = (ck_ast_exprs){0}; } | expr_list;

/* ---- names ----
 * Words SQL cannot do without are reserved_word. name_word may name anything but is no alias without AS, since it could
 * go on with the expression before it. form_word is the start of a special form when "(" follows. The rest is free. */

table_name:
    col_id { $$ = (ck_ast_names){0}; NEED(ck_names_add(ps, &$$, $1)); }
  | table_name '.' label { $$ = $1; NEED(ck_names_add(ps, &$$, $3)); }
  ;
names:
    col_id { $$ = (ck_ast_names){0}; NEED(ck_names_add(ps, &$$, $1)); }
  | names ',' col_id { $$ = $1; NEED(ck_names_add(ps, &$$, $3)); }
  ;
parenthesised_names: '(' names ')' { $$ = $2; };

col_id: IDENT | free_word | name_word | form_word | unit_word | K_TO;
bare_label: IDENT | free_word;
label: IDENT | free_word | name_word | form_word | unit_word | K_TO | reserved_word;
func_name: IDENT | free_word | unit_word | K_LEFT | K_RIGHT;

unit_word:
    K_YEAR | K_QUARTER | K_MONTH | K_WEEK | K_DAY | K_HOUR | K_MINUTE | K_SECOND | K_MILLISECOND | K_MICROSECOND;
form_word:
    K_CAST | K_TRY_CAST | K_EXTRACT | K_SUBSTRING | K_TRIM | K_POSITION | K_OVERLAY | K_EXISTS | K_ROW | K_INTERVAL
  | K_MAP %prec WORD_ALONE
  | K_ARRAY %prec WORD_ALONE
  ;
name_word:
    K_ASC | K_DESC | K_ESCAPE | K_FETCH | K_FILTER | K_ILIKE | K_ISNULL | K_NOTNULL | K_OFFSET | K_OVER
  | K_PRECISION | K_SIMILAR | K_VARYING | K_WINDOW | K_WITHIN | K_WITHOUT
  ;
free_word:
    K_ADD | K_ALTER | K_ANTI | K_ANY | K_AT | K_BEGIN | K_BOTH | K_BY | K_CHARACTER | K_CLOSE | K_COLUMN
  | K_COMMENT | K_CONSTRAINT | K_CREATE | K_CURRENT | K_DATE | K_DESCRIBE | K_DOUBLE | K_DROP | K_EMIT
  | K_ENFORCED | K_EXECUTE | K_EXPLAIN | K_FIRST | K_FOLLOWING | K_FUNCTION | K_GROUPING | K_GROUPS | K_IF
  | K_IGNORE | K_INSERT | K_INTO | K_KEY | K_LAST | K_LATERAL | K_LEADING | K_LOCAL | K_MATCH_RECOGNIZE
  | K_METADATA | K_MODIFY | K_NEXT | K_NULLS | K_OF | K_ONLY | K_ORDINALITY | K_OUTER | K_OVERWRITE | K_PARTITION
  | K_PARTITIONED | K_PLACING | K_PLAN | K_PRECEDING | K_PRIMARY | K_RANGE | K_RECURSIVE | K_RENAME | K_RENAMED
  | K_REPLACE | K_RESET | K_RESPECT | K_RETURN | K_RETURNS | K_ROWS | K_SEMI | K_SET | K_SETS | K_SHOW | K_SOME | K_STATEMENT
  | K_SYMMETRIC | K_SYSTEM_TIME | K_TEMPORARY | K_TIME | K_TIMESTAMP | K_TRAILING | K_UNBOUNDED | K_UNKNOWN
  | K_VIEW | K_VIRTUAL | K_WATERMARK | K_ZONE
  ;
reserved_word:
    K_ALL | K_AND | K_AS | K_BETWEEN | K_CASE | K_CROSS | K_DISTINCT | K_ELSE | K_END | K_EXCEPT | K_FALSE
  | K_FOR | K_FROM | K_FULL | K_GROUP | K_HAVING | K_IN | K_INNER | K_INTERSECT | K_IS | K_JOIN | K_LEFT | K_LIKE
  | K_LIMIT | K_NATURAL | K_NOT | K_NULL | K_ON | K_OR | K_ORDER | K_RIGHT | K_SELECT | K_TABLE | K_THEN | K_TRUE
  | K_UNION | K_USING | K_VALUES | K_WHEN | K_WHERE | K_WITH
  ;

%%

/* Expected tokens are as the table knows them after default reductions: right, not always complete. */
static int yyreport_syntax_error(const yypcontext_t *context, ck_parser *ps) {
    yysymbol_kind_t expected[YYNTOKENS];
    const char *names[YYNTOKENS];
    int n = yypcontext_expected_tokens(context, expected, YYNTOKENS);
    for (int i = 0; i < n; i++) names[i] = yysymbol_name(expected[i]);
    ck_parser_syntax_error(ps, names, n > 0 ? n : 0);
    return 0;
}

/* Bison's own messages: its stack is full, or the arena is. */
static void ck_grammar_error(const ck_pos *at, ck_parser *ps, const char *message) {
    (void)message;
    if (ps->status == CK_OK) ck_parser_too_deep(ps, *at);
}
