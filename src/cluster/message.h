/* What coordinator, workers and clients say to each other: frames of net/frame.h whose payload is protobuf. Each
 * carries the epoch of the leader it was meant for or comes from, and what is about a job its attempt, so that whoever
 * hears it can tell a word of the present from one of the past. A job's record, kept for the next leader, is written
 * the same way.
 *
 * Views and lists of a message that was read borrow from the frame and the arena given. */
#ifndef CK_CLUSTER_MESSAGE_H
#define CK_CLUSTER_MESSAGE_H

#include "cluster/proto.h"
#include "net/frame.h"

typedef enum ck_message_kind {
    /* worker to coordinator */
    CK_MSG_REGISTER = 1,
    CK_MSG_HEARTBEAT,
    CK_MSG_READY,
    CK_MSG_ENDED,
    CK_MSG_CHECKPOINT,
    CK_MSG_SAVEPOINT_ENDED,
    CK_MSG_PROGRESS, /* a task host to its worker, which puts it into its heartbeats */
    CK_MSG_WANT_PLUGIN = 16,
    /* coordinator to worker; HEARTBEAT, too */
    CK_MSG_WELCOME = 32,
    CK_MSG_DEPLOY,
    CK_MSG_START,
    CK_MSG_CANCEL_JOB,
    CK_MSG_TAKE_SAVEPOINT,
    CK_MSG_PLUGIN_PART = 44,
    /* from whoever has connected, before anything else */
    CK_MSG_HELLO = 48,
    /* client to coordinator, and back */
    CK_MSG_SUBMIT = 64,
    CK_MSG_COMMAND,
    CK_MSG_REPLY,
    CK_MSG_OFFER_PLUGIN = 72,
    CK_MSG_UPLOAD_PART,
    /* kept */
    CK_MSG_RECORD_LEADER = 96,
    CK_MSG_RECORD_JOB,
} ck_message_kind;

enum {
    CK_CLUSTER_TASKS_MAX = 65536, /* of one job */
    CK_CLUSTER_ROLES_MAX = 4096,
    CK_CLUSTER_REGIONS_MAX = 256, /* of one job */
    CK_CLUSTER_REGION_SHIFT = 48, /* in a region's number */
    CK_CLUSTER_WORKERS_MAX = 1024,
    CK_CLUSTER_JOBS_MAX = 4096,
    CK_CLUSTER_SLOTS_MAX = 4096, /* of one worker */
    CK_CLUSTER_NAME_MAX = 255,
    CK_CLUSTER_PATH_MAX = 4096,
    CK_CLUSTER_SKIPS_MAX = 64, /* records that one job goes on without */
    CK_CLUSTER_SPEC_MAX = 15 << 20,
    CK_CLUSTER_ERROR_MAX = 2000,
    CK_CLUSTER_NOTE_MAX = 256,
    CK_CLUSTER_SECRET_CHARS = 64, /* hex digits */
    CK_CLUSTER_HASH_CHARS = 64,   /* of a plugin: its SHA-256 in hex digits */
    CK_CLUSTER_PLUGINS_MAX = 16,  /* of one job */
    CK_CLUSTER_PLUGIN_BYTES_MAX = 64 << 20,
    CK_CLUSTER_PART_BYTES_MAX = 256 << 10, /* of a plugin, in one message */
};

/* A region of a job is a part of its graph that no edge joins to the rest: it is lost and restarts alone. Between
 * coordinator and workers each is a job with its own attempts, under a number that says whose it is; the first region,
 * which of most jobs is all, has the job's. */
typedef struct ck_msg_fence {
    uint64_t epoch, job, attempt;
} ck_msg_fence;

static inline uint64_t ck_region_number(uint64_t job, uint32_t region) {
    return job | (uint64_t)region << CK_CLUSTER_REGION_SHIFT;
}

/* ---- worker to coordinator ---- */

/* A plugin that a job runs with, by what its file holds. */
typedef struct ck_msg_plugin {
    ck_view hash; /* base/sha256.h */
    uint64_t bytes;
    ck_view name; /* of the file where it was submitted: for sentences */
} ck_msg_plugin;

typedef enum ck_host_phase { CK_HOST_DEPLOYED, CK_HOST_READY, CK_HOST_STARTED } ck_host_phase;

