/* Bound expressions: made, compared, searched, copied with columns replaced. See tree.h. */
#include "expr/tree_int.h"

#include "base/hash.h"

static uint64_t hash_datum(const ck_type *t, const ck_datum *d) {
    if (d->null) return 1;
    uint64_t word = 0;
    switch (ck_type_phys(t)) {
    case CK_PHYS_BOOL: return d->b ? 3 : 2;
    case CK_PHYS_I64: return ck_mix64((uint64_t)d->i64);
    case CK_PHYS_F64: memcpy(&word, &d->f64, sizeof word); return ck_mix64(word);
    case CK_PHYS_I128: return ck_hash_combine((uint64_t)d->i128, (uint64_t)((ck_u128)d->i128 >> 64));
    case CK_PHYS_VIEW: return ck_fnv1a(d->str.p, d->str.n);
    default: return 0;
    }
}

/* Consistent with ck_expr_equal. */
static void set_hash(ck_expr *e) {
    uint64_t h = ck_hash_combine((uint64_t)e->kind, (uint64_t)e->type->kind);
    if (e->kind == CK_EXPR_COLUMN) h = ck_hash_combine(h, e->column);
    if (e->kind == CK_EXPR_LITERAL) h = ck_hash_combine(h, hash_datum(e->type, &e->value));
    if (e->kind == CK_EXPR_CALL) h = ck_hash_combine(h, ck_fnv1a(e->fn->name, strlen(e->fn->name)));
    for (uint32_t i = 0; i < e->arg_count; i++) h = ck_hash_combine(h, e->args[i]->hash);
    e->hash = h;
}

static ck_expr *new_expr(ck_arena *a, ck_expr_kind kind, const ck_type *type, bool nullable) {
    ck_expr *e = CK_ARENA_NEW(a, ck_expr);
    if (e) e->kind = kind, e->type = type, e->nullable = nullable;
    return e;
}

ck_expr *ck_expr_column(ck_arena *a, uint32_t column, const ck_type *type, bool nullable) {
    ck_expr *e = new_expr(a, CK_EXPR_COLUMN, type, nullable);
    if (!e) return NULL;
    e->column = column;
    set_hash(e);
    return e;
}

static bool is_text(const ck_type *t) { return t->kind == CK_TYPE_VARCHAR || t->kind == CK_TYPE_BYTES; }

ck_expr *ck_expr_literal(ck_arena *a, const ck_type *type, ck_datum value) {
    ck_expr *e = new_expr(a, CK_EXPR_LITERAL, type, value.null);
    if (!e) return NULL;
    if (value.null) {
        e->value.null = true;
    } else if (is_text(type)) {
        char *copy = ck_arena_strndup(a, value.str.p, value.str.n);
        if (!copy) return NULL;
        e->value.str = (ck_view){copy, value.str.n};
    } else {
        e->value = value;
    }
    set_hash(e);
    return e;
}

ck_expr *ck_expr_null(ck_arena *a, const ck_type *type) { return ck_expr_literal(a, type, (ck_datum){.null = true}); }

ck_expr *ck_expr_new_call(ck_arena *a, const ck_function *fn, const ck_impl *impl, ck_expr *const *args,
                          uint32_t arg_count, const ck_type *type, bool nullable) {
    ck_expr *e = new_expr(a, CK_EXPR_CALL, type, nullable);
    ck_expr **copy = e ? ck_arena_array(a, arg_count ? arg_count : 1, sizeof *copy) : NULL;
    if (!copy) return NULL;
    if (arg_count) memcpy(copy, args, arg_count * sizeof *copy);
    e->fn = fn, e->impl = impl, e->args = copy, e->arg_count = arg_count;
    set_hash(e);
    return e;
}

uint32_t ck_expr_flags(const ck_expr *e) {
    if (e->kind != CK_EXPR_CALL) return 0;
    uint32_t flags = e->fn->flags | e->impl->flags;
    return flags & CK_FN_TRY ? flags & ~(uint32_t)CK_FN_FALLIBLE : flags;
}

void ck_expr_fails_to_null(ck_expr *made, ck_expr *const *args, uint32_t arg_count) {
    if (made->kind != CK_EXPR_CALL) return;
    for (uint32_t i = 0; i < arg_count; i++)
        if (made == args[i]) return;
    bool null_below = false;
    for (uint32_t i = 0; i < made->arg_count; i++) { /* casts and calls that binding has put between */
        ck_expr_fails_to_null(made->args[i], args, arg_count);
        null_below = null_below || (made->args[i]->kind == CK_EXPR_CALL && made->args[i]->fails_to_null);
    }
    if (made->nullable) return;
    uint32_t flags = ck_expr_flags(made);
    if (!(flags & CK_FN_FALLIBLE) && (!null_below || (flags & (CK_FN_NULLS | CK_FN_LAZY)) == CK_FN_NULLS)) return;
    made->nullable = made->fails_to_null = true;
}

