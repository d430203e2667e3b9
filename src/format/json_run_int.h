/* The fast way through records, compiled once per instruction set: the includer defines CK_SIMD (0: plain registers, 1:
 * AVX2), CK_TARGET (the function attribute) and CK_NAME(x). See json_int.h for what it relies on. Whatever it does not
 * expect it gives up, so that every refusal and its wording come from json_record.c. */
#include "format/json_int.h"
#include "format/lane_int.h"

/* ---- scanning ---- */

#if CK_SIMD
/* A bit for each of 32 bytes that is a quote, a backslash, a control character or not ASCII: signed, the last two are
 * one comparison. */
CK_TARGET static inline uint32_t CK_NAME(special)(const uint8_t *p) {
    __m256i x = CK_NAME(load)(p);
    __m256i quote = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('"')), slash = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\'));
    __m256i odd = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x20), x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, slash), odd));
}
/* The same without the bytes over 0x7F. */
CK_TARGET static inline uint32_t CK_NAME(special_text)(const uint8_t *p) {
    __m256i x = CK_NAME(load)(p);
    __m256i quote = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('"')), slash = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('\\'));
    __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(x, _mm256_set1_epi8(0x1F)), x);
    return (uint32_t)_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(quote, slash), control));
}
/* 64 bytes a step: where a string ends varies, and one step more of straight code is cheaper than a wrong guess. */
CK_TARGET static inline const uint8_t *CK_NAME(find_plain)(const uint8_t *p) {
    for (;; p += 64) {
        uint64_t m = CK_NAME(special)(p) | (uint64_t)CK_NAME(special)(p + 32) << 32;
        if (CK_LIKELY(m)) return p + __builtin_ctzll(m);
    }
}
CK_TARGET static const uint8_t *CK_NAME(text)(const uint8_t *p) {
    for (;; p += 32) {
        uint32_t m = CK_NAME(special_text)(p);
        if (m) return p + __builtin_ctz(m);
    }
}
#else
static inline const uint8_t *CK_NAME(find_plain)(const uint8_t *p) {
    for (;; p += 8) {
        uint64_t x = ck_load64(p);
        uint64_t m = (ck_swar_eq(x, '"') | ck_swar_eq(x, '\\') | ck_swar_below(x, 0x20) | x) & CK_SWAR_HIGH;
        if (m) return p + ck_swar_index(m);
    }
}
static const uint8_t *CK_NAME(text)(const uint8_t *p) {
    for (;; p += 8) {
        uint64_t x = ck_load64(p);
        uint64_t m = ck_swar_eq(x, '"') | ck_swar_eq(x, '\\') | ck_swar_below(x, 0x20);
        if (m) return p + ck_swar_index(m);
    }
}
#endif
CK_TARGET static const uint8_t *CK_NAME(plain)(const uint8_t *p) { return CK_NAME(find_plain)(p); }

CK_TARGET static inline bool CK_NAME(matches)(const uint8_t *p, const ck_json_run *r) {
#if CK_SIMD
    __m256i head = _mm256_loadu_si256((const __m256i *)(const void *)r->head);
    uint32_t same = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(CK_NAME(load)(p), head));
    if (CK_UNLIKELY((r->head_mask & ~same) != 0)) return false;
#else
    if (((ck_load64(p) ^ r->word[0]) & r->mask[0]) || ((ck_load64(p + 8) ^ r->word[1]) & r->mask[1])) return false;
    if (r->bytes > 16 &&
        (((ck_load64(p + 16) ^ r->word[2]) & r->mask[2]) || ((ck_load64(p + 24) ^ r->word[3]) & r->mask[3])))
        return false;
#endif
    if (CK_LIKELY(r->bytes <= CK_JSON_RUN_HEAD)) return true;
    /* a newline ends the text before the comparison can leave it: no run has one but at its end */
    for (uint32_t i = CK_JSON_RUN_HEAD; i < r->bytes; i++)
        if (p[i] != r->rest[i - CK_JSON_RUN_HEAD]) return false;
    return true;
}

