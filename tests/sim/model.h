/* Model operators for whole jobs in tests: a source whose rows follow from (split, position), an operator that counts
 * per key in keyed state, a limit, and a sink that stages files and commits them. They behave badly on purpose: small
 * and large batches, idling, I/O that takes its time, fsyncs that hold an acknowledgement. What they write can be
 * checked without knowing the schedule. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include "graph/graph.h"
#include "plugin/registry.h"

enum { MODEL_KEYS_MAX = 64, MODEL_POSITIONS = 1 << 20 };

/* source.model {"splits":S,"rows":R,"keys":K}: split i has R * (1 + i % 3) / 2 rows (k, v), v = i * 2^20 + position,
 * k = mix(v) % K. R = 0: it never ends. With "more":"PATH" one more split for each byte that file has when the job
 * starts; with "pause_us" so long between batches. */
extern const ck_op_desc model_source;
/* model.count {}: (k, v) -> (k, from, to, sum): "rows from..to-1 of key k have come, their v add up to sum". Not final:
 * at every flush what is new; final: one row a key at END. Committed rows of a key therefore tile [0, count). */
extern const ck_op_desc model_count;
/* model.limit {"limit":L}: the first L rows, then it closes its input. */
extern const ck_op_desc model_limit;
/* model.pass {}: hands on. */
extern const ck_op_desc model_pass;
/* model.sink {"dir":D}: text files in D, a line a row; with checkpoints they appear by commit, without at END. */
extern const ck_op_desc model_sink;

ck_status model_register(ck_registry *r, ck_error *err);

int64_t model_key(int64_t v, int64_t keys);
uint32_t model_split_rows(uint32_t split, uint32_t rows);

/* BIGINT NOT NULL columns of these names: model_schema(a, 2, (const char *[]){"k", "v"}). */
const ck_schema *model_schema(ck_arena *a, uint32_t count, const char *const *names);

#endif
