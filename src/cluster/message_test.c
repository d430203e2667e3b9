#include "cluster/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "os/test_proc.h"

#define OK(call) assert_int_equal((call), CK_OK)

typedef struct fixture {
    ck_test_proc t;
    ck_mem mem;
    ck_arena arena;
} fixture;

static int setup(void **state) {
    static fixture f;
    memset(&f, 0, sizeof f);
    ck_test_proc_init(&f.t);
    f.mem = ck_proc_mem(&f.t.proc, CK_MEM_PLAN);
    ck_arena_init(&f.arena, f.mem, 64 << 20);
    *state = &f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    ck_arena_destroy(&f->arena);
    ck_test_proc_destroy(&f->t);
    return 0;
}

static ck_status read_bytes(fixture *f, uint8_t kind, const void *p, size_t n, ck_message *out, ck_error *err) {
    ck_frame in = {.kind = kind, .p = ck_arena_alloc(&f->arena, n + 1), .n = n};
    if (n) memcpy(in.p, p, n);
    return ck_message_read(&in, &f->arena, out, err);
}

#define READ(f, kind, bytes, out, err) read_bytes(f, kind, bytes, sizeof(bytes) - 1, out, err)

/* What protobuf's documentation says the bytes are. */
static void bytes_are_protobufs(void **state) {
    fixture *f = *state;
    static const uint32_t tasks[] = {1, 300};
    static const ck_msg_progress progress[] = {
        {{.job = 2, .attempt = 1}, {1, 300, 7, CK_EVENT_TIME_HELD, -2, {"no", 2}, 5, 6}}, {.progress.known = 0}};
    static const ck_msg_plugin plugins[] = {{{"xy", 2}, 300, {"p", 1}}};
    static const ck_msg_hosted hosted[] = {{.job = 2, .attempt = 3}, {.job = 150, .address = {"a", 1}}};
    static const ck_msg_role roles[] = {{.name = {"r", 1}, .parallelism = 3, .region = 2}};
    static const ck_msg_region_info region_info = {.error = {"no", 2}, .attempt = 2, .checkpoint = 300};
    static const ck_msg_job_info job = {.id = 2, .regions = {&region_info, 1}};
    static const ck_msg_record_host host = {.worker = {"w", 1}};
    static const ck_msg_record_region region = {.attempt = 2, .state = 1, .hosts = {&host, 1}, .states = {tasks, 2}};
    const struct {
        ck_message m;
        const char *bytes;
        size_t n;
    } golden[] = {
        {{.kind = CK_MSG_HEARTBEAT, .as.heartbeat.fence = {300, 0, 1}}, "\x08\xac\x02\x18\x01", 5},
        {{.kind = CK_MSG_HEARTBEAT, .as.heartbeat = {.fence.epoch = 3, .progress = {progress, 2}}},
         "\x08\x03\x22\x17\x10\x02\x18\x01\x20\x01\x28\xac\x02\x30\x07\x38\x02\x40\x03\x4a\x02no\x50\x05\x58\x06\x22"
         "\x00",
         29},
        {{.kind = CK_MSG_PROGRESS, .as.progress = {{.job = 2}, {.known = 1, .watermark_us = INT64_MIN}}},
         "\x10\x02\x20\x01\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
         15},
        {{.kind = CK_MSG_ENDED, .as.ended = {.tasks = {tasks, 2}, .outcome = 2, .error = {"no", 2}}},
         "\x22\x03\x01\xac\x02\x28\x02\x3a\x02no",
         11},
        {{.kind = CK_MSG_REGISTER, .as.reg = {.worker = {"w", 1}, .hosted = {hosted, 2}}},
         "\x22\x01w\x42\x04\x08\x02\x10\x03\x42\x06\x08\x96\x01\x22\x01"
         "a",
         17},
        {{.kind = CK_MSG_SUBMIT, .as.submit = {.max_restarts_on_worker_loss = CK_RESTART_AUTO}}, "\x50\x01", 2},
        {{.kind = CK_MSG_SUBMIT, .as.submit = {.max_restarts_on_worker_loss = 3}}, "\x50\x06", 2},
        {{.kind = CK_MSG_SUBMIT, .as.submit.plugins = {plugins, 1}}, "\xa2\x01\x0a\x0a\x02xy\x10\xac\x02\x1a\x01p", 13},
        {{.kind = CK_MSG_DEPLOY, .as.deploy.plugins = {plugins, 1}}, "\xc2\x01\x0a\x0a\x02xy\x10\xac\x02\x1a\x01p", 13},
        {{.kind = CK_MSG_OFFER_PLUGIN, .as.offer_plugin.plugin = {{"xy", 2}, 300, {"p", 1}}},
         "\x22\x02xy\x28\xac\x02\x32\x01p",
         10},
        {{.kind = CK_MSG_UPLOAD_PART, .as.upload_part = {.offset = 300, .part = {"\0\1", 2}}},
         "\x20\xac\x02\x2a\x02\0\1",
         7},
        {{.kind = CK_MSG_WANT_PLUGIN, .as.want_plugin = {.hash = {"xy", 2}, .offset = 300}},
         "\x22\x02xy\x28\xac\x02",
         7},
        {{.kind = CK_MSG_PLUGIN_PART, .as.plugin_part = {.hash = {"xy", 2}, .part = {"\0", 1}, .error = {"no", 2}}},
         "\x22\x02xy\x32\x01\0\x3a\x02no",
         11},
        {{.kind = CK_MSG_REPLY, .as.reply.wanted = 1}, "\x60\x01", 2},
        {{.kind = CK_MSG_DEPLOY, .as.deploy = {.region = 1, .region_count = 2}}, "\xc8\x01\x01\xd0\x01\x02", 6},
        {{.kind = CK_MSG_SUBMIT, .as.submit.roles = {roles, 1}}, "\x5a\x07\x0a\x01r\x10\x03\x28\x02", 9},
        {{.kind = CK_MSG_TAKE_SAVEPOINT, .as.take_savepoint.above = 300}, "\x38\xac\x02", 3},
        {{.kind = CK_MSG_REPLY, .as.reply.jobs = {&job, 1}},
         "\x3a\x0e\x08\x02\x9a\x01\x09\x12\x02no\x18\x02\x38\xac\x02",
         16},
        {{.kind = CK_MSG_RECORD_JOB, .as.job.regions = {&region, 1}},
         "\xfa\x01\x0e\x08\x02\x10\x01\x42\x03\x0a\x01w\x4a\x03\x01\xac\x02",
         17},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(golden); i++) {
        ck_frame *frame;
        OK(ck_message_frame(f->mem, &golden[i].m, &frame, NULL));
        assert_int_equal(frame->n, golden[i].n);
        assert_memory_equal(frame->p, golden[i].bytes, frame->n);
        ck_message back;
        OK(ck_message_read(frame, &f->arena, &back, NULL));
        ck_frame *again;
        OK(ck_message_frame(f->mem, &back, &again, NULL));
        assert_memory_equal(again->p, frame->p, frame->n);
        ck_frame_free(&frame), ck_frame_free(&again);
    }
}

