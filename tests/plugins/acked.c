/* A queue that forgets what was acknowledged: a source that is told of commits, and that holds the engine to what it was
 * promised. It gives `rows` numbers in each of `splits` splits, and waits for more then; what was acknowledged of each is kept in the file `acked`, as a queue
 * would on its server. A split that is opened before what was acknowledged is a row lost. */
#include <stdlib.h>

#include <clink/plugin.h>

typedef struct queue {
    char acked[4096];
    long long rows, splits, pause_us;
} queue;

typedef struct part {
    queue *of;
    long long number, next;
} part;

static clink_status fail(clink_error *e, const char *what, long long a, long long b) {
    return clink_fail(e, CLINK_DATA, "%s: %lld, %lld", what, a, b);
}

static int32_t endless(const clink_table *t) {
    (void)t;
    return 1;
}

static clink_status splits(const clink_table *t, uint32_t parallelism, clink_splits *out, clink_error *error) {
    (void)parallelism, (void)error;
    for (long long i = 0; i < atoll(clink_table_option(t, "splits")); i++) {
        char id[32];
        snprintf(id, sizeof id, "q%lld", i);
        if (clink_add_split(out, id, "0", 1) != CLINK_OK) return CLINK_FAILED;
    }
    return CLINK_OK;
}

static clink_status open_queue(void **self, const clink_source_start *start, clink_error *error) {
    queue *q = calloc(1, sizeof *q);
    if (!q) return fail(error, "no memory", 0, 0);
    snprintf(q->acked, sizeof q->acked, "%s", clink_table_option(start->table, "acked"));
    q->rows = atoll(clink_table_option(start->table, "rows"));
    q->splits = atoll(clink_table_option(start->table, "splits"));
    q->pause_us = atoll(clink_table_option(start->table, "pause_us"));
    *self = q;
    return CLINK_OK;
}

static long long number_of(clink_bytes b) {
    char text[32] = "";
    memcpy(text, b.p, b.n < sizeof text - 1 ? b.n : sizeof text - 1);
    return atoll(text);
}

/* The greatest that was acknowledged of a split. */
static long long acked(const queue *q, long long split) {
    long long most = 0, n, at, checkpoint;
    FILE *f = fopen(q->acked, "r");
    while (f && fscanf(f, "%lld q%lld %lld\n", &checkpoint, &n, &at) == 3)
        if (n == split && at > most) most = at;
    if (f) fclose(f);
    return most;
}

static clink_status open_split(void **split, void *self, const clink_split *at, clink_error *error) {
    part *p = calloc(1, sizeof *p);
    if (!p) return fail(error, "no memory", 0, 0);
    *p = (part){self, atoll(at->id + 1), number_of(at->position)};
    *split = p;
    if (p->next < acked(p->of, p->number)) return fail(error, "asked for what was acknowledged", p->next, acked(p->of, p->number));
    return CLINK_OK;
}

static clink_status read_some(clink_read *r) {
    part *p = r->split;
    char text[32];
    for (int i = 0; i < 50 && p->next < p->of->rows && r->out->count < r->out->capacity; i++) {
        uint32_t row;
        if (clink_add_row(r->out, &row) != CLINK_OK) return CLINK_NOMEM;
        clink_set_i64(r->out->columns[0], row, p->next++ * p->of->splits + p->number);
    }
    snprintf(text, sizeof text, "%lld", p->next);
    r->then = CLINK_READ_WAIT;
    r->wait_us = p->next < p->of->rows ? p->of->pause_us : 5000;
    return clink_set_position(r, text, strlen(text));
}

static clink_status committed(void *self, uint64_t checkpoint, const clink_split *at, uint32_t count, clink_error *error) {
    queue *q = self;
    FILE *f = fopen(q->acked, "a");
    if (!f) return fail(error, "no file for what is acknowledged", 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (number_of(at[i].position) < acked(q, atoll(at[i].id + 1))) {
            fclose(f);
            return fail(error, "an acknowledgement that goes back", number_of(at[i].position), (long long)checkpoint);
        }
        fprintf(f, "%llu %s %.*s\n", (unsigned long long)checkpoint, at[i].id, (int)at[i].position.n, (const char *)at[i].position.p);
    }
    return fclose(f) == 0 ? CLINK_OK : CLINK_IO;
}

static const clink_source source = {.struct_bytes = sizeof source, .endless = endless, .splits = splits, .open = open_queue, .open_split = open_split,
                                    .read = read_some, .close_split = free, .close = free, .committed = committed};
static const clink_option options[] = {{"acked", "path", "acked", "where acknowledgements are kept"}, {"rows", "integer", "1000", "of each split"},
                                       {"splits", "integer", "1", "how many"}, {"pause_us", "integer", "0", "between two reads"}, {NULL, NULL, NULL, NULL}};
static const clink_connector queue_connector = {.struct_bytes = sizeof queue_connector, .name = "queue", .source = &source, .options = options};
static const clink_connector *const connectors[] = {&queue_connector, NULL};
static const clink_plugin table = {.struct_bytes = sizeof table, .abi = CLINK_PLUGIN_ABI, .name = "acked", .version = "1", .connectors = connectors};
CLINK_PLUGIN(table)
