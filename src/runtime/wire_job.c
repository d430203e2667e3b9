/* See wire_job.h. */
#include "runtime/wire_job.h"

#include "base/bytes.h"
#include "base/cursor.h"
#include "runtime/wire.h"

enum {
    REPORT_BYTES_MAX = 256 << 20,
    FLAG_RETRIABLE = 1,
    FLAG_FATAL = 2,
    TELL_ANEW = 0x20,
    TELL_STOP = 0x40,
    TELL_OVERTAKES = 0x80
};
enum { TELL_FLAGS = TELL_ANEW | TELL_STOP | TELL_OVERTAKES };

static ck_status bad(const ck_frame *f, ck_error *err) {
    return ck_fail(err, CK_CORRUPT, "a job frame of kind %u and %zu bytes does not check out", f->kind, f->n);
}

/* ---- tells ---- */

ck_frame *ck_wire_tell_frame(ck_mem mem, uint32_t subtask, const ck_tell *t) {
    ck_frame *f = ck_frame_new(mem, CK_WIRE_TELL, 14);
    if (!f) return NULL;
    for (unsigned i = 0; i < 4; i++) f->p[i] = (uint8_t)(subtask >> (24 - 8 * i));
    f->p[4] = (uint8_t)t->kind;
    f->p[5] = (uint8_t)((unsigned)t->barrier | (t->anew ? TELL_ANEW : 0) | (t->stop ? TELL_STOP : 0) |
                        (t->overtakes ? TELL_OVERTAKES : 0));
    for (unsigned i = 0; i < 8; i++) f->p[6 + i] = (uint8_t)(t->checkpoint >> (56 - 8 * i));
    return f;
}

ck_status ck_wire_read_tell(const ck_frame *f, uint32_t subtask_count, uint32_t *subtask, ck_tell *out, ck_error *err) {
    ck_cursor c = ck_cursor_of(f->p, f->n);
    uint8_t kind, barrier;
    if (f->kind != CK_WIRE_TELL || !ck_cursor_u32be(&c, subtask) || !ck_cursor_u8(&c, &kind) ||
        !ck_cursor_u8(&c, &barrier) || !ck_cursor_u64be(&c, &out->checkpoint) || c.left || *subtask >= subtask_count ||
        kind > CK_TELL_OVERTAKE || (barrier & ~TELL_FLAGS) > CK_BARRIER_FINAL)
        return bad(f, err);
    out->kind = (ck_tell_kind)kind;
    out->barrier = (ck_barrier_kind)(barrier & ~TELL_FLAGS);
    out->anew = barrier & TELL_ANEW;
    out->stop = barrier & TELL_STOP;
    out->overtakes = barrier & TELL_OVERTAKES;
    return CK_OK;
}

/* ---- writing a report ---- */

static ck_status put_string(ck_bytes *b, const char *z) {
    size_t n = z ? strlen(z) : 0;
    CK_TRY(ck_bytes_u32be(b, (uint32_t)n));
    return ck_bytes_append(b, z ? z : "", n);
}

static ck_status put_file(ck_bytes *b, const ck_manifest_file *m) {
    CK_TRY(put_string(b, m->path));
    CK_TRY(ck_bytes_u64be(b, m->bytes));
    CK_TRY(ck_bytes_u32be(b, m->crc32c));
    CK_TRY(ck_bytes_u64be(b, m->vertex));
    CK_TRY(ck_bytes_u32be(b, m->subtask));
    CK_TRY(ck_bytes_u32be(b, m->key_groups.first));
    CK_TRY(ck_bytes_u32be(b, m->key_groups.last));
    CK_TRY(ck_bytes_char(b, (char)m->kind));
    CK_TRY(put_string(b, m->base));
    CK_TRY(ck_bytes_u32be(b, m->op_count));
    for (uint32_t i = 0; i < m->op_count; i++) CK_TRY(ck_bytes_u64be(b, m->ops[i]));
    return CK_OK;
}

