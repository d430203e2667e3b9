#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS_MAX = 3000000, PATIENCE_TURNS = 300000 };

const char *const trouble_names[TROUBLE_COUNT] = {"none",       "crash",  "crash point",     "error point",
                                                  "disk error", "cancel", "crash in a call", "no memory"};
const char *const end_names[] = {"finished", "was finished", "crashed", "failed", "cancelled", "wrong"};

/* ---- trouble ---- */

trouble_plan trouble_draw(dice *d, trouble kind, int point, uint32_t points) {
    trouble_plan t = {.kind = kind};
    switch (kind) {
    case TROUBLE_CRASH_POINT:
    case TROUBLE_ERROR_POINT:
        t.point = (ck_fault_point)(point >= 0 ? (uint32_t)point : dice_below(d, points));
        if (point < 0 && dice_below(d, 6) == 0) /* few lives have anything to load */
            t.point = dice_below(d, 2) ? CK_FAULT_RESTORE_BEFORE_LOAD : CK_FAULT_RESTORE_AFTER_LOAD;
        t.at = dice_spread(d, 5);
        if (t.point >= CK_FAULT_RESTORE_BEFORE_LOAD && t.point <= CK_FAULT_RESTORE_AFTER_COMMIT) t.at = 1; /* a life */
        break;
    case TROUBLE_DISK:
        t.at = dice_spread(d, 8);
        t.errnum = dice_below(d, 2) ? 5 : 28; /* EIO, ENOSPC */
        t.lasting = dice_below(d, 4) == 0;
        break;
    case TROUBLE_CRASH:
    case TROUBLE_CANCEL: t.at = dice_spread(d, 12); break;
    case TROUBLE_CRASH_CALL:
        t.at = dice_spread(d, 9);
        t.death = (gate_death)dice_below(d, 3);
        break;
    case TROUBLE_MEMORY: t.at = dice_spread(d, 14); break;
    case TROUBLE_NONE:
    case TROUBLE_COUNT: break;
    }
    return t;
}

ck_changelog_config changelog_draw(dice *d, int point) {
    bool beside = point == CK_FAULT_MATERIALISE_BEFORE || point == CK_FAULT_MATERIALISE_AFTER;
    ck_changelog_config c = {dice_below(d, 2) ? (ck_materialise)dice_below(d, 3) : CK_MATERIALISE_NONE,
                             1 + dice_below(d, 4)};
    return beside ? (ck_changelog_config){CK_MATERIALISE_EXTERNAL, 1} : c;
}

void trouble_print(const trouble_plan *t) {
    printf("%s", trouble_names[t->kind]);
    if (t->at) printf(" at %llu", (unsigned long long)t->at);
    if (t->kind == TROUBLE_CRASH_POINT || t->kind == TROUBLE_ERROR_POINT) printf(" of %s", ck_fault_name(t->point));
    if (t->kind == TROUBLE_DISK) printf(" (errno %d%s)", t->errnum, t->lasting ? ", lasting" : "");
    if (t->kind == TROUBLE_CRASH_CALL) printf(" (%s)", (const char *[]){"before it", "in it", "after it"}[t->death]);
    printf("\n");
}

static void arm(process *p, const trouble_plan *t) {
    p->trouble = t;
    if (t->kind == TROUBLE_CRASH_POINT) ck_faults_arm(&p->faults, t->point, t->at, CK_FAULT_CRASH);
    if (t->kind == TROUBLE_ERROR_POINT) ck_faults_arm(&p->faults, t->point, t->at, CK_FAULT_ERROR);
    if (t->kind == TROUBLE_DISK) p->gate.fail_at = t->at, p->gate.errnum = t->errnum, p->gate.lasting = t->lasting;
    if (t->kind == TROUBLE_MEMORY) ck_tracked_heap_fail_nth(p->heap, t->at);
    if (t->kind == TROUBLE_CRASH_CALL) p->gate.crash_at = t->at, p->gate.death = t->death;
}

/* ---- a process ---- */

static void log_line(void *arg, ck_log_level level, const char *line) {
    process *p = arg;
    (void)level;
    const char *at = strstr(line, ": checkpoint ");
    if (at && strstr(at, " was given up: ")) {
        p->given_up++;
        if (!p->first_given_up) p->first_given_up = strtoull(at + strlen(": checkpoint "), NULL, 10);
        p->file_gone |= strstr(at, "names a file that cannot be seen") != NULL;
    }
    if (p->verbose) printf("    %s\n", line);
}

