/* Partitions as splits. Where a split begins is looked up once, when it is found, and stored as an offset: what
 * `latest` meant then it means for good. */
#include <yyjson.h>

#include "base/json.h"
#include "connector/kafka/kafka_int.h"
#include "connector/kafka/metadata_int.h"
#include "os/clock.h"

enum { PAUSE_MS = 50 };

/* ---- JSON ---- */

ck_status ck_kafka_split_print(ck_arena *a, const ck_kafka_split *s, const char **out, ck_error *err) {
    struct yyjson_mut_doc *doc;
    CK_TRY(ck_json_new(a, &doc, err));
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    bool ok = yyjson_mut_obj_add_str(doc, root, "topic", s->topic) &&
              yyjson_mut_obj_add_int(doc, root, "partition", s->partition) &&
              yyjson_mut_obj_add_sint(doc, root, "position", s->position) &&
              (s->end == INT64_MAX || yyjson_mut_obj_add_sint(doc, root, "end", s->end)) &&
              (!s->half || yyjson_mut_obj_add_bool(doc, root, "half", true)) &&
              (s->time_us == INT64_MIN || yyjson_mut_obj_add_sint(doc, root, "time", s->time_us));
    if (!ok) return ck_nomem(err, a->mem, strlen(s->topic));
    ck_view text;
    CK_TRY(ck_json_write(a, doc, &text, err));
    *out = text.p;
    return CK_OK;
}

static bool member(yyjson_val *root, const char *name, int64_t deflt, int64_t *out) {
    yyjson_val *v = yyjson_obj_get(root, name);
    *out = v ? yyjson_get_sint(v) : deflt;
    return !v || (yyjson_is_int(v) && (yyjson_is_sint(v) || yyjson_get_uint(v) <= INT64_MAX));
}

ck_status ck_kafka_split_parse(ck_arena *a, const char *spec, ck_kafka_split *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(spec), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc), *topic = yyjson_obj_get(root, "topic");
    int64_t partition;
    bool ok = yyjson_is_str(topic) && strlen(yyjson_get_str(topic)) == yyjson_get_len(topic) &&
              member(root, "partition", -1, &partition) && member(root, "position", -1, &out->position) &&
              member(root, "end", INT64_MAX, &out->end) && member(root, "time", INT64_MIN, &out->time_us);
    if (!ok || partition < 0 || partition > INT32_MAX || out->position < 0 || out->end < 0)
        return ck_fail(err, CK_CORRUPT, "this is no split of a Kafka topic: %.200s", spec);
    out->topic = yyjson_get_str(topic);
    out->partition = (int32_t)partition;
    out->half = yyjson_get_bool(yyjson_obj_get(root, "half"));
    return CK_OK;
}

static ck_status share_print(ck_arena *a, const ck_kafka_share *s, const char **out, ck_error *err) {
    *out = ck_arena_printf(a, "{\"known\":%d,\"of\":%u,\"turn\":%u}", s->known, s->of, s->turn);
    return *out ? CK_OK : ck_nomem(err, a->mem, 64);
}

ck_status ck_kafka_share_parse(ck_arena *a, const char *spec, ck_kafka_share *out, ck_error *err) {
    struct yyjson_doc *doc;
    CK_TRY(ck_json_read(a, ck_view_of(spec), &doc, err));
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (!yyjson_obj_get(root, "known")) return CK_NOTFOUND;
    int64_t known, of, turn;
    bool ok = member(root, "known", -1, &known) && member(root, "of", 0, &of) && member(root, "turn", -1, &turn);
    if (!ok || known < 0 || known > INT32_MAX || turn < 0 || turn >= of || of > UINT32_MAX)
        return ck_fail(err, CK_CORRUPT, "this is no share of a Kafka topic: %.200s", spec);
    *out = (ck_kafka_share){(int32_t)known, (uint32_t)of, (uint32_t)turn};
    return CK_OK;
}

/* ---- where they begin ---- */

/* A topic that was just made, or whose leader just died, has none for a moment. */
static bool passes(const ck_kafka_client *c, rd_kafka_resp_err_t code, int64_t give_up_us) {
    if (code != RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION && code != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE &&
        code != RD_KAFKA_RESP_ERR__TRANSPORT && code != RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE &&
        code != RD_KAFKA_RESP_ERR_NOT_COORDINATOR && code != RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS)
        return false;
    if (ck_mono_us(c->proc) >= give_up_us) return false;
    c->lib->rd_kafka_poll(c->rk, PAUSE_MS);
    return true;
}

/* What a call about one partition in a list answers. */
static ck_status ask_one(ck_kafka_client *c, const ck_kafka_options *o, int32_t partition, int64_t ask, bool times,
                         int64_t *answer, ck_error *err) {
    const ck_kafka_lib *lib = c->lib;
    rd_kafka_topic_partition_list_t *list = lib->rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *p = lib->rd_kafka_topic_partition_list_add(list, o->topic, partition);
    int wait = (int)o->timeout_ms;
    int64_t give_up = ck_mono_us(c->proc) + o->timeout_ms * 1000;
    rd_kafka_resp_err_t code;
    do {
        p->offset = ask;
        code = times ? lib->rd_kafka_offsets_for_times(c->rk, list, wait) : lib->rd_kafka_committed(c->rk, list, wait);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) code = p->err;
    } while (passes(c, code, give_up));
    *answer = p->offset;
    lib->rd_kafka_topic_partition_list_destroy(list);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return CK_OK;
    return ck_kafka_fail(c, code, err, "%s of partition %d of topic %s",
                         times ? "asking for the offset at a time" : "asking for the group's offset", partition,
                         o->topic);
}

