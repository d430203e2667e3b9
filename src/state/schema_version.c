/* See schema_version.h. */
#include "state/schema_version.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"

/* Longer names are none of ours: a file that has them does not parse, and nobody stamps them. */
enum { KEY_BYTES = 24 + 2 * (CK_NAME_BYTES_MAX + 1) };

void ck_version_map_init(ck_version_map *m, ck_arena *a) { ck_map_init(&m->entries, a, false); }

/* An empty view: a name is too long. */
static ck_view key_of(char *room, uint64_t op_id, const char *state_type, const char *slot) {
    int n = snprintf(room, KEY_BYTES, "%" PRIu64 "|%s|%s", op_id, state_type ? state_type : "", slot ? slot : "");
    return (ck_view){room, n > 0 && n < KEY_BYTES ? (size_t)n : 0};
}

static ck_state_version *find(const ck_version_map *m, uint64_t op_id, const char *state_type, const char *slot) {
    char room[KEY_BYTES];
    ck_view key = key_of(room, op_id, state_type, slot);
    return key.n ? ck_map_get(&m->entries, key) : NULL;
}

ck_status ck_version_map_stamp(ck_version_map *m, const ck_state_version *v) {
    ck_arena *a = m->entries.arena;
    char room[KEY_BYTES];
    ck_state_version *to = find(m, v->op_id, v->state_type, v->slot);
    if (to) {
        to->version = v->version;
        return CK_OK;
    }
    ck_view key = key_of(room, v->op_id, v->state_type, v->slot);
    if (!key.n || !v->version) return CK_INVALID;
    if (!(to = CK_ARENA_NEW(a, ck_state_version))) return CK_NOMEM;
    *to = (ck_state_version){.op_id = v->op_id, .version = v->version};
    to->state_type = ck_arena_strdup(a, v->state_type ? v->state_type : "");
    if (v->slot) to->slot = ck_arena_strdup(a, v->slot);
    if (!to->state_type || (v->slot && !to->slot)) return CK_NOMEM;
    return ck_map_put(&m->entries, key, to, NULL);
}

uint32_t ck_version_map_get(const ck_version_map *m, uint64_t op_id, const char *state_type, const char *slot) {
    const ck_state_version *v = find(m, op_id, state_type, slot);
    if (!v) v = find(m, op_id, state_type, NULL);
    return v ? v->version : 0;
}

ck_status ck_version_map_merge(ck_version_map *m, const ck_version_map *from) {
    for (uint32_t i = 0; i < ck_version_map_count(from); i++)
        CK_TRY(ck_version_map_stamp(m, ck_version_map_at(from, i)));
    return CK_OK;
}

ck_status ck_version_map_unite(ck_version_map *m, const ck_version_map *from, ck_error *err) {
    for (uint32_t i = 0; i < ck_version_map_count(from); i++) {
        const ck_state_version *v = ck_version_map_at(from, i), *was = find(m, v->op_id, v->state_type, v->slot);
        if (was && was->version != v->version)
            return ck_fail(
                err, CK_REFUSED, "operator %" PRIu64 ", state type '%s'%s%s is in version %u here and in %u elsewhere",
                v->op_id, v->state_type, v->slot ? ", slot " : "", v->slot ? v->slot : "", v->version, was->version);
        if (!was && ck_version_map_stamp(m, v) != CK_OK) return ck_nomem(err, m->entries.arena->mem, sizeof *v);
    }
    return CK_OK;
}

/* ---- text ---- */

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static const char *line_of(ck_arena *a, const ck_state_version *v) {
    return ck_arena_printf(a, "%" PRIu64 "|%s|%u%s%s", v->op_id, v->state_type, v->version, v->slot ? "|" : "",
                           v->slot ? v->slot : "");
}