static void lists_and_texts_come_back(void **state) {
    fixture *f = *state;
    static const uint32_t tasks[] = {0, 65535}, peers[] = {0};
    const ck_msg_role roles[] = {{.name = CK_VIEW("a"), .parallelism = 1024, .peers = {peers, 1}},
                                 {.name = CK_VIEW("b"), .parallelism = 1, .config = {"\0\1", 2}}};
    ck_message m = {.kind = CK_MSG_DEPLOY,
                    .as.deploy = {.fence = {UINT64_MAX, 2, 3}, .tasks = {tasks, 2}, .roles = {roles, 2}}},
               out;
    ck_frame *frame;
    OK(ck_message_frame(f->mem, &m, &frame, NULL));
    OK(ck_message_read(frame, &f->arena, &out, NULL));
    const ck_msg_deploy *d = &out.as.deploy;
    assert_true(d->fence.epoch == UINT64_MAX && d->fence.attempt == 3);
    assert_int_equal(d->tasks.items[1], 65535);
    const ck_msg_role *r = d->roles.items;
    assert_int_equal(d->roles.count, 2);
    assert_int_equal(r[0].parallelism, 1024);
    assert_int_equal(r[0].peers.count, 1);
    assert_int_equal(r[1].config.n, 2);
    ck_frame_free(&frame);
}

static void unknown_fields_are_skipped(void **state) {
    fixture *f = *state;
    ck_message m;
    /* 100: varint, 101: 8 bytes, 102: bytes, 103: 4 bytes; then epoch */
    OK(READ(f, CK_MSG_HEARTBEAT,
            "\xa0\x06\x05\xa9\x06"
            "12345678\xb2\x06\x02xy\xbd\x06"
            "1234\x08\x09",
            &m, NULL));
    assert_int_equal(m.as.fence.epoch, 9);
}

