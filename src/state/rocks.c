/* See rocks_int.h. */
#include "state/rocks_int.h"

#include <pthread.h>
#include <rocksdb/c.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "os/modules.h"
#include "os/scratch_dir.h"

#define FUNCTIONS(X)                                                                                                   \
    X(rocksdb_options_create)                                                                                          \
    X(rocksdb_options_destroy)                                                                                         \
    X(rocksdb_options_set_create_if_missing)                                                                           \
    X(rocksdb_options_set_error_if_exists)                                                                             \
    X(rocksdb_options_set_info_log_level)                                                                              \
    X(rocksdb_options_set_db_log_dir)                                                                                  \
    X(rocksdb_options_set_stats_dump_period_sec)                                                                       \
    X(rocksdb_options_set_write_buffer_size)                                                                           \
    X(rocksdb_options_set_max_write_buffer_number)                                                                     \
    X(rocksdb_options_set_target_file_size_base)                                                                       \
    X(rocksdb_options_set_max_bytes_for_level_base)                                                                    \
    X(rocksdb_options_set_level_compaction_dynamic_level_bytes)                                                        \
    X(rocksdb_options_set_max_open_files)                                                                              \
    X(rocksdb_options_set_compression)                                                                                 \
    X(rocksdb_options_set_prefix_extractor)                                                                            \
    X(rocksdb_options_set_memtable_prefix_bloom_size_ratio)                                                            \
    X(rocksdb_options_set_block_based_table_factory)                                                                   \
    X(rocksdb_block_based_options_create)                                                                              \
    X(rocksdb_block_based_options_destroy)                                                                             \
    X(rocksdb_block_based_options_set_block_cache)                                                                     \
    X(rocksdb_block_based_options_set_cache_index_and_filter_blocks)                                                   \
    X(rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache)                                         \
    X(rocksdb_block_based_options_set_filter_policy)                                                                   \
    X(rocksdb_filterpolicy_create_bloom_full)                                                                          \
    X(rocksdb_cache_create_lru)                                                                                        \
    X(rocksdb_cache_destroy)                                                                                           \
    X(rocksdb_slicetransform_create)                                                                                   \
    X(rocksdb_open_column_families)                                                                                    \
    X(rocksdb_column_family_handle_destroy)                                                                            \
    X(rocksdb_close)                                                                                                   \
    X(rocksdb_writeoptions_create)                                                                                     \
    X(rocksdb_writeoptions_destroy)                                                                                    \
    X(rocksdb_writeoptions_disable_WAL)                                                                                \
    X(rocksdb_readoptions_create)                                                                                      \
    X(rocksdb_readoptions_destroy)                                                                                     \
    X(rocksdb_readoptions_set_snapshot)                                                                                \
    X(rocksdb_readoptions_set_total_order_seek)                                                                        \
    X(rocksdb_readoptions_set_prefix_same_as_start)                                                                    \
    X(rocksdb_writebatch_create)                                                                                       \
    X(rocksdb_writebatch_destroy)                                                                                      \
    X(rocksdb_writebatch_clear)                                                                                        \
    X(rocksdb_writebatch_count)                                                                                        \
    X(rocksdb_writebatch_put)                                                                                          \
    X(rocksdb_writebatch_delete)                                                                                       \
    X(rocksdb_writebatch_delete_range)                                                                                 \
    X(rocksdb_write)                                                                                                   \
    X(rocksdb_create_snapshot)                                                                                         \
    X(rocksdb_release_snapshot)                                                                                        \
    X(rocksdb_batched_multi_get_cf)                                                                                    \
    X(rocksdb_pinnableslice_value)                                                                                     \
    X(rocksdb_pinnableslice_destroy)                                                                                   \
    X(rocksdb_create_iterator)                                                                                         \
    X(rocksdb_iter_destroy)                                                                                            \
    X(rocksdb_iter_seek)                                                                                               \
    X(rocksdb_iter_valid)                                                                                              \
    X(rocksdb_iter_next)                                                                                               \
    X(rocksdb_iter_key)                                                                                                \
    X(rocksdb_iter_value)                                                                                              \
    X(rocksdb_iter_get_error)                                                                                          \
    X(rocksdb_free)

