#include "plan.h"

#include "model.h"

static const char *const rows_names[] = {"k", "v"}, *const counts_names[] = {"k", "from", "to", "sum"};
static const uint32_t key_column[] = {0};

typedef struct maker {
    ck_graph_builder b;
    ck_arena *a;
    const ck_schema *rows, *counts;
    bool failed;
} maker;

static void add(maker *m, const char *uid, const char *type, const char *params, const char *from, ck_edge_kind kind,
                const ck_schema *schema, bool bounded, bool final, uint32_t parallelism) {
    ck_graph_input *in = CK_ARENA_NEW(m->a, ck_graph_input);
    if (!in || !params) {
        m->failed = true;
        return;
    }
    *in = (ck_graph_input){.uid = from, .kind = kind, .bounded = bounded};
    if (kind == CK_EDGE_HASH) in->key = key_column, in->key_count = 1;
    ck_graph_op op = {.uid = uid,
                      .type = type,
                      .params = params,
                      .inputs = from ? in : NULL,
                      .input_count = from != NULL,
                      .schema = schema,
                      .final = final,
                      .parallelism = parallelism};
    if (ck_graph_add(&m->b, &op, NULL) != CK_OK) m->failed = true;
}

static const char *sink_params(maker *m, const plan *p, const char *name) {
    return ck_arena_printf(m->a, "{\"dir\":\"%s/%s\"}", p->out, name);
}

static void add_counts(maker *m, const plan *p) {
    add(m, "source:a", "source.model",
        ck_arena_printf(m->a, "{\"splits\":%u,\"rows\":%u,\"keys\":%u}", p->a_splits, p->a_rows, p->a_keys), NULL,
        CK_EDGE_FORWARD, m->rows, true, false, 0);
    add(m, "count(k)<-a", "model.count", "{}", "source:a", CK_EDGE_HASH, m->counts, true, p->final, 0);
    add(m, "sink:a", "sink.model", sink_params(m, p, "a"), "count(k)<-a", CK_EDGE_FORWARD, m->counts, p->final, false,
        0);
}

static void add_rows(maker *m, const plan *p) {
    add(m, "source:b", "source.model", ck_arena_printf(m->a, "{\"splits\":%u,\"rows\":%u}", p->b_splits, p->b_rows),
        NULL, CK_EDGE_FORWARD, m->rows, true, false, 0);
    add(m, "pass(1)<-b", "model.pass", "{}", "source:b", CK_EDGE_FORWARD, m->rows, true, false, 0);
    add(m, "pass(2)<-b", "model.pass", "{}", "pass(1)<-b", CK_EDGE_REBALANCE, m->rows, true, false, 0);
    add(m, "sink:b", "sink.model", sink_params(m, p, "b"), "pass(2)<-b", CK_EDGE_FORWARD, m->rows, true, false, 0);
}

static void add_limit(maker *m, const plan *p) {
    add(m, "source:c", "source.model",
        ck_arena_printf(m->a, "{\"splits\":%u,\"rows\":0,\"more\":\"%s\",\"pause_us\":%d}", p->c_splits,
                        p->c_more ? p->c_more : "", p->c_more ? 1000 : 0),
        NULL, CK_EDGE_FORWARD, m->rows, false, false, 0);
    add(m, "limit<-c", "model.limit", ck_arena_printf(m->a, "{\"limit\":%u}", p->c_limit), "source:c", CK_EDGE_GATHER,
        m->rows, false, false, 1);
    add(m, "sink:c", "sink.model", sink_params(m, p, "c"), "limit<-c", CK_EDGE_FORWARD, m->rows, false, false, 1);
}

ck_status plan_graph(const plan *p, ck_arena *a, ck_graph **out, ck_error *err) {
    maker m = {.a = a, .rows = model_schema(a, 2, rows_names), .counts = model_schema(a, 4, counts_names)};
    CK_TRY(ck_graph_builder_init(&m.b, a, "simulated"));
    if (p->with_counts) add_counts(&m, p);
    if (p->with_rows) add_rows(&m, p);
    if (p->with_limit) add_limit(&m, p);
    if (m.failed) return ck_nomem(err, a->mem, 0);
    return ck_graph_check(&m.b, out, err);
}
