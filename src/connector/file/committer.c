/* Makes prepared files real. What has happened is found by looking, never by guessing:
 *
 *   staged   final                       part (append)                          rows file (upsert)
 *   there    -                           rename, then done                      rename over, then done
 *   there    there, as recorded          a rename by two links was cut: the     rename over, then done
 *                                        staged name goes, done
 *   there    there, something else       error                                  rename over (that is what it is for)
 *   -        there, as recorded          done before                            done before
 *   -        there, something else       error                                  a later commit replaced it; the state
 *                                                                               writes it again
 *   -        -                           error                                  error
 *
 * "as recorded" is size and CRC-32C. A part whose directory could not be synced is staged again. Every way that ends
 * well ends with the directory synced. */
#include "connector/file/sink_int.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct file_committer {
    ck_proc *proc;
    ck_mem mem;
    ck_arena arena; /* the directory's name */
    const char *dir, *ext;
    bool numbered_by_checkpoint; /* part numbers say which checkpoint they are of */
} file_committer;

ck_status ck_file_committer_create(const ck_op_spec *spec, ck_mem mem, void **self, ck_error *err) {
    ck_sink_table t;
    ck_file_options o;
    file_committer *c = ck_alloc_zero(mem, sizeof *c);
    if (!c) return ck_nomem(err, mem, sizeof *c);
    c->proc = spec->proc;
    c->mem = mem;
    ck_arena_init(&c->arena, ck_mem_as(mem, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_status s = ck_sink_table_read(&c->arena, spec, &t, NULL, err);
    if (s == CK_OK) s = ck_file_options_read(&t.options, &o, err);
    if (s == CK_OK) {
        c->dir = ck_arena_strdup(&c->arena, o.path);
        c->ext = ck_arena_strdup(&c->arena, o.format);
        c->numbered_by_checkpoint = o.exactly_once && !o.upsert;
        if (!c->dir || !c->ext) s = ck_nomem(err, c->arena.mem, strlen(o.path));
    }
    if (s == CK_OK) {
        *self = c;
    } else {
        ck_arena_destroy(&c->arena);
        ck_free(mem, c, sizeof *c);
    }
    return s;
}

static void committer_close(void *self) {
    file_committer *c = self;
    ck_arena_destroy(&c->arena);
    ck_free(c->mem, c, sizeof *c);
}

/* ---- looking ---- */

typedef enum sight { MISSING, AS_RECORDED, SOMETHING_ELSE } sight;

static ck_status look_at(file_committer *c, const char *path, const ck_sink_payload *p, sight *out, ck_error *err) {
    ck_fs *fs = c->proc->fs;
    ck_stat st;
    ck_file *f;
    ck_status s = fs->stat(fs, path, &st, err);
    *out = MISSING;
    if (s == CK_NOTFOUND) {
        ck_error_reset(err);
        return CK_OK;
    }
    if (s != CK_OK) return s;
    *out = SOMETHING_ELSE;
    if (!st.is_file || st.bytes != p->bytes) return CK_OK;
    CK_TRY(fs->open(fs, path, CK_OPEN_READ, &f, err));
    char *buf = ck_alloc(c->mem, CK_READ_BYTES);
    s = buf ? CK_OK : ck_nomem(err, c->mem, CK_READ_BYTES);
    uint32_t crc = 0;
    size_t got = 1;
    for (uint64_t at = 0; s == CK_OK && got > 0; at += got) {
        s = fs->pread(f, buf, CK_READ_BYTES, at, &got, err);
        if (s == CK_OK) crc = ck_crc32c(crc, buf, got);
    }
    fs->close(f);
    if (buf) ck_free(c->mem, buf, CK_READ_BYTES);
    if (s == CK_OK && crc == p->crc32c) *out = AS_RECORDED;
    return s;
}

static ck_status sync_dir(file_committer *c, ck_error *err) { return c->proc->fs->fsync_dir(c->proc->fs, c->dir, err); }

/* ---- committing ---- */

/* The directory that a file was renamed in. Where that fails the file goes back: a second sync may succeed and make
 * nothing durable, as what the first one lost counts as clean, but a second rename is synced anew. */
static ck_status sync_renamed(file_committer *c, const char *staged, const char *final, ck_error *err) {
    ck_status s = sync_dir(c, err);
    if (s != CK_OK && s != CK_REFUSED && c->proc->fs->rename(c->proc->fs, final, staged, NULL) != CK_OK)
        ck_error_prefix(err, "(%s may not last) ", final);
    return s;
}

static ck_status commit_part(file_committer *c, const ck_committable *part, const ck_sink_payload *p, ck_error *err) {
    ck_fs *fs = c->proc->fs;
    sight staged, final;
    CK_TRY(look_at(c, p->staged, p, &staged, err));
    if (staged == SOMETHING_ELSE)
        return ck_fail(err, CK_CORRUPT, "%s is not what was prepared for %s: its size or checksum differs", p->staged,
                       part->name);
    if (staged == AS_RECORDED) {
        ck_status s = fs->rename_noreplace(fs, p->staged, part->name, err);
        if (s == CK_OK) return sync_renamed(c, p->staged, part->name, err);
        if (s != CK_EXISTS) return s;
        ck_error_reset(err);
    }
    CK_TRY(look_at(c, part->name, p, &final, err));
    if (final == SOMETHING_ELSE)
        return ck_fail(err, CK_CORRUPT, "%s exists and is not the part that was prepared: its size or checksum differs",
                       part->name);
    if (final == MISSING)
        return ck_fail(err, CK_CORRUPT, "%s is lost: neither it nor the prepared %s is there", part->name, p->staged);
    if (staged == AS_RECORDED) CK_TRY(fs->unlink(fs, p->staged, err));
    return ck_durable_confirm(c->proc, part->name, err);
}

static bool parse_u64(const char **text, uint64_t *out) {
    char *end;
    if (**text < '0' || **text > '9') return false;
    *out = strtoull(*text, &end, 10);
    *text = end;
    return true;
}

static ck_status remove_name(file_committer *c, ck_arena *a, const char *name, ck_error *err) {
    const char *path = ck_arena_printf(a, "%s/%s", c->dir, name);
    if (!path) return ck_nomem(err, a->mem, strlen(name));
    ck_status s = c->proc->fs->unlink(c->proc->fs, path, err);
    if (s == CK_NOTFOUND) ck_error_reset(err);
    return s == CK_NOTFOUND ? CK_OK : s;
}

/* What this rows file makes stale: older staged ones of its subtask, and its own, which a crash may have left beside the
 * name it was renamed to: renaming one name of a file to another of it does nothing. With the last subtask, files of
 * subtasks there are no more. */
static ck_status remove_stale(file_committer *c, ck_arena *a, const ck_sink_payload *p, ck_error *err) {
    const char *base = strrchr(p->staged, '/'), **names;
    base = base ? base + 1 : p->staged;
    const char *number = strrchr(base, '-');
    size_t prefix = number ? (size_t)(number - base) + 1 : 0, count;
    uint64_t checkpoint = 0, other;
    bool known = number && (number++, parse_u64(&number, &checkpoint));
    CK_TRY(c->proc->fs->list(c->proc->fs, c->dir, a, &names, &count, err));
    for (size_t i = 0; i < count; i++) {
        const char *at = names[i] + prefix;
        bool older = known && strlen(names[i]) > prefix && strncmp(names[i], base, prefix) == 0 &&
                     parse_u64(&at, &other) && other <= checkpoint;
        bool gone = p->subtask + 1 == p->of && ck_sink_is_stale_rows(names[i], c->ext, p->of);
        if (older || gone) CK_TRY(remove_name(c, a, names[i], err));
    }
    return CK_OK;
}

static ck_status commit_rows(file_committer *c, ck_arena *a, const ck_committable *rows, const ck_sink_payload *p,
                             ck_error *err) {
    ck_fs *fs = c->proc->fs;
    sight staged, final;
    CK_TRY(look_at(c, p->staged, p, &staged, err));
    if (staged == SOMETHING_ELSE)
        return ck_fail(err, CK_CORRUPT, "%s is not what was prepared for %s: its size or checksum differs", p->staged,
                       rows->name);
    if (staged == AS_RECORDED) {
        CK_TRY(fs->rename(fs, p->staged, rows->name, err));
        CK_TRY(remove_stale(c, a, p, err));
        return sync_dir(c, err);
    }
    CK_TRY(look_at(c, rows->name, p, &final, err));
    if (final == MISSING)
        return ck_fail(err, CK_CORRUPT, "%s is lost: neither it nor the prepared %s is there", rows->name, p->staged);
    if (final == AS_RECORDED) CK_TRY(remove_stale(c, a, p, err)); /* an earlier life may have ended before it */
    return ck_durable_confirm(c->proc, rows->name, err);
}

static ck_status committer_commit(void *self, const ck_committable *committable, ck_error *err) {
    file_committer *c = self;
    ck_arena a;
    ck_sink_payload p;
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = ck_sink_payload_parse(&a, committable->payload, &p, err);
    if (s == CK_OK) s = p.replace ? commit_rows(c, &a, committable, &p, err) : commit_part(c, committable, &p, err);
    ck_arena_destroy(&a);
    return s;
}

/* ---- aborting ---- */

static bool is_kept(const file_committer *c, ck_arena *a, const char *path, const ck_committable *keep, size_t count) {
    (void)c;
    for (size_t i = 0; i < count; i++) {
        ck_sink_payload p;
        if (ck_sink_payload_parse(a, keep[i].payload, &p, NULL) == CK_OK && strcmp(p.staged, path) == 0) return true;
    }
    return false;
}

/* ".staged-<uuid>-...", also while it is still being written: ".tmp-.staged-<uuid>-...". */
static bool is_staged_by(const char *name, const char *job_uuid) {
    size_t n = strlen(job_uuid), tmp = strlen(".tmp-"), prefix = strlen(CK_STAGED_PREFIX);
    if (strncmp(name, ".tmp-", tmp) == 0) name += tmp;
    return strncmp(name, CK_STAGED_PREFIX, prefix) == 0 && strncmp(name + prefix, job_uuid, n) == 0 &&
           name[prefix + n] == '-';
}

/* "part-<8 hex>-<subtask>-<n>.<ext>" of this job; *checkpoint committed it. */
static bool is_part_of(const file_committer *c, const char *name, const char *job_uuid, uint64_t *checkpoint) {
    uint64_t subtask, n;
    if (strncmp(name, "part-", 5) != 0 || strncmp(name + 5, job_uuid, 8) != 0 || name[13] != '-') return false;
    name += 14;
    if (!parse_u64(&name, &subtask) || *name != '-') return false;
    name++;
    if (!parse_u64(&name, &n) || *name != '.' || strcmp(name + 1, c->ext) != 0) return false;
    *checkpoint = n / CK_PARTS_OF_CHECKPOINT;
    return true;
}

/* What is in the output directory; nothing where there is none. */
static ck_status list(file_committer *c, ck_arena *a, const char ***names, size_t *count, ck_error *err) {
    ck_stat st;
    *count = 0;
    ck_status s = c->proc->fs->stat(c->proc->fs, c->dir, &st, err);
    if (s == CK_NOTFOUND) ck_error_reset(err);
    if (s == CK_NOTFOUND || (s == CK_OK && !st.is_dir)) return CK_OK; /* the sink says what is wrong with it */
    if (s != CK_OK) return s;
    return c->proc->fs->list(c->proc->fs, c->dir, a, names, count, err);
}

/* Files that are replaced whole go back with the job. */
static ck_status check_newer(const file_committer *c, const char *const *names, size_t count, const char *job_uuid,
                             uint64_t restored, ck_error *err) {
    for (size_t i = 0; c->numbered_by_checkpoint && i < count; i++) {
        uint64_t checkpoint;
        if (is_part_of(c, names[i], job_uuid, &checkpoint) && checkpoint > restored)
            return ck_fail(err, CK_REFUSED,
                           "%s/%s was committed by checkpoint %llu, after the restored %llu: going back would write "
                           "its rows again (--allow-duplicates does it)",
                           c->dir, names[i], (unsigned long long)checkpoint, (unsigned long long)restored);
    }
    return CK_OK;
}

static ck_status abort_in(file_committer *c, ck_arena *a, const char *job_uuid, uint64_t restored,
                          const ck_committable *keep, size_t keep_count, bool allow_duplicates, ck_error *err) {
    const char **names;
    size_t count;
    bool removed = false;
    CK_TRY(list(c, a, &names, &count, err));
    if (!allow_duplicates) CK_TRY(check_newer(c, names, count, job_uuid, restored, err)); /* then undo */
    for (size_t i = 0; i < count; i++) {
        if (!is_staged_by(names[i], job_uuid)) continue;
        const char *slash = c->dir[strlen(c->dir) - 1] == '/' ? "" : "/";
        const char *path = ck_arena_printf(a, "%s%s%s", c->dir, slash, names[i]);
        if (!path) return ck_nomem(err, a->mem, strlen(names[i]));
        if (is_kept(c, a, path, keep, keep_count)) continue;
        CK_TRY(remove_name(c, a, names[i], err));
        removed = true;
    }
    return removed ? sync_dir(c, err) : CK_OK;
}

static ck_status committer_abort_others(void *self, const char *job_uuid, uint64_t restored, const ck_committable *keep,
                                        size_t keep_count, bool allow_duplicates, ck_error *err) {
    file_committer *c = self;
    if (!job_uuid || strlen(job_uuid) < 8) return ck_fail(err, CK_INVALID, "a job without a UUID has no staged files");
    ck_arena a;
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = abort_in(c, &a, job_uuid, restored, keep, keep_count, allow_duplicates, err);
    ck_arena_destroy(&a);
    return s;
}

static ck_status committer_check_behind(void *self, const char *job_uuid, const char *sink_uid, uint64_t restored,
                                        ck_error *err) {
    file_committer *c = self;
    const char **names;
    size_t count;
    ck_arena a;
    (void)sink_uid; /* the directory is the sink's */
    ck_arena_init(&a, ck_mem_as(c->mem, CK_MEM_PLAN), SIZE_MAX);
    ck_status s = list(c, &a, &names, &count, err);
    if (s == CK_OK) s = check_newer(c, names, count, job_uuid, restored, err);
    ck_arena_destroy(&a);
    return s;
}

const ck_committer_vtbl ck_file_committer_vtbl = {
    .struct_bytes = sizeof(ck_committer_vtbl),
    .commit = committer_commit,
    .abort_others = committer_abort_others,
    .check_behind = committer_check_behind,
    .close = committer_close,
};