/* A task host that a worker has: one process with all tasks of one attempt of a job on that worker. */
typedef struct ck_msg_hosted {
    uint64_t job, attempt, phase;
    ck_view address;     /* of its data port, once it is ready */
    uint64_t checkpoint; /* the last one it completed; 0 = none */
} ck_msg_hosted;

typedef struct ck_msg_register {
    ck_msg_fence fence;   /* epoch: of the leader it last heard; 0 = none */
    ck_view worker;       /* who it is, the same over restarts */
    uint64_t incarnation; /* another one for each of its processes */
    uint64_t slots;
    ck_view address; /* where it can be probed */
    ck_proto_list hosted;
    uint64_t turn; /* of this process's registrations: one that is read behind a later one is refused */
} ck_msg_register;

typedef enum ck_event_time {
    CK_EVENT_TIME_NONE, /* no source has it, or all have ended */
    CK_EVENT_TIME_IDLE, /* all splits are idle: the watermark stays */
    CK_EVENT_TIME_HELD, /* by a split */
} ck_event_time;

/* How far an attempt of a job is, on one host or on all of them. */
typedef struct ck_progress {
    uint64_t known; /* 1; 0: nobody has said anything yet, and the rest is 0 */
    uint64_t rows_in, rows_out;
    uint64_t event_time;  /* ck_event_time */
    int64_t watermark_us; /* CK_WATERMARK_MIN: none yet */
    ck_view note;         /* what the watermark waits for, in a sentence */
    uint64_t memory_bytes, memory_limit;
} ck_progress;

typedef struct ck_msg_progress {
    ck_msg_fence fence;
    ck_progress progress;
} ck_msg_progress;

/* The coordinator answers each with one, without progress: a worker that hears nothing looks for another. */
typedef struct ck_msg_heartbeat {
    ck_msg_fence fence;
    ck_proto_list progress; /* ck_msg_progress: of hosts that have got further */
} ck_msg_heartbeat;

/* The host listens, all its tasks could start. */
typedef struct ck_msg_ready {
    ck_msg_fence fence;
    ck_view address; /* of its data port; empty: nobody is to dial it */
} ck_msg_ready;

typedef enum ck_task_outcome { CK_TASK_FINISHED, CK_TASK_CANCELLED, CK_TASK_FAILED } ck_task_outcome;

enum {
    CK_ENDED_FATAL = 1,            /* no restart helps */
    CK_ENDED_DATA = 2,             /* a record that will fail again in the same place */
    CK_ENDED_FINAL_CHECKPOINT = 4, /* sources had ended, and the final checkpoint was not completed in time */
    CK_ENDED_FLAGS_MAX = 7,
};

/* Tasks have ended and nothing of them works any more: their process has been reaped. */
typedef struct ck_msg_ended {
    ck_msg_fence fence;
    ck_proto_uints tasks; /* none: all on this worker */
    uint64_t outcome, flags;
    ck_view error;
} ck_msg_ended;

typedef struct ck_msg_checkpoint { /* is complete */
    ck_msg_fence fence;
    uint64_t checkpoint;
} ck_msg_checkpoint;

typedef struct ck_msg_savepoint_ended {
    ck_msg_fence fence;
    uint64_t request, checkpoint; /* 0: it did not come about, for the reason in error */
    ck_view error;
} ck_msg_savepoint_ended;

/* The worker does not have it. Answered by the part from there; one question at a time. */
typedef struct ck_msg_want_plugin {
    ck_msg_fence fence;
    ck_view hash;
    uint64_t offset;
} ck_msg_want_plugin;

/* ---- coordinator to worker ---- */

typedef struct ck_msg_plugin_part {
    ck_msg_fence fence;
    ck_view hash;
    uint64_t offset;
    ck_view part;
    ck_view error; /* why there is none */
} ck_msg_plugin_part;

typedef struct ck_msg_welcome {
    ck_msg_fence fence;
    uint64_t heartbeat_ms, timeout_ms;
} ck_msg_welcome;

