/* What the watermark of a running job waits for, in a sentence for people. */
#include <stdio.h>

#include "data/text.h"
#include "engine/engine_int.h"

enum { TIME_BYTES = 64, PART_BYTES = 320 };

static void time_text(int64_t us, char out[TIME_BYTES]) {
    int64_t ms = us % 1000000 / 1000;
    size_t n = ck_print_timestamp(out, us, ms ? 3 : 0, ' ', false);
    out[n] = '\0';
}

/* ", idle 12 s": how long a split has had nothing; nothing below a second. */
static void empty_text(int64_t since_us, int64_t now_us, char *out, size_t size) {
    int64_t s = since_us == INT64_MIN ? 0 : (now_us - since_us) / 1000000;
    *out = '\0';
    if (s > 0) snprintf(out, size, ", idle %lld s", (long long)s);
}

/* A source's uid is its table's name behind "source:". */
static const char *table_of(const char *uid) {
    static const char prefix[] = "source:";
    return strncmp(uid, prefix, sizeof prefix - 1) == 0 ? uid + sizeof prefix - 1 : uid;
}

static void holder_text(const ck_job_watermark *w, char *out, size_t size) {
    char at[TIME_BYTES], empty[64];
    empty_text(w->note.holder_empty_us, w->now_us, empty, sizeof empty);
    if (!w->note.holder) {
        if (w->note.watermark_us == CK_WATERMARK_MIN)
            snprintf(out, size, "no watermark yet: all splits are idle");
        else
            time_text(w->note.watermark_us + 1, at),
                snprintf(out, size, "watermark stays at %s: all splits are idle", at);
    } else if (w->note.holder_us == INT64_MIN) {
        snprintf(out, size, "no watermark yet: held by %s of %s, which has given no row%s", w->holder,
                 table_of(w->source), empty);
    } else {
        time_text(w->note.holder_us, at);
        snprintf(out, size, "watermark held by %s of %s at %s%s", w->holder, table_of(w->source), at, empty);
    }
}

static void idle_text(const ck_job_watermark *w, char *out, size_t size) {
    int64_t s = (w->now_us - w->idle_empty_us) / 1000000;
    *out = '\0';
    if (w->idle_splits == 0) return;
    int n = snprintf(out, size, "; idle: %s for %lld s", w->idle, (long long)s);
    if (w->idle_splits > 1 && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, " and %u more", w->idle_splits - 1);
}

size_t engine_watermark_text(const ck_job_watermark *w, char *text, size_t size) {
    char holder[2 * PART_BYTES], idle[PART_BYTES];
    holder_text(w, holder, sizeof holder);
    idle_text(w, idle, sizeof idle);
    int n = snprintf(text, size, "%s%s", holder, idle);
    return n > 0 ? (size_t)n : 0;
}

size_t clink_job_watermark(clink_job *j, char *text, size_t size) {
    ck_job_watermark w;
    size_t n = 0;
    if (!j || (!text && size)) return 0;
    if (size) *text = '\0';
    pthread_mutex_lock(&j->lock);
    if (j->running && ck_job_watermark_now(j->running, &w))
        n = engine_watermark_text(&w, text, size); /* under the lock: names belong to the running job */
    pthread_mutex_unlock(&j->lock);
    return n;
}
