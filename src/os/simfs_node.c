/* See simfs_int.h. Names and nodes are counted by references; the two states of a directory share both. */
#include "os/simfs_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- entries: a sorted array ---- */

static sim_name *name_new(const char *z) {
    size_t n = strlen(z) + 1;
    sim_name *name = malloc(sizeof *name + n);
    if (!name) return NULL;
    name->refs = 1;
    memcpy(name->z, z, n);
    return name;
}
static void name_unref(sim_name *name) {
    if (name && --name->refs == 0) free(name);
}

static bool find_entry(const sim_entries *e, const char *name, size_t *at) {
    size_t low = 0, high = e->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(e->items[mid].name->z, name);
        if (c == 0) {
            *at = mid;
            return true;
        }
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *at = low;
    return false;
}

static bool reserve_entries(sim_entries *e, size_t count) {
    if (count <= e->capacity) return true;
    size_t capacity = e->capacity * 2 > count ? e->capacity * 2 : count;
    sim_entry *items = realloc(e->items, capacity * sizeof *items);
    if (!items) return false;
    e->items = items, e->capacity = capacity;
    return true;
}

/* Sets name to node in an array with room; adds references. The node that had it, with its reference, or NULL. */
static sim_node *set_entry(sim_entries *e, sim_name *name, sim_node *node) {
    size_t at;
    node->refs++;
    if (find_entry(e, name->z, &at)) {
        sim_node *was = e->items[at].node;
        e->items[at].node = node;
        return was;
    }
    if (e->count > at) memmove(e->items + at + 1, e->items + at, (e->count - at) * sizeof *e->items);
    name->refs++;
    e->items[at] = (sim_entry){name, node};
    e->count++;
    return NULL;
}

/* The node that had the name, with its reference, or NULL. */
static sim_node *clear_entry(sim_entries *e, const char *name) {
    size_t at;
    if (!find_entry(e, name, &at)) return NULL;
    sim_node *was = e->items[at].node;
    name_unref(e->items[at].name);
    e->count--;
    memmove(e->items + at, e->items + at + 1, (e->count - at) * sizeof *e->items);
    return was;
}

/* With d NULL the nodes are not touched: the whole disk is going. */
static void drop_entries(sim_disk *d, sim_entries *e) {
    while (e->count > 0) {
        sim_entry last = e->items[--e->count];
        name_unref(last.name);
        if (d) sim_node_unref(d, last.node);
    }
}

/* ---- nodes ---- */

sim_node *sim_node_new(sim_disk *d, bool is_dir) {
    sim_node *n = calloc(1, sizeof *n);
    if (!n) return NULL;
    n->refs = 1;
    n->is_dir = is_dir;
    n->inode = ++d->last_inode;
    n->mtime_us = ++d->ticks;
    n->next = d->nodes.next, n->prev = &d->nodes;
    n->next->prev = n, d->nodes.next = n;
    return n;
}

static void drop_change(sim_disk *d, sim_change *c) {
    name_unref(c->name);
    name_unref(c->from);
    if (d && c->node) sim_node_unref(d, c->node);
    if (d && c->moved_to) sim_node_unref(d, c->moved_to);
}

static void free_node(sim_disk *d, sim_node *n) {
    n->next->prev = n->prev, n->prev->next = n->next;
    drop_entries(d, &n->now);
    drop_entries(d, &n->durable);
    for (size_t i = 0; i < n->change_count; i++) drop_change(d, &n->changes[i]);
    free(n->now.items);
    free(n->durable.items);
    free(n->changes);
    free(n->p);
    free(n->old);
    free(n);
}

void sim_node_unref(sim_disk *d, sim_node *n) {
    if (--n->refs == 0) free_node(d, n);
}

static void give_space_back(sim_disk *d, const sim_node *n) {
    if (n->links == 0 && n->opens == 0) d->used -= n->n;
}
static void drop_link(sim_disk *d, sim_node *n) { /* a name of now, with its reference */
    n->links--;
    give_space_back(d, n);
    sim_node_unref(d, n);
}
void sim_node_open(sim_node *n) { n->opens++, n->refs++; }
void sim_node_close(sim_disk *d, sim_node *n) {
    n->opens--;
    give_space_back(d, n);
    sim_node_unref(d, n);
}

bool sim_disk_init(sim_disk *d, uint64_t seed) {
    *d = (sim_disk){.random = seed};
    d->nodes.next = d->nodes.prev = &d->nodes;
    d->root = sim_node_new(d, true);
    if (d->root) d->root->links = 1;
    return d->root != NULL;
}

