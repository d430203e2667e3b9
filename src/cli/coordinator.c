/* clink coordinator: who runs what, until it is asked to stop. */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "cli/cluster.h"
#include "cli/script.h"
#include "cli/verbs.h"

/* SIGINT and SIGTERM are blocked; a look at what the coordinator does now and then is enough. */
static clink_status wait_for_stop(clink_coordinator *c, const sigset_t *stop, clink_error *e) {
    const struct timespec turn = {.tv_nsec = 200000000};
    for (;;) {
        if (sigtimedwait(stop, NULL, &turn) > 0) return CLINK_OK;
        clink_status s = clink_coordinator_state(c, e);
        if (s != CLINK_OK) return s;
    }
}

static int lead(const clink_coordinator_options *o) {
    clink_engine *engine = NULL;
    clink_coordinator *c = NULL;
    clink_error e = {0};
    uint16_t port = 0;
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    clink_status s = cluster_open(&engine, &e);
    if (s == CLINK_OK) s = clink_coordinator_start(engine, o, &c, &port, &e);
    if (s == CLINK_OK) {
        fprintf(stderr, "clink: coordinator at %s:%u%s%s\n", o->bind, port,
                o->metadata_dir ? ", jobs are kept in " : "", o->metadata_dir ? o->metadata_dir : "");
        s = wait_for_stop(c, &stop, &e);
    }
    clink_coordinator_stop(c);
    clink_close(engine);
    return s == CLINK_OK ? 0 : report_error(s, &e);
}

static int coordinator_main(const verb *v, int argc, char **argv) {
    clink_coordinator_options o = {.struct_bytes = sizeof o, .bind = "127.0.0.1"};
    int64_t port = 6123, max_restarts = 0;
    o.watchdog_interval_ms = 100, o.heartbeat_timeout_ms = 2000, o.restart_drain_timeout_ms = 30000;
    const flag table[] = {
        {"port", 0, FLAG_COUNT, &port, "N", "6123", "the control port; 0: any that is free"},
        {"bind", 0, FLAG_TEXT, &o.bind, "HOST", "127.0.0.1", "where it listens; without TLS a loopback address"},
        {"metadata-dir", 0, FLAG_TEXT, &o.metadata_dir, "DIR", "jobs end with the coordinator",
         "where jobs are kept for the next coordinator"},
        {"token-file", 0, FLAG_TEXT, &o.token_file, "FILE", "in the runtime directory",
         "where the token is put that workers and clients have to know"},
        {"tls-cert", 0, FLAG_TEXT, &o.tls.cert, "FILE", "no TLS", "our certificate, PEM"},
        {"tls-key", 0, FLAG_TEXT, &o.tls.key, "FILE", "no TLS", "its key, PEM, without a passphrase"},
        {"tls-ca", 0, FLAG_TEXT, &o.tls.ca, "FILE", "no TLS", "the CA whose certificates are accepted"},
        {"watchdog-interval-ms", 0, FLAG_COUNT, &o.watchdog_interval_ms, "N", "100", "how often workers are judged"},
        {"heartbeat-timeout-ms", 0, FLAG_COUNT, &o.heartbeat_timeout_ms, "N", "2000",
         "a worker silent for longer is lost; they beat at a third of it"},
        {"restart-drain-timeout-ms", 0, FLAG_COUNT, &o.restart_drain_timeout_ms, "N", "30000",
         "subtasks that take longer to end fail the job"},
        {"max-restarts", 0, FLAG_COUNT, &max_restarts, "N", "0", "of each failing subtask, before the job's own"},
        {"restart-budget-decay-ms", 0, FLAG_COUNT, &o.restart_budget_decay_ms, "N", "0: never",
         "a job that ran so long without a restart has all of them again"},
    };
    bool help;
    int rc = flags_parse(v, table, sizeof table / sizeof *table, &argc, argv, &help);
    if (rc) return rc;
    if (help) {
        flags_print_help(v, table, sizeof table / sizeof *table);
        return 0;
    }
    if (argc) return usage_error(v, "'%s' is one argument too many", argv[0]);
    if (port > UINT16_MAX) return usage_error(v, "--port is 0 to %d", UINT16_MAX);
    if (max_restarts > UINT32_MAX) return usage_error(v, "--max-restarts is too large");
    if (o.watchdog_interval_ms < 1 || o.heartbeat_timeout_ms < 1)
        return usage_error(v, "--watchdog-interval-ms and --heartbeat-timeout-ms are at least 1");
    o.port = (uint16_t)port;
    o.max_restarts = (uint32_t)max_restarts;
    return lead(&o);
}

const verb verb_coordinator = {
    .name = "coordinator",
    .summary = "lead a cluster of workers",
    .usage = "clink coordinator [flags]",
    .example = "  clink coordinator --metadata-dir cluster   # started again, it goes on with the jobs kept there",
    .main = coordinator_main,
};
