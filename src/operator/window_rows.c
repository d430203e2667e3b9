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

/* The window of a row that carries it. */
static inline place attached_place_of(const ck_window *w, const ck_batch *b, uint32_t row, ck_window_passed passed,
                                      int64_t *end) {
    const ck_column *ends = b->columns[w->end], *starts = b->columns[w->start];
    if (ck_column_is_null(ends, row) || ck_column_is_null(starts, row) || ends->i64[row] < CK_EVENT_TIME_MIN ||
        ends->i64[row] > CK_WINDOW_END_MAX)
        return BAD;
    *end = ends->i64[row];
    return *end <= passed.closed ? LATE : IN_WINDOW;
}

/* The window of a time in this pass. */
static place place_of(const ck_window *w, int64_t us, int64_t pass, ck_window_passed passed, bool *again,
                      int64_t *end) {
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

/* Rows that come one behind the other are mostly of one unit of time, where one answer is that of all. */
typedef struct same_unit {
    int64_t first, last; /* times; none: first > last */
    int64_t end;
    uint16_t run; /* of `end` */
    place place;
} same_unit;

static void find_unit(ck_window_rows *r, const ck_window *w, int64_t us, int64_t pass, ck_window_passed passed,
                      same_unit *u) {
    u->first = ck_window_floor(us, w->unit_us, w->offset_us);
    u->last = u->first + (w->unit_us - 1);
    u->end = 0;
    u->place = place_of(w, us, pass, passed, &r->again, &u->end);
    u->run = u->place == IN_WINDOW ? run_for(r, u->end) : UINT16_MAX;
}

static void find_places(ck_window_rows *r, const ck_window *w, const ck_batch *b, int64_t pass, ck_window_passed passed,
                        int64_t *ends) {
    const ck_column *times = ck_window_times(w, b);
    same_unit u = {.first = 0, .last = -1};
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t us;
        r->run_of[k] = UINT16_MAX;
        if (CK_UNLIKELY(!ck_window_row_time(w, times, row, &us))) {
            r->bad_count++;
            continue;
        }
        if (us < u.first || us > u.last) find_unit(r, w, us, pass, passed, &u);
        if (CK_LIKELY(u.place == IN_WINDOW)) {
            ends[row] = u.end;
            r->run_of[k] = u.run;
            r->runs[u.run].n++;
        } else if (u.place == LATE) {
            r->late[r->late_count++] = (uint16_t)row;
        }
    }
}

/* Their ends are a column of the batch. */
static void find_attached(ck_window_rows *r, const ck_window *w, const ck_batch *b, ck_window_passed passed) {
    int64_t last_end = 0;
    uint16_t last_run = UINT16_MAX;
    for (uint32_t k = 0; k < b->sel_count; k++) {
        uint32_t row = ck_batch_row(b, k);
        int64_t end = 0;
        place p = attached_place_of(w, b, row, passed, &end);
        r->run_of[k] = UINT16_MAX;
        if (p == LATE) r->late[r->late_count++] = (uint16_t)row;
        r->bad_count += p == BAD;
        if (p != IN_WINDOW) continue;
        if (last_run == UINT16_MAX || end != last_end) last_run = run_for(r, end);
        last_end = end;
        r->run_of[k] = last_run;
        r->runs[last_run].n++;
    }
}

void ck_window_rows_find(ck_window_rows *r, const ck_window *w, const ck_batch *b, int64_t pass,
                         ck_window_passed passed, int64_t *ends) {
    uint32_t n = b->sel_count;
    r->run_count = r->late_count = r->bad_count = 0;
    r->again = false;
    memset(r->slots, 0, sizeof r->slots);
    if (w->kind == CK_WINDOW_ATTACHED)
        find_attached(r, w, b, passed);
    else
        find_places(r, w, b, pass, passed, ends);
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
