/* Uids: operators that share a base name all get the hash of what they do behind it, equal ones an ordinal. */
#include "base/map.h"
#include "sql/lower/lower_int.h"

typedef struct group {
    uint32_t count;
} group;

static ck_status count_names(ck_lower_state *s, ck_map *names) {
    for (uint32_t i = 0; i < s->op_count; i++) {
        ck_view base = ck_view_of(s->ops[i].base);
        group *g = ck_map_get(names, base);
        if (!g) {
            if (!(g = CK_LOWER_ARRAY(s, 1, group))) return CK_NOMEM;
            if (ck_map_put(names, base, g, NULL) != CK_OK) return ck_lower_nomem(s);
        }
        g->count++;
    }
    return CK_OK;
}

static ck_status name_one(ck_lower_state *s, const ck_map *bases, ck_map *taken, ck_planned_op *op) {
    const group *g = ck_map_get(bases, ck_view_of(op->base));
    uint32_t hex = (uint32_t)(op->canonical ^ op->canonical >> 32);
    op->uid = g->count == 1 ? op->base : ck_arena_printf(s->arena, "%s~%08x", op->base, hex);
    const char *plain = op->uid;
    for (uint32_t n = 2; op->uid && ck_map_find(taken, ck_view_of(op->uid)); n++)
        op->uid = ck_arena_printf(s->arena, "%s~%u", plain, n);
    if (!op->uid || ck_map_put(taken, ck_view_of(op->uid), op, NULL) != CK_OK) return ck_lower_nomem(s);
    return CK_OK;
}

ck_status ck_lower_uids(ck_lower_state *s) {
    ck_map bases, taken;
    ck_map_init(&bases, s->arena, false);
    ck_map_init(&taken, s->arena, false);
    CK_TRY(count_names(s, &bases));
    for (uint32_t i = 0; i < s->op_count; i++) CK_TRY(name_one(s, &bases, &taken, &s->ops[i]));
    return CK_OK;
}
