/* The fast way through records, compiled once per instruction set: the includer defines CK_SIMD (0: plain registers, 1:
 * AVX2), CK_TARGET (the function attribute) and CK_NAME(x). See json_int.h for what it relies on. Whatever it does not
 * expect it gives up, so that every refusal and its wording come from json_record.c. */
#include "format/json_value_int.h"

/* ---- runs ---- */

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

/* ---- values, each behind itself or NULL: the record is given up, or s->status is not CK_OK ---- */

/* Any value by the grammar, converted by the general rules: nulls, other kinds, what does not fit. */
CK_TARGET static const uint8_t *CK_NAME(put_any)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row,
                                                 const uint8_t *p) {
    ck_json_fault fault;
    ck_json_value v;
    p = CK_NAME(any_value)(p, NULL, &v, &fault);
    if (!p) return NULL;
    if (t->nested) ck_json_trim_scratch(j);
    ck_status status = ck_json_store(j, t, row, &v, s->buf);
    if (status == CK_OK) return p;
    if (status != CK_DATA) s->status = status;
    return NULL;
}

/* A value no column takes. */
CK_TARGET static inline const uint8_t *CK_NAME(skip)(const uint8_t *p) {
    ck_json_fault fault;
    ck_json_value v;
    if (*p == '"') return CK_NAME(string)(p + 1, &v, &fault);
    if (*p < 'A') return CK_NAME(number)(p, &fault); /* or nothing that begins a value */
    return CK_NAME(any_value)(p, NULL, &v, &fault);
}

/* An integer of which 16 digits have been read from q on, or that is not plain. */
CK_TARGET static const uint8_t *CK_NAME(long_integer)(ck_target *t, uint32_t row, const uint8_t *p, const uint8_t *q,
                                                      uint64_t u) {
    unsigned digits = *q == '0' ? 0 : CK_NAME(more_digits)(q, &u);
    bool minus = p < q, range;
    int64_t v = minus ? (int64_t)(0 - u) : (int64_t)u;
    if (CK_LIKELY(digits && u <= (uint64_t)INT64_MAX + minus)) {
        p = q + digits;
    } else {
        ck_number n;
        const uint8_t *at;
        p = ck_number_scan(p, &n, &at);
        if (!p || !ck_number_i64(&n, &v, &range)) return NULL;
    }
    if (v < t->lo || v > t->hi) return NULL;
    ck_rows_valid(t, row);
    t->i64[row] = v;
    return p;
}

CK_TARGET static inline const uint8_t *CK_NAME(put_integer)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row,
                                                            const uint8_t *p) {
    bool minus = *p == '-';
    const uint8_t *q = p + minus;
    uint64_t u;
    unsigned n = CK_NAME(digits)(q, &u);
    int64_t v = minus ? -(int64_t)u : (int64_t)u;
    if (CK_LIKELY(n > 0 && n < 16 && (*q != '0' || n == 1) && v >= t->lo && v <= t->hi)) {
        ck_rows_valid(t, row);
        t->i64[row] = v;
        return q + n; /* a fraction matches no run: the record is given up there */
    }
    q = n == 16 ? CK_NAME(long_integer)(t, row, p, q, u) : NULL;
    return q ? q : CK_NAME(put_any)(j, s, t, row, p);
}

CK_TARGET static inline const uint8_t *CK_NAME(put_string)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row,
                                                           const uint8_t *p) {
    const uint8_t *q = CK_LIKELY(*p == '"') ? CK_NAME(find_plain)(p + 1) : p;
    if (CK_UNLIKELY(q == p || *q != '"')) return CK_NAME(put_any)(j, s, t, row, p);
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
    return q + 1;
}

CK_TARGET static inline const uint8_t *CK_NAME(put_double)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row,
                                                           const uint8_t *p) {
    ck_number n;
    const uint8_t *at, *q = ck_number_scan(p, &n, &at);
    double v;
    if (CK_UNLIKELY(!q || (!ck_number_f64(&n, &v) && !ck_number_f64_exact(p, q, &v))))
        return CK_NAME(put_any)(j, s, t, row, p);
    ck_rows_valid(t, row);
    t->f64[row] = v;
    return q;
}

