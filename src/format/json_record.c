/* One record by the grammar: where the fast way ends up when it gives a record up, and what decides that one is bad. */
#include "format/json_int.h"

ck_status ck_json_init(ck_json *j, ck_mem mem, ck_rows *rows, ck_why *why, ck_cpu cpu) {
    *j = (ck_json){.mem = mem, .rows = rows, .why = why, .kernel = ck_json_kernel_for(cpu)};
    ck_bytes_init(&j->text, mem, CK_RECORD_BYTES_MAX);
    ck_status s = ck_json_runs_init(&j->runs, mem, rows->schema->field_count);
    if (s == CK_OK) s = ck_json_keys_init(&j->keys, mem, rows->target_count);
    if (s == CK_OK && !(j->values = ck_alloc_array(mem, rows->target_count, sizeof *j->values))) s = CK_NOMEM;
    if (s != CK_OK) {
        ck_json_destroy(j);
        return s;
    }
    for (uint32_t i = 0; i < rows->target_count; i++) ck_json_keys_add(&j->keys, rows->targets[i].field->name, i);
    return CK_OK;
}

void ck_json_destroy(ck_json *j) {
    ck_json_runs_destroy(&j->runs);
    ck_json_keys_destroy(&j->keys);
    if (j->values) ck_free(j->mem, j->values, j->rows->target_count * sizeof *j->values);
    ck_free(j->mem, j->members, j->member_capacity * sizeof *j->members);
    ck_free(j->mem, j->slots, j->slot_capacity * sizeof *j->slots);
    ck_bytes_destroy(&j->text);
    *j = (ck_json){0};
}

enum { SCRATCH_MEMBERS_MAX = 4096, SCRATCH_SLOTS_MAX = 16384, SCRATCH_TEXT_BYTES_MAX = 1 << 20 };

void ck_json_trim_scratch(ck_json *j) {
    j->member_count = 0; /* an earlier failure may have left some */
    if (CK_UNLIKELY(j->member_capacity > SCRATCH_MEMBERS_MAX)) {
        ck_free(j->mem, j->members, j->member_capacity * sizeof *j->members);
        j->members = NULL;
        j->member_capacity = 0;
    }
    if (CK_UNLIKELY(j->slot_capacity > SCRATCH_SLOTS_MAX)) {
        ck_free(j->mem, j->slots, j->slot_capacity * sizeof *j->slots);
        j->slots = NULL;
        j->slot_capacity = 0;
    }
    if (CK_UNLIKELY(j->text.capacity > SCRATCH_TEXT_BYTES_MAX)) {
        ck_bytes_destroy(&j->text);
        ck_bytes_init(&j->text, j->mem, CK_RECORD_BYTES_MAX);
    }
}

static ck_json_op op_for(const ck_target *t) {
    if (!t) return CK_JSON_OP_SKIP;
    if (t->kind == CK_TYPE_VARCHAR && t->field->type->precision == 0)
        return t->emitted ? CK_JSON_OP_STRING : CK_JSON_OP_PRESENT;
    if (ck_kind_is_integer(t->kind)) return CK_JSON_OP_INTEGER;
    if (t->kind == CK_TYPE_DOUBLE) return CK_JSON_OP_DOUBLE;
    if (t->kind == CK_TYPE_BOOLEAN) return CK_JSON_OP_BOOLEAN;
    if (t->kind == CK_TYPE_DECIMAL) return CK_JSON_OP_DECIMAL;
    if (t->kind == CK_TYPE_TIMESTAMP || t->kind == CK_TYPE_TIMESTAMP_LTZ) return CK_JSON_OP_TIMESTAMP;
    return CK_JSON_OP_ANY;
}

/* The record while it is walked. */
typedef struct walk {
    ck_json *j;
    const uint8_t *end;    /* its newline */
    const uint8_t *run;    /* where the run before the next value began */
    ck_json_follow *after; /* what that run follows; NULL: it is not to be learned */
    bool first;
    ck_json_fault fault;
} walk;

static void learn(walk *w, const uint8_t *run_end, ck_json_op op, ck_target *t) {
    if (!w->after) return;
    ck_json *j = w->j;
    ck_json_run *run = ck_json_runs_learn(&j->runs, w->run, (size_t)(run_end - w->run), w->first, op, t, j->serial);
    if (run && w->after->last != run) *w->after = (ck_json_follow){.last = run, .before = w->after->last};
    w->after = run ? &run->follow : NULL;
    w->first = false;
}

enum { STRANGERS_MAX = 256 }; /* keys nobody wants are compared so often: records are alike */

