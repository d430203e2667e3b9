/* What the file source does beside reading plain records: dead letters, and compressed files. */
#include "connector/connectors.h"

#include <zlib.h>
#include <zstd.h>

#include "connector/file/file_int.h"
#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    ck_simfs *sim;
    harness h;
    held_io io;
    split_set splits;
} fixture;

#define LETTERS "raw BYTES; split VARCHAR; offset BIGINT; reason VARCHAR"

static void begin(fixture *f) {
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    f->h.side = harness_schema(&f->h, LETTERS);
    split_set_init(&f->splits, &f->h);
}
static void end(fixture *f) {
    harness_destroy(&f->h);
    split_set_destroy(&f->splits);
}
static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
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

#define PARAMS(options)                                                                                                \
    "{\"table\":\"t\",\"table_schema\":[{\"name\":\"a\",\"type\":\"BIGINT\",\"nullable\":true}],\"columns\":[0],"      \
    "\"checked\":[],\"options\":{" options "}}"
#define OUTPUT  "a BIGINT"
#define ASIDE   "\"on_error\":\"dead_letter\",\"dead_letter_table\":\"d\""
#define BAD_CSV PARAMS("\"path\":\"/t.csv\",\"format\":\"csv\",\"header\":\"true\"," ASIDE)

static void enumerate(fixture *f, const char *params) {
    f->h.spec.type = "source.file";
    f->h.spec.params = params;
    harness_ok(&f->h, ck_op_source_file.enumerate(&f->h.spec, 3, &f->splits.list, &f->h.error));
}

/* Stops after a few batches and goes on in a new source from the positions of then. */
static void restart(fixture *f) {
    split_set now;
    split_set_init(&now, &f->h);
    source_snapshot(&f->h, &now);
    held_run(&f->h);
    harness_destroy(&f->h);
    split_set_destroy(&f->splits);
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    f->h.side = harness_schema(&f->h, LETTERS);
    f->splits = now;
    f->splits.list.arena = &f->splits.arena;
}

/* ---- dead letters ---- */

static void a_letter_says_what_where_and_why(void **state) {
    fixture *f = *state;
    static const char text[] = "a\n1\nx\n2,3\r\n4\n\"open";
    bool ended;
    write_sim_file(f->sim, "/t.csv", text, sizeof text - 1);
    enumerate(f, BAD_CSV);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, BAD_CSV, OUTPUT, &f->splits.list));
    harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
    assert_true(ended);
    assert_int_equal(f->h.line_count, 5);
    assert_int_equal(harness_counter(&f->h, "bad_rows"), 3);
    harness_net(&f->h);
    const char *const wanted[] = {"!", "!", "!", "1", "4"};
    for (size_t i = 0; i < 5; i++) assert_memory_equal(f->h.lines[i].text, wanted[i], 1);
    bool seen[3] = {false};
    for (size_t i = 0; i < 3; i++) {
        const char *line = f->h.lines[i].text;
        seen[0] = seen[0] || strstr(line, "|/t.csv|4|column \"a\", byte 1: \"x\" is not a BIGINT");
        seen[1] = seen[1] || strstr(line, "|/t.csv|6|2 fields where 1");
        seen[2] = seen[2] || strstr(line, "|/t.csv|13|");
    }
    assert_true(seen[0] && seen[1] && seen[2]);
}

/* Whatever the batches and wherever it is stopped: rows and letters each once. */
static void each_letter_leaves_once_through_restarts(void **state) {
    fixture *f = *state;
    enum { RECORDS = 3000 };
    ck_bytes text;
    ck_bytes_init(&text, f->h.mem, 1 << 24);
    assert_int_equal(ck_bytes_str(&text, "a\n"), CK_OK);
    for (int i = 0; i < RECORDS; i++)
        assert_int_equal(ck_bytes_printf(&text, i % 7 < 4 || i / 500 == 2 ? "bad %d\n" : "%d\n", i), CK_OK);
    write_sim_file(f->sim, "/t.csv", text.p, text.n);
    ck_bytes_destroy(&text);
    enumerate(f, BAD_CSV);
    int rows = 0, letters = 0;
    bool ended = false;
    for (int turn = 0; !ended; turn++) {
        assert_true(turn < 5000);
        f->h.settings.batch_rows = (uint32_t[]){1, 5, 64, 1000}[turn % 4];
        f->io.shuffle = (uint64_t)turn + 1;
        harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, BAD_CSV, OUTPUT, &f->splits.list));
        harness_ok(&f->h, source_drive(&f->h, NULL, (size_t)(turn % 5 + 1), &ended));
        for (size_t i = 0; i < f->h.line_count; i++) *(f->h.lines[i].text[0] == '!' ? &letters : &rows) += 1;
        restart(f);
    }
    int bad = 0;
    for (int i = 0; i < RECORDS; i++) bad += i % 7 < 4 || i / 500 == 2;
    assert_int_equal(letters, bad);
    assert_int_equal(rows, RECORDS - bad);
}

/* ---- compressed ---- */

static size_t pack(ck_compression c, const char *text, size_t n, uint8_t *to, size_t room) {
    if (c == CK_COMPRESSION_ZSTD) {
        size_t made = ZSTD_compress(to, room, text, n, 1);
        assert_false(ZSTD_isError(made));
        return made;
    }
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)text, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static const struct {
    ck_compression c;
    const char *path, *params;
    bool header;
} packed[] = {
    {CK_COMPRESSION_GZIP, "/t.csv.gz", PARAMS("\"path\":\"/t.csv.gz\",\"header\":\"true\""), true},
    {CK_COMPRESSION_ZSTD, "/t.csv.zst", PARAMS("\"path\":\"/t.csv.zst\",\"header\":\"true\""), true},
    {CK_COMPRESSION_GZIP, "/t", PARAMS("\"path\":\"/t\",\"format\":\"csv\""), false},
    {CK_COMPRESSION_ZSTD, "/t", PARAMS("\"path\":\"/t\",\"format\":\"csv\",\"compression\":\"zstd\""), false},
};

