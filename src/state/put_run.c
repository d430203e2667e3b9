/* Stored rows into a hash table, a run at a time: what restores do for nearly all of their rows. Like the batches of
 * batch.c a run is decoded and hashed whole, then its buckets and candidate rows are fetched, so that cache misses
 * overlap; only then rows are written, one after the other, since one may be the key of another. */
#include "state/find_int.h"
#include "state/stored_int.h"
#include "stream/key_groups.h"

enum { LOOSE_BYTES_MAX = 256 << 10 };

typedef struct put_run {
    ck_table *t;
    const ck_stored_put *puts;
    uint32_t n;
    uint64_t hashes[RUN];
    candidates c;
} put_run;

static void fetch(put_run *r) {
    const geometry g = geometry_of(r->t);
    candidates_of(r->t, &r->t->index, &g, r->hashes, r->n, r->t->epochs->tracking, &r->c);
}

static inline bool of_its_group(const ck_stored_put *p, uint32_t key_groups) {
    return key_groups == UINT32_MAX || ck_key_group_for_key(p->rest, key_groups) == p->key_group;
}

/* ---- a plain shape: from bytes to rows without anything in between ---- */

static uint32_t values_at(const ck_shape *s) { return s->value_count ? s->fields[1].offset : s->extra_at; }

/* What has a NULL, or does not parse, is for the general way. */
static bool is_simple(const ck_shape *s, const ck_stored_put *p) {
    uint32_t nulls = s->stored_nulls, first = values_at(s);
    if (p->value.n != nulls + s->extra_at - first || p->rest.n > CK_KEY_BYTES_MAX) return false;
    if (s->var_count ? p->rest.n == 1 && (uint8_t)p->rest.p[0] == 0xFF : p->rest.n != 8) return false;
    for (uint32_t i = 0; i < nulls; i++)
        if (p->value.p[i]) return false;
    for (uint32_t i = 1; i < s->field_count; i++)
        if (s->fields[i].phys == CK_PHYS_BOOL && (uint8_t)p->value.p[nulls + s->fields[i].offset - first] > 1)
            return false;
    return true;
}

static bool all_simple(const put_run *r) {
    for (uint32_t i = 0; i < r->n; i++)
        if (!is_simple(r->t->shape, &r->puts[i])) return false;
    return true;
}

static inline bool plain_equal(const ck_table *t, ck_view key, const ck_row *row) {
    uint32_t at = t->shape->fields[0].offset;
    if (ck_row_null(row, t->shape->fields[0].null_bit)) return false;
    return t->shape->var_count ? ck_view_eq(key, ck_var_get(t, row, at)) : memcmp(row + at, key.p, 8) == 0;
}

static ck_status plain_add(ck_table *t, ck_view key, uint64_t hash, ck_row **row) {
    uint32_t ref;
    CK_TRY(ck_row_add(t, &ref, row));
    ck_status s = CK_OK;
    if (t->shape->var_count)
        s = ck_var_set(t, *row, &t->shape->fields[0], key);
    else
        memcpy(*row + t->shape->fields[0].offset, key.p, 8);
    if (s == CK_OK) s = ck_index_insert(&t->index, hash, ref);
    if (s != CK_OK) ck_row_drop(t, ref);
    return s;
}

static ck_status plain_row(put_run *r, uint32_t i, ck_row **row) {
    ck_table *t = r->t;
    ck_view key = r->puts[i].rest;
    if (r->c.row[i] && plain_equal(t, key, ck_row_of(t, r->c.ref[i]))) return ck_row_writable(t, r->c.ref[i], row);
    uint32_t ref;
    ck_index_probe p = ck_index_probe_begin(&t->index, r->hashes[i]);
    while (ck_index_probe_next(&p, &ref))
        if (plain_equal(t, key, ck_row_of(t, ref))) return ck_row_writable(t, ref, row);
    return plain_add(t, key, r->hashes[i], row);
}

