/* Rows of a bare SELECT leaving the engine: as an Arrow C stream, or as tables on a terminal. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/arrow.h"
#include "engine/engine_int.h"
#include "format/encoder.h"
#include <nanoarrow/nanoarrow.h>
#include "os/clock.h"

enum { TABLE_TEXT_BYTES_MAX = 256 << 20, SCHEMA_BYTES_MAX = 16 << 20 };

/* Whether a step's rows are shown with their change kinds. */
static bool shows_changes(const clink_job *j, const ck_sql_step *step) {
    return step->result_mode != CK_MODE_APPEND || j->run.changes == CLINK_CHANGES_FIELD;
}

/* ---- Arrow C stream ---- */

/* Outlives the job handle: it owns its schema and a reference on the collector. */
typedef struct stream_state {
    ck_collector *collector;
    ck_arena arena;
    const ck_schema *schema; /* with "op" in front when changes */
    bool changes;
    char message[1200];
} stream_state;

static int errno_of(ck_status s) {
    switch (s) {
    case CK_NOMEM: return ENOMEM;
    case CK_INVALID:
    case CK_DATA: return EINVAL;
    case CK_CANCELLED: return ECANCELED;
    default: return EIO;
    }
}

static int stream_fail(stream_state *st, ck_status s, const ck_error *err) {
    snprintf(st->message, sizeof st->message, "%s", err->msg[0] ? err->msg : ck_status_name(s));
    return errno_of(s);
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    stream_state *st = stream->private_data;
    ck_error err = CK_ERROR_INIT;
    ck_status s = ck_arrow_export_schema(st->schema, CK_ARROW_PLAIN, out, &err);
    return s == CK_OK ? 0 : stream_fail(st, s, &err);
}

static ck_status op_column(ck_mem mem, const ck_collected *c, ck_column **out) {
    static const char *const names[] = {"+I", "-U", "+U", "-D"};
    ck_column *col = ck_column_new(mem, CK_PHYS_VIEW, c->batch->row_count);
    if (!col) return CK_NOMEM;
    for (uint32_t k = 0; k < c->batch->sel_count; k++)
        col->views[ck_batch_row(c->batch, k)] = ck_strview_inline(names[c->kinds ? c->kinds[k] & 3 : 0], 2);
    *out = col;
    return CK_OK;
}

/* The batch with its change kinds as a first column. */
static ck_status with_kinds(ck_mem mem, const ck_collected *c, ck_batch **out) {
    const ck_batch *b = c->batch;
    ck_batch *n = ck_batch_new(mem, b->column_count + 1, b->row_count, b->sel != NULL, false);
    if (!n) return CK_NOMEM;
    ck_column *op;
    if (op_column(mem, c, &op) != CK_OK) {
        ck_batch_unref(&n);
        return CK_NOMEM;
    }
    ck_batch_set_column(n, 0, &op);
    for (uint32_t i = 0; i < b->column_count; i++) {
        ck_column *col = ck_column_ref(b->columns[i]);
        ck_batch_set_column(n, i + 1, &col);
    }
    if (b->sel) memcpy(n->sel, b->sel, b->sel_count * sizeof *b->sel);
    n->sel_count = b->sel_count;
    *out = n;
    return CK_OK;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    stream_state *st = stream->private_data;
    ck_error err = CK_ERROR_INIT;
    ck_collected c = {0};
    out->release = NULL;
    ck_status s = ck_collector_next(st->collector, -1, &c, &err);
    if (s == CK_CLOSED) return 0;
    if (s == CK_OK) {
        ck_batch *b = NULL;
        if (st->changes)
            s = with_kinds(c.mem, &c, &b);
        else
            b = ck_batch_ref(c.batch);
        if (s == CK_OK) s = ck_arrow_export_batch(b, st->schema, CK_ARROW_PLAIN, out, &err);
        ck_batch_unref(&b);
    }
    ck_collected_destroy(&c);
    return s == CK_OK ? 0 : stream_fail(st, s, &err);
}

static const char *stream_error(struct ArrowArrayStream *stream) {
    stream_state *st = stream->private_data;
    return st->message[0] ? st->message : NULL;
}

static void stream_release(struct ArrowArrayStream *stream) {
    stream_state *st = stream->private_data;
    ck_collector_close(st->collector);
    ck_collector_unref(&st->collector);
    ck_arena_destroy(&st->arena);
    free(st);
    stream->release = NULL;
}

static ck_status stream_schema_of(stream_state *st, const ck_sql_step *step) {
    const ck_schema *s = step->result_schema;
    ck_field *fields = ck_arena_array(&st->arena, s->field_count + 1, sizeof *fields);
    if (!fields) return CK_NOMEM;
    fields[0] = (ck_field){"op", ck_type_simple(CK_TYPE_VARCHAR), false};
    memcpy(fields + st->changes, s->fields, s->field_count * sizeof *fields);
    const ck_schema with = {fields, s->field_count + st->changes};
    st->schema = ck_schema_copy(&st->arena, &with);
    return st->schema ? CK_OK : CK_NOMEM;
}

