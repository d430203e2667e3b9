/* A client of the library: made from the table's options, with what its connections complain of kept for a sentence. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "connector/kafka/kafka_int.h"
#include "connector/library_options.h"
#include "connector/secret.h"
#include "os/clock.h"

static const char *const function_names[] = {CK_MODULE_NAMES(CK_KAFKA_FUNCTIONS)};
static const ck_module_desc kafka_module = {.file = "librdkafka.so.1",
                                            .package = "librdkafka1",
                                            .for_what = "connector 'kafka'",
                                            .functions = function_names,
                                            .count = CK_ARRAY_COUNT(function_names)};

enum { WAIT_MS = 200, SECRET_BYTES_MAX = 1 << 20 };

/* ---- what connections say ---- */

/* A topic that is read, or some of its partitions: nothing else says so, and nothing more would come. */
static bool is_gone(int code) {
    return code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
           code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
}

/* An answer that the client does not take because of its size would be asked for again and again. What is larger still
 * is no answer: whoever stands at that address for now speaks something else, and is waited for. */
static bool is_too_large(const char *reason) {
    static const char before[] = "Invalid response size ";
    enum { ANSWER_BYTES_MAX = 256 << 20 };
    const char *at = strstr(reason, before);
    if (!at) return false;
    long long bytes = strtoll(at + sizeof before - 1, NULL, 10);
    return bytes > 0 && bytes <= ANSWER_BYTES_MAX;
}

static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque) {
    (void)rk;
    ck_kafka_client *c = opaque;
    pthread_mutex_lock(&c->lock);
    /* A broker that goes away in the middle of a handshake has refused nobody. */
    bool away =
        strstr(reason, "Disconnected") || strstr(reason, "Broker transport failure") || strstr(reason, "Timed out");
    bool worse = !away && (code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__SSL ||
                           code == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE || is_gone(code));
    worse |= is_too_large(reason);
    bool says_less = code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && c->trouble[0]; /* than what one of them said */
    if (worse || (!c->hopeless && !says_less)) {
        snprintf(c->trouble, sizeof c->trouble, "%s", reason);
        for (char *p = c->trouble; *p; p++)
            if (*p == '\n' || *p == '\r') *p = ' ';
    }
    c->hopeless |= worse;
    pthread_mutex_unlock(&c->lock);
}

/* The library's log is not ours to print: errors come through on_error. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text) {
    (void)rk;
    (void)level;
    (void)facility;
    (void)text;
}

static void on_delivered(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque) {
    (void)rk;
    ck_kafka_client *c = opaque;
    c->delivered(c->opaque, m);
}

ck_status ck_kafka_fail(ck_kafka_client *c, rd_kafka_resp_err_t code, ck_error *err, const char *fmt, ...) {
    char what[512], trouble[sizeof c->trouble];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    pthread_mutex_lock(&c->lock);
    memcpy(trouble, c->trouble, sizeof trouble);
    pthread_mutex_unlock(&c->lock);
    const char *answer = c->lib->rd_kafka_err2str(code);
    if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        answer =
            "a record is larger than the topic's max.message.bytes; the job goes on where it is when that is raised";
    return ck_fail(err, CK_IO, trouble[0] ? "%s: %s (%s)" : "%s: %s", what, answer, trouble);
}

ck_status ck_kafka_hopeless(ck_kafka_client *c, const ck_kafka_options *o, ck_error *err) {
    pthread_mutex_lock(&c->lock);
    ck_status s = c->hopeless ? ck_fail(err, CK_IO, "Kafka at %s: %s", o->brokers, c->trouble) : CK_OK;
    pthread_mutex_unlock(&c->lock);
    return s;
}

/* ---- making one ---- */

static ck_status set(const ck_kafka_lib *lib, rd_kafka_conf_t *conf, const char *name, const char *value, bool secret,
                     ck_error *err) {
    char reason[256];
    rd_kafka_conf_res_t r = lib->rd_kafka_conf_set(conf, name, value, reason, sizeof reason);
    if (r == RD_KAFKA_CONF_OK) return CK_OK;
    if (r == RD_KAFKA_CONF_UNKNOWN)
        return ck_fail(err, CK_INVALID, "Kafka's client has no property '%s' (option 'properties.%s')", name, name);
    return ck_fail(err, CK_INVALID, "option 'properties.%s' has a value Kafka's client does not take%s%s", name,
                   secret ? "" : ": ", secret ? "" : reason);
}

/* What decides who is read, from where, and what counts as sent is said by options of the table. */
static bool is_ours(const char *property) {
    static const char *const ours[] = {"bootstrap.servers",    "metadata.broker.list", "group.id",
                                       "enable.partition.eof", "auto.offset.reset",    "enable.auto.commit",
                                       "transactional.id",     "enable.idempotence",   "acks"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(ours); i++)
        if (strcmp(property, ours[i]) == 0) return true;
    return false;
}

