/* The file source over the simulated file system: every cut of small files, options, bad records, followed files. */
#include "connector/connectors.h"

#include "connector/file/file_int.h"
#include "connector/source_test_support.h"

typedef struct fixture {
    ck_test_proc proc;
    ck_manual_clock clock;
    ck_simfs *sim;
    harness h;
    held_io io;
    split_set splits;
} fixture;

static void begin(fixture *f) {
    harness_init(&f->h, &f->proc.proc);
    harness_with_io(&f->h, &f->io);
    split_set_init(&f->splits, &f->h);
}
static void end(fixture *f) {
    harness_destroy(&f->h);
    split_set_destroy(&f->splits);
}
static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    ck_test_proc_init(&f->proc);
    ck_manual_clock_init(&f->clock, 1000000, 0);
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

#define COLUMNS                                                                                                        \
    "{\"name\":\"a\",\"type\":\"BIGINT\",\"nullable\":true},{\"name\":\"s\",\"type\":\"VARCHAR\",\"nullable\":true}"
#define PARAMS(columns, options)                                                                                       \
    "{\"table\":\"t\",\"table_schema\":[" columns "],\"columns\":[0,1],\"checked\":[],\"options\":{" options "}}"
#define JSON_FILE PARAMS(COLUMNS, "\"path\":\"/t.json\",\"format\":\"json\"")
#define CSV_FILE  PARAMS(COLUMNS, "\"path\":\"/t.csv\",\"format\":\"csv\",\"header\":\"true\"")
#define FOLLOW    PARAMS(COLUMNS, "\"path\":\"/t.csv\",\"header\":\"true\",\"follow\":\"true\"")
#define OUTPUT    "a BIGINT; s VARCHAR"

static void put(fixture *f, const char *path, const char *text) { write_sim_file(f->sim, path, text, strlen(text)); }

static ck_status enumerate(fixture *f, const char *params, uint32_t parallelism) {
    f->h.spec.type = "source.file";
    f->h.spec.params = params;
    return ck_op_source_file.enumerate(&f->h.spec, parallelism, &f->splits.list, &f->h.error);
}

/* Reads everything in one subtask; the rows are in f->h.lines. */
static ck_status read_all(fixture *f, const char *params) {
    bool ended;
    ck_status s = enumerate(f, params, 1);
    if (s == CK_OK) s = source_start(&f->h, &ck_op_source_file, params, OUTPUT, &f->splits.list);
    if (s == CK_OK) s = source_drive(&f->h, &f->clock, SIZE_MAX, &ended);
    if (s == CK_OK) assert_true(ended);
    return s;
}

/* ---- every cut ---- */

typedef struct sample {
    const char *name, *text;
    bool csv;
} sample;
static const sample samples[] = {
    {"json", "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":\"\"}\n\n{\"s\":\"a much longer text\",\"a\":3}\n{\"a\":null}\n",
     false},
    {"json crlf", "{\"a\":1}\r\n{\"a\":2,\"s\":\"q\"}\r\n", false},
    {"json without a line end", "{\"a\":1}\n{\"a\":2}", false},
    {"json mark", "\xef\xbb\xbf{\"a\":1}\n{\"a\":2}\n", false},
    {"json empty", "", false},
    {"json blank", "\n\n\n", false},
    {"csv", "a,s\n1,x\n2,\"two\nlines, and \"\"quotes\"\"\"\n3,\n,plain\n", true},
    {"csv crlf", "s,a\r\nx,1\r\n\"q\r\nr\",2\r\n", true},
    {"csv without a line end", "a,s\n1,x\n2,\"y\"", true},
    {"csv mark", "\xef\xbb\xbf\"a\",s\n1,\"\n\"\n2,z\n", true},
    {"csv header only", "a,s\n", true},
    {"csv header without a line end", "a,s", true},
    {"csv empty", "", true},
    {"csv quoted header", "\"a\",\"s\"\n7,\"\"\"\n\"\"\"\n8,\"\n\n\"\n", true},
};

