/* The runs met so far, found by their bytes. See json_int.h. */
#include "base/hash.h"
#include "format/json_int.h"

enum {
    RUNS_MIN = 256,
    POOL_BYTES_PER_RUN = 32,
    FORGET_RECORDS_MIN = 10000, /* a table that fills faster than this is not worth learning */
};

ck_status ck_json_runs_init(ck_json_runs *r, ck_mem mem, uint32_t column_count) {
    *r = (ck_json_runs){.mem = mem};
    r->capacity = column_count * 3 > RUNS_MIN ? column_count * 3 : RUNS_MIN; /* each first, in the middle, and spare */
    r->slot_count = 1;
    while (r->slot_count < r->capacity * 2) r->slot_count *= 2;
    r->pool_bytes = (size_t)r->capacity * POOL_BYTES_PER_RUN;
    r->runs = ck_alloc_array(mem, r->capacity, sizeof *r->runs);
    r->pool = ck_alloc(mem, r->pool_bytes);
    r->slots = ck_alloc_array(mem, r->slot_count, sizeof *r->slots);
    if (!r->runs || !r->pool || !r->slots) {
        ck_json_runs_destroy(r);
        return CK_NOMEM;
    }
    memset(r->slots, 0, r->slot_count * sizeof *r->slots);
    r->none.head[0] = 0xFF; /* compared like any other; no valid text has this byte, and its operation gives up */
    r->none.mask[0] = 0xFF;
    r->none.head_mask = 1;
    r->none.op = CK_JSON_OP_NONE;
    r->none.follow = r->first = (ck_json_follow){&r->none, &r->none};
    return CK_OK;
}

void ck_json_runs_destroy(ck_json_runs *r) {
    if (r->runs) ck_free(r->mem, r->runs, r->capacity * sizeof *r->runs);
    if (r->pool) ck_free(r->mem, r->pool, r->pool_bytes);
    if (r->slots) ck_free(r->mem, r->slots, r->slot_count * sizeof *r->slots);
    *r = (ck_json_runs){0};
}

static uint64_t hash(const uint8_t *p, size_t n, bool first) { return ck_hash_bytes(first, p, n); }

static bool is(const ck_json_run *run, const uint8_t *p, size_t n, bool first, uint64_t h) {
    if (run->hash != h || run->bytes != n || run->first != first) return false;
    size_t head = n < CK_JSON_RUN_HEAD ? n : CK_JSON_RUN_HEAD;
    return memcmp(run->head, p, head) == 0 && memcmp(run->rest, p + head, n - head) == 0;
}

static ck_json_run *find(const ck_json_runs *r, const uint8_t *p, size_t n, bool first, uint64_t h) {
    ck_json_run *run = r->slots[h & (r->slot_count - 1)];
    while (run && !is(run, p, n, first, h)) run = run->chain;
    return run;
}

static const uint8_t *blanks(const uint8_t *p) { /* within a line */
    while (*p == ' ' || *p == '\t' || *p == '\r') p++;
    return p;
}

/* Behind the run at p by its shape alone; NULL when it has none (an escaped key is not worth a run). */
static const uint8_t *run_end(const ck_json_kernel *k, const uint8_t *p, bool first) {
    p = blanks(p);
    bool closing = *p == '}';
    if (!closing && *p != (first ? '{' : ',')) return NULL;
    if (closing && first) return NULL;
    p = blanks(p + 1);
    if (first && *p == '}') closing = true, p = blanks(p + 1);
    if (closing) return *p == '\n' ? p + 1 : NULL;
    if (*p != '"') return NULL;
    p = k->text(p + 1);
    if (*p != '"') return NULL;
    p = blanks(p + 1);
    return *p == ':' ? blanks(p + 1) : NULL;
}

ck_json_run *ck_json_runs_find(ck_json_runs *r, const ck_json_kernel *k, const uint8_t *p, bool first) {
    const uint8_t *end = run_end(k, p, first);
    if (!end || (size_t)(end - p) > CK_JSON_RUN_BYTES_MAX) return NULL;
    size_t n = (size_t)(end - p);
    return find(r, p, n, first, hash(p, n, first));
}

static void forget(ck_json_runs *r, uint64_t serial) {
    r->count = 0;
    r->pool_used = 0;
    memset(r->slots, 0, r->slot_count * sizeof *r->slots);
    r->first = r->none.follow;
    r->forgot_at = serial;
}

ck_json_run *ck_json_runs_learn(ck_json_runs *r, const uint8_t *p, size_t n, bool first, ck_json_op op,
                                ck_target *target, uint64_t serial) {
    if (n == 0 || n > CK_JSON_RUN_BYTES_MAX) return NULL;
    uint64_t h = hash(p, n, first);
    ck_json_run *run = find(r, p, n, first, h);
    if (run) return run;
    size_t head = n < CK_JSON_RUN_HEAD ? n : CK_JSON_RUN_HEAD;
    if (r->count == r->capacity || n - head > r->pool_bytes - r->pool_used) {
        if (serial - r->forgot_at >= FORGET_RECORDS_MIN) forget(r, serial);
        return NULL; /* also after forgetting: what the caller has linked so far is gone */
    }
    run = &r->runs[r->count++];
    *run = (ck_json_run){
        .bytes = (uint32_t)n, .op = op, .first = first, .target = target, .follow = r->none.follow, .hash = h};
    memcpy(run->head, p, head);
    memset(run->mask, 0xFF, head); /* words hold bytes in order: the first `head` of them count */
    run->head_mask = (uint32_t)((1ULL << head) - 1);
    run->rest = r->pool + r->pool_used;
    if (n > head) memcpy(r->pool + r->pool_used, p + head, n - head);
    r->pool_used += n - head;
    run->chain = r->slots[h & (r->slot_count - 1)];
    r->slots[h & (r->slot_count - 1)] = run;
    return run;
}

/* ---- keys ---- */

ck_status ck_json_keys_init(ck_json_keys *k, ck_mem mem, uint32_t count) {
    *k = (ck_json_keys){.mem = mem, .slot_count = 1};
    while (k->slot_count < count * 2 + 2) k->slot_count *= 2;
    k->slots = ck_alloc_array(mem, k->slot_count, sizeof *k->slots);
    if (!k->slots) {
        *k = (ck_json_keys){0};
        return CK_NOMEM;
    }
    memset(k->slots, 0, k->slot_count * sizeof *k->slots);
    return CK_OK;
}

void ck_json_keys_destroy(ck_json_keys *k) {
    if (k->slots) ck_free(k->mem, k->slots, k->slot_count * sizeof *k->slots);
    *k = (ck_json_keys){0};
}

void ck_json_keys_add(ck_json_keys *k, const char *name, uint32_t index) {
    size_t n = strlen(name);
    uint64_t i = ck_hash_bytes(0, name, n) & (k->slot_count - 1);
    while (k->slots[i].name) i = (i + 1) & (k->slot_count - 1);
    k->slots[i] = (ck_json_key){name, n, index};
}

int64_t ck_json_keys_find(const ck_json_keys *k, ck_view name) {
    uint64_t i = ck_hash_bytes(0, name.p, name.n) & (k->slot_count - 1);
    for (; k->slots[i].name; i = (i + 1) & (k->slot_count - 1))
        if (ck_view_eq((ck_view){k->slots[i].name, k->slots[i].bytes}, name)) return k->slots[i].index;
    return -1;
}