typedef struct library {
    CK_MODULE_TABLE(FUNCTIONS)
} library;

static const char *const names[] = {CK_MODULE_NAMES(FUNCTIONS)};
static const ck_module_desc module = {.file = "librocksdb.so.7.8",
                                      .package = "librocksdb7.8",
                                      .for_what = "state backend 'rocksdb'",
                                      .functions = names,
                                      .count = CK_ARRAY_COUNT(names)};

struct ck_rocks {
    const library *lib;
    ck_mem mem;
    ck_scratch_dir *dir;
    pthread_mutex_t lock; /* guards opening and the count of stores */
    ck_error failed;      /* how opening has failed; another try would only find what it left */
    uint32_t stores;
    bool all; /* tests: every row that can leave does, whenever it may */
    size_t reserve;
    _Atomic(rocksdb_t *) db;
    rocksdb_options_t *options;
    rocksdb_column_family_handle_t *family;
    rocksdb_writeoptions_t *write;
    rocksdb_readoptions_t *read;
};

/* A job with a bound gives a sixteenth of it for blocks read and as much for what is being written; more than this does
 * not help, less is not worth having. */
enum { BUFFER_MIN = 2 << 20, BUFFER_MAX = 32 << 20, CACHE_MIN = 4 << 20, CACHE_MAX = 256 << 20, BUFFERS = 2 };
enum { BLOOM_BITS = 10, OPEN_FILES = 512, FATAL_LEVEL = 4, LOG_ROOM = 1 << 20 };
#define IN_MEMORY "/dev/shm"
static size_t within(size_t v, size_t min, size_t max) { return v < min ? min : v > max ? max : v; }
static size_t buffer_bytes(const ck_rocks *r) {
    size_t limit = r->mem.budget->limit;
    return limit ? within(limit / 32, BUFFER_MIN, BUFFER_MAX) : BUFFER_MAX;
}
static size_t cache_bytes(const ck_rocks *r) {
    size_t limit = r->mem.budget->limit;
    return limit ? within(limit / 16, CACHE_MIN, CACHE_MAX) : CACHE_MAX;
}

/* ---- life ---- */

ck_status ck_rocks_new(ck_proc *proc, ck_mem mem, const char *dir, ck_rocks **out, ck_error *err) {
    const void *table;
    CK_TRY(ck_module_open(proc, &module, &table, err));
    ck_mem m = ck_mem_as(mem, CK_MEM_ROCKSDB);
    ck_rocks *r = ck_alloc_zero(m, sizeof *r);
    if (!r) return ck_nomem(err, m, sizeof *r);
    r->lib = table, r->mem = m, r->all = proc->evicts_all;
    ck_status s = ck_scratch_dir_new(m, dir, "clink-rocksdb", &r->dir, err);
    if (s != CK_OK) {
        ck_free(m, r, sizeof *r);
        return s;
    }
    pthread_mutex_init(&r->lock, NULL);
    *out = r;
    return CK_OK;
}

void ck_rocks_free(ck_rocks *r) {
    if (!r) return;
    const library *l = r->lib;
    rocksdb_t *db = atomic_load(&r->db);
    if (db) {
        l->rocksdb_column_family_handle_destroy(r->family);
        l->rocksdb_close(db);
        l->rocksdb_readoptions_destroy(r->read);
        l->rocksdb_writeoptions_destroy(r->write);
        l->rocksdb_options_destroy(r->options);
        ck_mem_give(r->mem, r->reserve);
    }
    ck_scratch_dir_free(r->dir);
    pthread_mutex_destroy(&r->lock);
    ck_free(r->mem, r, sizeof *r);
}

bool ck_rocks_store_number(ck_rocks *r, uint16_t *out) {
    pthread_mutex_lock(&r->lock);
    bool left = r->stores <= UINT16_MAX;
    if (left) *out = (uint16_t)r->stores++;
    pthread_mutex_unlock(&r->lock);
    return left;
}

bool ck_rocks_takes_all(const ck_rocks *r) { return r->all; }
bool ck_rocks_is_open(const ck_rocks *r) { return atomic_load_explicit(&r->db, memory_order_acquire) != NULL; }

