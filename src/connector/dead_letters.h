/* Dead letters: records that do not fit their table, as rows of raw bytes, where they were and why, on the source's
 * side output. They leave in the same step in which the split's position passes them, so that a checkpoint has both or
 * neither; of a sink, with the rows that were written beside them. Thread: the subtask. */
#ifndef CK_CONNECTOR_DEAD_LETTERS_H
#define CK_CONNECTOR_DEAD_LETTERS_H

#include "data/builder.h"
#include "format/decoder.h"
#include "stream/operator.h"

#define CK_LETTER_NO_OFFSET                                                                                            \
    UINT64_MAX                     /* in ck_bad_record.offset: of a row that was to be written; NULL in the letter */
enum { CK_PORT_DEAD_LETTERS = 1 }; /* raw BYTES, split VARCHAR, offset BIGINT, reason VARCHAR */

typedef struct ck_dead_letters {
    bool on;
    ck_batch_builder rows;
} ck_dead_letters;
CK_NODISCARD ck_status ck_dead_letters_init(ck_dead_letters *d, ck_arena *a, ck_mem mem, uint32_t batch_rows,
                                            ck_error *err);
void ck_dead_letters_destroy(ck_dead_letters *d);
bool ck_dead_letters_is_full(const ck_dead_letters *d); /* emit before the next one is added */
CK_NODISCARD ck_status ck_dead_letters_add(ck_dead_letters *d, const char *split, const ck_bad_record *bad,
                                           ck_error *err);
static inline uint32_t ck_dead_letters_count(const ck_dead_letters *d) { return d->on ? d->rows.row_count : 0; }
CK_NODISCARD ck_status ck_dead_letters_emit(ck_dead_letters *d, ck_op_ctx *ctx);

#endif
