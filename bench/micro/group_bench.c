/* GROUP BY alone: ns a row for SUM and COUNT by a BIGINT key, hot and cold, COUNT DISTINCT, changes with flushes.
 *   build/bench/group_bench [rows [which]]   default 4000000, all */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "data/builder.h"
#include "operator/operators.h"
#include "os/clock.h"
#include "os/fs.h"
#include "os/random.h"
#include "state/state.h"

enum { RING = 1 << 16 };
static uint64_t emitted;
static ck_status emit(ck_op_ctx *ctx, uint32_t port, ck_batch **b) {
    (void)ctx;
    (void)port;
    emitted += (*b)->sel_count;
    ck_batch_unref(b);
    return CK_OK;
}
static void count(ck_op_ctx *ctx, const char *name, uint64_t n) {
    (void)ctx;
    (void)name;
    (void)n;
}
static int64_t now_us(const ck_op_ctx *ctx) {
    (void)ctx;
    return 0;
}
static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct run {
    const char *name, *aggregates, *output;
    uint64_t keys, values;
    bool final, retract;
} run;

static void check(ck_status s, const ck_error *err) {
    if (s == CK_OK) return;
    printf("%s: %s\n", ck_status_name(s), err->msg);
    exit(1);
}

static void measure(ck_proc *proc, const run *r, uint64_t rows) {
    ck_error err = CK_ERROR_INIT;
    ck_arena plan, calls;
    ck_mem mem = ck_proc_mem(proc, CK_MEM_QUEUE);
    ck_arena_init(&plan, mem, 1 << 28);
    ck_arena_init(&calls, mem, 1 << 28);
    const ck_type *bigint = ck_type_simple(CK_TYPE_BIGINT);
    ck_field in[2] = {{"k", bigint, false}, {"v", bigint, true}};
    ck_field out[8] = {{"k", bigint, false}};
    uint32_t columns = 1;
    for (const char *p = r->output; *p; p++)
        out[columns++] = (ck_field){"c", *p == 'd' ? ck_type_simple(CK_TYPE_DOUBLE) : bigint, true};
    ck_schema in_schema = {in, 2}, out_schema = {out, columns};
    ck_op_input input = {&in_schema, r->retract ? CK_MODE_RETRACT : CK_MODE_APPEND, false};
    ck_job_settings settings = {.batch_rows = 4096, .key_groups = 128, .timezone = "UTC"};
    char params[1024];
    snprintf(params, sizeof params, "{\"keys\":[0],\"aggregates\":[%s]}", r->aggregates);
    ck_op_spec spec = {.proc = proc,
                       .uid = "op",
                       .type = "group_agg",
                       .params = params,
                       .inputs = &input,
                       .input_count = 1,
                       .schema = &out_schema,
                       .final = r->final,
                       .settings = &settings,
                       .parallelism = 1};
    ck_state_config cfg = {proc, ck_proc_mem(proc, CK_MEM_STATE), 128, {0, 127}, 99, false};
    ck_state_store *store;
    ck_state *state;
    check(ck_state_store_new(&cfg, &store, &err), &err);
    check(ck_state_of(store, "op", "group_agg", &state, &err), &err);
    ck_op_ctx ctx = {.proc = proc,
                     .settings = &settings,
                     .uid = "op",
                     .parallelism = 1,
                     .key_groups = {0, 127},
                     .input_count = 1,
                     .mem = mem,
                     .arena = &calls,
                     .state = state,
                     .error = &err,
                     .emit_fn = emit,
                     .now_us_fn = now_us,
                     .count_fn = count};
    void *self;
    check(ck_op_group_agg.create(&spec, mem, &self, &err), &err);
    check(ck_op_group_agg.op->open(self, &ctx), &err);

    double spent = 0, flush = 0;
    uint64_t x = 1;
    emitted = 0;
    for (uint64_t done = 0; done < rows; done += 4096) {
        ck_batch_builder b;
        check(ck_batch_builder_init(&b, mem, &in_schema, 4096), &err);
        for (uint64_t i = 0; i < 4096; i++) {
            static int64_t k[RING], v[RING]; /* what was put, to be taken back later */
            static uint64_t put, taken;
            if (done == 0 && i == 0) put = taken = 0;
            bool back = r->retract && (i & 1) && put - taken >= RING;
            uint64_t at = (back ? taken++ : put++) % RING;
            if (!back) {
                x = x * 6364136223846793005ULL + 1442695040888963407ULL;
                k[at] = (int64_t)((x >> 33) % r->keys);
                v[at] = (int64_t)((x >> 20) % r->values);
            }
            check(ck_build_i64(&b.columns[0], k[at]), &err);
            check(ck_build_i64(&b.columns[1], v[at]), &err);
            ck_batch_builder_row(&b, back ? -1 : 1);
        }
        ck_batch *batch = ck_batch_builder_finish(&b);
        ck_batch_builder_destroy(&b);
        ck_event ev = ck_event_batch(batch);
        double t = cpu();
        ck_status s;
        while ((s = ck_op_group_agg.op->on_event(self, 0, &ev, &ctx)) == CK_MORE)
            ck_arena_reset_to(&calls, (ck_arena_mark){0});
        check(s, &err);
        spent += cpu() - t;
        ck_arena_reset_to(&calls, (ck_arena_mark){0});
        ck_batch_unref(&batch);
        if (r->final || done / 4096 % 4 != 3) continue;
        ck_event f = ck_event_flush(done);
        t = cpu();
        while ((s = ck_op_group_agg.op->on_event(self, 0, &f, &ctx)) == CK_MORE)
            ck_arena_reset_to(&calls, (ck_arena_mark){0});
        check(s, &err);
        flush += cpu() - t;
    }
    ck_event end = ck_event_end();
    double t = cpu();
    ck_status s;
    while ((s = ck_op_group_agg.op->on_event(self, 0, &end, &ctx)) == CK_MORE)
        ck_arena_reset_to(&calls, (ck_arena_mark){0});
    check(s, &err);
    double at_end = cpu() - t;
    printf("%-44s %6.1f ns/row, flush %5.1f ns/row, end %6.1f ms, %9llu rows out, %5.1f B/key\n", r->name,
           spent * 1e9 / (double)rows, flush * 1e9 / (double)rows, at_end * 1e3, (unsigned long long)emitted,
           (double)ck_state_bytes(store) / (double)r->keys);
    ck_op_group_agg.op->close(self, &ctx);
    ck_state_store_free(store);
    ck_arena_destroy(&calls);
    ck_arena_destroy(&plan);
}

