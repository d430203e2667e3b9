/* Keys of a question that the server's type has no value for: a text that is no uuid, a number out of range. Such a key
 * is found nowhere, and is no reason to give up the others. The server says of an array that something in it is none;
 * which it is, is found by halves. Thread: the lookup's job. */
#include "connector/postgres/pg_int.h"

enum { TEXT_BYTES_MAX = 1 << 30 };

typedef struct elements {
    ck_pg *pg;
    const char *sql; /* reads an array */
    ck_view *list;   /* as they stand in it, quoted */
    ck_bytes text;
    ck_error *err;
} elements;

/* {"a","b \" c",NULL} */
static void split(const char *p, uint32_t count, ck_view *out) {
    for (uint32_t i = 0; i < count; i++) {
        const char *from = ++p;
        if (*p == '"') {
            for (p++; *p != '"'; p++) p += *p == '\\';
            p++;
        } else {
            p += sizeof "NULL" - 1;
        }
        out[i] = (ck_view){from, (size_t)(p - from)};
    }
}

static ck_status join(const ck_view *list, uint32_t count, ck_bytes *out) {
    ck_bytes_clear(out);
    for (uint32_t i = 0; i < count; i++) {
        CK_TRY(ck_bytes_char(out, i ? ',' : '{'));
        CK_TRY(ck_bytes_view(out, list[i]));
    }
    CK_TRY(ck_bytes_char(out, '}'));
    return ck_bytes_terminate(out);
}

static ck_status blank(elements *e, uint32_t from, uint32_t to) {
    PGresult *r = NULL;
    if (join(e->list + from, to - from, &e->text) != CK_OK) return ck_nomem(e->err, e->text.mem, e->text.n);
    const char *value = e->text.p;
    ck_status s = ck_pg_query(e->pg, e->sql, 1, &value, &r, e->err);
    if (r) e->pg->lib->PQclear(r);
    if (s != CK_DATA) return s;
    ck_error_reset(e->err);
    if (to - from == 1) {
        e->list[from] = CK_VIEW("NULL");
        return CK_OK;
    }
    uint32_t middle = from + (to - from) / 2;
    CK_TRY(blank(e, from, middle));
    return blank(e, middle, to);
}

ck_status ck_pg_blank_unfit(ck_pg *c, ck_arena *a, const char *type, uint32_t count, ck_bytes *array, ck_error *err) {
    ck_arena_mark mark = ck_arena_mark_now(a);
    elements e = {.pg = c,
                  .sql = ck_arena_printf(a, "SELECT $1::%s[] IS NULL", type),
                  .list = ck_arena_array(a, count, sizeof *e.list),
                  .err = err};
    ck_bytes_init(&e.text, array->mem, TEXT_BYTES_MAX);
    ck_status s = e.sql && e.list ? CK_OK : ck_nomem(err, a->mem, count * sizeof *e.list);
    if (s == CK_OK) {
        split(array->p, count, e.list);
        s = blank(&e, 0, count);
    }
    if (s == CK_OK && join(e.list, count, &e.text) != CK_OK) s = ck_nomem(err, array->mem, e.text.n);
    if (s == CK_OK) { /* the elements stand in the old one */
        ck_bytes old = *array;
        *array = e.text;
        e.text = old;
    }
    ck_bytes_destroy(&e.text);
    ck_arena_reset_to(a, mark);
    return s;
}
