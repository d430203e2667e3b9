/* Optimal string alignment distance (insert, delete, replace, swap neighbours) over at most 64 bytes. */
#include "base/suggest.h"

enum { NAME_MAX_BYTES = 64 };

static size_t min3(size_t a, size_t b, size_t c) {
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

static size_t distance(ck_view a, ck_view b) {
    size_t row[3][NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b.n; j++) row[1][j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *now = row[2], *prev = row[1], *prev2 = row[0];
        now[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            char x = ck_ascii_lower(a.p[i - 1]), y = ck_ascii_lower(b.p[j - 1]);
            now[j] = min3(prev[j] + 1, now[j - 1] + 1, prev[j - 1] + (x != y));
            bool swapped = i > 1 && j > 1 && x == ck_ascii_lower(b.p[j - 2]) && ck_ascii_lower(a.p[i - 2]) == y;
            if (swapped && prev2[j - 2] + 1 < now[j]) now[j] = prev2[j - 2] + 1;
        }
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
    }
    return row[1][b.n];
}

void ck_suggest_init(ck_suggest *s, ck_view wanted) {
    size_t limit = wanted.n / 3 > 1 ? wanted.n / 3 : 1;
    *s = (ck_suggest){.wanted = wanted, .best_distance = limit + 1};
}

void ck_suggest_offer(ck_suggest *s, ck_view candidate) {
    ck_view w = s->wanted;
    if (w.n == 0 || candidate.n == 0 || w.n > NAME_MAX_BYTES || candidate.n > NAME_MAX_BYTES) return;
    size_t d = distance(w, candidate);
    if (d >= w.n && d >= candidate.n) return; /* they have nothing in common: "a" for "b" */
    if (w.n >= 3 && candidate.n > w.n && ck_view_eq_nocase(w, (ck_view){candidate.p, w.n}) && d > 1) d = 1;
    /* "paralel" for "parallelism": the beginning of a longer name, with an edit in it. */
    for (size_t n = w.n - 1; w.n >= 5 && candidate.n > w.n + 1 && n <= w.n + 1; n++) {
        size_t begun = distance(w, (ck_view){candidate.p, n});
        if (begun <= 1 && d > 2) d = 2;
    }
    if (d < s->best_distance) s->best = candidate, s->best_distance = d;
}
