/* Which files a path names, and how they are cut into splits. A cut stands where a record begins: behind a line end for
 * json, behind a line end outside quotes for csv, for which the quotes of the whole file are counted once, here. */
#include "connector/file/file_int.h"

#include <yyjson.h>

#include "base/json.h"
#include "connector/show_raw.h"

/* ---- JSON of a split ---- */

static const char *const compression_names[] = {"none", "gzip", "zstd"};

ck_status ck_file_split_print(ck_arena *a, const ck_file_split *s, const char **out, ck_error *err) {
    struct yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(a, &doc, err));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    bool ok = yyjson_mut_obj_add_str(doc, root, "path", s->path) &&
              yyjson_mut_obj_add_uint(doc, root, "start", s->start) &&
              (s->end == UINT64_MAX || yyjson_mut_obj_add_uint(doc, root, "end", s->end)) &&
              yyjson_mut_obj_add_uint(doc, root, "position", s->position) &&
              (s->compression == CK_COMPRESSION_NONE ||
               yyjson_mut_obj_add_str(doc, root, "compression", compression_names[s->compression])) &&
              (s->inode == 0 || yyjson_mut_obj_add_uint(doc, root, "inode", s->inode)) &&
              (s->time_us == INT64_MIN || yyjson_mut_obj_add_sint(doc, root, "time", s->time_us));
    if (!ok) return ck_nomem(err, a->mem, strlen(s->path));
    ck_view text;
    ck_status st = ck_json_write(a, doc, &text, err);
    if (st == CK_INVALID) { /* nothing else in it can be wrong */
        char shown[300];
        ck_show_raw(shown, sizeof shown, ck_view_of(s->path));
        return ck_fail(err, CK_INVALID, "the name of the file %s is not UTF-8; give it another one", shown);
    }
    CK_TRY(st);
    *out = text.p;
    return CK_OK;
}

static bool member_u64(yyjson_val *root, const char *name, uint64_t deflt, uint64_t *out) {
    yyjson_val *v = yyjson_obj_get(root, name);
    *out = v ? yyjson_get_uint(v) : deflt;
    return !v || yyjson_is_uint(v);
}

ck_status ck_file_split_parse(ck_arena *a, const char *spec, ck_file_split *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(spec), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *path = yyjson_obj_get(root, "path");
    bool ok = yyjson_is_str(path) && strlen(yyjson_get_str(path)) == yyjson_get_len(path);
    out->path = yyjson_get_str(path);
    ok = ok && member_u64(root, "start", 0, &out->start) && member_u64(root, "end", UINT64_MAX, &out->end) &&
         member_u64(root, "position", out->start, &out->position) && member_u64(root, "inode", 0, &out->inode);
    yyjson_val *time = yyjson_obj_get(root, "time");
    out->time_us = time ? yyjson_get_sint(time) : INT64_MIN;
    ok = ok && (!time || (yyjson_is_int(time) && ck_event_time_usable(out->time_us)));
    yyjson_val *packed = yyjson_obj_get(root, "compression");
    out->compression = CK_COMPRESSION_NONE;
    for (size_t i = 0; ok && packed && i < CK_ARRAY_COUNT(compression_names); i++)
        if (yyjson_equals_str(packed, compression_names[i])) out->compression = (ck_compression)i;
    ok = ok && (!packed || out->compression != CK_COMPRESSION_NONE);
    if (!ok || out->start > out->end || out->position > out->end)
        return ck_fail(err, CK_CORRUPT, "this is no split of a file: %.200s", spec);
    return CK_OK;
}

/* ---- files ---- */

static bool is_pattern(const char *path) { return strpbrk(path, "*?[") != NULL; }

/* Files of /proc and the like say that they are empty and are not: they have no size, nothing to cut, and change while
 * they are read. */
static ck_status must_have_size(ck_file *f, const char *path, ck_error *err) {
    ck_stat st;
    char byte;
    size_t got;
    CK_TRY(f->fs->fstat(f, &st, err));
    if (st.bytes > 0) return CK_OK;
    CK_TRY(f->fs->pread(f, &byte, 1, 0, &got, err));
    if (got == 0) return CK_OK;
    return ck_fail(err, CK_INVALID,
                   "%s says it is empty and is not, as files of /proc do; pipe it to standard input and use path = '-'",
                   path);
}