/* found_later: the partition came while the job ran, and all that is in it is new. */
static ck_status start_of(ck_kafka_client *c, const ck_kafka_options *o, bool found_later, ck_kafka_split *s,
                          ck_error *err) {
    int64_t low, high, at;
    int64_t give_up = ck_mono_us(c->proc) + o->timeout_ms * 1000;
    rd_kafka_resp_err_t code;
    do code = c->lib->rd_kafka_query_watermark_offsets(c->rk, o->topic, s->partition, &low, &high, (int)o->timeout_ms);
    while (passes(c, code, give_up));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return ck_kafka_fail(c, code, err, "asking for the offsets of partition %d of topic %s", s->partition,
                             o->topic);
    s->position = low;
    s->end = o->bounded ? high : INT64_MAX;
    if (found_later) return CK_OK;
    switch (o->start) {
    case CK_KAFKA_EARLIEST: break;
    case CK_KAFKA_LATEST: s->position = high; break;
    case CK_KAFKA_GROUP_OFFSETS:
        CK_TRY(ask_one(c, o, s->partition, RD_KAFKA_OFFSET_INVALID, false, &at, err));
        if (at < 0)
            return ck_fail(err, CK_NOTFOUND, "group %s has committed no offset of partition %d of topic %s", o->group,
                           s->partition, o->topic);
        s->position = at;
        break;
    case CK_KAFKA_TIMESTAMP:
        CK_TRY(ask_one(c, o, s->partition, o->start_ms, true, &at, err));
        s->position = at < 0 ? high : at; /* nothing is that young */
        break;
    case CK_KAFKA_OFFSETS:
        CK_TRY(ck_kafka_offset_of(o->start_offsets, s->partition, &at, err));
        if (at >= 0) s->position = at;
        break;
    }
    if (s->position < low || s->position > high)
        return ck_fail(err, CK_INVALID,
                       "partition %d of topic %s has the offsets %lld to %lld, and %lld is to be first", s->partition,
                       o->topic, (long long)low, (long long)high, (long long)s->position);
    if (s->end < s->position) s->end = s->position;
    return CK_OK;
}

static ck_status enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_kafka_client *c, ck_arena *a,
                           ck_split_list *out, ck_error *err) {
    ck_source_table table;
    ck_kafka_options o;
    CK_TRY(ck_source_table_read(a, spec, &table, err));
    CK_TRY(ck_kafka_options_read(&table.options, &o, err));
    const char *pairs[] = {"group.id", o.group, NULL};
    CK_TRY(ck_kafka_client_new(spec->proc, &o, RD_KAFKA_CONSUMER, o.group ? pairs : pairs + 2, a, c, err));
    int32_t count = 0;
    CK_TRY(ck_kafka_partitions(c, &o, &count, err));
    if (o.registry.url) {
        ck_kafka_metadata beside;
        CK_TRY(ck_kafka_metadata_read(a, &table, &beside, err));
        CK_TRY(ck_registry_check_source(spec->proc, &o.registry, beside.values, err));
    }
    if (o.start_offsets && !spec->continues && ck_kafka_partition_max(o.start_offsets) >= count)
        return ck_fail(err, CK_INVALID, "option 'start_offsets' names partition %lld, and topic %s has %d, from 0 on",
                       (long long)ck_kafka_partition_max(o.start_offsets), o.topic, count);
    out->now = o.start == CK_KAFKA_LATEST || o.start == CK_KAFKA_GROUP_OFFSETS || o.start == CK_KAFKA_TIMESTAMP;
    for (int32_t i = 0; i < count; i++) {
        ck_kafka_split s = {.topic = o.topic, .partition = i, .time_us = INT64_MIN};
        CK_TRY(start_of(c, &o, spec->continues, &s, err));
        const char *id = ck_arena_printf(a, "%s-%d", o.topic, i), *text;
        CK_TRY(ck_kafka_split_print(a, &s, &text, err));
        if (!id || ck_split_list_add(out, id, text) != CK_OK) return ck_nomem(err, a->mem, strlen(text));
    }
    for (uint32_t i = 0; !o.bounded && o.discover_ms && i < parallelism; i++) { /* in a row: one a subtask */
        ck_kafka_share share = {count, parallelism, i};
        const char *id = ck_arena_printf(a, "%s#%u", o.topic, i), *text;
        CK_TRY(share_print(a, &share, &text, err));
        if (!id || ck_split_list_add(out, id, text) != CK_OK) return ck_nomem(err, a->mem, strlen(text));
    }
    return CK_OK;
}

ck_status ck_kafka_enumerate(const ck_op_spec *spec, uint32_t parallelism, ck_split_list *out, ck_error *err) {
    ck_arena a;
    ck_arena_init(&a, ck_proc_mem(spec->proc, CK_MEM_PLAN), CK_PARAMS_BYTES_MAX);
    ck_kafka_client c = {0};
    ck_status s = enumerate(spec, parallelism, &c, &a, out, err);
    if (s != CK_OK && err && !strstr(err->msg, "Kafka")) ck_error_prefix(err, "Kafka: ");
    ck_kafka_client_destroy(&c);
    ck_arena_destroy(&a);
    return s;
}
