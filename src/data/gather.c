/* Appending many rows of a column at once. A row set is either a list of row numbers or a range; each kernel is written
 * once for both and compiled twice, with nothing decided inside its loop. Strings are shared: the heaps of the source
 * are appended to the builder's and the buffer index of every long view moves by where they begin. */
#include "data/builder_int.h"
#include "data/take_int.h"

#define CK_FORCE_INLINE static inline __attribute__((always_inline))

typedef struct row_set {
    const uint16_t *rows; /* NULL: start, start + 1, ... */
    uint32_t start, n;
} row_set;

CK_FORCE_INLINE size_t row_at(const uint16_t *rows, uint32_t start, size_t i) { return rows ? rows[i] : start + i; }
static size_t set_row(const row_set *s, size_t i) { return row_at(s->rows, s->start, i); }

static ck_status append(ck_column_builder *b, const ck_column *c, const row_set *s);

/* ---- fixed widths ---- */

/* Pairs of words in place of the columns' own types. */
typedef struct __attribute__((may_alias)) pair {
    uint64_t lo, hi;
} pair;

static void copy_8(const ck_take *take, void *to, const void *from, const row_set *s) {
    if (s->rows)
        take->words(to, from, s->rows, s->n);
    else
        memcpy(to, (const char *)from + s->start * sizeof(uint64_t), s->n * sizeof(uint64_t));
}

static void copy_16(pair *restrict to, const pair *restrict from, const row_set *s) {
    const uint16_t *rows = s->rows;
    if (!rows)
        memcpy(to, from + s->start, s->n * sizeof *to);
    else
        for (size_t i = 0; i < s->n; i++) to[i] = from[rows[i]];
}

/* ---- bitmaps ---- */

/* `take` bits (1 to 64) of a row set from its i-th on, in the low end of a word. */
static uint64_t bits_of(const ck_take *kernels, const uint64_t *from, const row_set *s, size_t i, size_t take) {
    if (s->rows) return kernels->bits(from, s->rows + i, take);
    size_t at = s->start + i, shift = at & 63;
    uint64_t bits = from[at >> 6] >> shift;
    if (shift + take > 64) bits |= from[(at >> 6) + 1] << (64 - shift);
    return take == 64 ? bits : bits & ((1ULL << take) - 1);
}

static void copy_bits(const ck_take *kernels, uint64_t *to, size_t at, const uint64_t *from, const row_set *s) {
    for (size_t i = 0; i < s->n;) {
        size_t bit = at & 63, take = 64 - bit < s->n - i ? 64 - bit : s->n - i;
        uint64_t bits = bits_of(kernels, from, s, i, take);
        uint64_t mask = (take == 64 ? ~0ULL : (1ULL << take) - 1) << bit;
        to[at >> 6] = (to[at >> 6] & ~mask) | bits << bit;
        at += take;
        i += take;
    }
}

static bool all_set(const ck_take *kernels, const uint64_t *from, const row_set *s) {
    for (size_t i = 0; i < s->n; i += 64) {
        size_t take = s->n - i < 64 ? s->n - i : 64;
        if (bits_of(kernels, from, s, i, take) != (take == 64 ? ~0ULL : (1ULL << take) - 1)) return false;
    }
    return true;
}

/* Validity of the appended rows; a bitmap is made only when one of them is NULL. */
static void append_validity(ck_column_builder *b, const ck_column *c, const row_set *s) {
    if (!c->validity || (!b->col->validity && all_set(b->take, c->validity, s))) return; /* bits beyond its length are set */
    copy_bits(b->take, ck_column_writable_validity(b->col), b->length, c->validity, s);
}

/* ---- strings ---- */

/* A view as four int32: length, prefix, buffer, offset. */
typedef int32_t __attribute__((vector_size(16), may_alias, aligned(4))) quad;
typedef int64_t __attribute__((vector_size(16))) long_pair;