static ck_status add_path(ck_arena *a, const char *path, const char **paths, size_t *count, ck_error *err) {
    paths[*count] = ck_arena_strdup(a, path);
    return paths[(*count)++] ? CK_OK : ck_nomem(err, a->mem, strlen(path));
}

/* Names of regular files in a directory that are not hidden. */
static ck_status list_directory(ck_proc *proc, const char *path, ck_arena *a, const char ***paths, size_t *count,
                                ck_error *err) {
    const char **names;
    size_t n;
    CK_TRY(proc->fs->list(proc->fs, path, a, &names, &n, err));
    *paths = ck_arena_array(a, n + 1, sizeof **paths);
    if (!*paths) return ck_nomem(err, a->mem, n * sizeof **paths);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        if (names[i][0] == '.') continue;
        size_t slash = strlen(path);
        const char *full = ck_arena_printf(a, "%s%s%s", path, slash && path[slash - 1] == '/' ? "" : "/", names[i]);
        ck_stat st;
        if (!full) return ck_nomem(err, a->mem, strlen(path) + strlen(names[i]));
        CK_TRY(proc->fs->stat(proc->fs, full, &st, err));
        if (st.is_file) (*paths)[(*count)++] = full;
    }
    return *count ? CK_OK : ck_fail(err, CK_NOTFOUND, "the directory %s has no files", path);
}

static ck_status list_pattern(ck_proc *proc, const char *path, ck_arena *a, const char ***paths, size_t *count,
                              ck_error *err) {
    const char **all;
    size_t n;
    CK_TRY(ck_fs_glob(proc, path, a, &all, &n, err));
    *paths = ck_arena_array(a, n + 1, sizeof **paths);
    if (!*paths) return ck_nomem(err, a->mem, n * sizeof **paths);
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        ck_stat st;
        CK_TRY(proc->fs->stat(proc->fs, all[i], &st, err));
        if (st.is_file) CK_TRY(add_path(a, all[i], *paths, count, err));
    }
    return *count ? CK_OK : ck_fail(err, CK_NOTFOUND, "no file matches %s", path);
}

ck_status ck_file_list(ck_proc *proc, const char *path, ck_arena *a, const char ***paths, size_t *count,
                       ck_error *err) {
    ck_stat st;
    ck_status s = proc->fs->stat(proc->fs, path, &st, err);
    if (s == CK_NOTFOUND && is_pattern(path)) { /* a file may have such a name, too */
        CK_TRY(list_pattern(proc, path, a, paths, count, err));
    } else if (s == CK_NOTFOUND) {
        return ck_fail(err, CK_NOTFOUND, "there is no file %s", path);
    } else if (s != CK_OK) {
        return s;
    } else if (st.is_dir) {
        CK_TRY(list_directory(proc, path, a, paths, count, err));
    } else {
        if (!st.is_file)
            return ck_fail(err, CK_INVALID, "%s is not a regular file; pipe it to standard input and use path = '-'",
                           path);
        *paths = ck_arena_array(a, 1, sizeof **paths);
        if (!*paths) return ck_nomem(err, a->mem, sizeof **paths);
        *count = 0;
        CK_TRY(add_path(a, path, *paths, count, err));
    }
    for (size_t i = 0; i < *count; i++) { /* what cannot be read is said before anything runs */
        ck_file *f;
        CK_TRY(proc->fs->open(proc->fs, (*paths)[i], CK_OPEN_READ, &f, err));
        s = must_have_size(f, (*paths)[i], err);
        proc->fs->close(f);
        CK_TRY(s);
    }
    return CK_OK;
}

/* ---- cutting ---- */

typedef struct cutter {
    ck_proc *proc;
    ck_file *file;
    const char *format;
    char *buf; /* CK_READ_BUFFER_BYTES */
    bool in_quotes;
} cutter;

static ck_status cutter_read(cutter *c, uint64_t at, uint64_t most, size_t *got, ck_error *err) {
    size_t n = most < CK_READ_BUFFER_BYTES ? (size_t)most : CK_READ_BUFFER_BYTES;
    return c->proc->fs->pread(c->file, c->buf, n, at, got, err);
}