/* A vertex of the graph: it runs as `parallelism` tasks, which are numbered over all roles. */
typedef struct ck_msg_role {
    ck_view name;
    uint64_t parallelism;
    ck_view config;       /* whatever its tasks are told; the coordinator only keeps it */
    ck_proto_uints peers; /* roles it sends to, by their place in the list */
    uint64_t region;      /* of the job, which it is in; its peers are in the same */
} ck_msg_role;

/* A record that would fail again: the job goes on without it, in all attempts to come. */
typedef struct ck_msg_skip {
    ck_view record; /* SPLIT:OFFSET */
} ck_msg_skip;

typedef struct ck_msg_deploy {
    ck_msg_fence fence;
    ck_view name, spec;
    ck_view checkpoint_dir;
    ck_view restore_from_dir; /* empty: a new beginning */
    uint64_t restore_from_checkpoint_id;
    uint64_t process, process_count; /* this host, of how many */
    ck_proto_uints tasks;            /* to run here */
    ck_proto_uints placement;        /* the process of every task; UINT32_MAX: it has finished */
    ck_proto_list roles;
    ck_proto_list skips;           /* ck_msg_skip */
    ck_view secret;                /* of the attempt: who knows it may connect to the data ports of its hosts */
    ck_proto_list plugins;         /* ck_msg_plugin: the worker sees to it that they are there */
    uint64_t region, region_count; /* the part of the job that roles, tasks and placement are of; count 0: all of it */
} ck_msg_deploy;

typedef struct ck_msg_text {
    ck_view text;
} ck_msg_text;

typedef struct ck_msg_start {
    ck_msg_fence fence;
    ck_proto_list addresses; /* ck_msg_text, by process */
} ck_msg_start;

typedef struct ck_msg_cancel_job {
    ck_msg_fence fence;
} ck_msg_cancel_job;

typedef struct ck_msg_take_savepoint {
    ck_msg_fence fence;
    uint64_t request, stop, timeout_ms;
    uint64_t above; /* of a region: its number is to be above this, so that the job's savepoint is none before it */
} ck_msg_take_savepoint;

/* ---- everybody ---- */

enum { CK_CLUSTER_VERSION = 4 }; /* 2: heartbeats are answered; 3: plugins; 4: regions */

/* What shows that a peer may talk: the cluster's token. Between a worker and its hosts it is not needed. */
typedef struct ck_msg_hello {
    ck_msg_fence fence; /* from a host: its job and attempt */
    uint64_t version;
    ck_view token;
} ck_msg_hello;

/* ---- clients ---- */

enum { CK_RESTART_AUTO = -1 };

/* As the specification's CheckpointConfig: what decides about restarts. The sentinel is kept, never what it resolves
 * to. */
typedef struct ck_msg_submit {
    ck_msg_fence fence;
    ck_view name, spec;
    ck_view checkpoint_dir;
    uint64_t interval_ms;
    ck_view restore_from_dir;
    uint64_t restore_from_checkpoint_id;
    int64_t max_restarts_on_worker_loss; /* CK_RESTART_AUTO or at least 0 */
    ck_proto_list roles;
    uint64_t wait;         /* 1: reply when the job has ended */
    ck_proto_list plugins; /* ck_msg_plugin: the coordinator has them */
} ck_msg_submit;

/* Does the coordinator have it, and would it take it? REPLY: `wanted` when it is to be sent, over this connection, in
 * parts one after the other, each answered by a REPLY. */
typedef struct ck_msg_offer_plugin {
    ck_msg_fence fence;
    ck_msg_plugin plugin;
} ck_msg_offer_plugin;

typedef struct ck_msg_upload_part {
    ck_msg_fence fence;
    uint64_t offset;
    ck_view part;
} ck_msg_upload_part;

typedef enum ck_command {
    CK_COMMAND_LIST = 1,
    CK_COMMAND_STATUS,
    CK_COMMAND_CANCEL,
    CK_COMMAND_RESUME,
    CK_COMMAND_DROP,
    CK_COMMAND_SAVEPOINT,
    CK_COMMAND_STOP,
    CK_COMMAND_WAIT,
    CK_COMMAND_MAX = CK_COMMAND_WAIT,
} ck_command;

typedef struct ck_msg_command {
    ck_msg_fence fence;
    uint64_t command, timeout_ms;
    ck_view skip_record; /* RESUME: SPLIT:OFFSET */
} ck_msg_command;

