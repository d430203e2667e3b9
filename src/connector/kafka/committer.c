/* Makes records written ahead appear, each checkpoint's of each writer in one transaction together with its token.
 *
 *   a life begins     init_transactions: whoever committed before is shut out, what it had open is aborted
 *                     the tokens are read, then the token that says who commits now is written
 *   commit(N)         token >= N: done before.  token < N: begin, records, token, commit
 *   a failure         nobody knows whether it has happened: a new producer, the tokens are read again. Where they name
 *                     another life, this one is over
 *
 * What is committed is decided by the tokens alone: the brokers' answer to a commit may be lost. */
#include "connector/kafka/commit_int.h"

#include <stdio.h>

#include "os/random.h"

typedef struct kafka_committer {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena;
    bool on; /* exactly once */
    ck_sink_table table;
    ck_kafka_options options;
    const char *checkpoint_dir, *job_name, *uid;
    ck_kafka_owner self;
    char life[17];
    bool began; /* this life's token is written, of the sink itself */
    bool told;  /* that a commit failed and is tried again */
    /* what is open now */
    ck_kafka_owner owner; /* another's where another job's checkpoint is restored, or the sink had another name */
    char owner_job[65];
    bool owner_began; /* the same of the other */
    char found[17];   /* the life that stood there when it was opened */
    ck_kafka_producer producer;
    bool is_open;
    ck_kafka_tokens tokens;
} kafka_committer;

/* ---- making ---- */

static ck_status init(kafka_committer *c, const ck_op_spec *spec, ck_error *err) {
    CK_TRY(ck_sink_table_read(&c->arena, spec, &c->table, NULL, err));
    CK_TRY(ck_kafka_options_read(&c->table.options, &c->options, err));
    c->on = spec->settings->checkpoints && c->options.exactly_once;
    if (!c->on) return CK_OK;
    c->checkpoint_dir = ck_arena_strdup(&c->arena, spec->settings->checkpoint_dir);
    c->job_name = ck_arena_strdup(&c->arena, spec->settings->job_name ? spec->settings->job_name : "");
    c->uid = ck_arena_strdup(&c->arena, spec->uid);
    c->self = (ck_kafka_owner){ck_arena_strdup(&c->arena, spec->settings->job_uuid), ck_op_id(spec->uid)};
    if (!c->checkpoint_dir || !c->job_name || !c->uid || !c->self.job)
        return ck_nomem(err, c->arena.mem, strlen(spec->uid));
    snprintf(c->life, sizeof c->life, "%016llx", (unsigned long long)ck_random_u64(spec->proc));
    return CK_OK;
}

ck_status ck_kafka_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    kafka_committer *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    c->proc = spec->proc;
    c->mem = mem;
    ck_arena_init(&c->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = init(c, spec, err);
    if (s == CK_OK) {
        *self = c;
    } else {
        ck_arena_destroy(&c->arena);
        ck_free(mem, c, sizeof *c);
    }
    return s;
}

static void shut(kafka_committer *c) {
    if (c->is_open) ck_kafka_producer_close(&c->producer);
    c->is_open = false;
    ck_kafka_tokens_destroy(&c->tokens);
}

static void committer_close(void *self) {
    kafka_committer *c = self;
    shut(c);
    ck_arena_destroy(&c->arena);
    ck_free(c->mem, c, sizeof *c);
}

/* ---- who commits ---- */

static bool is_self(const kafka_committer *c) {
    return strcmp(c->owner.job, c->self.job) == 0 && c->owner.op_id == c->self.op_id;
}

static ck_status check_life(const kafka_committer *c, ck_error *err) {
    if (strcmp(c->tokens.life, c->life) == 0) return CK_OK;
    return ck_fail(err, CK_REFUSED,
                   "another run of this job has taken over: it writes to topic %s now, and what this one has not "
                   "committed is left to it",
                   c->options.topic);
}

/* Only the tokens can say whether another life has begun; asking by a new producer would shut it out. */
static ck_status look_before(kafka_committer *c, ck_error *err) {
    CK_TRY(ck_kafka_tokens_read(c->proc, &c->options, &c->owner, false, c->mem, &c->tokens, err));
    return check_life(c, err);
}