/* Boundaries of `pieces` pieces cover the file, and the splits give the rows of the whole, each once. */
static void every_cut_gives_each_record_once(void **state) {
    fixture *f = *state;
    for (size_t i = 0; i < CK_ARRAY_COUNT(samples); i++) {
        const sample *s = &samples[i];
        const char *path = s->csv ? "/t.csv" : "/t.json", *params = s->csv ? CSV_FILE : JSON_FILE;
        uint64_t bytes = strlen(s->text);
        put(f, path, s->text);
        harness_ok(&f->h, read_all(f, params));
        size_t rows = f->h.line_count;
        harness_line *whole = f->h.lines;
        f->h.lines = NULL;
        f->h.line_count = f->h.line_capacity = 0;
        end(f);
        for (uint32_t pieces = 2; pieces <= bytes + 2; pieces++) {
            uint64_t cuts[512];
            uint32_t count;
            begin(f);
            f->io.shuffle = pieces;
            assert_int_equal(
                ck_file_cut(&f->proc.proc, path, s->csv ? "csv" : "json", bytes, pieces, cuts, &count, NULL), CK_OK);
            assert_int_equal(cuts[0], 0);
            assert_int_equal(cuts[count], bytes);
            for (uint32_t c = 0; c < count; c++) {
                ck_file_split split = {path, cuts[c], cuts[c + 1], cuts[c], 0, INT64_MIN, CK_COMPRESSION_NONE};
                const char *spec;
                if (count > 1) assert_true(cuts[c] < cuts[c + 1]);
                assert_int_equal(ck_file_split_print(&f->splits.arena, &split, &spec, NULL), CK_OK);
                assert_int_equal(ck_split_list_add(&f->splits.list, "s", spec), CK_OK);
            }
            bool ended;
            harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, params, OUTPUT, &f->splits.list));
            harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
            assert_true(ended);
            if (f->h.line_count != rows)
                fail_msg("%s in %u pieces: %zu rows, not %zu", s->name, pieces, f->h.line_count, rows);
            for (size_t r = 0; r < rows; r++) assert_string_equal(f->h.lines[r].text, whole[r].text);
            end(f);
        }
        for (size_t r = 0; r < rows; r++) free(whole[r].text);
        free(whole);
        begin(f);
    }
}

static void samples_read_as_they_should(void **state) {
    fixture *f = *state;
    put(f, "/t.json", samples[0].text);
    harness_ok(&f->h, read_all(f, JSON_FILE));
    HARNESS_EXPECT(&f->h, "+1|x", "+2|", "+3|a much longer text", "+NULL|NULL");
    end(f);
    begin(f);
    put(f, "/t.csv", samples[6].text);
    harness_ok(&f->h, read_all(f, CSV_FILE));
    HARNESS_EXPECT(&f->h, "+1|x", "+2|two\nlines, and \"quotes\"", "+3|NULL", "+NULL|plain");
    assert_int_equal(harness_counter(&f->h, "rows_in"), 4);
    assert_int_equal(harness_counter(&f->h, "bytes_in"), harness_counter(&f->h, "bytes_total"));
}

/* ---- positions ---- */

static void a_restart_goes_on_with_the_next_record(void **state) {
    fixture *f = *state;
    ck_bytes text;
    ck_bytes_init(&text, f->h.mem, 1 << 24);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(ck_bytes_printf(&text, "%d,\"text %d,\n\"\n", i, i), CK_OK);
        if (i == 0) assert_int_equal(ck_bytes_str(&text, ""), CK_OK);
    }
    ck_bytes with_header;
    ck_bytes_init(&with_header, f->h.mem, 1 << 24);
    assert_int_equal(ck_bytes_str(&with_header, "a,s\n"), CK_OK);
    assert_int_equal(ck_bytes_append(&with_header, text.p, text.n), CK_OK);
    write_sim_file(f->sim, "/t.csv", with_header.p, with_header.n);
    ck_bytes_destroy(&text);
    ck_bytes_destroy(&with_header);
    assert_int_equal(enumerate(f, CSV_FILE, 1), CK_OK);
    int next = 0;
    bool ended = false;
    for (int turn = 0; !ended; turn++) {
        f->h.settings.batch_rows = 700;
        f->io.shuffle = (uint64_t)turn + 1;
        harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, CSV_FILE, OUTPUT, &f->splits.list));
        harness_ok(&f->h, source_drive(&f->h, NULL, (size_t)(turn % 4), &ended));
        for (size_t i = 0; i < f->h.line_count; i++) {
            char expected[64];
            snprintf(expected, sizeof expected, "%d|text %d,\n", next, next);
            assert_string_equal(f->h.lines[i].text, expected);
            next++;
        }
        split_set now;
        harness snapshot_owner = f->h;
        (void)snapshot_owner;
        split_set_init(&now, &f->h);
        source_snapshot(&f->h, &now);
        held_run(&f->h);
        harness_destroy(&f->h);
        split_set_destroy(&f->splits);
        harness_init(&f->h, &f->proc.proc);
        harness_with_io(&f->h, &f->io);
        f->splits = now;
        f->splits.list.arena = &f->splits.arena;
        assert_true(turn < 1000);
    }
    assert_int_equal(next, 20000);
}