static ck_status put_ack(ck_bytes *b, const ck_report *r) {
    uint32_t files = r->files ? r->files->file_count : 0;
    CK_TRY(ck_bytes_char(b, r->had_ended));
    CK_TRY(ck_bytes_u32be(b, files));
    for (uint32_t i = 0; i < files; i++) CK_TRY(put_file(b, &r->files->files[i]));
    CK_TRY(ck_bytes_u32be(b, r->committables_count));
    for (uint32_t i = 0; i < r->committables_count; i++) {
        const ck_op_committables *c = &r->committables[i];
        CK_TRY(ck_bytes_u32be(b, c->op));
        CK_TRY(ck_bytes_u32be(b, c->count));
        for (uint32_t k = 0; k < c->count; k++) {
            CK_TRY(put_string(b, c->items[k].name));
            CK_TRY(ck_bytes_u64be(b, c->items[k].checkpoint));
            CK_TRY(put_string(b, c->items[k].payload));
        }
    }
    return CK_OK;
}

static ck_status put_error(ck_bytes *b, const ck_error *e) {
    CK_TRY(ck_bytes_char(b, (char)e->status));
    CK_TRY(ck_bytes_char(b, (char)((e->retriable ? FLAG_RETRIABLE : 0) | (e->fatal ? FLAG_FATAL : 0))));
    return put_string(b, e->msg);
}

static ck_status put_report(ck_bytes *b, const ck_report *r) {
    CK_TRY(ck_bytes_u32be(b, r->subtask));
    CK_TRY(ck_bytes_char(b, (char)r->kind));
    CK_TRY(ck_bytes_u64be(b, r->checkpoint));
    if (r->kind == CK_REPORT_ACK) return put_ack(b, r);
    bool has_error = r->kind == CK_REPORT_NACK || r->kind == CK_REPORT_FAILED;
    return has_error ? put_error(b, &r->error) : CK_OK;
}

ck_status ck_wire_report_frame(ck_mem mem, const ck_report *r, ck_frame **out) {
    ck_bytes b;
    ck_bytes_init(&b, mem, CK_FRAME_BYTES_MAX - 1);
    ck_status s = put_report(&b, r);
    *out = s == CK_OK ? ck_frame_new(mem, CK_WIRE_REPORT, b.n) : NULL;
    if (*out)
        memcpy((*out)->p, b.p, b.n);
    else if (s == CK_OK)
        s = CK_NOMEM;
    ck_bytes_destroy(&b);
    return s;
}

/* ---- reading a report ----
 * false: bad bytes, or no memory, which *nomem says. */

typedef struct reader {
    ck_cursor c;
    ck_arena *arena; /* of what is being read */
    bool nomem;
} reader;

static void *array(reader *r, uint32_t n, size_t size) {
    void *p = ck_arena_array(r->arena, n ? n : 1, size);
    r->nomem |= p == NULL;
    return p;
}

static bool get_string(reader *r, const char **out) {
    uint32_t n;
    ck_view v;
    if (!ck_cursor_u32be(&r->c, &n) || !ck_cursor_take(&r->c, n, &v) || memchr(v.p, 0, v.n)) return false;
    *out = ck_arena_strndup(r->arena, v.p, v.n);
    r->nomem |= *out == NULL;
    return *out != NULL;
}

/* A count of things of at least `bytes` each. */
static bool get_count(reader *r, size_t bytes, uint32_t *n) {
    return ck_cursor_u32be(&r->c, n) && *n <= r->c.left / bytes;
}

static bool get_file(reader *r, ck_manifest_file *m) {
    uint8_t kind;
    if (!get_string(r, &m->path) || !ck_cursor_u64be(&r->c, &m->bytes) || !ck_cursor_u32be(&r->c, &m->crc32c) ||
        !ck_cursor_u64be(&r->c, &m->vertex) || !ck_cursor_u32be(&r->c, &m->subtask) ||
        !ck_cursor_u32be(&r->c, &m->key_groups.first) || !ck_cursor_u32be(&r->c, &m->key_groups.last) ||
        !ck_cursor_u8(&r->c, &kind) || kind > CK_FILE_MATERIALIZED || !get_string(r, &m->base) ||
        !get_count(r, 8, &m->op_count))
        return false;
    m->kind = (ck_file_kind)kind;
    if (!m->base[0]) m->base = NULL;
    uint64_t *ops = array(r, m->op_count, sizeof *ops);
    for (uint32_t i = 0; ops && i < m->op_count; i++) (void)ck_cursor_u64be(&r->c, &ops[i]); /* counted before */
    m->ops = ops;
    return ops != NULL;
}

