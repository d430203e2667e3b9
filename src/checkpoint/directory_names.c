/* Names in a checkpoint directory, and walking over it. */
#include "checkpoint/directory_int.h"

#include <inttypes.h>

bool ck_id_parse(const char *text, size_t n, uint64_t *id) {
    uint64_t v = 0;
    if (n == 0 || (n > 1 && text[0] == '0')) return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v)) return false;
    }
    *id = v;
    return v <= INT64_MAX;
}

static const struct {
    const char *prefix, *suffix;
    ck_name_kind kind;
} known_names[] = {
    {"checkpoint-", ".json", CK_NAME_MANIFEST},
    {"checkpoint-", ".committed", CK_NAME_COMMITTED},
    {"checkpoint-", ".abandoned", CK_NAME_ABANDONED},
    {"checkpoint-", ".snap", CK_NAME_DATA},
    {"delta-", ".snap", CK_NAME_DATA},
    {"inflight-", ".cap", CK_NAME_DATA},
    {"wal-", ".arrow", CK_NAME_DATA},
    {"changelog-", ".snap", CK_NAME_DATA},
};

static ck_name_kind parse_plain(const char *name, size_t n, uint64_t *id) {
    static const char snap[] = ".snap";
    size_t tail = sizeof snap - 1;
    if (n > tail && memcmp(name + n - tail, snap, tail) == 0 && ck_id_parse(name, n - tail, id)) return CK_NAME_DATA;
    for (size_t i = 0; i < CK_ARRAY_COUNT(known_names); i++) {
        size_t p = strlen(known_names[i].prefix), s = strlen(known_names[i].suffix);
        if (n > p + s && memcmp(name, known_names[i].prefix, p) == 0 &&
            memcmp(name + n - s, known_names[i].suffix, s) == 0 && ck_id_parse(name + p, n - p - s, id))
            return known_names[i].kind;
    }
    /* Others that carry an id (checkpoint-N.pending-E, a RocksDB folder checkpoint-N): it counts as seen. */
    for (size_t i = 0; i < CK_ARRAY_COUNT(known_names); i++) {
        size_t p = strlen(known_names[i].prefix);
        if (n <= p || memcmp(name, known_names[i].prefix, p) != 0) continue;
        size_t digits = strspn(name + p, "0123456789");
        if (digits && ck_id_parse(name + p, digits, id)) return CK_NAME_OTHER;
    }
    *id = 0;
    return CK_NAME_OTHER;
}

ck_name_kind ck_name_parse(const char *name, uint64_t *id) {
    static const char temporary[] = ".tmp-";
    if (strncmp(name, temporary, sizeof temporary - 1) != 0) return parse_plain(name, strlen(name), id);
    const char *plain = name + sizeof temporary - 1, *end = strrchr(plain, '-');
    parse_plain(plain, end ? (size_t)(end - plain) : strlen(plain), id);
    return CK_NAME_TEMPORARY;
}

const char *ck_checkpoint_path_manifest(ck_arena *a, uint64_t checkpoint) {
    return ck_arena_printf(a, "checkpoint-%" PRIu64 ".json", checkpoint);
}
const char *ck_checkpoint_path_committed(ck_arena *a, uint64_t checkpoint) {
    return ck_arena_printf(a, "checkpoint-%" PRIu64 ".committed", checkpoint);
}
const char *ck_checkpoint_path_file(ck_arena *a, uint64_t vertex, uint32_t subtask, uint64_t checkpoint,
                                    ck_file_kind kind) {
    static const char *const forms[CK_FILE_KINDS][2] = {
        {"checkpoint", "snap"}, {"delta", "snap"}, {"inflight", "cap"}, {"wal", "arrow"}, {"changelog", "snap"}};
    if (kind == CK_FILE_MATERIALIZED)
        return ck_arena_printf(a, "%" PRIu64 "/%" PRIu32 "/" CK_MATERIALIZED "/%" PRIu64 ".snap", vertex, subtask,
                               checkpoint);
    return ck_arena_printf(a, "%" PRIu64 "/%" PRIu32 "/%s-%" PRIu64 ".%s", vertex, subtask, forms[kind][0], checkpoint,
                           forms[kind][1]);
}