static void splits_are_dealt_and_none_is_read_twice(void **state) {
    fixture *f = *state;
    char *text = malloc(5 << 20);
    size_t n = 0;
    int rows = 0;
    while (n < (4u << 20) + 1000)
        n += (size_t)sprintf(text + n, "{\"a\":%d,\"s\":\"some text to fill the line\"}\n", rows++);
    write_sim_file(f->sim, "/t.json", text, n);
    free(text);
    assert_int_equal(enumerate(f, JSON_FILE, 3), CK_OK);
    assert_int_equal(f->splits.list.count, 3);
    assert_string_not_equal(f->splits.list.splits[0].id, f->splits.list.splits[1].id);
    int64_t sum = 0;
    size_t total = 0;
    for (uint32_t subtask = 0; subtask < 3; subtask++) {
        bool ended;
        harness_destroy(&f->h);
        harness_init(&f->h, &f->proc.proc);
        harness_with_io(&f->h, &f->io);
        f->h.spec.subtask = subtask;
        f->h.spec.parallelism = 3;
        harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, JSON_FILE, OUTPUT, &f->splits.list));
        harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
        assert_true(f->h.line_count > 20000);
        total += f->h.line_count;
        for (size_t i = 0; i < f->h.line_count; i++) sum += strtoll(f->h.lines[i].text, NULL, 10);
    }
    assert_int_equal(total, rows);
    assert_int_equal(sum, (int64_t)rows * (rows - 1) / 2);
}

/* ---- which files ---- */

static void directories_and_patterns(void **state) {
    fixture *f = *state;
    ck_fs *fs = f->proc.proc.fs;
    assert_int_equal(fs->mkdir(fs, "/d", NULL), CK_OK);
    assert_int_equal(fs->mkdir(fs, "/d/sub", NULL), CK_OK);
    put(f, "/d/b.json", "{\"a\":2}\n");
    put(f, "/d/a.json", "{\"a\":1}");
    put(f, "/d/.hidden", "not json");
    put(f, "/d/c.txt", "{\"a\":3}\n");
    harness_ok(&f->h, read_all(f, PARAMS(COLUMNS, "\"path\":\"/d\",\"format\":\"json\"")));
    HARNESS_EXPECT(&f->h, "+1|NULL", "+2|NULL", "+3|NULL");
    end(f);
    begin(f);
    harness_ok(&f->h, read_all(f, PARAMS(COLUMNS, "\"path\":\"/d/*.json\"")));
    HARNESS_EXPECT(&f->h, "+1|NULL", "+2|NULL");
}

static void missing_input_is_named(void **state) {
    fixture *f = *state;
    ck_fs *fs = f->proc.proc.fs;
    assert_int_equal(fs->mkdir(fs, "/empty", NULL), CK_OK);
    static const char *const cases[][2] = {
        {PARAMS(COLUMNS, "\"path\":\"/no.json\""), "table t: there is no file /no.json"},
        {PARAMS(COLUMNS, "\"path\":\"/no*.json\""), "table t: no file matches /no*.json"},
        {PARAMS(COLUMNS, "\"path\":\"/empty\",\"format\":\"json\""), "table t: the directory /empty has no files"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(cases); i++) {
        assert_int_equal(enumerate(f, cases[i][0], 1), CK_NOTFOUND);
        assert_string_equal(f->h.error.msg, cases[i][1]);
    }
}

static void a_file_that_got_shorter_is_named(void **state) {
    fixture *f = *state;
    put(f, "/t.json", "{\"a\":1}\n{\"a\":2}\n");
    bool ended;
    assert_int_equal(enumerate(f, JSON_FILE, 1), CK_OK);
    put(f, "/t.json", "{\"a\":1}\n");
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, JSON_FILE, OUTPUT, &f->splits.list));
    assert_int_equal(source_drive(&f->h, NULL, SIZE_MAX, &ended), CK_DATA);
    assert_non_null(strstr(f->h.error.msg, "/t.json has 8 bytes, fewer than the 16"));
}

