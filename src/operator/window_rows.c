/* Rows of a batch by the window they are in: one pass finds each row's window, a counting sort puts rows of one window
 * side by side. */
#include "operator/window_int.h"

enum { SLOTS = 2 * CK_BATCH_ROWS_MAX };

/* The run of a window, made when it is new. */
static uint16_t run_for(ck_window_rows *r, int64_t end) {
    uint32_t slot = (uint32_t)(ck_mix64((uint64_t)end) % SLOTS);
    for (; r->slots[slot]; slot = slot + 1 == SLOTS ? 0 : slot + 1)
        if (r->runs[r->slots[slot] - 1].end == end) return (uint16_t)(r->slots[slot] - 1);
    r->runs[r->run_count] = (ck_window_run){end, 0, 0};
    r->slots[slot] = (uint16_t)++r->run_count;
    return (uint16_t)(r->run_count - 1);
}

typedef enum place { IN_WINDOW, NOWHERE, LATE, BAD } place;

/* The bucket of its slice, if a window of it has not been said: of a cumulating one the first such step, later ones get
 * it from there. */
static inline place slice_of(const ck_window *w, int64_t us, ck_window_ends e, int64_t said, int64_t *bucket) {
    if (e.last <= said) return NOWHERE;
    int64_t steps = e.first > said ? 0 : (said - e.first) / w->slide_us + 1;
    *bucket = w->kind == CK_WINDOW_HOP ? ck_window_floor(us, w->slice_us, w->offset_us) + w->slice_us
                                       : e.first + steps * w->slide_us;
    *bucket -= w->apart_us;
    return IN_WINDOW;
}

/* The window of a row in this pass. */
static inline place place_of(const ck_window *w, const ck_batch *b, uint32_t row, int64_t pass, ck_window_passed passed,
                             bool *again, int64_t *end) {
    if (w->kind == CK_WINDOW_ATTACHED) {
        const ck_column *ends = b->columns[w->end], *starts = b->columns[w->start];
        if (ck_column_is_null(ends, row) || ck_column_is_null(starts, row) || ends->i64[row] < CK_EVENT_TIME_MIN ||
            ends->i64[row] > CK_WINDOW_END_MAX)
            return BAD;
        *end = ends->i64[row];
        return *end <= passed.closed ? LATE : IN_WINDOW;
    }
    int64_t us;
    if (!ck_window_row_time(w, ck_window_times(w, b), row, &us)) return BAD;
    ck_window_ends e = ck_window_ends_of(w, us);
    if (e.first > e.last) return NOWHERE; /* between two windows */
    if (e.last <= passed.closed) return LATE;
    if (!w->slice_us) {
        *end = e.first + pass * w->slide_us;
        return *end > e.last || *end <= passed.closed ? NOWHERE : IN_WINDOW;
    }
    int64_t closed = e.first > passed.closed ? 0 : (passed.closed - e.first) / w->slide_us + 1;
    int64_t next = e.first + (closed + pass) * w->slide_us; /* pass 0: the first that has been said, if there is one */
    *again = *again || (next <= e.last && next <= passed.said);
    if (pass == 0) return slice_of(w, us, e, passed.said, end);
    *end = next - w->slide_us;
    return *end > e.last || *end > passed.said ? NOWHERE : IN_WINDOW;
}

void ck_window_rows_find(ck_window_rows *r, const ck_window *w, const ck_batch *b, int64_t pass,
                         ck_window_passed passed, int64_t *ends) {
    uint32_t n = b->sel_count;
    int64_t last_end = 0;
    uint16_t last_run = UINT16_MAX;
    r->run_count = r->late_count = r->bad_count = 0;
    r->again = false;
    memset(r->slots, 0, sizeof r->slots);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t end = 0;
        place p = place_of(w, b, row, pass, passed, &r->again, &end);
        r->run_of[k] = UINT16_MAX;
        if (p == LATE) r->late[r->late_count++] = (uint16_t)row;
        r->bad_count += p == BAD;
        if (p != IN_WINDOW) continue;
        if (last_run == UINT16_MAX || end != last_end) {
            last_run = run_for(r, end);
            last_end = end;
        }
        if (ends) ends[row] = end;
        r->run_of[k] = last_run;
        r->runs[last_run].n++;
    }
    for (uint32_t i = 0, at = 0; i < r->run_count; i++) {
        r->runs[i].first = at;
        at += r->runs[i].n;
        r->runs[i].n = 0;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (r->run_of[k] == UINT16_MAX) continue;
        ck_window_run *run = &r->runs[r->run_of[k]];
        r->rows[run->first + run->n++] = (uint16_t)ck_batch_row(b, k);
    }
}
