/* Where following a table is, as JSON, and which changes its first reading has seen already. */
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#include "base/json.h"
#include "connector/postgres/cdc_int.h"
#include "data/text.h"

/* ---- JSON ---- */

static bool add_lsn(struct yyjson_mut_doc *doc, yyjson_mut_val *to, const char *name, uint64_t lsn) {
    char text[CK_PG_LSN_BYTES];
    return yyjson_mut_obj_add_strcpy(doc, to, name, ck_pg_lsn_print(text, lsn));
}

static bool add_ranges(struct yyjson_mut_doc *doc, yyjson_mut_val *root, const ck_pg_cdc_position *p) {
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "ranges");
    for (uint32_t i = 0; list && i < p->range_count; i++) {
        yyjson_mut_val *r = yyjson_mut_arr_add_obj(doc, list);
        if (!r || !add_lsn(doc, r, "lsn", p->ranges[i].lsn)) return false;
        yyjson_mut_val *upto = p->ranges[i].upto ? yyjson_mut_obj_add_arr(doc, r, "upto") : NULL;
        if (p->ranges[i].upto && !upto) return false;
        for (uint32_t k = 0; upto && k < p->key_count; k++)
            if (!yyjson_mut_arr_add_str(doc, upto, p->ranges[i].upto[k])) return false;
    }
    return list != NULL;
}

ck_status ck_pg_cdc_print(ck_arena *a, const ck_pg_cdc_position *p, const char **out, ck_error *err) {
    struct yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(a, &doc, err));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    bool ok = yyjson_mut_obj_add_str(doc, root, "slot", p->slot) &&
              yyjson_mut_obj_add_bool(doc, root, "reading", p->reading) && add_lsn(doc, root, "lsn", p->lsn) &&
              add_lsn(doc, root, "tx", p->tx) && yyjson_mut_obj_add_uint(doc, root, "skip", p->skip) &&
              yyjson_mut_obj_add_uint(doc, root, "table", p->table) &&
              yyjson_mut_obj_add_uint(doc, root, "key", p->key_count) && add_ranges(doc, root, p) &&
              (p->time_us == INT64_MIN || yyjson_mut_obj_add_sint(doc, root, "time", p->time_us));
    if (!ok) return ck_nomem(err, a->mem, 256);
    ck_view text;
    CK_TRY(ck_json_write(a, doc, &text, err));
    *out = text.p;
    return CK_OK;
}

static bool get_lsn(yyjson_val *root, const char *name, uint64_t *out) {
    yyjson_val *v = yyjson_obj_get(root, name);
    return yyjson_is_str(v) && ck_pg_lsn_parse(yyjson_get_str(v), out);
}

static bool get_range(ck_arena *a, yyjson_val *v, uint32_t key_count, ck_pg_range *out) {
    yyjson_val *upto = yyjson_obj_get(v, "upto"), *value;
    size_t i, n;
    *out = (ck_pg_range){0};
    if (!get_lsn(v, "lsn", &out->lsn)) return false;
    if (!upto) return true;
    if (!yyjson_is_arr(upto) || yyjson_arr_size(upto) != key_count) return false;
    const char **values = ck_arena_array(a, key_count + 1u, sizeof *values);
    if (!values) return false;
    yyjson_arr_foreach(upto, i, n, value) {
        if (!yyjson_is_str(value)) return false;
        values[i] = yyjson_get_str(value);
    }
    out->upto = values;
    return true;
}