static ck_status put_plain(put_run *r, uint32_t key_groups, uint32_t *done) {
    const ck_shape *s = r->t->shape;
    uint32_t nulls = s->stored_nulls, first = values_at(s);
    for (uint32_t i = 0; i < r->n; i++) {
        const ck_stored_put *p = &r->puts[i];
        *done = i;
        if (!of_its_group(p, key_groups)) return CK_CORRUPT;
        r->hashes[i] = s->var_count ? ck_value_hash_str(r->t->seed, p->rest)
                                    : ck_value_hash_i64(r->t->seed, ck_row_i64((const ck_row *)p->rest.p, 0));
    }
    fetch(r);
    for (uint32_t i = 0; i < r->n; i++) {
        ck_row *row;
        *done = i;
        CK_TRY(plain_row(r, i, &row));
        memset(row, 0, s->layout.null_bytes);
        if (r->puts[i].value.n > nulls) memcpy(row + first, r->puts[i].value.p + nulls, r->puts[i].value.n - nulls);
    }
    *done = r->n;
    return CK_OK;
}

/* ---- any other shape, by way of loose rows ---- */

static ck_status loose_row(put_run *r, uint32_t i, const ck_loose_row *l, ck_row **row) {
    ck_table *t = r->t;
    if (r->c.row[i] && ck_loose_equal(t, l, ck_row_of(t, r->c.ref[i]))) return ck_row_writable(t, r->c.ref[i], row);
    bool fresh;
    return ck_table_hashed_upsert(t, l, r->hashes[i], row, &fresh);
}

static ck_status put_loose(put_run *r, uint32_t key_groups, uint32_t *done) {
    ck_table *t = r->t;
    const ck_shape *s = t->shape;
    ck_loose_row loose[RUN];
    CK_TRY(ck_loose_run(t, r->n, loose));
    for (uint32_t i = 0; i < r->n; i++) {
        ck_stored_put p = r->puts[i];
        ck_view order;
        *done = i;
        if (!ck_rest_split(s, &p.rest, &order) || !of_its_group(&p, key_groups)) return CK_CORRUPT;
        if (!ck_user_key_decode(s, p.rest, &loose[i])) return CK_CORRUPT;
        if (s->order_count) CK_TRY(ck_order_key_decode(s, order, &loose[i]));
        if (!ck_value_decode(s, p.value, &loose[i])) return CK_CORRUPT;
        r->hashes[i] = ck_loose_hash(t, &loose[i]);
    }
    fetch(r);
    for (uint32_t i = 0; i < r->n; i++) {
        ck_row *row;
        *done = i;
        CK_TRY(loose_row(r, i, &loose[i], &row));
        CK_TRY(ck_loose_store(t, &loose[i], s->value_first, s->field_count, row));
    }
    *done = r->n;
    return CK_OK;
}

/* ---- all ---- */

/* Rows that go through together; 0: these go one by one, as they do when some are not in memory. Order columns of text do: what they are unescaped into is one
 * for all loose rows. */
static uint32_t run_max(const ck_shape *s) {
    if (s->ordered || s->schema->bucketed) return 0;
    for (uint32_t i = s->partition_count; i < s->value_first; i++)
        if (ck_phys_is_var(s->fields[i].phys)) return 0;
    size_t fit = LOOSE_BYTES_MAX / ck_loose_bytes(s);
    return fit > RUN ? RUN : (uint32_t)fit;
}

ck_status ck_table_stored_puts(ck_table *t, const ck_stored_put *puts, uint32_t n, uint32_t key_groups,
                               uint32_t *done) {
    uint32_t max = t->out_rows ? 0 : run_max(t->shape), at = 0;
    put_run r;
    r.t = t;
    ck_status s = t->shape->listed ? ck_lists_suspend(t) : CK_OK;
    for (uint32_t in = 0; s == CK_OK && at < n; at += in) {
        ck_table_tidy(t);
        r.puts = puts + at, r.n = n - at < max ? n - at : max;
        if (max == 0)
            s = ck_table_stored_put(t, r.puts, key_groups), in = s == CK_OK;
        else
            s = t->shape->plain && all_simple(&r) ? put_plain(&r, key_groups, &in) : put_loose(&r, key_groups, &in);
    }
    *done = at;
    return s;
}
