/* See tree_int.h. */
#include "state/tree_int.h"

#include "state/stored_int.h"

enum { LEAF_MIN = 4, FRESH_CAPACITY = 16 };

typedef struct tree_path {
    ck_tree_node *node[CK_TREE_HEIGHT_MAX];
    uint32_t index[CK_TREE_HEIGHT_MAX];
    uint32_t depth; /* nodes on the path; the last is the leaf */
} tree_path;

static uint64_t *prefixes(const ck_tree_node *n) { return (uint64_t *)(void *)(uintptr_t)(n + 1); }
static ck_tree_node **children(const ck_tree_node *n) { return (ck_tree_node **)(void *)(prefixes(n) + n->capacity); }
static uint32_t *refs(const ck_tree_node *n) {
    uint64_t *behind = prefixes(n) + n->capacity;
    return (uint32_t *)(void *)(n->leaf ? behind : behind + n->capacity);
}

static size_t node_bytes(uint32_t capacity, bool leaf) {
    return sizeof(ck_tree_node) + capacity * (sizeof(uint64_t) + sizeof(uint32_t) + (leaf ? 0 : sizeof(void *)));
}

static ck_tree_node *node_new(ck_table *t, uint32_t capacity, bool leaf) {
    ck_tree_node *n = ck_alloc(t->mem, node_bytes(capacity, leaf));
    if (!n) return NULL;
    *n = (ck_tree_node){.capacity = (uint16_t)capacity, .leaf = leaf};
    t->tree_bytes += node_bytes(capacity, leaf);
    return n;
}

static void node_free(ck_table *t, ck_tree_node *n) {
    t->tree_bytes -= node_bytes(n->capacity, n->leaf);
    ck_free(t->mem, n, node_bytes(n->capacity, n->leaf));
}

/* ---- comparing ---- */

static ck_status row_key(ck_table *t, uint32_t ref, ck_view *out) {
    ck_bytes_clear(&t->order_key);
    CK_TRY(ck_order_key_encode(t->shape, (ck_var_source){.pages = t->var.pages}, ck_row_of(t, ref), &t->order_key));
    *out = ck_bytes_as_view(&t->order_key);
    return CK_OK;
}

ck_tree_key ck_tree_key_of(ck_view whole) { return (ck_tree_key){ck_order_prefix(whole), whole, NULL}; }
static bool is_beginning(const ck_tree_key *key) { return !key->source && key->bytes.n == 0; }

static __attribute__((noinline)) ck_status compare_whole(ck_table *t, ck_tree_key *key, uint32_t ref, int *c) {
    ck_view other;
    if (key->source) CK_TRY(key->source->whole(key->source->arg, &key->bytes));
    key->source = NULL;
    CK_TRY(row_key(t, ref, &other));
    *c = ck_view_cmp(key->bytes, other);
    return CK_OK;
}

/* key against an entry: <0, 0, >0 in *c. */
static inline ck_status compare(ck_table *t, ck_tree_key *key, uint64_t entry_prefix, uint32_t ref, int *c) {
    *c = (key->prefix > entry_prefix) - (key->prefix < entry_prefix);
    return *c || ck_order_is_prefix(t->shape) ? CK_OK : compare_whole(t, key, ref, c);
}

/* First entry of the node that is >= key; *equal: it is. */
static ck_status lower_in(ck_table *t, const ck_tree_node *n, ck_tree_key *key, uint32_t *index, bool *equal) {
    const uint64_t *p = prefixes(n);
    const uint32_t *r = refs(n);
    uint32_t lo = 0, hi = n->count;
    *equal = false;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        int c;
        CK_TRY(compare(t, key, p[mid], r[mid], &c));
        if (c == 0) {
            *index = mid, *equal = true;
            return CK_OK;
        }
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    *index = lo;
    return CK_OK;
}

/* The child a key belongs to: the last whose least entry is <= key, else the first. */
static ck_status child_for(ck_table *t, const ck_tree_node *n, ck_tree_key *key, uint32_t *index) {
    bool equal;
    CK_TRY(lower_in(t, n, key, index, &equal));
    if (!equal && *index > 0) --*index;
    return CK_OK;
}

/* ---- reading ---- */