void sim_disk_destroy(sim_disk *d) {
    while (d->nodes.next != &d->nodes) free_node(NULL, d->nodes.next);
    d->root = NULL;
}

/* ---- changes to directories ---- */

sim_node *sim_find(const sim_node *dir, const char *name) {
    size_t at;
    return find_entry(&dir->now, name, &at) ? dir->now.items[at].node : NULL;
}

/* Room for one more change, and in both states for all that is pending then. */
static bool reserve_change(sim_node *dir) {
    size_t pending = dir->change_count + 1;
    size_t most = dir->now.count > dir->durable.count ? dir->now.count : dir->durable.count;
    if (!reserve_entries(&dir->now, most + pending) || !reserve_entries(&dir->durable, most + pending)) return false;
    if (pending <= dir->change_capacity) return true;
    size_t capacity = dir->change_capacity ? dir->change_capacity * 2 : 8;
    sim_change *changes = realloc(dir->changes, capacity * sizeof *changes);
    if (!changes) return false;
    dir->changes = changes, dir->change_capacity = capacity;
    return true;
}

/* Takes over the references to the names, adds those to the nodes. */
static uint64_t add_change(sim_disk *d, sim_node *dir, sim_change c) {
    c.seq = ++d->last_seq;
    if (c.node) c.node->refs++;
    if (c.moved_to) c.moved_to->refs++;
    dir->mtime_us = ++d->ticks;
    dir->changes[dir->change_count++] = c;
    return c.seq;
}

bool sim_link(sim_disk *d, sim_node *dir, const char *name, sim_node *node) {
    sim_name *copy = name_new(name);
    if (!copy || !reserve_change(dir)) {
        name_unref(copy);
        return false;
    }
    node->links++;
    sim_node *was = set_entry(&dir->now, copy, node);
    if (was) drop_link(d, was);
    add_change(d, dir, (sim_change){.kind = SIM_LINK, .name = copy, .node = node});
    return true;
}

bool sim_unlink(sim_disk *d, sim_node *dir, const char *name) {
    sim_name *copy = name_new(name);
    if (!copy || !reserve_change(dir)) {
        name_unref(copy);
        return false;
    }
    drop_link(d, clear_entry(&dir->now, name));
    add_change(d, dir, (sim_change){.kind = SIM_UNLINK, .name = copy});
    return true;
}

bool sim_rename(sim_disk *d, sim_node *from_dir, const char *from, sim_node *to_dir, const char *to) {
    sim_name *target = name_new(to), *source = name_new(from);
    if (!target || !source || !reserve_change(to_dir) || !reserve_change(from_dir)) {
        name_unref(target), name_unref(source);
        return false;
    }
    sim_node *node = clear_entry(&from_dir->now, from);
    sim_node *was = set_entry(&to_dir->now, target, node);
    if (was) drop_link(d, was);
    if (from_dir == to_dir) {
        add_change(d, to_dir, (sim_change){.kind = SIM_RENAME, .name = target, .from = source, .node = node});
    } else {
        uint64_t seq = add_change(d, to_dir, (sim_change){.kind = SIM_LINK, .name = target, .node = node});
        add_change(d, from_dir, (sim_change){.kind = SIM_UNLINK, .name = source, .moved_to = to_dir, .moved_seq = seq});
    }
    sim_node_unref(d, node); /* of the entry it came from */
    return true;
}

/* ---- from now to durable ---- */

static void apply(sim_disk *d, sim_node *dir, const sim_change *c, bool and_from) {
    sim_node *was =
        c->kind == SIM_UNLINK ? clear_entry(&dir->durable, c->name->z) : set_entry(&dir->durable, c->name, c->node);
    if (was) sim_node_unref(d, was);
    size_t at;
    if (c->kind == SIM_RENAME && and_from && find_entry(&dir->durable, c->from->z, &at) &&
        dir->durable.items[at].node == c->node)
        sim_node_unref(d, clear_entry(&dir->durable, c->from->z));
}

static void forget_changes(sim_disk *d, sim_node *dir, size_t count) {
    for (size_t i = 0; i < count; i++) drop_change(d, &dir->changes[i]);
    dir->change_count -= count;
    if (dir->change_count) memmove(dir->changes, dir->changes + count, dir->change_count * sizeof *dir->changes);
}

static const sim_change *pending_change(const sim_node *dir, uint64_t seq) {
    for (size_t i = 0; i < dir->change_count && dir->changes[i].seq <= seq; i++)
        if (dir->changes[i].seq == seq) return &dir->changes[i];
    return NULL;
}

