/* Savepoints of a job through the C ABI, as a program that embeds the library would take them.
 *
 *     savepoints script.sql none      # without a checkpoint directory
 *     savepoints script.sql DIR       # takes, stops with, goes on from and disposes of savepoints in DIR/ck and DIR/sp
 *     savepoints script.sql DIR fails # CLINK_FAULT fails one step of the first
 *     savepoints script.sql DIR elsewhere # DIR/sp is no place for one */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clink/clink.h"

#define CHECK(e) do { if (!(e)) { fprintf(stderr, "line %d: %s: %s (%d)\n", __LINE__, #e, error.message, (int)error.status); exit(1); } } while (0)

static clink_error error;
static char ck[4000], sp[4000];

static char *text_of(const char *path) {
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    if (!f || !text || fread(text, 1, (1 << 16) - 1, f) == 0) exit(2);
    fclose(f);
    return text;
}

/* In an engine of its own: the script makes its tables. */
static clink_job *start(clink_engine **engine, const char *sql, const char *restore) {
    clink_job *job = NULL;
    CHECK(clink_open(NULL, engine, &error) == CLINK_OK);
    clink_run run = {.struct_bytes = sizeof run, .checkpoint_dir = *ck ? ck : NULL, .savepoint_dir = *ck ? sp : NULL, .checkpoint_interval_ms = 3600000,
                     .parallelism = 2, .restore = restore, .allow_duplicates = restore != NULL};
    CHECK(clink_execute(*engine, sql, &run, &job, &error) == CLINK_OK);
    while (!clink_job_started(job)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return job;
}

/* It stands in both places when the call has returned. */
static void stands(uint64_t id) {
    char path[4100];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/checkpoint-%llu.json", i ? sp : ck, (unsigned long long)id);
        if (access(path, R_OK) != 0) {
            fprintf(stderr, "savepoint %llu is said to be complete, and there is no %s\n", (unsigned long long)id, path);
            exit(1);
        }
    }
}

static void end(clink_engine *engine, clink_job *job) {
    clink_job_free(job);
    clink_close(engine);
}

/* Without a checkpoint directory it is refused in a sentence, and the job goes on. */
static void without_a_directory(const char *sql) {
    clink_engine *engine = NULL;
    uint64_t id = 7;
    clink_job *job = start(&engine, sql, NULL);
    CHECK(clink_job_savepoint(job, -1, &id, &error) == CLINK_REFUSED && id == 0 && strstr(error.message, "need a checkpoint directory"));
    CHECK(clink_job_stop(job, -1, &id, &error) == CLINK_REFUSED && id == 0 && strstr(error.message, "need a checkpoint directory"));
    CHECK(clink_job_wait(job, 10, &error) == CLINK_TIMEOUT);
    clink_job_cancel(job);
    CHECK(clink_job_wait(job, -1, &error) == CLINK_CANCELLED);
    CHECK(clink_job_savepoint(job, -1, &id, &error) == CLINK_INVALID && strstr(error.message, "not running"));
    CHECK(clink_job_savepoint(NULL, -1, &id, &error) == CLINK_INVALID);
    end(engine, job);
}

static void *take_one(void *job) {
    uint64_t *id = calloc(1, sizeof *id);
    clink_error e = {0};
    if (id && clink_job_savepoint(job, -1, id, &e) != CLINK_OK) fprintf(stderr, "beside another: %s\n", e.message), *id = 0;
    return id;
}

static void verified(void *arg, const clink_verified *file) {
    if (file->savepoint && strstr(file->path, "checkpoint-")) ++*(int *)arg;
}

