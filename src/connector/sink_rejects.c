/* See sink_rejects.h. */
#include "connector/sink_rejects.h"

#include "connector/show_raw.h"

ck_status ck_on_error_read(const ck_table_options *o, ck_on_error *out, const char **dead_letter_table, ck_error *err) {
    static const char *const words[] = {"fail", "skip", "dead_letter"}; /* as in ck_on_error */
    const char *word = ck_option_text(o, "on_error", "fail");
    size_t at = 0;
    while (at < CK_ARRAY_COUNT(words) && strcmp(word, words[at]) != 0) at++;
    if (at == CK_ARRAY_COUNT(words))
        return ck_fail(err, CK_INVALID, "option 'on_error' is '%s', which is none of fail, skip, dead_letter", word);
    *out = (ck_on_error)at;
    *dead_letter_table = ck_option_text(o, "dead_letter_table", NULL);
    if ((*out == CK_ON_ERROR_DEAD_LETTER) != (*dead_letter_table != NULL))
        return ck_fail(err, CK_INVALID, "on_error = 'dead_letter' and the option 'dead_letter_table' go together");
    return CK_OK;
}

ck_status ck_sink_rejects_init(ck_sink_rejects *r, ck_on_error on_error, const char *where, ck_arena *a, ck_mem mem,
                               uint32_t batch_rows, ck_error *err) {
    *r = (ck_sink_rejects){.on_error = on_error, .where = where};
    if (on_error != CK_ON_ERROR_DEAD_LETTER) return CK_OK;
    return ck_dead_letters_init(&r->letters, a, mem, batch_rows, err);
}

void ck_sink_rejects_destroy(ck_sink_rejects *r) { ck_dead_letters_destroy(&r->letters); }

ck_status ck_sink_reject(ck_sink_rejects *r, ck_view raw, const char *reason, ck_op_ctx *ctx) {
    if (r->on_error == CK_ON_ERROR_FAIL) {
        char shown[160];
        ck_show_raw(shown, sizeof shown, raw);
        ck_fail(ctx->error, CK_DATA, "%s: %s; the row is: %s", r->where, reason, shown);
        return CK_DATA;
    }
    if (r->letters.on) {
        if (ck_dead_letters_is_full(&r->letters)) return CK_FULL;
        ck_bad_record bad = {.raw = raw, .offset = CK_LETTER_NO_OFFSET, .reason = reason};
        CK_TRY(ck_dead_letters_add(&r->letters, r->where, &bad, ctx->error));
        ck_op_count(ctx, "dead_letters", 1);
    }
    ck_op_count(ctx, "bad_rows", 1);
    return CK_OK;
}

ck_status ck_sink_rejects_emit(ck_sink_rejects *r, ck_op_ctx *ctx) { return ck_dead_letters_emit(&r->letters, ctx); }