static void bad_bytes_are_refused_by_name(void **state) {
    fixture *f = *state;
    const struct {
        uint8_t kind;
        const char *bytes;
        size_t n;
        const char *why;
    } bad[] = {
        {0, "", 0, "unknown kind 0"},
        {77, "", 0, "unknown kind 77"},
        {CK_MSG_HEARTBEAT, "\x08", 1, "HEARTBEAT message that is cut"},
        {CK_MSG_HEARTBEAT, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "cut or damaged"},
        {CK_MSG_HEARTBEAT, "\x00\x01", 2, "cut or damaged"},
        {CK_MSG_HEARTBEAT, "\x0b\x0c", 2, "cut or damaged"}, /* groups */
        {CK_MSG_HEARTBEAT, "\x0a\x01x", 3, "fence.epoch is of another kind"},
        {CK_MSG_REGISTER, "\x22\x05w", 3, "cut or damaged"},
        {CK_MSG_REGISTER, "\x22\x02\x1b[", 4, "worker has control characters"},
        {CK_MSG_REGISTER, "\x30\x81\x20", 3, "slots is too large"},
        {CK_MSG_REGISTER, "\x42\x02\x18\x03", 4, "hosted message whose phase is too large"},
        {CK_MSG_ENDED, "\x22\x02\x01\xff", 4, "tasks cannot be read"},
        {CK_MSG_ENDED, "\x22\x06\x01\xff\xff\xff\xff\x7f", 8, "tasks cannot be read"},
        {CK_MSG_ENDED, "\x22\x01\x01\x22\x01\x02", 6, "comes in pieces"},
        {CK_MSG_ENDED, "\x28\x03", 2, "outcome is too large"},
        {CK_MSG_PROGRESS, "\x20\x02", 2, "progress.known is too large"},
        {CK_MSG_PROGRESS, "\x4a\x01\x1b", 3, "progress.note has control characters"},
        {CK_MSG_HEARTBEAT, "\x22\x02\x38\x03", 4, "PROGRESS message whose progress.event_time is too large"},
        {CK_MSG_OFFER_PLUGIN, "\x28\x81\x80\x80\x20", 5, "plugin.bytes is too large"}, /* 64 MiB and a byte */
        {CK_MSG_UPLOAD_PART, "\x20\x81\x80\x80\x20", 5, "offset is too large"},
        {CK_MSG_UPLOAD_PART, "\x2a\xff\xff\xff\xff\x0f", 6, "cut or damaged"}, /* of 4 GiB nothing has come */
        {CK_MSG_WANT_PLUGIN, "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "offset is too large"},
        {CK_MSG_WANT_PLUGIN, "\x22\x02..\x22\x02\x1b[", 8, "hash has control characters"},
        {CK_MSG_PLUGIN_PART, "\x28\x81\x80\x80\x20", 5, "offset is too large"},
        {CK_MSG_SUBMIT, "\xa2\x01\x05\x10\x81\x80\x80\x20", 8, "plugin message whose bytes is too large"},
        {CK_MSG_REPLY, "\x60\x02", 2, "wanted is too large"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        ck_message m;
        ck_error err = CK_ERROR_INIT;
        assert_int_equal(read_bytes(f, bad[i].kind, bad[i].bytes, bad[i].n, &m, &err), CK_CORRUPT);
        if (!strstr(err.msg, bad[i].why)) fail_msg("\"%s\" has no \"%s\"", err.msg, bad[i].why);
    }
}

/* A ceiling for each: one more is refused before memory is taken for it. */
static void lengths_are_bounded(void **state) {
    fixture *f = *state;
    ck_frame *frame;
    ck_message out;
    char name[CK_CLUSTER_NAME_MAX + 1];
    memset(name, 'n', sizeof name);
    for (size_t n = CK_CLUSTER_NAME_MAX; n <= CK_CLUSTER_NAME_MAX + 1; n++) {
        ck_message m = {.kind = CK_MSG_REGISTER, .as.reg.worker = {name, n}};
        OK(ck_message_frame(f->mem, &m, &frame, NULL));
        assert_int_equal(ck_message_read(frame, &f->arena, &out, NULL), n > CK_CLUSTER_NAME_MAX ? CK_CORRUPT : CK_OK);
        ck_frame_free(&frame);
    }
    char note[CK_CLUSTER_NOTE_MAX + 1];
    memset(note, 'n', sizeof note);
    for (size_t n = CK_CLUSTER_NOTE_MAX; n <= CK_CLUSTER_NOTE_MAX + 1; n++) {
        ck_message m = {.kind = CK_MSG_PROGRESS, .as.progress.progress.note = {note, n}};
        OK(ck_message_frame(f->mem, &m, &frame, NULL));
        assert_int_equal(ck_message_read(frame, &f->arena, &out, NULL), n > CK_CLUSTER_NOTE_MAX ? CK_CORRUPT : CK_OK);
        ck_frame_free(&frame);
    }
    ck_msg_progress *progress = ck_arena_array(&f->arena, CK_CLUSTER_SLOTS_MAX + 1, sizeof *progress);
    for (uint32_t n = CK_CLUSTER_SLOTS_MAX; n <= CK_CLUSTER_SLOTS_MAX + 1; n++) {
        ck_message m = {.kind = CK_MSG_HEARTBEAT, .as.heartbeat.progress = {progress, n}};
        OK(ck_message_frame(f->mem, &m, &frame, NULL));
        assert_int_equal(ck_message_read(frame, &f->arena, &out, NULL), n > CK_CLUSTER_SLOTS_MAX ? CK_CORRUPT : CK_OK);
        ck_frame_free(&frame);
    }
    char hash[CK_CLUSTER_HASH_CHARS + 1];
    memset(hash, 'a', sizeof hash);
    char *part = ck_arena_zero(&f->arena, CK_CLUSTER_PART_BYTES_MAX + 1);
    ck_msg_plugin *plugins = ck_arena_array(&f->arena, CK_CLUSTER_PLUGINS_MAX + 1, sizeof *plugins);
    for (size_t more = 0; more <= 1; more++) {
        const ck_view sum = {hash, CK_CLUSTER_HASH_CHARS + more}, content = {part, CK_CLUSTER_PART_BYTES_MAX + more};
        const ck_proto_list list = {plugins, (uint32_t)(CK_CLUSTER_PLUGINS_MAX + more)};
        const ck_message all[] = {{.kind = CK_MSG_WANT_PLUGIN, .as.want_plugin.hash = sum},
                                  {.kind = CK_MSG_PLUGIN_PART, .as.plugin_part.hash = sum},
                                  {.kind = CK_MSG_PLUGIN_PART, .as.plugin_part.part = content},
                                  {.kind = CK_MSG_OFFER_PLUGIN, .as.offer_plugin.plugin.hash = sum},
                                  {.kind = CK_MSG_UPLOAD_PART, .as.upload_part.part = content},
                                  {.kind = CK_MSG_SUBMIT, .as.submit.plugins = list},
                                  {.kind = CK_MSG_DEPLOY, .as.deploy.plugins = list},
                                  {.kind = CK_MSG_RECORD_JOB, .as.job.job.plugins = list}};
        for (size_t i = 0; i < CK_ARRAY_COUNT(all); i++) {
            OK(ck_message_frame(f->mem, &all[i], &frame, NULL));
            assert_int_equal(ck_message_read(frame, &f->arena, &out, NULL), more ? CK_CORRUPT : CK_OK);
            ck_frame_free(&frame);
        }
    }
    uint32_t *tasks = ck_arena_array(&f->arena, CK_CLUSTER_TASKS_MAX + 1, sizeof *tasks);
    for (uint32_t n = CK_CLUSTER_TASKS_MAX; n <= CK_CLUSTER_TASKS_MAX + 1; n++) {
        ck_message m = {.kind = CK_MSG_ENDED, .as.ended.tasks = {tasks, n}};
        OK(ck_message_frame(f->mem, &m, &frame, NULL));
        assert_int_equal(ck_message_read(frame, &f->arena, &out, NULL), n > CK_CLUSTER_TASKS_MAX ? CK_CORRUPT : CK_OK);
        ck_frame_free(&frame);
    }
    ck_msg_hosted *hosted = ck_arena_array(&f->arena, CK_CLUSTER_JOBS_MAX + 1, sizeof *hosted);
    for (uint32_t n = CK_CLUSTER_JOBS_MAX; n <= CK_CLUSTER_JOBS_MAX + 1; n++) {
        ck_message m = {.kind = CK_MSG_REGISTER, .as.reg.hosted = {hosted, n}};
        OK(ck_message_frame(f->mem, &m, &frame, NULL));
        assert_int_equal(ck_message_read(frame, &f->arena, &out, NULL), n > CK_CLUSTER_JOBS_MAX ? CK_CORRUPT : CK_OK);
        ck_frame_free(&frame);
    }
}

static void a_message_longer_than_a_frame_is_refused(void **state) {
    fixture *f = *state;
    size_t n = CK_FRAME_CONTROL_BYTES_MAX;
    char *p = ck_arena_zero(&f->arena, n);
    ck_frame *frame;
    ck_message m = {.kind = CK_MSG_SUBMIT, .as.submit.spec = {p, n}};
    assert_int_equal(ck_message_frame(f->mem, &m, &frame, NULL), CK_FULL);
    assert_null(frame);
    m.as.submit.spec.n = n - 6; /* tag and length before it, the kind before all */
    OK(ck_message_frame(f->mem, &m, &frame, NULL));
    assert_int_equal(frame->n, CK_FRAME_CONTROL_BYTES_MAX - 1);
    ck_frame_free(&frame);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(bytes_are_protobufs),           T(lists_and_texts_come_back), T(unknown_fields_are_skipped),
        T(bad_bytes_are_refused_by_name), T(lengths_are_bounded),       T(a_message_longer_than_a_frame_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
