/* Where the output of a table of files goes, looked at before anything runs: a path that is a file, and parts that
 * another run has left, which this one adds to. */
#include "connector/file/sink_int.h"

/* "part-<8 hex>-<subtask>-<n>.<ext>" of another job than this one. */
static bool is_foreign_part(const char *name, const char *ext, const char *job_uuid) {
    size_t n = strlen(name), m = strlen(ext);
    if (strncmp(name, "part-", 5) != 0 || n < 13 + m || name[13] != '-') return false;
    return strncmp(name + 5, job_uuid, 8) != 0 && name[n - m - 1] == '.' && strcmp(name + n - m, ext) == 0;
}

static ck_status look_inside(const ck_op_spec *spec, ck_arena *a, const ck_sink_table *t, const ck_file_options *o,
                             ck_error *err) {
    ck_fs *fs = spec->proc->fs;
    const char **names;
    size_t count, foreign = 0;
    CK_TRY(fs->list(fs, o->path, a, &names, &count, err));
    for (size_t i = 0; i < count; i++) foreign += is_foreign_part(names[i], o->format, spec->settings->job_uuid);
    if (foreign && !o->upsert)
        ck_log_line(spec->proc->log, CK_LOG_WARN,
                    "warning: %s: the directory %s holds %zu file%s of earlier runs, and this run adds to them%s",
                    t->table, o->path, foreign, foreign == 1 ? "" : "s",
                    spec->settings->checkpoints ? "" : "; with a checkpoint directory a job goes on instead");
    return CK_OK;
}

/* The directory is to be made: what of its path is there must be directories. */
static ck_status look_above(ck_fs *fs, ck_arena *a, const char *path, ck_error *err) {
    char *at = ck_arena_strdup(a, path);
    if (!at) return ck_nomem(err, a->mem, strlen(path));
    for (char *slash; (slash = strrchr(at, '/')) && slash > at;) {
        ck_stat st;
        *slash = 0;
        ck_status s = fs->stat(fs, at, &st, err);
        if (s == CK_OK)
            return st.is_dir ? CK_OK : ck_fail(err, CK_REFUSED, "%s cannot be made: %s is a file", path, at);
        if (s != CK_NOTFOUND) return s;
        ck_error_reset(err);
    }
    return CK_OK;
}

static ck_status look(const ck_op_spec *spec, ck_arena *a, ck_error *err) {
    ck_sink_table t;
    ck_file_options o;
    ck_stat st;
    CK_TRY(ck_sink_table_read(a, spec, &t, NULL, err));
    CK_TRY(ck_file_options_read(&t.options, &o, err));
    ck_status s = spec->proc->fs->stat(spec->proc->fs, o.path, &st, err);
    if (s == CK_NOTFOUND) {
        ck_error_reset(err);
        s = look_above(spec->proc->fs, a, o.path, err);
        if (s != CK_OK) ck_error_prefix(err, "table %s: ", t.table);
        return s;
    }
    if (s == CK_OK && !st.is_dir)
        s = ck_fail(err, CK_REFUSED, "%s is a file; a table that is written is a directory of parts", o.path);
    if (s == CK_OK) s = look_inside(spec, a, &t, &o, err);
    if (s != CK_OK) ck_error_prefix(err, "table %s: ", t.table);
    return s;
}

ck_status ck_file_sink_look(const ck_op_spec *spec, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_proc_mem(spec->proc, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = look(spec, &a, err);
    ck_arena_destroy(&a);
    return s;
}
