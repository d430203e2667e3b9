/* The file sink and its committer: parts and upsert files over the simulated file system. */
#include "connector/connectors.h"

#include <errno.h>

#include "connector/file/sink_int.h"
#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    ck_manual_clock clock;
    ck_simfs *sim;
    harness h;
    held_io io;
    void *committer;
} fixture;

static void begin(fixture *f) {
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    f->h.settings.checkpoints = true;
}
static void end(fixture *f) {
    if (f->committer) ck_op_sink_file.committer->close(f->committer);
    f->committer = NULL;
    harness_destroy(&f->h);
}
static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    ck_manual_clock_init(&f->clock, 1000000, 1700000000000000);
    f->proc.proc.clock = &f->clock.base;
    assert_int_equal(ck_simfs_new(&f->sim, 1), CK_OK);
    f->proc.proc.fs = ck_simfs_base(f->sim);
    begin(f);
    *state = f;
    return 0;
}
static int teardown(void **state) {
    fixture *f = *state;
    end(f);
    ck_simfs_free(f->sim);
    ck_test_proc_destroy(&f->proc);
    free(f);
    return 0;
}

#define JSON_OUT "{\"table\":\"o\",\"options\":{\"path\":\"/out\",\"format\":\"json\"},\"primary_key\":[]}"
#define ROWS_OUT                                                                                                       \
    "{\"table\":\"o\",\"options\":{\"path\":\"/out\",\"format\":\"json\",\"mode\":\"upsert\"},\"primary_key\":[0]}"
#define INPUT "k BIGINT; s VARCHAR"
#define UUID8 "0a1b2c3d"

static void start(fixture *f, const char *params, ck_edge_mode mode) {
    if (f->h.spec.input_count == 0) harness_input(&f->h, INPUT, mode);
    harness_start(&f->h, &ck_op_sink_file, params, NULL);
}

/* ---- looking at the directory ---- */

/* Names in /out with a space behind each, hidden ones too if asked for. */
static const char *names(fixture *f, bool hidden) {
    static char text[4096];
    ck_fs *fs = f->proc.proc.fs;
    const char **list;
    size_t n;
    text[0] = 0;
    if (fs->list(fs, "/out", &f->h.plan, &list, &n, NULL) != CK_OK) return text;
    for (size_t i = 0; i < n; i++)
        if (hidden ? list[i][0] == '.' : list[i][0] != '.') strcat(strcat(text, list[i]), " ");
    return text;
}

static const char *content(fixture *f, const char *path) {
    ck_view v;
    harness_ok(&f->h, ck_fs_read_all(&f->proc.proc, path, 1 << 24, &f->h.plan, &v, &f->h.error));
    return v.p;
}

static void put(fixture *f, const char *path, const char *text) { write_sim_file(f->sim, path, text, strlen(text)); }

/* ---- commits, as the job makes them ---- */

static void make_committer(fixture *f) {
    if (!f->committer)
        harness_ok(&f->h, ck_op_sink_file.create_committer(&f->h.spec, f->h.mem, &f->committer, &f->h.error));
}

static ck_status commit_all(fixture *f) {
    ck_committable *list;
    uint32_t n;
    make_committer(f);
    harness_ok(&f->h, ck_commits_list(f->h.ctx.state, &f->h.plan, &list, &n, &f->h.error));
    for (uint32_t i = 0; i < n; i++) CK_TRY(ck_op_sink_file.committer->commit(f->committer, &list[i], &f->h.error));
    return CK_OK;
}

static uint32_t pending(fixture *f) {
    ck_committable *list;
    uint32_t n;
    harness_ok(&f->h, ck_commits_list(f->h.ctx.state, &f->h.plan, &list, &n, &f->h.error));
    return n;
}

static void barrier(fixture *f, uint64_t checkpoint) {
    unsigned holds = f->h.holds;
    harness_ok(&f->h, harness_pre_snapshot(&f->h, checkpoint));
    assert_int_equal(f->h.holds, holds + 1);
    held_run(&f->h);
    assert_int_equal(f->h.releases, f->h.holds);
    assert_int_equal(f->h.release_status, CK_OK);
}