/* The first change up to seq that removes what has not durably come to where it was moved, or NULL. */
static const sim_change *first_early_leaver(const sim_node *dir, uint64_t seq) {
    for (size_t i = 0; i < dir->change_count && dir->changes[i].seq <= seq; i++) {
        const sim_change *c = &dir->changes[i];
        if (c->moved_to && pending_change(c->moved_to, c->moved_seq)) return c;
    }
    return NULL;
}

static void sync_up_to(sim_disk *d, sim_node *dir, uint64_t seq) {
    /* Each step inwards is to an older change, so two directories that swap names end this; what a step syncs of `dir`
     * itself leaves its list, hence the search anew. */
    for (const sim_change *c; (c = first_early_leaver(dir, seq)) != NULL;) sync_up_to(d, c->moved_to, c->moved_seq);
    size_t count = 0;
    for (; count < dir->change_count && dir->changes[count].seq <= seq; count++)
        apply(d, dir, &dir->changes[count], true);
    forget_changes(d, dir, count);
}

void sim_sync_dir(sim_disk *d, sim_node *dir) { sync_up_to(d, dir, UINT64_MAX); }

/* ---- data ---- */

bool sim_append(sim_disk *d, sim_node *f, const void *p, size_t n) {
    if (n > f->capacity - f->n) {
        if (n > SIZE_MAX / 2 - f->n) return false;
        size_t capacity = f->capacity * 2 > f->n + n ? f->capacity * 2 : f->n + n;
        uint8_t *grown = realloc(f->p, capacity);
        if (!grown) return false;
        f->p = grown, f->capacity = capacity;
    }
    if (n) memcpy(f->p + f->n, p, n);
    f->n += n;
    d->used += n;
    f->mtime_us = ++d->ticks;
    return true;
}

void sim_sync_file(sim_node *f) {
    free(f->old);
    f->old = NULL, f->old_n = 0, f->has_old = false;
    f->synced_n = f->n;
}

/* The system has marked the pages clean: a later fsync succeeds and makes nothing of them durable. */
void sim_sync_failed(sim_node *f) {
    size_t low = f->has_old ? 0 : f->synced_n;
    if (low >= f->n) return;
    if (f->doubt_high == 0 || low < f->doubt_low) f->doubt_low = low;
    if (f->n > f->doubt_high) f->doubt_high = f->n;
}

