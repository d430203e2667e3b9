/* How far a job is. Each host counts for itself; the job's watermark is the least of theirs. */
#include <stdio.h>

#include "cluster/coordinator/coordinator_int.h"

void progress_heard(job *j, const worker *w, const ck_progress *p) {
    for (uint32_t i = 0; i < j->host_count; i++) {
        job_host *h = &j->hosts[i];
        if (h->worker != w) continue;
        h->progress = *p;
        snprintf(h->note, sizeof h->note, "%.*s", (int)p->note.n, p->note.p ? p->note.p : "");
        h->progress.note = ck_view_of(h->note);
        return;
    }
}

/* Whether a holds time back more than b does: a split that does before splits that are all idle, then the lesser
 * watermark. */
static bool holds_more(const ck_progress *a, const ck_progress *b) {
    if (a->event_time != b->event_time) return a->event_time > b->event_time;
    return a->event_time != CK_EVENT_TIME_NONE && a->watermark_us < b->watermark_us;
}

static void add(ck_progress *all, const ck_progress *p) {
    all->known |= p->known;
    all->rows_in += p->rows_in;
    all->rows_out += p->rows_out;
    all->memory_bytes += p->memory_bytes;
    all->memory_limit += p->memory_limit;
    if (!holds_more(p, all)) return;
    all->event_time = p->event_time;
    all->watermark_us = p->watermark_us;
    all->note = p->note;
}

ck_progress progress_of(const job *j) {
    ck_progress all = {0};
    for (const job *r = j->lead; r; r = r->next_region)
        for (uint32_t i = 0; i < r->host_count; i++) add(&all, &r->hosts[i].progress);
    return all;
}