/* ---- bad records ---- */

static void a_bad_record_names_its_place(void **state) {
    fixture *f = *state;
    put(f, "/t.csv", "a,s\n1,\"x\ny\"\n2,z\nNA,q\n3,r\n");
    assert_int_equal(read_all(f, CSV_FILE), CK_DATA);
    if (!strstr(f->h.error.msg, "/t.csv line 5 column 1: ") || !strstr(f->h.error.msg, "NA,q") ||
        !strstr(f->h.error.msg, "byte 16"))
        fail_msg("%s", f->h.error.msg);
    assert_int_equal(f->h.error.place.line, 5);
    assert_int_equal(f->h.error.place.byte_offset, 16);
    assert_true(f->h.error.fatal);
}

static void bad_records_can_be_skipped(void **state) {
    fixture *f = *state;
    put(f, "/t.json", "{\"a\":1}\nnot json\n{\"a\":\"x\"}\n{\"a\":2}\n{\"a\":");
    harness_ok(&f->h, read_all(f, PARAMS(COLUMNS, "\"path\":\"/t.json\",\"on_error\":\"skip\"")));
    HARNESS_EXPECT(&f->h, "+1|NULL", "+2|NULL");
    assert_int_equal(harness_counter(&f->h, "bad_rows"), 3);
    assert_int_equal(harness_counter(&f->h, "rows_in"), 2);
}

static void a_header_that_does_not_fit_is_named(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {"a,x\n1,2\n", "a,x\n", "a,x", "a\r\n\r\n", "\xef\xbb\xbfx,s", "a,\"s\n\"\n"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(texts); i++) { /* whether or not a record follows */
        put(f, "/t.csv", texts[i]);
        assert_int_equal(read_all(f, CSV_FILE), CK_DATA);
        assert_non_null(strstr(f->h.error.msg, "/t.csv: the header does not name column "));
        end(f);
        begin(f);
    }
}

static void a_followed_header_that_does_not_fit_is_named(void **state) {
    fixture *f = *state;
    bool ended;
    put(f, "/t.csv", "a,x\n");
    assert_int_equal(enumerate(f, FOLLOW, 1), CK_OK);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, FOLLOW, OUTPUT, &f->splits.list));
    assert_int_equal(source_drive(&f->h, NULL, SIZE_MAX, &ended), CK_DATA);
    assert_non_null(strstr(f->h.error.msg, "/t.csv: the header does not name column s"));
}

static void long_records(void **state) {
    fixture *f = *state;
    size_t n = 3 << 20;
    char *text = malloc(n + 100);
    size_t at = (size_t)sprintf(text, "{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":\"");
    memset(text + at, 'y', n);
    at += n;
    at += (size_t)sprintf(text + at, "\"}\n{\"a\":3}\n");
    write_sim_file(f->sim, "/t.json", text, at);
    free(text);
    f->h.keep_batches = true;
    harness_ok(&f->h, read_all(f, JSON_FILE));
    size_t rows = 0, longest = 0;
    for (size_t i = 0; i < f->h.batch_count; i++)
        for (uint32_t k = 0; k < f->h.batches[i]->sel_count; k++, rows++) {
            const ck_column *c = f->h.batches[i]->columns[1];
            if (!ck_column_is_null(c, k) && ck_column_str(c, k).n > longest) longest = ck_column_str(c, k).n;
        }
    assert_int_equal(rows, 3);
    assert_int_equal(longest, n);
}

static void records_above_the_limit(void **state) {
    fixture *f = *state;
    size_t n = (size_t)CK_RECORD_BYTES_MAX + (1 << 20);
    char *text = malloc(n + 100);
    size_t at = (size_t)sprintf(text, "{\"a\":1}\n");
    memset(text + at, 'y', n);
    at += n;
    at += (size_t)sprintf(text + at, "\n{\"a\":3}\n");
    write_sim_file(f->sim, "/t.json", text, at);
    free(text);
    assert_int_equal(read_all(f, JSON_FILE), CK_DATA);
    if (!strstr(f->h.error.msg,
                "/t.json line 2: the record is longer than 67108864 bytes; on_error = 'skip' leaves such records out, "
                "'dead_letter' puts them into a table; the record at byte 8 is: yyy"))
        fail_msg("%s", f->h.error.msg);
    end(f);
    begin(f);
    harness_ok(&f->h, read_all(f, PARAMS(COLUMNS, "\"path\":\"/t.json\",\"on_error\":\"skip\"")));
    HARNESS_EXPECT(&f->h, "+1|NULL", "+3|NULL");
    assert_int_equal(harness_counter(&f->h, "bad_rows"), 1);
}

