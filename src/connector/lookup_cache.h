/* What a lookup keeps of the answers of a server: by key, for a time, in two generations, of which the older goes when
 * the younger has half of the bytes. A connector's answer begins with a ck_kept_answer; what it points to lies in
 * ck_lookup_cache_arena. Single-threaded: the subtask's, while no question runs or beside one. */
#ifndef CK_CONNECTOR_LOOKUP_CACHE_H
#define CK_CONNECTOR_LOOKUP_CACHE_H

#include "base/map.h"
#include "base/status.h"

#define CK_ANSWER_PENDING INT64_MAX /* it is being asked for */
#define CK_ANSWER_STALE   INT64_MIN /* good for its batch only */

enum { CK_LOOKUP_SLACK_BYTES = 256 << 10 }; /* above bytes_max, for the batch in hand */

typedef struct ck_kept_answer {
    int64_t at_us; /* processing time it was asked at, or one of the above */
} ck_kept_answer;

typedef struct ck_answers {
    ck_arena arena;
    ck_map map; /* key -> answer */
} ck_answers;

typedef struct ck_lookup_cache {
    ck_mem mem;
    int64_t ttl_us, bytes_max; /* the owner's to set before the first batch */
    ck_answers young, old;
} ck_lookup_cache;

void ck_lookup_cache_init(ck_lookup_cache *c, ck_mem mem);
void ck_lookup_cache_destroy(ck_lookup_cache *c);
/* Between batches only: answers of the older generation are gone behind it. */
void ck_lookup_cache_turn_over(ck_lookup_cache *c);
/* The answer for key: one that is fresh, or pending; NULL: it is to be asked for. */
void *ck_lookup_cache_find(const ck_lookup_cache *c, ck_view key, int64_t now_us);
/* A new answer of `bytes`, zero but pending, in place of what the key had. NULL: no memory. */
void *ck_lookup_cache_ask(ck_lookup_cache *c, ck_view key, size_t bytes);
ck_arena *ck_lookup_cache_arena(ck_lookup_cache *c);
/* CK_REFUSED: one batch took more than there is; what to do about it is `advice`. */
CK_NODISCARD ck_status ck_lookup_cache_check(const ck_lookup_cache *c, const char *table, const char *advice,
                                             ck_error *err);

#endif
