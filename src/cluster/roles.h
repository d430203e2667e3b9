/* What who shows a token may do. A role has those below it: plugin that of submit, and submit that of read. */
#ifndef CK_CLUSTER_ROLES_H
#define CK_CLUSTER_ROLES_H

#include "cluster/message.h"

enum {
    CK_ROLE_READ = 1,   /* list, status, wait */
    CK_ROLE_SUBMIT = 2, /* submit, cancel, savepoint, stop, resume, drop */
    CK_ROLE_PLUGIN = 4, /* upload plugins */
    CK_ROLE_WORKER = 8, /* run the subtasks of jobs: a worker is told all of them */
    CK_ROLE_ALL = 15,
};

/* "submit", "read,worker", "all" and so on, with what they have. 0: it is none. */
unsigned ck_roles_of(ck_view text);
/* The role that a message wants, by its name and in *role; *what: the verb, for the sentence. */
const char *ck_role_wanted(const ck_message *m, unsigned *role, const char **what);
/* For sentences: "read", "submit", "plugin", "worker", or "all"; two at most. */
const char *ck_roles_text(unsigned roles);

#endif
