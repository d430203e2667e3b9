/* What jobs of others may touch on this machine: files below one directory, secrets below another, and in the
 * environment what is called CLINK_SECRET_*. It is a file system in front of another one, so that it holds for whatever
 * goes through proc->fs; who hands paths or commands to a library, or reads the environment, asks here.
 *
 * A path is judged by where it leads, links followed. Nothing that goes through here makes a symbolic link. */
#ifndef CK_OS_CONFINED_H
#define CK_OS_CONFINED_H

#include "os/fs.h"

#define CK_CONFINED_ENV "CLINK_SECRET_"

typedef struct ck_confined {
    ck_fs fs; /* for proc->fs; proc->confined is the whole */
    ck_fs *under;
    char *data_root, *secret_dir; /* where they really are; NULL: none */
    ck_mem mem;
} ck_confined;

/* Of two directories that are there, or NULL. */
CK_NODISCARD ck_status ck_confined_init(ck_confined *c, ck_mem mem, ck_fs *under, const char *data_root,
                                        const char *secret_dir, ck_error *err);
void ck_confined_destroy(ck_confined *c);

/* For what opens files by itself, to read them. CK_REFUSED, fatal: it is below neither directory. */
CK_NODISCARD ck_status ck_confined_check(const ck_confined *c, const char *path, ck_error *err);
/* For a secret in a file, and one in the environment. */
CK_NODISCARD ck_status ck_confined_check_secret(const ck_confined *c, const char *path, ck_error *err);
CK_NODISCARD ck_status ck_confined_check_env(const char *name, ck_error *err);

#endif
