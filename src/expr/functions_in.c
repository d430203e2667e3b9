/* IN over a list of literals: a set made once. Every value becomes two words (and for long strings their bytes); a
 * short list is searched straight, a longer one through a hash table. */
#include "base/hash.h"
#include "data/key.h"
#include "expr/bits_int.h"
#include "expr/coerce.h"
#include "expr/compare_int.h"
#include "expr/functions_int.h"
#include "expr/lazy.h"

typedef struct in_key {
    uint64_t a, b;
    const char *p; /* bytes of a string that is not inline, their number is in a */
} in_key;

typedef struct in_set {
    in_key *keys;
    uint32_t count;
    uint32_t *slots; /* key + 1; 0 = free; NULL: a short list */
    uint32_t mask;
    bool has_null;
} in_set;

enum { IN_STRAIGHT_MAX = 6 };

static inline in_key view_key(const ck_column *c, uint32_t i) {
    in_key k = {0};
    const ck_strview *v = &c->views[i];
    memcpy(&k.a, v, 8);
    if (v->length <= CK_STRVIEW_INLINE) {
        memcpy(&k.b, (const char *)v + 8, 8);
        return k;
    }
    k.p = ck_column_str(c, i).p;
    k.b = ck_hash_bytes(0, k.p, (size_t)v->length);
    return k;
}

static inline in_key key_of(const ck_column *c, uint32_t i) {
    in_key k = {0};
    switch (c->phys) {
    case CK_PHYS_I64: k.a = (uint64_t)c->i64[i]; return k;
    case CK_PHYS_F64: {
        double d = ck_double_canonical(c->f64[i]);
        memcpy(&k.a, &d, 8);
        return k;
    }
    case CK_PHYS_I128: k.a = (uint64_t)c->i128[i], k.b = (uint64_t)((ck_u128)c->i128[i] >> 64); return k;
    default: return view_key(c, i);
    }
}

static inline bool same_key(const in_key *x, const in_key *y) {
    if (x->a != y->a || x->b != y->b) return false;
    return !x->p || memcmp(x->p, y->p, (uint32_t)x->a) == 0; /* the length is the low half of a */
}

static inline bool contains(const in_set *s, in_key k) {
    if (!s->slots) {
        bool found = false;
        for (uint32_t i = 0; i < s->count; i++) found |= same_key(&s->keys[i], &k);
        return found;
    }
    for (uint32_t at = (uint32_t)ck_hash_combine(k.a, k.b) & s->mask; s->slots[at]; at = (at + 1) & s->mask)
        if (same_key(&s->keys[s->slots[at] - 1], &k)) return true;
    return false;
}

static void insert(in_set *s, uint32_t i) {
    uint32_t at = (uint32_t)ck_hash_combine(s->keys[i].a, s->keys[i].b) & s->mask;
    while (s->slots[at]) at = (at + 1) & s->mask;
    s->slots[at] = i + 1;
}

static void drop_column(void *arg) {
    ck_column *c = arg;
    ck_column_unref(&c);
}

static ck_status prepare_set(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    uint32_t n = call->arg_count - 1, slots = 16;
    while (slots < n * 2) slots *= 2;
    in_set *s = CK_ARENA_NEW(&ev->arena, in_set);
    if (!s || !(s->keys = ck_arena_array(&ev->arena, n, sizeof *s->keys)))
        return ck_nomem(err, ev->mem, n * sizeof *s->keys);
    for (uint32_t i = 0; i < n; i++) {
        const ck_expr *e = call->args[i + 1];
        if (e->value.null) {
            s->has_null = true;
            continue;
        }
        ck_column *c;
        CK_TRY(ck_literal_column(ev->mem, e->type, &e->value, &c, err));
        CK_TRY(ck_arena_on_reset(&ev->arena, drop_column, c)); /* keys of long strings point into it */
        s->keys[s->count++] = key_of(c, 0);
    }
    *state = s;
    if (s->count <= IN_STRAIGHT_MAX) return CK_OK;
    s->slots = ck_arena_array(&ev->arena, slots, sizeof *s->slots);
    if (!s->slots) return ck_nomem(err, ev->mem, slots * sizeof *s->slots);
    s->mask = slots - 1;
    for (uint32_t i = 0; i < s->count; i++) insert(s, i);
    return CK_OK;
}

