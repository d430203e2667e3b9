/* The state each operator will have, asked of its descriptor: for fingerprints and EXPLAIN. */
#include "graph/fingerprint.h"
#include "sql/lower/lower_int.h"

static ck_status slots_of(ck_lower_state *s, ck_planned_op *op, const ck_op_desc *d) {
    const ck_settings *set = &s->l->catalog->settings;
    ck_op_input *inputs = CK_LOWER_ARRAY(s, op->input_count, ck_op_input);
    if (!inputs) return CK_NOMEM;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const ck_planned_input *in = &op->inputs[i];
        inputs[i] = (ck_op_input){in->port == 0 ? s->ops[in->op].schema : op->schema, in->mode, in->bounded};
    }
    ck_job_settings settings = {.batch_rows = set->batch_rows ? set->batch_rows : CK_BATCH_ROWS_MAX,
                                .key_groups = s->l->options->key_groups,
                                .flush_us = set->flush_us,
                                .eval_error_null = set->eval_error_null,
                                .timezone = set->timezone,
                                .job_name = s->l->options->job_name};
    ck_op_spec spec = {.proc = s->l->catalog->proc,
                       .uid = op->uid,
                       .type = op->type,
                       .params = op->params,
                       .inputs = inputs,
                       .input_count = op->input_count,
                       .schema = op->schema,
                       .final = op->final,
                       .settings = &settings,
                       .parallelism = op->single ? 1 : s->l->options->parallelism};
    CK_TRY(d->slots(&spec, s->arena, &op->slots, &op->slot_count, s->err));
    if (op->slot_count == 0) return CK_OK;
    ck_status st = ck_slots_fingerprint(s->arena, op->slots, op->slot_count, &op->state_fingerprint);
    return st == CK_OK ? CK_OK : ck_lower_nomem(s);
}

ck_status ck_lower_slots(ck_lower_state *s) {
    for (uint32_t i = 0; i < s->op_count; i++) {
        const ck_op_desc *d;
        CK_TRY(ck_registry_op(s->l->catalog->registry, s->ops[i].type, &d, s->err));
        if (d->slots) CK_TRY(slots_of(s, &s->ops[i], d));
    }
    return CK_OK;
}
