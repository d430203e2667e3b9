/* The table of fs.h over a simulated disk (simfs_int.h): paths, open files, armed errors, one lock around it all.
 * Memory is malloc's, not the proc's: what is on the disk outlives the process that a simulated crash drops. Paths
 * begin at the root, whether they say so or not; there are no symbolic links. */
#include "os/simfs.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "os/simfs_int.h"

enum { SIM_DEPTH_MAX = 256 };

struct sim_file {
    ck_file base;
    struct sim_file *next, *prev; /* all open files */
    sim_node *node;               /* NULL: it was open when the power went */
    ck_open_mode mode;
    size_t at; /* of read */
    char path[];
};

struct ck_simfs {
    ck_fs base;
    pthread_mutex_t lock; /* guards everything below */
    sim_disk disk;
    sim_file *files;
    uint64_t fail_at, calls; /* writes and fsyncs counted since armed; fail_at 0 = disarmed */
    int fail_errnum;
    bool fail_once;
};

static ck_simfs *of_fs(ck_fs *fs) { return (ck_simfs *)fs; }
static ck_simfs *of_file(ck_file *f) { return (ck_simfs *)f->fs; }
static void enter(ck_simfs *s) { pthread_mutex_lock(&s->lock); }
static ck_status leave(ck_simfs *s, ck_status status) {
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* 0, or the armed error for this write or fsync. */
static int armed_error(ck_simfs *s) {
    if (s->fail_at == 0) return 0;
    uint64_t n = ++s->calls;
    return (s->fail_once ? n == s->fail_at : n >= s->fail_at) ? s->fail_errnum : 0;
}

/* ---- paths ---- */

/* Where a path leads: the directory of its last component, that component's name, and what is there now. */
typedef struct sim_place {
    sim_node *above[SIM_DEPTH_MAX]; /* from the root to the directory, inclusive */
    size_t depth;
    sim_node *dir;
    char name[NAME_MAX + 1]; /* "" when the path is the root or ends in ..: then only node says anything */
    sim_node *node;          /* NULL: no such name */
} sim_place;

static int step_into(sim_place *p) { /* 0 or an errno: the path goes on, so the last component must be a directory */
    if (!p->node) return ENOENT;
    if (!p->node->is_dir) return ENOTDIR;
    if (p->name[0]) {
        if (p->depth == SIM_DEPTH_MAX) return ENAMETOOLONG;
        p->above[p->depth++] = p->node;
    }
    p->dir = p->node;
    return 0;
}

static int resolve(ck_simfs *s, const char *path, sim_place *p) {
    *p = (sim_place){.depth = 1, .node = s->disk.root};
    p->above[0] = s->disk.root;
    if (*path == 0) return ENOENT;
    if (strlen(path) >= PATH_MAX) return ENAMETOOLONG;
    while (*path) {
        size_t n = strcspn(path, "/");
        const char *name = path;
        path += n;
        while (*path == '/') path++;
        if (n == 0 || (n == 1 && name[0] == '.')) continue;
        if (n > NAME_MAX) return ENAMETOOLONG;
        int errnum = step_into(p);
        if (errnum) return errnum;
        if (n == 2 && name[0] == '.' && name[1] == '.') {
            if (p->depth > 1) p->depth--;
            p->node = p->above[p->depth - 1];
            p->name[0] = 0;
            continue;
        }
        memcpy(p->name, name, n);
        p->name[n] = 0;
        p->node = sim_find(p->dir, p->name);
    }
    return 0;
}

/* For calls that make or remove a name: there must be one. */
static int resolve_name(ck_simfs *s, const char *path, sim_place *p) {
    int errnum = resolve(s, path, p);
    if (errnum == 0 && !p->name[0]) errnum = EBUSY;
    return errnum;
}

/* ---- open files ---- */

static int open_node(ck_simfs *s, sim_place *p, ck_open_mode mode) {
    if (mode == CK_OPEN_CREATE_SHARED) mode = CK_OPEN_CREATE; /* there is one user here */
    if (p->node && p->node->is_dir && mode != CK_OPEN_READ) return mode == CK_OPEN_CREATE ? EEXIST : EISDIR;
    if (p->node && mode == CK_OPEN_CREATE) return EEXIST;
    if (p->node && mode == CK_OPEN_TRUNCATE) sim_truncate(&s->disk, p->node);
    if (p->node) return 0;
    if (mode == CK_OPEN_READ) return ENOENT;
    sim_node *node = sim_node_new(&s->disk, false);
    if (!node) return ENOMEM;
    bool linked = sim_link(&s->disk, p->dir, p->name, node);
    sim_node_unref(&s->disk, node);
    if (!linked) return ENOMEM;
    p->node = node;
    return 0;
}

static ck_status sim_open(ck_fs *fs, const char *path, ck_open_mode mode, ck_file **out, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    *out = NULL;
    if (mode == CK_OPEN_READ_ANY) mode = CK_OPEN_READ; /* there is nothing but files here */
    size_t path_bytes = strlen(path) + 1;
    sim_file *f = malloc(sizeof *f + path_bytes);
    if (!f) return ck_fail(err, CK_NOMEM, "opening %s: out of memory", path);
    *f = (sim_file){.base = {fs}, .mode = mode};
    memcpy(f->path, path, path_bytes);
    sim_place p;
    enter(s);
    int errnum = resolve(s, path, &p);
    if (errnum == 0) errnum = open_node(s, &p, mode);
    if (errnum != 0) {
        free(f);
        return leave(s, ck_fail_errno(err, errnum, "opening %s", path));
    }
    f->node = p.node;
    sim_node_open(p.node);
    f->next = s->files;
    if (f->next) f->next->prev = f;
    s->files = f;
    *out = &f->base;
    return leave(s, CK_OK);
}

static void close_node(ck_simfs *s, sim_file *f) {
    if (!f->node) return;
    if (f->node->lock_owner == f) f->node->lock_owner = NULL;
    sim_node_close(&s->disk, f->node);
    f->node = NULL;
}

static void unlist(ck_simfs *s, sim_file *f) {
    if (f->next) f->next->prev = f->prev;
    if (f->prev)
        f->prev->next = f->next;
    else
        s->files = f->next;
}

static void sim_close(ck_file *file) {
    if (!file) return;
    ck_simfs *s = of_file(file);
    sim_file *f = (sim_file *)file;
    enter(s);
    close_node(s, f);
    unlist(s, f);
    pthread_mutex_unlock(&s->lock);
    free(f);
}

/* 0 when the file may be used so, else an errno. */
static int usable(const sim_file *f, bool reads, bool writes) {
    if (!f->node) return EIO; /* the power went */
    if (f->node->is_dir) return EISDIR;
    bool may_read = f->mode == CK_OPEN_READ || f->mode == CK_OPEN_READWRITE, may_write = f->mode != CK_OPEN_READ;
    return (reads && !may_read) || (writes && !may_write) ? EBADF : 0;
}

static size_t copy_out(const sim_node *n, void *p, size_t wanted, uint64_t offset) {
    if (offset >= n->n) return 0;
    size_t left = n->n - (size_t)offset, count = wanted < left ? wanted : left;
    if (count) memcpy(p, n->p + offset, count);
    return count;
}

static ck_status sim_pread(ck_file *file, void *p, size_t n, uint64_t offset, size_t *got, ck_error *err) {
    ck_simfs *s = of_file(file);
    sim_file *f = (sim_file *)file;
    *got = 0;
    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return ck_fail(err, CK_INVALID, "reading %s: no offset %llu", f->path, (unsigned long long)offset);
    enter(s);
    int errnum = usable(f, true, false);
    if (errnum) return leave(s, ck_fail_errno(err, errnum, "reading %s at %llu", f->path, (unsigned long long)offset));
    *got = copy_out(f->node, p, n, offset);
    return leave(s, CK_OK);
}

static ck_status sim_read(ck_file *file, void *p, size_t n, size_t *got, ck_error *err) {
    ck_simfs *s = of_file(file);
    sim_file *f = (sim_file *)file;
    *got = 0;
    enter(s);
    int errnum = usable(f, true, false);
    if (errnum) return leave(s, ck_fail_errno(err, errnum, "reading %s", f->path));
    *got = copy_out(f->node, p, n, f->at);
    f->at += *got;
    return leave(s, CK_OK);
}

/* An armed error or a full disk may come after some of the bytes were taken. */
static int append_some(ck_simfs *s, sim_file *f, const void *p, size_t n) {
    int errnum = armed_error(s);
    size_t count = errnum ? (size_t)sim_random_below(&s->disk, n + 1) : n;
    uint64_t capacity = s->disk.capacity, room = capacity > s->disk.used ? capacity - s->disk.used : 0;
    if (capacity && room < count) {
        count = (size_t)room;
        if (!errnum) errnum = ENOSPC;
    }
    if (!sim_append(&s->disk, f->node, p, count)) return ENOMEM;
    return errnum;
}

static ck_status sim_write(ck_file *file, const void *p, size_t n, ck_error *err) {
    ck_simfs *s = of_file(file);
    sim_file *f = (sim_file *)file;
    enter(s);
    int errnum = usable(f, false, true);
    if (!errnum) errnum = append_some(s, f, p, n);
    return leave(s, errnum ? ck_fail_errno(err, errnum, "writing %s", f->path) : CK_OK);
}

static ck_status sim_fsync(ck_file *file, ck_error *err) {
    ck_simfs *s = of_file(file);
    sim_file *f = (sim_file *)file;
    enter(s);
    int errnum = usable(f, false, false);
    if (!errnum) {
        errnum = armed_error(s);
        if (errnum)
            sim_sync_failed(f->node);
        else
            sim_sync_file(f->node);
    }
    return leave(s, errnum ? ck_fail_errno(err, errnum, "syncing %s", f->path) : CK_OK);
}

static ck_stat stat_of(const sim_node *n) {
    return (ck_stat){
        .bytes = n->n,
        .mtime_us = n->mtime_us,
        .inode = n->inode,
        .device = 1,
        .is_dir = n->is_dir,
        .is_file = !n->is_dir,
    };
}

static ck_status sim_fstat(ck_file *file, ck_stat *out, ck_error *err) {
    ck_simfs *s = of_file(file);
    sim_file *f = (sim_file *)file;
    enter(s);
    if (!f->node) return leave(s, ck_fail_errno(err, EIO, "looking at %s", f->path));
    *out = stat_of(f->node);
    return leave(s, CK_OK);
}

static ck_status sim_lock(ck_file *file, ck_error *err) {
    ck_simfs *s = of_file(file);
    sim_file *f = (sim_file *)file;
    enter(s);
    int errnum = usable(f, false, true);
    if (errnum) return leave(s, ck_fail_errno(err, errnum, "locking %s", f->path));
    if (f->node->lock_owner && f->node->lock_owner != f)
        return leave(s, ck_fail(err, CK_EXISTS, "%s is locked by another process", f->path));
    f->node->lock_owner = f;
    return leave(s, CK_OK);
}

/* ---- names ---- */

static int absent_is_enoent(int errnum) { return errnum == ENOTDIR ? ENOENT : errnum; }

static ck_status sim_stat(ck_fs *fs, const char *path, ck_stat *out, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    sim_place p;
    enter(s);
    int errnum = absent_is_enoent(resolve(s, path, &p));
    if (!errnum && !p.node) errnum = ENOENT;
    if (errnum) return leave(s, ck_fail_errno(err, errnum, "looking at %s", path));
    *out = stat_of(p.node);
    return leave(s, CK_OK);
}

static ck_status sim_link_path(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    sim_place a, b;
    enter(s);
    int errnum = resolve_name(s, from, &a);
    if (!errnum && !a.node) errnum = ENOENT;
    if (!errnum && a.node->is_dir) errnum = EPERM;
    if (!errnum) errnum = resolve_name(s, to, &b);
    if (!errnum && b.node) errnum = EEXIST;
    if (!errnum && !sim_link(&s->disk, b.dir, b.name, a.node)) errnum = ENOMEM;
    return leave(s, errnum ? ck_fail_errno(err, errnum, "linking %s to %s", from, to) : CK_OK);
}

static int check_replaced(const sim_node *node, const sim_node *target) {
    if (target->is_dir && !node->is_dir) return EISDIR;
    if (!target->is_dir && node->is_dir) return ENOTDIR;
    return target->is_dir && target->now.count > 0 ? ENOTEMPTY : 0;
}

static ck_status rename_path(ck_fs *fs, const char *from, const char *to, bool replace, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    sim_place a, b;
    enter(s);
    int errnum = resolve_name(s, from, &a);
    if (!errnum && !a.node) errnum = ENOENT;
    if (!errnum) errnum = resolve_name(s, to, &b);
    if (!errnum && b.node && !replace) errnum = EEXIST;
    for (size_t i = 0; !errnum && i < b.depth; i++)
        if (b.above[i] == a.node) errnum = EINVAL; /* into itself */
    bool same = !errnum && b.node == a.node;       /* two names of one file: nothing happens, as POSIX has it */
    if (!errnum && !same && b.node) errnum = check_replaced(a.node, b.node);
    if (!errnum && !same && !sim_rename(&s->disk, a.dir, a.name, b.dir, b.name)) errnum = ENOMEM;
    return leave(s, errnum ? ck_fail_errno(err, errnum, "renaming %s to %s", from, to) : CK_OK);
}

static ck_status sim_rename_path(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    return rename_path(fs, from, to, true, err);
}
static ck_status sim_rename_noreplace(ck_fs *fs, const char *from, const char *to, ck_error *err) {
    return rename_path(fs, from, to, false, err);
}

static ck_status sim_unlink_path(ck_fs *fs, const char *path, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    sim_place p;
    enter(s);
    int errnum = resolve(s, path, &p);
    if (!errnum && p.node && p.node->is_dir)
        return leave(s, ck_fail(err, CK_INVALID, "removing %s: is a directory", path));
    if (!errnum && !p.node) errnum = ENOENT;
    if (!errnum && !sim_unlink(&s->disk, p.dir, p.name)) errnum = ENOMEM;
    return leave(s, errnum ? ck_fail_errno(err, errnum, "removing %s", path) : CK_OK);
}

static int make_dir(ck_simfs *s, const char *path) {
    sim_place p;
    int errnum = resolve(s, path, &p);
    if (errnum) return errnum;
    if (p.node) return EEXIST;
    sim_node *node = sim_node_new(&s->disk, true);
    if (!node) return ENOMEM;
    bool linked = sim_link(&s->disk, p.dir, p.name, node);
    sim_node_unref(&s->disk, node);
    return linked ? 0 : ENOMEM;
}

static ck_status sim_mkdir(ck_fs *fs, const char *path, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    enter(s);
    int errnum = make_dir(s, path);
    return leave(s, errnum ? ck_fail_errno(err, errnum, "creating directory %s", path) : CK_OK);
}

static ck_status sim_rmdir(ck_fs *fs, const char *path, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    sim_place p;
    enter(s);
    int errnum = resolve_name(s, path, &p);
    if (!errnum && !p.node) errnum = ENOENT;
    if (!errnum && !p.node->is_dir) errnum = ENOTDIR;
    if (!errnum && p.node->now.count > 0) errnum = ENOTEMPTY;
    if (!errnum && !sim_unlink(&s->disk, p.dir, p.name)) errnum = ENOMEM;
    return leave(s, errnum ? ck_fail_errno(err, errnum, "removing directory %s", path) : CK_OK);
}

static ck_status sim_fsync_dir(ck_fs *fs, const char *path, ck_error *err) {
    ck_simfs *s = of_fs(fs);
    sim_place p;
    enter(s);
    int errnum = resolve(s, path, &p);
    if (!errnum && !p.node) errnum = ENOENT;
    if (!errnum && !p.node->is_dir) errnum = ENOTDIR;
    if (!errnum) errnum = armed_error(s);
    if (!errnum) sim_sync_dir(&s->disk, p.node);
    return leave(s, errnum ? ck_fail_errno(err, errnum, "syncing directory %s", path) : CK_OK);
}

static bool copy_names(const sim_node *dir, ck_arena *arena, const char ***names) {
    *names = ck_arena_array(arena, dir->now.count, sizeof **names);
    for (size_t i = 0; *names && i < dir->now.count; i++) {
        (*names)[i] = ck_arena_strdup(arena, dir->now.items[i].name->z);
        if (!(*names)[i]) return false;
    }
    return *names != NULL;
}

static ck_status sim_list(ck_fs *fs, const char *path, ck_arena *arena, const char ***names, size_t *count,
                          ck_error *err) {
    ck_simfs *s = of_fs(fs);
    sim_place p;
    enter(s);
    int errnum = absent_is_enoent(resolve(s, path, &p));
    if (!errnum && (!p.node || !p.node->is_dir)) errnum = ENOENT;
    if (errnum) return leave(s, ck_fail_errno(err, errnum, "listing %s", path));
    *count = p.node->now.count;
    if (copy_names(p.node, arena, names)) return leave(s, CK_OK);
    return leave(s, ck_fail(err, CK_NOMEM, "listing %s: no memory for %zu names", path, *count));
}

/* ---- the disk as a whole ---- */

static const ck_fs sim_table = {
    .open = sim_open,
    .pread = sim_pread,
    .read = sim_read,
    .write = sim_write,
    .fsync = sim_fsync,
    .fstat = sim_fstat,
    .close = sim_close,
    .stat = sim_stat,
    .link = sim_link_path,
    .rename = sim_rename_path,
    .rename_noreplace = sim_rename_noreplace,
    .unlink = sim_unlink_path,
    .mkdir = sim_mkdir,
    .rmdir = sim_rmdir,
    .fsync_dir = sim_fsync_dir,
    .list = sim_list,
    .lock = sim_lock,
};

ck_status ck_simfs_new(ck_simfs **out, uint64_t seed) {
    *out = NULL;
    ck_simfs *s = calloc(1, sizeof *s);
    if (!s) return CK_NOMEM;
    s->base = sim_table;
    if (!sim_disk_init(&s->disk, seed)) {
        free(s);
        return CK_NOMEM;
    }
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return CK_OK;
}

ck_fs *ck_simfs_base(ck_simfs *s) { return &s->base; }

void ck_simfs_free(ck_simfs *s) {
    if (!s) return;
    while (s->files) { /* of processes that crashed and closed nothing */
        sim_file *f = s->files;
        s->files = f->next;
        free(f);
    }
    sim_disk_destroy(&s->disk);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void ck_simfs_kill(ck_simfs *s) {
    enter(s);
    for (sim_file *f = s->files; f; f = f->next) close_node(s, f);
    pthread_mutex_unlock(&s->lock);
}

void ck_simfs_crash(ck_simfs *s) {
    enter(s);
    for (sim_file *f = s->files; f; f = f->next) close_node(s, f);
    sim_disk_crash(&s->disk);
    pthread_mutex_unlock(&s->lock);
}

void ck_simfs_fail(ck_simfs *s, uint64_t nth, int errnum, bool once) {
    enter(s);
    s->fail_at = nth, s->calls = 0, s->fail_errnum = errnum, s->fail_once = once;
    pthread_mutex_unlock(&s->lock);
}

void ck_simfs_set_capacity(ck_simfs *s, uint64_t bytes) {
    enter(s);
    s->disk.capacity = bytes;
    pthread_mutex_unlock(&s->lock);
}
