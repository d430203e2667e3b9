/* See metrics.h. The registry is a hash table under a lock, of metrics that never move; updates go to them past it. */
#include "metrics/metrics.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/hash.h"

enum { METRICS_MAX = 65536, TEXT_BYTES_MAX = 4096, FIRST_SLOTS = 64 };

/* One allocation: this head, the value that users hold a pointer to, the text "name\0labels\0". */
typedef struct metric {
    struct metric *next; /* of the same slot */
    uint64_t hash;
    uint32_t refs;
    ck_metric_kind kind;
    size_t bytes; /* of this allocation */
    char *text;
    size_t text_bytes; /* with its last NUL */
} metric;

static void *value_of(metric *x) { return x + 1; }
static metric *of_value(void *value) { return (metric *)value - 1; }
static const char *labels_of(const metric *x) { return x->text + strlen(x->text) + 1; }

struct ck_metrics {
    ck_proc *proc;
    ck_mem mem;
    pthread_mutex_t lock; /* guards everything below */
    metric **slots;
    size_t slot_count, count;
};

ck_status ck_metrics_new(ck_proc *proc, ck_metrics **out, ck_error *err) {
    *out = NULL;
    ck_mem mem = ck_proc_mem(proc, CK_MEM_PLAN);
    ck_metrics *m = ck_alloc_zero(mem, sizeof *m);
    if (!m) return ck_nomem(err, mem, sizeof *m);
    m->proc = proc, m->mem = mem;
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return CK_OK;
}

static void free_metric(ck_metrics *m, metric *x) { ck_free(m->mem, x, x->bytes); }

void ck_metrics_free(ck_metrics *m) {
    if (!m) return;
    for (size_t i = 0; i < m->slot_count; i++) {
        while (m->slots[i]) {
            metric *x = m->slots[i];
            m->slots[i] = x->next;
            free_metric(m, x);
        }
    }
    ck_free(m->mem, m->slots, m->slot_count * sizeof *m->slots);
    pthread_mutex_destroy(&m->lock);
    ck_free(m->mem, m, sizeof *m);
}

/* ---- names ---- */

static bool is_name(const char *z) {
    if (!*z || (*z >= '0' && *z <= '9')) return false;
    for (; *z; z++) {
        char c = ck_ascii_lower(*z);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') return false;
    }
    return true;
}

static ck_status append_value(ck_bytes *b, const char *v) {
    for (; *v; v++) {
        if (*v == '\\' || *v == '"' || *v == '\n') CK_TRY(ck_bytes_char(b, '\\'));
        CK_TRY(ck_bytes_char(b, *v == '\n' ? 'n' : *v));
    }
    return CK_OK;
}

/* "name\0key="value",..." */
static ck_status render(ck_bytes *b, const char *name, const ck_label *labels, size_t label_count, ck_error *err) {
    if (!is_name(name)) return ck_fail(err, CK_INVALID, "'%s' does not name a metric", name);
    ck_status s = ck_bytes_append(b, name, strlen(name) + 1);
    for (size_t i = 0; s == CK_OK && i < label_count; i++) {
        if (!is_name(labels[i].key))
            return ck_fail(err, CK_INVALID, "'%s' does not name a label of the metric %s", labels[i].key, name);
        s = ck_bytes_printf(b, "%s%s=\"", i ? "," : "", labels[i].key);
        if (s == CK_OK) s = append_value(b, labels[i].value);
        if (s == CK_OK) s = ck_bytes_char(b, '"');
    }
    if (s == CK_OK) s = ck_bytes_char(b, 0);
    if (s == CK_FULL) return ck_fail(err, CK_FULL, "the labels of the metric %.100s are too long", name);
    return s == CK_OK ? CK_OK : ck_nomem(err, b->mem, TEXT_BYTES_MAX);
}

/* ---- the table ---- */

static metric **find(ck_metrics *m, const ck_bytes *text, uint64_t hash) {
    metric **at = &m->slots[hash & (m->slot_count - 1)];
    while (*at &&
           ((*at)->hash != hash || !ck_view_eq((ck_view){(*at)->text, (*at)->text_bytes}, ck_bytes_as_view(text))))
        at = &(*at)->next;
    return at;
}

static bool grow(ck_metrics *m) {
    size_t slot_count = m->slot_count ? m->slot_count * 2 : FIRST_SLOTS;
    metric **slots = ck_alloc_zero(m->mem, slot_count * sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < m->slot_count; i++) {
        while (m->slots[i]) {
            metric *x = m->slots[i];
            m->slots[i] = x->next;
            x->next = slots[x->hash & (slot_count - 1)];
            slots[x->hash & (slot_count - 1)] = x;
        }
    }
    ck_free(m->mem, m->slots, m->slot_count * sizeof *m->slots);
    m->slots = slots, m->slot_count = slot_count;
    return true;
}

static size_t value_bytes(ck_metric_kind kind) {
    return kind == CK_METRIC_HISTOGRAM ? sizeof(ck_histogram)
           : kind == CK_METRIC_GAUGE   ? sizeof(ck_gauge)
                                       : sizeof(ck_counter);
}

