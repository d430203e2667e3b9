/* Calls of a plugin's scalar function: one a batch, with the arguments' columns as they are. */
#include "expr/plugin_function_int.h"

#include <stdio.h>

#include "expr/coerce.h"
#include "expr/eval_int.h"
#include "expr/functions_int.h"

/* ---- which one is meant ---- */

static int cost_of(const ck_plugin_overload *o, const ck_bind_call *call) {
    if (o->count != call->arg_count) return -1;
    int total = 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        bool same = ck_type_eq(call->args[i]->type, o->types[i]);
        int c = same ? 0 : ck_implicit_cost(call->args[i], o->types[i]->kind);
        if (c < 0) return -1;
        total += c;
    }
    return total;
}

static ck_status mismatch(const ck_bind_call *call, ck_error *err) {
    const ck_plugin_function *f = (const ck_plugin_function *)call->fn;
    ck_bytes b;
    ck_bytes_init(&b, call->arena->mem, 600);
    ck_status s = CK_OK;
    for (const ck_plugin_overload *o = f->overloads; o && s == CK_OK; o = o->next)
        s = ck_bytes_printf(&b, "%s(%s)", o == f->overloads ? "" : " or ", o->face->arguments);
    if (s == CK_OK || s == CK_FULL)
        s = ck_fail(err, CK_INVALID, "no function %s%s; %s of plugin %s takes %.*s", call->fn->name,
                    ck_argument_types(call->arena, call->args, call->arg_count), call->fn->name, f->plugin, (int)b.n,
                    b.n ? b.p : "");
    ck_bytes_destroy(&b);
    return s;
}

ck_status ck_plugin_function_bind(ck_bind_call *call, ck_error *err) {
    const ck_plugin_function *f = (const ck_plugin_function *)call->fn;
    const ck_plugin_overload *best = NULL;
    int best_cost = -1;
    for (const ck_plugin_overload *o = f->overloads; o; o = o->next) {
        int c = cost_of(o, call);
        if (c < 0 || (best && c >= best_cost)) continue;
        best = o, best_cost = c;
    }
    if (!best) return mismatch(call, err);
    for (uint32_t i = 0; i < call->arg_count; i++)
        CK_TRY(ck_coerce(call->arena, call->args[i], best->types[i], true, &call->args[i], err));
    call->type = best->returns;
    call->impl = &best->impl;
    if (best->face->flags & CLINK_SEES_NULLS) call->nullable = false;
    call->nullable |= (best->face->flags & CLINK_GIVES_NULLS) != 0;
    return CK_OK;
}

/* ---- an instance ---- */

typedef struct instance {
    const clink_function *face;
    void *user;
    ck_plugin_reader *readers;
    const clink_column **arguments;
    uint32_t count;
} instance;

static ck_status failed(const ck_plugin_overload *o, clink_status s, const clink_error *e, ck_error *err) {
    ck_status st = ck_plugin_status(s);
    if (st == CK_NOMEM && !e->message[0])
        return ck_fail(err, CK_NOMEM, "%s of plugin %s: no memory", o->face->name, o->plugin);
    return ck_fail(err, st, "%s of plugin %s: %s", o->face->name, o->plugin,
                   e->message[0] ? e->message : "it failed and did not say why");
}

static ck_status prepare(ck_eval *ev, const ck_expr *call, void **state, ck_error *err) {
    const ck_plugin_overload *o = (const ck_plugin_overload *)call->impl;
    instance *in = CK_ARENA_NEW(&ev->arena, instance);
    if (!in) return ck_nomem(err, ev->mem, sizeof *in);
    in->face = o->face;
    in->count = call->arg_count;
    in->readers = ck_arena_array(&ev->arena, in->count + 1u, sizeof *in->readers);
    in->arguments = ck_arena_array(&ev->arena, in->count + 1u, sizeof(clink_column *));
    if (!in->readers || !in->arguments) return ck_nomem(err, ev->mem, in->count * sizeof *in->readers);
    for (uint32_t i = 0; i < in->count; i++) in->arguments[i] = &in->readers[i].view;
    if (o->face->open) {
        clink_error e = {0};
        clink_status s = o->face->open(&in->user, &e);
        if (s != CLINK_OK) return failed(o, s, &e, err);
    }
    *state = in;
    return CK_OK;
}

/* ---- a batch ---- */

typedef struct calling {
    ck_eval *ev;
    ck_column *out;
    ck_status marked; /* CK_NOMEM where a mark found no room, CK_REFUSED where there may be none */
    bool fails;
} calling;

static void mark_row(clink_call *call, uint32_t row, const char *text) {
    calling *c = call->inside;
    if (row >= c->out->length || c->marked != CK_OK) return;
    if (!c->fails) {
        c->marked = CK_REFUSED;
        return;
    }
    if (!c->out->err)
        snprintf(c->ev->said, sizeof c->ev->said, "%s", text && *text ? text : "a value that will not do");
    c->marked = ck_eval_mark(c->ev, c->out, row, CK_MARK_PLUGIN, NULL);
    if (call->out->layout == CLINK_LAYOUT_TEXT) memset((clink_view *)call->out->data + row, 0, sizeof(clink_view));
}

static const clink_engine_table engine = {
    .struct_bytes = sizeof engine, .abi = CLINK_PLUGIN_ABI, .grow = ck_plugin_grow, .mark = mark_row};