const char *ck_dir_join(ck_arena *a, const char *dir, const char *name) {
    return ck_arena_printf(a, "%s/%s", dir, name);
}

/* ---- walking ---- */

typedef struct walk {
    const ck_checkpoint_dir *d;
    ck_dir_visit fn;
    void *arg;
} walk;

static bool is_number(const char *name) {
    uint64_t id;
    size_t n = strlen(name); /* op ids go up to 2^64: digits are enough here */
    return n > 0 && n <= 20 && strspn(name, "0123456789") == n && (ck_id_parse(name, n, &id) || n >= 19);
}

/* depth 0: the root, 1: a vertex, 2: a subtask, 3: its materialisations. */
static ck_status walk_folder(const walk *w, const char *relative, int depth, ck_arena *a, ck_error *err) {
    ck_fs *fs = w->d->proc->fs;
    ck_arena_mark mark = ck_arena_mark_now(a);
    const char *path = *relative ? ck_dir_join(a, w->d->path, relative) : w->d->path;
    const char **names;
    size_t count;
    if (!path) return ck_nomem(err, a->mem, 0);
    CK_TRY(fs->list(fs, path, a, &names, &count, err));
    for (size_t i = 0; i < count; i++) {
        const char *below = *relative ? ck_dir_join(a, relative, names[i]) : names[i];
        if (!below) return ck_nomem(err, a->mem, 0);
        bool folder = depth < 2 ? is_number(names[i]) : depth == 2 && strcmp(names[i], CK_MATERIALIZED) == 0;
        if (folder) {
            const char *full = ck_dir_join(a, w->d->path, below);
            ck_stat st;
            if (!full) return ck_nomem(err, a->mem, 0);
            folder = fs->stat(fs, full, &st, NULL) == CK_OK && st.is_dir;
        }
        if (folder)
            CK_TRY(walk_folder(w, below, depth + 1, a, err));
        else if (depth != 1)
            CK_TRY(w->fn(w->arg, below, names[i], err));
    }
    ck_arena_reset_to(a, mark);
    return CK_OK;
}

ck_status ck_dir_walk(const ck_checkpoint_dir *d, ck_dir_visit fn, void *arg, ck_error *err) {
    const walk w = {d, fn, arg};
    ck_arena a;
    ck_arena_init(&a, d->mem, SIZE_MAX);
    ck_status s = walk_folder(&w, "", 0, &a, err);
    ck_arena_destroy(&a);
    return s;
}

/* ---- --restore ---- */

ck_status ck_restore_point_parse(ck_arena *a, const char *text, const char **dir, uint64_t *checkpoint, ck_error *err) {
    *dir = NULL, *checkpoint = 0;
    if (strcmp(text, "latest") == 0) return CK_OK;
    if (ck_id_parse(text, strlen(text), checkpoint)) {
        if (*checkpoint > 0) return CK_OK;
        return ck_fail(err, CK_INVALID, "there is no checkpoint 0 to restore");
    }
    const char *colon = strrchr(text, ':');
    size_t n = strlen(text);
    if (colon) {
        if (!ck_id_parse(colon + 1, strlen(colon + 1), checkpoint) || *checkpoint == 0)
            return ck_fail(err, CK_INVALID, "'%s' is not latest, N, DIR or DIR:N: '%s' is no checkpoint", text,
                           colon + 1);
        n = (size_t)(colon - text);
    }
    if (n == 0) return ck_fail(err, CK_INVALID, "'%s' is not latest, N, DIR or DIR:N", text);
    *dir = ck_arena_strndup(a, text, n);
    return *dir ? CK_OK : ck_nomem(err, a->mem, n);
}
