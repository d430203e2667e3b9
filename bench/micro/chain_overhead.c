/* What the runtime costs by itself: a source of ready-made batches, four operators that hand them on and a sink that
 * drops them, as one chain and over queues between two vertices of two subtasks. Prints CPU nanoseconds an event (one
 * operator taking one batch) and a row.   bench/chain_overhead [SECONDS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "graph/graph.h"
#include "os/clock.h"
#include "os/io.h"
#include "os/random.h"
#include "os/thread.h"
#include "plugin/registry.h"
#include "runtime/job.h"

enum { OPERATORS = 5 };

static ck_batch *ready; /* handed out by reference */
static int64_t batches;

typedef struct instance {
    ck_mem mem;
    int64_t left;
} instance;
static ck_status create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    (void)spec;
    instance *i = ck_alloc_zero(mem, sizeof *i);
    if (!i) return ck_nomem(err, mem, sizeof *i);
    *i = (instance){mem, batches};
    *self = i;
    return CK_OK;
}
static void close_instance(void *self, ck_op_ctx *ctx) {
    (void)ctx;
    ck_free(((instance *)self)->mem, self, sizeof(instance));
}
static ck_status poll(void *self, ck_op_ctx *ctx, ck_poll_result *result, int64_t *until_us) {
    instance *i = self;
    (void)until_us;
    *result = i->left-- > 0 ? CK_POLL_MORE : CK_POLL_END;
    if (*result == CK_POLL_END) return CK_OK;
    ck_batch *b = ck_batch_ref(ready);
    return ck_op_emit(ctx, 0, &b);
}
static ck_status pass(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self, (void)input;
    if (ev->kind != CK_EVENT_BATCH) return CK_OK;
    ck_batch *b = ck_batch_ref(ev->batch);
    return ck_op_emit(ctx, 0, &b);
}
static ck_status drop(void *self, uint32_t input, const ck_event *ev, ck_op_ctx *ctx) {
    (void)self, (void)input, (void)ev, (void)ctx;
    return CK_OK;
}
static const ck_source_vtbl source_vtbl = {.struct_bytes = sizeof source_vtbl, .poll = poll, .close = close_instance};
static const ck_operator_vtbl pass_vtbl = {.struct_bytes = sizeof pass_vtbl, .on_event = pass, .close = close_instance};
static const ck_operator_vtbl drop_vtbl = {.struct_bytes = sizeof drop_vtbl, .on_event = drop, .close = close_instance};
static const ck_op_desc source_desc = {.type = "source", .source = &source_vtbl, .create = create};
static const ck_op_desc pass_desc = {.type = "pass", .op = &pass_vtbl, .create = create};
static const ck_op_desc drop_desc = {.type = "drop", .op = &drop_vtbl, .create = create};
static void die(const char *what, const ck_error *err) {
    fprintf(stderr, "%s: %s\n", what, err->msg);
    exit(1);
}

/* queued: a hash edge on the first column between the second and the third operator, at parallelism 2. */
static ck_graph *graph(ck_arena *a, const ck_schema *schema, bool queued) {
    static const char *const uids[] = {"s", "a", "b", "c", "d"};
    static const uint32_t key[] = {0};
    ck_graph_builder b;
    ck_graph *g = NULL;
    ck_error err = CK_ERROR_INIT;
    if (ck_graph_builder_init(&b, a, "overhead") != CK_OK) die("graph", &err);
    for (int i = 0; i < OPERATORS; i++) {
        ck_graph_input *in = CK_ARENA_NEW(a, ck_graph_input);
        bool hash = queued && i == 2;
        *in = (ck_graph_input){.uid = i ? uids[i - 1] : NULL,
                               .kind = hash ? CK_EDGE_HASH : CK_EDGE_FORWARD,
                               .bounded = true,
                               .key = hash ? key : NULL,
                               .key_count = hash};
        ck_graph_op op = {.uid = uids[i],
                          .type = i == 0               ? "source"
                                  : i == OPERATORS - 1 ? "drop"
                                                       : "pass",
                          .inputs = in,
                          .input_count = i > 0,
                          .schema = schema,
                          .final = i > 0};
        if (ck_graph_add(&b, &op, NULL) != CK_OK) die("graph", &err);
    }
    if (ck_graph_check(&b, &g, &err) != CK_OK) die("graph", &err);
    return g;
}

/* Of all threads: other programs on the machine do not count. */
static double cpu_seconds(void) {
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double run(ck_scheduler *s, const ck_registry *r, const ck_graph *g, uint32_t parallelism) {
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    ck_job_config cfg = {.name = "overhead", .parallelism = parallelism};
    double began = cpu_seconds();
    if (ck_job_start(s, r, g, &cfg, &j, &err) != CK_OK) die("start", &err);
    if (ck_job_wait(j, -1, &err) != CK_OK) die("job", &err);
    ck_job_free(j);
    return cpu_seconds() - began;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    static const uint32_t rows[] = {1, 64, 4096};
    ck_faults faults;
    ck_faults_init(&faults);
    ck_proc proc = {
        .heap = ck_heap_system(), .clock = ck_clock_system(), .random = ck_random_system(), .faults = &faults};
    ck_budget_init(&proc.budget, proc.heap, 0);
    ck_error err = CK_ERROR_INIT;
    ck_scheduler *s;
    ck_arena a;
    ck_registry r;
    ck_arena_init(&a, ck_proc_mem(&proc, CK_MEM_PLAN), 64 << 20);
    ck_registry_init(&r, &a);
    if (ck_io_pool_new(&proc, 2, &proc.io, &err) != CK_OK || ck_scheduler_pool(&proc, ck_cores(), &s, &err) != CK_OK ||
        ck_registry_add_op(&r, &source_desc, &err) != CK_OK || ck_registry_add_op(&r, &pass_desc, &err) != CK_OK ||
        ck_registry_add_op(&r, &drop_desc, &err) != CK_OK)
        die("setup", &err);
    ck_field fields[] = {{"k", ck_type_simple(CK_TYPE_BIGINT), false}, {"v", ck_type_simple(CK_TYPE_BIGINT), false}};
    ck_schema schema = {fields, 2};
    for (int queued = 0; queued < 2; queued++)
        for (size_t n = 0; n < CK_ARRAY_COUNT(rows); n++) {
            ck_mem mem = ck_proc_mem(&proc, CK_MEM_QUEUE);
            ready = ck_batch_new(mem, 2, rows[n], false, false);
            for (uint32_t c = 0; c < 2; c++) {
                ck_column *col = ck_column_new(mem, CK_PHYS_I64, rows[n]);
                for (uint32_t i = 0; i < rows[n]; i++) col->i64[i] = (int64_t)i * 7919;
                ck_batch_set_column(ready, c, &col);
            }
            ck_graph *g = graph(&a, &schema, queued);
            uint32_t p = queued ? 2 : 1;
            double took = 0;
            for (batches = 1000; took < seconds; batches *= 4) took = run(s, &r, g, p);
            batches /= 4;
            double events = (double)batches * OPERATORS * p;
            printf("%-28s %5u rows a batch: %8.1f ns an event, %8.2f ns a row\n",
                   queued ? "hash edge, parallelism 2" : "one chain of five", rows[n], took * 1e9 / events,
                   took * 1e9 / ((double)batches * p * rows[n]));
            ck_batch_unref(&ready);
        }
    ck_scheduler_free(s);
    ck_io_pool_free(proc.io);
    ck_arena_destroy(&a);
    return 0;
}