/* A short list of integers: one comparison of the whole column each. */
static bool compare_all(const ck_eval *ev, const in_set *s, const ck_vec *v, const ck_rows *rows, uint64_t *bits) {
    if (s->slots || rows->sel || v->constant || v->col->phys != CK_PHYS_I64) return false;
    uint64_t one[CK_BATCH_ROWS_MAX / 64];
    size_t words = ck_bitmap_words(rows->n);
    memset(bits, 0, words * sizeof *bits);
    for (uint32_t i = 0; i < s->count; i++) {
        int64_t value = (int64_t)s->keys[i].a;
        ev->kernels->cmp_i64[CK_CMP_EQ][1](one, v->col->i64, &value, rows->n);
        for (size_t w = 0; w < words; w++) bits[w] |= one[w];
    }
    return true;
}

static ck_status kernel_in(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows, ck_vec *out,
                           ck_error *err) {
    (void)call;
    const in_set *s = ck_eval_state(ev);
    const ck_column *c = args[0].col;
    bool constant = args[0].constant;
    CK_TRY(ck_eval_result(ev, CK_PHYS_BOOL, rows, out, err));
    if (!compare_all(ev, s, &args[0], rows, out->col->bits))
        CK_FILL_BITS(out->col->bits, rows, i, contains(s, key_of(c, constant ? 0 : i)));
    if (!s->has_null) return CK_OK;
    uint64_t *valid = ck_column_writable_validity(out->col); /* not found among what may be anything: NULL */
    memcpy(valid, out->col->bits, ck_bitmap_words(rows->row_count) * sizeof *valid);
    return CK_OK;
}

static ck_status select_in(ck_eval *ev, const ck_expr *call, const ck_vec *args, const ck_rows *rows,
                           const uint64_t *valid, uint16_t *sel, uint32_t *sel_count, ck_error *err) {
    (void)call, (void)valid, (void)err;
    const in_set *s = ck_eval_state(ev);
    const ck_column *c = args[0].col;
    if (compare_all(ev, s, &args[0], rows, ev->words[1]))
        *sel_count = ev->kernels->bits_to_sel(sel, ev->words[1], rows->n);
    else
        CK_FILL_ROWS(sel, sel_count, rows, i, contains(s, key_of(c, i)));
    return CK_OK;
}

static const ck_impl impl_in = {.kernel = kernel_in, .flags = CK_FN_FIRST, .select = select_in, .prepare = prepare_set};

ck_status ck_bind_in_set(ck_bind_call *call, ck_error *err) {
    const ck_type *type = NULL;
    /* No common type, or one that rounds (a DOUBLE list for a DECIMAL): one comparison each. */
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const ck_expr *e = call->args[i];
        if (ck_expr_is_text_literal(e) && i) continue;
        if (e->type->kind == CK_TYPE_DECIMAL || ck_kind_is_float(e->type->kind))
            if (type && ck_kind_is_numeric(type->kind) && type->kind != e->type->kind) return CK_OK;
        type = type ? ck_common_type(call->arena, type, e->type) : e->type;
        if (!type) return CK_OK;
    }
    ck_phys phys = ck_type_phys(type);
    if (phys != CK_PHYS_I64 && phys != CK_PHYS_F64 && phys != CK_PHYS_I128 && phys != CK_PHYS_VIEW) return CK_OK;
    CK_TRY(ck_unify(call, call->args, NULL, call->arg_count, &type, err));
    for (uint32_t i = 1; i < call->arg_count; i++)
        if (call->args[i]->kind != CK_EXPR_LITERAL) return CK_OK; /* a conversion that needs the time zone */
    call->impl = &impl_in;
    return CK_OK;
}
