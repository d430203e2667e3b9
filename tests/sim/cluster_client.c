/* The client: submits jobs until each has been taken, looks at them, resumes those that are suspended, cancels or drops
 * some; and checks that what it is shown never goes back. */
#include <string.h>

#include "cluster_world.h"

enum { PATIENCE_MS = 10000 }; /* with one that does not answer; longer than any that wakes again */

static void say(world *w, const ck_message *m) {
    ck_frame *f;
    if (ck_message_frame(w->mem, m, &f, NULL) != CK_OK) world_broken(w, "no memory");
    net_send(w, w->client_conn, true, f);
}

static void ask(world *w, ck_command what, uint64_t id) {
    say(w, &(ck_message){.kind = CK_MSG_COMMAND, .as.command = {.fence.job = id, .command = what}});
}

static const char *const names[JOBS_MAX] = {"a", "b", "c", "d", "e"};

/* The first region has a link between processes, the others are smaller. */
ck_msg_submit client_job(uint32_t name, uint32_t regions) {
    static const uint32_t to_sink[] = {1}, to_second[] = {3}, to_third[] = {5};
    static const ck_msg_plugin plugins[] = {
        {{"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", CK_CLUSTER_HASH_CHARS}, 4096, {"p", 1}}};
    static const ck_msg_role roles[] = {
        {.name = {"source", 6}, .parallelism = 2, .peers = {to_sink, 1}},
        {.name = {"sink", 4}, .parallelism = 1},
        {.name = {"source2", 7}, .parallelism = 1, .peers = {to_second, 1}, .region = 1},
        {.name = {"sink2", 5}, .parallelism = 1, .region = 1},
        {.name = {"source3", 7}, .parallelism = 1, .peers = {to_third, 1}, .region = 2},
        {.name = {"sink3", 5}, .parallelism = 1, .region = 2}};
    return (ck_msg_submit){.name = ck_view_of(names[name]),
                           .spec = CK_VIEW("graph"),
                           .max_restarts_on_worker_loss = name == 1 ? 3 : CK_RESTART_AUTO,
                           .roles = {roles, 2 * regions},
                           .plugins = {plugins, name % 2}};
}

void client_step(world *w) {
    world_at(w, w->now_us + 500 * MS, EVENT_CLIENT, 0, 0, 0, NULL);
    if (w->client_conn && w->now_us - w->client_heard_us > PATIENCE_MS * MS) net_close(w, w->client_conn, false);
    if (!w->client_conn) net_dial_client(w);
    if (!w->client_conn) return;
    for (uint32_t i = 0; i < w->job_count; i++) {
        sim_job *j = &w->jobs[i];
        if (!j->submitted && !w->calm && dice_below(&w->dice, 2)) continue; /* a little later */
        if (!j->submitted) {
            ck_msg_submit m = client_job(i, j->regions);
            if (j->checkpointed) m.checkpoint_dir = CK_VIEW("/c");
            say(w, &(ck_message){.kind = CK_MSG_SUBMIT, .as.submit = m});
        } else if (!w->calm && !j->cancel_asked && dice_below(&w->dice, 200) == 0) {
            j->cancel_asked = true;
            j->dropped = dice_below(&w->dice, 2);
            ask(w, j->dropped ? CK_COMMAND_DROP : CK_COMMAND_CANCEL, j->id);
        }
    }
    ask(w, CK_COMMAND_LIST, 0);
}

static sim_job *named(world *w, ck_view name) {
    for (uint32_t i = 0; i < w->job_count; i++)
        if (ck_view_is(name, names[i])) return &w->jobs[i];
    world_broken(w, "a job that nobody submitted");
    return NULL;
}

static bool is(const ck_msg_job_info *i, const char *state) { return ck_view_is(i->state, state); }

static uint64_t newest_checkpoint(const sim_job *j) {
    uint64_t newest = 0;
    for (uint32_t r = 0; r < j->regions; r++)
        if (j->stores[r].checkpoint > newest) newest = j->stores[r].checkpoint;
    return newest;
}

static void look(world *w, const ck_msg_job_info *i) {
    sim_job *j = named(w, i->name);
    if (!j) return;
    bool ended = is(i, "finished") || is(i, "failed") || is(i, "cancelled");
    if (i->id == j->before && !ended) world_broken(w, "a job was taken twice");
    if (i->id < j->id) return; /* one that had ended before its reply came, and was submitted again */
    if (i->id > j->id && j->submitted && !j->over) j->before = j->id; /* the next list has to say that it has ended */
    if (i->id > j->id) j->attempt = j->shown_checkpoint = 0, j->over = false;
    j->submitted = true;
    j->id = i->id;
    if (i->restarts > i->restarts_max) world_broken(w, "more restarts than the budget has");
    if (i->attempt < j->attempt) world_broken(w, "attempts go back");
    if (i->checkpoint < j->shown_checkpoint) world_broken(w, "checkpoints go back");
    if (i->checkpoint > newest_checkpoint(j)) world_broken(w, "a checkpoint that there is not");
    if (j->over && !ended) world_broken(w, "an end that was none");
    j->attempt = i->attempt;
    j->shown_checkpoint = i->checkpoint;
    j->finished = is(i, "finished");
    j->failed = is(i, "failed");
    if (j->failed && !j->over) world_say(w, "FAILED %.*s", (int)i->error.n, i->error.p);
    j->over = ended;
    if (j->failed && i->error.n == 0) world_broken(w, "a job failed without a reason");
    if (is(i, "cancelled") && !j->cancel_asked) world_broken(w, "cancelled, and nobody asked for it");
    if (is(i, "suspended")) ask(w, CK_COMMAND_RESUME, i->id);
}

/* A list shows every job that was taken, but those that were dropped. */
void client_heard(world *w, const ck_message *m) {
    const ck_msg_reply *r = &m->as.reply;
    const ck_msg_job_info *infos = r->jobs.items;
    w->client_heard_us = w->now_us;
    for (uint32_t i = 0; i < r->jobs.count; i++) look(w, &infos[i]);
    if (r->fence.job != 0 || r->status != CK_OK) return;
    for (uint32_t k = 0; k < w->job_count; k++) {
        sim_job *j = &w->jobs[k];
        bool shown = false;
        for (uint32_t i = 0; i < r->jobs.count; i++) shown |= infos[i].id == j->id;
        if (j->submitted && !shown && !j->dropped) world_broken(w, "a job was forgotten");
        if (j->submitted && !shown) j->over = true;
    }
}
