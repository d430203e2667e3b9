/* Labels for people: what an operator does, in SQL's words. Long ones are cut. */
#include "sql/lower/lower_int.h"

enum { LABEL_BYTES_MAX = 300 };

const char *ck_label_cut(ck_lower_state *s, ck_bytes *text, ck_status st) {
    size_t n = text->n;
    bool cut = n > LABEL_BYTES_MAX;
    if (cut) {
        n = LABEL_BYTES_MAX;
        while (n && ((unsigned char)text->p[n] & 0xC0) == 0x80) n--;
    }
    const char *out =
        st == CK_OK ? ck_arena_printf(s->arena, "%.*s%s", (int)n, text->p ? text->p : "", cut ? "..." : "") : NULL;
    ck_bytes_destroy(text);
    return out;
}

const char *ck_label_exprs(ck_lower_state *s, const char *before, const char *between, const ck_plan_node *input,
                           ck_expr *const *exprs, uint32_t count, const ck_schema *names) {
    const char *const *columns = ck_plan_names(s->l->plan, input);
    ck_bytes text;
    ck_bytes_init(&text, s->arena->mem, SIZE_MAX);
    ck_status st = columns ? ck_bytes_str(&text, before) : CK_NOMEM;
    for (uint32_t i = 0; st == CK_OK && i < count && text.n <= LABEL_BYTES_MAX; i++) {
        if (i) st = ck_bytes_str(&text, between);
        size_t from = text.n;
        if (st == CK_OK) st = ck_expr_print_for_people(exprs[i], columns, &text);
        const char *name = names ? names->fields[i].name : "";
        bool says_name = ck_view_is((ck_view){text.p + from, text.n - from}, name);
        if (st == CK_OK && *name && !says_name) st = ck_bytes_printf(&text, " AS %s", name);
    }
    return ck_label_cut(s, &text, st);
}

const char *ck_label_columns(ck_lower_state *s, const ck_schema *schema, ck_columns columns) {
    ck_bytes text;
    ck_bytes_init(&text, s->arena->mem, SIZE_MAX);
    ck_status st = CK_OK;
    for (uint32_t i = 0; st == CK_OK && i < columns.count && text.n <= LABEL_BYTES_MAX; i++)
        st = ck_bytes_printf(&text, "%s%s", i ? ", " : "", schema->fields[columns.at ? columns.at[i] : i].name);
    return ck_label_cut(s, &text, st);
}

const char *ck_label_duration(ck_lower_state *s, int64_t us) {
    static const struct {
        int64_t us;
        const char *word;
    } units[] = {{86400000000LL, "d"}, {3600000000LL, "h"}, {60000000LL, "min"},
                 {1000000, "s"},       {1000, "ms"},        {1, "us"}};
    size_t i = 0;
    while (us % units[i].us != 0) i++;
    return ck_arena_printf(s->arena, "%lld %s", (long long)(us / units[i].us), units[i].word);
}
