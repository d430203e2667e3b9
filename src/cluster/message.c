/* The tables of the messages: field numbers, kinds and ceilings. Numbers are never used again for something else. */
#include "cluster/message.h"

#define UINT_FIELD(n, s, m, limit)                                                                                     \
    { .number = n, .kind = CK_PROTO_UINT, .max = limit, .offset = offsetof(s, m), .name = #m }
#define SINT_FIELD(n, s, m)                                                                                            \
    { .number = n, .kind = CK_PROTO_SINT, .offset = offsetof(s, m), .name = #m }
#define TEXT_FIELD(n, s, m, limit)                                                                                     \
    { .number = n, .kind = CK_PROTO_TEXT, .max = limit, .offset = offsetof(s, m), .name = #m }
#define BYTES_FIELD(n, s, m, limit)                                                                                    \
    { .number = n, .kind = CK_PROTO_BYTES, .max = limit, .offset = offsetof(s, m), .name = #m }
#define UINTS_FIELD(n, s, m, limit)                                                                                    \
    { .number = n, .kind = CK_PROTO_UINTS, .max = limit, .offset = offsetof(s, m), .name = #m }
#define LIST_FIELD(n, s, m, limit, type)                                                                               \
    { .number = n, .kind = CK_PROTO_LIST, .max = limit, .offset = offsetof(s, m), .of = type, .name = #m }
#define FENCE_FIELDS(s)                                                                                                \
    UINT_FIELD(1, s, fence.epoch, 0), UINT_FIELD(2, s, fence.job, 0), UINT_FIELD(3, s, fence.attempt, 0)
#define PROGRESS_FIELDS(n, s)                                                                                          \
    UINT_FIELD(n, s, progress.known, 1), UINT_FIELD((n) + 1, s, progress.rows_in, 0),                                  \
        UINT_FIELD((n) + 2, s, progress.rows_out, 0), UINT_FIELD((n) + 3, s, progress.event_time, CK_EVENT_TIME_HELD), \
        SINT_FIELD((n) + 4, s, progress.watermark_us), TEXT_FIELD((n) + 5, s, progress.note, CK_CLUSTER_NOTE_MAX),     \
        UINT_FIELD((n) + 6, s, progress.memory_bytes, 0), UINT_FIELD((n) + 7, s, progress.memory_limit, 0)
#define TYPE(s, text)                                                                                                  \
    static const ck_proto_type s##_type = {                                                                            \
        .name = text, .bytes = sizeof(ck_msg_##s), .fields = s##_fields, .field_count = CK_ARRAY_COUNT(s##_fields)}

enum { NAME = CK_CLUSTER_NAME_MAX, PATH = CK_CLUSTER_PATH_MAX, TASKS = CK_CLUSTER_TASKS_MAX };

static const ck_proto_field plugin_fields[] = {TEXT_FIELD(1, ck_msg_plugin, hash, CK_CLUSTER_HASH_CHARS),
                                               UINT_FIELD(2, ck_msg_plugin, bytes, CK_CLUSTER_PLUGIN_BYTES_MAX),
                                               TEXT_FIELD(3, ck_msg_plugin, name, NAME)};
TYPE(plugin, "plugin");

static const ck_proto_field hosted_fields[] = {
    UINT_FIELD(1, ck_msg_hosted, job, 0), UINT_FIELD(2, ck_msg_hosted, attempt, 0),
    UINT_FIELD(3, ck_msg_hosted, phase, CK_HOST_STARTED), TEXT_FIELD(4, ck_msg_hosted, address, NAME),
    UINT_FIELD(5, ck_msg_hosted, checkpoint, 0)};
TYPE(hosted, "hosted");

static const ck_proto_field register_fields[] = {
    FENCE_FIELDS(ck_msg_register),
    TEXT_FIELD(4, ck_msg_register, worker, NAME),
    UINT_FIELD(5, ck_msg_register, incarnation, 0),
    UINT_FIELD(6, ck_msg_register, slots, CK_CLUSTER_SLOTS_MAX),
    TEXT_FIELD(7, ck_msg_register, address, NAME),
    LIST_FIELD(8, ck_msg_register, hosted, CK_CLUSTER_JOBS_MAX, &hosted_type),
    UINT_FIELD(9, ck_msg_register, turn, 0)};
TYPE(register, "REGISTER");

static const ck_proto_field progress_fields[] = {FENCE_FIELDS(ck_msg_progress), PROGRESS_FIELDS(4, ck_msg_progress)};
TYPE(progress, "PROGRESS");

static const ck_proto_field heartbeat_fields[] = {
    FENCE_FIELDS(ck_msg_heartbeat), LIST_FIELD(4, ck_msg_heartbeat, progress, CK_CLUSTER_SLOTS_MAX, &progress_type)};
TYPE(heartbeat, "HEARTBEAT");

static const ck_proto_field ready_fields[] = {FENCE_FIELDS(ck_msg_ready), TEXT_FIELD(4, ck_msg_ready, address, NAME)};
TYPE(ready, "READY");

static const ck_proto_field ended_fields[] = {FENCE_FIELDS(ck_msg_ended), UINTS_FIELD(4, ck_msg_ended, tasks, TASKS),
                                              UINT_FIELD(5, ck_msg_ended, outcome, CK_TASK_FAILED),
                                              UINT_FIELD(6, ck_msg_ended, flags, CK_ENDED_FLAGS_MAX),
                                              TEXT_FIELD(7, ck_msg_ended, error, CK_CLUSTER_ERROR_MAX)};
TYPE(ended, "ENDED");

static const ck_proto_field checkpoint_fields[] = {FENCE_FIELDS(ck_msg_checkpoint),
                                                   UINT_FIELD(4, ck_msg_checkpoint, checkpoint, 0)};
TYPE(checkpoint, "CHECKPOINT");

static const ck_proto_field savepoint_ended_fields[] = {
    FENCE_FIELDS(ck_msg_savepoint_ended), UINT_FIELD(4, ck_msg_savepoint_ended, request, 0),
    UINT_FIELD(5, ck_msg_savepoint_ended, checkpoint, 0),
    TEXT_FIELD(6, ck_msg_savepoint_ended, error, CK_CLUSTER_ERROR_MAX)};
TYPE(savepoint_ended, "SAVEPOINT_ENDED");

static const ck_proto_field want_plugin_fields[] = {
    FENCE_FIELDS(ck_msg_want_plugin), TEXT_FIELD(4, ck_msg_want_plugin, hash, CK_CLUSTER_HASH_CHARS),
    UINT_FIELD(5, ck_msg_want_plugin, offset, CK_CLUSTER_PLUGIN_BYTES_MAX)};
TYPE(want_plugin, "WANT_PLUGIN");

static const ck_proto_field plugin_part_fields[] = {
    FENCE_FIELDS(ck_msg_plugin_part), TEXT_FIELD(4, ck_msg_plugin_part, hash, CK_CLUSTER_HASH_CHARS),
    UINT_FIELD(5, ck_msg_plugin_part, offset, CK_CLUSTER_PLUGIN_BYTES_MAX),
    BYTES_FIELD(6, ck_msg_plugin_part, part, CK_CLUSTER_PART_BYTES_MAX),
    TEXT_FIELD(7, ck_msg_plugin_part, error, CK_CLUSTER_ERROR_MAX)};
TYPE(plugin_part, "PLUGIN_PART");

static const ck_proto_field offer_plugin_fields[] = {
    FENCE_FIELDS(ck_msg_offer_plugin), TEXT_FIELD(4, ck_msg_offer_plugin, plugin.hash, CK_CLUSTER_HASH_CHARS),
    UINT_FIELD(5, ck_msg_offer_plugin, plugin.bytes, CK_CLUSTER_PLUGIN_BYTES_MAX),
    TEXT_FIELD(6, ck_msg_offer_plugin, plugin.name, NAME)};
TYPE(offer_plugin, "OFFER_PLUGIN");

static const ck_proto_field upload_part_fields[] = {
    FENCE_FIELDS(ck_msg_upload_part), UINT_FIELD(4, ck_msg_upload_part, offset, CK_CLUSTER_PLUGIN_BYTES_MAX),
    BYTES_FIELD(5, ck_msg_upload_part, part, CK_CLUSTER_PART_BYTES_MAX)};
TYPE(upload_part, "UPLOAD_PART");

static const ck_proto_field welcome_fields[] = {FENCE_FIELDS(ck_msg_welcome),
                                                UINT_FIELD(4, ck_msg_welcome, heartbeat_ms, INT32_MAX),
                                                UINT_FIELD(5, ck_msg_welcome, timeout_ms, INT32_MAX)};
TYPE(welcome, "WELCOME");

static const ck_proto_field role_fields[] = {
    TEXT_FIELD(1, ck_msg_role, name, PATH), UINT_FIELD(2, ck_msg_role, parallelism, CK_PARALLELISM_MAX),
    BYTES_FIELD(3, ck_msg_role, config, CK_CLUSTER_SPEC_MAX), UINTS_FIELD(4, ck_msg_role, peers, CK_CLUSTER_ROLES_MAX),
    UINT_FIELD(5, ck_msg_role, region, CK_CLUSTER_REGIONS_MAX - 1)};
TYPE(role, "role");

static const ck_proto_field skip_fields[] = {TEXT_FIELD(1, ck_msg_skip, record, PATH)};
TYPE(skip, "skipped record");

static const ck_proto_field deploy_fields[] = {
    FENCE_FIELDS(ck_msg_deploy),
    TEXT_FIELD(4, ck_msg_deploy, name, NAME),
    BYTES_FIELD(5, ck_msg_deploy, spec, CK_CLUSTER_SPEC_MAX),
    TEXT_FIELD(6, ck_msg_deploy, checkpoint_dir, PATH),
    TEXT_FIELD(7, ck_msg_deploy, restore_from_dir, PATH),
    UINT_FIELD(8, ck_msg_deploy, restore_from_checkpoint_id, 0),
    UINT_FIELD(9, ck_msg_deploy, process, TASKS),
    UINT_FIELD(10, ck_msg_deploy, process_count, TASKS),
    UINTS_FIELD(11, ck_msg_deploy, tasks, TASKS),
    UINTS_FIELD(12, ck_msg_deploy, placement, TASKS),
    LIST_FIELD(13, ck_msg_deploy, roles, CK_CLUSTER_ROLES_MAX, &role_type),
    LIST_FIELD(14, ck_msg_deploy, skips, CK_CLUSTER_SKIPS_MAX, &skip_type),
    TEXT_FIELD(15, ck_msg_deploy, secret, CK_CLUSTER_SECRET_CHARS),
    LIST_FIELD(24, ck_msg_deploy, plugins, CK_CLUSTER_PLUGINS_MAX, &plugin_type),
    UINT_FIELD(25, ck_msg_deploy, region, CK_CLUSTER_REGIONS_MAX - 1),
    UINT_FIELD(26, ck_msg_deploy, region_count, CK_CLUSTER_REGIONS_MAX)};
TYPE(deploy, "DEPLOY");

static const ck_proto_field text_fields[] = {TEXT_FIELD(1, ck_msg_text, text, NAME)};
TYPE(text, "text");

static const ck_proto_field start_fields[] = {
    FENCE_FIELDS(ck_msg_start), LIST_FIELD(4, ck_msg_start, addresses, CK_CLUSTER_WORKERS_MAX, &text_type)};
TYPE(start, "START");

static const ck_proto_field cancel_job_fields[] = {FENCE_FIELDS(ck_msg_cancel_job)};
TYPE(cancel_job, "CANCEL_JOB");

static const ck_proto_field take_savepoint_fields[] = {
    FENCE_FIELDS(ck_msg_take_savepoint), UINT_FIELD(4, ck_msg_take_savepoint, request, 0),
    UINT_FIELD(5, ck_msg_take_savepoint, stop, 1), UINT_FIELD(6, ck_msg_take_savepoint, timeout_ms, INT32_MAX),
    UINT_FIELD(7, ck_msg_take_savepoint, above, 0)};
TYPE(take_savepoint, "TAKE_SAVEPOINT");

static const ck_proto_field hello_fields[] = {FENCE_FIELDS(ck_msg_hello),
                                              UINT_FIELD(4, ck_msg_hello, version, UINT32_MAX),
                                              TEXT_FIELD(5, ck_msg_hello, token, NAME)};
TYPE(hello, "HELLO");

static const ck_proto_field submit_fields[] = {
    FENCE_FIELDS(ck_msg_submit),
    TEXT_FIELD(4, ck_msg_submit, name, NAME),
    BYTES_FIELD(5, ck_msg_submit, spec, CK_CLUSTER_SPEC_MAX),
    TEXT_FIELD(6, ck_msg_submit, checkpoint_dir, PATH),
    UINT_FIELD(7, ck_msg_submit, interval_ms, INT32_MAX),
    TEXT_FIELD(8, ck_msg_submit, restore_from_dir, PATH),
    UINT_FIELD(9, ck_msg_submit, restore_from_checkpoint_id, 0),
    SINT_FIELD(10, ck_msg_submit, max_restarts_on_worker_loss),
    LIST_FIELD(11, ck_msg_submit, roles, CK_CLUSTER_ROLES_MAX, &role_type),
    UINT_FIELD(12, ck_msg_submit, wait, 1),
    LIST_FIELD(20, ck_msg_submit, plugins, CK_CLUSTER_PLUGINS_MAX, &plugin_type)};
TYPE(submit, "SUBMIT");

static const ck_proto_field command_fields[] = {
    FENCE_FIELDS(ck_msg_command), UINT_FIELD(4, ck_msg_command, command, CK_COMMAND_MAX),
    UINT_FIELD(5, ck_msg_command, timeout_ms, INT32_MAX), TEXT_FIELD(6, ck_msg_command, skip_record, PATH)};
TYPE(command, "COMMAND");

static const ck_proto_field region_info_fields[] = {
    TEXT_FIELD(1, ck_msg_region_info, state, NAME),  TEXT_FIELD(2, ck_msg_region_info, error, CK_CLUSTER_ERROR_MAX),
    UINT_FIELD(3, ck_msg_region_info, attempt, 0),   UINT_FIELD(4, ck_msg_region_info, restarts, 0),
    UINT_FIELD(5, ck_msg_region_info, tasks, TASKS), UINT_FIELD(6, ck_msg_region_info, tasks_running, TASKS),
    UINT_FIELD(7, ck_msg_region_info, checkpoint, 0)};
TYPE(region_info, "region");

static const ck_proto_field job_info_fields[] = {
    UINT_FIELD(1, ck_msg_job_info, id, 0),
    TEXT_FIELD(2, ck_msg_job_info, name, NAME),
    TEXT_FIELD(3, ck_msg_job_info, state, NAME),
    TEXT_FIELD(4, ck_msg_job_info, error, CK_CLUSTER_ERROR_MAX),
    UINT_FIELD(5, ck_msg_job_info, attempt, 0),
    UINT_FIELD(6, ck_msg_job_info, restarts, 0),
    UINT_FIELD(7, ck_msg_job_info, restarts_max, 0),
    UINT_FIELD(8, ck_msg_job_info, tasks, TASKS),
    UINT_FIELD(9, ck_msg_job_info, tasks_running, TASKS),
    UINT_FIELD(10, ck_msg_job_info, checkpoint, 0),
    PROGRESS_FIELDS(11, ck_msg_job_info),
    LIST_FIELD(19, ck_msg_job_info, regions, CK_CLUSTER_REGIONS_MAX, &region_info_type)};
TYPE(job_info, "job");

static const ck_proto_field task_info_fields[] = {
    TEXT_FIELD(1, ck_msg_task_info, role, PATH),   TEXT_FIELD(2, ck_msg_task_info, state, NAME),
    TEXT_FIELD(3, ck_msg_task_info, worker, NAME), TEXT_FIELD(4, ck_msg_task_info, error, CK_CLUSTER_ERROR_MAX),
    UINT_FIELD(5, ck_msg_task_info, index, TASKS), UINT_FIELD(6, ck_msg_task_info, region, CK_CLUSTER_REGIONS_MAX - 1)};
TYPE(task_info, "task");

static const ck_proto_field reply_fields[] = {FENCE_FIELDS(ck_msg_reply),
                                              UINT_FIELD(4, ck_msg_reply, status, CK_CANCELLED),
                                              TEXT_FIELD(5, ck_msg_reply, error, CK_CLUSTER_ERROR_MAX),
                                              UINT_FIELD(6, ck_msg_reply, checkpoint, 0),
                                              LIST_FIELD(7, ck_msg_reply, jobs, CK_CLUSTER_JOBS_MAX, &job_info_type),
                                              LIST_FIELD(8, ck_msg_reply, tasks, TASKS, &task_info_type),
                                              UINT_FIELD(12, ck_msg_reply, wanted, 1),
                                              TEXT_FIELD(13, ck_msg_reply, checkpoint_dir, PATH)};
TYPE(reply, "REPLY");

static const ck_proto_field record_leader_fields[] = {UINT_FIELD(1, ck_msg_record_leader, epoch, 0),
                                                      UINT_FIELD(2, ck_msg_record_leader, next_job, 0)};
TYPE(record_leader, "leader record");

static const ck_proto_field record_host_fields[] = {TEXT_FIELD(1, ck_msg_record_host, worker, NAME),
                                                    UINT_FIELD(2, ck_msg_record_host, incarnation, 0),
                                                    UINTS_FIELD(3, ck_msg_record_host, tasks, TASKS)};
TYPE(record_host, "host");

static const ck_proto_field record_region_fields[] = {
    UINT_FIELD(1, ck_msg_record_region, attempt, 0),
    UINT_FIELD(2, ck_msg_record_region, state, 255),
    UINT_FIELD(3, ck_msg_record_region, goal, 255),
    UINT_FIELD(4, ck_msg_record_region, restart_attempts, UINT32_MAX),
    UINT_FIELD(5, ck_msg_record_region, latest_completed_checkpoint_id, 0),
    TEXT_FIELD(6, ck_msg_record_region, error, CK_CLUSTER_ERROR_MAX),
    LIST_FIELD(7, ck_msg_record_region, skips, CK_CLUSTER_SKIPS_MAX, &skip_type),
    LIST_FIELD(8, ck_msg_record_region, hosts, CK_CLUSTER_WORKERS_MAX, &record_host_type),
    UINTS_FIELD(9, ck_msg_record_region, states, TASKS)};
TYPE(record_region, "region");

static const ck_proto_field record_job_fields[] = {
    UINT_FIELD(1, ck_msg_record_job, job.fence.epoch, 0),
    UINT_FIELD(2, ck_msg_record_job, job.fence.job, 0),
    UINT_FIELD(3, ck_msg_record_job, job.fence.attempt, 0),
    TEXT_FIELD(4, ck_msg_record_job, job.name, NAME),
    BYTES_FIELD(5, ck_msg_record_job, job.spec, CK_CLUSTER_SPEC_MAX),
    TEXT_FIELD(6, ck_msg_record_job, job.checkpoint_dir, PATH),
    UINT_FIELD(7, ck_msg_record_job, job.interval_ms, INT32_MAX),
    TEXT_FIELD(8, ck_msg_record_job, job.restore_from_dir, PATH),
    UINT_FIELD(9, ck_msg_record_job, job.restore_from_checkpoint_id, 0),
    SINT_FIELD(10, ck_msg_record_job, job.max_restarts_on_worker_loss),
    LIST_FIELD(11, ck_msg_record_job, job.roles, CK_CLUSTER_ROLES_MAX, &role_type),
    UINT_FIELD(13, ck_msg_record_job, state, 255),
    UINT_FIELD(14, ck_msg_record_job, goal, 255),
    UINT_FIELD(15, ck_msg_record_job, restart_attempts, UINT32_MAX),
    UINT_FIELD(16, ck_msg_record_job, latest_completed_checkpoint_id, 0),
    TEXT_FIELD(17, ck_msg_record_job, error, CK_CLUSTER_ERROR_MAX),
    LIST_FIELD(18, ck_msg_record_job, skips, CK_CLUSTER_SKIPS_MAX, &skip_type),
    LIST_FIELD(19, ck_msg_record_job, hosts, CK_CLUSTER_WORKERS_MAX, &record_host_type),
    UINTS_FIELD(20, ck_msg_record_job, states, TASKS),
    LIST_FIELD(30, ck_msg_record_job, job.plugins, CK_CLUSTER_PLUGINS_MAX, &plugin_type),
    LIST_FIELD(31, ck_msg_record_job, regions, CK_CLUSTER_REGIONS_MAX - 1, &record_region_type)};
TYPE(record_job, "job record");

static const ck_proto_type *type_of(unsigned kind) {
    switch (kind) {
    case CK_MSG_REGISTER: return &register_type;
    case CK_MSG_HEARTBEAT: return &heartbeat_type;
    case CK_MSG_READY: return &ready_type;
    case CK_MSG_ENDED: return &ended_type;
    case CK_MSG_CHECKPOINT: return &checkpoint_type;
    case CK_MSG_SAVEPOINT_ENDED: return &savepoint_ended_type;
    case CK_MSG_PROGRESS: return &progress_type;
    case CK_MSG_WANT_PLUGIN: return &want_plugin_type;
    case CK_MSG_PLUGIN_PART: return &plugin_part_type;
    case CK_MSG_OFFER_PLUGIN: return &offer_plugin_type;
    case CK_MSG_UPLOAD_PART: return &upload_part_type;
    case CK_MSG_WELCOME: return &welcome_type;
    case CK_MSG_DEPLOY: return &deploy_type;
    case CK_MSG_START: return &start_type;
    case CK_MSG_CANCEL_JOB: return &cancel_job_type;
    case CK_MSG_TAKE_SAVEPOINT: return &take_savepoint_type;
    case CK_MSG_HELLO: return &hello_type;
    case CK_MSG_SUBMIT: return &submit_type;
    case CK_MSG_COMMAND: return &command_type;
    case CK_MSG_REPLY: return &reply_type;
    case CK_MSG_RECORD_LEADER: return &record_leader_type;
    case CK_MSG_RECORD_JOB: return &record_job_type;
    default: return NULL;
    }
}

const char *ck_message_name(ck_message_kind k) {
    const ck_proto_type *t = type_of(k);
    return t ? t->name : "unknown";
}

size_t ck_message_bytes(const ck_message *m) { return ck_proto_bytes(type_of(m->kind), &m->as); }

ck_status ck_message_frame(ck_mem mem, const ck_message *m, ck_frame **out, ck_error *err) {
    const ck_proto_type *t = type_of(m->kind);
    size_t n = ck_message_bytes(m);
    *out = NULL;
    if (n > CK_FRAME_CONTROL_BYTES_MAX - 1)
        return ck_fail(err, CK_FULL, "a %s message of %zu bytes is longer than a frame may be", t->name, n);
    *out = ck_frame_new(mem, (uint8_t)m->kind, n);
    if (!*out) return ck_nomem(err, mem, n);
    CK_ASSERT(ck_proto_write(t, &m->as, (*out)->p) == (*out)->p + n);
    return CK_OK;
}

ck_status ck_message_read(const ck_frame *f, ck_arena *a, ck_message *out, ck_error *err) {
    const ck_proto_type *t = type_of(f->kind);
    if (!t) return ck_fail(err, CK_CORRUPT, "a control frame of the unknown kind %u", f->kind);
    *out = (ck_message){.kind = f->kind};
    return ck_proto_read(t, (ck_view){(const char *)f->p, f->n}, a, &out->as, err);
}
