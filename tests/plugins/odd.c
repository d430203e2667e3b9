/* A plugin of functions that do what they should not, one for each -D. */
#define _POSIX_C_SOURCE 200809L
#include <clink/plugin.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>


static clink_status twice(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) clink_set_i64(call->out, row, 2 * clink_i64(call->arguments[0], row));
    return CLINK_OK;
}
static clink_status gives_null(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) clink_set_null(call->out, row);
    return CLINK_OK;
}
static clink_status fails(clink_call *call) {
    call->failed_row = call->rows->selected ? call->rows->selected[0] : 0;
    return clink_fail(call->error, CLINK_DATA, "the table of zones is not there");
}
static clink_status fails_silently(clink_call *call) {
    (void)call;
    return CLINK_FAILED;
}
static clink_status marks(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) clink_fail_row(call, row, "no");
    return CLINK_OK;
}
static clink_status no_utf8(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row))
        if (clink_set_text(call->out, row, "\xff\xfe", 2) != CLINK_OK) return CLINK_NOMEM;
    return CLINK_OK;
}
static clink_status too_big(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) clink_set_i64(call->out, row, 300);
    return CLINK_OK;
}
/* The number itself, whatever type it is said to be of. */
static clink_status as_is(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) clink_set_i64(call->out, row, clink_i64(call->arguments[0], row));
    return CLINK_OK;
}
static clink_status as_decimal(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        int64_t v = clink_i64(call->arguments[0], row);
        clink_set_decimal(call->out, row, v < 0 ? -1 : 0, (uint64_t)v);
    }
    return CLINK_OK;
}
/* No value for the odd ones, and something there nevertheless. */
static clink_status null_if_odd(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        int odd = (int)(clink_i64(call->arguments[0], row) & 1);
        clink_set_i64(call->out, row, odd ? INT64_MAX : 0);
        if (odd) clink_set_null(call->out, row);
    }
    return CLINK_OK;
}
static clink_status fail_if_odd(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        int odd = (int)(clink_i64(call->arguments[0], row) & 1);
        if (odd) clink_fail_row(call, row, "it is odd");
        clink_set_i64(call->out, row, odd ? INT64_MAX : 0);
    }
    return CLINK_OK;
}
static clink_status or_zero(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row))
        clink_set_i64(call->out, row, clink_is_null(call->arguments[0], row) ? 0 : clink_i64(call->arguments[0], row));
    return CLINK_OK;
}
static clink_status twice_text(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        clink_bytes t = clink_text(call->arguments[0], row);
        char *to = clink_text_room(call->out, 2 * t.n);
        if (!to) return CLINK_NOMEM;
        memcpy(to, t.p, t.n);
        memcpy(to + t.n, t.p, t.n);
        clink_text_take(call->out, row, 2 * t.n);
    }
    return CLINK_OK;
}
/* More than it has asked for room for. */
static clink_status too_far(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) {
        char *to = clink_text_room(call->out, 4);
        if (!to) return CLINK_NOMEM;
        memcpy(to, "abcd", 4);
        clink_text_take(call->out, row, 1000000);
    }
    return CLINK_OK;
}
static clink_status fails_oddly(clink_call *call) { return clink_fail(call->error, CLINK_DATA, "%s", "a\xff\x1b[31m"); }
static clink_status batch_size(clink_call *call) {
    for (CLINK_EACH(call->rows, k, row)) clink_set_i64(call->out, row, call->rows->count);
    return CLINK_OK;
}
static clink_status opened(void **state, clink_error *error) {
    *state = malloc(1);
    return *state ? CLINK_OK : clink_fail(error, CLINK_NOMEM, "no memory");
}
static clink_status not_opened(void **state, clink_error *error) {
    (void)state;
    return clink_fail(error, CLINK_IO, "zones.txt is missing");
}

