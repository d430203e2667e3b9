/* How fast columns become text, on one core: the bids of a NEXMark file, decoded once, encoded as NDJSON and as CSV.
 *   encode_bench BIDS.ndjson [REPEATS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format/decoder.h"
#include "format/encoder.h"

enum { BATCHES_MAX = 4096 };

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t load(ck_proc *proc, const ck_schema *schema, const char *path, ck_batch **batches) {
    ck_mem mem = ck_proc_mem(proc, CK_MEM_DECODE);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) exit(2);
    size_t n = (size_t)ftell(f), used = 0, count = 0;
    rewind(f);
    ck_buffer *buf = ck_buffer_new(mem, n);
    if (!buf || fread(buf->p, 1, n, f) != n) exit(2);
    fclose(f);
    ck_decoder *d;
    ck_decoder_spec spec = {.format = "json", .schema = schema};
    if (ck_decoder_new(proc, &spec, mem, NULL, NULL, &d, NULL) != CK_OK ||
        ck_decoder_begin(d, path, true, NULL) != CK_OK)
        exit(3);
    for (size_t at = 0; at < n && count < BATCHES_MAX; at += used) {
        size_t end = n - at < CK_READ_BUFFER_BYTES ? n : at + CK_READ_BUFFER_BYTES;
        ck_status s = ck_decoder_feed(d, buf, at, end, at, end == n, &used, NULL);
        if (s != CK_OK && s != CK_FULL) exit(3);
        if (s == CK_FULL || at + used == n) batches[count++] = ck_decoder_take(d);
    }
    ck_decoder_free(d);
    ck_buffer_unref(&buf);
    return count;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    int repeats = argc > 2 ? atoi(argv[2]) : 5;
    static const char *names[] = {"auction", "bidder", "price", "channel", "url", "datetime", "extra"};
    ck_field fields[7];
    for (int i = 0; i < 7; i++)
        fields[i] =
            (ck_field){names[i], ck_type_simple(i == 3 || i == 4 || i == 6 ? CK_TYPE_VARCHAR : CK_TYPE_BIGINT), true};
    ck_schema schema = {fields, 7};
    ck_proc proc = {.heap = ck_heap_system(), .cpu = ck_cpu_detect()};
    ck_budget_init(&proc.budget, proc.heap, 0);
    static ck_batch *batches[BATCHES_MAX];
    size_t count = load(&proc, &schema, argv[1], batches);
    static const char *const formats[] = {"json", "csv"};
    for (int k = 0; k < 2; k++) {
        ck_encoder_spec spec = {.format = formats[k], .schema = &schema};
        ck_encoder *e;
        ck_bytes out;
        double best = 1e9;
        size_t bytes = 0;
        ck_bytes_init(&out, ck_proc_mem(&proc, CK_MEM_QUEUE), 64 << 20);
        if (ck_encoder_new(&spec, out.mem, &e, NULL) != CK_OK) return 3;
        for (int r = 0; r < repeats; r++) {
            double t = cpu_seconds();
            bytes = 0;
            for (size_t i = 0; i < count; i++) {
                ck_bytes_clear(&out);
                if (ck_encoder_rows(e, batches[i], NULL, &out, NULL) != CK_OK) return 3;
                bytes += out.n;
            }
            t = cpu_seconds() - t;
            if (t < best) best = t;
        }
        printf("%s: %.1f MB, %.3f s CPU (%.2f GB/s)\n", formats[k], (double)bytes / 1e6, best,
               (double)bytes / best / 1e9);
        ck_encoder_free(e);
        ck_bytes_destroy(&out);
    }
    for (size_t i = 0; i < count; i++) ck_batch_unref(&batches[i]);
    return 0;
}