static void committed(fixture *f, uint64_t checkpoint) {
    harness_ok(&f->h, commit_all(f));
    harness_ok(&f->h, ck_op_sink_file.op->on_committed(f->h.self, checkpoint, &f->h.ctx));
    assert_int_equal(pending(f), 0);
}

/* ---- append ---- */

static void parts_appear_when_committed(void **state) {
    fixture *f = *state;
    start(f, JSON_OUT, CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a", "2|b");
    barrier(f, 7);
    assert_string_equal(names(f, false), "");
    assert_int_equal(pending(f), 1);
    committed(f, 7);
    assert_string_equal(names(f, false), "part-" UUID8 "-0-7000.json ");
    assert_string_equal(names(f, true), "");
    assert_string_equal(content(f, "/out/part-" UUID8 "-0-7000.json"),
                        "{\"k\":1,\"s\":\"a\"}\n{\"k\":2,\"s\":\"b\"}\n");
    barrier(f, 8); /* nothing new, no part */
    assert_int_equal(pending(f), 0);
    HARNESS_ROWS(&f->h, "3|c");
    harness_end(&f->h);
    barrier(f, 9);
    committed(f, 9);
    assert_string_equal(names(f, false), "part-" UUID8 "-0-7000.json part-" UUID8 "-0-9000.json ");
    assert_int_equal(harness_counter(&f->h, "rows_out"), 3);
}

static void a_failed_checkpoint_is_carried_by_the_next(void **state) {
    fixture *f = *state;
    start(f, JSON_OUT, CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a");
    barrier(f, 1);
    HARNESS_ROWS(&f->h, "2|b");
    barrier(f, 2);
    assert_int_equal(pending(f), 2);
    committed(f, 2);
    assert_string_equal(names(f, false), "part-" UUID8 "-0-1000.json part-" UUID8 "-0-2000.json ");
}

static void without_checkpoints_parts_appear_at_the_end(void **state) {
    fixture *f = *state;
    f->h.settings.checkpoints = false;
    start(
        f,
        "{\"table\":\"o\",\"options\":{\"path\":\"/out/\",\"format\":\"csv\",\"header\":\"true\"},\"primary_key\":[]}",
        CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a", "2|\"");
    held_run(&f->h);
    assert_string_equal(names(f, false), "");
    harness_end(&f->h);
    assert_string_equal(names(f, false), "part-" UUID8 "-0-0.csv ");
    assert_string_equal(content(f, "/out/part-" UUID8 "-0-0.csv"), "k,s\n1,a\n2,\"\"\"\"\n");
    assert_string_equal(names(f, true), "");
}

static void parts_roll_by_size(void **state) {
    fixture *f = *state;
    f->h.settings.checkpoints = false;
    start(f,
          "{\"table\":\"o\",\"options\":{\"path\":\"/"
          "out\",\"format\":\"json\",\"part_bytes\":\"20\"},\"primary_key\":[]}",
          CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a", "2|b");
    held_run(&f->h);
    assert_string_equal(names(f, false), "part-" UUID8 "-0-0.json ");
    HARNESS_ROWS(&f->h, "3|c");
    HARNESS_ROWS(&f->h, "4|d");
    HARNESS_ROWS(&f->h, "5|e");
    harness_end(&f->h);
    assert_string_equal(names(f, false), "part-" UUID8 "-0-0.json part-" UUID8 "-0-1.json part-" UUID8 "-0-2.json ");
}

static void rolled_parts_of_an_epoch_are_committed_together(void **state) {
    fixture *f = *state;
    start(
        f,
        "{\"table\":\"o\",\"options\":{\"path\":\"/out\",\"format\":\"json\",\"part_bytes\":\"1\"},\"primary_key\":[]}",
        CK_MODE_APPEND);
    for (int i = 0; i < 1005; i++) HARNESS_ROWS(&f->h, "1|a"); /* the last part takes what is too many */
    barrier(f, 3);
    assert_int_equal(pending(f), 1000);
    committed(f, 3);
    assert_non_null(content(f, "/out/part-" UUID8 "-0-3000.json"));
    assert_string_equal(content(f, "/out/part-" UUID8 "-0-3998.json"), "{\"k\":1,\"s\":\"a\"}\n");
    assert_int_equal(strlen(content(f, "/out/part-" UUID8 "-0-3999.json")), 6 * strlen("{\"k\":1,\"s\":\"a\"}\n"));
}

static void no_rows_no_part(void **state) {
    fixture *f = *state;
    f->h.settings.checkpoints = false;
    start(f, JSON_OUT, CK_MODE_APPEND);
    harness_end(&f->h);
    assert_string_equal(names(f, false), "");
    assert_string_equal(names(f, true), "");
}

static void at_least_once_does_not_wait(void **state) {
    fixture *f = *state;
    start(f,
          "{\"table\":\"o\",\"options\":{\"path\":\"/out\",\"format\":\"json\",\"delivery\":\"at_least_once\"},"
          "\"primary_key\":[]}",
          CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a");
    barrier(f, 1);
    assert_int_equal(pending(f), 0);
    assert_string_equal(names(f, false), "part-" UUID8 "-0-1700000000000000.json ");
}

static void foreign_files_are_left_alone(void **state) {
    fixture *f = *state;
    assert_int_equal(f->proc.proc.fs->mkdir(f->proc.proc.fs, "/out", NULL), CK_OK);
    put(f, "/out/part-ffffffff-0-5000.json", "other job\n");
    put(f, "/out/.staged-other", "x");
    put(f, "/out/notes.txt", "mine");
    start(f, JSON_OUT, CK_MODE_APPEND);
    make_committer(f);
    harness_ok(&f->h, ck_op_sink_file.committer->abort_others(f->committer, f->h.settings.job_uuid, 0, NULL, 0, false,
                                                              &f->h.error));
    HARNESS_ROWS(&f->h, "1|a");
    barrier(f, 1);
    committed(f, 1);
    assert_string_equal(names(f, false), "notes.txt part-" UUID8 "-0-1000.json part-ffffffff-0-5000.json ");
    assert_string_equal(names(f, true), ".staged-other ");
}

/* ---- what goes wrong ---- */

static void a_path_that_is_a_file_is_refused(void **state) {
    fixture *f = *state;
    put(f, "/out", "a file");
    start(f, JSON_OUT, CK_MODE_APPEND);
    assert_int_equal(harness_event(&f->h, 0, ck_event_end()), CK_REFUSED);
    assert_non_null(strstr(f->h.error.msg, "/out is a file; a table that is written is a directory"));
    assert_string_equal(content(f, "/out"), "a file");
}

static void fill(fixture *f, ck_status *s) {
    static char text[1000][64];
    static const char *rows[1000];
    for (int i = 0; i < 1000; i++) {
        snprintf(text[i], sizeof text[i], "%d|some text that fills the disk", i);
        rows[i] = text[i];
    }
    for (int i = 0; i < 100 && *s == CK_OK; i++) {
        *s = harness_try_rows(&f->h, 0, rows, 1000);
        if (i % 7 == 0) held_run(&f->h);
    }
}

static void a_full_disk_is_said_and_leaves_nothing_whole(void **state) {
    fixture *f = *state;
    for (int checkpoints = 0; checkpoints < 2; checkpoints++) {
        f->h.settings.checkpoints = checkpoints;
        ck_simfs_set_capacity(f->sim, 1 << 20);
        start(f, JSON_OUT, CK_MODE_APPEND);
        ck_status s = CK_OK;
        fill(f, &s);
        if (s == CK_OK) s = harness_event(&f->h, 0, ck_event_end());
        assert_int_equal(s, CK_IO);
        if (!strstr(f->h.error.msg, "No space left on device")) fail_msg("%s", f->h.error.msg);
        assert_string_equal(names(f, false), "");
        assert_string_equal(names(f, true), "");
        end(f);
        begin(f);
    }
}

static void an_fsync_that_fails_fails_the_checkpoint(void **state) {
    fixture *f = *state;
    start(f, JSON_OUT, CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a");
    held_run(&f->h);
    ck_simfs_fail(f->sim, 2, EIO, true); /* the write, then the fsync */
    harness_ok(&f->h, harness_pre_snapshot(&f->h, 1));
    held_run(&f->h);
    assert_int_equal(f->h.releases, 1);
    assert_int_equal(f->h.release_status, CK_IO);
    const char *rows[] = {"2|b"};
    assert_int_equal(harness_try_rows(&f->h, 0, rows, 1), CK_IO);
    assert_string_equal(names(f, false), "");
    assert_string_equal(names(f, true), "");
}

/* With nothing left to write, nothing but the next barrier would notice; checkpoints must not be given up for ever. */
static void an_upsert_file_that_failed_fails_the_next_barrier(void **state) {
    fixture *f = *state;
    start(f, ROWS_OUT, CK_MODE_UPSERT);
    HARNESS_ROWS(&f->h, "1|a");
    held_run(&f->h);
    ck_simfs_fail(f->sim, 2, EIO, true); /* the write, then the fsync */
    harness_ok(&f->h, harness_pre_snapshot(&f->h, 1));
    held_run(&f->h);
    assert_int_equal(f->h.release_status, CK_IO);
    assert_int_equal(harness_pre_snapshot(&f->h, 2), CK_IO);
    if (!strstr(f->h.error.msg, "Input/output error")) fail_msg("%s", f->h.error.msg);
    assert_string_equal(names(f, false), "");
}

static void changes_are_refused_where_parts_are_written(void **state) {
    fixture *f = *state;
    harness_input(&f->h, INPUT, CK_MODE_RETRACT);
    assert_int_equal(harness_create(&f->h, &ck_op_sink_file, JSON_OUT, NULL), CK_INVALID);
    assert_non_null(strstr(f->h.error.msg, "mode = 'upsert'"));
    assert_int_equal(harness_create(&f->h, &ck_op_sink_file,
                                    "{\"table\":\"o\",\"options\":{\"path\":\"/"
                                    "out\",\"format\":\"json\",\"mode\":\"upsert\"},\"primary_key\":[]}",
                                    NULL),
                     CK_INVALID);
    assert_non_null(strstr(f->h.error.msg, "primary key"));
}

/* ---- the committer's table of states ---- */

enum { NONE, RIGHT, WRONG };
static const char right_text[] = "{\"k\":1,\"s\":\"a\"}\n", wrong_text[] = "{\"k\":1,\"s\":\"b\"}\n";

static void lay(fixture *f, const char *path, int what) {
    ck_fs *fs = f->proc.proc.fs;
    fs->unlink(fs, path, NULL);
    if (what != NONE) put(f, path, what == RIGHT ? right_text : wrong_text);
}

static void every_state_a_committer_can_find(void **state) {
    fixture *f = *state;
    static const struct {
        int staged, final;
        ck_status part, rows;
        const char *names; /* after, where it is CK_OK */
    } cases[] = {
        {RIGHT, NONE, CK_OK, CK_OK, "final"},       {RIGHT, RIGHT, CK_OK, CK_OK, "final"},
        {RIGHT, WRONG, CK_CORRUPT, CK_OK, "final"}, {NONE, RIGHT, CK_OK, CK_OK, "final"},
        {NONE, WRONG, CK_CORRUPT, CK_OK, "final"},  {NONE, NONE, CK_CORRUPT, CK_CORRUPT, ""},
        {WRONG, NONE, CK_CORRUPT, CK_CORRUPT, ""},  {WRONG, RIGHT, CK_CORRUPT, CK_CORRUPT, ""},
    };
    assert_int_equal(f->proc.proc.fs->mkdir(f->proc.proc.fs, "/out", NULL), CK_OK);
    start(f, JSON_OUT, CK_MODE_APPEND);
    make_committer(f);
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++)
        for (int replace = 0; replace < 2; replace++) {
            ck_sink_payload p = {
                "/out/.staged-x-1", strlen(right_text), ck_crc32c(0, right_text, strlen(right_text)), replace, 0, 1};
            ck_committable c = {.name = "/out/final", .checkpoint = 3};
            harness_ok(&f->h, ck_sink_payload_print(&f->h.plan, &p, &c.payload, &f->h.error));
            lay(f, "/out/.staged-x-1", cases[i].staged);
            lay(f, "/out/final", cases[i].final);
            ck_status wanted = replace ? cases[i].rows : cases[i].part;
            ck_status s = ck_op_sink_file.committer->commit(f->committer, &c, &f->h.error);
            if (s != wanted) fail_msg("case %zu replace %d: %s %s", i, replace, ck_status_name(s), f->h.error.msg);
            if (s != CK_OK) {
                assert_non_null(strstr(f->h.error.msg, "/out/"));
                continue;
            }
            assert_string_equal(names(f, true), "");
            assert_string_equal(names(f, false), "final ");
            bool old = replace && cases[i].staged == NONE && cases[i].final == WRONG;
            assert_string_equal(content(f, "/out/final"), old ? wrong_text : right_text);
            s = ck_op_sink_file.committer->commit(f->committer, &c, &f->h.error); /* done before */
            assert_int_equal(s, CK_OK);
        }
    ck_committable c = {.name = "/out/final", .checkpoint = 3, .payload = "{\"staged\":1}"};
    assert_int_equal(ck_op_sink_file.committer->commit(f->committer, &c, &f->h.error), CK_CORRUPT);
}

static void abort_removes_what_was_not_carried(void **state) {
    fixture *f = *state;
    start(f, JSON_OUT, CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a");
    barrier(f, 1);
    HARNESS_ROWS(&f->h, "2|b");
    barrier(f, 2);
    ck_committable *list;
    uint32_t n;
    harness_ok(&f->h, ck_commits_list(f->h.ctx.state, &f->h.plan, &list, &n, &f->h.error));
    assert_int_equal(n, 2);
    put(f, "/out/.tmp-.staged-0a1b2c3d-0000-4000-8000-000000000001-0-1-9.json-0123456789abcdef", "half");
    make_committer(f);
    harness_ok(&f->h, ck_op_sink_file.committer->abort_others(f->committer, f->h.settings.job_uuid, 1, &list[0], 1,
                                                              false, &f->h.error));
    char left[256];
    snprintf(left, sizeof left, "%s", names(f, true));
    left[strcspn(left, " ")] = 0; /* one name */
    assert_non_null(strstr(list[0].payload, left));
    harness_ok(&f->h, ck_op_sink_file.committer->commit(f->committer, &list[0], &f->h.error));
    assert_string_equal(names(f, true), "");
    assert_string_equal(names(f, false), "part-" UUID8 "-0-1000.json ");
}

static void going_back_below_committed_output_is_refused(void **state) {
    fixture *f = *state;
    start(f, JSON_OUT, CK_MODE_APPEND);
    HARNESS_ROWS(&f->h, "1|a");
    barrier(f, 4);
    committed(f, 4);
    const ck_committer_vtbl *c = ck_op_sink_file.committer;
    const char *uuid = f->h.settings.job_uuid;
    harness_ok(&f->h, c->abort_others(f->committer, uuid, 4, NULL, 0, false, &f->h.error));
    assert_int_equal(c->abort_others(f->committer, uuid, 3, NULL, 0, false, &f->h.error), CK_REFUSED);
    assert_non_null(strstr(f->h.error.msg, "committed by checkpoint 4"));
    harness_ok(&f->h, c->abort_others(f->committer, uuid, 3, NULL, 0, true, &f->h.error));
    assert_string_equal(names(f, false), "part-" UUID8 "-0-4000.json ");
}

/* The power goes at every point of a commit: afterwards it can be done again and the part is whole. */
static void a_crash_anywhere_in_a_commit(void **state) {
    fixture *f = *state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        ck_simfs_free(f->sim);
        assert_int_equal(ck_simfs_new(&f->sim, seed), CK_OK);
        f->proc.proc.fs = ck_simfs_base(f->sim);
        end(f);
        begin(f);
        start(f, JSON_OUT, CK_MODE_APPEND);
        HARNESS_ROWS(&f->h, "1|a");
        barrier(f, 1);
        ck_simfs_fail(f->sim, seed % 4, EIO, true); /* sometimes the commit's own syncs fail */
        ck_status s = commit_all(f);
        assert_true(s == CK_OK || s == CK_IO);
        ck_simfs_fail(f->sim, 0, 0, false);
        ck_simfs_crash(f->sim);
        harness_ok(&f->h, commit_all(f));
        assert_string_equal(names(f, false), "part-" UUID8 "-0-1000.json ");
        assert_string_equal(content(f, "/out/part-" UUID8 "-0-1000.json"), right_text);
    }
}

/* ---- upsert ---- */

/* A rename that a crash left half: both names are there, of one file. */
static void two_names_of_one_rows_file(void **state) {
    fixture *f = *state;
    static const char staged[] = "/out/.staged-x-rows-0-3.json";
    ck_committable c = {.name = "/out/rows-0.json", .checkpoint = 3};
    ck_sink_payload p = {staged, strlen(right_text), ck_crc32c(0, right_text, strlen(right_text)), true, 0, 1};
    start(f, ROWS_OUT, CK_MODE_UPSERT);
    assert_int_equal(ck_fs_mkdirs(&f->proc.proc, "/out", NULL), CK_OK);
    make_committer(f);
    harness_ok(&f->h, ck_sink_payload_print(&f->h.plan, &p, &c.payload, &f->h.error));
    put(f, staged, right_text);
    assert_int_equal(f->proc.proc.fs->link(f->proc.proc.fs, staged, c.name, NULL), CK_OK);
    harness_ok(&f->h, ck_op_sink_file.committer->commit(f->committer, &c, &f->h.error));
    assert_string_equal(names(f, true), "");
    assert_string_equal(content(f, c.name), right_text);
}

static void rows_files_hold_the_current_rows(void **state) {
    fixture *f = *state;
    start(f, ROWS_OUT, CK_MODE_RETRACT);
    HARNESS_ROWS(&f->h, "1|a", "2|b", "-1|a", "1|c", "3|x", "-3|x");
    barrier(f, 1);
    assert_string_equal(names(f, false), "");
    committed(f, 1);
    assert_string_equal(names(f, false), "rows-0.json ");
    const char *text = content(f, "/out/rows-0.json");
    assert_non_null(strstr(text, "{\"k\":1,\"s\":\"c\"}\n"));
    assert_non_null(strstr(text, "{\"k\":2,\"s\":\"b\"}\n"));
    assert_int_equal(strlen(text), 2 * strlen("{\"k\":1,\"s\":\"c\"}\n"));
    barrier(f, 2); /* nothing changed */
    assert_int_equal(pending(f), 0);
    harness_restart(&f->h, 3);
    held_run(&f->h);
    HARNESS_ROWS(&f->h, "-2|b");
    harness_end(&f->h);
    barrier(f, 4);
    committed(f, 4);
    assert_string_equal(content(f, "/out/rows-0.json"), "{\"k\":1,\"s\":\"c\"}\n");
    assert_string_equal(names(f, true), "");
}

static void an_upsert_job_without_checkpoints_writes_at_the_end(void **state) {
    fixture *f = *state;
    f->h.settings.checkpoints = false;
    assert_int_equal(f->proc.proc.fs->mkdir(f->proc.proc.fs, "/out", NULL), CK_OK);
    put(f, "/out/rows-0.json", "of an earlier run\n");
    start(f, ROWS_OUT, CK_MODE_RETRACT);
    HARNESS_ROWS(&f->h, "1|a");
    held_run(&f->h);
    assert_string_equal(content(f, "/out/rows-0.json"), "of an earlier run\n");
    HARNESS_ROWS(&f->h, "-1|a");
    harness_end(&f->h);
    assert_string_equal(content(f, "/out/rows-0.json"), ""); /* no row is left, and the file says so */
}

static void the_last_subtask_removes_files_of_subtasks_that_are_gone(void **state) {
    fixture *f = *state;
    assert_int_equal(f->proc.proc.fs->mkdir(f->proc.proc.fs, "/out", NULL), CK_OK);
    put(f, "/out/rows-1.json", "old\n");
    put(f, "/out/rows-12.json", "old\n");
    put(f, "/out/rows-x.json", "not ours\n");
    put(f, "/out/rows-1.csv", "not ours\n");
    put(f, "/out/.staged-0a1b2c3d-0000-4000-8000-000000000001-rows-0-2.json", "older\n");
    start(f, ROWS_OUT, CK_MODE_RETRACT);
    HARNESS_ROWS(&f->h, "1|a");
    barrier(f, 3);
    committed(f, 3);
    assert_string_equal(names(f, false), "rows-0.json rows-1.csv rows-x.json ");
    assert_string_equal(names(f, true), "");
}

static void rewrites_that_cost_too_much_wait(void **state) {
    fixture *f = *state;
    start(f, ROWS_OUT, CK_MODE_RETRACT);
    HARNESS_ROWS(&f->h, "1|a");
    /* The first rewrite takes a second of the clock: its pieces are asked for one by one. */
    ck_status s;
    while ((s = ck_op_sink_file.op->pre_snapshot(f->h.self, 1, &f->h.ctx)) != CK_OK) {
        harness_end_call(&f->h);
        assert_true(s == CK_MORE || s == CK_AGAIN);
        ck_manual_clock_advance(&f->clock, 500000);
        held_run(&f->h);
    }
    harness_end_call(&f->h);
    held_run(&f->h);
    assert_int_equal(pending(f), 1);
    committed(f, 1);
    HARNESS_ROWS(&f->h, "2|b");
    barrier(f, 2);
    assert_int_equal(pending(f), 0);
    assert_int_equal(harness_counter(&f->h, "rewrites_skipped"), 1);
    f->h.ctx.savepoint = true; /* whoever asked for it reads the file */
    barrier(f, 3);
    assert_int_equal(pending(f), 1);
    committed(f, 3);
    f->h.ctx.savepoint = false;
    assert_non_null(strstr(content(f, "/out/rows-0.json"), "{\"k\":2,\"s\":\"b\"}\n"));
    HARNESS_ROWS(&f->h, "4|d");
    ck_manual_clock_advance(&f->clock, 20000000);
    barrier(f, 4);
    assert_int_equal(pending(f), 1);
    committed(f, 4);
    HARNESS_ROWS(&f->h, "3|c");
    harness_end(&f->h);
    f->clock.base.mono_us(&f->clock.base);
    barrier(f, 5); /* the end waits for nothing */
    assert_int_equal(pending(f), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(parts_appear_when_committed),
        T(a_failed_checkpoint_is_carried_by_the_next),
        T(without_checkpoints_parts_appear_at_the_end),
        T(parts_roll_by_size),
        T(rolled_parts_of_an_epoch_are_committed_together),
        T(no_rows_no_part),
        T(at_least_once_does_not_wait),
        T(foreign_files_are_left_alone),
        T(a_path_that_is_a_file_is_refused),
        T(a_full_disk_is_said_and_leaves_nothing_whole),
        T(an_fsync_that_fails_fails_the_checkpoint),
        T(an_upsert_file_that_failed_fails_the_next_barrier),
        T(changes_are_refused_where_parts_are_written),
        T(every_state_a_committer_can_find),
        T(abort_removes_what_was_not_carried),
        T(going_back_below_committed_output_is_refused),
        T(a_crash_anywhere_in_a_commit),
        T(two_names_of_one_rows_file),
        T(rows_files_hold_the_current_rows),
        T(an_upsert_job_without_checkpoints_writes_at_the_end),
        T(the_last_subtask_removes_files_of_subtasks_that_are_gone),
        T(rewrites_that_cost_too_much_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