ck_status ck_tree_lower(ck_table *t, const ck_partition_head *p, ck_tree_key *key, ck_tree_at *at, bool *equal) {
    bool same = false, begin = is_beginning(key);
    if (p->count <= 1) {
        int c = 1;
        if (p->count == 1 && begin)
            c = -1;
        else if (p->count == 1)
            CK_TRY(compare(t, key, p->prefix, p->ref, &c));
        *at = (ck_tree_at){NULL, c > 0};
        if (equal) *equal = c == 0;
        return CK_OK;
    }
    ck_tree_node *n = p->root;
    while (!n->leaf) {
        uint32_t i = 0;
        if (!begin) CK_TRY(child_for(t, n, key, &i));
        n = children(n)[i];
    }
    uint32_t i = 0;
    if (!begin) CK_TRY(lower_in(t, n, key, &i, &same));
    *at = (ck_tree_at){n, i};
    if (i == n->count && n->next) *at = (ck_tree_at){n->next, 0};
    if (equal) *equal = same;
    return CK_OK;
}

bool ck_tree_ref(const ck_partition_head *p, ck_tree_at at, uint32_t *ref) {
    if (!at.node) {
        *ref = p->ref;
        return p->count == 1 && at.index == 0;
    }
    if (at.index >= at.node->count) return false;
    *ref = refs(at.node)[at.index];
    return true;
}

ck_tree_at ck_tree_next(const ck_partition_head *p, ck_tree_at at) {
    (void)p;
    at.index++;
    if (at.node && at.index >= at.node->count && at.node->next) return (ck_tree_at){at.node->next, 0};
    return at;
}

ck_tree_at ck_tree_last(const ck_partition_head *p) {
    if (p->count == 1) return (ck_tree_at){NULL, 0};
    ck_tree_node *n = p->root;
    while (!n->leaf) n = children(n)[n->count - 1];
    return (ck_tree_at){n, n->count - 1u};
}

void ck_tree_prefetch(const ck_table *t, ck_tree_at at, uint32_t n) {
    if (!at.node) return;
    uint32_t end = at.index + n < at.node->count ? at.index + n : at.node->count, last = t->shape->row_bytes - 1;
    for (uint32_t i = at.index; i < end; i++) {
        const ck_row *row = ck_row_of(t, refs(at.node)[i]);
        __builtin_prefetch(row);
        __builtin_prefetch(row + last);
    }
}

void ck_tree_prefetch_root(const ck_partition_head *p) {
    const char *at = (const char *)p->root;
    for (size_t i = 0; i < sizeof *p->root + CK_TREE_NODE_MAX * sizeof(uint64_t); i += 64) __builtin_prefetch(at + i);
}

/* ---- nodes ---- */

static void open_gap(ck_tree_node *n, uint32_t at) {
    uint32_t tail = n->count - at;
    memmove(prefixes(n) + at + 1, prefixes(n) + at, tail * sizeof(uint64_t));
    memmove(refs(n) + at + 1, refs(n) + at, tail * sizeof(uint32_t));
    if (!n->leaf) memmove(children(n) + at + 1, children(n) + at, tail * sizeof(void *));
    n->count++;
}

static void close_gap(ck_tree_node *n, uint32_t at) {
    n->count--;
    uint32_t tail = n->count - at;
    memmove(prefixes(n) + at, prefixes(n) + at + 1, tail * sizeof(uint64_t));
    memmove(refs(n) + at, refs(n) + at + 1, tail * sizeof(uint32_t));
    if (!n->leaf) memmove(children(n) + at, children(n) + at + 1, tail * sizeof(void *));
}

static void append_run(ck_tree_node *to, const ck_tree_node *from, uint32_t first, uint32_t n) {
    memcpy(prefixes(to) + to->count, prefixes(from) + first, n * sizeof(uint64_t));
    memcpy(refs(to) + to->count, refs(from) + first, n * sizeof(uint32_t));
    if (!to->leaf) memcpy(children(to) + to->count, children(from) + first, n * sizeof(void *));
    to->count = (uint16_t)(to->count + n);
}

static void link_leaf(ck_tree_node *n, ck_tree_node *prev, ck_tree_node *next) {
    n->prev = prev, n->next = next;
    if (prev) prev->next = n;
    if (next) next->prev = n;
}

