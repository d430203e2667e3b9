#include "runtime/op_metrics.h"

#include <stdio.h>

enum { LABELS = 4 };

static void labels_of(const ck_op_ctx *ctx, ck_label labels[LABELS], char *subtask, size_t size) {
    const ck_job_settings *s = ctx->settings;
    snprintf(subtask, size, "%u", ctx->subtask);
    labels[0] = (ck_label){"job", s && s->job_name ? s->job_name : ""};
    labels[1] = (ck_label){"run", s && s->job_uuid ? s->job_uuid : ""};
    labels[2] = (ck_label){"op", ctx->uid ? ctx->uid : ""};
    labels[3] = (ck_label){"subtask", subtask};
}

void ck_op_counter_show(ck_op_counter *c, const ck_op_ctx *ctx, const char *name) {
    ck_label labels[LABELS];
    char subtask[16];
    ck_counter *made;
    if (!ctx->proc || !ctx->proc->metrics) return;
    labels_of(ctx, labels, subtask, sizeof subtask);
    /* A full registry costs the view, not the number. */
    if (ck_metrics_counter(ctx->proc->metrics, name, labels, LABELS, &made, NULL) == CK_OK) c->shown = made;
}

void ck_op_counter_release(ck_op_counter *c, ck_proc *proc) {
    ck_counter *shown = c->shown;
    if (!shown) return;
    atomic_store_explicit(&c->own.value, ck_op_counter_read(c), memory_order_relaxed);
    c->shown = NULL;
    ck_metrics_release(proc->metrics, shown);
}

/* ---- what a watermark waits for ---- */

void ck_op_clock_init(ck_op_clock *c) {
    *c = (ck_op_clock){0};
    pthread_mutex_init(&c->lock, NULL);
}

void ck_op_clock_destroy(ck_op_clock *c, ck_proc *proc) {
    if (c->watermark_us) ck_metrics_release(proc->metrics, c->watermark_us);
    if (c->idle_splits) ck_metrics_release(proc->metrics, c->idle_splits);
    if (c->held_us) ck_metrics_release(proc->metrics, c->held_us);
    pthread_mutex_destroy(&c->lock);
}

/* split NULL: of the whole source. */
static ck_gauge *gauge_of(const ck_op_ctx *ctx, const char *name, const char *split) {
    ck_label labels[LABELS + 1];
    char subtask[16];
    ck_gauge *made;
    if (!ctx->proc->metrics) return NULL;
    labels_of(ctx, labels, subtask, sizeof subtask);
    labels[LABELS] = (ck_label){"split", split};
    size_t n = split ? LABELS + 1 : LABELS;
    return ck_metrics_gauge(ctx->proc->metrics, name, labels, n, &made, NULL) == CK_OK ? made : NULL;
}

static ck_gauge *gauge(const ck_op_ctx *ctx, const char *name) { return gauge_of(ctx, name, NULL); }

enum { NAMED_EVERY_US = 1000000 }; /* registering takes a lock: splits that are read by turns hold time by turns */

/* The gauge of the split that holds time back: another one when another does. */
static void show_holder(ck_op_clock *c, const ck_op_ctx *ctx, const ck_clock_note *note) {
    if (note->holder != c->held_by) {
        int64_t now = ck_op_now_us(ctx);
        if (c->held_us && now >= c->held_since_us && now - c->held_since_us < NAMED_EVERY_US) return;
        if (c->held_us) ck_metrics_release(ctx->proc->metrics, c->held_us);
        c->held_us = note->holder ? gauge_of(ctx, "watermark_holder_us", c->holder) : NULL;
        c->held_by = note->holder;
        c->held_since_us = now;
    }
    if (c->held_us) ck_gauge_set(c->held_us, note->holder_us);
}

static const char *copy(const char *name, const char **seen, char *to) {
    if (!name) return NULL;
    if (name != *seen) snprintf(to, CK_CLOCK_NAME_BYTES, "%s", name);
    *seen = name;
    return to;
}

void ck_op_clock_take(ck_op_clock *c, const ck_op_ctx *ctx, const ck_clock_note *note) {
    if (!c->noted) { /* only this thread sets it */
        c->watermark_us = gauge(ctx, "watermark_us");
        c->idle_splits = gauge(ctx, "idle_splits");
    }
    if (c->watermark_us) ck_gauge_set(c->watermark_us, note->watermark_us);
    if (c->idle_splits) ck_gauge_set(c->idle_splits, note->idle_splits);
    pthread_mutex_lock(&c->lock);
    c->note = *note;
    c->note.holder = copy(note->holder, &c->holder_seen, c->holder);
    c->note.idle = copy(note->idle, &c->idle_seen, c->idle);
    c->noted = true;
    pthread_mutex_unlock(&c->lock);
    if (ctx->proc->metrics) show_holder(c, ctx, note);
}

bool ck_op_clock_read(ck_op_clock *c, ck_clock_note *out, char holder[CK_CLOCK_NAME_BYTES],
                      char idle[CK_CLOCK_NAME_BYTES]) {
    pthread_mutex_lock(&c->lock);
    bool noted = c->noted;
    if (noted) {
        *out = c->note;
        memcpy(holder, c->holder, CK_CLOCK_NAME_BYTES);
        memcpy(idle, c->idle, CK_CLOCK_NAME_BYTES);
        if (out->holder) out->holder = holder;
        if (out->idle) out->idle = idle;
    }
    pthread_mutex_unlock(&c->lock);
    return noted;
}

/* ---- how far a source is behind ---- */

void ck_op_lag_take(ck_op_lag *l, const ck_op_ctx *ctx, uint64_t records, int64_t us) {
    if (!atomic_load_explicit(&l->noted, memory_order_relaxed)) {
        l->shown_records = gauge(ctx, "lag_records");
        l->shown_ms = gauge(ctx, "lag_ms");
    }
    if (l->shown_records) ck_gauge_set(l->shown_records, records < INT64_MAX ? (int64_t)records : INT64_MAX);
    if (l->shown_ms) ck_gauge_set(l->shown_ms, us / 1000);
    atomic_store_explicit(&l->records, records, memory_order_relaxed);
    atomic_store_explicit(&l->us, us, memory_order_relaxed);
    atomic_store_explicit(&l->noted, true, memory_order_release);
}

void ck_op_lag_destroy(ck_op_lag *l, ck_proc *proc) {
    if (l->shown_records) ck_metrics_release(proc->metrics, l->shown_records);
    if (l->shown_ms) ck_metrics_release(proc->metrics, l->shown_ms);
    l->shown_records = l->shown_ms = NULL;
}
