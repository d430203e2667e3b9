/* A row of the server that does not fit the table: the sentence with its place, a dead letter, or nothing. */
#include "connector/bad_hint.h"
#include "connector/postgres/pg_int.h"
#include "connector/show_raw.h"

ck_status ck_pg_bad_row(ck_pg_bad_rows *b, const char *table, const char *split, const char *where, uint64_t offset,
                        ck_view raw, const char *column, const char *why, ck_error *err) {
    ck_bad_record bad = {.raw = raw, .offset = offset, .field = column, .reason = why};
    ck_bad_hint of = {.on_error_is_given = b->on_error_is_given};
    if (b->letters.on) {
        if (ck_dead_letters_is_full(&b->letters)) return CK_FULL;
        CK_TRY(ck_dead_letters_add(&b->letters, split, &bad, err));
    }
    if (b->on_error != CK_ON_ERROR_FAIL) {
        b->count++;
        return CK_OK;
    }
    char shown[160];
    ck_show_raw(shown, sizeof shown, raw);
    ck_fail(err, CK_DATA, "table %s, %s, column \"%s\": %s%s; the row is: %s", table, where, column, why,
            ck_bad_hint_for(&of, &bad), shown);
    if (err) err->fatal = true;
    return CK_DATA;
}

ck_status ck_pg_bad_rows_emit(ck_pg_bad_rows *b, ck_op_ctx *ctx) {
    if (b->count) ck_op_count(ctx, "bad_rows", b->count);
    if (b->count && b->letters.on) ck_op_count(ctx, "dead_letters", b->count);
    b->count = 0;
    return ck_dead_letters_emit(&b->letters, ctx);
}