static metric *metric_new(ck_metrics *m, const ck_bytes *text, uint64_t hash, ck_metric_kind kind) {
    size_t bytes = sizeof(metric) + value_bytes(kind) + text->n;
    metric *x = ck_alloc_zero(m->mem, bytes);
    if (!x) return NULL;
    *x = (metric){.hash = hash, .kind = kind, .bytes = bytes, .text_bytes = text->n};
    x->text = (char *)value_of(x) + value_bytes(kind);
    memcpy(x->text, text->p, text->n);
    return x;
}

static const char *kind_name(ck_metric_kind k) {
    return k == CK_METRIC_COUNTER ? "counter" : k == CK_METRIC_GAUGE ? "gauge" : "histogram";
}

static ck_status find_or_make(ck_metrics *m, const ck_bytes *text, ck_metric_kind kind, metric **out, ck_error *err) {
    if (m->count >= m->slot_count && !grow(m)) return ck_nomem(err, m->mem, m->slot_count * 2 * sizeof *m->slots);
    uint64_t hash = ck_fnv1a(text->p, text->n);
    metric **at = find(m, text, hash);
    if (*at && (*at)->kind != kind)
        return ck_fail(err, CK_INVALID, "the metric %s is a %s, not a %s", text->p, kind_name((*at)->kind),
                       kind_name(kind));
    if (!*at) {
        if (m->count == METRICS_MAX) return ck_fail(err, CK_FULL, "over %d metrics, at %s", METRICS_MAX, text->p);
        *at = metric_new(m, text, hash, kind);
        if (!*at) return ck_nomem(err, m->mem, sizeof **at);
        m->count++;
    }
    (*at)->refs++;
    *out = *at;
    return CK_OK;
}

static ck_status enroll(ck_metrics *m, const char *name, const ck_label *labels, size_t label_count,
                        ck_metric_kind kind, metric **out, ck_error *err) {
    *out = NULL;
    ck_bytes text;
    ck_bytes_init(&text, m->mem, TEXT_BYTES_MAX);
    ck_status s = render(&text, name, labels, label_count, err);
    if (s == CK_OK) {
        pthread_mutex_lock(&m->lock);
        s = find_or_make(m, &text, kind, out, err);
        pthread_mutex_unlock(&m->lock);
    }
    ck_bytes_destroy(&text);
    return s;
}

ck_status ck_metrics_counter(ck_metrics *m, const char *name, const ck_label *labels, size_t label_count,
                             ck_counter **out, ck_error *err) {
    metric *x;
    *out = NULL;
    CK_TRY(enroll(m, name, labels, label_count, CK_METRIC_COUNTER, &x, err));
    *out = value_of(x);
    return CK_OK;
}
ck_status ck_metrics_gauge(ck_metrics *m, const char *name, const ck_label *labels, size_t label_count, ck_gauge **out,
                           ck_error *err) {
    metric *x;
    *out = NULL;
    CK_TRY(enroll(m, name, labels, label_count, CK_METRIC_GAUGE, &x, err));
    *out = value_of(x);
    return CK_OK;
}
ck_status ck_metrics_histogram(ck_metrics *m, const char *name, const ck_label *labels, size_t label_count,
                               ck_histogram **out, ck_error *err) {
    metric *x;
    *out = NULL;
    CK_TRY(enroll(m, name, labels, label_count, CK_METRIC_HISTOGRAM, &x, err));
    *out = value_of(x);
    return CK_OK;
}

void ck_metrics_release(ck_metrics *m, void *value) {
    if (!value) return;
    metric *x = of_value(value);
    pthread_mutex_lock(&m->lock);
    bool last = --x->refs == 0;
    if (last) {
        metric **at = &m->slots[x->hash & (m->slot_count - 1)];
        while (*at != x) at = &(*at)->next;
        *at = x->next;
        m->count--;
    }
    pthread_mutex_unlock(&m->lock);
    if (last) free_metric(m, x);
}

/* ---- looking ---- */

static bool view_of(metric *x, ck_arena *arena, ck_metric_view *v) {
    *v = (ck_metric_view){
        .name = ck_arena_strdup(arena, x->text),
        .labels = ck_arena_strdup(arena, labels_of(x)),
        .kind = x->kind,
    };
    if (x->kind == CK_METRIC_COUNTER)
        v->counter = atomic_load_explicit(&((ck_counter *)value_of(x))->value, memory_order_relaxed);
    else if (x->kind == CK_METRIC_GAUGE)
        v->gauge = atomic_load_explicit(&((ck_gauge *)value_of(x))->value, memory_order_relaxed);
    else
        ck_histogram_look(value_of(x), &v->histogram);
    return v->name && v->labels;
}

static int by_name(const void *a, const void *b) {
    const ck_metric_view *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c ? c : strcmp(x->labels, y->labels);
}

ck_status ck_metrics_look(ck_metrics *m, ck_arena *arena, ck_metric_view **out, size_t *count, ck_error *err) {
    pthread_mutex_lock(&m->lock);
    *count = 0;
    *out = ck_arena_array(arena, m->count, sizeof **out);
    bool ok = *out != NULL;
    for (size_t i = 0; ok && i < m->slot_count; i++)
        for (metric *x = m->slots[i]; ok && x; x = x->next) ok = view_of(x, arena, &(*out)[(*count)++]);
    pthread_mutex_unlock(&m->lock);
    if (!ok) return ck_fail(err, CK_NOMEM, "no memory to look at the metrics");
    qsort(*out, *count, sizeof **out, by_name);
    return CK_OK;
}
