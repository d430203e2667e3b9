/* The rows of a mark as stored bytes, read by one background thread. Reads only what was reachable when the mark was
 * taken: frozen roots, pages, variable pages, log chunks. */
#include "state/mark_int.h"

#include "base/hash.h"
#include "stream/key_groups.h"

enum { PIECE_ROWS = 256, PIECE_BYTES = 1 << 20, WORD_ROWS = 64 };

typedef struct piece_row { /* offsets: the buffer moves as it grows */
    size_t key, value, end;
    uint64_t op_id;
    uint8_t kind;
} piece_row;

struct ck_mark_scan {
    const ck_state_mark *m;
    ck_mark_scan_kind kind;
    ck_mem mem;
    uint32_t table;
    /* where in the table: erased keys first (deltas), then pages */
    bool table_open;
    const ck_log_chunk *chunk;
    uint32_t chunk_at;
    uint32_t page, word;
    uint64_t bits; /* rows of the present word still to come */
    bool page_open;
    bool plain;          /* of the present table */
    ck_cold_reader cold; /* its rows that were not in memory, after its pages */
    ck_error *err;       /* what reading them says */
    ck_bytes prefix; /* its keys' first bytes, the group still to be set */
    ck_bytes bytes;
    piece_row rows[PIECE_ROWS];
    ck_mark_row out[PIECE_ROWS];
    uint32_t count;
};

ck_status ck_mark_scan_new(ck_state_mark *m, ck_mark_scan_kind kind, ck_mark_scan **out, ck_error *err) {
    if (kind == CK_MARK_DELTA && m->completed == 0)
        return ck_fail(err, CK_INVALID, "checkpoint %llu has no completed one before it to count a delta from",
                       (unsigned long long)m->checkpoint);
    ck_mem mem = ck_mem_as(m->store->mem, CK_MEM_SNAPSHOT);
    ck_mark_scan *s = ck_alloc_zero(mem, sizeof *s);
    if (!s) return ck_nomem(err, mem, sizeof *s);
    s->m = m, s->kind = kind, s->mem = mem;
    ck_bytes_init(&s->bytes, mem, SIZE_MAX);
    ck_bytes_init(&s->prefix, mem, CK_NAME_BYTES_MAX + 8);
    *out = s;
    return CK_OK;
}

void ck_mark_scan_free(ck_mark_scan *s) {
    if (!s) return;
    ck_cold_reader_end(&s->cold);
    ck_bytes_destroy(&s->bytes);
    ck_bytes_destroy(&s->prefix);
    ck_free(s->mem, s, sizeof *s);
}

/* ---- one row ---- */

static uint32_t group_of(const ck_mark_scan *s, const uint8_t *user_key, uint32_t n) {
    return ck_key_group_of_hash(ck_fnv1a(user_key, n), s->m->key_groups);
}

/* [key group][slot]['|'] or [marker][slot]['\n'], the group still to be set: the same for all rows of a table. */
static ck_status make_prefix(ck_mark_scan *s, const ck_frozen *f) {
    bool narrow = ck_one_byte_groups(s->m->key_groups);
    ck_bytes_clear(&s->prefix);
    CK_TRY(ck_bytes_append(&s->prefix, "\xFF\xFF", narrow ? 1 : 2));
    CK_TRY(ck_bytes_str(&s->prefix, f->slot_name));
    return ck_bytes_char(&s->prefix, f->shape->schema->mode == CK_SLOT_KEYED ? '|' : '\n');
}

static ck_status begin_key(ck_mark_scan *s) { return ck_bytes_view(&s->bytes, ck_bytes_as_view(&s->prefix)); }

static void set_group(ck_mark_scan *s, const ck_frozen *f, size_t key, size_t rest, uint32_t user_key_bytes) {
    if (f->shape->schema->mode != CK_SLOT_KEYED) return;
    uint8_t *p = (uint8_t *)s->bytes.p;
    uint32_t group = group_of(s, p + rest + (f->shape->order_count ? 4 : 0), user_key_bytes);
    if (ck_one_byte_groups(s->m->key_groups)) {
        p[key] = (uint8_t)group;
    } else {
        p[key] = (uint8_t)(group >> 8);
        p[key + 1] = (uint8_t)group;
    }
}

static ck_status put_raw(ck_mark_scan *s, const ck_frozen *f, const ck_row *row, piece_row *r) {
    ck_var_source v = {.root = f->vars};
    r->key = s->bytes.n;
    CK_TRY(ck_bytes_view(&s->bytes, ck_var_source_get(v, row, f->shape->fields[0].offset)));
    r->value = s->bytes.n;
    return ck_bytes_view(&s->bytes, ck_var_source_get(v, row, f->shape->fields[1].offset));
}

