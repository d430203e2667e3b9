/* See modules.h. */
#include "os/modules.h"

#include <dlfcn.h>
#include <pthread.h>

typedef struct module {
    struct module *next;
    const ck_module_desc *desc;
    void *table[];
} module;

typedef struct ck_modules {
    ck_heap *heap;
    pthread_mutex_t lock;
    module *first;
} ck_modules;

static size_t bytes_of(const ck_module_desc *d) { return sizeof(module) + d->count * sizeof(void *); }

ck_status ck_modules_new(ck_heap *heap, ck_modules **out, ck_error *err) {
    ck_modules *m = heap->alloc(heap, sizeof *m);
    if (!m) return ck_fail(err, CK_NOMEM, "no memory for %zu bytes", sizeof *m);
    *m = (ck_modules){.heap = heap};
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return CK_OK;
}

void ck_modules_free(ck_modules *m) {
    if (!m) return;
    for (module *at = m->first; at;) {
        module *next = at->next;
        m->heap->free(m->heap, at, bytes_of(at->desc));
        at = next;
    }
    pthread_mutex_destroy(&m->lock);
    m->heap->free(m->heap, m, sizeof *m);
}

static ck_status fill(module *made, ck_error *err) {
    const ck_module_desc *d = made->desc;
    void *handle = dlopen(d->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return ck_fail(err, CK_NOTFOUND, "%s needs the library %s, which is not there (Debian: apt-get install %s)",
                       d->for_what, d->file, d->package);
    for (size_t i = 0; i < d->count; i++)
        if (!(made->table[i] = dlsym(handle, d->functions[i]))) {
            dlclose(handle);
            return ck_fail(err, CK_NOTFOUND, "%s needs a newer %s: this one lacks %s", d->for_what, d->file,
                           d->functions[i]);
        }
    return CK_OK;
}

static ck_status open_locked(ck_modules *m, const ck_module_desc *d, const void **table, ck_error *err) {
    for (const module *at = m->first; at; at = at->next)
        if (at->desc == d) {
            *table = at->table;
            return CK_OK;
        }
    module *made = m->heap->alloc(m->heap, bytes_of(d));
    if (!made) return ck_fail(err, CK_NOMEM, "no memory for %zu bytes", bytes_of(d));
    made->desc = d;
    ck_status s = fill(made, err);
    if (s != CK_OK) {
        m->heap->free(m->heap, made, bytes_of(d));
        return s;
    }
    made->next = m->first;
    m->first = made;
    *table = made->table;
    return CK_OK;
}

ck_status ck_module_open(ck_proc *p, const ck_module_desc *d, const void **table, ck_error *err) {
    if (!p->modules)
        return ck_fail(err, CK_REFUSED, "%s needs %s, and no library is opened here", d->for_what, d->file);
    pthread_mutex_lock(&p->modules->lock);
    ck_status s = open_locked(p->modules, d, table, err);
    pthread_mutex_unlock(&p->modules->lock);
    return s;
}