/* What the type has no room for is the plugin's fault, and names the row. */
static ck_status check(ck_eval *ev, const ck_plugin_overload *o, const ck_rows *rows, const ck_column *col,
                       ck_error *err) {
    uint32_t row = 0;
    if (ck_plugin_fits(o->returns, col, rows->sel, rows->n, &row)) return CK_OK;
    ck_fail(err, CK_DATA, "%s of plugin %s gave %s", o->face->name, o->plugin,
            col->phys == CK_PHYS_VIEW ? ck_plugin_misfit(o->returns, col, row)
                                      : "a number out of range for the type it returns");
    if (ev->batch && row < ev->batch->row_count) ck_batch_place(ev->batch, row, err);
    return CK_DATA;
}

/* "..., in fails(a) (line 1, column 8)" behind the sentence, which is of a call that was not given a row to go by. */
static ck_status name_call(ck_eval *ev, const ck_expr *call, ck_status s, ck_error *err) {
    ck_bytes text;
    if (!err || s == CK_NOMEM) return s;
    ck_bytes_init(&text, ev->mem, sizeof err->msg);
    ck_status printed = ck_expr_print(call, ev->column_names, &text);
    size_t n = strlen(err->msg);
    if (printed == CK_OK && call->line)
        snprintf(err->msg + n, sizeof err->msg - n, ", in %.*s (line %u, column %u)", text.n > 200 ? 200 : (int)text.n,
                 text.p, call->line, call->col);
    else if (printed == CK_OK)
        snprintf(err->msg + n, sizeof err->msg - n, ", in %.*s", text.n > 200 ? 200 : (int)text.n, text.p);
    ck_bytes_destroy(&text);
    return s;
}

static ck_status call_once(ck_eval *ev, const ck_expr *call, const ck_rows *rows, const ck_plugin_overload *o,
                           ck_plugin_writer *w, ck_error *err) {
    instance *in = ck_eval_state(ev);
    clink_error e = {0};
    clink_rows of = {rows->sel, rows->n, rows->row_count};
    calling c = {ev, w->col, CK_OK, (o->face->flags & CLINK_FAILS) != 0};
    w->face.engine = &engine;
    clink_call given = {.struct_bytes = sizeof given,
                        .argument_count = call->arg_count,
                        .arguments = in->arguments,
                        .rows = &of,
                        .out = &w->face,
                        .state = in->user,
                        .error = &e,
                        .failed_row = UINT32_MAX,
                        .inside = &c};
    clink_status s = o->face->call(&given);
    if (c.marked == CK_REFUSED)
        return ck_fail(err, CK_DATA, "%s of plugin %s calls clink_fail_row, which it may not without CLINK_FAILS",
                       o->face->name, o->plugin);
    if (c.marked != CK_OK) return ck_nomem(err, ev->mem, rows->row_count);
    if (s != CLINK_OK) {
        ck_status st = name_call(ev, call, failed(o, s, &e, err), err);
        if (ev->batch && given.failed_row < ev->batch->row_count) ck_batch_place(ev->batch, given.failed_row, err);
        if (err && st == CK_DATA) err->fatal = true;
        return st;
    }
    if (w->validity && ck_plugin_written_null(w))
        return ck_fail(err, CK_DATA, "%s of plugin %s gave NULL, which it may not without CLINK_GIVES_NULLS",
                       o->face->name, o->plugin);
    ck_plugin_round(o->returns, w->col);
    return CK_OK;
}

static ck_status kernel_plugin(CK_KERNEL_ARGS) {
    const ck_plugin_overload *o = (const ck_plugin_overload *)call->impl;
    instance *in = ck_eval_state(ev);
    ck_plugin_writer w = {0};
    uint32_t flags = o->face->flags;
    for (uint32_t i = 0; i < in->count; i++)
        if (ck_plugin_read(&in->readers[i], ev->mem, args[i].col, args[i].constant, NULL) != CK_OK)
            return ck_nomem(err, ev->mem, sizeof(void *));
    CK_TRY(ck_eval_result(ev, ck_type_phys(o->returns), rows, out, err));
    ck_status s = ck_plugin_write(&w, ev->mem, out->col, flags & CLINK_GIVES_NULLS ? NULL : ev->words[1]);
    out->col = NULL;
    if (s != CK_OK) return ck_nomem(err, ev->mem, rows->row_count / 8);
    s = call_once(ev, call, rows, o, &w, err);
    if (s == CK_OK && !(out->col = ck_plugin_written(&w))) s = ck_nomem(err, ev->mem, sizeof(void *));
    ck_plugin_writer_destroy(&w);
    if (s == CK_OK) s = check(ev, o, rows, out->col, err); /* texts are where they stay only now */
    if (s != CK_OK) ck_column_unref(&out->col);
    return s;
}

static void dispose_instance(ck_eval *ev, void *state) {
    instance *in = state;
    if (!in) return;
    for (uint32_t i = 0; i < in->count; i++) ck_plugin_reader_destroy(&in->readers[i], ev->mem);
    if (in->face->close) in->face->close(in->user);
}

void ck_plugin_overload_init(ck_plugin_overload *o, const clink_function *face, const char *plugin) {
    o->face = face;
    o->plugin = plugin;
    o->impl = (ck_impl){.kernel = kernel_plugin, .prepare = prepare, .dispose = dispose_instance};
    if (face->flags & CLINK_FAILS) o->impl.flags |= CK_FN_FALLIBLE;
    if (face->flags & CLINK_SEES_NULLS) o->impl.flags |= CK_FN_NULLS;
}