static ck_status put_row(ck_mark_scan *s, const ck_frozen *f, const ck_row *row) {
    piece_row *r = &s->rows[s->count];
    ck_var_source v = {.root = f->vars};
    uint32_t user_key_bytes;
    if (f->raw) {
        CK_TRY(put_raw(s, f, row, r));
    } else {
        r->key = s->bytes.n;
        CK_TRY(begin_key(s));
        size_t rest = s->bytes.n;
        CK_TRY(ck_key_rest_encode(f->shape, v, row, &s->bytes, &user_key_bytes));
        set_group(s, f, r->key, rest, user_key_bytes);
        r->value = s->bytes.n;
        CK_TRY(ck_value_encode(f->shape, v, row, &s->bytes));
    }
    r->end = s->bytes.n;
    r->op_id = f->op_id, r->kind = 1;
    s->count++;
    return CK_OK;
}

/* ---- rows of a plain shape without a NULL, without the general encoders; the bytes are the same ---- */

/* Of 8-byte keys, four at a time: one hash is a chain of multiplications. */
static void groups_of_i64(const ck_row *const *rows, uint32_t n, uint32_t at, uint32_t key_groups, uint32_t *groups) {
    for (uint32_t i = 0; i < n; i += 4) {
        uint64_t key[4], h[4];
        for (uint32_t k = 0; k < 4; k++) {
            memcpy(&key[k], rows[i + k < n ? i + k : i] + at, 8);
            h[k] = CK_FNV_OFFSET;
        }
        for (uint32_t byte = 0; byte < 8; byte++)
            for (uint32_t k = 0; k < 4; k++) {
                h[k] = (h[k] ^ (key[k] & 0xFF)) * CK_FNV_PRIME;
                key[k] >>= 8;
            }
        for (uint32_t k = 0; k < 4 && i + k < n; k++) groups[i + k] = ck_key_group_of_hash(h[k], key_groups);
    }
}

static void groups_of_text(const ck_view *keys, uint32_t n, uint32_t key_groups, uint32_t *groups) {
    for (uint32_t i = 0; i < n; i++) groups[i] = ck_key_group_for_key(keys[i], key_groups);
}

/* Common widths without a call. */
static inline void copy_values(uint8_t *to, const ck_row *from, size_t n) {
    switch (n) {
    case 8: memcpy(to, from, 8); return;
    case 16: memcpy(to, from, 16); return;
    case 24: memcpy(to, from, 24); return;
    case 32: memcpy(to, from, 32); return;
    default: memcpy(to, from, n);
    }
}

static ck_status put_plain(ck_mark_scan *s, const ck_frozen *f, const ck_row *const *rows, uint32_t n) {
    const ck_shape *shape = f->shape;
    uint32_t key_at = shape->fields[0].offset, groups[WORD_ROWS];
    ck_view keys[WORD_ROWS];
    size_t values_at = shape->value_count ? shape->fields[1].offset : shape->extra_at, nulls = shape->stored_nulls,
           values = shape->extra_at - values_at, head = s->prefix.n, bytes = n * (head + nulls + values);
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = (ck_view){(const char *)rows[i] + key_at, 8};
        if (shape->var_count) keys[i] = ck_var_source_get((ck_var_source){.root = f->vars}, rows[i], key_at);
        if (keys[i].n > CK_KEY_BYTES_MAX) return CK_FULL;
        bytes += keys[i].n;
    }
    CK_TRY(ck_bytes_reserve(&s->bytes, bytes));
    if (shape->var_count)
        groups_of_text(keys, n, s->m->key_groups, groups);
    else
        groups_of_i64(rows, n, key_at, s->m->key_groups, groups);
    bool narrow = ck_one_byte_groups(s->m->key_groups);
    size_t at = s->bytes.n;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *p = (uint8_t *)s->bytes.p + at;
        size_t key = shape->var_count ? keys[i].n : 8, value = at + head + key;
        memcpy(p, s->prefix.p, head);
        p[0] = (uint8_t)(narrow ? groups[i] : groups[i] >> 8);
        if (!narrow) p[1] = (uint8_t)groups[i];
        if (shape->var_count)
            memcpy(p + head, keys[i].p, key);
        else
            memcpy(p + head, rows[i] + key_at, 8);
        memset(p + head + key, 0, nulls);
        copy_values(p + head + key + nulls, rows[i] + values_at, values);
        at = value + nulls + values;
        s->rows[s->count++] = (piece_row){value - head - key, value, at, f->op_id, 1};
    }
    s->bytes.n = at;
    return CK_OK;
}

