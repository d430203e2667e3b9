#include "cluster/roles.h"

static const struct {
    const char *name;
    unsigned roles;
} names[] = {
    {"read", CK_ROLE_READ},
    {"submit", CK_ROLE_READ | CK_ROLE_SUBMIT},
    {"plugin", CK_ROLE_READ | CK_ROLE_SUBMIT | CK_ROLE_PLUGIN},
    {"worker", CK_ROLE_WORKER},
    {"all", CK_ROLE_ALL},
};

static unsigned role_of(ck_view name) {
    for (size_t i = 0; i < CK_ARRAY_COUNT(names); i++)
        if (ck_view_is(name, names[i].name)) return names[i].roles;
    return 0;
}

unsigned ck_roles_of(ck_view text) {
    unsigned roles = 0;
    for (;;) {
        const char *comma = text.n ? memchr(text.p, ',', text.n) : NULL;
        size_t n = comma ? (size_t)(comma - text.p) : text.n;
        unsigned one = role_of((ck_view){text.p, n});
        if (!one) return 0;
        roles |= one;
        if (!comma) return roles;
        text = (ck_view){comma + 1, text.n - n - 1};
    }
}

const char *ck_roles_text(unsigned roles) {
    static const char *const clients[] = {"none", "read", "submit", "plugin"};
    static const char *const with_worker[] = {"worker", "read and worker", "submit and worker", "all"};
    unsigned level = roles & CK_ROLE_PLUGIN ? 3 : roles & CK_ROLE_SUBMIT ? 2 : roles & CK_ROLE_READ ? 1 : 0;
    return roles & CK_ROLE_WORKER ? with_worker[level] : clients[level];
}

static const char *wanted_of_command(uint64_t command, unsigned *role, const char **what) {
    static const struct {
        const char *what;
        unsigned role;
    } commands[] = {
        [CK_COMMAND_LIST] = {"list", CK_ROLE_READ},       [CK_COMMAND_STATUS] = {"status", CK_ROLE_READ},
        [CK_COMMAND_CANCEL] = {"cancel", CK_ROLE_SUBMIT}, [CK_COMMAND_RESUME] = {"resume", CK_ROLE_SUBMIT},
        [CK_COMMAND_DROP] = {"drop", CK_ROLE_SUBMIT},     [CK_COMMAND_SAVEPOINT] = {"savepoint", CK_ROLE_SUBMIT},
        [CK_COMMAND_STOP] = {"stop", CK_ROLE_SUBMIT},     [CK_COMMAND_WAIT] = {"waiting for a job", CK_ROLE_READ}};
    bool known = command < CK_ARRAY_COUNT(commands) && commands[command].what;
    *role = known ? commands[command].role : CK_ROLE_SUBMIT;
    *what = known ? commands[command].what : "this command";
    return *role == CK_ROLE_READ ? "read" : "submit";
}

const char *ck_role_wanted(const ck_message *m, unsigned *role, const char **what) {
    switch ((int)m->kind) {
    case CK_MSG_COMMAND: return wanted_of_command(m->as.command.command, role, what);
    case CK_MSG_SUBMIT:
    case CK_MSG_OFFER_PLUGIN: *role = CK_ROLE_SUBMIT, *what = "submit"; return "submit";
    case CK_MSG_UPLOAD_PART: *role = CK_ROLE_PLUGIN, *what = "uploading a plugin"; return "plugin";
    default: *role = CK_ROLE_WORKER, *what = "running subtasks"; return "worker";
    }
}