const char *ck_version_map_encode(const ck_version_map *m, ck_arena *a) {
    uint32_t count = ck_version_map_count(m);
    const char **lines = ck_arena_array(a, count + 1u, sizeof *lines);
    size_t bytes = 1;
    for (uint32_t i = 0; lines && i < count; i++) {
        if (!(lines[i] = line_of(a, ck_version_map_at(m, i)))) return NULL;
        bytes += strlen(lines[i]) + 1;
    }
    char *text = lines ? ck_arena_alloc(a, bytes) : NULL, *at = text;
    if (!text) return NULL;
    qsort(lines, count, sizeof *lines, by_text);
    for (uint32_t i = 0; i < count; i++) {
        size_t n = strlen(lines[i]);
        if (i) *at++ = '\n';
        memcpy(at, lines[i], n);
        at += n;
    }
    *at = 0;
    return text;
}

/* Decimal digits only, up to max. */
static bool number(ck_view text, uint64_t max, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(text.p[i] - '0'), &v))
            return false;
    *out = v;
    return text.n > 0 && v <= max;
}

/* Up to the next '|', which goes too; false: there was none. */
static bool cut(ck_view *rest, ck_view *part) {
    const char *bar = rest->n ? memchr(rest->p, '|', rest->n) : NULL;
    size_t n = bar ? (size_t)(bar - rest->p) : rest->n;
    *part = (ck_view){rest->p, n};
    *rest = (ck_view){rest->p + n + (bar != NULL), rest->n - n - (bar != NULL)};
    return bar != NULL;
}

static bool is_name(ck_view v) { return v.n <= CK_NAME_BYTES_MAX && !(v.n && memchr(v.p, 0, v.n)); }

typedef struct line {
    uint64_t op_id, version;
    ck_view state_type, slot;
    bool has_slot;
} line;

static bool parse(ck_view text, line *out) {
    ck_view id, version;
    if (!cut(&text, &id) || !cut(&text, &out->state_type)) return false;
    out->has_slot = cut(&text, &version);
    out->slot = text;
    return number(id, UINT64_MAX, &out->op_id) && number(version, UINT32_MAX, &out->version) && out->version > 0 &&
           is_name(out->state_type) && is_name(out->slot) && out->has_slot == (out->slot.n > 0) &&
           !(out->slot.n && memchr(out->slot.p, '|', out->slot.n));
}

static ck_status take_line(ck_version_map *m, ck_view text, uint32_t number_of_line, ck_error *err) {
    char type[CK_NAME_BYTES_MAX + 1], slot[CK_NAME_BYTES_MAX + 1];
    line l;
    if (!parse(text, &l))
        return ck_fail(err, CK_CORRUPT, "clink.state_versions: line %u does not parse", number_of_line);
    memcpy(type, l.state_type.p, l.state_type.n);
    if (l.slot.n) memcpy(slot, l.slot.p, l.slot.n);
    type[l.state_type.n] = slot[l.slot.n] = 0;
    ck_state_version v = {l.op_id, type, (uint32_t)l.version, l.has_slot ? slot : NULL};
    const ck_state_version *was = find(m, v.op_id, v.state_type, v.slot);
    if (was && was->version != v.version)
        return ck_fail(err, CK_CORRUPT, "clink.state_versions: line %u says version %u where one before says %u",
                       number_of_line, v.version, was->version);
    return ck_version_map_stamp(m, &v) == CK_OK ? CK_OK : ck_nomem(err, m->entries.arena->mem, sizeof v);
}

ck_status ck_version_map_decode(ck_version_map *m, ck_view lines, ck_error *err) {
    for (uint32_t i = 1; lines.n; i++) {
        const char *end = memchr(lines.p, '\n', lines.n);
        size_t n = end ? (size_t)(end - lines.p) : lines.n;
        CK_TRY(take_line(m, (ck_view){lines.p, n}, i, err));
        if (end && n + 1 == lines.n)
            return ck_fail(err, CK_CORRUPT, "clink.state_versions: line %u does not parse", i + 1);
        lines = (ck_view){lines.p + n + (end != NULL), lines.n - n - (end != NULL)};
    }
    return CK_OK;
}