/* Those of one word of a page, as far as the piece has room. */
static ck_status put_plain_word(ck_mark_scan *s, const ck_frozen *f, const uint8_t *page) {
    const ck_row *rows[WORD_ROWS];
    uint32_t n = 0;
    for (; s->bits && s->count + n < PIECE_ROWS; s->bits &= s->bits - 1) {
        uint32_t slot = s->word * 64 + (uint32_t)__builtin_ctzll(s->bits);
        rows[n] = page + (size_t)slot * f->shape->row_bytes;
        if (CK_UNLIKELY(ck_row_any_null(f->shape, rows[n])))
            CK_TRY(put_row(s, f, rows[n]));
        else
            n++;
    }
    return n ? put_plain(s, f, rows, n) : CK_OK;
}

static ck_status put_erase(ck_mark_scan *s, const ck_frozen *f, const uint8_t *rest, uint32_t n,
                           uint32_t user_key_bytes) {
    piece_row *r = &s->rows[s->count];
    r->key = s->bytes.n;
    if (f->raw) { /* a raw key is the stored key itself */
        CK_TRY(ck_bytes_append(&s->bytes, rest, n));
    } else {
        CK_TRY(begin_key(s));
        size_t at = s->bytes.n;
        CK_TRY(ck_bytes_append(&s->bytes, rest, n));
        set_group(s, f, r->key, at, user_key_bytes);
    }
    r->value = r->end = s->bytes.n;
    r->op_id = f->op_id, r->kind = 2;
    s->count++;
    return CK_OK;
}

static bool piece_full(const ck_mark_scan *s) { return s->count == PIECE_ROWS || s->bytes.n >= PIECE_BYTES; }

/* ---- erased keys ---- */

static void next_chunk(ck_mark_scan *s, const ck_frozen *f) {
    s->chunk = s->chunk == f->log_last ? NULL : s->chunk->next;
    s->chunk_at = 0;
}

static ck_status scan_log(ck_mark_scan *s, const ck_frozen *f) {
    while (s->chunk && !piece_full(s)) {
        bool wanted = s->chunk->epoch > s->m->completed && s->chunk->epoch <= s->m->epoch;
        if (!wanted || s->chunk_at == s->chunk->used) {
            next_chunk(s, f);
            continue;
        }
        const uint8_t *e = s->chunk->data + s->chunk_at;
        uint32_t n, user_key_bytes;
        memcpy(&n, e, 4);
        memcpy(&user_key_bytes, e + 4, 4);
        CK_TRY(put_erase(s, f, e + 8, n, user_key_bytes));
        s->chunk_at += 8 + n;
    }
    return CK_OK;
}

/* ---- pages ---- */

static uint64_t wanted_rows(const ck_mark_scan *s, const ck_shape *shape, ck_page_head *h, uint32_t word) {
    uint64_t live = ck_page_bits(shape, h, 0)[word];
    if (s->kind == CK_MARK_BASE) return live;
    uint64_t changed = 0;
    if (h->prepared > s->m->completed) changed |= ck_page_bits(shape, h, 1)[word];
    if (h->changed_before > s->m->completed) changed |= ck_page_bits(shape, h, 2)[word];
    return live & changed;
}

/* Rows of the page the scan stands in, as far as the piece has room. */
static ck_status scan_page(ck_mark_scan *s, const ck_frozen *f, uint8_t *page) {
    uint32_t class = ck_class_of_page(s->page);
    ck_page_head *h = ck_head_of(f->shape, class, page);
    uint32_t words = f->shape->forms[class].words;
    if (!s->page_open) {
        s->page_open = true, s->word = 0;
        s->bits = words ? wanted_rows(s, f->shape, h, 0) : 0;
    }
    while (!piece_full(s)) {
        while (s->bits == 0) {
            if (++s->word >= words) {
                s->page_open = false;
                s->page++;
                return CK_OK;
            }
            s->bits = wanted_rows(s, f->shape, h, s->word);
        }
        if (s->plain) {
            CK_TRY(put_plain_word(s, f, page));
            continue;
        }
        uint32_t slot = s->word * 64 + (uint32_t)__builtin_ctzll(s->bits);
        CK_TRY(put_row(s, f, page + (size_t)slot * f->shape->row_bytes));
        s->bits &= s->bits - 1;
    }
    return CK_OK;
}

/* ---- rows that were not in memory ---- */