#define SUM   "{\"fn\":\"sum\",\"arg\":1,\"arg_text\":\"v\"}"
#define COUNT "{\"fn\":\"count\",\"arg\":null}"

int main(int argc, char **argv) {
    uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
    static const run runs[] = {
        {"sum, count, 1k keys, final", SUM "," COUNT, "bb", 1000, 1000, true, false},
        {"sum, count, 100k keys, final", SUM "," COUNT, "bb", 100000, 1000, true, false},
        {"sum, count, 1M keys, final", SUM "," COUNT, "bb", 1000000, 1000, true, false},
        {"sum, count, 1k keys, flushes", SUM "," COUNT, "bb", 1000, 1000, false, false},
        {"sum, count, 1M keys, flushes", SUM "," COUNT, "bb", 1000000, 1000, false, false},
        {"sum, count, 1k keys, retract, flushes", SUM "," COUNT, "bb", 1000, 1000, false, true},
        {"count distinct, 1k keys x 100", "{\"fn\":\"count\",\"arg\":1,\"arg_text\":\"v\",\"distinct\":true}", "b",
         1000, 100, true, false},
        {"count distinct, 10 keys x 100k", "{\"fn\":\"count\",\"arg\":1,\"arg_text\":\"v\",\"distinct\":true}", "b", 10,
         100000, true, false},
        {"min, max, avg, 1k keys, final",
         "{\"fn\":\"min\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"max\",\"arg\":1,\"arg_text\":\"v\"},"
         "{\"fn\":\"avg\",\"arg\":1,\"arg_text\":\"v\"}",
         "bbd", 1000, 1000, true, false},
        {"min, max, 1k keys, retract",
         "{\"fn\":\"min\",\"arg\":1,\"arg_text\":\"v\"},{\"fn\":\"max\",\"arg\":1,\"arg_text\":\"v\"}", "bb", 1000,
         1000, false, true},
    };
    ck_proc proc = {.heap = ck_heap_system(),
                    .clock = ck_clock_system(),
                    .random = ck_random_system(),
                    .fs = ck_fs_system(),
                    .cpu = ck_cpu_detect()};
    ck_budget_init(&proc.budget, proc.heap, 0);
    long only = argc > 2 ? strtol(argv[2], NULL, 10) : -1;
    for (size_t i = 0; i < CK_ARRAY_COUNT(runs); i++)
        if (only < 0 || (size_t)only == i) measure(&proc, &runs[i], rows);
    return 0;
}