/* ---- values ---- */

/* Any value that no column takes: behind it, or NULL. */
CK_TARGET static inline const uint8_t *CK_NAME(skip)(const ck_json *j, const ck_json_span *s, const uint8_t *p,
                                                     ck_json_value *v) {
    if (CK_LIKELY(*p == '"')) {
        const uint8_t *q = CK_NAME(find_plain)(p + 1);
        if (CK_LIKELY(*q == '"')) return q + 1;
    } else {
        uint64_t ignored;
        const uint8_t *q = p + (*p == '-');
        unsigned n = CK_NAME(digits)(q, &ignored);
        if (CK_LIKELY(n > 0 && n < 16 && (*q != '0' || n == 1))) {
            q += n;
            if (CK_LIKELY(*q != '.' && (*q | 0x20) != 'e')) return q;
        }
    }
    ck_json_fault fault;
    const uint8_t *end = memchr(p, '\n', (size_t)(s->last - p));
    return ck_json_value_at(j->kernel, p, end, v, &fault);
}

/* An integer of 16 digits or more: behind it, or NULL when it is none or too large. */
static const uint8_t *CK_NAME(long_integer)(ck_target *t, uint32_t row, const uint8_t *p) {
    ck_number n;
    bool range;
    const uint8_t *at;
    int64_t v;
    p = ck_number_scan(p, &n, &at);
    if (!p || !ck_number_i64(&n, &v, &range) || v < t->lo || v > t->hi) return NULL;
    ck_rows_valid(t, row);
    t->i64[row] = v;
    return p;
}

/* What is not in line: nulls, escapes, other kinds. Behind the value; NULL: give up, or s->status is not CK_OK. */
static const uint8_t *CK_NAME(general)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row, const uint8_t *p) {
    ck_json_fault fault;
    ck_json_value v;
    const uint8_t *end = memchr(p, '\n', (size_t)(s->last - p));
    p = ck_json_value_at(j->kernel, p, end, &v, &fault);
    if (!p) return NULL;
    ck_status status = ck_json_store(j, t, row, &v, s->buf);
    if (status == CK_OK) return p;
    if (status != CK_DATA) s->status = status;
    return NULL;
}

/* Columns the record lacks. false: one of them is NOT NULL, or one came twice. */
static bool CK_NAME(missing)(ck_json *j, ck_json_span *s, uint32_t row) {
    for (uint32_t i = 0; i < j->rows->target_count; i++) {
        ck_target *t = &j->rows->targets[i];
        if (t->stamp == j->serial) continue;
        if (!t->field->nullable) return false;
        s->status = ck_rows_null(t, row);
        if (s->status != CK_OK) return false;
    }
    return true;
}