void process_init(process *p, ck_simfs *disk, ck_manual_clock *clock, dice *d, const trouble_plan *t, bool verbose) {
    memset(p, 0, sizeof *p);
    ck_status s = ck_tracked_heap_new(&p->heap);
    CK_ASSERT(s == CK_OK);
    ck_faults_init(&p->faults);
    ck_seeded_random_init(&p->random, dice_draw(d));
    p->gate = (gate){.disk = disk, .faults = &p->faults};
    p->proc.heap = ck_tracked_heap_base(p->heap);
    ck_budget_init(&p->proc.budget, p->proc.heap, 0);
    p->proc.clock = &clock->base;
    p->proc.random = &p->random.base;
    p->proc.fs = gate_fs(&p->gate);
    p->proc.faults = &p->faults;
    p->verbose = verbose;
    p->log = (ck_log){CK_LOG_DEBUG, p, log_line};
    p->proc.log = &p->log;
    ck_arena_init(&p->arena, ck_proc_mem(&p->proc, CK_MEM_PLAN), 64 << 20);
    ck_registry_init(&p->registry, &p->arena);
    arm(p, t);
}

bool process_crashed(const process *p) { return atomic_load(&p->faults.crashed); }

static void say(process *p, const char *what, const ck_error *err) {
    snprintf(p->why, sizeof p->why, "%s: %s%s%s", what, err ? err->msg : "", err && err->place.object[0] ? " at " : "",
             err ? err->place.object : "");
}

life_end process_wrong(process *p, const char *what, const ck_error *err) {
    say(p, what, err);
    return END_WRONG;
}

/* Whether the trouble may make the job fail. A disk's error must be told, and that memory was missing (a fault point
 * has nothing to tell). */
static life_end failed(process *p, const char *what, const ck_error *err) {
    trouble kind = p->trouble->kind;
    bool memory = kind == TROUBLE_MEMORY && ck_tracked_heap_fired(p->heap);
    bool expected = kind == TROUBLE_ERROR_POINT || kind == TROUBLE_DISK || memory ||
                    (p->impatient && strstr(err->msg, "the final checkpoint was not complete"));
    if (!expected) return process_wrong(p, what, err);
    if (!err->msg[0] && kind == TROUBLE_DISK) return process_wrong(p, "it failed without a word", err);
    if (memory && !strstr(err->msg, "memory")) return process_wrong(p, "memory was missing, and this is said", err);
    say(p, what, err);
    return END_FAILED;
}

life_end process_not_started(process *p, ck_status s, const ck_error *err) {
    CK_ASSERT(s != CK_OK);
    return process_crashed(p) ? END_CRASHED : failed(p, "the job did not start", err);
}

/* A followed job tries its next checkpoint for as long as it lives; somebody stops it. */
static bool broken_for_ever(const trouble_plan *t) { return t->kind == TROUBLE_DISK && t->lasting; }

life_end process_run(process *p, process_watch watch, void *arg) {
    const trouble_plan *t = p->trouble;
    bool enough = false;
    ck_error err = CK_ERROR_INIT;
    for (uint64_t turn = 1; turn < TURNS_MAX; turn++) {
        if (turn == t->at && t->kind == TROUBLE_CRASH) atomic_store(&p->faults.crashed, true);
        if (turn == t->at && t->kind == TROUBLE_CANCEL) ck_job_cancel(p->job);
        if (turn == PATIENCE_TURNS && broken_for_ever(t)) ck_job_cancel(p->job);
        if (watch && !enough && watch(arg, turn)) {
            enough = true;
            ck_job_cancel(p->job);
        }
        bool more = ck_scheduler_turn(p->scheduler, 1);
        if (process_crashed(p)) return END_CRASHED;
        if (more) continue;
        ck_status s = ck_job_wait(p->job, 0, &err);
        if (s == CK_OK) return ck_job_was_finished(p->job) ? END_WAS_FINISHED : END_FINISHED;
        if (s == CK_AGAIN) return process_wrong(p, "nothing can happen any more and the job has not ended", NULL);
        if (s == CK_CANCELLED && turn >= PATIENCE_TURNS && broken_for_ever(t)) return END_FAILED;
        if (s == CK_CANCELLED && (t->kind == TROUBLE_CANCEL || enough)) return END_CANCELLED;
        return failed(p, "the job failed", &err);
    }
    return process_wrong(p, "the job does not end", NULL);
}

life_end process_end(process *p, life_end end) {
    if (end != END_CRASHED && p->file_gone)
        end = process_wrong(p, "a checkpoint was to name a file that retention had removed", NULL);
    if (end != END_CRASHED && end != END_WRONG) {
        ck_job_free(p->job);
        ck_scheduler_free(p->scheduler);
        ck_catalog_free(p->catalog);
        ck_arena_destroy(&p->arena);
        size_t blocks = ck_tracked_heap_live_blocks(p->heap);
        if (blocks) {
            snprintf(p->why, sizeof p->why, "%zu blocks of %zu bytes are left", blocks,
                     ck_tracked_heap_live_bytes(p->heap));
            end = END_WRONG;
        }
    }
    ck_tracked_heap_free(p->heap);
    return end;
}