enum { SECTOR_BYTES = 512 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t greatest(size_t a, size_t b) { return a > b ? a : b; }
static size_t sector_end(size_t at) { return (at / SECTOR_BYTES + 1) * SECTOR_BYTES; }

uint64_t sim_random_below(sim_disk *d, uint64_t bound) { /* splitmix64, as random.c; a bias of bound in 2^64 is fine */
    uint64_t z = d->random += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return bound ? z % bound : 0;
}

static void settle_doubt(sim_disk *d, sim_node *f, size_t n) {
    size_t high = least(f->doubt_high, n);
    for (size_t at = f->doubt_low; at < high; at = sector_end(at))
        if (sim_random_below(d, 2)) memset(f->p + at, 0, least(sector_end(at), high) - at);
    f->doubt_low = f->doubt_high = 0;
}

void sim_truncate(sim_disk *d, sim_node *f) {
    d->used -= f->n;
    if (!f->has_old && f->synced_n > 0) {
        settle_doubt(d, f, f->synced_n);
        f->old = f->p, f->old_n = f->synced_n, f->has_old = true;
        f->p = NULL, f->capacity = 0;
    }
    f->n = f->synced_n = 0;
    f->doubt_low = f->doubt_high = 0;
    f->mtime_us = ++d->ticks;
}

/* ---- the power cut ---- */

/* How much of something unsynced survives: nothing, all, or each part by its own draw. */
typedef enum fate { FATE_NONE, FATE_ALL, FATE_EACH } fate;
static fate draw_fate(sim_disk *d) {
    uint64_t v = sim_random_below(d, 4);
    return v == 0 ? FATE_NONE : v == 1 ? FATE_ALL : FATE_EACH;
}
static bool draw_kept(sim_disk *d, fate f) { return f == FATE_ALL || (f == FATE_EACH && sim_random_below(d, 2)); }

/* Unsynced appends: the size is anything from the synced to the last one, each sector is there or reads as zeros. */
static void crash_appended(sim_disk *d, sim_node *f, fate how, size_t n) {
    for (size_t at = f->synced_n; at < n; at = sector_end(at))
        if (!draw_kept(d, how)) memset(f->p + at, 0, least(sector_end(at), n) - at);
    f->n = n;
}

/* Truncated and written again: each sector is of the old content or of the new. Merged into whichever buffer is long
 * enough. */
static void crash_rewritten(sim_disk *d, sim_node *f, fate how, size_t n) {
    bool into_new = n <= f->n;
    uint8_t *into = into_new ? f->p : f->old;
    for (size_t at = 0; at < n; at = sector_end(at)) {
        size_t end = least(sector_end(at), n);
        bool kept = draw_kept(d, how);
        if (kept && !into_new && at < f->n) memcpy(into + at, f->p + at, least(end, f->n) - at);
        if (kept || !into_new) continue;
        size_t copied = at < f->old_n ? least(end, f->old_n) - at : 0;
        if (copied) memcpy(into + at, f->old + at, copied);
        memset(into + at + copied, 0, end - at - copied);
    }
    if (!into_new) {
        uint8_t *p = f->p;
        f->p = f->old, f->capacity = f->old_n, f->old = p;
    }
    f->n = n;
}

static size_t draw_size(sim_disk *d, size_t a, size_t b) {
    uint64_t v = sim_random_below(d, 4);
    size_t low = least(a, b), high = greatest(a, b);
    return v == 0 ? a : v == 1 ? b : low + (size_t)sim_random_below(d, high - low + 1);
}

static void crash_file(sim_disk *d, sim_node *f) {
    size_t base_n = f->has_old ? f->old_n : f->synced_n;
    if (f->has_old || f->synced_n < f->n) {
        fate how = draw_fate(d);
        size_t n = how == FATE_ALL ? f->n : how == FATE_NONE ? base_n : draw_size(d, base_n, f->n);
        if (f->has_old)
            crash_rewritten(d, f, how, n);
        else
            crash_appended(d, f, how, n);
    }
    settle_doubt(d, f, f->n);
    f->lock_owner = NULL;
    sim_sync_file(f);
    d->used += f->n;
}

static void draw_changes(sim_disk *d) {
    for (sim_node *dir = d->nodes.next; dir != &d->nodes; dir = dir->next) {
        fate how = dir->change_count ? draw_fate(d) : FATE_NONE;
        for (size_t i = 0; i < dir->change_count; i++) dir->changes[i].kept = draw_kept(d, how);
    }
    for (sim_node *dir = d->nodes.next; dir != &d->nodes; dir = dir->next) {
        for (size_t i = 0; i < dir->change_count; i++) {
            sim_change *c = &dir->changes[i];
            const sim_change *came = c->moved_to ? pending_change(c->moved_to, c->moved_seq) : NULL;
            if (came && !came->kept) c->kept = false;
        }
    }
}

/* What a check of the file system would do: one name for a directory, names counted. */
static void reach(sim_disk *d, sim_node *dir) {
    dir->seen = true;
    for (size_t i = 0; i < dir->durable.count;) {
        sim_node *n = dir->durable.items[i].node;
        if (n->is_dir && n->seen) {
            sim_node_unref(d, clear_entry(&dir->durable, dir->durable.items[i].name->z));
            continue;
        }
        n->links++;
        if (n->is_dir)
            reach(d, n);
        else
            n->seen = true;
        i++;
    }
}

static void drop_unreachable(sim_disk *d) {
    for (sim_node *n = d->nodes.next; n != &d->nodes;) {
        if (n->seen || n->now.count + n->durable.count == 0) {
            n = n->next;
            continue;
        }
        n->refs++;
        drop_entries(d, &n->now);
        drop_entries(d, &n->durable);
        sim_node_unref(d, n);
        n = d->nodes.next; /* others may have gone with it */
    }
}

void sim_disk_crash(sim_disk *d) {
    draw_changes(d);
    for (sim_node *dir = d->nodes.next; dir != &d->nodes; dir = dir->next) {
        dir->refs++; /* nothing leaves the ring while it is walked */
        for (size_t i = 0; i < dir->change_count; i++)
            if (dir->changes[i].kept) apply(d, dir, &dir->changes[i], sim_random_below(d, 4) != 0);
    }
    for (sim_node *n = d->nodes.next; n != &d->nodes; n = n->next) {
        forget_changes(d, n, n->change_count);
        n->links = 0, n->seen = false;
    }
    d->root->links = 1;
    reach(d, d->root);
    for (sim_node *dir = d->nodes.next; dir != &d->nodes; dir = dir->next) {
        drop_entries(d, &dir->now);
        for (size_t i = 0; i < dir->durable.count; i++)
            set_entry(&dir->now, dir->durable.items[i].name, dir->durable.items[i].node);
    }
    d->used = 0;
    for (sim_node *n = d->nodes.next, *next; n != &d->nodes; n = next) {
        next = n->next;
        if (n->seen && !n->is_dir) crash_file(d, n);
        sim_node_unref(d, n);
    }
    drop_unreachable(d);
}
