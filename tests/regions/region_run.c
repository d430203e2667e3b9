/* One region of a script's job as a process of its own, as a task host of a cluster runs it: for tests that kill it.
 *
 *     region_run SCRIPT CHECKPOINT_DIR INDEX COUNT PARALLELISM INTERVAL_MS [RESTORE]
 *
 * Says "running", answers each line of its input: "savepoint ABOVE" and "stop ABOVE" with "savepoint N", and in the end
 * says "finished", "had finished" or "failed: why" (exit code 1). */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_int.h"
#include "runtime/job.h"

enum { TURN_MS = 20, SCRIPT_BYTES_MAX = 1 << 20 };

static ck_error err;

static _Noreturn void give_up(void) {
    printf("failed: %s\n", err.msg);
    fflush(stdout);
    _exit(1);
}

static char *read_script(const char *path) {
    FILE *f = fopen(path, "r");
    char *text = calloc(1, SCRIPT_BYTES_MAX);
    if (!f || !text || fread(text, 1, SCRIPT_BYTES_MAX - 1, f) == 0) exit(2);
    fclose(f);
    return text;
}

static const ck_graph *graph_of(const clink_job *script) {
    for (uint32_t i = 0; i < script->plan->step_count; i++)
        if (script->plan->steps[i].kind == CK_SQL_JOB) return script->plan->steps[i].graph;
    exit(2);
}

static void hear(ck_job *j) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[100], verb[20];
    unsigned long long above;
    uint64_t id;
    if (poll(&in, 1, 0) <= 0 || !fgets(line, sizeof line, stdin)) return;
    if (sscanf(line, "%19s %llu", verb, &above) != 2) exit(2);
    if (ck_job_savepoint_above(j, strcmp(verb, "stop") == 0, above, -1, &id, &err) != CK_OK) give_up();
    printf("savepoint %llu\n", (unsigned long long)id);
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 7) return 2;
    clink_engine *e = NULL;
    clink_job *script = NULL;
    clink_error why = {0};
    ck_job *j = NULL;
    err = CK_ERROR_INIT;
    setvbuf(stdin, NULL, _IONBF, 0);
    char *text = read_script(argv[1]);
    clink_run run = {.struct_bytes = sizeof run, .name = "regions", .checkpoint_dir = argv[2]};
    if (clink_open(NULL, &e, &why) != CLINK_OK) {
        printf("failed: %s\n", why.message);
        return 1;
    }
    run.parallelism = (uint32_t)atoi(argv[5]);
    if (engine_compile(e, text, &run, &script, &err) != CK_OK) give_up();
    ck_job_outputs outputs = {0};
    if (ck_memory_stage_new(e->memory, &outputs.memory) != CK_OK) return 1;
    const ck_job_config cfg = {.name = "regions",
                               .region = {(uint32_t)atoi(argv[3]), (uint32_t)atoi(argv[4])},
                               .parallelism = run.parallelism,
                               .checkpoint = {.dir = argv[2],
                                              .interval_us = atoll(argv[6]) * 1000,
                                              .timeout_us = 600000000,
                                              .final_timeout_us = 600000000,
                                              .retained = 3,
                                              .alignment = CK_UNALIGNED,
                                              .restore = argc > 7 ? argv[7] : NULL},
                               .job_data = &outputs};
    if (ck_job_start(e->scheduler, &e->registry, graph_of(script), &cfg, &j, &err) != CK_OK) give_up();
    bool had = ck_job_was_finished(j);
    puts("running");
    fflush(stdout);
    ck_status s;
    while ((s = ck_job_wait(j, TURN_MS * 1000, &err)) == CK_AGAIN) {
        err = CK_ERROR_INIT;
        hear(j);
    }
    if (s != CK_OK) give_up();
    puts(had ? "had finished" : "finished");
    ck_job_free(j);
    ck_memory_stage_free(&outputs.memory);
    clink_job_free(script);
    clink_close(e);
    free(text);
    return 0;
}
