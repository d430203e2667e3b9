/* What of a checkpoint directory is this run's, where the job runs region by region. */
#include "checkpoint/directory_int.h"

uint64_t ck_checkpoint_region_step(const ck_checkpoint_region *r) { return ck_region_mask(r->count) + 1; }

uint64_t ck_checkpoint_region_id(const ck_checkpoint_region *r, uint64_t id) {
    uint64_t mask = ck_region_mask(r->count), of = r->count > 1 ? r->index : 0;
    uint64_t low = (id & ~mask) | of;
    return low >= id ? low : low + mask + 1;
}

bool ck_dir_is_of_this_graph(const ck_checkpoint_dir *d, const ck_dir_entry *e) {
    return !e->e.damage && e->e.regions == d->region.count && e->graph_hash == d->region.graph_hash;
}

bool ck_dir_entry_is_mine(const ck_checkpoint_dir *d, const ck_dir_entry *e) {
    const ck_checkpoint_region *r = &d->region;
    if (!e->e.own || !ck_dir_by_region(d)) return e->e.own;
    bool of_this = e->e.regions == r->count && e->graph_hash == r->graph_hash;
    return !of_this || e->e.region == r->index;
}

bool ck_dir_path_is_mine(const ck_checkpoint_dir *d, const char *path, uint64_t id) {
    const ck_checkpoint_region *r = &d->region;
    const char *end = strchr(path, '/');
    uint64_t vertex = 0;
    if (!ck_dir_by_region(d)) return true;
    if (!end)
        return id ? (id & ck_region_mask(r->count)) == r->index || (id & ck_region_mask(r->count)) >= r->count : true;
    for (const char *p = path; p < end; p++)
        vertex = vertex * 10 + (uint64_t)(*p - '0'); /* ck_dir_walk has seen digits */
    for (uint32_t i = 0; i < r->op_count; i++)
        if (r->ops[i] == vertex) return r->of_op[i] == r->index;
    return r->index == 0;
}
