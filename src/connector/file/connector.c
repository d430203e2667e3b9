/* What SQL may say about a table of files, and what such a table can promise. */
#include "connector/connectors.h"

#include "connector/file/file_int.h"

static const ck_option_desc file_options[] = {
    {"path", "path", NULL, "a file, a directory, a pattern (*, ?, [..]), or - for standard input; a sink's directory"},
    {"format", "json|csv", NULL, "how a record is written; by the path's ending where not given"},
    {"header", "boolean", "false", "csv: the first record of each file names the columns"},
    {"delimiter", "text", ",", "csv: the character between fields"},
    {"null_string", "text", NULL, "csv: the unquoted text that stands for NULL; the empty field where not given"},
    {"compression", "auto|none|gzip|zstd", "auto",
     "reading: how a file is compressed; auto: by the ending .gz, .zst or .zstd, or by its first bytes"},
    {"strict", "boolean", "false", "reading: check the type of every column, also of those the query does not need"},
    {"on_error", "fail|skip|dead_letter", "fail", "reading: what a record that does not fit the table does"},
    {"dead_letter_table", "text", NULL,
     "reading: the table that takes such records, with columns raw BYTES, split VARCHAR, offset BIGINT, reason "
     "VARCHAR"},
    {"follow", "boolean", "false", "reading: wait for the file to grow; such a table never ends"},
    {"rate_limit", "text", NULL, "reading: records a second for the whole table"},
    {"mode", "append|upsert", "append",
     "writing: a directory of parts, or one file a subtask with the current row of each key"},
    {"delivery", "exactly_once|at_least_once", "exactly_once",
     "writing: parts appear when a checkpoint commits them, or as soon as they are full"},
    {"part_bytes", "integer", "134217728", "writing: a part is closed when it is so large"},
    {"lookup.cache_ttl_ms", "integer", "0",
     "AS OF PROCTIME(): what was read is used for so long, then it is read again; 0: for ever"},
    {"lookup.max_bytes", "integer", "268435456", "AS OF PROCTIME(): more memory than this a subtask is refused"},
};

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

static const char *format_of_path(const char *path) {
    static const char *const packed[] = {"", ".gz", ".zst", ".zstd"};
    static const char *const formats[][2] = {
        {".csv", "csv"}, {".json", "json"}, {".ndjson", "json"}, {".jsonl", "json"}};
    for (size_t i = 0; i < CK_ARRAY_COUNT(packed); i++)
        for (size_t k = 0; k < CK_ARRAY_COUNT(formats); k++) {
            size_t n = strlen(path), m = strlen(packed[i]);
            if (!ends_with(path, packed[i])) continue;
            size_t f = strlen(formats[k][0]);
            if (n >= m + f && memcmp(path + n - m - f, formats[k][0], f) == 0) return formats[k][1];
        }
    return NULL;
}

/* One of two words. */
static ck_status option_word(const ck_table_options *o, const char *name, const char *first, const char *second,
                             bool *is_second, ck_error *err) {
    const char *v = ck_option_text(o, name, first);
    *is_second = strcmp(v, second) == 0;
    if (*is_second || strcmp(v, first) == 0) return CK_OK;
    return ck_fail(err, CK_INVALID, "option '%s' is '%s', which is neither %s nor %s", name, v, first, second);
}

static ck_status read_csv_options(const ck_table_options *o, ck_file_options *out, ck_error *err) {
    static const char *const csv_only[] = {"header", "delimiter", "null_string"};
    bool csv = strcmp(out->format, "csv") == 0;
    for (size_t i = 0; !csv && i < CK_ARRAY_COUNT(csv_only); i++)
        if (ck_option_text(o, csv_only[i], NULL))
            return ck_fail(err, CK_INVALID, "option '%s' is for format = 'csv'", csv_only[i]);
    CK_TRY(ck_option_bool(o, "header", false, &out->header, err));
    const char *delimiter = ck_option_text(o, "delimiter", ",");
    if (strcmp(delimiter, "\\t") == 0) delimiter = "\t";
    if (strlen(delimiter) != 1 || strchr("\"\r\n", delimiter[0]))
        return ck_fail(err, CK_INVALID,
                       "option 'delimiter' is '%s', which is not one character that may stand between fields",
                       delimiter);
    out->delimiter = delimiter[0];
    out->null_string = ck_option_text(o, "null_string", NULL);
    return CK_OK;
}