ck_status ck_pg_cdc_parse(ck_arena *a, const char *spec, ck_pg_cdc_position *p, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(spec), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *slot = yyjson_obj_get(root, "slot"),
               *skip = yyjson_obj_get(root, "skip"), *key = yyjson_obj_get(root, "key"),
               *list = yyjson_obj_get(root, "ranges"), *time = yyjson_obj_get(root, "time"),
               *table = yyjson_obj_get(root, "table"), *v;
    size_t i, n;
    *p = (ck_pg_cdc_position){0};
    bool ok = yyjson_is_str(slot) && yyjson_is_uint(skip) && yyjson_is_uint(key) &&
              yyjson_get_uint(key) <= CK_PG_KEY_MAX && yyjson_is_arr(list) &&
              yyjson_arr_size(list) <= CK_PG_RANGES_MAX && (!time || yyjson_is_int(time)) &&
              (!table || (yyjson_is_uint(table) && yyjson_get_uint(table) <= UINT32_MAX)) &&
              get_lsn(root, "lsn", &p->lsn) && get_lsn(root, "tx", &p->tx);
    if (ok) {
        p->slot = yyjson_get_str(slot);
        p->reading = yyjson_get_bool(yyjson_obj_get(root, "reading"));
        p->table = (uint32_t)yyjson_get_uint(table);
        p->skip = yyjson_get_uint(skip);
        p->key_count = (uint32_t)yyjson_get_uint(key);
        p->time_us = time ? yyjson_get_sint(time) : INT64_MIN;
        p->ranges = ck_arena_array(a, CK_PG_RANGES_MAX, sizeof *p->ranges);
        ok = p->ranges != NULL;
    }
    if (ok) yyjson_arr_foreach(list, i, n, v) ok = ok && get_range(a, v, p->key_count, &p->ranges[p->range_count++]);
    return ok ? CK_OK
              : ck_fail(err, CK_CORRUPT, "this is no position in the changes of a PostgreSQL table: %.200s", spec);
}

/* ---- keys ---- */

ck_status ck_pg_key_read(ck_pg *c, ck_arena *a, uint32_t oid, ck_pg_key *out, ck_error *err) {
    static const char sql[] =
        "SELECT a.attname, t.typname IN ('int2', 'int4', 'int8') FROM pg_catalog.pg_index i, unnest(i.indkey[0 : "
        "i.indnkeyatts "
        "- 1]) WITH ORDINALITY k(attnum, n), pg_catalog.pg_attribute a, pg_catalog.pg_type t WHERE i.indrelid = "
        "$1::oid AND "
        "i.indisprimary AND a.attrelid = i.indrelid AND a.attnum = k.attnum AND t.oid = a.atttypid ORDER BY k.n";
    char text[16];
    const char *value = text;
    PGresult *r;
    (void)snprintf(text, sizeof text, "%u", oid);
    CK_TRY(ck_pg_query(c, sql, 1, &value, &r, err));
    const ck_pg_lib *lib = c->lib;
    uint32_t n = (uint32_t)lib->PQntuples(r);
    *out = (ck_pg_key){ck_arena_array(a, n + 1u, sizeof(char *)), ck_arena_array(a, n + 1u, sizeof(char *)),
                       ck_arena_array(a, n + 1u, sizeof(bool)), n};
    bool ok = out->idents && out->names && out->integer;
    if (n > CK_PG_KEY_MAX) {
        lib->PQclear(r);
        return ck_fail(err, CK_REFUSED, "the server's PRIMARY KEY has %u columns, %d are followed", n, CK_PG_KEY_MAX);
    }
    for (uint32_t i = 0; ok && i < n; i++) {
        out->names[i] = ck_arena_strdup(a, lib->PQgetvalue(r, (int)i, 0));
        out->idents[i] = ck_pg_ident(a, lib->PQgetvalue(r, (int)i, 0));
        out->integer[i] = lib->PQgetvalue(r, (int)i, 1)[0] == 't';
        ok = out->names[i] && out->idents[i];
    }
    lib->PQclear(r);
    return ok ? CK_OK : ck_nomem(err, a->mem, 256);
}

static int compare(const ck_pg_key *k, const ck_view *key, const char *const *upto) {
    for (uint32_t i = 0; i < k->count; i++) {
        int64_t a = 0, b = 0;
        int c;
        if (k->integer[i] && ck_parse_i64(key[i], &a) && ck_parse_i64(ck_view_of(upto[i]), &b))
            c = (a > b) - (a < b);
        else
            c = ck_view_cmp(key[i], ck_view_of(upto[i]));
        if (c) return c;
    }
    return 0;
}

bool ck_pg_is_seen(const ck_pg_key *k, const ck_pg_range *ranges, uint32_t count, const ck_view *key, uint64_t lsn) {
    uint32_t at = 0;
    while (at + 1 < count && ranges[at].upto && compare(k, key, ranges[at].upto) > 0) at++;
    return count > 0 && lsn < ranges[at].lsn;
}
