/* See library_options.h. */
#include "connector/library_options.h"

#include <string.h>

#include "os/confined.h"

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static ck_status refuse(const char *option, const char *why, ck_error *err) {
    ck_status s = ck_fail(err, CK_REFUSED, "option '%s' is not for jobs on this worker: %s", option, why);
    if (err) err->fatal = true;
    return s;
}

static ck_status check_file(const ck_proc *proc, const char *option, const char *path, ck_error *err) {
    ck_status s = ck_confined_check(proc->confined, path, err);
    return s == CK_OK ? s : ck_error_prefix(err, "option '%s': ", option);
}

/* The library has well over a hundred; by their names those that are files end like this, also those to come. */
ck_status ck_kafka_property_check(const ck_proc *proc, const char *property, const char *option, const char *value,
                                  ck_error *err) {
    static const char *const files[] = {".location", ".path", ".file", ".keytab", ".dir"};
    static const char *const acts[] = {".paths", ".cmd", "ssl.providers", "ssl.engine.id"};
    if (!proc->confined) return CK_OK;
    for (size_t i = 0; i < CK_ARRAY_COUNT(acts); i++)
        if (ends_with(property, acts[i])) return refuse(option, "it makes the library run or load something", err);
    if (strcmp(property, "ssl.engine.location") == 0)
        return refuse(option, "it makes the library run or load something", err);
    for (size_t i = 0; i < CK_ARRAY_COUNT(files); i++)
        if (ends_with(property, files[i])) return check_file(proc, option, value, err);
    return CK_OK;
}

/* These are all that there are to be sure of. */
ck_status ck_pg_property_check(const ck_proc *proc, const char *property, const char *option, const char *value,
                               ck_error *err) {
    static const char *const files[] = {"sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"};
    static const char *const harmless[] = {"sslmode",
                                           "sslcompression",
                                           "sslsni",
                                           "sslnegotiation",
                                           "ssl_min_protocol_version",
                                           "ssl_max_protocol_version",
                                           "channel_binding",
                                           "require_auth",
                                           "gssencmode",
                                           "application_name",
                                           "fallback_application_name",
                                           "connect_timeout",
                                           "target_session_attrs",
                                           "load_balance_hosts",
                                           "tcp_user_timeout",
                                           "keepalives",
                                           "keepalives_idle",
                                           "keepalives_interval",
                                           "keepalives_count",
                                           "options"};
    if (!proc->confined) return CK_OK;
    for (size_t i = 0; i < CK_ARRAY_COUNT(harmless); i++)
        if (strcmp(property, harmless[i]) == 0) return CK_OK;
    for (size_t i = 0; i < CK_ARRAY_COUNT(files); i++)
        if (strcmp(property, files[i]) == 0) return check_file(proc, option, value, err);
    return refuse(option, "it may lead to files or settings of the worker's user", err);
}

ck_status ck_pg_host_check(const ck_proc *proc, const char *host, ck_error *err) {
    if (!proc->confined ||
        (host && host[0] && host[0] != '/' && host[0] != '@' && !strstr(host, ",/") && !strstr(host, ",@") &&
         host[strlen(host) - 1] != ',' && !strstr(host, ",,") && host[0] != ','))
        return CK_OK;
    return refuse("host", "a local socket would take them for the worker's user, so it has to be named", err);
}