static ck_status read_on_error(const ck_table_options *o, ck_file_options *out, ck_error *err) {
    static const char *const words[] = {"fail", "skip", "dead_letter"}; /* as in ck_on_error */
    const char *word = ck_option_text(o, "on_error", "fail");
    uint32_t i = 0;
    while (i < CK_ARRAY_COUNT(words) && strcmp(word, words[i]) != 0) i++;
    if (i == CK_ARRAY_COUNT(words))
        return ck_fail(err, CK_INVALID, "option 'on_error' is '%s', which is none of fail, skip, dead_letter", word);
    out->on_error = (ck_on_error)i;
    out->on_error_is_given = ck_option_text(o, "on_error", NULL) != NULL;
    out->dead_letter_table = ck_option_text(o, "dead_letter_table", NULL);
    bool wanted = out->on_error == CK_ON_ERROR_DEAD_LETTER, given = out->dead_letter_table != NULL;
    if (wanted == given) return CK_OK;
    return ck_fail(err, CK_INVALID,
                   given
                       ? "option 'dead_letter_table' is for on_error = 'dead_letter'"
                       : "on_error = 'dead_letter' needs the option 'dead_letter_table', the table that takes records "
                         "that do not fit");
}

static ck_status read_compression(const ck_table_options *o, ck_file_options *out, ck_error *err) {
    ck_compression c;
    out->compression = ck_option_text(o, "compression", NULL);
    CK_TRY(ck_compression_of(out->compression, out->path, &c, err));
    if (c != CK_COMPRESSION_NONE && out->follow)
        return ck_fail(err, CK_INVALID, "%s is compressed, and a compressed file cannot be followed", out->path);
    return CK_OK;
}

ck_status ck_file_options_read(const ck_table_options *o, ck_file_options *out, ck_error *err) {
    bool at_least_once;
    *out = (ck_file_options){.path = ck_option_text(o, "path", NULL)};
    if (!out->path || !out->path[0])
        return ck_fail(err, CK_INVALID, "a table of connector 'file' needs the option 'path'");
    out->is_stdin = strcmp(out->path, CK_STDIN_PATH) == 0;
    out->format = ck_option_text(o, "format", format_of_path(out->path));
    if (!out->format)
        return ck_fail(err, CK_INVALID,
                       "path = '%s' does not say the format by its ending: give the option 'format', json or csv",
                       out->path);
    bool csv;
    if (ck_option_text(o, "format", NULL)) CK_TRY(option_word(o, "format", "json", "csv", &csv, err));
    CK_TRY(read_csv_options(o, out, err));
    CK_TRY(ck_option_bool(o, "strict", false, &out->strict, err));
    CK_TRY(ck_option_bool(o, "follow", false, &out->follow, err));
    CK_TRY(read_on_error(o, out, err));
    CK_TRY(read_compression(o, out, err));
    CK_TRY(ck_option_f64(o, "rate_limit", 0, &out->rate_limit, err));
    if (out->rate_limit < 0 || (out->rate_limit == 0 && ck_option_text(o, "rate_limit", NULL)))
        return ck_fail(err, CK_INVALID, "option 'rate_limit' must be more than 0 records a second");
    CK_TRY(option_word(o, "mode", "append", "upsert", &out->upsert, err));
    CK_TRY(option_word(o, "delivery", "exactly_once", "at_least_once", &at_least_once, err));
    out->exactly_once = !at_least_once;
    CK_TRY(ck_option_i64(o, "part_bytes", CK_PART_BYTES_DEFAULT, 1, INT64_MAX, &out->part_bytes, err));
    CK_TRY(ck_option_i64(o, "lookup.cache_ttl_ms", 0, 0, INT64_MAX / 1000, &out->cache_ttl_ms, err));
    CK_TRY(ck_option_i64(o, "lookup.max_bytes", CK_LOOKUP_BYTES_DEFAULT, 1, INT64_MAX, &out->lookup_bytes_max, err));
    if (out->follow && out->is_stdin)
        return ck_fail(err, CK_INVALID, "standard input cannot be followed: it ends when it is closed");
    return CK_OK;
}

