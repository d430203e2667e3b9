/* An operator of a plugin (clink/plugin.h) as one of ours: process.c takes events, process_rows.c hands rows out and
 * in, process_state.c keeps what the plugin keeps for each key, process_timers.c its timers.
 *
 * Parameters: {"operator":name,"parameters":text,"keys":[[column, ...] for each input],"columns":[...]}; no "keys": not
 * keyed; "columns": where each column stands that the operator takes, a list for each input. Slots: one a state (VALUE
 * a row a key; MAP in the order of its first field; LIST in the order of a "position"), and "timers.event" and
 * "timers.clock", rows in the order of their time, where the operator has on_timers. */
#ifndef CK_OPERATOR_PROCESS_INT_H
#define CK_OPERATOR_PROCESS_INT_H

#include "data/builder.h"
#include "expr/library.h"
#include "expr/plugin_rows.h"
#include "operator/partition_timers_int.h"
#include "operator/ttl_int.h"
#include "state/state.h"
#include "stream/descriptor.h"

enum { CK_PROCESS_TIMERS = 1024 /* fired in one call */ };

/* ---- planned ---- */

typedef struct ck_process_plan {
    const ck_plugin_operator *op;
    const char *parameters;
    bool keyed;
    ck_key_spec *keys;        /* by input */
    const uint32_t **columns; /* by input: where the operator's columns stand in it */
    uint32_t *column_counts;
    const ck_field *partition; /* of the slots */
    uint32_t partition_count;
    const ck_slot_schema **slots; /* one a state, then event and clock timers */
    uint32_t slot_count;
} ck_process_plan;

CK_NODISCARD ck_status ck_process_plan_make(ck_process_plan *p, ck_arena *a, const ck_op_spec *spec, ck_error *err);

/* ---- running ---- */

typedef struct ck_process_state {
    struct ck_process *process;
    const clink_state *face;
    ck_table *table;
    uint32_t field_count, first; /* of the plugin's fields: the first in the table's numbering */
    uint32_t *offsets, *null_bits;
    ck_row **rows; /* of the last clink_values, by row of the call */
    uint8_t *fresh, *gone;
    uint32_t row_count;
    bool any_gone;
    ck_row *one; /* of clink_entry and clink_next */
} ck_process_state;

typedef struct ck_process_timers {
    ck_table *table;
    uint32_t time_at;
    ck_partition_timers due;
} ck_process_timers;

typedef struct ck_process_port {
    ck_plugin_rows rows;
    struct ck_process *process;
    uint32_t port;
} ck_process_port;

typedef struct ck_process {
    ck_mem mem;
    ck_arena arena;
    ck_process_plan plan;
    ck_op_spec spec;
    void *user;
    bool user_open;
    uint32_t ended_inputs;
    int64_t said_watermark;
    ck_plugin_reader *readers;
    const clink_column **views;
    uint32_t reader_count;
    ck_process_port *ports; /* main, then sides */
    uint32_t port_count;
    ck_process_state *states;
    ck_process_timers timers[2]; /* event, clock */
    ck_column_builder *timer_keys;
    int64_t timer_times[CK_PROCESS_TIMERS];
    ck_op_ttl ttl;
    /* the call under way */
    ck_op_ctx *ctx;
    clink_context face;
    clink_error error;
    const ck_batch *batch; /* whose rows state is of */
    ck_batch *one;         /* the same with one of them live */
    const ck_key_spec *key;
    uint64_t *hashes;
    ck_range walk;
    ck_process_state *walked;
    ck_bytes low, high;
} ck_process;

/* process.c: the sentence for a call of the plugin, or what the engine could not do for it. */
ck_status ck_process_said(ck_process *p, const char *what, clink_status s);
/* A failure of ours inside a call of the plugin: kept in the context's error, and told the plugin. */
clink_status ck_process_fail(ck_process *p, ck_status s);

/* process_rows.c */
CK_NODISCARD ck_status ck_process_views(ck_process *p, const ck_batch *b, const uint32_t *columns, uint32_t count,
                                        const ck_schema *schema);
clink_emitter *ck_process_output(clink_context *c, uint32_t port);
clink_status ck_process_flush(clink_emitter *o);
CK_NODISCARD ck_status ck_process_flush_all(ck_process *p); /* after a call; the error is in ctx */
void ck_process_ports_destroy(ck_process *p);

/* process_state.c */
CK_NODISCARD ck_status ck_process_states_open(ck_process *p);
/* The rows whose state calls are about; batch NULL: of none. */
CK_NODISCARD ck_status ck_process_begin(ck_process *p, const ck_batch *b, const ck_key_spec *key);
CK_NODISCARD ck_status ck_process_settle(ck_process *p); /* what was erased goes */
void ck_process_end(ck_process *p);
/* The k-th row's partition of an ordered slot. 0: none, or an error. */
clink_status ck_process_partition(ck_process *p, ck_table *t, uint32_t k, bool create, ck_partition *out);
clink_bytes ck_process_state_text(const clink_groups *g, uint32_t i, uint32_t field);
clink_status ck_process_set_state_text(const clink_groups *g, uint32_t i, uint32_t field, const char *text, size_t n);
clink_status ck_process_values(clink_context *c, uint32_t state, int32_t create, clink_groups *out,
                               const uint8_t **fresh);
clink_status ck_process_erase(clink_context *c, uint32_t state, uint32_t k);
clink_status ck_process_entry(clink_context *c, uint32_t state, uint32_t k, const clink_key *key, int32_t create,
                              clink_groups *out);
clink_status ck_process_append(clink_context *c, uint32_t state, uint32_t k, clink_groups *out);
clink_status ck_process_erase_entries(clink_context *c, uint32_t state, uint32_t k, const clink_key *low,
                                      const clink_key *high);
clink_status ck_process_walk(clink_context *c, uint32_t state, uint32_t k, const clink_key *low, const clink_key *high);
int32_t ck_process_next(clink_context *c, clink_key *key, clink_groups *out);

/* process_timers.c */
CK_NODISCARD ck_status ck_process_timers_open(ck_process *p);
void ck_process_timers_destroy(ck_process *p);
clink_status ck_process_set_timer(clink_context *c, uint32_t k, int64_t time_us, int32_t processing, int32_t on);
/* Those due at or before `limit`, in one call of the plugin; *more: there may be others. */
CK_NODISCARD ck_status ck_process_fire(ck_process *p, bool clock, int64_t limit, bool *more);

#endif