/* ---- what it says ---- */

static ck_status said(const ck_rocks *r, char *text, ck_error *err) {
    if (!text) return CK_OK;
    ck_status s = strncmp(text, "Corruption", 10) == 0 ? CK_CORRUPT : CK_IO;
    ck_fail(err, s, "state in RocksDB under %s: %s", ck_scratch_dir_path(r->dir), text);
    r->lib->rocksdb_free(text);
    return s;
}

/* ---- opening ---- */

static char *prefix_of(void *arg, const char *key, size_t n, size_t *prefix_n) {
    (void)arg, (void)n;
    const uint8_t *p = (const uint8_t *)key + CK_ROCKS_HEAD;
    *prefix_n = CK_ROCKS_HEAD + 4 + ((size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3]);
    return (char *)(uintptr_t)key;
}

static unsigned char has_prefix(void *arg, const char *key, size_t n) {
    (void)arg;
    if (n < CK_ROCKS_HEAD + 4 || key[0] != CK_ROCKS_ROWS || key[CK_ROCKS_HEAD - 1] != CK_ROCKS_GROUPED) return 0;
    size_t prefix_n;
    (void)prefix_of(NULL, key, n, &prefix_n);
    return prefix_n <= n;
}

static unsigned char never(void *arg, const char *key, size_t n) {
    (void)arg, (void)key, (void)n;
    return 0;
}

static const char *prefix_name(void *arg) {
    (void)arg;
    return "clink.grouped";
}

static void nothing(void *arg) { (void)arg; }