/* Moves the buffer index of long views by `base`; returns the bytes of long strings. */
CK_FORCE_INLINE size_t copy_views_of(quad *restrict to, const quad *restrict from, const uint64_t *validity,
                                     const uint16_t *rows, uint32_t start, size_t n, uint32_t base) {
    const quad inline_bytes = {CK_STRVIEW_INLINE, CK_STRVIEW_INLINE, CK_STRVIEW_INLINE, CK_STRVIEW_INLINE};
    const quad move = {0, 0, (int32_t)base, 0}, length_only = {-1, 0, 0, 0};
    long_pair long_bytes = {0, 0};
    for (size_t i = 0; i < n; i++) {
        size_t row = row_at(rows, start, i);
        quad v = from[row];
        if (validity) { /* what stands at a NULL may be anything: make it the empty string */
            int32_t keep = 0 - (int32_t)ck_bit_get(validity, row);
            v &= (quad){keep, keep, keep, keep};
        }
        quad is_long = __builtin_shufflevector(v, v, 0, 0, 0, 0) > inline_bytes;
        long_bytes += (long_pair)(v & is_long & length_only);
        to[i] = v + (is_long & move);
    }
    return (size_t)long_bytes[0];
}

static size_t copy_views(ck_strview *to, const ck_column *c, const row_set *s, uint32_t base) {
    quad *restrict t = (quad *)(void *)to;
    const quad *restrict f = (const quad *)(const void *)c->views;
    if (s->rows)
        return c->validity ? copy_views_of(t, f, c->validity, s->rows, 0, s->n, base)
                           : copy_views_of(t, f, NULL, s->rows, 0, s->n, base);
    return c->validity ? copy_views_of(t, f, c->validity, NULL, s->start, s->n, base)
                       : copy_views_of(t, f, NULL, NULL, s->start, s->n, base);
}

/* Where the heaps of h stand, or would stand, in b's list. *present: they are there already. */
static uint32_t heaps_base(const ck_column_builder *b, const ck_heaps *h, bool *present) {
    *present = true;
    if (h == b->last_heaps) return b->last_heaps_base;
    /* Batches decoded from one read buffer have heaps of their own with that buffer in them. */
    if (h->count <= b->buffer_count &&
        memcmp(&b->buffers[b->buffer_count - h->count], h->buffers, h->count * sizeof(ck_buffer *)) == 0)
        return b->buffer_count - h->count;
    *present = false;
    return b->buffer_count;
}

static void remember_heaps(ck_column_builder *b, ck_heaps *h, uint32_t base) {
    ck_heaps_ref(h);
    ck_heaps_unref(&b->last_heaps);
    b->last_heaps = h;
    b->last_heaps_base = base;
}

static ck_status share_views(ck_column_builder *b, const ck_column *c, const row_set *s) {
    ck_heaps *h = c->heaps;
    bool present;
    uint32_t base = heaps_base(b, h, &present);
    if (!present) CK_TRY(ck_column_builder_buffer_room(b, h->count));
    size_t long_bytes = copy_views(b->col->views + b->length, c, s, base);
    if (long_bytes == 0) return CK_OK; /* nothing points into the heaps: do not keep them */
    b->long_bytes += long_bytes;
    if (!present)
        for (uint32_t i = 0; i < h->count; i++) b->buffers[b->buffer_count++] = ck_buffer_ref(h->buffers[i]);
    if (h != b->last_heaps) remember_heaps(b, h, base);
    return CK_OK;
}

/* The same where the source has many buffers and few rows are taken: only the buffers that are pointed into, so that
 * lists of buffers do not multiply from one exchange to the next. */
static ck_status share_some(ck_column_builder *b, const ck_column *c, const row_set *s) {
    const ck_heaps *h = c->heaps;
    int32_t *where = ck_alloc_array(b->mem, h->count, sizeof *where); /* index in b plus 1 */
    if (!where) return CK_NOMEM;
    memset(where, 0, h->count * sizeof *where);
    ck_strview *to = b->col->views + b->length;
    size_t long_bytes = copy_views(to, c, s, 0);
    ck_status status = CK_OK;
    for (size_t i = 0; i < s->n && status == CK_OK; i++) {
        if (to[i].length <= CK_STRVIEW_INLINE) continue;
        int32_t *w = &where[to[i].ref.buffer];
        if (!*w && (status = ck_column_builder_buffer_room(b, 1)) == CK_OK) {
            b->buffers[b->buffer_count++] = ck_buffer_ref(h->buffers[to[i].ref.buffer]);
            *w = (int32_t)b->buffer_count;
        }
        to[i].ref.buffer = *w - 1;
    }
    ck_free(b->mem, where, h->count * sizeof *where);
    if (status == CK_OK) b->long_bytes += long_bytes;
    return status;
}