/* Numbers, a line each, over several reads. */
static void write_packed(fixture *f, size_t i, int records) {
    ck_bytes text;
    ck_bytes_init(&text, f->h.mem, 1 << 24);
    if (i % 2) assert_int_equal(ck_bytes_str(&text, "\xef\xbb\xbf"), CK_OK);
    if (packed[i].header) assert_int_equal(ck_bytes_str(&text, "a\r\n"), CK_OK);
    for (int r = 0; r < records; r++)
        assert_int_equal(ck_bytes_printf(&text, r + 1 < records ? "%d\n" : "%d", r), CK_OK);
    size_t room = text.n + 1024;
    uint8_t *to = malloc(room);
    size_t n = pack(packed[i].c, text.p, text.n, to, room);
    write_sim_file(f->sim, packed[i].path, to, n);
    free(to);
    ck_bytes_destroy(&text);
}

static void a_compressed_file_goes_on_where_it_was(void **state) {
    fixture *f = *state;
    enum { RECORDS = 150000 };
    for (size_t i = 0; i < CK_ARRAY_COUNT(packed); i++) {
        int next = 0;
        bool ended = false;
        write_packed(f, i, RECORDS);
        enumerate(f, packed[i].params);
        assert_int_equal(f->splits.list.count, 1);
        for (int turn = 0; !ended; turn++) {
            assert_true(turn < 1000);
            f->h.settings.batch_rows = 3001;
            f->io.shuffle = (uint64_t)turn + 1;
            harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, packed[i].params, OUTPUT, &f->splits.list));
            harness_ok(&f->h, source_drive(&f->h, NULL, (size_t)(turn % 9), &ended));
            for (size_t k = 0; k < f->h.line_count; k++) assert_int_equal(atoi(f->h.lines[k].text), next++);
            restart(f);
        }
        assert_int_equal(next, RECORDS);
        end(f);
        begin(f);
    }
}

static void a_followed_file_may_not_be_compressed(void **state) {
    fixture *f = *state;
    write_packed(f, 2, 10);
    f->h.spec.type = "source.file";
    f->h.spec.params = PARAMS("\"path\":\"/t\",\"format\":\"csv\",\"follow\":\"true\"");
    assert_int_equal(ck_op_source_file.enumerate(&f->h.spec, 1, &f->splits.list, &f->h.error), CK_INVALID);
    assert_non_null(strstr(f->h.error.msg, "/t is compressed"));
}

static void a_bad_split_is_refused(void **state) {
    fixture *f = *state;
    ck_file_split s;
    static const char *const bad[] = {"{\"path\":\"/t\",\"start\":0,\"compression\":\"lz4\"}",
                                      "{\"path\":\"/t\",\"start\":0,\"compression\":1}",
                                      "{\"path\":\"/t\",\"start\":0,\"compression\":\"none\"}"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++)
        assert_int_equal(ck_file_split_parse(&f->h.plan, bad[i], &s, &f->h.error), CK_CORRUPT);
}

/* ---- failing allocations ---- */

static void sweep(fixture *f, const char *params, uint32_t rows_wanted) {
    for (uint64_t n = 1;; n++) {
        end(f);
        begin(f);
        enumerate(f, params);
        f->h.keep_batches = true;
        harness_new_store(&f->h);
        harness_context(&f->h);
        bool ended = false;
        assert_int_equal(harness_create(&f->h, &ck_op_source_file, params, OUTPUT), CK_OK);
        f->h.desc->source->close(f->h.self, &f->h.ctx);
        f->h.self = NULL;
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        ck_status s = f->h.desc->create(&f->h.spec, f->h.mem, &f->h.self, &f->h.error);
        if (s == CK_OK) s = f->h.desc->source->add_split(f->h.self, &f->splits.list.splits[0], &f->h.ctx);
        if (s == CK_OK) s = source_drive(&f->h, NULL, SIZE_MAX, &ended);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        held_run(&f->h);
        if (s == CK_OK) { /* what is kept for later batches it can do without */
            uint32_t rows = 0;
            for (size_t i = 0; i < f->h.batch_count; i++) rows += f->h.batches[i]->sel_count;
            assert_true(ended);
            assert_int_equal(rows, rows_wanted);
        } else {
            assert_true(fired);
            assert_int_equal(s, CK_NOMEM);
        }
        if (!fired) return;
    }
}

static void no_memory_is_said_and_leaks_nothing(void **state) {
    fixture *f = *state;
    static const char text[] = "a\n1\nx that is longer than twelve bytes\n2,3\n4\n";
    write_sim_file(f->sim, "/t.csv", text, sizeof text - 1);
    sweep(f, BAD_CSV, 4);
    for (size_t i = 0; i < CK_ARRAY_COUNT(packed); i++) {
        write_packed(f, i, 20);
        sweep(f, packed[i].params, 20);
    }
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_letter_says_what_where_and_why),
        T(each_letter_leaves_once_through_restarts),
        T(a_compressed_file_goes_on_where_it_was),
        T(a_followed_file_may_not_be_compressed),
        T(a_bad_split_is_refused),
        T(no_memory_is_said_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