static ck_status take_over(kafka_committer *c, ck_error *err) {
    bool again = is_self(c) && c->began;
    if (again) CK_TRY(look_before(c, err));
    CK_TRY(ck_kafka_producer_open(&c->producer, c->proc, &c->options, &c->owner, c->mem, err));
    c->is_open = true;
    CK_TRY(ck_kafka_tokens_read(c->proc, &c->options, &c->owner, true, c->mem, &c->tokens, err));
    memcpy(c->found, c->tokens.life, sizeof c->found);
    return again ? check_life(c, err) : CK_OK;
}

/* A producer of this owner and its tokens. After a failure nothing is open. */
static ck_status open_as(kafka_committer *c, const char *job, uint64_t op_id, ck_error *err) {
    if (c->is_open && strcmp(c->owner_job, job) == 0 && c->owner.op_id == op_id) return CK_OK;
    shut(c);
    snprintf(c->owner_job, sizeof c->owner_job, "%s", job);
    c->owner = (ck_kafka_owner){c->owner_job, op_id};
    c->owner_began = false;
    ck_status s = take_over(c, err);
    if (s != CK_OK) shut(c);
    return s;
}

static ck_status begin_life(kafka_committer *c, ck_error *err) {
    bool *began = is_self(c) ? &c->began : &c->owner_began;
    if (*began) return CK_OK;
    CK_TRY(ck_kafka_begin(&c->producer, err));
    CK_TRY(ck_kafka_send_life(&c->producer, c->life, c->job_name, c->uid, err));
    CK_TRY(ck_kafka_flush(&c->producer, err));
    CK_TRY(ck_kafka_commit(&c->producer, err));
    memcpy(c->tokens.life, c->life, sizeof c->life);
    *began = true;
    return CK_OK;
}

/* ---- committing ---- */

static ck_status send_row(void *arg, ck_view key, ck_view value, ck_error *err) {
    return ck_kafka_send(arg, key, value, err);
}

static ck_status write(kafka_committer *c, const ck_write_ahead_file *f, uint64_t checkpoint, ck_error *err) {
    CK_TRY(ck_kafka_begin(&c->producer, err));
    CK_TRY(ck_write_ahead_read(c->proc, c->mem, f, send_row, &c->producer, err));
    CK_TRY(ck_kafka_send_token(&c->producer, f->writer, checkpoint, err));
    CK_TRY(ck_kafka_flush(&c->producer, err));
    CK_TRY(ck_kafka_commit(&c->producer, err));
    return ck_kafka_token_set(&c->tokens, f->writer, checkpoint, err);
}

static ck_status commit(kafka_committer *c, const ck_write_ahead_file *f, uint64_t checkpoint, ck_error *err) {
    CK_TRY(open_as(c, f->job, f->op_id, err));
    if (!c->tokens.life[0])
        return ck_fail(err, CK_CORRUPT,
                       "topic %s does not know this job, whose checkpoint says that it does: it was removed or "
                       "cleaned by something else than compaction, and what is in topic %s cannot be told (--fresh "
                       "starts anew)",
                       c->options.token_topic, c->options.topic);
    CK_TRY(begin_life(c, err));
    if (ck_kafka_token(&c->tokens, f->writer) < checkpoint) CK_TRY(write(c, f, checkpoint, err));
    return ck_write_ahead_drop(c->proc, f, err);
}

/* Whoever commits comes again with what may pass: for as long as it takes, which is said once. */
static void tell(kafka_committer *c, ck_status s, const ck_error *failed) {
    bool again = s != CK_OK && failed->retriable;
    if (again && !c->told)
        ck_log_line(c->proc->log, CK_LOG_WARN, "warning: %s: %.700s; trying again", c->table.table, failed->msg);
    if (s == CK_OK && c->told)
        ck_log_line(c->proc->log, CK_LOG_WARN, "%s: topic %s takes rows again", c->table.table, c->options.topic);
    c->told = again;
}