/* The node behind *link with room for one more entry (below the maximum). */
static ck_status make_room(ck_table *t, ck_tree_node **link) {
    ck_tree_node *n = *link;
    if (n->count < n->capacity) return CK_OK;
    ck_tree_node *more = node_new(t, n->capacity * 2u, n->leaf);
    if (!more) return CK_NOMEM;
    append_run(more, n, 0, n->count);
    if (n->leaf) link_leaf(more, n->prev, n->next);
    *link = more;
    node_free(t, n);
    return CK_OK;
}

static void set_least(ck_tree_node *parent, uint32_t i, const ck_tree_node *child) {
    prefixes(parent)[i] = prefixes(child)[0];
    refs(parent)[i] = refs(child)[0];
}

/* Splits the full child i of a parent with room. At the right end only what comes next moves on: time goes forward. */
static ck_status split_child(ck_table *t, ck_tree_node *parent, uint32_t i, bool at_end) {
    ck_tree_node *left = children(parent)[i];
    uint32_t keep = at_end ? left->count - 1u : left->count / 2u;
    uint32_t moved = left->count - keep, capacity = FRESH_CAPACITY;
    while (capacity <= moved) capacity *= 2;
    ck_tree_node *right = node_new(t, capacity, left->leaf);
    if (!right) return CK_NOMEM;
    append_run(right, left, keep, moved);
    left->count = (uint16_t)keep;
    if (left->leaf) link_leaf(right, left, left->next);
    open_gap(parent, i + 1);
    children(parent)[i + 1] = right;
    set_least(parent, i + 1, right);
    return CK_OK;
}

static ck_status raise_root(ck_table *t, ck_partition_head *p) {
    ck_tree_node *root = node_new(t, LEAF_MIN, false);
    if (!root) return CK_NOMEM;
    root->count = 1;
    children(root)[0] = p->root;
    set_least(root, 0, p->root);
    p->root = root;
    return CK_OK;
}

/* Makes a block out of the row in place. */
static ck_status to_block(ck_table *t, ck_partition_head *p) {
    ck_tree_node *n = node_new(t, LEAF_MIN, true);
    if (!n) return CK_NOMEM;
    prefixes(n)[0] = p->prefix;
    refs(n)[0] = p->ref;
    n->count = 1;
    p->root = n;
    return CK_OK;
}

static void back_in_place(ck_table *t, ck_partition_head *p) {
    ck_tree_node *n = p->root;
    uint64_t prefix = prefixes(n)[0];
    p->ref = refs(n)[0];
    p->prefix = prefix;
    node_free(t, n);
}

/* ---- inserting ---- */

/* Down to the leaf of key, splitting full nodes on the way, so that every parent has room for a split below. */
static ck_status descend_for_insert(ck_table *t, ck_partition_head *p, ck_tree_key *key, tree_path *path) {
    if (p->root->count == CK_TREE_NODE_MAX) CK_TRY(raise_root(t, p));
    ck_tree_node **link = &p->root;
    path->depth = 0;
    while (!(*link)->leaf) {
        uint32_t i;
        CK_TRY(child_for(t, *link, key, &i));
        if (children(*link)[i]->count == CK_TREE_NODE_MAX) {
            CK_TRY(make_room(t, link));
            CK_TRY(split_child(t, *link, i, i + 1 == (*link)->count && !children(*link)[i]->next));
            CK_TRY(child_for(t, *link, key, &i));
        }
        path->node[path->depth] = *link;
        path->index[path->depth++] = i;
        link = &children(*link)[i];
    }
    CK_TRY(make_room(t, link));
    path->node[path->depth++] = *link;
    return CK_OK;
}

/* After the least entry of the leaf changed: the entries above that stand for it. */
static void fix_least(const tree_path *path) {
    for (uint32_t level = path->depth - 1; level > 0; level--) {
        set_least(path->node[level - 1], path->index[level - 1], path->node[level]);
        if (path->index[level - 1] != 0) return;
    }
}

ck_status ck_tree_insert(ck_table *t, ck_partition_head *p, ck_tree_key *key, uint32_t ref) {
    if (p->count == 0) {
        p->count = 1, p->ref = ref, p->prefix = key->prefix;
        return CK_OK;
    }
    ck_partition_head was = *p;
    if (p->count == 1) CK_TRY(to_block(t, p));
    tree_path path;
    uint32_t i;
    bool equal;
    ck_status s = descend_for_insert(t, p, key, &path);
    if (s == CK_OK) s = lower_in(t, path.node[path.depth - 1], key, &i, &equal);
    if (s != CK_OK) {
        if (was.count == 1) {
            node_free(t, p->root);
            *p = was;
        }
        return s;
    }
    ck_tree_node *leaf = path.node[path.depth - 1];
    open_gap(leaf, i);
    prefixes(leaf)[i] = key->prefix;
    refs(leaf)[i] = ref;
    if (i == 0) fix_least(&path);
    p->count++;
    return CK_OK;
}