static ck_status file_check(const ck_table_decl *t, bool as_sink, ck_error *err) {
    ck_file_options o;
    CK_TRY(ck_file_options_read(&t->options, &o, err));
    if (!as_sink) return CK_OK;
    if (o.is_stdin)
        return ck_fail(err, CK_INVALID, "path = '-' is standard input; to write there use connector = 'print'");
    if (o.compression && strcmp(o.compression, "none") != 0 && strcmp(o.compression, "auto") != 0)
        return ck_fail(err, CK_INVALID, "option 'compression' is for reading: what is written is not compressed");
    if (strpbrk(o.path, "*?["))
        return ck_fail(err, CK_INVALID, "path = '%s' is a pattern, and a table is written into a directory", o.path);
    if (o.upsert && t->primary_key_count == 0)
        return ck_fail(err, CK_INVALID,
                       "mode = 'upsert' needs a PRIMARY KEY (...) NOT ENFORCED: it keeps one row a key");
    return CK_OK;
}

static bool reads_to_an_end(const ck_table_decl *t) {
    ck_file_options o;
    return ck_file_options_read(&t->options, &o, NULL) != CK_OK || !o.follow;
}

static bool is_upsert(const ck_table_decl *t) {
    ck_file_options o;
    return ck_file_options_read(&t->options, &o, NULL) == CK_OK && o.upsert;
}

static ck_guarantee file_guarantee(const ck_table_decl *t, bool checkpoints, const char **why) {
    ck_file_options o;
    if (ck_file_options_read(&t->options, &o, NULL) == CK_OK && o.is_stdin) {
        *why = "standard input cannot be read again";
        return CK_NO_GUARANTEE;
    }
    if (!checkpoints) {
        *why = "there is no checkpoint directory to continue from";
        return CK_NO_GUARANTEE;
    }
    if (!o.exactly_once) {
        *why = "delivery = 'at_least_once': parts appear before a checkpoint has them";
        return CK_AT_LEAST_ONCE;
    }
    *why = "parts appear when a checkpoint commits them";
    return CK_EXACTLY_ONCE;
}

static const char *read_once(const ck_table_decl *t) {
    ck_file_options o;
    bool is_stdin = ck_file_options_read(&t->options, &o, NULL) == CK_OK && o.is_stdin;
    return is_stdin ? "standard input cannot be read again" : NULL;
}

/* Unpacking costs more than keeping the rows, and what is said of bad records would be said twice. */
static bool read_again(const ck_table_decl *t) {
    ck_file_options o;
    if (ck_file_options_read(&t->options, &o, NULL) != CK_OK) return false;
    bool packed = (o.compression && (strcmp(o.compression, "gzip") == 0 || strcmp(o.compression, "zstd") == 0)) ||
                  ends_with(o.path, ".gz") || ends_with(o.path, ".zst");
    return !packed && !o.follow && !o.is_stdin && o.on_error == CK_ON_ERROR_FAIL && !(o.rate_limit > 0);
}

/* A path without what does not change where it leads: "./out//x/" is "out/x". */
static char *plain_path(ck_arena *a, const char *path) {
    char *out = ck_arena_strdup(a, path), *to = out;
    if (!out) return NULL;
    if (*path == '/') *to++ = '/';
    for (size_t n; *path; path += n) {
        path += strspn(path, "/");
        n = strcspn(path, "/");
        if (n == 0 || (n == 1 && *path == '.')) continue;
        if (to > out && to[-1] != '/') *to++ = '/';
        memcpy(to, path, n);
        to += n;
    }
    *to = 0;
    return out;
}

static ck_status one_table_only(const ck_table_decl *t, bool as_sink, ck_arena *a, const char **out) {
    ck_file_options o;
    *out = NULL;
    if (ck_file_options_read(&t->options, &o, NULL) != CK_OK) return CK_OK;
    if (!as_sink) {
        if (o.is_stdin) *out = "standard input";
        return CK_OK;
    }
    const char *path = plain_path(a, o.path);
    *out = path ? ck_arena_printf(a, "the directory %s", *path ? path : ".") : NULL;
    return *out ? CK_OK : CK_NOMEM;
}

const ck_connector_desc ck_connector_file = {
    .name = "file",
    .options = file_options,
    .option_count = CK_ARRAY_COUNT(file_options),
    .source_type = "source.file",
    .sink_type = "sink.file",
    .lookup_type = "lookup.file",
    .check = file_check,
    .bounded = reads_to_an_end,
    .accepts_changes = is_upsert,
    .accepts_upserts = is_upsert,
    .guarantee = file_guarantee,
    .once = read_once,
    .again = read_again,
    .exclusive = one_table_only,
};
