/* clink worker: runs subtasks for a coordinator, and clink task-host, which a worker starts for each job. */
#include <signal.h>
#include <stdio.h>

#include "cli/cluster.h"
#include "cli/script.h"
#include "cli/verbs.h"

static void began(void *arg, const char *name) {
    const clink_worker_options *o = arg;
    fprintf(stderr, "clink: %s waits for work from %s\n", name, o->coordinator ? o->coordinator : "127.0.0.1:6123");
}

static int work(clink_worker_options *o, uint64_t memory_bytes, const char *log_level) {
    clink_engine *engine = NULL;
    clink_error e = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    o->began = began, o->began_arg = o;
    clink_status s = cluster_open(memory_bytes, log_level, &engine, &e);
    if (s == CLINK_OK) s = clink_worker_run(engine, o, &e);
    clink_close(engine);
    return s == CLINK_OK ? 0 : report_error(s, &e);
}

static int worker_main(const verb *v, int argc, char **argv) {
    clink_worker_options o = {.struct_bytes = sizeof o};
    const char *log_level = NULL;
    int64_t slots = 0;
    uint64_t memory_bytes = 0;
    const flag table[] = {
        {"coordinator", 0, FLAG_TEXT, &o.coordinator, "HOST:PORT", "127.0.0.1:6123",
         "the coordinator's control port; several with commas, one leads"},
        {"token-file", 0, FLAG_TEXT, &o.token_file, "FILE", "the runtime directory's", "where its token is"},
        CLUSTER_TLS_FLAGS(o.tls),
        {"slots", 0, FLAG_POSITIVE, &slots, "N", "cores", "how many subtasks it takes"},
        {"memory", 0, FLAG_BYTES, &memory_bytes, "SIZE", "the machine's or the cgroup's",
         "of all its jobs: each has the shares of its slots"},
        {"name", 0, FLAG_TEXT, &o.name, "NAME", "one of its own", "who it is, the same when it is started again"},
        {"data-host", 0, FLAG_TEXT, &o.data_host, "HOST", "127.0.0.1",
         "where subtasks here listen for those of other workers"},
        {"advertise", 0, FLAG_TEXT, &o.advertise, "HOST", "--data-host",
         "under which host they are reached, where that is another"},
        {"data-root", 0, FLAG_TEXT, &o.data_root, "DIR", "all; with TLS none", "the only files that jobs may touch"},
        {"secret-dir", 0, FLAG_TEXT, &o.secret_dir, "DIR", "all; with TLS none",
         "the only files for ${file:PATH} of jobs"},
        {"state-dir", 0, FLAG_TEXT, &o.state_dir, "DIR", "in the runtime directory", "where its sockets are"},
        CLUSTER_LOG_FLAG(log_level),
    };
    bool help;
    int rc = flags_parse(v, table, sizeof table / sizeof *table, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, table, sizeof table / sizeof *table);
        return 0;
    }
    if (argc) return usage_error(v, "'%s' is one argument too many", argv[0]);
    if (slots > 4096) return usage_error(v, "--slots is 1 to 4096");
    if (log_level && log_level_of(log_level) < 0)
        return usage_error(v, "--log-level is debug, info, warn, error or off, not '%s'", log_level);
    o.slots = (uint32_t)slots;
    return work(&o, memory_bytes, log_level);
}

int task_host_main(int argc, char **argv) {
    clink_engine *engine = NULL;
    clink_error e = {0};
    const clink_options o = {.struct_bytes = sizeof o};
    if (clink_open(&o, &engine, &e) != CLINK_OK) return report_error(e.status, &e);
    int rc = clink_task_host(engine, argc, argv);
    clink_close(engine);
    return rc;
}

const verb verb_worker = {
    .name = "worker",
    .summary = "run subtasks for a coordinator",
    .usage = "clink worker [flags]",
    .example = "  clink worker --slots 4",
    .main = worker_main,
};