/* ---- erasing ---- */

/* Takes the emptied node at `level` out, and parents that become empty with it. */
static void remove_node(ck_table *t, tree_path *path, uint32_t level) {
    ck_tree_node *n = path->node[level];
    if (n->leaf) {
        if (n->prev) n->prev->next = n->next;
        if (n->next) n->next->prev = n->prev;
    }
    node_free(t, n);
    ck_tree_node *parent = path->node[level - 1];
    uint32_t i = path->index[level - 1];
    close_gap(parent, i);
    if (parent->count == 0) {
        remove_node(t, path, level - 1);
    } else if (i == 0 && level - 1 > 0) {
        path->depth = level;
        fix_least(path);
    }
}

/* A leaf with few entries takes in its right neighbour under the same parent. */
static void merge_right(ck_table *t, tree_path *path) {
    uint32_t level = path->depth - 1;
    ck_tree_node *leaf = path->node[level], *parent = path->node[level - 1];
    uint32_t i = path->index[level - 1];
    if (i + 1 >= parent->count) return;
    ck_tree_node *right = children(parent)[i + 1];
    if (leaf->count + right->count > leaf->capacity || leaf->count + right->count > CK_TREE_NODE_MAX / 2) return;
    append_run(leaf, right, 0, right->count);
    link_leaf(leaf, leaf->prev, right->next);
    node_free(t, right);
    close_gap(parent, i + 1);
}

static void lower_root(ck_table *t, ck_partition_head *p) {
    while (!p->root->leaf && p->root->count == 1) {
        ck_tree_node *root = p->root;
        p->root = children(root)[0];
        node_free(t, root);
    }
}

/* Entry i of the leaf the path leads to; the partition has several. */
static void erase_entry(ck_table *t, ck_partition_head *p, tree_path *path, uint32_t i) {
    ck_tree_node *n = path->node[path->depth - 1];
    close_gap(n, i);
    p->count--;
    if (path->depth > 1) {
        if (n->count == 0)
            remove_node(t, path, path->depth - 1);
        else {
            if (i == 0) fix_least(path);
            if (n->count <= CK_TREE_NODE_MAX / 8) merge_right(t, path);
        }
        lower_root(t, p);
    }
    if (p->count == 1) back_in_place(t, p);
}

static ck_tree_node *step_down(tree_path *path, ck_tree_node *n, uint32_t child) {
    path->node[path->depth] = n;
    path->index[path->depth++] = child;
    return children(n)[child];
}

ck_status ck_tree_erase(ck_table *t, ck_partition_head *p, ck_tree_key *key) {
    if (p->count == 1) {
        *p = (ck_partition_head){0};
        return CK_OK;
    }
    tree_path path = {.depth = 0};
    ck_tree_node *n = p->root;
    while (!n->leaf) {
        uint32_t c;
        CK_TRY(child_for(t, n, key, &c));
        n = step_down(&path, n, c);
    }
    path.node[path.depth++] = n;
    uint32_t i;
    bool equal;
    CK_TRY(lower_in(t, n, key, &i, &equal));
    CK_ASSERT(equal);
    erase_entry(t, p, &path, i);
    return CK_OK;
}

void ck_tree_erase_last(ck_table *t, ck_partition_head *p) {
    if (p->count == 1) {
        *p = (ck_partition_head){0};
        return;
    }
    tree_path path = {.depth = 0};
    ck_tree_node *n = p->root;
    while (!n->leaf) n = step_down(&path, n, n->count - 1u);
    path.node[path.depth++] = n;
    erase_entry(t, p, &path, n->count - 1u);
}

static void free_below(ck_table *t, ck_tree_node *n) {
    for (uint32_t i = 0; !n->leaf && i < n->count; i++) free_below(t, children(n)[i]);
    node_free(t, n);
}

void ck_tree_free(ck_table *t, ck_partition_head *p) {
    if (p->count > 1) free_below(t, p->root);
    *p = (ck_partition_head){0};
}
