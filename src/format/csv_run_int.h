/* The fast way through CSV, compiled once per instruction set as lane_int.h says. Separators are found for a chunk at
 * once, 64 bytes a step without a branch on what is in them; columns are then parsed down the rows, where one value
 * does not wait for the end of another. */
#include "data/text.h"
#include "format/csv_int.h"
#include "format/lane_int.h"

/* ---- marking ---- */

/* A bit for each of 64 bytes. */
typedef struct CK_NAME(block) {
    uint64_t delimiter, newline, quote;
} CK_NAME(block);

/* Gathers whether any byte was not ASCII or NUL. */
#if CK_SIMD
typedef __m256i CK_NAME(odd);
CK_TARGET static inline bool CK_NAME(any)(CK_NAME(odd) x) { return _mm256_movemask_epi8(x) != 0; }

CK_TARGET static inline uint64_t CK_NAME(equal)(__m256i a, __m256i b, char c) {
    __m256i x = _mm256_set1_epi8(c);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, x)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(b, x)) << 32;
}
CK_TARGET static inline CK_NAME(block) CK_NAME(look)(const uint8_t *p, uint8_t delimiter, CK_NAME(odd) * odd) {
    __m256i a = CK_NAME(load)(p), b = CK_NAME(load)(p + 32), one = _mm256_set1_epi8(1);
    /* signed: over 0x7F is negative */
    *odd = _mm256_or_si256(*odd, _mm256_or_si256(_mm256_cmpgt_epi8(one, a), _mm256_cmpgt_epi8(one, b)));
    return (CK_NAME(block)){CK_NAME(equal)(a, b, (char)delimiter), CK_NAME(equal)(a, b, '\n'),
                            CK_NAME(equal)(a, b, '"')};
}
#else
typedef uint64_t CK_NAME(odd);
static inline bool CK_NAME(any)(CK_NAME(odd) x) { return (x & CK_SWAR_HIGH) != 0; }

/* Exactly the zero bytes of x, a bit a byte. */
static inline uint64_t CK_NAME(zeros)(uint64_t x) {
    uint64_t low = 0x7F7F7F7F7F7F7F7FULL;
    uint64_t zero = ~(((x & low) + low) | x | low);
    return ((zero >> 7) * 0x0102040810204080ULL) >> 56;
}
static inline CK_NAME(block) CK_NAME(look)(const uint8_t *p, uint8_t delimiter, CK_NAME(odd) * odd) {
    CK_NAME(block) b = {0};
    for (unsigned i = 0; i < 64; i += 8) {
        uint64_t x = ck_load64(p + i);
        b.delimiter |= CK_NAME(zeros)(x ^ CK_SWAR_ONES * delimiter) << i;
        b.newline |= CK_NAME(zeros)(x ^ CK_SWAR_ONES * '\n') << i;
        b.quote |= CK_NAME(zeros)(x ^ CK_SWAR_ONES * '"') << i;
        *odd |= x | (x - CK_SWAR_ONES);
    }
    return b;
}
#endif

/* Each bit the parity of the bits up to and including it. */
static inline uint64_t CK_NAME(parity)(uint64_t x) {
    x ^= x << 1;
    x ^= x << 2;
    x ^= x << 4;
    x ^= x << 8;
    x ^= x << 16;
    return x ^ x << 32;
}

/* The lowest set bit; whatever where there is none. */
CK_TARGET static inline unsigned CK_NAME(lowest)(uint64_t m) {
#if CK_SIMD
    return (unsigned)_tzcnt_u64(m);
#else
    return m ? (unsigned)__builtin_ctzll(m) : 0;
#endif
}

/* What of one block matters for the next. */
typedef struct CK_NAME(carry) {
    uint64_t inside;    /* all ones: the block begins inside quotes */
    uint64_t separator; /* bit 0: the byte before was a separator (or nothing) */
    uint64_t closing;   /* bit 0: ... was a closing quote */
} CK_NAME(carry);

/* Takes what is inside quotes out of a block's separators. Some quote that neither follows a separator or a closing
 * quote when it opens, nor is followed by a separator or an opening one when it closes, is a stray. */
CK_TARGET static inline uint64_t CK_NAME(outside)(const uint8_t *p, CK_NAME(block) b, CK_NAME(carry) * carry,
                                                  bool *stray) {
    uint64_t all = b.delimiter | b.newline;
    if (CK_LIKELY(!(b.quote | carry->inside | carry->closing))) {
        carry->separator = all >> 63;
        return all;
    }
    uint64_t inside = CK_NAME(parity)(b.quote) ^ carry->inside; /* opening quotes count, closing ones do not */
    uint64_t opening = b.quote & inside, closing = b.quote & ~inside, separators = all & ~inside;
    uint64_t before = separators << 1 | carry->separator, closed = closing << 1 | carry->closing;
    uint64_t returns = 0;
    for (uint64_t m = closed & ~(separators | opening); m; m &= m - 1) { /* a closing quote before CR LF is in order */
        const uint8_t *q = p + __builtin_ctzll(m);
        if (q[0] == '\r' && q[1] == '\n') returns |= m & -m;
    }
    *stray |= ((opening & ~(before | closed)) | (closed & ~(separators | opening | returns))) != 0;
    carry->inside = (uint64_t)((int64_t)inside >> 63);
    carry->separator = separators >> 63;
    carry->closing = closing >> 63;
    return separators;
}

