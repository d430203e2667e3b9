/* What the regions of a job are together: to its user it is one job. It has finished when all of them have; one that
 * fails for good ends the others; one that waits for somebody to look at a record leaves them running. */
#include "cluster/coordinator/coordinator_int.h"

bool regions_are_over(const job *j) {
    for (const job *r = j->lead; r; r = r->next_region)
        if (!job_is_over(r)) return false;
    return true;
}

static bool is_failing(const job *j) { return j->state == JOB_FAILED || (!job_is_over(j) && j->goal == GOAL_FAIL); }

static bool is_ending(const job *j) {
    return is_failing(j) || j->state == JOB_CANCELLED || (!job_is_over(j) && j->goal == GOAL_CANCEL);
}

bool regions_left_behind(const job *j) {
    bool any = false;
    for (const job *r = j->lead; r; r = r->next_region) any |= is_ending(r);
    return any && !is_ending(j) && !job_is_over(j);
}

/* How much one says of the whole: what has failed before what is suspended, that before what is under way, and what
 * runs before what has finished. */
static int weight(const job *j) {
    static const int weights[JOB_STATE_COUNT] = {
        [JOB_FINISHED] = 0, [JOB_RUNNING] = 1,   [JOB_DEPLOYING] = 2, [JOB_RECOVERING] = 3, [JOB_BACKING_OFF] = 4,
        [JOB_DRAINING] = 5, [JOB_SUSPENDED] = 6, [JOB_CANCELLED] = 7, [JOB_FAILED] = 8};
    if (is_failing(j)) return weights[JOB_FAILED];
    return is_ending(j) ? weights[JOB_CANCELLED] : weights[j->state];
}

static const job *weightiest(const job *j) {
    const job *most = j->lead;
    for (const job *r = most; r; r = r->next_region)
        if (weight(r) > weight(most)) most = r;
    return most;
}

bool regions_are_settled(const job *j) { return regions_are_over(j) || weightiest(j)->state == JOB_SUSPENDED; }

/* An end that is not yet that of all is still under way. */
const char *regions_state_text(const job *j) {
    const job *most = weightiest(j);
    if (!job_is_over(most) || regions_are_over(j)) return job_state_text(most);
    return most->state == JOB_FAILED ? "failing" : "cancelling";
}

const char *regions_error(const job *j) {
    const job *most = weightiest(j);
    for (const job *r = j->lead; r && !most->error[0]; r = r->next_region)
        if (r->error[0]) most = r;
    return most->error;
}

void regions_follow(ck_coordinator *c, job *j) {
    for (job *r = j->lead; r; r = r->next_region)
        if (r != j && !job_is_over(r)) restart_drain(c, r, GOAL_CANCEL, false);
}

uint64_t regions_checkpoint(const job *j) {
    uint64_t greatest = 0;
    for (const job *r = j->lead; r; r = r->next_region)
        if (r->latest_completed_checkpoint_id > greatest) greatest = r->latest_completed_checkpoint_id;
    return greatest;
}
