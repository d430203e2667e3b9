/* clink inside a C program: run a query, read its rows as Arrow.  Build: see examples/README.md. */
#include <stdio.h>
#include <string.h>

#include "clink/clink.h"
#include "nanoarrow/nanoarrow.h" /* for struct ArrowArrayStream; any Arrow library will do */

static int fail(const clink_error *e) {
    fprintf(stderr, "embed: %s\n", e->message);
    return 1;
}

int main(int argc, char **argv) {
    const char *sql = argc > 1 ? argv[1]
                               : "CREATE TABLE n (i BIGINT) WITH (connector='datagen', rows='1000', 'fields.i.kind'='sequence');"
                                 "SELECT i % 3 AS k, COUNT(*) AS n FROM n GROUP BY i % 3";
    clink_error e = {0};
    clink_engine *engine = NULL;
    clink_job *job = NULL;
    if (clink_open(NULL, &engine, &e) != CLINK_OK) return fail(&e);
    clink_run run = {.struct_bytes = sizeof run, .output = CLINK_OUTPUT_STREAM};
    if (clink_execute(engine, sql, &run, &job, &e) != CLINK_OK) return fail(&e);
    struct ArrowArrayStream stream;
    memset(&stream, 0, sizeof stream);
    if (clink_job_stream(job, &stream, &e) != CLINK_OK) return fail(&e);
    long long rows = 0;
    for (;;) {
        struct ArrowArray batch;
        if (stream.get_next(&stream, &batch) != 0) {
            fprintf(stderr, "embed: %s\n", stream.get_last_error(&stream));
            return 1;
        }
        if (!batch.release) break;
        rows += (long long)batch.length;
        batch.release(&batch);
    }
    stream.release(&stream);
    printf("%lld rows\n", rows);
    if (clink_job_wait(job, -1, &e) != CLINK_OK) return fail(&e);
    clink_job_free(job);
    clink_close(engine);
    return 0;
}