/* One record from p: behind it, or NULL. */
CK_TARGET static inline const uint8_t *CK_NAME(record)(ck_json *j, ck_json_span *s, const uint8_t *p, uint32_t row) {
    ck_json_run **link = &j->runs.first;
    uint32_t found = 0;
    uint64_t serial = ++j->serial;
    for (;;) {
        ck_json_run *r = *link;
        if (CK_UNLIKELY(!CK_NAME(matches)(p, r))) {
            r = ck_json_runs_find(&j->runs, j->kernel, p, link == &j->runs.first);
            if (!r) return NULL;
            *link = r;
        }
        link = &r->next;
        p += r->bytes;
        ck_target *t = r->target;
        if (t) {
            if (CK_UNLIKELY(t->stamp == serial)) return NULL; /* twice: the last one wins, not here */
            t->stamp = serial;
            found++;
        }
        switch (r->op) {
        case CK_JSON_OP_NONE: return NULL;
        case CK_JSON_OP_END: return CK_LIKELY(found == j->rows->target_count) || CK_NAME(missing)(j, s, row) ? p : NULL;
        case CK_JSON_OP_PRESENT:
            if (CK_UNLIKELY(*p == 'n' && !t->field->nullable)) return NULL;
            __attribute__((fallthrough));
        case CK_JSON_OP_SKIP: {
            ck_json_value ignored;
            p = CK_NAME(skip)(j, s, p, &ignored);
            break;
        }
        case CK_JSON_OP_INTEGER: {
            bool minus = *p == '-';
            const uint8_t *q = p + minus;
            uint64_t u;
            unsigned n = CK_NAME(digits)(q, &u);
            int64_t v = minus ? -(int64_t)u : (int64_t)u;
            if (CK_LIKELY(n > 0 && n < 16 && (*q != '0' || n == 1) && v >= t->lo && v <= t->hi)) {
                ck_rows_valid(t, row);
                t->i64[row] = v;
                p = q + n;
            } else {
                q = n == 16 ? CK_NAME(long_integer)(t, row, p) : NULL;
                p = q ? q : CK_NAME(general)(j, s, t, row, p);
            }
            break;
        }
        case CK_JSON_OP_STRING: {
            const uint8_t *q = CK_LIKELY(*p == '"') ? CK_NAME(find_plain)(p + 1) : p;
            if (CK_LIKELY(q != p && *q == '"')) {
                size_t n = (size_t)(q - p) - 1;
                ck_rows_valid(t, row);
                if (n > CK_STRVIEW_INLINE) {
                    if (CK_UNLIKELY(j->rows->read != s->buf)) {
                        uint32_t index;
                        s->status = ck_rows_heap(j->rows, s->buf, &index);
                        if (s->status != CK_OK) return NULL;
                    }
                    t->long_seen = true;
                }
                CK_NAME(put_view)(&t->views[row], p + 1, n, j->rows->read_index, (size_t)(p + 1 - s->buf->p));
                p = q + 1;
            } else {
                p = CK_NAME(general)(j, s, t, row, p);
            }
            break;
        }
        case CK_JSON_OP_DOUBLE: {
            ck_number n;
            const uint8_t *at, *q = ck_number_scan(p, &n, &at);
            double v;
            if (CK_LIKELY(q && ck_number_f64(&n, &v))) {
                ck_rows_valid(t, row);
                t->f64[row] = v;
                p = q;
            } else {
                p = CK_NAME(general)(j, s, t, row, p);
            }
            break;
        }
        case CK_JSON_OP_BOOLEAN: {
            uint32_t word = ck_load32(p);
            bool yes = word == 0x65757274; /* "true" */
            if (CK_LIKELY(yes || (word == 0x736C6166 && p[4] == 'e'))) {
                ck_rows_valid(t, row);
                ck_bit_put(t->bits, row, yes);
                p += yes ? 4 : 5;
            } else {
                p = CK_NAME(general)(j, s, t, row, p);
            }
            break;
        }
        case CK_JSON_OP_ANY: p = CK_NAME(general)(j, s, t, row, p); break;
        }
        if (CK_UNLIKELY(!p)) return NULL;
    }
}

CK_TARGET static ck_json_stop CK_NAME(run)(ck_json *j, ck_json_span *s) {
    ck_rows *rows = j->rows;
    while (s->p < s->last) {
        uint32_t row = rows->row_count;
        if (row == rows->capacity) return CK_JSON_FULL;
        const uint8_t *p = CK_NAME(record)(j, s, s->p, row);
        if (CK_UNLIKELY(!p)) {
            ck_rows_undo(rows, row, row + 1);
            return s->status == CK_OK ? CK_JSON_GIVEUP : CK_JSON_FAILED;
        }
        if (s->origins && !ck_rows_origin(rows, row, s->offset + (uint64_t)(s->p - s->buf->p))) {
            ck_rows_undo(rows, row, row + 1);
            return CK_JSON_FULL;
        }
        rows->row_count = row + 1;
        s->p = p;
    }
    return CK_JSON_ALL;
}