/* Into one own buffer, in row order. */
static ck_status copy_strings(ck_column_builder *b, const ck_column *c, const row_set *s) {
    ck_strview *to = b->col->views + b->length;
    size_t left = copy_views(to, c, s, 0);
    for (size_t i = 0; i < s->n; i++) {
        if (to[i].length <= CK_STRVIEW_INLINE) continue;
        size_t n = (size_t)to[i].length;
        /* all that is left when offsets allow it, else as many strings as come */
        CK_TRY(ck_column_builder_own_room(b, left <= INT32_MAX ? left : n, left <= INT32_MAX));
        CK_TRY(ck_column_builder_copy_str(b, ck_column_str(c, set_row(s, i)).p, n, &to[i]));
        left -= n;
    }
    return CK_OK;
}

static ck_status append_views(ck_column_builder *b, const ck_column *c, const row_set *s) {
    if (!c->heaps) {
        copy_views(b->col->views + b->length, c, s, 0);
        return CK_OK;
    }
    if (b->copies) return copy_strings(b, c, s);
    bool many = c->heaps->count > 8 && c->heaps->count > s->n / 8 && c->heaps != b->last_heaps;
    return many ? share_some(b, c, s) : share_views(b, c, s);
}

/* ---- nested ---- */

/* Elements of neighbouring rows are appended in one piece. */
static ck_status append_lists(ck_column_builder *b, const ck_column *c, const row_set *s) {
    ck_column_builder *child = &b->children[0];
    int32_t *offsets = b->col->offsets + b->length;
    uint32_t run_start = 0, run_n = 0, child_length = child->length;
    for (size_t i = 0; i < s->n; i++) {
        size_t row = set_row(s, i);
        if (!ck_column_is_null(c, row)) {
            uint32_t first = (uint32_t)c->offsets[row], n = (uint32_t)(c->offsets[row + 1] - c->offsets[row]);
            if (n && first != run_start + run_n) {
                if (run_n) CK_TRY(ck_build_range(child, c->children[0], run_start, run_n));
                run_start = first, run_n = 0;
            }
            run_n += n;
            child_length += n;
        }
        if (child_length > INT32_MAX) return CK_NOMEM;
        offsets[i + 1] = (int32_t)child_length;
    }
    return run_n ? ck_build_range(child, c->children[0], run_start, run_n) : CK_OK;
}

static ck_status append_structs(ck_column_builder *b, const ck_column *c, const row_set *s) {
    for (uint32_t i = 0; i < b->child_count; i++) CK_TRY(append(&b->children[i], c->children[i], s));
    return CK_OK;
}

/* ---- the way in ---- */

static ck_status append(ck_column_builder *b, const ck_column *c, const row_set *s) {
    if (s->n == 0) return CK_OK;
    bool all_null = c->phys == CK_PHYS_NULL || c->child_count < b->child_count; /* ck_column_new_null has no children */
    if (all_null) return ck_build_nulls(b, s->n);
    CK_DASSERT(c->phys == b->phys);
    CK_TRY(ck_column_builder_room(b, s->n));
    ck_column *to = b->col;
    switch (b->phys) {
    case CK_PHYS_NULL: break;
    case CK_PHYS_BOOL: copy_bits(b->take, to->bits, b->length, c->bits, s); break;
    case CK_PHYS_I64:
    case CK_PHYS_F64: copy_8(b->take, (char *)to->data + b->length * sizeof(uint64_t), c->data, s); break;
    case CK_PHYS_I128: copy_16((pair *)to->data + b->length, c->data, s); break;
    case CK_PHYS_VIEW: CK_TRY(append_views(b, c, s)); break;
    case CK_PHYS_LIST: CK_TRY(append_lists(b, c, s)); break;
    case CK_PHYS_STRUCT: CK_TRY(append_structs(b, c, s)); break;
    }
    append_validity(b, c, s);
    b->length += s->n;
    return CK_OK;
}

/* A failure inside a list or struct leaves elements behind: take them back. */
static ck_status append_whole(ck_column_builder *b, const ck_column *c, const row_set *s) {
    ck_status status = append(b, c, s);
    if (CK_UNLIKELY(status != CK_OK)) ck_column_builder_truncate(b, b->length);
    return status;
}

ck_status ck_build_gather(ck_column_builder *b, const ck_column *c, const uint16_t *rows, uint32_t n) {
    return append_whole(b, c, &(row_set){.rows = rows, .n = n});
}

ck_status ck_build_range(ck_column_builder *b, const ck_column *c, uint32_t start, uint32_t n) {
    return append_whole(b, c, &(row_set){.start = start, .n = n});
}

ck_status ck_build_from(ck_column_builder *b, const ck_column *c, uint32_t row) { return ck_build_range(b, c, row, 1); }
