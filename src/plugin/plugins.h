/* The plugins of a process: shared libraries that brought functions, operators and jobs (clink/plugin.h).
 *
 * A file is looked at before it is loaded (note.h), loaded once in a child that is thrown away, and only then here:
 * RTLD_NOW | RTLD_LOCAL, and never unloaded, since what it gave is used until the process ends. */
#ifndef CK_PLUGIN_PLUGINS_H
#define CK_PLUGIN_PLUGINS_H

#include "base/proc.h"
#include "expr/library.h"
#include "plugin/registry.h"

typedef struct ck_plugin {
    const char *path;
    const clink_plugin *table; /* a copy of this build's size */
    struct ck_plugin *next;
} ck_plugin;

typedef struct ck_plugin_job {
    const clink_job_description *description; /* a copy of this build's size */
    const char *plugin;
    struct ck_plugin_job *next;
} ck_plugin_job;

typedef struct ck_plugins {
    ck_arena *arena;
    ck_registry *registry; /* where migrations of state go */
    ck_library library;
    ck_plugin *first, *last; /* as loaded */
    ck_plugin_job *jobs, *last_job;
} ck_plugins;

void ck_plugins_init(ck_plugins *p, ck_arena *arena, ck_registry *registry);
/* Loads one and enters what it has. Blocking. The sentence names the file; both versions where they differ. Several
 * files of one plugin's name are refused; the same file twice is one. */
CK_NODISCARD ck_status ck_plugins_load(ck_plugins *p, ck_proc *proc, const char *path, ck_error *err);
/* Enters the table of a plugin that is linked into the program. from: for messages. */
CK_NODISCARD ck_status ck_plugins_add(ck_plugins *p, const char *from, const clink_plugin *table, ck_error *err);
/* "": the first. NULL: there is none. */
const ck_plugin_job *ck_plugins_job(const ck_plugins *p, const char *name);

#endif