#define F(f, n, a, r, ...) static const clink_function f##_function = {.struct_bytes = sizeof(clink_function), .name = n, .arguments = a, .returns = r, .call = f, __VA_ARGS__}
F(twice, "twice", "BIGINT", "BIGINT", .open = opened, .close = free);
F(twice_text, "twice", "VARCHAR", "VARCHAR", 0);
F(gives_null, "gives_null", "BIGINT", "BIGINT", 0);
F(fails, "fails", "BIGINT", "BIGINT", 0);
F(fails_silently, "fails_silently", "", "BIGINT", 0);
F(marks, "marks", "BIGINT", "BIGINT", 0);
F(no_utf8, "no_utf8", "BIGINT", "VARCHAR", 0);
F(too_far, "too_far", "BIGINT", "VARCHAR", 0);
static const clink_function too_far_bytes_function = {.struct_bytes = sizeof(clink_function), .name = "too_far_bytes", .arguments = "BIGINT", .returns = "BYTES", .call = too_far};
F(fails_oddly, "fails_oddly", "BIGINT", "BIGINT", 0);
F(too_big, "too_big", "BIGINT", "TINYINT", 0);
static const clink_function typed[] = {
#define OF(f, n, r, ...) {.struct_bytes = sizeof(clink_function), .name = n, .arguments = "BIGINT", .returns = r, .call = f, __VA_ARGS__}
    OF(as_is, "as_date", "DATE", 0), OF(as_is, "as_time", "TIME(3)", 0), OF(as_is, "as_timestamp", "TIMESTAMP(3)", 0), OF(as_is, "as_instant", "TIMESTAMP_LTZ(0)", 0),
    OF(as_decimal, "as_decimal", "DECIMAL(4,2)", 0), OF(null_if_odd, "null_date", "DATE", .flags = CLINK_GIVES_NULLS),
    OF(null_if_odd, "null_timestamp", "TIMESTAMP(6)", .flags = CLINK_GIVES_NULLS), OF(fail_if_odd, "fail_date", "DATE", .flags = CLINK_FAILS),
    OF(fail_if_odd, "fail_small", "TINYINT", .flags = CLINK_FAILS),
    OF(as_is, "as_bare_time", "TIME", 0), OF(as_is, "as_bare_timestamp", "TIMESTAMP", 0), OF(as_is, "as_bare_instant", "TIMESTAMP_LTZ", 0),
    OF(as_is, "as_months", "INTERVAL YEAR TO MONTH", 0), OF(as_is, "as_interval", "INTERVAL DAY TO SECOND", 0)};
F(batch_size, "batch_size", "BIGINT", "BIGINT", 0);
F(or_zero, "or_zero", "BIGINT", "BIGINT", .flags = CLINK_SEES_NULLS);
static const clink_function not_opened_function = {.struct_bytes = sizeof(clink_function), .name = "not_opened", .arguments = "BIGINT", .returns = "BIGINT", .call = twice, .open = not_opened};


static const clink_function *const functions[] = {
#ifdef BUILT_IN
    &(const clink_function){.struct_bytes = sizeof(clink_function), .name = "UPPER", .arguments = "BIGINT", .returns = "BIGINT", .call = twice},
#endif
#ifdef NO_CALL
    &(const clink_function){.struct_bytes = sizeof(clink_function), .name = "nothing", .arguments = "BIGINT", .returns = "BIGINT"},
#endif
#ifdef ODD_FLAGS
    &(const clink_function){.struct_bytes = sizeof(clink_function), .name = "flags", .arguments = "BIGINT", .returns = "BIGINT", .call = twice, .flags = 1024},
#endif
#ifdef SAME
    &twice_function,
#endif
#ifdef ODD_TYPE
    &(const clink_function){.struct_bytes = sizeof(clink_function), .name = "odd", .arguments = "BIGINT, NUMBR", .returns = "BIGINT", .call = twice},
#endif
    &twice_function, &twice_text_function, &gives_null_function, &fails_function, &fails_silently_function, &marks_function, &no_utf8_function,
    &too_far_function, &too_far_bytes_function, &fails_oddly_function, &too_big_function, &or_zero_function, &batch_size_function, &not_opened_function,
    &typed[0], &typed[1], &typed[2], &typed[3], &typed[4], &typed[5], &typed[6], &typed[7], &typed[8],
    &typed[9], &typed[10], &typed[11], &typed[12], &typed[13], NULL};

#ifndef ABI
#define ABI CLINK_PLUGIN_ABI
#endif
#ifndef ODD_NAME
#define ODD_NAME "odd"
#endif
#ifndef BYTES
#define BYTES sizeof(clink_plugin)
#endif
static const struct { clink_plugin table; char more[64]; } odd = {{.struct_bytes = BYTES, .abi = ABI, .name = ODD_NAME, .version = "1", .functions = functions},
#ifdef NEWER
    {0, 0, 1}
#else
    {0}
#endif
};

#ifdef CRASHES
__attribute__((constructor)) static void crash(void) { raise(SIGSEGV); }
#endif
#ifdef HANGS
__attribute__((constructor)) static void hang(void) { for (;;) pause(); }
#endif
#ifdef EXITS
__attribute__((constructor)) static void leave(void) { _Exit(0); }
#endif
#ifdef MISSING
extern void nobody_has_this(void);
__attribute__((constructor)) static void call_it(void) { nobody_has_this(); }
#endif

#if defined(NO_NOTE)
CLINK_API const clink_plugin *clink_plugin_table(void);
CLINK_API const clink_plugin *clink_plugin_table(void) { return &odd.table; }
#elif defined(NOTE_ABI)
#undef CLINK_PLUGIN_ABI
#define CLINK_PLUGIN_ABI NOTE_ABI
CLINK_PLUGIN(odd.table)
#elif defined(NO_TABLE)
#define clink_plugin_table some_other_name
CLINK_PLUGIN(odd.table)
#else
CLINK_PLUGIN(odd.table)
#endif
