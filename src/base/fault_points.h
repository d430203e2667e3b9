/* The list of fault points: CK_FAULT_POINT(ID, "name", "what has just happened there"). Included several times; no
 * guard. CK_FAULT_SERVER_POINT: the same for those that are only passed where there is a server to talk to. */
CK_FAULT_POINT(DURABLE_AFTER_CREATE, "durable.after_create", "the temporary file exists, empty")
CK_FAULT_POINT(DURABLE_AFTER_WRITE, "durable.after_write", "all bytes are written, nothing is synced")
CK_FAULT_POINT(DURABLE_AFTER_FSYNC, "durable.after_fsync", "the temporary file is synced")
CK_FAULT_POINT(DURABLE_AFTER_PUBLISH, "durable.after_publish", "the final name exists, its directory is not synced")
CK_FAULT_POINT(DURABLE_AFTER_DIRSYNC, "durable.after_dirsync", "the final name is durable")
CK_FAULT_POINT(CHECKPOINT_BEFORE_TRIGGER, "checkpoint.before_trigger", "a checkpoint is due, no barrier has been sent")
CK_FAULT_POINT(CHECKPOINT_BEFORE_BARRIER, "checkpoint.before_barrier", "a source is about to emit a barrier")
CK_FAULT_POINT(CHECKPOINT_AFTER_MARK, "checkpoint.after_mark", "a subtask has marked its state")
CK_FAULT_POINT(CHECKPOINT_AFTER_OVERTAKE, "checkpoint.after_overtake",
               "a subtask has marked its state ahead of what is under way to it")
CK_FAULT_POINT(CHECKPOINT_BEFORE_SNAPSHOT, "checkpoint.before_snapshot", "the snapshot writer is about to start")
CK_FAULT_POINT(CHECKPOINT_BEFORE_ACK, "checkpoint.before_ack",
               "the subtask's files are durable, its acknowledgement is not sent")
CK_FAULT_POINT(MATERIALISE_BEFORE, "materialise.before", "the state is about to be written beside the checkpoints")
CK_FAULT_POINT(MATERIALISE_AFTER, "materialise.after", "the materialisation is durable, no checkpoint names it")
CK_FAULT_POINT(CHECKPOINT_BEFORE_INFLIGHT, "checkpoint.before_inflight",
               "what was under way is recorded, its file is not written")
CK_FAULT_POINT(CHECKPOINT_AFTER_INFLIGHT, "checkpoint.after_inflight", "the in-flight file is durable")
CK_FAULT_POINT(CHECKPOINT_BEFORE_MANIFEST, "checkpoint.before_manifest",
               "all have acknowledged, the manifest is not written")
CK_FAULT_POINT(CHECKPOINT_AFTER_MANIFEST, "checkpoint.after_manifest", "the manifest is durable, nothing is committed")
CK_FAULT_POINT(COMMIT_BEFORE, "commit.before", "a committer is about to commit one committable")
CK_FAULT_POINT(COMMIT_AFTER, "commit.after", "one committable is committed")
CK_FAULT_POINT(COMMITTED_BEFORE_MARK, "commit.before_committed",
               "all committables are committed, checkpoint-N.committed is not written")
CK_FAULT_POINT(COMMITTED_AFTER_MARK, "commit.after_committed", "checkpoint-N.committed is durable")
CK_FAULT_POINT(RETENTION_BEFORE_DELETE, "retention.before_delete", "a file no kept checkpoint needs is about to go")
CK_FAULT_POINT(RESTORE_BEFORE_LOAD, "restore.before_load", "the manifest is read, no state is loaded")
CK_FAULT_POINT(RESTORE_AFTER_LOAD, "restore.after_load", "state is loaded, nothing runs")
CK_FAULT_POINT(RESTORE_BEFORE_REPLAY, "restore.before_replay", "an in-flight file is about to be dealt out")
CK_FAULT_POINT(RESTORE_AFTER_COMMIT, "restore.after_commit", "what the restored checkpoint carries is committed")
CK_FAULT_POINT(FILE_SINK_BEFORE_ROLL, "file_sink.before_roll", "a part is full or a barrier came, it is not closed yet")
CK_FAULT_POINT(FILE_SINK_AFTER_SYNC, "file_sink.after_sync", "a staged part is synced")

CK_FAULT_SERVER_POINT(POSTGRES_SLOT, "postgres.slot", "a slot is made, nothing of the table is read")
CK_FAULT_SERVER_POINT(POSTGRES_TOKEN, "postgres.token", "a transaction has moved the token, no row is sent")
CK_FAULT_SERVER_POINT(POSTGRES_SENT, "postgres.sent", "rows are with the server, the transaction is open")
CK_FAULT_SERVER_POINT(POSTGRES_COMMITTED, "postgres.committed", "the server has committed, nobody here knows it")
CK_FAULT_SERVER_POINT(KAFKA_FENCED, "kafka.fenced", "who committed before is shut out, the tokens are not read")
CK_FAULT_SERVER_POINT(KAFKA_BEGUN, "kafka.begun", "a transaction has begun, nothing is sent")
CK_FAULT_SERVER_POINT(KAFKA_SENT, "kafka.sent", "rows and token are with the brokers, the transaction is open")
CK_FAULT_SERVER_POINT(KAFKA_COMMITTED, "kafka.committed", "the brokers have committed, nobody here knows it")
