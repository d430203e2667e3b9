#include "connector/lookup_cache.h"

static void begin(const ck_lookup_cache *c, ck_answers *g) {
    ck_arena_init(&g->arena, ck_mem_as(c->mem, CK_MEM_STATE), SIZE_MAX);
    ck_map_init(&g->map, &g->arena, false);
}

void ck_lookup_cache_init(ck_lookup_cache *c, ck_mem mem) {
    *c = (ck_lookup_cache){.mem = mem};
    begin(c, &c->young);
    begin(c, &c->old);
}

void ck_lookup_cache_destroy(ck_lookup_cache *c) {
    ck_arena_destroy(&c->young.arena);
    ck_arena_destroy(&c->old.arena);
}

void ck_lookup_cache_turn_over(ck_lookup_cache *c) {
    if (c->young.arena.bytes <= (size_t)c->bytes_max / 2) return;
    ck_arena_destroy(&c->old.arena);
    c->old = c->young;
    c->old.map.arena = &c->old.arena;
    begin(c, &c->young);
}

static bool is_fresh(const ck_lookup_cache *c, const ck_kept_answer *a, int64_t now_us) {
    if (!a || a->at_us == CK_ANSWER_PENDING || a->at_us == CK_ANSWER_STALE) return false;
    return now_us - a->at_us < c->ttl_us || a->at_us == now_us;
}

void *ck_lookup_cache_find(const ck_lookup_cache *c, ck_view key, int64_t now_us) {
    ck_kept_answer *a = ck_map_get(&c->young.map, key);
    if (a) return a->at_us == CK_ANSWER_PENDING || is_fresh(c, a, now_us) ? a : NULL;
    a = ck_map_get(&c->old.map, key);
    return is_fresh(c, a, now_us) ? a : NULL;
}

void *ck_lookup_cache_ask(ck_lookup_cache *c, ck_view key, size_t bytes) {
    ck_kept_answer *a = ck_arena_zero(&c->young.arena, bytes);
    if (!a || ck_map_put(&c->young.map, key, a, NULL) != CK_OK) return NULL;
    a->at_us = CK_ANSWER_PENDING;
    return a;
}

ck_arena *ck_lookup_cache_arena(ck_lookup_cache *c) { return &c->young.arena; }

ck_status ck_lookup_cache_check(const ck_lookup_cache *c, const char *table, const char *advice, ck_error *err) {
    if (c->young.arena.bytes <= (size_t)c->bytes_max + CK_LOOKUP_SLACK_BYTES) return CK_OK;
    return ck_fail(err, CK_REFUSED,
                   "table \"%s\": what is found for one batch of rows takes more than lookup.max_bytes (%lld); %s",
                   table, (long long)c->bytes_max, advice);
}
