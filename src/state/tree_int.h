/* The rows of one partition in the order of their order keys: one row in place, few in one sorted block, many in a
 * B+-tree of blocks. Entries are (prefix, reference): the first eight bytes of the order key decide most comparisons,
 * ties are settled by encoding the row's key. It is an index: marks do not see it, a restore rebuilds it.
 *
 * Thread: the table's owner. */
#ifndef CK_STATE_TREE_INT_H
#define CK_STATE_TREE_INT_H

#include "state/table_int.h"

enum { CK_TREE_NODE_MAX = 128, CK_TREE_HEIGHT_MAX = 12 };

typedef struct ck_tree_node {
    struct ck_tree_node *prev, *next; /* leaves, in order */
    uint16_t count, capacity;
    bool leaf;
    /* prefix[capacity], inner nodes: child[capacity], ref[capacity]; an inner entry is the least one of its child */
} ck_tree_node;

/* In the extra bytes of the partition's hidden row. Zero: no rows. */
typedef struct ck_partition_head {
    uint32_t count;
    uint32_t ref; /* of the only row */
    union {
        uint64_t prefix; /* of the only row */
        ck_tree_node *root;
    };
} ck_partition_head;
_Static_assert(sizeof(ck_partition_head) == 16, "extra bytes of a partition");

typedef struct ck_tree_at { /* a place; node NULL: the only row (index 0) or the end (index 1) */
    ck_tree_node *node;
    uint32_t index;
} ck_tree_at;

/* An order key. Most comparisons need no more than its prefix, so that the whole of it can wait until one does: `make`
 * says it then. An empty key is the beginning. */
typedef struct ck_tree_key {
    uint64_t prefix;
    ck_view bytes;                 /* once it is whole */
    const ck_order_source *source; /* NULL: it is whole */
} ck_tree_key;
ck_tree_key ck_tree_key_of(ck_view whole);

/* First row whose key is >= key; *equal (optional): it is this key. An empty key is the beginning. */
CK_NODISCARD ck_status ck_tree_lower(ck_table *t, const ck_partition_head *p, ck_tree_key *key, ck_tree_at *at,
                                     bool *equal);
bool ck_tree_ref(const ck_partition_head *p, ck_tree_at at, uint32_t *ref); /* false at the end */
ck_tree_at ck_tree_next(const ck_partition_head *p, ck_tree_at at);
/* Rows from `at` on, up to n of them in its block, come into the cache. */
void ck_tree_prefetch(const ck_table *t, ck_tree_at at, uint32_t n);
void ck_tree_prefetch_root(const ck_partition_head *p); /* of more than one row */
ck_tree_at ck_tree_last(const ck_partition_head *p); /* of at least one row */
/* key is not there. CK_NOMEM changes nothing that can be seen. */
CK_NODISCARD ck_status ck_tree_insert(ck_table *t, ck_partition_head *p, ck_tree_key *key, uint32_t ref);
/* key is there. */
CK_NODISCARD ck_status ck_tree_erase(ck_table *t, ck_partition_head *p, ck_tree_key *key);
void ck_tree_erase_last(ck_table *t, ck_partition_head *p); /* of at least one row */
void ck_tree_free(ck_table *t, ck_partition_head *p);       /* the blocks, not the rows */

#endif
