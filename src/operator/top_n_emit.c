/* What a ranked top-N says. Outside `final` a flush compares, for each touched partition, the top as it was emitted
 * with the top as it is: what left goes out with -1, then what came with +1. In `final` the top of every partition is
 * emitted once, in order; that of a window when it is over. */
#include "operator/top_n_int.h"

enum { FIRST_PICKS = 256 };

void ck_top_flush_destroy(ck_top_flush *f, ck_mem mem) {
    ck_top_images_destroy(&f->fresh);
    ck_free(mem, f->picks, f->pick_capacity * sizeof *f->picks);
    *f = (ck_top_flush){0};
}

/* ---- choosing ---- */

static ck_status pick(ck_top *op, const ck_top_touched_entry *e, size_t image, uint64_t copies, int weight) {
    ck_top_flush *f = &op->flush;
    if (f->pick_count == f->pick_capacity) {
        size_t capacity = f->pick_capacity ? f->pick_capacity * 2 : FIRST_PICKS;
        void *p = ck_realloc(op->mem, f->picks, f->pick_capacity * sizeof *f->picks, capacity * sizeof *f->picks);
        if (!p) return CK_NOMEM;
        f->picks = p;
        f->pick_capacity = capacity;
    }
    f->picks[f->pick_count++] = (ck_top_pick){e, image, copies, weight};
    return CK_OK;
}

typedef struct top { /* of one partition, in order */
    const ck_top_images *images;
    size_t at, end;
} top;

