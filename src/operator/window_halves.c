/* The windows of a hop whose groups cannot be taken apart again: the least of values, sums of doubles. Boundaries stand
 * a window's length apart, so that each window is what it has in front of one and what it has behind:
 *
 *      front of the window       back, grows with each window
 *   |<------------------------|------------->
 *   start                  boundary          end
 *
 * A front is the one that begins a step later and one step more; those of a boundary are made from it backwards, before
 * the first of its windows is said, and each is said once: the back is merged into it. So a step costs the same however
 * many a window has. Of many groups only fronts at powers of a base are kept, and those between are made when they are
 * next, from the one behind. In what order groups are merged depends on where slices stand alone, never on what is
 * kept, so sums of doubles are the same after a restart. */
#include "operator/window_int.h"

enum { BASE_MAX = 1024 }; /* fronts of one distance */
enum { WORTH = 4 };       /* slices that a group is in, from which fronts are worth their copying */
#define NO_BOUNDARY INT64_MIN

static int64_t bucket_of(uint32_t front) { return CK_WINDOW_FRONTS + front; }

/* At or behind the start of a window, before its end. */
static int64_t boundary_of(const ck_window *w, int64_t start) {
    int64_t apart = w->size_us / w->slide_us * w->slide_us, before = ck_window_floor(start, apart, w->offset_us);
    return before < start ? before + apart : start;
}

/* ---- leaving ---- */

static ck_status drop_front(ck_window_agg *op, ck_op_ctx *ctx) {
    return ck_window_drop(op, bucket_of(--op->halves.count), ctx);
}

static ck_status drop_back(ck_window_agg *op, ck_op_ctx *ctx) {
    op->halves.back_to = op->halves.boundary;
    return ck_window_drop(op, CK_WINDOW_BACK, ctx);
}

ck_status ck_window_forget_halves(ck_window_agg *op, ck_op_ctx *ctx) {
    if (op->halves.boundary == NO_BOUNDARY) return CK_OK;
    while (op->halves.count) CK_TRY(drop_front(op, ctx));
    CK_TRY(drop_back(op, ctx));
    op->halves.boundary = NO_BOUNDARY;
    return CK_OK;
}

ck_status ck_window_slice_changes(ck_window_agg *op, int64_t slice, ck_op_ctx *ctx) {
    ck_window_halves *h = &op->halves;
    if (h->boundary == NO_BOUNDARY || slice > h->back_to) return CK_OK;
    if (slice > h->boundary) return drop_back(op, ctx);
    while (h->count && h->starts[h->count - 1] < slice) CK_TRY(drop_front(op, ctx));
    return CK_OK;
}

/* Groups, and values of their sets where those go with them. */
static ck_status count_rows(const ck_window_agg *op, int64_t bucket, uint64_t *rows, ck_op_ctx *ctx) {
    ck_table *t;
    CK_TRY(ck_table_bucket(op->table, bucket, false, &t, ctx->error));
    if (t) *rows += ck_table_row_count(t);
    for (uint32_t i = 0; !op->rolled.on && i < op->plan.distinct_count; i++) {
        CK_TRY(ck_table_bucket(op->sets[i], bucket, false, &t, ctx->error));
        if (t) *rows += ck_table_row_count(t);
    }
    return CK_OK;
}

ck_status ck_window_end_halves(ck_window_agg *op, ck_op_ctx *ctx) {
    int64_t slice, gone = op->end - op->window.size_us + op->window.slide_us;
    op->halves.groups = 0;
    CK_TRY(count_rows(op, op->made, &op->halves.groups, ctx));
    if (op->made != CK_WINDOW_BACK && op->made != op->end) CK_TRY(drop_front(op, ctx));
    while (ck_window_next_slice(op, INT64_MIN, gone, &slice)) CK_TRY(ck_window_drop(op, slice, ctx));
    return ck_window_next_slice(op, INT64_MIN, op->end, &slice) ? CK_OK : ck_window_forget_halves(op, ctx);
}

/* ---- making ---- */

static ck_status take(ck_window_agg *op, int64_t from, int64_t to, uint32_t *merged, ck_op_ctx *ctx) {
    CK_TRY(ck_window_merge_bucket(op, 1, from, to, merged, ctx));
    op->scan = (ck_table_scan){0};
    return CK_OK;
}

