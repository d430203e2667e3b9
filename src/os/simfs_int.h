/* What is on the simulated disk. A node is a file or a directory; each keeps two states: what readers see now and what
 * a power cut leaves for certain, with the difference between them as data (files: the bytes behind the synced ones;
 * directories: a list of changes). simfs_node.c holds the rules, simfs.c paths, the table and the lock. */
#ifndef CK_OS_SIMFS_INT_H
#define CK_OS_SIMFS_INT_H

#include "os/simfs.h"

typedef struct sim_node sim_node;
typedef struct sim_file sim_file;

typedef struct sim_name { /* shared by entries and changes */
    unsigned refs;
    char z[];
} sim_name;

typedef struct sim_entry {
    sim_name *name;
    sim_node *node;
} sim_entry;

typedef struct sim_entries { /* sorted by name; each holds references */
    sim_entry *items;
    size_t count, capacity;
} sim_entries;

typedef enum sim_change_kind {
    SIM_LINK,   /* name is node's now */
    SIM_UNLINK, /* name is gone */
    SIM_RENAME, /* name is node's now and `from` of the same directory is gone */
} sim_change_kind;

/* One change to a directory that no fsync has covered. Each survives a crash or not by itself, but a name that was
 * moved to another directory goes only when it has come there (no file system loses a file that way). */
typedef struct sim_change {
    sim_change_kind kind;
    bool kept; /* at a crash: drawn to survive */
    uint64_t seq;
    sim_name *name, *from; /* from: SIM_RENAME only */
    sim_node *node;        /* NULL for SIM_UNLINK */
    sim_node *moved_to;    /* SIM_UNLINK: the directory that got it, or NULL */
    uint64_t moved_seq;    /* the seq of that change */
} sim_change;

struct sim_node {
    sim_node *next, *prev; /* all nodes of the disk */
    unsigned refs;         /* entries of both states, changes, open files, the root */
    unsigned links, opens; /* names now, open files: without either it takes no space */
    uint64_t inode;
    int64_t mtime_us;
    bool is_dir;
    bool seen; /* at a crash: reached from the root */
    /* files: appended to and truncated only, so the durable content is a prefix, or an old content set aside */
    uint8_t *p;
    size_t n, capacity;
    size_t synced_n; /* p[0 .. synced_n) is durable, unless has_old */
    bool has_old;    /* truncated since the last fsync: old[0 .. old_n) is what is durable */
    uint8_t *old;
    size_t old_n;
    size_t doubt_low, doubt_high; /* an fsync failed over these: lost pages that the system calls clean */
    sim_file *lock_owner;
    /* directories; both arrays always have room for what the changes may add, so that syncing and crashing cannot fail
     */
    sim_entries now, durable;
    sim_change *changes; /* oldest first */
    size_t change_count, change_capacity;
};

typedef struct sim_disk {
    sim_node *root;
    sim_node nodes; /* ring */
    uint64_t last_inode, last_seq;
    uint64_t random;         /* splitmix64 state */
    uint64_t used, capacity; /* bytes of files; capacity 0 = no limit */
    int64_t ticks;           /* stands for the time of modification */
} sim_disk;

/* Every function that returns bool is false without memory and has then changed nothing. */
bool sim_disk_init(sim_disk *d, uint64_t seed);
void sim_disk_destroy(sim_disk *d);
uint64_t sim_random_below(sim_disk *d, uint64_t bound);

sim_node *sim_node_new(sim_disk *d, bool is_dir); /* one reference, the caller's */
void sim_node_unref(sim_disk *d, sim_node *n);
void sim_node_open(sim_node *n);
void sim_node_close(sim_disk *d, sim_node *n);

sim_node *sim_find(const sim_node *dir, const char *name); /* NULL when dir has no such name now */
bool sim_link(sim_disk *d, sim_node *dir, const char *name, sim_node *node);
bool sim_unlink(sim_disk *d, sim_node *dir, const char *name);
bool sim_rename(sim_disk *d, sim_node *from_dir, const char *from, sim_node *to_dir, const char *to); /* replaces */
void sim_sync_dir(sim_disk *d, sim_node *dir);

bool sim_append(sim_disk *d, sim_node *file, const void *p, size_t n);
void sim_truncate(sim_disk *d, sim_node *file);
void sim_sync_file(sim_node *file);
void sim_sync_failed(sim_node *file);

/* Draws what survives; afterwards everything there is durable. No file may be open. */
void sim_disk_crash(sim_disk *d);

#endif