static void a_disk_that_fails_is_named(void **state) {
    fixture *f = *state;
    put(f, "/t.json", "{\"a\":1}\n");
    bool ended;
    assert_int_equal(enumerate(f, JSON_FILE, 1), CK_OK);
    assert_int_equal(f->proc.proc.fs->unlink(f->proc.proc.fs, "/t.json", NULL), CK_OK);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, JSON_FILE, OUTPUT, &f->splits.list));
    assert_int_equal(source_drive(&f->h, NULL, SIZE_MAX, &ended), CK_NOTFOUND);
    assert_non_null(strstr(f->h.error.msg, "/t.json"));
}

/* ---- options ---- */

static void columns_in_any_order_and_pruned(void **state) {
    fixture *f = *state;
    put(f, "/t.json", "{\"a\":1,\"s\":\"x\"}\n{\"s\":\"y\",\"a\":\"not a number\"}\n");
    static const char params[] = "{\"table\":\"t\",\"table_schema\":[" COLUMNS
                                 "],\"columns\":[1],\"checked\":[],\"options\":{\"path\":\"/t.json\"}}";
    bool ended;
    assert_int_equal(enumerate(f, params, 1), CK_OK);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, params, "s VARCHAR", &f->splits.list));
    harness_ok(&f->h, source_drive(&f->h, NULL, SIZE_MAX, &ended));
    HARNESS_EXPECT(&f->h, "+x", "+y"); /* nobody looks at a */
    end(f);
    begin(f);
    static const char checked[] = "{\"table\":\"t\",\"table_schema\":[" COLUMNS
                                  "],\"columns\":[1],\"checked\":[0],\"options\":{\"path\":\"/t.json\"}}";
    assert_int_equal(enumerate(f, checked, 1), CK_OK);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, checked, "s VARCHAR", &f->splits.list));
    assert_int_equal(source_drive(&f->h, NULL, SIZE_MAX, &ended), CK_DATA);
}

static void the_rate_is_kept(void **state) {
    fixture *f = *state;
    char text[4096];
    size_t n = 0;
    for (int i = 0; i < 100; i++) n += (size_t)sprintf(text + n, "{\"a\":%d}\n", i);
    write_sim_file(f->sim, "/t.json", text, n);
    static const char params[] = PARAMS(COLUMNS, "\"path\":\"/t.json\",\"rate_limit\":\"50\"");
    int64_t began = f->clock.base.mono_us(&f->clock.base);
    harness_ok(&f->h, read_all(f, params));
    int64_t took = f->clock.base.mono_us(&f->clock.base) - began;
    assert_int_equal(f->h.line_count, 100);
    assert_true(took > 1900000 && took < 2100000);
    assert_int_equal(f->h.largest_batch, 1);
}

static void bad_options_are_named(void **state) {
    fixture *f = *state;
    static const char *const bad[][2] = {
        {"\"format\":\"json\"", "'path'"},
        {"\"path\":\"x\"", "give the option 'format'"},
        {"\"path\":\"x\",\"format\":\"xml\"", "neither json nor csv"},
        {"\"path\":\"x.json\",\"header\":\"true\"", "'header' is for format = 'csv'"},
        {"\"path\":\"x.csv\",\"header\":\"maybe\"", "'header' is 'maybe'"},
        {"\"path\":\"x.csv\",\"delimiter\":\"ab\"", "'delimiter'"},
        {"\"path\":\"x.json\",\"on_error\":\"ignore\"", "none of fail, skip, dead_letter"},
        {"\"path\":\"x.json\",\"on_error\":\"dead_letter\"", "needs the option 'dead_letter_table'"},
        {"\"path\":\"x.json\",\"dead_letter_table\":\"d\"", "is for on_error = 'dead_letter'"},
        {"\"path\":\"x.json\",\"compression\":\"lz4\"", "lz4"},
        {"\"path\":\"-\",\"format\":\"json\",\"compression\":\"lz4\"", "lz4"},
        {"\"path\":\"x.json.gz\",\"follow\":\"true\"", "cannot be followed"},
        {"\"path\":\"x.json\",\"rate_limit\":\"-1\"", "'rate_limit'"},
        {"\"path\":\"x.json\",\"rate_limit\":\"many\"", "'rate_limit' is 'many'"},
        {"\"path\":\"x.json\",\"part_bytes\":\"0\"", "'part_bytes'"},
        {"\"path\":\"-\",\"format\":\"json\",\"follow\":\"true\"", "standard input"},
    };
    for (size_t i = 0; i < CK_ARRAY_COUNT(bad); i++) {
        char params[1024];
        snprintf(params, sizeof params,
                 "{\"table\":\"t\",\"table_schema\":[" COLUMNS "],\"columns\":[0,1],\"checked\":[],\"options\":{%s}}",
                 bad[i][0]);
        assert_int_equal(harness_create(&f->h, &ck_op_source_file, params, OUTPUT), CK_INVALID);
        if (!strstr(f->h.error.msg, bad[i][1])) fail_msg("%s", f->h.error.msg);
    }
}

