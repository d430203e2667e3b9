/* The top of a partition, in order, with ranks: rows whose rank is in (offset, offset + limit], as often as they are in
 * that window. Rows whose count is not above zero wait for what is still to come and are passed over. */
#include "operator/top_n_int.h"

bool ck_top_are_peers(const ck_top_plan *plan, const ck_table *t, const ck_row *a, const ck_row *b) {
    for (uint32_t i = 0; i < plan->peer_count; i++)
        if (!ck_table_same_field(t, plan->partition.count + i, a, b)) return false;
    return true;
}

void ck_top_walk_open(ck_top_walk *w, const ck_top_plan *plan, ck_table *t, ck_partition p) {
    *w = (ck_top_walk){.plan = plan, .table = t};
    ck_range_open(&w->range, t, p, (ck_view){0}, (ck_view){0});
}

static uint64_t clamp(uint64_t v, uint64_t lo, uint64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

/* One row that is there `count` times: its part of the window. */
static bool in_window(ck_top_walk *w, ck_row *row, uint64_t count, ck_top_entry *out) {
    const ck_top_plan *p = w->plan;
    uint64_t at = w->before;
    w->before += count;
    if (p->rank == CK_TOP_ROW_NUMBER) {
        uint64_t first = clamp(at, p->offset, p->keep), end = clamp(w->before, p->offset, p->keep);
        if (end == first) return false;
        *out = (ck_top_entry){row, first + 1, end - first};
        return true;
    }
    if (!w->last || !ck_top_are_peers(p, w->table, w->last, row)) {
        w->groups++;
        w->leading = at;
    }
    w->last = row;
    uint64_t rank = p->rank == CK_TOP_RANK ? w->leading + 1 : w->groups;
    if (rank <= p->offset || rank > p->keep) return false;
    *out = (ck_top_entry){row, rank, count};
    return true;
}

/* Nothing behind can be in the window any more. */
static bool is_past(const ck_top_walk *w) {
    const ck_top_plan *p = w->plan;
    if (p->rank == CK_TOP_ROW_NUMBER) return w->before >= p->keep;
    return (p->rank == CK_TOP_RANK ? w->leading + 1 : w->groups) > p->keep;
}

bool ck_top_walk_next(ck_top_walk *w, ck_top_entry *out) {
    const ck_row_layout *layout = ck_table_layout(w->table);
    uint32_t count_at = layout->fields[layout->value_first].offset;
    ck_row *row;
    while (!is_past(w) && ck_range_next(&w->range, &row)) {
        int64_t count = ck_row_i64(row, count_at);
        if (count > 0 && in_window(w, row, (uint64_t)count, out)) return true;
    }
    return false;
}