/* Follows the quotes over [from, to). */
static ck_status count_quotes(cutter *c, uint64_t from, uint64_t to, ck_error *err) {
    size_t got = 1;
    for (; from < to && got > 0; from += got) {
        CK_TRY(cutter_read(c, from, to - from, &got, err));
        c->in_quotes = ck_format_quotes(c->buf, got, c->in_quotes);
    }
    return CK_OK;
}

/* The first record boundary behind byte `at`; `bytes` where there is none. The quotes are right at `at`, and at *out
 * afterwards. */
static ck_status find_boundary(cutter *c, uint64_t at, uint64_t bytes, uint64_t *out, ck_error *err) {
    *out = bytes;
    while (at < bytes) {
        size_t got, skip;
        CK_TRY(cutter_read(c, at, bytes - at, &got, err));
        if (got == 0) return CK_OK;
        ck_status s = ck_format_sync(c->format, c->buf, got, &c->in_quotes, &skip);
        if (s == CK_OK) {
            *out = at + skip;
            return CK_OK;
        }
        if (s != CK_MORE) return s;
        at += got;
    }
    return CK_OK;
}

static ck_status cut_open_file(cutter *c, uint64_t bytes, uint32_t pieces, uint64_t *cuts, uint32_t *count,
                               ck_error *err) {
    bool csv = strcmp(c->format, "csv") == 0;
    uint64_t counted = 0; /* quotes before it are counted */
    cuts[0] = 0;
    *count = 0;
    for (uint32_t i = 1; i < pieces; i++) {
        uint64_t share = bytes / pieces * i, boundary;
        if (share <= cuts[*count] || share == 0) continue;
        if (csv) CK_TRY(count_quotes(c, counted, share - 1, err));
        /* From the byte before: a record that begins at the share itself is found. */
        CK_TRY(find_boundary(c, share - 1, bytes, &boundary, err));
        counted = boundary;
        if (boundary >= bytes) break;
        cuts[++*count] = boundary;
        c->in_quotes = false; /* a record begins here */
    }
    cuts[++*count] = bytes;
    return CK_OK;
}

ck_status ck_file_cut(ck_proc *proc, const char *path, const char *format, uint64_t bytes, uint32_t pieces,
                      uint64_t *cuts, uint32_t *count, ck_error *err) {
    cuts[0] = 0;
    cuts[1] = bytes;
    *count = 1;
    if (pieces <= 1 || bytes == 0) return CK_OK;
    ck_mem mem = ck_proc_mem(proc, CK_MEM_DECODE);
    cutter c = {proc, NULL, format, ck_alloc(mem, CK_READ_BUFFER_BYTES), false};
    if (!c.buf) return ck_nomem(err, mem, CK_READ_BUFFER_BYTES);
    ck_status s = proc->fs->open(proc->fs, path, CK_OPEN_READ, &c.file, err);
    if (s == CK_OK) s = cut_open_file(&c, bytes, pieces, cuts, count, err);
    proc->fs->close(c.file);
    ck_free(mem, c.buf, CK_READ_BUFFER_BYTES);
    return s;
}

/* ---- enumerating ---- */

static ck_status add_split(ck_split_list *out, const ck_file_split *s, ck_error *err) {
    const char *spec, *id;
    CK_TRY(ck_file_split_print(out->arena, s, &spec, err));
    id = s->end == UINT64_MAX ? s->path
                              : ck_arena_printf(out->arena, "%s:%llu-%llu", s->path, (unsigned long long)s->start,
                                                (unsigned long long)s->end);
    if (!id || ck_split_list_add(out, id, spec) != CK_OK) return ck_nomem(err, out->arena->mem, strlen(spec));
    return CK_OK;
}