static bool get_files(reader *r, ck_mem mem, ck_report *out) {
    uint32_t n;
    if (!get_count(r, 45, &n)) return false;
    ck_subtask_files *f = ck_alloc_zero(mem, sizeof *f);
    r->nomem |= f == NULL;
    if (!f) return false;
    ck_arena_init(&f->arena, mem, REPORT_BYTES_MAX);
    out->files = f;
    r->arena = &f->arena;
    f->files = array(r, n, sizeof *f->files);
    for (; f->files && f->file_count < n; f->file_count++)
        if (!get_file(r, &f->files[f->file_count])) return false;
    return f->files != NULL;
}

static bool get_committables(reader *r, ck_op_committables *c) {
    if (!ck_cursor_u32be(&r->c, &c->op) || !get_count(r, 16, &c->count)) return false;
    c->items = array(r, c->count, sizeof *c->items);
    for (uint32_t i = 0; c->items && i < c->count; i++)
        if (!get_string(r, &c->items[i].name) || !ck_cursor_u64be(&r->c, &c->items[i].checkpoint) ||
            !get_string(r, &c->items[i].payload))
            return false;
    return c->items != NULL;
}

static bool get_ack(reader *r, ck_mem mem, ck_report *out) {
    uint8_t ended;
    uint32_t n;
    if (!ck_cursor_u8(&r->c, &ended) || ended > 1 || !get_files(r, mem, out) || !get_count(r, 8, &n)) return false;
    out->had_ended = ended;
    r->arena = &out->arena;
    out->committables = array(r, n, sizeof *out->committables);
    for (uint32_t i = 0; out->committables && i < n; i++)
        if (!get_committables(r, &out->committables[i])) return false;
    out->committables_count = n;
    return out->committables != NULL;
}

static bool get_error(reader *r, ck_report *out) {
    uint8_t status, flags;
    const char *text;
    if (!ck_cursor_u8(&r->c, &status) || status <= CK_AGAIN || status > CK_CANCELLED || !ck_cursor_u8(&r->c, &flags) ||
        flags > (FLAG_RETRIABLE | FLAG_FATAL) || !get_string(r, &text))
        return false;
    ck_fail(&out->error, (ck_status)status, "%s", text);
    out->error.retriable = flags & FLAG_RETRIABLE;
    out->error.fatal = flags & FLAG_FATAL;
    return true;
}

static bool get_report(reader *r, ck_mem mem, uint32_t subtask_count, ck_report *out) {
    uint8_t kind;
    bool ok = ck_cursor_u32be(&r->c, &out->subtask) && ck_cursor_u8(&r->c, &kind) && kind <= CK_REPORT_FAILED &&
              ck_cursor_u64be(&r->c, &out->checkpoint);
    if (!ok) return false;
    out->kind = (ck_report_kind)kind;
    if (kind != CK_REPORT_FAILED && out->subtask >= subtask_count) return false;
    if (kind == CK_REPORT_ACK)
        ok = get_ack(r, mem, out);
    else if (kind == CK_REPORT_NACK || kind == CK_REPORT_FAILED)
        ok = get_error(r, out);
    return ok && r->c.left == 0;
}

ck_status ck_wire_read_report(ck_mem mem, const ck_frame *f, uint32_t subtask_count, ck_report **out, ck_error *err) {
    *out = NULL;
    if (f->kind != CK_WIRE_REPORT) return bad(f, err);
    ck_report *r = ck_alloc_zero(mem, sizeof *r);
    if (!r) return ck_nomem(err, mem, sizeof *r);
    r->mem = mem;
    r->error = CK_ERROR_INIT;
    ck_arena_init(&r->arena, mem, REPORT_BYTES_MAX);
    reader at = {ck_cursor_of(f->p, f->n), &r->arena, false};
    if (!get_report(&at, mem, subtask_count, r)) {
        ck_report_free(r);
        return at.nomem ? ck_nomem(err, mem, f->n) : bad(f, err);
    }
    *out = r;
    return CK_OK;
}