bool ck_expr_is_text_literal(const ck_expr *e) {
    return e->kind == CK_EXPR_LITERAL && e->type->kind == CK_TYPE_VARCHAR && !e->value.null;
}
bool ck_expr_is_null_literal(const ck_expr *e) {
    return e->type->kind == CK_TYPE_NULL || (e->kind == CK_EXPR_LITERAL && e->value.null);
}

/* ---- equality ---- */

static bool same_datum(const ck_type *t, const ck_datum *a, const ck_datum *b) {
    if (a->null || b->null) return a->null && b->null;
    switch (ck_type_phys(t)) {
    case CK_PHYS_BOOL: return a->b == b->b;
    case CK_PHYS_I64: return a->i64 == b->i64;
    case CK_PHYS_F64: return memcmp(&a->f64, &b->f64, sizeof a->f64) == 0; /* 0.0 and -0.0 print differently */
    case CK_PHYS_I128: return a->i128 == b->i128;
    case CK_PHYS_VIEW: return ck_view_eq(a->str, b->str);
    default: return true;
    }
}

bool ck_expr_equal(const ck_expr *a, const ck_expr *b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->nullable != b->nullable || !ck_type_eq(a->type, b->type)) return false;
    if (a->kind == CK_EXPR_COLUMN) return a->column == b->column;
    if (a->kind == CK_EXPR_LITERAL) return same_datum(a->type, &a->value, &b->value);
    if (a->fn != b->fn || a->impl != b->impl || a->arg_count != b->arg_count) return false;
    for (uint32_t i = 0; i < a->arg_count; i++)
        if (!ck_expr_equal(a->args[i], b->args[i])) return false;
    return true;
}

/* ---- questions ---- */

bool ck_expr_any_flag(const ck_expr *e, uint32_t flags) {
    if (e->kind != CK_EXPR_CALL) return false;
    if (ck_expr_flags(e) & flags) return true;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (ck_expr_any_flag(e->args[i], flags)) return true;
    return false;
}

bool ck_expr_is_volatile(const ck_expr *e) { return ck_expr_any_flag(e, CK_FN_VOLATILE | CK_FN_NOW); }
bool ck_expr_is_fallible(const ck_expr *e) { return ck_expr_any_flag(e, CK_FN_FALLIBLE); }

static bool has_column(const ck_expr *e) {
    if (e->kind == CK_EXPR_COLUMN) return true;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (has_column(e->args[i])) return true;
    return false;
}

bool ck_expr_is_constant(const ck_expr *e) { return !has_column(e) && !ck_expr_is_volatile(e); }

void ck_expr_visit_columns(const ck_expr *e, void (*fn)(void *arg, uint32_t column), void *arg) {
    if (e->kind == CK_EXPR_COLUMN) fn(arg, e->column);
    for (uint32_t i = 0; i < e->arg_count; i++) ck_expr_visit_columns(e->args[i], fn, arg);
}

ck_status ck_expr_check_columns(const ck_expr *e, const ck_schema *s, ck_error *err) {
    if (e->kind == CK_EXPR_COLUMN) {
        if (e->column >= s->field_count)
            return ck_fail(err, CK_INVALID, "column %u of %u columns", e->column, s->field_count);
        if (!ck_type_eq(e->type, s->fields[e->column].type))
            return ck_fail(err, CK_INVALID, "column %u (%s) has another type", e->column, s->fields[e->column].name);
    }
    for (uint32_t i = 0; i < e->arg_count; i++) CK_TRY(ck_expr_check_columns(e->args[i], s, err));
    return CK_OK;
}

/* ---- substitution ---- */

/* With map NULL a plain deep copy. */
static ck_expr *copy_mapped(ck_arena *a, const ck_expr *e, ck_expr *const *map, uint32_t map_count) {
    if (e->kind == CK_EXPR_COLUMN && map) {
        CK_ASSERT(e->column < map_count && map[e->column]);
        ck_expr *c = copy_mapped(a, map[e->column], NULL, 0);
        if (c && c->kind == CK_EXPR_COLUMN) c->line = e->line, c->col = e->col;
        return c;
    }
    ck_expr *copy = ck_arena_alloc(a, sizeof *copy);
    if (!copy) return NULL;
    *copy = *e;
    if (e->kind != CK_EXPR_CALL) return copy;
    copy->args = ck_arena_array(a, e->arg_count ? e->arg_count : 1, sizeof *copy->args);
    if (!copy->args) return NULL;
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (!(copy->args[i] = copy_mapped(a, e->args[i], map, map_count))) return NULL;
    set_hash(copy);
    return copy;
}

ck_expr *ck_expr_substitute(ck_arena *a, const ck_expr *e, ck_expr *const *map, uint32_t map_count) {
    static ck_expr *const none[1];
    return copy_mapped(a, e, map ? map : none, map_count);
}