/* A key that nobody wants: is it a column's name in other letters? */
static void look_like(ck_json *j, ck_view name) {
    if (j->strangers >= STRANGERS_MAX || name.n >= sizeof j->spelled) return;
    j->strangers++;
    for (uint32_t i = 0; i < j->rows->target_count; i++) {
        const ck_target *t = &j->rows->targets[i];
        if (t->stamp || !ck_view_eq_nocase(name, ck_view_of(t->field->name))) continue;
        memcpy(j->spelled, name.p, name.n);
        j->spelled[name.n] = 0;
        j->like = t;
        return;
    }
}

/* The target of a key, NULL when no one wants it. */
static ck_status target_of(ck_json *j, const ck_json_value *key, ck_target **out) {
    ck_view name = {(const char *)key->p, (size_t)(key->end - key->p)};
    if (key->escaped) {
        ck_bytes_clear(&j->text);
        if (ck_bytes_reserve(&j->text, name.n) != CK_OK) return CK_NOMEM;
        name = (ck_view){j->text.p, ck_json_unescape(key->p, key->end, j->text.p)};
    }
    int64_t i = ck_json_keys_find(&j->keys, name);
    *out = i < 0 ? NULL : &j->rows->targets[i];
    if (!*out) look_like(j, name);
    return CK_OK;
}

/* `"key" : value` at *pp. */
static ck_status member(walk *w, const uint8_t **pp) {
    ck_json *j = w->j;
    const uint8_t *p = *pp;
    ck_json_value key, value;
    if (*p != '"') {
        w->fault = (ck_json_fault){p, CK_JSON_UNEXPECTED};
        return CK_DATA;
    }
    p = j->kernel->string(p + 1, &key, &w->fault);
    if (!p) return CK_DATA;
    ck_target *t;
    CK_TRY(target_of(j, &key, &t));
    p = ck_json_space(p, w->end);
    if (*p != ':') {
        w->fault = (ck_json_fault){p, CK_JSON_UNEXPECTED};
        return CK_DATA;
    }
    p = ck_json_space(p + 1, w->end);
    if (key.escaped) w->after = NULL;
    learn(w, p, op_for(t), t);
    p = j->kernel->value(p, w->end, &value, &w->fault);
    if (!p) return CK_DATA;
    w->run = p;
    if (t) {
        t->stamp = j->serial;
        j->values[t - j->rows->targets] = value;
    }
    *pp = p;
    return CK_OK;
}

static ck_status object(walk *w, const uint8_t *p) {
    const uint8_t *end = w->end;
    w->fault = (ck_json_fault){p, CK_JSON_UNEXPECTED};
    if (*p != '{') return CK_DATA;
    p = ck_json_space(p + 1, end);
    bool more = p >= end || *p != '}';
    while (more) {
        CK_TRY(member(w, &p));
        p = ck_json_space(p, end);
        w->fault = (ck_json_fault){p, CK_JSON_UNEXPECTED};
        if (p >= end || (*p != ',' && *p != '}')) return CK_DATA;
        more = *p == ',';
        if (more) p = ck_json_space(p + 1, end);
    }
    p = ck_json_space(p + 1, end);
    w->fault = (ck_json_fault){p, CK_JSON_TRAILING};
    if (p != end) return CK_DATA;
    learn(w, end + 1, CK_JSON_OP_END, NULL);
    return CK_OK;
}

/* Columns in schema order, so that the first bad one is the same however the record is written. */
static ck_status convert(ck_json *j, ck_json_span *s, const uint8_t *record) {
    uint32_t row = j->rows->row_count;
    for (uint32_t i = 0; i < j->rows->target_count; i++) {
        ck_target *t = &j->rows->targets[i];
        bool seen = t->stamp == j->serial;
        j->why->field = t->field->name;
        const ck_json_value *v = &j->values[i];
        j->why->column = seen ? v->p - record + (v->kind != CK_JSON_STRING) : 0; /* from 1, its quote included */
        if (seen)
            CK_TRY(ck_json_store(j, t, row, v, s->buf));
        else
            CK_TRY(ck_json_store_null(j, t, row, "missing"));
    }
    return CK_OK;
}

ck_status ck_json_record(ck_json *j, ck_json_span *s, const uint8_t *p, const uint8_t *end, bool *blank) {
    j->why->field = NULL;
    j->serial++;
    ck_json_trim_scratch(j);
    walk w = {.j = j, .end = end, .run = p, .after = &j->runs.first, .first = true};
    const uint8_t *start = ck_json_space(p, end);
    *blank = start == end;
    if (*blank) return CK_OK;
    ck_status status = object(&w, start);
    if (status == CK_DATA) return ck_json_explain(j->why, &w.fault, p, end, "of the record");
    if (status == CK_OK) status = convert(j, s, p);
    if (status != CK_OK) {
        ck_rows_undo(j->rows, j->rows->row_count, j->rows->row_count + 1);
        return status;
    }
    if (s->origins && !ck_rows_origin(j->rows, j->rows->row_count, s->offset + (uint64_t)(p - s->buf->p)))
        return CK_FULL;
    j->rows->row_count++;
    return CK_OK;
}