CK_TARGET static void CK_NAME(mark)(const ck_csv *c, const uint8_t *p, size_t n, ck_csv_chunk *out) {
    CK_NAME(carry) carry = {.separator = 1};
    CK_NAME(odd) odd = {0};
    uint32_t count = 0, records = 0;
    bool stray = false;
    out->start[0] = 0;
    for (size_t i = 0; i < n; i += 64) {
        CK_NAME(block) b = CK_NAME(look)(p + i, c->delimiter, &odd);
        if (CK_UNLIKELY(n - i < 64)) {
            uint64_t live = ~(~0ULL << (n - i));
            b = (CK_NAME(block)){b.delimiter & live, b.newline & live, b.quote & live};
        }
        uint64_t m = CK_NAME(outside)(p + i, b, &carry, &stray);
        records += (uint32_t)__builtin_popcountll(m & b.newline);
        /* Four are written whatever there is: how many there are is not to be guessed from block to block. */
        uint32_t total = count + (uint32_t)__builtin_popcountll(m);
        uint16_t *at = out->start + count + 1;
        do {
            for (unsigned k = 0; k < 4; k++) {
                at[k] = (uint16_t)(i + CK_NAME(lowest)(m) + 1);
                m &= m - 1;
            }
            count += 4, at += 4;
        } while (CK_UNLIKELY(count < total));
        count = total;
    }
    out->separator_count = count;
    out->record_count = records;
    out->odd = CK_NAME(any)(odd); /* bytes behind the end may say so in vain */
    out->stray = stray;
}

/* ---- columns ---- */

/* A value out of the ordinary. false: its record is for csv_record.c, or *status is not CK_OK. */
static bool CK_NAME(general)(ck_decoder *d, ck_target *t, uint32_t row, const uint8_t *p, const uint8_t *end,
                             ck_buffer *buf, ck_status *status) {
    ck_status s = ck_csv_store(d, t, row, (ck_csv_field){p, end}, buf);
    if (s == CK_OK) return true;
    if (s != CK_DATA) *status = s;
    return false;
}

/* The fields at `position` down the rows. */
typedef struct CK_NAME(walk) {
    const uint8_t *base;
    const uint16_t *start;
    uint32_t step;
    bool last; /* of the record: a CR may stand before its newline */
} CK_NAME(walk);

static inline const uint8_t *CK_NAME(field)(const CK_NAME(walk) * w, uint32_t i, const uint8_t **end) {
    const uint16_t *s = w->start + (size_t)i * w->step;
    const uint8_t *p = w->base + s[0], *e = w->base + s[1] - 1;
    if (w->last && e > p && e[-1] == '\r') e--;
    *end = e;
    return p;
}

/* The field [p, end), of which 16 digits have been read: up to 19, in range. */
CK_TARGET static bool CK_NAME(long_integer)(const uint8_t *p, const uint8_t *end, bool minus, uint64_t u,
                                            int64_t *out) {
    unsigned n = CK_NAME(more_digits)(p + minus, &u);
    *out = minus ? (int64_t)(0 - u) : (int64_t)u;
    return n > 0 && p + minus + n == end && u <= (uint64_t)INT64_MAX + minus;
}

CK_TARGET static uint32_t CK_NAME(integers)(ck_decoder *d, ck_target *t, const CK_NAME(walk) * w, uint32_t rows,
                                            ck_buffer *buf, ck_status *status) {
    uint32_t row = d->rows.row_count;
    int64_t *out = t->i64 + row, lo = t->lo, hi = t->hi;
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *end, *p = CK_NAME(field)(w, i, &end);
        bool minus = *p == '-';
        uint64_t u;
        unsigned n = CK_NAME(digits)(p + minus, &u);
        int64_t v = minus ? -(int64_t)u : (int64_t)u;
        out[i] = v;
        if (CK_LIKELY(n - 1 < 15 && p + minus + n == end && v >= lo && v <= hi))
            ck_rows_valid(t, row + i);
        else if (n == 16 && CK_NAME(long_integer)(p, end, minus, u, &out[i]) && out[i] >= lo && out[i] <= hi)
            ck_rows_valid(t, row + i);
        else if (!CK_NAME(general)(d, t, row + i, p, end, buf, status))
            return i;
    }
    return rows;
}

