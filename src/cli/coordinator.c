/* clink coordinator: who runs what, until it is asked to stop. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "cli/cluster.h"
#include "cli/script.h"
#include "cli/verbs.h"

static bool is_asked_to_stop(const sigset_t *stop, int ms) {
    const struct timespec turn = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    return sigtimedwait(stop, NULL, &turn) > 0;
}

/* SIGINT and SIGTERM are blocked; a look at what the coordinator does now and then is enough. */
static clink_status wait_for_stop(clink_coordinator *c, const sigset_t *stop, clink_error *e) {
    for (;;) {
        if (is_asked_to_stop(stop, 200)) return CLINK_OK;
        clink_status s = clink_coordinator_state(c, e);
        if (s != CLINK_OK) return s;
    }
}

/* While another coordinator leads, or records cannot be kept. CLINK_CANCELLED: it was asked to stop meanwhile. */
static clink_status stand_by(clink_engine *engine, const clink_coordinator_options *o, const sigset_t *stop,
                             clink_coordinator **c, uint16_t *port, bool patient, clink_error *e) {
    bool said = false;
    for (;;) {
        clink_status s = clink_coordinator_start(engine, o, c, port, e);
        bool slow = s == CLINK_REFUSED && e->retriable; /* etcd is there, and the lease was over before this one led */
        bool again = s == CLINK_TIMEOUT || slow || (patient && s == CLINK_IO && e->retriable);
        if (!again) return s;
        if (!said) fprintf(stderr, "clink: standing by: %s\n", e->message);
        said = patient = true;
        if (is_asked_to_stop(stop, 200)) return CLINK_CANCELLED;
    }
}

/* Etcd may be away for now, or the disk with the metadata be full: who could not write a record has to begin anew. */
static bool may_lead_again(const clink_coordinator_options *o, clink_status s, const clink_error *e) {
    if (o->ha) return s == CLINK_IO || s == CLINK_REFUSED;
    return o->metadata_dir && s == CLINK_IO && e->retriable;
}

/* patient: it has led before. *again: it leads no more, and may another time. */
static int lead_once(clink_engine *engine, clink_coordinator_options *o, const sigset_t *stop, bool patient,
                     bool *again) {
    clink_coordinator *c = NULL;
    clink_error e = {0};
    uint16_t port = 0;
    clink_status s = stand_by(engine, o, stop, &c, &port, patient, &e);
    *again = false;
    if (s == CLINK_CANCELLED) return 0;
    if (s == CLINK_OK) {
        const char *where = o->ha ? o->ha : o->metadata_dir;
        fprintf(stderr, "clink: coordinator at %s:%u%s%s\n", o->advertise ? o->advertise : o->bind, port,
                where ? ", jobs are kept in " : "", where ? where : "");
        s = wait_for_stop(c, stop, &e);
        o->port = port; /* workers and clients look for it there */
        *again = may_lead_again(o, s, &e);
    }
    clink_coordinator_stop(c);
    return s == CLINK_OK ? 0 : report_error(s, &e);
}

static int lead(clink_coordinator_options *o, const char *log_level) {
    clink_engine *engine = NULL;
    clink_error e = {0};
    sigset_t stop;
    int rc = 1;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    clink_status s = cluster_open(0, log_level, &engine, &e);
    if (s != CLINK_OK) return report_error(s, &e);
    for (bool again = true, patient = false; again; patient = true) rc = lead_once(engine, o, &stop, patient, &again);
    clink_close(engine);
    return rc;
}

static int coordinator_main(const verb *v, int argc, char **argv) {
    clink_coordinator_options o = {.struct_bytes = sizeof o, .bind = "127.0.0.1"};
    const char *log_level = NULL;
    int64_t port = 6123, max_restarts = 0;
    o.watchdog_interval_ms = 100, o.heartbeat_timeout_ms = 2000, o.restart_drain_timeout_ms = 30000;
    const flag table[] = {
        {"port", 0, FLAG_COUNT, &port, "N", "6123", "the control port; 0: any that is free"},
        {"bind", 0, FLAG_TEXT, &o.bind, "HOST", "127.0.0.1", "where it listens; without TLS a loopback address"},
        {"advertise", 0, FLAG_TEXT, &o.advertise, "HOST", "--bind",
         "under which host it is reached, where that is another"},
        {"metadata-dir", 0, FLAG_TEXT, &o.metadata_dir, "DIR", "jobs end with the coordinator",
         "where jobs are kept for the next coordinator"},
        {"ha", 0, FLAG_TEXT, &o.ha, "etcd://HOST:PORT", "one alone",
         "keep jobs in etcd; of several coordinators one leads"},
        {"ha-lease-ms", 0, FLAG_POSITIVE, &o.lease_ms, "N", "5000",
         "so long after a leader's last sign another may lead"},
        {"token-file", 0, FLAG_TEXT, &o.token_file, "FILE", "in the runtime directory",
         "tokens with roles, or where its own is put"},
        {"allow-plugins", 0, FLAG_TEXT, &o.allow_plugins, "any|FILE", "none",
         "plugins that jobs may bring; FILE: SHA-256 sums"},
        CLUSTER_TLS_FLAGS(o.tls),
        {"watchdog-interval-ms", 0, FLAG_POSITIVE, &o.watchdog_interval_ms, "N", "100", "how often workers are judged"},
        {"heartbeat-timeout-ms", 0, FLAG_POSITIVE, &o.heartbeat_timeout_ms, "N", "2000",
         "a worker silent for longer is lost; they beat at a third of it"},
        {"restart-drain-timeout-ms", 0, FLAG_POSITIVE, &o.restart_drain_timeout_ms, "N", "30000",
         "subtasks that take longer to end fail the job"},
        {"max-restarts", 0, FLAG_COUNT, &max_restarts, "N", "0", "of each failing subtask, before the job's own"},
        {"restart-budget-decay-ms", 0, FLAG_COUNT, &o.restart_budget_decay_ms, "N", "0: never",
         "a job that ran so long without a restart has all of them again"},
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
    if (port > UINT16_MAX) return usage_error(v, "--port is 0 to %d", UINT16_MAX);
    if (max_restarts > UINT32_MAX) return usage_error(v, "--max-restarts is too large");
    if (o.ha && o.metadata_dir) return usage_error(v, "--ha and --metadata-dir are two places for the same");
    if (o.lease_ms && (o.lease_ms < 2000 || o.lease_ms > 600000))
        return usage_error(v, "--ha-lease-ms is 2000 to 600000");
    if (o.watchdog_interval_ms < 1 || o.heartbeat_timeout_ms < 1)
        return usage_error(v, "--watchdog-interval-ms and --heartbeat-timeout-ms are at least 1");
    if (log_level && log_level_of(log_level) < 0)
        return usage_error(v, "--log-level is debug, info, warn, error or off, not '%s'", log_level);
    o.port = (uint16_t)port;
    o.max_restarts = (uint32_t)max_restarts;
    return lead(&o, log_level);
}

const verb verb_coordinator = {
    .name = "coordinator",
    .summary = "lead a cluster of workers",
    .usage = "clink coordinator [flags]",
    .example = "  clink coordinator --metadata-dir cluster   # started again, it goes on with the jobs kept there\n"
               "  clink coordinator --ha etcd://127.0.0.1:2379   # one of several",
    .main = coordinator_main,
};