static void taken(const char *sql) {
    clink_engine *engine = NULL;
    uint64_t first = 0, second = 0, last = 0, damaged = 0;
    int count = 0;
    char number[32];
    clink_job *job = start(&engine, sql, NULL);
    CHECK(clink_job_savepoint(job, -1, &first, &error) == CLINK_OK && first > 0);
    stands(first);
    CHECK(clink_job_savepoint(job, -1, &second, &error) == CLINK_OK && second > first);
    stands(second);
    CHECK(clink_job_savepoint(job, -1, NULL, &error) == CLINK_OK); /* who does not want to know which */
    clink_status s = clink_job_savepoint(job, 0, &last, &error); /* in time only by chance */
    CHECK(s == CLINK_OK ? last > second : s == CLINK_TIMEOUT && last == 0 && strstr(error.message, "not complete in time"));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, take_one, job);
    for (int i = 0; i < 4; i++) {
        void *id;
        pthread_join(threads[i], &id);
        CHECK(*(uint64_t *)id > second);
        stands(*(uint64_t *)id);
        free(id);
    }
    CHECK(clink_job_stop(job, -1, &last, &error) == CLINK_OK && last > second + 1);
    stands(last);
    CHECK(clink_job_wait(job, -1, &error) == CLINK_OK);
    CHECK(clink_job_savepoint(job, -1, &damaged, &error) == CLINK_INVALID && strstr(error.message, "not running"));

    CHECK(clink_checkpoint_verify(engine, ck, 0, verified, &count, &damaged, &error) == CLINK_OK && damaged == 0 && count >= 5);
    CHECK(clink_savepoint_dispose(engine, ck, first, &error) == CLINK_OK);
    CHECK(clink_savepoint_dispose(engine, ck, first, &error) != CLINK_OK && strstr(error.message, "has no savepoint"));
    CHECK(clink_savepoint_dispose(engine, ck, last, &error) == CLINK_REFUSED); /* what the job would go on from */
    printf("%llu %llu\n", (unsigned long long)first, (unsigned long long)second);
    end(engine, job);

    job = start(&engine, sql, NULL); /* goes on from the last */
    CHECK(clink_job_savepoint(job, -1, &first, &error) == CLINK_OK && first > last);
    CHECK(clink_job_stop(job, -1, &last, &error) == CLINK_OK && last > first);
    CHECK(clink_job_wait(job, -1, &error) == CLINK_OK);
    end(engine, job);
    snprintf(number, sizeof number, "%llu", (unsigned long long)second);
    job = start(&engine, sql, number); /* from an older one, by number */
    CHECK(clink_job_stop(job, -1, &last, &error) == CLINK_OK);
    CHECK(clink_job_wait(job, -1, &error) == CLINK_OK);
    end(engine, job);
}

/* A savepoint that fails is said to have failed, is not there, and the next may come. */
static void fails(const char *sql) {
    clink_engine *engine = NULL;
    uint64_t id = 7, next = 0;
    clink_job *job = start(&engine, sql, NULL);
    CHECK(clink_job_savepoint(job, -1, &id, &error) == CLINK_IO && id == 0);
    fprintf(stderr, "%s\n", error.message);
    CHECK(clink_job_wait(job, 10, &error) == CLINK_TIMEOUT);
    CHECK(clink_job_savepoint(job, -1, &next, &error) == CLINK_OK);
    stands(next);
    printf("%llu\n", (unsigned long long)next);
    CHECK(clink_job_stop(job, -1, NULL, &error) == CLINK_OK);
    CHECK(clink_job_wait(job, -1, &error) == CLINK_OK);
    end(engine, job);
}

/* The job ends with a savepoint that its other place does not take: said, and the job goes on from it all the same. */
static void elsewhere(const char *sql) {
    clink_engine *engine = NULL;
    uint64_t id = 0;
    char path[4100];
    clink_job *job = start(&engine, sql, NULL);
    CHECK(clink_job_stop(job, -1, &id, &error) == CLINK_IO && id == 0);
    fprintf(stderr, "%s\n", error.message);
    CHECK(clink_job_wait(job, 10, &error) == CLINK_TIMEOUT); /* it goes on */
    CHECK(clink_job_savepoint(job, -1, &id, &error) == CLINK_IO && id > 0);
    fprintf(stderr, "%s\n", error.message);
    snprintf(path, sizeof path, "%s/checkpoint-%llu.json", ck, (unsigned long long)id);
    CHECK(access(path, R_OK) == 0);
    CHECK(unlink(sp) == 0); /* and may be asked again */
    CHECK(clink_job_stop(job, -1, &id, &error) == CLINK_OK);
    stands(id);
    CHECK(clink_job_wait(job, -1, &error) == CLINK_OK);
    end(engine, job);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    char *sql = text_of(argv[1]);
    if (strcmp(argv[2], "none") != 0) {
        snprintf(ck, sizeof ck, "%s/ck", argv[2]);
        snprintf(sp, sizeof sp, "%s/sp", argv[2]);
    }
    (!*ck ? without_a_directory : argc == 3 ? taken : strcmp(argv[3], "fails") == 0 ? fails : elsewhere)(sql);
    free(sql);
    return 0;
}