/* ---- following ---- */

static void append(fixture *f, const char *path, const char *text) {
    ck_fs *fs = f->proc.proc.fs;
    ck_file *file;
    assert_int_equal(fs->open(fs, path, CK_OPEN_READWRITE, &file, NULL), CK_OK);
    ck_status s = fs->write(file, text, strlen(text), NULL);
    assert_int_equal(s, CK_OK);
    fs->close(file);
}

/* Polls a while, over some looks at the file. */
static ck_status settle(fixture *f) {
    int64_t until_us = f->clock.base.mono_us(&f->clock.base) + 100000;
    for (unsigned polls = 0; f->clock.base.mono_us(&f->clock.base) < until_us; polls++) {
        ck_poll_result result;
        int64_t until;
        assert_true(polls < 100000);
        ck_status s = source_poll(&f->h, &result, &until);
        if (s != CK_OK) return s;
        assert_int_not_equal(result, CK_POLL_END);
        if (result != CK_POLL_IDLE || held_run_one(&f->h)) continue;
        assert_true(until != INT64_MAX);
        int64_t now = f->clock.base.mono_us(&f->clock.base);
        if (until > now) ck_manual_clock_advance(&f->clock, until - now);
    }
    return CK_OK;
}

static void a_followed_file_may_grow(void **state) {
    fixture *f = *state;
    put(f, "/t.csv", "");
    assert_int_equal(enumerate(f, FOLLOW, 3), CK_OK);
    assert_int_equal(f->splits.list.count, 1);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, FOLLOW, OUTPUT, &f->splits.list));
    harness_ok(&f->h, settle(f));
    append(f, "/t.csv", "a,");
    harness_ok(&f->h, settle(f));
    append(f, "/t.csv", "s\n1,x\n2,");
    harness_ok(&f->h, settle(f));
    HARNESS_EXPECT(&f->h, "+1|x");
    append(f, "/t.csv", "y\n");
    harness_ok(&f->h, settle(f));
    HARNESS_EXPECT(&f->h, "+2|y");
    split_set now;
    split_set_init(&now, &f->h);
    source_snapshot(&f->h, &now);
    assert_non_null(strstr(now.list.splits[0].spec, "\"position\":12"));
    assert_non_null(strstr(now.list.splits[0].spec, "\"inode\""));
    held_run(&f->h);
    harness_close(&f->h);
    append(f, "/t.csv", "3,z\n");
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, FOLLOW, OUTPUT, &now.list));
    harness_ok(&f->h, settle(f));
    HARNESS_EXPECT(&f->h, "+3|z");
    split_set_destroy(&now);
}

static void a_followed_file_that_is_cut_or_replaced_is_named(void **state) {
    fixture *f = *state;
    ck_fs *fs = f->proc.proc.fs;
    put(f, "/t.csv", "a,s\n1,x\n");
    assert_int_equal(enumerate(f, FOLLOW, 1), CK_OK);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, FOLLOW, OUTPUT, &f->splits.list));
    harness_ok(&f->h, settle(f));
    put(f, "/t.csv", "a,s\n");
    assert_int_equal(settle(f), CK_DATA);
    assert_non_null(strstr(f->h.error.msg, "/t.csv was cut to 4 bytes"));
    held_run(&f->h);
    harness_close(&f->h);

    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, FOLLOW, OUTPUT, &f->splits.list));
    harness_ok(&f->h, settle(f));
    put(f, "/new.csv", "a,s\n1,x\n2,y\n");
    assert_int_equal(fs->rename(fs, "/new.csv", "/t.csv", NULL), CK_OK);
    assert_int_equal(settle(f), CK_DATA);
    assert_non_null(strstr(f->h.error.msg, "/t.csv was replaced"));
    held_run(&f->h);
    harness_close(&f->h);

    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, FOLLOW, OUTPUT, &f->splits.list));
    harness_ok(&f->h, settle(f));
    assert_int_equal(fs->unlink(fs, "/t.csv", NULL), CK_OK);
    assert_int_equal(settle(f), CK_DATA);
    assert_non_null(strstr(f->h.error.msg, "/t.csv was removed"));
}