static rocksdb_options_t *options_new(const ck_rocks *r) {
    const library *l = r->lib;
    rocksdb_options_t *o = l->rocksdb_options_create();
    size_t buffer = buffer_bytes(r);
    l->rocksdb_options_set_create_if_missing(o, 1);
    l->rocksdb_options_set_error_if_exists(o, 1);
    l->rocksdb_options_set_info_log_level(o, FATAL_LEVEL);
    l->rocksdb_options_set_stats_dump_period_sec(o, 0);
    l->rocksdb_options_set_write_buffer_size(o, buffer);
    l->rocksdb_options_set_max_write_buffer_number(o, BUFFERS);
    l->rocksdb_options_set_target_file_size_base(o, buffer * 2);
    l->rocksdb_options_set_max_bytes_for_level_base(o, buffer * 8);
    l->rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    l->rocksdb_options_set_max_open_files(o, OPEN_FILES);
    l->rocksdb_options_set_compression(o, rocksdb_lz4_compression);
    l->rocksdb_options_set_prefix_extractor(
        o, l->rocksdb_slicetransform_create(NULL, nothing, prefix_of, has_prefix, never, prefix_name));
    l->rocksdb_options_set_memtable_prefix_bloom_size_ratio(o, 0.02);
    rocksdb_block_based_table_options_t *b = l->rocksdb_block_based_options_create();
    rocksdb_cache_t *cache = l->rocksdb_cache_create_lru(cache_bytes(r));
    l->rocksdb_block_based_options_set_block_cache(b, cache);
    l->rocksdb_block_based_options_set_cache_index_and_filter_blocks(b, 1);
    l->rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(b, 1);
    l->rocksdb_block_based_options_set_filter_policy(b, l->rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    l->rocksdb_options_set_block_based_table_factory(o, b);
    l->rocksdb_block_based_options_destroy(b);
    l->rocksdb_cache_destroy(cache); /* the options hold it */
    return o;
}

/* RocksDB takes the second write to its log on a full disk for a bug of its own and ends the process, so that the log
 * is in memory, where there is room, and nowhere once it is open. It holds the options and nothing else. */
static ck_scratch_dir *log_in_memory(ck_rocks *r) {
    struct statvfs room;
    ck_scratch_dir *d = NULL;
    if (statvfs(IN_MEMORY, &room) != 0 || room.f_bavail * room.f_frsize < LOG_ROOM) return NULL;
    if (ck_scratch_dir_new(r->mem, IN_MEMORY, "clink-rocksdb-log", &d, NULL) != CK_OK) return NULL;
    r->lib->rocksdb_options_set_db_log_dir(r->options, ck_scratch_dir_path(d));
    return d;
}

/* The library's threads are made here and inherit that no signal is theirs. */
static ck_status open_db(ck_rocks *r, rocksdb_t **db, ck_error *err) {
    static const char *const family[] = {"default"};
    const rocksdb_options_t *options[] = {r->options};
    char path[4200], *text = NULL;
    (void)snprintf(path, sizeof path, "%s/db", ck_scratch_dir_path(r->dir));
    ck_scratch_dir *log = log_in_memory(r);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    *db = r->lib->rocksdb_open_column_families(r->options, path, 1, family, options, &r->family, &text);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ck_scratch_dir_free(log);
    return said(r, text, err);
}

static ck_status open_locked(ck_rocks *r, ck_error *err) {
    const library *l = r->lib;
    if (ck_rocks_is_open(r)) return CK_OK;
    if (r->failed.status != CK_OK) return ck_fail(err, r->failed.status, "%s", r->failed.msg);
    r->reserve = buffer_bytes(r) * BUFFERS + cache_bytes(r);
    if (!ck_mem_take(r->mem, r->reserve)) return ck_nomem(err, r->mem, r->reserve);
    rocksdb_t *db = NULL;
    r->options = options_new(r);
    ck_status s = open_db(r, &db, &r->failed);
    if (s != CK_OK) {
        l->rocksdb_options_destroy(r->options);
        ck_mem_give(r->mem, r->reserve);
        return ck_fail(err, s, "%s", r->failed.msg);
    }
    r->write = l->rocksdb_writeoptions_create();
    l->rocksdb_writeoptions_disable_WAL(r->write, 1);
    r->read = l->rocksdb_readoptions_create();
    atomic_store_explicit(&r->db, db, memory_order_release);
    return CK_OK;
}

ck_status ck_rocks_open(ck_rocks *r, ck_error *err) {
    if (ck_rocks_is_open(r)) return CK_OK;
    pthread_mutex_lock(&r->lock);
    ck_status s = open_locked(r, err);
    pthread_mutex_unlock(&r->lock);
    return s;
}

/* ---- writing ---- */

static rocksdb_t *db_of(const ck_rocks *r) { return atomic_load_explicit(&r->db, memory_order_relaxed); }
static rocksdb_writebatch_t *batch_of(ck_rocks_batch *b) { return (rocksdb_writebatch_t *)(void *)b; }

ck_rocks_batch *ck_rocks_batch_new(ck_rocks *r) {
    return (ck_rocks_batch *)(void *)r->lib->rocksdb_writebatch_create();
}
void ck_rocks_batch_free(ck_rocks *r, ck_rocks_batch *b) {
    if (b) r->lib->rocksdb_writebatch_destroy(batch_of(b));
}
void ck_rocks_put(ck_rocks *r, ck_rocks_batch *b, ck_view key, ck_view value) {
    r->lib->rocksdb_writebatch_put(batch_of(b), key.p, key.n, value.p, value.n);
}
void ck_rocks_delete(ck_rocks *r, ck_rocks_batch *b, ck_view key) {
    r->lib->rocksdb_writebatch_delete(batch_of(b), key.p, key.n);
}
void ck_rocks_delete_range(ck_rocks *r, ck_rocks_batch *b, ck_view from, ck_view to) {
    r->lib->rocksdb_writebatch_delete_range(batch_of(b), from.p, from.n, to.p, to.n);
}
ck_status ck_rocks_write(ck_rocks *r, ck_rocks_batch *b, ck_error *err) {
    char *text = NULL;
    if (r->lib->rocksdb_writebatch_count(batch_of(b)) == 0) return CK_OK;
    r->lib->rocksdb_write(db_of(r), r->write, batch_of(b), &text);
    r->lib->rocksdb_writebatch_clear(batch_of(b));
    return said(r, text, err);
}

/* ---- reading ---- */

const ck_rocks_snapshot *ck_rocks_snapshot_take(ck_rocks *r) {
    return (const ck_rocks_snapshot *)(const void *)r->lib->rocksdb_create_snapshot(db_of(r));
}
void ck_rocks_snapshot_release(ck_rocks *r, const ck_rocks_snapshot *s) {
    r->lib->rocksdb_release_snapshot(db_of(r), (const rocksdb_snapshot_t *)(const void *)s);
}

static rocksdb_readoptions_t *read_at(const ck_rocks *r, const ck_rocks_snapshot *at) {
    rocksdb_readoptions_t *o = r->lib->rocksdb_readoptions_create();
    if (at) r->lib->rocksdb_readoptions_set_snapshot(o, (const rocksdb_snapshot_t *)(const void *)at);
    return o;
}

ck_status ck_rocks_get_many(ck_rocks *r, const ck_rocks_snapshot *at, const ck_view *keys, uint32_t n,
                            ck_rocks_found fn, void *arg, ck_error *err) {
    const library *l = r->lib;
    const char *p[CK_ROCKS_MANY];
    size_t bytes[CK_ROCKS_MANY];
    rocksdb_pinnableslice_t *values[CK_ROCKS_MANY];
    char *texts[CK_ROCKS_MANY];
    CK_ASSERT(n <= CK_ROCKS_MANY);
    for (uint32_t i = 0; i < n; i++) p[i] = keys[i].p, bytes[i] = keys[i].n;
    rocksdb_readoptions_t *own = at ? read_at(r, at) : NULL;
    l->rocksdb_batched_multi_get_cf(db_of(r), own ? own : r->read, r->family, n, p, bytes, values, texts, false);
    if (own) l->rocksdb_readoptions_destroy(own);
    ck_status s = CK_OK;
    for (uint32_t i = 0; i < n; i++) {
        if (texts[i] && s == CK_OK)
            s = said(r, texts[i], err);
        else if (texts[i])
            l->rocksdb_free(texts[i]);
        if (!values[i]) continue;
        ck_view v;
        v.p = l->rocksdb_pinnableslice_value(values[i], &v.n);
        if (s == CK_OK) s = fn(arg, i, v);
        l->rocksdb_pinnableslice_destroy(values[i]);
    }
    return s;
}

static rocksdb_iterator_t *iterator_of(const ck_rocks_iterator *it) {
    return (rocksdb_iterator_t *)(uintptr_t)(const void *)it;
}

ck_rocks_iterator *ck_rocks_iterate(ck_rocks *r, const ck_rocks_snapshot *at, bool grouped) {
    const library *l = r->lib;
    rocksdb_readoptions_t *o = read_at(r, at);
    if (grouped)
        l->rocksdb_readoptions_set_prefix_same_as_start(o, 1);
    else
        l->rocksdb_readoptions_set_total_order_seek(o, 1);
    rocksdb_iterator_t *it = l->rocksdb_create_iterator(db_of(r), o);
    l->rocksdb_readoptions_destroy(o); /* the iterator has a copy */
    return (ck_rocks_iterator *)(void *)it;
}

void ck_rocks_iterator_free(ck_rocks *r, ck_rocks_iterator *it) {
    if (it) r->lib->rocksdb_iter_destroy(iterator_of(it));
}

void ck_rocks_seek(ck_rocks *r, ck_rocks_iterator *it, ck_view from) {
    r->lib->rocksdb_iter_seek(iterator_of(it), from.p, from.n);
}

ck_status ck_rocks_at(ck_rocks *r, ck_rocks_iterator *it, bool *any, ck_view *key, ck_view *value, ck_error *err) {
    const library *l = r->lib;
    *any = l->rocksdb_iter_valid(iterator_of(it));
    if (!*any) {
        char *text = NULL;
        l->rocksdb_iter_get_error(iterator_of(it), &text);
        return said(r, text, err);
    }
    key->p = l->rocksdb_iter_key(iterator_of(it), &key->n);
    value->p = l->rocksdb_iter_value(iterator_of(it), &value->n);
    return CK_OK;
}

void ck_rocks_next(ck_rocks *r, ck_rocks_iterator *it) { r->lib->rocksdb_iter_next(iterator_of(it)); }
