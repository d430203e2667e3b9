/* Time to live of an operator's state, as its parameters say it, and the clock it goes by: what is not written for so
 * long is forgotten. */
#ifndef CK_OPERATOR_TTL_INT_H
#define CK_OPERATOR_TTL_INT_H

#include "state/state.h"
#include "stream/descriptor.h"

struct yyjson_val;

typedef struct ck_op_ttl {
    bool on;         /* some slot has one */
    bool event_time; /* the watermark is the clock, not the wall clock */
} ck_op_ttl;

/* A member like "ttl_us": *us 0 where it is not there. Says in *ttl that it was, and by which clock ("ttl_time"). */
CK_NODISCARD ck_status ck_op_ttl_read(const ck_op_spec *spec, struct yyjson_val *root, const char *member,
                                      ck_op_ttl *ttl, int64_t *us, ck_error *err);
/* Before a batch, while no row pointers are held: what is over goes (counted as expired_entries). */
CK_NODISCARD static inline ck_status ck_op_ttl_come(const ck_op_ttl *ttl, ck_op_ctx *ctx) {
    uint64_t expired = 0;
    if (CK_LIKELY(!ttl->on)) return CK_OK;
    int64_t now_us = ttl->event_time ? ctx->watermark : ck_op_now_us(ctx);
    CK_TRY(ck_state_come_to(ctx->state, now_us, &expired, ctx->error));
    if (expired) ck_op_count(ctx, "expired_entries", expired);
    return CK_OK;
}

#endif