static ck_status split_file(ck_proc *proc, const char *path, const ck_file_options *o, uint32_t parallelism,
                            ck_split_list *out, ck_error *err) {
    ck_stat st;
    ck_compression c;
    CK_TRY(ck_unpack_kind(proc, o->compression, path, &c, err));
    if (c != CK_COMPRESSION_NONE) {
        ck_file_split whole = {path, 0, UINT64_MAX, 0, 0, INT64_MIN, c};
        return add_split(out, &whole, err);
    }
    CK_TRY(proc->fs->stat(proc->fs, path, &st, err));
    uint64_t most = st.bytes / CK_SPLIT_BYTES_MIN;
    uint32_t pieces = most < parallelism ? (uint32_t)most : parallelism, count;
    uint64_t *cuts = ck_arena_array(out->arena, parallelism + 2u, sizeof *cuts);
    if (!cuts) return ck_nomem(err, out->arena->mem, parallelism * sizeof *cuts);
    CK_TRY(ck_file_cut(proc, path, o->format, st.bytes, pieces, cuts, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        ck_file_split s = {path, cuts[i], cuts[i + 1], cuts[i], 0, INT64_MIN, CK_COMPRESSION_NONE};
        CK_TRY(add_split(out, &s, err));
    }
    return CK_OK;
}

static ck_status must_be_plain(ck_proc *proc, const ck_file_options *o, const char *path, ck_error *err) {
    ck_compression c;
    CK_TRY(ck_unpack_kind(proc, o->compression, path, &c, err));
    if (c == CK_COMPRESSION_NONE) return CK_OK;
    return ck_fail(err, CK_INVALID, "%s is compressed, and a compressed file cannot be followed", path);
}

/* Files are listed once: who follows a directory should know that it is not looked into again. */
static void tell_of_later_files(const ck_op_spec *spec, const char *table, const char *path, const char **paths,
                                size_t count) {
    if (count == 1 && strcmp(paths[0], path) == 0) return;
    ck_log_line(
        spec->proc->log, CK_LOG_WARN,
        "warning: %s: the %zu file%s of %s that %s there now %s followed; one that comes later is read when the "
        "job is started again",
        table, count, count == 1 ? "" : "s", path, count == 1 ? "is" : "are", count == 1 ? "is" : "are");
}

ck_status ck_file_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    ck_source_table t;
    ck_file_options o;
    CK_TRY(ck_source_table_read(out->arena, spec, &t, err));
    CK_TRY(ck_file_options_read(&t.options, &o, err));
    if (o.is_stdin) {
        ck_file_split s = {CK_STDIN_PATH, 0, UINT64_MAX, 0, 0, INT64_MIN, CK_COMPRESSION_NONE};
        return add_split(out, &s, err);
    }
    const char **paths;
    size_t count;
    ck_status s = ck_file_list(spec->proc, o.path, out->arena, &paths, &count, err);
    for (size_t i = 0; s == CK_OK && i < count; i++) {
        ck_file_split whole = {paths[i], 0, UINT64_MAX, 0, 0, INT64_MIN, CK_COMPRESSION_NONE};
        if (o.follow) s = must_be_plain(spec->proc, &o, paths[i], err);
        if (s == CK_OK)
            s = o.follow ? add_split(out, &whole, err) : split_file(spec->proc, paths[i], &o, parallelism, out, err);
    }
    if (s == CK_OK && o.follow) tell_of_later_files(spec, t.table, o.path, paths, count);
    if (s != CK_OK) ck_error_prefix(err, "table %s: ", t.table);
    return s;
}

/* ---- reading again ---- */

/* Of a compressed file only the whole is to be had: its pieces begin nowhere. */
ck_status ck_file_rewind(const ck_op_spec *spec, const ck_split *stored, ck_split_list *out, ck_error *err) {
    ck_file_split s;
    const char *text;
    (void)spec;
    CK_TRY(ck_file_split_parse(out->arena, stored->spec, &s, err));
    if (strcmp(s.path, CK_STDIN_PATH) == 0) return ck_fail(err, CK_REFUSED, "standard input is read once");
    bool packed = s.compression != CK_COMPRESSION_NONE;
    if (packed && s.position != s.end && s.position != s.start)
        return ck_fail(err, CK_REFUSED, "%s is compressed, and was not read to its end", s.path);
    s.end = packed && s.position != s.start ? UINT64_MAX : s.position;
    s.position = s.start;
    s.time_us = INT64_MIN;
    CK_TRY(ck_file_split_print(out->arena, &s, &text, err));
    return ck_split_list_add(out, stored->id, text) == CK_OK ? CK_OK : ck_nomem(err, out->arena->mem, strlen(text));
}