static void several_files_are_followed_in_turn(void **state) {
    fixture *f = *state;
    ck_fs *fs = f->proc.proc.fs;
    assert_int_equal(fs->mkdir(fs, "/d", NULL), CK_OK);
    put(f, "/d/1.csv", "a,s\n1,x\n");
    put(f, "/d/2.csv", "s,a\ny,2\n");
    static const char params[] =
        PARAMS(COLUMNS, "\"path\":\"/d\",\"format\":\"csv\",\"header\":\"true\",\"follow\":\"true\"");
    assert_int_equal(enumerate(f, params, 1), CK_OK);
    harness_ok(&f->h, source_start(&f->h, &ck_op_source_file, params, OUTPUT, &f->splits.list));
    harness_ok(&f->h, settle(f));
    harness_net(&f->h);
    HARNESS_EXPECT(&f->h, "+1|x", "+2|y");
    append(f, "/d/1.csv", "3,z\n");
    append(f, "/d/2.csv", "w,4\n");
    harness_ok(&f->h, settle(f));
    harness_net(&f->h);
    HARNESS_EXPECT(&f->h, "+3|z", "+4|w");
}

/* ---- memory ---- */

static void no_memory_is_said_and_leaks_nothing(void **state) {
    fixture *f = *state;
    put(f, "/t.csv", samples[6].text);
    for (uint64_t n = 1;; n++) {
        end(f);
        begin(f);
        assert_int_equal(enumerate(f, CSV_FILE, 1), CK_OK);
        f->h.keep_batches = true;
        harness_new_store(&f->h);
        harness_context(&f->h);
        bool ended = false;
        ck_status s = harness_create(&f->h, &ck_op_source_file, CSV_FILE, OUTPUT);
        assert_int_equal(s, CK_OK);
        f->h.desc->source->close(f->h.self, &f->h.ctx);
        f->h.self = NULL;
        ck_tracked_heap_fail_nth(f->proc.heap, n);
        s = f->h.desc->create(&f->h.spec, f->h.mem, &f->h.self, &f->h.error);
        if (s == CK_OK) s = f->h.desc->source->add_split(f->h.self, &f->splits.list.splits[0], &f->h.ctx);
        if (s == CK_OK) s = source_drive(&f->h, NULL, SIZE_MAX, &ended);
        bool fired = ck_tracked_heap_fired(f->proc.heap);
        ck_tracked_heap_fail_nth(f->proc.heap, 0);
        held_run(&f->h);
        if (s == CK_OK) { /* what the decoder keeps for later batches it can do without */
            uint32_t rows = 0;
            for (size_t i = 0; i < f->h.batch_count; i++) rows += f->h.batches[i]->sel_count;
            assert_true(ended);
            assert_int_equal(rows, 4);
        } else {
            assert_true(fired);
            assert_int_equal(s, CK_NOMEM);
        }
        if (!fired) return;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(samples_read_as_they_should),
        T(every_cut_gives_each_record_once),
        T(a_restart_goes_on_with_the_next_record),
        T(splits_are_dealt_and_none_is_read_twice),
        T(directories_and_patterns),
        T(missing_input_is_named),
        T(a_file_that_got_shorter_is_named),
        T(a_bad_record_names_its_place),
        T(bad_records_can_be_skipped),
        T(a_header_that_does_not_fit_is_named),
        T(a_followed_header_that_does_not_fit_is_named),
        T(long_records),
        T(records_above_the_limit),
        T(a_disk_that_fails_is_named),
        T(columns_in_any_order_and_pruned),
        T(the_rate_is_kept),
        T(bad_options_are_named),
        T(a_followed_file_may_grow),
        T(a_followed_file_that_is_cut_or_replaced_is_named),
        T(several_files_are_followed_in_turn),
        T(no_memory_is_said_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