typedef struct ck_msg_region_info {
    ck_view state, error;
    uint64_t attempt, restarts, tasks, tasks_running, checkpoint;
} ck_msg_region_info;

/* Of a job with regions: the error is that of the one that failed, attempt and restarts are the greatest of theirs. */
typedef struct ck_msg_job_info {
    uint64_t id;
    ck_view name, state, error;
    uint64_t attempt, restarts, restarts_max, tasks, tasks_running, checkpoint;
    ck_progress progress;  /* of all hosts of the attempt */
    ck_proto_list regions; /* ck_msg_region_info, by number; none where the job is one, and in a LIST */
} ck_msg_job_info;

typedef struct ck_msg_task_info {
    ck_view role, state, worker, error;
    uint64_t index, region;
} ck_msg_task_info;

typedef struct ck_msg_reply {
    ck_msg_fence fence;
    uint64_t status; /* ck_status */
    ck_view error;
    uint64_t checkpoint;    /* SAVEPOINT, STOP: the one that was taken */
    ck_proto_list jobs;     /* ck_msg_job_info */
    ck_proto_list tasks;    /* ck_msg_task_info; STATUS */
    uint64_t wanted;        /* OFFER_PLUGIN: 1: send it */
    ck_view checkpoint_dir; /* where `checkpoint` stands */
} ck_msg_reply;

/* ---- kept ---- */

typedef struct ck_msg_record_leader {
    uint64_t epoch, next_job;
} ck_msg_record_leader;

typedef struct ck_msg_record_host {
    ck_view worker;
    uint64_t incarnation;
    ck_proto_uints tasks;
} ck_msg_record_host;

/* A region behind the first, which the record itself is of. */
typedef struct ck_msg_record_region {
    uint64_t attempt, state, goal;
    uint64_t restart_attempts, latest_completed_checkpoint_id;
    ck_view error;
    ck_proto_list skips; /* ck_msg_skip */
    ck_proto_list hosts; /* ck_msg_record_host; tasks are numbered within the region */
    ck_proto_uints states;
} ck_msg_record_region;

typedef struct ck_msg_record_job {
    ck_msg_submit job; /* fence: epoch of its writer, id, attempt */
    uint64_t state, goal;
    uint64_t restart_attempts, latest_completed_checkpoint_id;
    ck_view error;
    ck_proto_list skips; /* ck_msg_skip */
    ck_proto_list hosts;
    ck_proto_uints states; /* of each task */
    ck_proto_list regions; /* ck_msg_record_region: of the second and those behind it */
} ck_msg_record_job;

/* ---- all of them ---- */

typedef struct ck_message {
    ck_message_kind kind;
    union {
        ck_msg_fence fence; /* of all but RECORD_LEADER */
        ck_msg_register reg;
        ck_msg_heartbeat heartbeat;
        ck_msg_progress progress;
        ck_msg_ready ready;
        ck_msg_ended ended;
        ck_msg_checkpoint checkpoint;
        ck_msg_savepoint_ended savepoint_ended;
        ck_msg_want_plugin want_plugin;
        ck_msg_plugin_part plugin_part;
        ck_msg_welcome welcome;
        ck_msg_deploy deploy;
        ck_msg_start start;
        ck_msg_cancel_job cancel_job;
        ck_msg_take_savepoint take_savepoint;
        ck_msg_hello hello;
        ck_msg_submit submit;
        ck_msg_offer_plugin offer_plugin;
        ck_msg_upload_part upload_part;
        ck_msg_command command;
        ck_msg_reply reply;
        ck_msg_record_leader leader;
        ck_msg_record_job job;
    } as;
} ck_message;

size_t ck_message_bytes(const ck_message *m); /* of the frame's payload */
/* CK_NOMEM; CK_FULL: longer than a control frame may be. */
CK_NODISCARD ck_status ck_message_frame(ck_mem mem, const ck_message *m, ck_frame **out, ck_error *err);
/* The frame stays the caller's and outlives *out. CK_CORRUPT: unknown or bad. */
CK_NODISCARD ck_status ck_message_read(const ck_frame *f, ck_arena *a, ck_message *out, ck_error *err);
const char *ck_message_name(ck_message_kind k); /* "REGISTER" */

#endif
