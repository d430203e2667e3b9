/* Golden plans and messages: each tests/sql/plan/x.sql and tests/sql/error/error_x.sql is compiled against the
 * operators and connectors there are and compared with x.expected. CK_GOLDEN_UPDATE=1 writes these anew; read the diff.
 *
 * A first line "-- options: changes checkpoints statements parallelism=4" sets ck_sql_options. A line "-- way out:" in
 * an error_*.sql begins a script that does what the message suggests: it must compile. There may be several. */
#include "sql/compile.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "engine/builtins.h"

enum { TEXT_MAX = 1 << 20 };

typedef struct session {
    ck_proc proc;
    ck_arena registry_arena, arena;
    ck_registry registry;
    ck_catalog *catalog;
    ck_error err;
} session;

static void open_session(session *s) {
    memset(s, 0, sizeof *s);
    s->err = CK_ERROR_INIT;
    s->proc.heap = ck_heap_system();
    ck_budget_init(&s->proc.budget, s->proc.heap, 0);
    ck_mem mem = ck_proc_mem(&s->proc, CK_MEM_PLAN);
    ck_arena_init(&s->registry_arena, mem, 1 << 20);
    ck_arena_init(&s->arena, mem, 256 << 20);
    ck_registry_init(&s->registry, &s->registry_arena);
    assert_int_equal(engine_register_builtins(&s->registry, &s->err), CK_OK);
    assert_int_equal(ck_catalog_new(&s->proc, &s->registry, &s->catalog, &s->err), CK_OK);
}
static void close_session(session *s) {
    ck_catalog_free(s->catalog);
    ck_arena_destroy(&s->arena);
    ck_arena_destroy(&s->registry_arena);
    assert_int_equal(ck_budget_total(&s->proc.budget), 0);
}

static ck_sql_options options_of(const char *text) {
    ck_sql_options o = {.source_name = "q.sql",
                        .job_name = "q",
                        .parallelism = 1,
                        .key_groups = CK_KEY_GROUPS_DEFAULT,
                        .one_job = true,
                        .result_sink = "sink.print",
                        .result_params = "{\"fd\":1}"};
    if (strncmp(text, "-- options:", 11) != 0) return o;
    char line[200];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    o.changes = strstr(line, " changes") != NULL;
    o.checkpoints = strstr(line, " checkpoints") != NULL;
    o.one_job = strstr(line, " statements") == NULL;
    const char *p = strstr(line, " parallelism=");
    if (p) o.parallelism = (uint32_t)atoi(p + 13);
    return o;
}

/* What a script gives, as text: its steps, or its error. */
static ck_status result_of(const char *sql, size_t n, const ck_sql_options *o, char *out, size_t room) {
    session s;
    ck_sql_plan *plan = NULL;
    size_t at = 0;
    open_session(&s);
    ck_status st = ck_sql_compile(s.catalog, (ck_view){sql, n}, o, &s.arena, &plan, &s.err);
    if (st != CK_OK) at += (size_t)snprintf(out, room, "%s\n", s.err.msg);
    for (uint32_t i = 0; st == CK_OK && i < plan->step_count; i++) {
        const ck_sql_step *step = &plan->steps[i];
        const char *text = step->kind == CK_SQL_TEXT ? step->text : step->explain;
        at += (size_t)snprintf(out + at, room - at, "%s%s", i ? "\n" : "", text);
        assert_true(at < room);
        if (step->kind == CK_SQL_JOB) assert_non_null(step->graph);
    }
    if (at == 0) out[0] = 0;
    close_session(&s);
    return st;
}

static char *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    char *text = malloc(TEXT_MAX);
    assert_non_null(text);
    size_t n = f ? fread(text, 1, TEXT_MAX - 1, f) : 0;
    text[n] = 0;
    if (f) fclose(f);
    return text;
}

static void compare(const char *path, const char *got) {
    char name[600];
    snprintf(name, sizeof name, "%.*s.expected", (int)(strlen(path) - 4), path);
    if (getenv("CK_GOLDEN_UPDATE")) {
        FILE *f = fopen(name, "wb");
        assert_non_null(f);
        fputs(got, f);
        fclose(f);
        return;
    }
    char *want = read_file(name);
    if (strcmp(want, got) != 0) print_message("%s:\n--- wanted\n%s--- got\n%s", path, want, got);
    assert_string_equal(want, got);
    free(want);
}

static void ways_out(const char *path, const char *from, const ck_sql_options *o, char *out) {
    while (from) {
        const char *begin = strchr(from, '\n') + 1, *next = strstr(begin, "-- way out:");
        size_t n = next ? (size_t)(next - begin) : strlen(begin);
        ck_status st = result_of(begin, n, o, out, TEXT_MAX);
        if (st != CK_OK) print_message("%s: a way out does not compile:\n%.*s\n%s", path, (int)n, begin, out);
        assert_int_equal(st, CK_OK);
        from = next;
    }
}

static void one_file(const char *path, bool fails) {
    char *sql = read_file(path), *out = malloc(TEXT_MAX);
    assert_non_null(out);
    ck_sql_options o = options_of(sql);
    const char *way = strstr(sql, "-- way out:");
    ck_status st = result_of(sql, way ? (size_t)(way - sql) : strlen(sql), &o, out, TEXT_MAX);
    if ((st != CK_OK) != fails) print_message("%s: %s\n", path, out);
    assert_int_equal(st != CK_OK, fails);
    compare(path, out);
    ways_out(path, way, &o, out);
    free(out);
    free(sql);
}

static int sql_files(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 4 && strcmp(e->d_name + n - 4, ".sql") == 0;
}

static void whole_folder(const char *folder, bool fails) {
    struct dirent **list;
    int n = scandir(folder, &list, sql_files, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        one_file(path, fails);
        free(list[i]);
    }
    free(list);
}

static void plans(void **state) {
    (void)state;
    whole_folder("tests/sql/plan", false);
}
static void errors(void **state) {
    (void)state;
    whole_folder("tests/sql/error", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans), cmocka_unit_test(errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