CK_TARGET static uint32_t CK_NAME(strings)(ck_decoder *d, ck_target *t, const CK_NAME(walk) * w, uint32_t rows,
                                           ck_buffer *buf, ck_status *status) {
    const ck_csv *c = d->csv;
    uint32_t row = d->rows.row_count, index = 0;
    bool any_long = false;
    *status = ck_rows_heap(&d->rows, buf, &index);
    if (*status != CK_OK) return 0;
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *end, *p = CK_NAME(field)(w, i, &end);
        size_t n = (size_t)(end - p);
        if (CK_LIKELY(n != c->null_bytes && *p != '"')) {
            ck_rows_valid(t, row + i);
            CK_NAME(put_view)(&t->views[row + i], p, n, index, (size_t)(p - buf->p));
            any_long |= n > CK_STRVIEW_INLINE;
        } else if (!CK_NAME(general)(d, t, row + i, p, end, buf, status)) {
            rows = i;
        }
    }
    t->long_seen |= any_long;
    return rows;
}

CK_TARGET static uint32_t CK_NAME(doubles)(ck_decoder *d, ck_target *t, const CK_NAME(walk) * w, uint32_t rows,
                                           ck_buffer *buf, ck_status *status) {
    uint32_t row = d->rows.row_count;
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *at, *end, *p = CK_NAME(field)(w, i, &end);
        ck_number n;
        double *out = &t->f64[row + i];
        if (CK_LIKELY(ck_number_scan(p, &n, &at) == end &&
                      (ck_number_f64(&n, out) || ck_number_f64_exact(p, end, out))))
            ck_rows_valid(t, row + i);
        else if (!CK_NAME(general)(d, t, row + i, p, end, buf, status))
            return i;
    }
    return rows;
}

CK_TARGET static uint32_t CK_NAME(decimals)(ck_decoder *d, ck_target *t, const CK_NAME(walk) * w, uint32_t rows,
                                            ck_buffer *buf, ck_status *status) {
    uint32_t row = d->rows.row_count;
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *at, *end, *p = CK_NAME(field)(w, i, &end);
        ck_number n;
        if (CK_LIKELY(ck_number_scan(p, &n, &at) == end && ck_value_decimal(t->field->type, &n, &t->i128[row + i])))
            ck_rows_valid(t, row + i);
        else if (!CK_NAME(general)(d, t, row + i, p, end, buf, status))
            return i;
    }
    return rows;
}

CK_TARGET static uint32_t CK_NAME(timestamps)(ck_decoder *d, ck_target *t, const CK_NAME(walk) * w, uint32_t rows,
                                              ck_buffer *buf, ck_status *status) {
    uint32_t row = d->rows.row_count;
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *end, *p = CK_NAME(field)(w, i, &end);
        int64_t us;
        if (CK_LIKELY(ck_timestamp_scan(p, &us) == end)) {
            ck_rows_valid(t, row + i);
            t->i64[row + i] = ck_time_at_precision(t->field->type->precision, us);
        } else if (!CK_NAME(general)(d, t, row + i, p, end, buf, status)) {
            return i;
        }
    }
    return rows;
}

static uint32_t CK_NAME(others)(ck_decoder *d, ck_target *t, const CK_NAME(walk) * w, uint32_t rows, ck_buffer *buf,
                                ck_status *status) {
    for (uint32_t i = 0; i < rows; i++) {
        const uint8_t *end, *p = CK_NAME(field)(w, i, &end);
        if (!CK_NAME(general)(d, t, d->rows.row_count + i, p, end, buf, status)) return i;
    }
    return rows;
}

CK_TARGET static uint32_t CK_NAME(column)(ck_decoder *d, ck_target *t, const uint8_t *base, uint32_t position,
                                          uint32_t rows, ck_buffer *buf, ck_status *status) {
    const ck_csv *c = d->csv;
    CK_NAME(walk) w = {base, c->chunk->start + position, c->field_count, position + 1 == c->field_count};
    *status = CK_OK;
    if (t->kind == CK_TYPE_VARCHAR && t->field->type->precision == 0)
        return CK_NAME(strings)(d, t, &w, rows, buf, status);
    if (c->null_bytes > 0) return CK_NAME(others)(d, t, &w, rows, buf, status); /* "0" may be the text of NULL */
    if (ck_kind_is_integer(t->kind)) return CK_NAME(integers)(d, t, &w, rows, buf, status);
    if (t->kind == CK_TYPE_DOUBLE) return CK_NAME(doubles)(d, t, &w, rows, buf, status);
    if (t->kind == CK_TYPE_DECIMAL) return CK_NAME(decimals)(d, t, &w, rows, buf, status);
    if (t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ)
        return CK_NAME(timestamps)(d, t, &w, rows, buf, status);
    return CK_NAME(others)(d, t, &w, rows, buf, status);
}
