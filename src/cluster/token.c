#include "cluster/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/durable.h"
#include "os/fs.h"
#include "os/random.h"

static ck_status check_private(const char *dir, ck_error *err) {
    struct stat st;
    if (lstat(dir, &st) != 0) return ck_fail_errno(err, errno, "looking at %s", dir);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return ck_fail(err, CK_REFUSED, "%s is not a directory that is yours alone (mode 0700)", dir);
    return CK_OK;
}

ck_status ck_runtime_dir(ck_proc *proc, ck_arena *a, const char **out, ck_error *err) {
    const char *base = getenv("XDG_RUNTIME_DIR");
    const char *dir = base && base[0] == '/' ? ck_arena_printf(a, "%s/clink", base)
                                             : ck_arena_printf(a, "/tmp/clink-%ld", (long)geteuid());
    if (!dir) return ck_nomem(err, a->mem, 0);
    ck_status s = proc->fs->mkdir(proc->fs, dir, err);
    if (s != CK_OK && s != CK_EXISTS) return s;
    *out = dir;
    return check_private(dir, err);
}

static ck_status path_of(ck_proc *proc, ck_arena *a, const char *file, uint16_t port, const char **out, ck_error *err) {
    *out = file;
    if (file) return CK_OK;
    const char *dir;
    CK_TRY(ck_runtime_dir(proc, a, &dir, err));
    *out = ck_arena_printf(a, "%s/token-%u", dir, port);
    return *out ? CK_OK : ck_nomem(err, a->mem, 0);
}

void ck_token_make(ck_proc *proc, ck_token *out) {
    for (int i = 0; i < CK_TOKEN_CHARS / 16; i++)
        snprintf(out->text + i * 16, 17, "%016llx", (unsigned long long)ck_random_u64(proc));
}

static ck_status find(ck_proc *proc, ck_arena *a, const char *file, uint16_t port, ck_token *out, ck_error *err) {
    const char *path;
    ck_view text;
    CK_TRY(path_of(proc, a, file, port, &path, err));
    ck_status s = ck_fs_read_all(proc, path, CK_TOKEN_CHARS + 2, a, &text, err);
    if (s == CK_NOTFOUND) return ck_fail(err, s, "there is no %s: no coordinator of yours has port %u", path, port);
    if (s != CK_OK) return s;
    while (text.n && text.p[text.n - 1] == '\n') text.n--;
    if (text.n != CK_TOKEN_CHARS) return ck_fail(err, CK_CORRUPT, "%s does not hold a token", path);
    memcpy(out->text, text.p, CK_TOKEN_CHARS);
    out->text[CK_TOKEN_CHARS] = 0;
    return CK_OK;
}

enum { ARENA_BYTES_MAX = 64 << 10 };

ck_status ck_token_publish(ck_proc *proc, const char *file, uint16_t port, const ck_token *t, ck_error *err) {
    ck_arena a;
    const char *path;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), ARENA_BYTES_MAX);
    ck_status s = path_of(proc, &a, file, port, &path, err);
    if (s == CK_OK) s = ck_durable_replace_bytes(proc, path, ck_view_of(t->text), err);
    ck_arena_destroy(&a);
    return s;
}

ck_status ck_token_find(ck_proc *proc, const char *file, uint16_t port, ck_token *out, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_proc_mem(proc, CK_MEM_PLAN), ARENA_BYTES_MAX);
    ck_status s = find(proc, &a, file, port, out, err);
    ck_arena_destroy(&a);
    return s;
}

bool ck_token_equal(const ck_token *t, ck_view other) {
    unsigned char differs = other.n != CK_TOKEN_CHARS;
    for (size_t i = 0; i < CK_TOKEN_CHARS; i++) {
        char c = i < other.n ? other.p[i] : (char)0;
        differs |= (unsigned char)(t->text[i] ^ c);
    }
    return !differs;
}
