/* See memory.h. One lock a store: it is taken once a batch. */
#include "connector/memory/memory.h"

#include <pthread.h>
#include <string.h>

enum { INSTANCE_BYTES = 24 };

typedef struct memory_table memory_table;
struct memory_table {
    char instance[INSTANCE_BYTES];
    ck_batch **batches;
    size_t count, capacity;
    size_t coming; /* of the stage that is being committed; else 0 */
    memory_table *next;
};

struct ck_memory_store {
    ck_budget budget;
    ck_mem mem;
    pthread_mutex_t lock; /* guards tables */
    memory_table *tables;
};

typedef struct staged {
    char instance[INSTANCE_BYTES];
    ck_batch *batch;
    struct staged *next;
} staged;

struct ck_memory_stage {
    ck_memory_store *store;
    pthread_mutex_t lock; /* guards rows */
    staged *first, **last;
};

ck_status ck_memory_store_new(ck_heap *heap, size_t bytes_max, ck_memory_store **out) {
    ck_mem outer = {ck_budget_uncounted(), CK_MEM_STATE};
    ck_memory_store *s = ck_alloc_zero(outer, sizeof *s);
    if (!s) return CK_NOMEM;
    ck_budget_init(&s->budget, heap, bytes_max);
    s->mem = (ck_mem){&s->budget, CK_MEM_STATE};
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return CK_OK;
}

static void free_table(ck_memory_store *s, memory_table *t) {
    for (size_t i = 0; i < t->count; i++) ck_batch_unref(&t->batches[i]);
    ck_free(s->mem, t->batches, t->capacity * sizeof(ck_batch *));
    ck_free(s->mem, t, sizeof *t);
}

void ck_memory_store_free(ck_memory_store **ps) {
    ck_memory_store *s = *ps;
    *ps = NULL;
    if (!s) return;
    while (s->tables) {
        memory_table *t = s->tables;
        s->tables = t->next;
        free_table(s, t);
    }
    pthread_mutex_destroy(&s->lock);
    ck_free((ck_mem){ck_budget_uncounted(), CK_MEM_STATE}, s, sizeof *s);
}

static memory_table *find(ck_memory_store *s, const char *instance) { /* lock held */
    for (memory_table *t = s->tables; t; t = t->next)
        if (strcmp(t->instance, instance) == 0) return t;
    return NULL;
}

void ck_memory_store_drop(ck_memory_store *s, const char *instance) {
    pthread_mutex_lock(&s->lock);
    for (memory_table **at = &s->tables; *at; at = &(*at)->next) {
        memory_table *t = *at;
        if (strcmp(t->instance, instance) != 0) continue;
        *at = t->next;
        free_table(s, t);
        break;
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- what a job wrote ---- */

ck_status ck_memory_stage_new(ck_memory_store *s, ck_memory_stage **out) {
    ck_memory_stage *g = ck_alloc_zero(s->mem, sizeof *g);
    if (!g) return CK_NOMEM;
    g->store = s;
    g->last = &g->first;
    pthread_mutex_init(&g->lock, NULL);
    *out = g;
    return CK_OK;
}

static void drop_rows(ck_memory_stage *g) {
    while (g->first) {
        staged *r = g->first;
        g->first = r->next;
        ck_batch_unref(&r->batch);
        ck_free(g->store->mem, r, sizeof *r);
    }
    g->last = &g->first;
}

void ck_memory_stage_free(ck_memory_stage **pg) {
    ck_memory_stage *g = *pg;
    *pg = NULL;
    if (!g) return;
    drop_rows(g);
    pthread_mutex_destroy(&g->lock);
    ck_free(g->store->mem, g, sizeof *g);
}

ck_status ck_memory_stage_add(ck_memory_stage *g, const char *instance, const ck_batch *b, ck_error *err) {
    ck_mem mem = g->store->mem;
    staged *r = ck_alloc_zero(mem, sizeof *r);
    if (!r) return ck_nomem(err, mem, sizeof *r);
    size_t n = strlen(instance);
    r->batch = ck_batch_compact(b, mem);
    if (!r->batch || n >= INSTANCE_BYTES) {
        bool made = r->batch != NULL;
        ck_batch_unref(&r->batch);
        ck_free(mem, r, sizeof *r);
        return made ? ck_fail(err, CK_INVALID, "memory table '%s' has no such name", instance)
                    : ck_nomem(err, mem, b->bytes);
    }
    memcpy(r->instance, instance, n);
    ck_origin_unref(&r->batch->origin);
    pthread_mutex_lock(&g->lock);
    *g->last = r;
    g->last = &r->next;
    pthread_mutex_unlock(&g->lock);
    return CK_OK;
}

static memory_table *table_of(ck_memory_store *s, const char *instance) { /* lock held; makes it; NULL: no memory */
    memory_table *t = find(s, instance);
    if (t) return t;
    if (!(t = ck_alloc_zero(s->mem, sizeof *t))) return NULL;
    memcpy(t->instance, instance, sizeof t->instance);
    t->next = s->tables;
    s->tables = t;
    return t;
}

/* Room for what is coming and one more. */
static bool reserve(ck_memory_store *s, memory_table *t) {
    if (t->count + t->coming < t->capacity) return true;
    size_t more = t->capacity ? t->capacity * 2 : 8;
    ck_batch **p = ck_realloc(s->mem, t->batches, t->capacity * sizeof *p, more * sizeof *p);
    if (!p) return false;
    t->batches = p, t->capacity = more;
    return true;
}

/* lock held; all rows of the stage have room, or none is coming. */
static bool make_room(ck_memory_store *s, const ck_memory_stage *g) {
    bool ok = true;
    for (const staged *r = g->first; r && ok; r = r->next) {
        memory_table *t = table_of(s, r->instance);
        ok = t && reserve(s, t);
        if (ok) t->coming++;
    }
    for (memory_table *t = s->tables; t && !ok; t = t->next) t->coming = 0;
    return ok;
}

ck_status ck_memory_stage_commit(ck_memory_stage *g, ck_error *err) {
    ck_memory_store *s = g->store;
    pthread_mutex_lock(&s->lock);
    ck_status st = make_room(s, g) ? CK_OK : ck_nomem(err, s->mem, sizeof(memory_table));
    for (const staged *r = g->first; r && st == CK_OK; r = r->next) {
        memory_table *t = find(s, r->instance);
        t->batches[t->count++] = ck_batch_ref(r->batch);
        t->coming--;
    }
    pthread_mutex_unlock(&s->lock);
    drop_rows(g);
    return st;
}

/* ---- readers ---- */

size_t ck_memory_batches(ck_memory_stage *g, const char *instance) {
    pthread_mutex_lock(&g->store->lock);
    const memory_table *t = find(g->store, instance);
    size_t n = t ? t->count : 0;
    pthread_mutex_unlock(&g->store->lock);
    return n;
}

ck_batch *ck_memory_batch(ck_memory_stage *g, const char *instance, size_t i) {
    pthread_mutex_lock(&g->store->lock);
    memory_table *t = find(g->store, instance);
    ck_batch *b = t && i < t->count ? ck_batch_ref(t->batches[i]) : NULL;
    pthread_mutex_unlock(&g->store->lock);
    return b;
}
