/* The operators of this room, for the engine to register. */
#ifndef CK_OPERATOR_OPERATORS_H
#define CK_OPERATOR_OPERATORS_H

#include "stream/descriptor.h"

/* of time */
extern const ck_op_desc ck_op_window_assign;
extern const ck_op_desc ck_op_window_agg;
extern const ck_op_desc ck_op_session_agg;
extern const ck_op_desc ck_op_interval_join;
extern const ck_op_desc ck_op_temporal_join;
extern const ck_op_desc ck_op_over;

extern const ck_op_desc ck_op_filter;
extern const ck_op_desc ck_op_project;
extern const ck_op_desc ck_op_group_agg;
extern const ck_op_desc ck_op_limit;
extern const ck_op_desc ck_op_sort;
extern const ck_op_desc ck_op_top_n;
extern const ck_op_desc ck_op_union;
extern const ck_op_desc ck_op_join;
extern const ck_op_desc ck_op_unnest;
extern const ck_op_desc ck_op_set_op;

/* of plugins */
extern const ck_op_desc ck_op_process;

#endif