CK_TARGET static inline const uint8_t *CK_NAME(put_decimal)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row,
                                                            const uint8_t *p) {
    ck_number n;
    const uint8_t *at, *q = ck_number_scan(p, &n, &at);
    if (CK_UNLIKELY(!q || !ck_value_decimal(t->field->type, &n, &t->i128[row])))
        return CK_NAME(put_any)(j, s, t, row, p);
    ck_rows_valid(t, row);
    return q;
}

CK_TARGET static inline const uint8_t *CK_NAME(put_boolean)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row,
                                                            const uint8_t *p) {
    uint32_t word = ck_load32(p);
    bool yes = word == 0x65757274;                                 /* "true" */
    if (CK_UNLIKELY(!yes && !(word == 0x736C6166 && p[4] == 'e'))) /* "fals" */
        return CK_NAME(put_any)(j, s, t, row, p);
    ck_rows_valid(t, row);
    ck_bit_put(t->bits, row, yes);
    return p + (yes ? 4 : 5);
}

CK_TARGET static inline const uint8_t *CK_NAME(put_timestamp)(ck_json *j, ck_json_span *s, ck_target *t, uint32_t row,
                                                              const uint8_t *p) {
    int64_t us;
    const uint8_t *q = CK_LIKELY(*p == '"') ? ck_timestamp_scan(p + 1, &us) : NULL;
    if (CK_UNLIKELY(!q || *q != '"')) return CK_NAME(put_any)(j, s, t, row, p);
    ck_rows_valid(t, row);
    t->i64[row] = ck_time_at_precision(t->field->type->precision, us);
    return q + 1;
}

/* ---- records ---- */

/* Columns the record lacks. false: one of them is NOT NULL, or there is no memory. */
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

/* The run at p: what followed the last one the last time, what followed it before that, or any other that is known. */
CK_TARGET static inline ck_json_run *CK_NAME(next_run)(ck_json *j, ck_json_follow *after, const uint8_t *p) {
    ck_json_run *r = after->last;
    if (CK_LIKELY(CK_NAME(matches)(p, r))) return r;
    ck_json_run *other = after->before;
    if (!CK_NAME(matches)(p, other)) {
        other = ck_json_runs_find(&j->runs, j->kernel, p, after == &j->runs.first);
        if (!other) return NULL;
    }
    *after = (ck_json_follow){.last = other, .before = r};
    return other;
}

/* One record from p: behind it, or NULL. */
CK_TARGET static inline const uint8_t *CK_NAME(record)(ck_json *j, ck_json_span *s, const uint8_t *p, uint32_t row) {
    ck_json_follow *after = &j->runs.first;
    uint32_t found = 0;
    uint64_t serial = ++j->serial;
    for (;;) {
        ck_json_run *r = CK_NAME(next_run)(j, after, p);
        if (CK_UNLIKELY(!r)) return NULL;
        after = &r->follow;
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
            p = CK_NAME(skip)(p);
            break;
        case CK_JSON_OP_SKIP: p = CK_NAME(skip)(p); break;
        case CK_JSON_OP_INTEGER: p = CK_NAME(put_integer)(j, s, t, row, p); break;
        case CK_JSON_OP_STRING: p = CK_NAME(put_string)(j, s, t, row, p); break;
        case CK_JSON_OP_DOUBLE: p = CK_NAME(put_double)(j, s, t, row, p); break;
        case CK_JSON_OP_DECIMAL: p = CK_NAME(put_decimal)(j, s, t, row, p); break;
        case CK_JSON_OP_BOOLEAN: p = CK_NAME(put_boolean)(j, s, t, row, p); break;
        case CK_JSON_OP_TIMESTAMP: p = CK_NAME(put_timestamp)(j, s, t, row, p); break;
        case CK_JSON_OP_ANY: p = CK_NAME(put_any)(j, s, t, row, p); break;
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