/* The next step whose rows nobody has taken. */
static int64_t next_result(const clink_job *j) {
    for (uint32_t i = j->streams_taken; i < j->plan->step_count; i++)
        if (j->collectors[i]) return i;
    return -1;
}

clink_status clink_job_stream(clink_job *j, struct ArrowArrayStream *out, clink_error *error) {
    ck_error err = CK_ERROR_INIT;
    if (!j || !out) return engine_refuse_null(!j ? "job" : "out", error);
    int64_t i = j->run.output == CLINK_OUTPUT_STREAM ? next_result(j) : -1;
    if (i < 0) {
        const char *why = j->run.output != CLINK_OUTPUT_STREAM ? "its output was asked for as text"
                                                               : "it has no SELECT left whose rows nobody took";
        return engine_error(ck_fail(&err, CK_INVALID, "no stream of job %s: %s", j->run.name, why), &err, error);
    }
    const ck_sql_step *step = &j->plan->steps[i];
    stream_state *st = calloc(1, sizeof *st);
    if (!st) return engine_error(ck_fail(&err, CK_NOMEM, "out of memory"), &err, error);
    ck_arena_init(&st->arena, (ck_mem){ck_budget_uncounted(), CK_MEM_PLAN}, SCHEMA_BYTES_MAX);
    st->changes = shows_changes(j, step);
    if (stream_schema_of(st, step) != CK_OK) {
        ck_arena_destroy(&st->arena);
        free(st);
        return engine_error(ck_fail(&err, CK_NOMEM, "out of memory"), &err, error);
    }
    st->collector = ck_collector_ref(j->collectors[i]);
    j->streams_taken = (uint32_t)i + 1;
    *out = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, st};
    return engine_error(CK_OK, NULL, error);
}

/* ---- tables ---- */

ck_status engine_write(int fd, ck_view text, ck_error *err) {
    size_t at = 0;
    while (at < text.n) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EPIPE) return CK_CLOSED;
        if (n < 0) return ck_fail_errno(err, errno, "writing the result");
        at += (size_t)n;
    }
    return CK_OK;
}

/* One look at the collector of step i: rows, a pause, or the end. */
static ck_status table_turn(clink_job *j, uint32_t i, int64_t wait_us, ck_bytes *text, ck_error *err) {
    const ck_sql_step *step = &j->plan->steps[i];
    if (!j->table_open) {
        CK_TRY(ck_table_view_init(&j->table, text->mem, step->result_schema, shows_changes(j, step)));
        j->table_open = true;
        j->table_begun = false;
    }
    ck_collected c = {0};
    ck_error job_error = CK_ERROR_INIT;
    ck_status s = ck_collector_next(j->collectors[i], wait_us, &c, &job_error);
    if (s == CK_OK) {
        s = ck_table_view_add(&j->table, c.batch, c.kinds, text);
        ck_collected_destroy(&c);
    } else if (s == CK_AGAIN) {
        if (wait_us > 0) CK_TRY(ck_table_view_flush(&j->table, text));
    } else {
        if (s == CK_CLOSED)
            CK_TRY(ck_table_view_end(&j->table, text));
        else
            CK_TRY(ck_table_view_flush(&j->table, text)); /* what came before the failure; the job reports it */
        ck_table_view_destroy(&j->table);
        j->table_open = false;
        j->streams_taken = i + 1;
        s = CK_OK;
    }
    if (s == CK_OK || s == CK_AGAIN) {
        ck_status w = CK_OK;
        if (text->n && !j->table_begun) { /* over a progress line */
            j->table_begun = true;
            if (isatty(j->run.fd)) w = engine_write(j->run.fd, ck_view_of("\r\033[K"), err);
        }
        if (w == CK_OK) w = engine_write(j->run.fd, (ck_view){text->p, text->n}, err);
        ck_bytes_clear(text);
        if (w != CK_OK) ck_collector_close(j->collectors[i]);
        return w == CK_OK ? s : w;
    }
    return s;
}

ck_status engine_print_tables(clink_job *j, int64_t *timeout_ms, ck_error *err) {
    ck_proc *proc = &j->engine->proc;
    bool for_ever = *timeout_ms < 0 || *timeout_ms > INT64_MAX / 4000;
    int64_t deadline = for_ever ? INT64_MAX : ck_mono_us(proc) + *timeout_ms * 1000;
    ck_bytes text;
    ck_bytes_init(&text, ck_proc_mem(proc, CK_MEM_QUEUE), TABLE_TEXT_BYTES_MAX);
    ck_status s = CK_OK;
    int64_t i;
    while (s == CK_OK && (i = next_result(j)) >= 0) {
        int64_t left = deadline == INT64_MAX ? -1 : deadline - ck_mono_us(proc);
        if (deadline != INT64_MAX && left <= 0)
            s = CK_AGAIN;
        else
            s = table_turn(j, (uint32_t)i, left, &text, err);
    }
    ck_bytes_destroy(&text);
    if (deadline != INT64_MAX) {
        int64_t left = (deadline - ck_mono_us(proc)) / 1000;
        *timeout_ms = left > 0 ? left : 0;
    }
    return s;
}