static int compare(const top *a, const top *b) {
    if (a->at == a->end || b->at == b->end) return (a->at == a->end) - (b->at == b->end);
    const ck_top_image *x = &a->images->at[a->at], *y = &b->images->at[b->at];
    int c = ck_view_cmp(ck_top_image_key(a->images, x), ck_top_image_key(b->images, y));
    return c ? c : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Rows of `of` that are not, or not as often, in `in`. */
static ck_status pick_missing(ck_top *op, const ck_top_touched_entry *e, top of, top in, int weight) {
    while (of.at < of.end) {
        int c = compare(&of, &in);
        const ck_top_image *x = &of.images->at[of.at];
        uint64_t there = c == 0 ? in.images->at[in.at].copies : 0;
        if (c <= 0 && x->copies > there) CK_TRY(pick(op, e, of.at, x->copies - there, weight));
        of.at += c <= 0;
        in.at += c >= 0;
    }
    return CK_OK;
}

/* The touched entries from f->done on: which partitions they are now. */
static ck_status find_partitions(ck_top *op, ck_op_ctx *ctx) {
    ck_top_flush *f = &op->flush;
    const ck_top_plan *p = &op->plan;
    size_t left = op->touched.count - f->done;
    uint32_t n = left < CK_ARRAY_COUNT(f->partitions) ? (uint32_t)left : (uint32_t)CK_ARRAY_COUNT(f->partitions);
    uint32_t columns = p->partition.count;
    ck_column_builder *builders = ck_arena_array(ctx->arena, columns + 1u, sizeof *builders);
    ck_column_builder **to = ck_arena_array(ctx->arena, columns + 1u, sizeof(ck_column_builder *));
    uint64_t *hashes = ck_arena_array(ctx->arena, n, sizeof *hashes);
    ck_batch *b = ck_batch_new(ctx->mem, columns, n, false, false);
    ck_status s = builders && to && hashes && b ? CK_OK : CK_NOMEM;
    uint32_t made = 0;
    for (; s == CK_OK && made < columns; made++) {
        to[made] = &builders[made];
        s = ck_column_builder_init(to[made], ctx->mem, p->partition.types[made], n);
    }
    for (uint32_t i = 0; s == CK_OK && i < n; i++) {
        const ck_top_touched_entry *e = &op->touched.entries[f->done + i];
        hashes[i] = e->hash;
        s = ck_key_decode(p->partition.types, columns, (ck_view){op->touched.keys.p + e->key_at, e->key_bytes}, to);
    }
    for (uint32_t c = 0; s == CK_OK && c < columns; c++) {
        ck_column *column = ck_column_builder_finish(to[c]);
        if (!column) s = CK_NOMEM;
        if (column) ck_batch_set_column(b, c, &column);
    }
    for (uint32_t c = 0; c < made; c++) ck_column_builder_destroy(&builders[c]);
    if (s != CK_OK) {
        ck_batch_unref(&b);
        return ck_nomem(ctx->error, ctx->mem, n * sizeof *hashes); /* our own bytes always decode */
    }
    ck_keys keys = {&p->own_partition, b, hashes, n};
    s = ck_table_partitions(op->table, &keys, false, f->partitions, ctx->error);
    ck_batch_unref(&b);
    f->slice = f->done;
    f->slice_count = n;
    return s;
}

static ck_status compare_next(ck_top *op, ck_op_ctx *ctx) {
    ck_top_flush *f = &op->flush;
    if (f->done >= f->slice + f->slice_count) CK_TRY(find_partitions(op, ctx));
    const ck_top_touched_entry *e = &op->touched.entries[f->done];
    size_t first = f->fresh.count, first_key = f->fresh.keys.n, picks = f->pick_count;
    ck_status s = ck_top_images_add(&f->fresh, &op->plan, op->table, f->partitions[f->done - f->slice]);
    top before = {&op->touched.images, e->first, e->first + e->count}, now = {&f->fresh, first, f->fresh.count};
    if (s == CK_OK) s = pick_missing(op, e, before, now, -1);
    if (s == CK_OK) s = pick_missing(op, e, now, before, +1);
    if (s != CK_OK) return ck_nomem(ctx->error, op->mem, f->fresh.keys.capacity);
    if (f->pick_count == picks) { /* nothing refers to them */
        f->fresh.count = first;
        f->fresh.keys.n = first_key;
    }
    f->done++;
    return CK_OK;
}

/* ---- saying ---- */

/* Builders in the order of the plan's keys. */
typedef struct cells {
    ck_column_builder **partition, **order, *rank;
    ck_column_builder spare; /* for an order column that is a partition column */
    bool has_spare;
} cells;

static ck_status open_cells(ck_top *op, ck_batch_builder *b, cells *c, ck_op_ctx *ctx) {
    const ck_top_plan *p = &op->plan;
    *c = (cells){0};
    c->partition = ck_arena_array(ctx->arena, p->partition.count + 1u, sizeof(ck_column_builder *));
    c->order = ck_arena_array(ctx->arena, p->order_count + 1u, sizeof(ck_column_builder *));
    if (!c->partition || !c->order) return CK_NOMEM;
    for (uint32_t i = 0; i < p->partition.count; i++) c->partition[i] = &b->columns[p->partition.columns[i]];
    for (uint32_t i = 0; i < p->order_count; i++) {
        c->order[i] = &b->columns[p->order[i].column];
        if (p->field_of[p->order[i].column] >= p->partition.count) continue;
        CK_TRY(ck_column_builder_init(&c->spare, ctx->mem, p->order[i].type, b->capacity));
        c->has_spare = true;
        c->order[i] = &c->spare;
    }
    if (p->rank_column) c->rank = &b->columns[p->input->field_count];
    return CK_OK;
}

static ck_status say(ck_top *op, ck_batch_builder *b, cells *c, ck_top_pick *pick) {
    const ck_top_plan *p = &op->plan;
    const ck_top_images *images = pick->weight < 0 ? &op->touched.images : &op->flush.fresh;
    const ck_top_image *image = &images->at[pick->image];
    ck_view key = {op->touched.keys.p + pick->entry->key_at, pick->entry->key_bytes};
    CK_TRY(ck_key_decode(p->partition.types, p->partition.count, key, c->partition));
    CK_TRY(ck_order_decode(p->order, p->order_count, ck_top_image_key(images, image), c->order));
    if (c->rank) CK_TRY(ck_build_i64(c->rank, (int64_t)image->rank));
    ck_batch_builder_row(b, pick->weight);
    pick->copies--;
    return CK_OK;
}

static ck_status emit_picks(ck_top *op, ck_op_ctx *ctx) {
    ck_top_flush *f = &op->flush;
    ck_batch_builder b;
    cells c;
    if (ck_batch_builder_init(&b, ctx->mem, op->plan.output, ctx->settings->batch_rows) != CK_OK)
        return ck_nomem(ctx->error, ctx->mem, ctx->settings->batch_rows * sizeof(ck_strview));
    ck_status s = open_cells(op, &b, &c, ctx);
    while (s == CK_OK && f->picked < f->pick_count && b.row_count < b.capacity) {
        s = say(op, &b, &c, &f->picks[f->picked]);
        if (s == CK_OK && f->picks[f->picked].copies == 0) f->picked++;
    }
    ck_batch *out = s == CK_OK ? ck_batch_builder_finish(&b) : NULL;
    if (c.has_spare) ck_column_builder_destroy(&c.spare);
    ck_batch_builder_destroy(&b);
    if (!out) return ck_nomem(ctx->error, ctx->mem, ctx->settings->batch_rows * sizeof(ck_strview));
    return ck_op_emit(ctx, 0, &out);
}

ck_status ck_top_flush_touched(ck_top *op, ck_op_ctx *ctx) {
    ck_top_flush *f = &op->flush;
    if (!f->running) {
        f->running = true;
        f->done = f->slice = f->slice_count = 0;
    }
    if (f->picked == f->pick_count) {
        f->picked = f->pick_count = 0;
        ck_top_images_clear(&f->fresh);
        while (f->pick_count < ctx->settings->batch_rows && f->done < op->touched.count) CK_TRY(compare_next(op, ctx));
    }
    if (f->picked < f->pick_count) CK_TRY(emit_picks(op, ctx));
    if (f->picked < f->pick_count || f->done < op->touched.count) return CK_MORE;
    ck_top_touched_clear(&op->touched);
    f->running = false;
    return CK_OK;
}

/* ---- once ---- */

typedef struct rows {
    ck_row **at;
    int64_t *ranks;
    uint32_t n;
} rows;

static ck_status rank_column(const rows *r, ck_mem mem, ck_column **out) {
    *out = ck_column_new(mem, CK_PHYS_I64, r->n);
    if (!*out) return CK_NOMEM;
    memcpy((*out)->i64, r->ranks, r->n * sizeof *r->ranks);
    return CK_OK;
}

static ck_status emit_rows(ck_top *op, const rows *r, ck_op_ctx *ctx) {
    const ck_top_plan *p = &op->plan;
    ck_batch *out = ck_batch_new(ctx->mem, p->output->field_count, r->n, false, false);
    ck_status s = out ? CK_OK : CK_NOMEM;
    for (uint32_t c = 0; s == CK_OK && c < p->output->field_count; c++) {
        ck_column *column;
        s = c == p->input->field_count
                ? rank_column(r, ctx->mem, &column)
                : ck_table_gather_column(op->table, r->at, r->n, NULL, r->n, p->field_of[c], ctx->mem, &column);
        if (s == CK_OK) ck_batch_set_column(out, c, &column);
    }
    if (s == CK_OK) return ck_op_emit(ctx, 0, &out);
    ck_batch_unref(&out);
    return ck_nomem(ctx->error, ctx->mem, r->n * sizeof(ck_strview));
}

static bool next_partition(ck_top *op, ck_partition *p) {
    return op->plan.at_end ? ck_top_windows_next(op, p) : ck_table_partition_scan(op->table, &op->scan, p, 1) == 1;
}

/* The next row of the tops that are due: copies of the last one, the partition under way, the next partition. */
static bool next_row(ck_top *op, ck_top_entry *out) {
    while (op->rest.copies == 0) {
        if (op->walking && ck_top_walk_next(&op->walk, &op->rest)) break;
        ck_partition p;
        op->walking = next_partition(op, &p);
        if (!op->walking) return false;
        ck_top_walk_open(&op->walk, &op->plan, op->table, p);
    }
    *out = op->rest;
    op->rest.copies--;
    if (op->plan.rank == CK_TOP_ROW_NUMBER) op->rest.rank++;
    return true;
}

/* About one batch of them; *all: that was all, for now. */
static ck_status emit_due(ck_top *op, bool *all, ck_op_ctx *ctx) {
    uint32_t most = ctx->settings->batch_rows;
    rows r = {ck_arena_array(ctx->arena, most, sizeof(ck_row *)), ck_arena_array(ctx->arena, most, sizeof(int64_t)), 0};
    ck_top_entry e;
    if (!r.at || !r.ranks) return ck_nomem(ctx->error, ctx->mem, most * sizeof(ck_row *));
    while (r.n < most && next_row(op, &e)) {
        r.at[r.n] = e.row;
        r.ranks[r.n++] = (int64_t)e.rank;
    }
    *all = r.n < most;
    return r.n > 0 ? emit_rows(op, &r, ctx) : CK_OK;
}

ck_status ck_top_emit_all(ck_top *op, ck_op_ctx *ctx) {
    bool all;
    if (!op->scanning) {
        op->scanning = true;
        op->walking = false;
        op->scan = (ck_table_scan){0};
        op->rest = (ck_top_entry){0};
    }
    CK_TRY(emit_due(op, &all, ctx));
    if (!all) return CK_MORE;
    op->scanning = false;
    return CK_OK;
}

/* Nothing goes while a partition is being read. */
ck_status ck_top_emit_over(ck_top *op, ck_op_ctx *ctx) {
    bool all;
    CK_TRY(emit_due(op, &all, ctx));
    if (!all) return CK_MORE;
    bool more = op->windows.over_count == CK_BATCH_ROWS_MAX;
    CK_TRY(ck_top_windows_drop(op, ctx));
    return more ? CK_MORE : CK_OK;
}
