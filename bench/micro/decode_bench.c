/* How fast text becomes columns, on one core: NEXMark bids (or any file with their columns) as NDJSON or CSV.
 *   decode_bench FILE [COLUMN,...|all|none] [REPEATS]
 * prints CPU time and GB/s of the best run, reading included and apart. CLINK_CPU=scalar forces the plain form. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "format/decoder.h"

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct run {
    ck_decoder *d;
    ck_mem mem;
    int fd;
    uint64_t rows, batches, bytes;
    double read_s;
    ck_buffer *spares[16]; /* read buffers, used again once no batch holds them */
} run;

static void take(run *r) {
    ck_batch *b = ck_decoder_take(r->d);
    if (!b) exit(3);
    r->rows += b->row_count;
    r->batches++;
    ck_batch_unref(&b);
}

static ck_buffer *buffer_for(run *r, size_t bytes) {
    ck_buffer **slot = NULL;
    for (size_t i = 0; i < CK_ARRAY_COUNT(r->spares); i++) {
        ck_buffer *b = r->spares[i];
        if (b && atomic_load(&b->refs) > 1) continue;
        if (b && b->bytes >= bytes) return ck_buffer_ref(b);
        slot = &r->spares[i];
    }
    ck_buffer *b = ck_buffer_new(r->mem, bytes + 65536);
    if (!b) exit(3);
    if (!slot) return b;
    ck_buffer_unref(slot);
    *slot = ck_buffer_ref(b);
    return b;
}

static ck_buffer *read_more(run *r, const ck_buffer *rest_of, size_t rest_at, size_t rest, size_t *n) {
    double t = cpu_seconds();
    ck_buffer *b = buffer_for(r, CK_READ_BUFFER_BYTES + rest);
    if (rest) memcpy(b->p, rest_of->p + rest_at, rest);
    ssize_t got = read(r->fd, b->p + rest, CK_READ_BUFFER_BYTES);
    *n = got > 0 ? (size_t)got : 0;
    r->bytes += *n;
    r->read_s += cpu_seconds() - t;
    return b;
}

/* As a source does it: a fresh buffer a read, the partial record carried over. */
static ck_status decode_file(run *r, ck_error *err) {
    ck_buffer *buf = NULL;
    size_t end = 0, at = 0;
    uint64_t offset = 0; /* of buf->p[at] */
    for (bool last = false; !last;) {
        size_t n, rest = end - at;
        ck_buffer *more = read_more(r, buf, at, rest, &n);
        ck_buffer_unref(&buf);
        buf = more;
        last = n == 0;
        end = rest + n;
        at = 0;
        for (ck_status s = CK_FULL; s == CK_FULL;) {
            size_t used;
            s = ck_decoder_feed(r->d, buf, at, end, offset, last, &used, err);
            at += used;
            offset += used;
            if (s == CK_FULL)
                take(r);
            else if (s != CK_OK)
                return s;
        }
    }
    take(r);
    ck_buffer_unref(&buf);
    return CK_OK;
}

static bool named(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *p = list; (p = strstr(p, name)); p++)
        if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == 0)) return true;
    return strcmp(list, "all") == 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const char *columns = argc > 2 ? argv[2] : "all";
    int repeats = argc > 3 ? atoi(argv[3]) : 5;
    static const char *names[] = {"auction", "bidder", "price", "channel", "url", "datetime", "extra"};
    ck_field fields[7];
    bool wanted[7];
    for (int i = 0; i < 7; i++) {
        bool text = i == 3 || i == 4 || i == 6;
        fields[i] = (ck_field){names[i], ck_type_simple(text ? CK_TYPE_VARCHAR : CK_TYPE_BIGINT), true};
        wanted[i] = named(columns, names[i]);
    }
    ck_schema schema = {fields, 7};
    ck_proc proc = {.heap = ck_heap_system(), .cpu = ck_cpu_detect()};
    ck_budget_init(&proc.budget, proc.heap, 0);
    const char *dot = strrchr(argv[1], '.');
    ck_decoder_spec spec = {.format = dot && strcmp(dot, ".csv") == 0 ? "csv" : "json",
                            .schema = &schema,
                            .wanted = wanted,
                            .delimiter = ',',
                            .batch_rows = 4096};
    double best = 1e9, best_read = 0;
    run r = {0};
    for (int i = 0; i < repeats; i++) {
        ck_error err = CK_ERROR_INIT;
        r = (run){.mem = ck_proc_mem(&proc, CK_MEM_DECODE), .fd = open(argv[1], O_RDONLY)};
        if (r.fd < 0) return 2;
        double t = cpu_seconds();
        ck_status s = ck_decoder_new(&proc, &spec, r.mem, NULL, NULL, &r.d, &err);
        if (s == CK_OK) s = ck_decoder_begin(r.d, argv[1], true, &err);
        if (s == CK_OK) s = decode_file(&r, &err);
        t = cpu_seconds() - t;
        if (s != CK_OK) {
            fprintf(stderr, "%s at byte %lld: %s\n", argv[1], (long long)err.place.byte_offset, err.msg);
            return 1;
        }
        ck_decoder_free(r.d);
        for (size_t k = 0; k < CK_ARRAY_COUNT(r.spares); k++) ck_buffer_unref(&r.spares[k]);
        close(r.fd);
        if (t < best) best = t, best_read = r.read_s;
    }
    printf("%s %s: %llu rows, %.1f MB, %.3f s CPU (%.2f GB/s), without reading %.3f s (%.2f GB/s)\n", spec.format,
           columns, (unsigned long long)r.rows, (double)r.bytes / 1e6, best, (double)r.bytes / best / 1e9,
           best - best_read, (double)r.bytes / (best - best_read) / 1e9);
    return 0;
}