static ck_status set_properties(ck_proc *proc, const ck_kafka_lib *lib, const ck_table_options *o,
                                rd_kafka_conf_t *conf, ck_arena *a, ck_error *err) {
    static const char prefix[] = "properties.";
    for (uint32_t i = 0; i < o->count; i++) {
        if (strncmp(o->names[i], prefix, sizeof prefix - 1) != 0) continue;
        const char *name = o->names[i] + sizeof prefix - 1, *value;
        if (is_ours(name))
            return ck_fail(err, CK_INVALID, "option '%s' cannot be set: the table's own options say it", o->names[i]);
        CK_TRY(ck_secret_resolve(proc, o->names[i], o->values[i], SECRET_BYTES_MAX, a, &value, err));
        CK_TRY(ck_kafka_property_check(proc, name, o->names[i], value, err));
        CK_TRY(set(lib, conf, name, value, value != o->values[i], err));
    }
    return CK_OK;
}

ck_status ck_kafka_client_new(ck_proc *proc, const ck_kafka_options *o, rd_kafka_type_t type, const char *const *pairs,
                              ck_arena *a, ck_kafka_client *c, ck_error *err) {
    const void *table;
    CK_TRY(ck_module_open(proc, &kafka_module, &table, err));
    const ck_kafka_lib *lib = c->lib = table;
    c->proc = proc;
    rd_kafka_conf_t *conf = lib->rd_kafka_conf_new();
    ck_status s = set(lib, conf, "bootstrap.servers", o->brokers, false, err);
    for (; s == CK_OK && *pairs; pairs += 2) s = set(lib, conf, pairs[0], pairs[1], false, err);
    if (s == CK_OK) s = set_properties(proc, lib, o->all, conf, a, err);
    if (s != CK_OK) {
        lib->rd_kafka_conf_destroy(conf);
        return s;
    }
    if (!c->locked) pthread_mutex_init(&c->lock, NULL);
    c->locked = true;
    lib->rd_kafka_conf_set_opaque(conf, c);
    lib->rd_kafka_conf_set_error_cb(conf, on_error);
    lib->rd_kafka_conf_set_log_cb(conf, on_log);
    if (c->delivered) lib->rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
    char reason[256];
    c->rk = lib->rd_kafka_new(type, conf, reason, sizeof reason);
    if (c->rk) return CK_OK;
    lib->rd_kafka_conf_destroy(conf);
    return ck_fail(err, CK_INVALID, "Kafka's client for %s: %s", o->brokers, reason);
}

void ck_kafka_client_destroy(ck_kafka_client *c) {
    if (c->rk) c->lib->rd_kafka_destroy(c->rk);
    if (c->locked) pthread_mutex_destroy(&c->lock);
    c->rk = NULL;
    c->locked = false;
}

/* ---- partitions ---- */

static ck_status partitions_of(ck_kafka_client *c, const rd_kafka_metadata_t *md, const ck_kafka_options *o,
                               int32_t *partitions, rd_kafka_resp_err_t *code, ck_error *err) {
    *code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (md->topic_cnt == 1) {
        *code = md->topics[0].err;
        *partitions = md->topics[0].partition_cnt;
    }
    if (*code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        return ck_fail(err, CK_NOTFOUND, "Kafka at %s has no topic %s", o->brokers, o->topic);
    bool passes = *code == RD_KAFKA_RESP_ERR_NO_ERROR || *code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    return passes ? CK_OK : ck_kafka_fail(c, *code, err, "Kafka at %s, topic %s", o->brokers, o->topic);
}

/* Where topics make themselves, a look makes one, and it is without a leader for a moment. */
ck_status ck_kafka_partitions(ck_kafka_client *c, const ck_kafka_options *o, int32_t *partitions, ck_error *err) {
    const ck_kafka_lib *lib = c->lib;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
    int64_t give_up = ck_mono_us(c->proc) + o->timeout_ms * 1000;
    rd_kafka_topic_t *t = lib->rd_kafka_topic_new(c->rk, o->topic, NULL);
    if (!t)
        return ck_fail(err, CK_INVALID, "'%s' is no name of a topic: %s", o->topic,
                       lib->rd_kafka_err2str(lib->rd_kafka_last_error()));
    ck_status s = CK_OK;
    for (;;) {
        const struct rd_kafka_metadata *md = NULL;
        code = lib->rd_kafka_metadata(c->rk, 0, t, &md, WAIT_MS);
        lib->rd_kafka_poll(c->rk, 0);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
            s = partitions_of(c, md, o, partitions, &code, err);
            lib->rd_kafka_metadata_destroy(md);
            if (s != CK_OK || code == RD_KAFKA_RESP_ERR_NO_ERROR) break;
        }
        if ((s = ck_kafka_hopeless(c, o, err)) != CK_OK) break;
        if (ck_mono_us(c->proc) < give_up) continue;
        s = ck_kafka_fail(c, code, err, "Kafka at %s did not tell of topic %s within %lld ms", o->brokers, o->topic,
                          (long long)o->timeout_ms);
        break;
    }
    lib->rd_kafka_topic_destroy(t);
    return s;
}