/* How far apart fronts are kept; 0: none but the one that is said next. */
static ck_status choose_base(ck_window_agg *op, ck_op_ctx *ctx) {
    ck_window_halves *h = &op->halves;
    uint64_t rows = 0, base = h->kept_rows / (h->groups + 1);
    int64_t start = op->end - op->window.size_us;
    for (int64_t slice = start; ck_window_next_slice(op, slice + 1, op->end, &slice);)
        CK_TRY(count_rows(op, slice, &rows, ctx));
    h->base = (uint32_t)(base > BASE_MAX ? BASE_MAX : base < 2 ? 2 : base);
    if (h->groups == 0 || rows / WORTH < h->groups) h->base = 0;
    return CK_OK;
}

/* The next front on the way to that of `start`. */
static ck_status begin_front(ck_window_agg *op, int64_t start, ck_op_ctx *ctx) {
    ck_window_halves *h = &op->halves;
    int64_t slide = op->window.slide_us, from = h->count ? h->starts[h->count - 1] : h->boundary, stride = 1;
    int64_t behind = (h->boundary - from) / slide, gap = (from - start) / slide;
    ck_table *made;
    while (h->base && stride * h->base < gap) stride *= h->base;
    CK_ASSERT(h->count < CK_WINDOW_FRONTS_MAX);
    h->starts[h->count] = h->base ? h->boundary - (behind / stride + 1) * stride * slide : start;
    h->making = true;
    h->copied = h->count == 0;
    h->step = from - slide;
    h->next = h->step + 1;
    return ck_table_bucket(op->table, bucket_of(h->count), true, &made, ctx->error);
}

static ck_status make_fronts(ck_window_agg *op, int64_t start, uint32_t *merged, ck_op_ctx *ctx) {
    ck_window_halves *h = &op->halves;
    int64_t slide = op->window.slide_us, slice;
    while (h->making || (h->count ? h->starts[h->count - 1] : h->boundary) > start) {
        if (!h->making) CK_TRY(begin_front(op, start, ctx));
        if (!h->copied) CK_TRY(take(op, bucket_of(h->count - 1), bucket_of(h->count), merged, ctx));
        h->copied = true;
        for (; h->step >= h->starts[h->count]; h->step -= slide, h->next = h->step + 1) {
            while (ck_window_next_slice(op, h->next, h->step + slide, &slice)) {
                CK_TRY(take(op, slice, bucket_of(h->count), merged, ctx));
                h->next = slice + 1;
            }
        }
        h->making = false;
        h->count++;
    }
    return CK_OK;
}

static ck_status fill_back(ck_window_agg *op, uint32_t *merged, ck_op_ctx *ctx) {
    ck_window_halves *h = &op->halves;
    ck_table *back;
    CK_TRY(ck_table_bucket(op->table, CK_WINDOW_BACK, true, &back, ctx->error));
    for (int64_t slice; ck_window_next_slice(op, h->back_to + 1, op->end, &slice); h->back_to = slice)
        CK_TRY(take(op, slice, CK_WINDOW_BACK, merged, ctx));
    h->back_to = op->end;
    return CK_OK;
}

static ck_status begin(ck_window_agg *op, int64_t start, int64_t boundary, ck_op_ctx *ctx) {
    ck_window_halves *h = &op->halves;
    if (boundary != h->boundary) {
        CK_TRY(ck_window_forget_halves(op, ctx));
        h->boundary = h->back_to = boundary;
    }
    while (h->count && h->starts[h->count - 1] < start) CK_TRY(drop_front(op, ctx)); /* of windows without rows */
    if (h->count == 0 && start < boundary) CK_TRY(choose_base(op, ctx));
    op->scan = (ck_table_scan){0};
    op->moving = true;
    h->making = h->filled = false;
    return CK_OK;
}

ck_status ck_window_gather_halves(ck_window_agg *op, ck_op_ctx *ctx) {
    int64_t start = op->end - op->window.size_us, boundary = boundary_of(&op->window, start);
    uint32_t merged = 0;
    if (!op->moving) CK_TRY(begin(op, start, boundary, ctx));
    if (!op->halves.filled) {
        CK_TRY(make_fronts(op, start, &merged, ctx));
        CK_TRY(fill_back(op, &merged, ctx));
    }
    op->halves.filled = true;
    op->made = start < boundary ? bucket_of(op->halves.count - 1) : CK_WINDOW_BACK;
    if (start < boundary) CK_TRY(take(op, CK_WINDOW_BACK, op->made, &merged, ctx));
    op->moving = false;
    return CK_OK;
}
