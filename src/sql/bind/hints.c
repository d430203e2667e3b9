/* Hints of a SELECT: STATE_TTL, how long state made of a table's rows is kept when nothing writes it. */
#include "base/suggest.h"
#include "sql/bind/bind_int.h"

static ck_status check(ck_binder *b, const ck_ast_hint *h, uint32_t *count) {
    if (!ck_view_eq_nocase(h->name.text, CK_VIEW("STATE_TTL")))
        return ck_bind_refuse(b, h->name.pos, "hint %.*s is not supported; STATE_TTL('t' = '1h') is",
                              ck_cut(h->name.text), h->name.text.p);
    if (!h->options)
        return ck_bind_fail(b, h->name.pos, "STATE_TTL names tables of this FROM: STATE_TTL('t' = '1h', 'u' = '2h')");
    for (const ck_ast_option *o = h->options; o; o = o->next, (*count)++) {
        int64_t us;
        if (!ck_duration_us(o->value, &us))
            return ck_bind_fail(b, o->value_pos,
                                "a time to live is a time with its unit, '1h', '30 min', '2 days', or 0");
    }
    return CK_OK;
}

ck_status ck_bind_hints_begin(ck_binder *b, const ck_ast_hint *hints, ck_ttl_hints *out) {
    uint32_t count = 0;
    for (const ck_ast_hint *h = hints; h; h = h->next) CK_TRY(check(b, h, &count));
    *out = (ck_ttl_hints){hints, CK_BIND_ARRAY(b, count, bool), b->ttl_hints};
    if (!out->used) return CK_NOMEM;
    b->ttl_hints = out;
    return CK_OK;
}

ck_status ck_bind_hints_end(ck_binder *b, ck_ttl_hints *hints) {
    uint32_t i = 0;
    b->ttl_hints = hints->around;
    for (const ck_ast_hint *h = hints->hints; h; h = h->next)
        for (const ck_ast_option *o = h->options; o; o = o->next)
            if (!hints->used[i++])
                return ck_bind_fail(b, o->pos, "STATE_TTL: nothing in this FROM is called \"%.*s\"", ck_cut(o->key),
                                    o->key.p);
    return CK_OK;
}

ck_status ck_bind_ttl_hint(ck_binder *b, ck_view known_as, ck_plan_node **n) {
    uint32_t i = 0;
    int64_t us;
    for (const ck_ast_hint *h = b->ttl_hints ? b->ttl_hints->hints : NULL; h; h = h->next)
        for (const ck_ast_option *o = h->options; o; o = o->next, i++) {
            if (!known_as.n || !ck_view_eq_nocase(o->key, known_as) || !ck_duration_us(o->value, &us)) continue;
            b->ttl_hints->used[i] = true;
            CK_TRY(ck_bind_rename(b, *n, NULL, n)); /* a node of its own: the table may be read elsewhere, too */
            (*n)->ttl_us = us;
        }
    return CK_OK;
}