static ck_status open_cold(ck_mark_scan *s, const ck_frozen *f) {
    s->cold = (ck_cold_reader){.db = s->m->store->cold->db,
                               .at = s->m->cold,
                               .store = s->m->store->cold->store,
                               .slot = f->cold_slot,
                               .head = CK_ROCKS_HEAD + (f->shape->schema->bucketed ? 8u : 0u),
                               .delta = s->kind == CK_MARK_DELTA,
                               .after = s->m->completed,
                               .until = s->m->epoch};
    ck_bytes_init(&s->cold.from, s->mem, SIZE_MAX);
    ck_bytes_init(&s->cold.keys, s->mem, SIZE_MAX);
    ck_bytes_init(&s->cold.rows, s->mem, SIZE_MAX);
    return ck_cold_reader_begin(&s->cold, s->err);
}

static ck_status put_cold(ck_mark_scan *s, const ck_frozen *f, ck_view rest, ck_view value) {
    piece_row *r = &s->rows[s->count];
    r->key = s->bytes.n;
    if (!f->raw) CK_TRY(begin_key(s));
    size_t at = s->bytes.n;
    CK_TRY(ck_bytes_view(&s->bytes, rest));
    uint32_t user_key_bytes = (uint32_t)(f->shape->order_count ? ck_cold_group(rest).n - 4 : rest.n);
    if (!f->raw) set_group(s, f, r->key, at, user_key_bytes);
    r->value = s->bytes.n;
    CK_TRY(ck_bytes_view(&s->bytes, value));
    r->end = s->bytes.n;
    r->op_id = f->op_id, r->kind = 1;
    s->count++;
    return CK_OK;
}

static ck_status scan_cold(ck_mark_scan *s, const ck_frozen *f, bool *done) {
    ck_view rest, value;
    bool any = true;
    *done = false;
    if (!s->cold.db) CK_TRY(open_cold(s, f));
    while (!piece_full(s)) {
        CK_TRY(ck_cold_reader_next(&s->cold, &any, &rest, &value, s->err));
        if (!any) break;
        CK_TRY(put_cold(s, f, rest, value));
    }
    if (!any) ck_cold_reader_end(&s->cold);
    *done = !any;
    return CK_OK;
}

static ck_status open_table(ck_mark_scan *s, const ck_frozen *f) {
    CK_TRY(make_prefix(s, f));
    s->plain = f->shape->plain && !f->raw;
    s->chunk = s->kind == CK_MARK_DELTA && f->log_last ? f->log_first : NULL;
    s->chunk_at = 0;
    s->page = 0, s->page_open = false;
    s->table_open = true;
    return CK_OK;
}

static ck_status scan_tables(ck_mark_scan *s) {
    while (s->table < s->m->table_count && !piece_full(s)) {
        const ck_frozen *f = &s->m->tables[s->table];
        if (!s->table_open) CK_TRY(open_table(s, f));
        if (s->chunk) {
            CK_TRY(scan_log(s, f));
            continue;
        }
        if (s->page < f->page_count) {
            uint8_t *page = ck_dir_get(f->pages, s->page);
            if (page)
                CK_TRY(scan_page(s, f, page));
            else
                s->page++;
            continue;
        }
        bool done = true;
        if (f->cold && s->m->cold) CK_TRY(scan_cold(s, f, &done));
        if (!done) continue;
        s->table++;
        s->table_open = false;
    }
    return CK_OK;
}

static ck_status key_too_long(const ck_mark_scan *s, ck_error *err) {
    const ck_frozen *f = &s->m->tables[s->table];
    return ck_fail(err, CK_FULL, "%s, slot \"%s\": a key of over %d bytes, and no checkpoint holds one",
                   f->slot == UINT32_MAX ? "an operator" : s->m->slots[f->slot].uid, f->slot_name, CK_KEY_BYTES_MAX);
}

ck_status ck_mark_scan_next(ck_mark_scan *s, const ck_mark_row **rows, uint32_t *count, ck_error *err) {
    ck_error own = CK_ERROR_INIT;
    s->count = 0, s->err = &own;
    ck_bytes_clear(&s->bytes);
    ck_status st = scan_tables(s);
    if (st != CK_OK && own.status != CK_OK) {
        if (err) *err = own;
        return st;
    }
    if (st == CK_FULL) return key_too_long(s, err);
    if (st != CK_OK) return ck_nomem(err, s->mem, s->bytes.n);
    for (uint32_t i = 0; i < s->count; i++) {
        const piece_row *r = &s->rows[i];
        s->out[i] = (ck_mark_row){.op_id = r->op_id,
                                  .key = {s->bytes.p + r->key, r->value - r->key},
                                  .value = {s->bytes.p + r->value, r->end - r->value},
                                  .kind = r->kind};
    }
    *rows = s->out, *count = s->count;
    return CK_OK;
}
