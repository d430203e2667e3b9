/* The migrations a build knows: single steps of a state type from one version to a later one, schemas of versions,
 * names that types and slots had before. Filled at start (built-ins, plugins), read-only afterwards.
 *
 * A step is pure: the value's bytes in, the new value's bytes out; keys and times to live are not its business. What
 * the bytes are: the packed value of the slot (data/row.h) as the version's operator wrote it; of an opaque slot
 * (ck_slot_is_opaque) the bytes themselves.
 *
 * The way from one version to another is the shortest chain of steps. Where steps alone lead there, they are taken;
 * else also the changes between versions that both have a schema and are additive (schema_additive.h). */
#ifndef CK_STATE_STATE_MIGRATIONS_H
#define CK_STATE_STATE_MIGRATIONS_H

#include "base/map.h"
#include "state/schema_additive.h"

enum { CK_MIGRATIONS_MAX = 4096 }; /* steps, schemas and renames of a build */

/* Appends the new value to out (empty when called). Threads: several at once. Errors: any status but CK_OK, with a
 * sentence; nothing is restored then and the job does not start. */
typedef ck_status (*ck_migrate_fn)(void *user, ck_view value, ck_bytes *out, ck_error *err);

typedef struct ck_migration_step {
    uint32_t from, to;
    ck_migrate_fn fn;            /* NULL: additive */
    void *user;                  /* borrowed */
    const ck_additive *additive; /* NULL: fn */
} ck_migration_step;

typedef struct ck_migration_chain { /* in order; none: nothing to do */
    const ck_migration_step *steps;
    uint32_t count;
} ck_migration_chain;

/* NULL stands for a build that knows none, wherever a registry is asked. */
typedef struct ck_state_migrations {
    ck_arena *arena;
    ck_map types;      /* by present name */
    ck_map type_names; /* old name -> new name */
    struct slot_rename *slot_names;
    uint32_t count; /* of all that was registered */
} ck_state_migrations;

void ck_state_migrations_init(ck_state_migrations *m, ck_arena *a);

/* `to` is later than `from`. CK_INVALID: versions or names that are none. CK_EXISTS: this step is there already.
 * CK_FULL. */
CK_NODISCARD ck_status ck_state_migrations_step(ck_state_migrations *m, const char *state_type, uint32_t from,
                                                uint32_t to, ck_migrate_fn fn, void *user, ck_error *err);
/* What a value of this version consists of. Names are copied, types borrowed. CK_EXISTS: it has another one already. */
CK_NODISCARD ck_status ck_state_migrations_schema(ck_state_migrations *m, const char *state_type, uint32_t version,
                                                  ck_value_fields fields, ck_error *err);
/* RENAMED FROM: `name` was called `from`. Its steps and schemas may be registered under either. CK_EXISTS: it was
 * renamed otherwise; CK_INVALID: the renames go in a circle. */
CK_NODISCARD ck_status ck_state_migrations_type_renamed(ck_state_migrations *m, const char *name, const char *from,
                                                        ck_error *err);
/* The slot of this type was called `from`. */
CK_NODISCARD ck_status ck_state_migrations_slot_renamed(ck_state_migrations *m, const char *state_type,
                                                        const char *slot, const char *from, ck_error *err);

/* The present name of a type; itself where it was never renamed. */
const char *ck_state_type_now(const ck_state_migrations *m, const char *state_type);
/* The name before this one; NULL: it had none. */
const char *ck_state_slot_before(const ck_state_migrations *m, const char *state_type, const char *slot);
/* The registered schema of a version; NULL: none. */
const ck_value_fields *ck_state_schema_of(const ck_state_migrations *m, const char *state_type, uint32_t version);

/* CK_NOTFOUND: nothing leads there (no error text). In the arena. */
CK_NODISCARD ck_status ck_state_migrations_plan(const ck_state_migrations *m, ck_arena *a, const char *state_type,
                                                uint32_t from, uint32_t to, ck_migration_chain *out);
/* One value through the chain. *out lies in one of the two scratch buffers, or is `value`. Errors name the step. */
CK_NODISCARD ck_status ck_migration_run(const ck_migration_chain *c, const char *state_type, ck_view value,
                                        ck_bytes scratch[2], ck_view *out, ck_error *err);

#endif