static ck_status committer_commit(void *self, const ck_committable *committable, ck_error *err) {
    kafka_committer *c = self;
    ck_arena a;
    ck_write_ahead_file f;
    ck_error failed = CK_ERROR_INIT;
    if (!c->on) return CK_OK;
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = ck_write_ahead_parse(&a, c->checkpoint_dir, committable, &f, &failed);
    if (s == CK_OK) s = commit(c, &f, committable->checkpoint, &failed);
    if (s != CK_OK) shut(c);
    tell(c, s, &failed);
    if (s != CK_OK && err) *err = failed;
    ck_arena_destroy(&a);
    return s;
}

/* ---- a life begins ---- */

static ck_status check_newer(const kafka_committer *c, const ck_kafka_tokens *t, uint64_t restored, ck_error *err) {
    for (uint32_t i = 0; i < t->count; i++)
        if (t->checkpoints[i] > restored)
            return ck_fail(err, CK_REFUSED,
                           "topic %s has what checkpoint %llu committed, after the restored %llu: going back would "
                           "write its rows again (--allow-duplicates does it)",
                           c->options.topic, (unsigned long long)t->checkpoints[i], (unsigned long long)restored);
    return CK_OK;
}

static ck_status open_and_begin(kafka_committer *c, uint64_t restored, bool allow_duplicates, ck_error *err) {
    CK_TRY(open_as(c, c->self.job, c->self.op_id, err));
    if (!allow_duplicates) CK_TRY(check_newer(c, &c->tokens, restored, err));
    return begin_life(c, err);
}

/* Whether this life's token is written is not known. Where another's is, it came while this one slept, and a new
 * producer would shut it out: the tokens say so first. */
static ck_status begin_again(kafka_committer *c, uint64_t restored, bool allow_duplicates, ck_error *err) {
    shut(c);
    CK_TRY(ck_kafka_tokens_read(c->proc, &c->options, &c->owner, false, c->mem, &c->tokens, err));
    c->began = strcmp(c->tokens.life, c->life) == 0;
    if (!c->began && strcmp(c->tokens.life, c->found) != 0) return check_life(c, err);
    return open_and_begin(c, restored, allow_duplicates, err);
}

static ck_status begin(kafka_committer *c, const char *job_uuid, uint64_t restored, const ck_committable *keep,
                       size_t keep_count, bool allow_duplicates, ck_error *err) {
    ck_error failed = CK_ERROR_INIT;
    ck_status s = open_and_begin(c, restored, allow_duplicates, &failed);
    if (s != CK_OK && failed.retriable && c->is_open) {
        ck_error_reset(&failed);
        s = begin_again(c, restored, allow_duplicates, &failed);
    }
    if (s != CK_OK) {
        if (err) *err = failed;
        return s;
    }
    return ck_write_ahead_drop_others(c->proc, c->mem, c->checkpoint_dir, job_uuid, c->self.op_id, keep, keep_count,
                                      err);
}

static ck_status committer_abort_others(void *self, const char *job_uuid, uint64_t restored, const ck_committable *keep,
                                        size_t keep_count, bool allow_duplicates, ck_error *err) {
    kafka_committer *c = self;
    if (!c->on) return CK_OK;
    ck_status s = begin(c, job_uuid, restored, keep, keep_count, allow_duplicates, err);
    if (s != CK_OK) shut(c);
    return s;
}

/* Opening makes the topic of the tokens. */
static ck_status committer_check_behind(void *self, const char *job_uuid, const char *sink_uid, uint64_t restored,
                                        ck_error *err) {
    kafka_committer *c = self;
    ck_kafka_owner other = {job_uuid, ck_op_id(sink_uid)};
    ck_kafka_tokens t = {0};
    if (!c->on) return CK_OK;
    ck_status s = open_as(c, c->self.job, c->self.op_id, err);
    if (s == CK_OK) s = ck_kafka_tokens_read(c->proc, &c->options, &other, true, c->mem, &t, err);
    if (s == CK_OK) s = check_newer(c, &t, restored, err);
    ck_kafka_tokens_destroy(&t);
    if (s != CK_OK) shut(c);
    return s;
}

const ck_committer_vtbl ck_kafka_committer_vtbl = {
    .struct_bytes = sizeof(ck_committer_vtbl),
    .commit = committer_commit,
    .abort_others = committer_abort_others,
    .check_behind = committer_check_behind,
    .close = committer_close,
};
