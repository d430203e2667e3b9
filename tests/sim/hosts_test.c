/* One job over several processes: the test starts itself again as task hosts, which find each other over loopback. */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "os/socket.h"

enum { HOSTS_MAX = 4 };

typedef struct hosts {
    uint32_t count;
    char addresses[HOSTS_MAX][100];
    const char *address_list[HOSTS_MAX];
} hosts;

static void find_addresses(fixture *f, hosts *h, uint32_t count, bool tcp) {
    h->count = count;
    for (uint32_t i = 0; i < count; i++) {
        h->address_list[i] = h->addresses[i];
        snprintf(h->addresses[i], sizeof h->addresses[i], "unix:%s/s%d-%u", ck_test_dir(&f->t), f->rounds, i);
        if (!tcp) continue;
        ck_socket *s;
        uint16_t port;
        assert_int_equal(ck_socket_listen(&f->t.proc, "127.0.0.1:0", &s, &port, NULL), CK_OK);
        snprintf(h->addresses[i], sizeof h->addresses[i], "127.0.0.1:%u", port);
        ck_socket_close(s);
    }
    f->rounds++;
}

/* ---- the job, the same in every process ---- */

/* which: pipelines a b c; f final, e endless, g endless and finding more splits, x everything in process 1, t over TCP,
 * 7 and 1 rows a batch */
static void choose_plan(fixture *f, const char *which, const char *out, const char *checkpoints) {
    snprintf(f->out, sizeof f->out, "%s", out);
    snprintf(f->checkpoints, sizeof f->checkpoints, "%s", checkpoints);
    f->plan = (plan){.out = f->out,
                     .batch_rows = 4096,
                     .a_splits = 5,
                     .a_rows = 30000,
                     .a_keys = 40,
                     .b_splits = 4,
                     .b_rows = 20000,
                     .c_splits = 2,
                     .c_limit = 5000};
    plan *p = &f->plan;
    p->with_counts = strchr(which, 'a'), p->with_rows = strchr(which, 'b'), p->with_limit = strchr(which, 'c');
    p->final = strchr(which, 'f');
    if (strchr(which, '7')) p->batch_rows = 7, p->a_rows = 2000, p->b_rows = 1000;
    if (strchr(which, '1')) p->batch_rows = 1, p->a_rows = 500, p->b_rows = 300;
    if (strchr(which, 'e')) p->with_limit = true, p->c_limit = 2000000000;
    if (!strchr(which, 'g')) return;
    p->with_limit = true, p->c_limit = 2000000000;
    p->c_more = ck_arena_printf(&f->arena, "%s.more", out);
    assert_non_null(p->c_more);
}

static uint32_t all_in_process_1(void *arg, uint64_t vertex, uint32_t subtask) {
    (void)arg, (void)vertex, (void)subtask;
    return 1;
}

typedef struct host_args {
    const char *which, *secret;
    uint32_t process, parallelism;
    int64_t connect_us;
} host_args;

static ck_status start_host(fixture *f, const hosts *h, const host_args *a, ck_job **out, ck_error *err) {
    ck_job_config cfg = {.placement = {.process = a->process,
                                       .process_count = h->count,
                                       .addresses = h->address_list,
                                       .secret = a->secret,
                                       .connect_timeout_us = a->connect_us}};
    if (strchr(a->which, 'x')) cfg.placement.process_of = all_in_process_1;
    cfg.checkpoint = (ck_checkpoint_config){.dir = f->checkpoints,
                                            .interval_us = 3000,
                                            .timeout_us = 60000000,
                                            .final_timeout_us = 60000000,
                                            .retained = 2};
    if (!f->checkpoints[0]) cfg.checkpoint.dir = NULL;
    return start(f, a->parallelism, &cfg, out, err);
}

enum { EXIT_BROKEN = 3, EXIT_CANCELLED = 4 };

/* argv: --host PROCESS PARALLELISM PLAN OUT CHECKPOINTS SECRET COUNT ADDRESS... */
static int host_main(char **argv) {
    void *state;
    hosts h = {.count = (uint32_t)atoi(argv[8])};
    for (uint32_t i = 0; i < h.count; i++) h.address_list[i] = argv[9 + i];
    if (setup(&state) != 0) return 9;
    fixture *f = state;
    choose_plan(f, argv[4], argv[5], argv[6]);
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    host_args a = {argv[4], argv[7], (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), 20000000};
    ck_status s = start_host(f, &h, &a, &j, &err);
    if (s == CK_OK) {
        s = ck_job_wait(j, 300000000, &err);
        ck_job_free(j);
    }
    teardown(&state);
    if (s != CK_OK) fprintf(stderr, "host %s: %s\n", argv[2], err.msg);
    return s == CK_OK ? 0 : s == CK_CANCELLED ? EXIT_CANCELLED : EXIT_BROKEN;
}

static pid_t spawn_host(const fixture *f, const hosts *h, const host_args *a) {
    char p[16], n[16], count[16];
    const char *argv[9 + HOSTS_MAX + 1] = {
        "hosts", "--host", p, n, a->which, f->out, f->checkpoints, a->secret ? a->secret : "", count};
    snprintf(p, sizeof p, "%u", a->process);
    snprintf(n, sizeof n, "%u", a->parallelism);
    snprintf(count, sizeof count, "%u", h->count);
    for (uint32_t i = 0; i < h->count; i++) argv[9 + i] = h->address_list[i];
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, (char **)(uintptr_t)argv, environ), 0);
    return pid;
}

static int reap(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* One run of the job: this process leads, the others are spawned. */
typedef struct run {
    hosts h;
    pid_t pids[HOSTS_MAX];
    ck_job *job;
} run;

static ck_status begin(fixture *f, run *r, uint32_t count, uint32_t parallelism, const char *which, ck_error *err) {
    host_args a = {which, "s3cret", 0, parallelism, 20000000};
    find_addresses(f, &r->h, count, strchr(which, 't'));
    for (uint32_t p = 1; p < count; p++) {
        a.process = p;
        r->pids[p] = spawn_host(f, &r->h, &a);
    }
    a.process = 0;
    r->job = NULL;
    *err = CK_ERROR_INIT;
    return start_host(f, &r->h, &a, &r->job, err);
}

static void begin_well(fixture *f, run *r, uint32_t count, uint32_t parallelism, const char *which) {
    for (int attempt = 0;; attempt++) {
        ck_error err;
        ck_status s = begin(f, r, count, parallelism, which, &err);
        if (s == CK_OK) return;
        if (s != CK_EXISTS || attempt == 20) fail_msg("%s", err.msg);
        for (uint32_t p = 1; p < count; p++) { /* somebody took the port that was free a moment ago */
            kill(r->pids[p], SIGKILL);
            (void)reap(r->pids[p]);
        }
    }
}

static void reap_all(run *r, int expected) {
    for (uint32_t p = 1; p < r->h.count; p++) assert_int_equal(reap(r->pids[p]), expected);
}

static void end_well(run *r) {
    finish(r->job);
    ck_job_free(r->job);
    reap_all(r, 0);
}

/* A plan with directories of its own. */
static void new_round(fixture *f, const char *which, bool checkpoints) {
    char out[128], dir[128] = "";
    snprintf(out, sizeof out, "%s/out%d", ck_test_dir(&f->t), f->rounds);
    if (checkpoints) snprintf(dir, sizeof dir, "%s/checkpoints%d", ck_test_dir(&f->t), f->rounds);
    f->rounds++;
    choose_plan(f, which, out, dir);
}

/* ---- tests ---- */

static void one_job_over_several_processes(void **state) {
    fixture *f = *state;
    static const struct {
        const char *plan;
        uint32_t processes;
    } runs[] = {{"ab", 2}, {"abcf", 3}, {"abc7", 3}, {"abc7", 2}, {"ab1", 2},
                {"c", 3},  {"abx", 2},  {"abt", 2}}; /* TCP with two: the middle one of three listens too, on a port
                                                        that may be gone by then */
    for (size_t i = 0; i < CK_ARRAY_COUNT(runs); i++) {
        run r;
        new_round(f, runs[i].plan, false);
        begin_well(f, &r, runs[i].processes, 4, runs[i].plan);
        end_well(&r);
        check_output(f);
    }
}

static void checkpoints_cross_the_edges(void **state) {
    fixture *f = *state;
    static const char *const plans[] = {"ab", "abcf", "abc7", "abx"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(plans); i++) {
        run r;
        new_round(f, plans[i], true);
        begin_well(f, &r, 2 + i % 2, 3, plans[i]);
        end_well(&r);
        check_output(f);
        /* once more: nothing is left to do, and all know it */
        begin_well(f, &r, 2, 3, plans[i]);
        assert_true(ck_job_was_finished(r.job));
        end_well(&r);
        check_output(f);
    }
}

static void a_savepoint_is_of_all_processes(void **state) {
    fixture *f = *state;
    run r;
    uint64_t first = 0, second = 0;
    ck_error err = CK_ERROR_INIT;
    new_round(f, "abe", true);
    begin_well(f, &r, 2, 3, "abe");
    if (ck_job_savepoint(r.job, 60000000, &first, &err) != CK_OK) fail_msg("%s", err.msg);
    if (ck_job_savepoint(r.job, 60000000, &second, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_true(second > first && first > 0);
    ck_job_free(r.job);
    reap_all(&r, EXIT_CANCELLED);
}

/* Hosts are killed at any moment, or the leader stops; the next life has other processes and another parallelism. */
static void killed_jobs_go_on(void **state) {
    fixture *f = *state;
    static const char *const plans[] = {"ab", "ab7", "abf"};
    for (size_t i = 0; i < CK_ARRAY_COUNT(plans); i++) {
        new_round(f, plans[i], true);
        for (uint32_t life = 0;; life++) {
            run r;
            ck_error err;
            uint32_t count = 1 + (life + (uint32_t)i + 1) % 3;
            begin_well(f, &r, count, 1 + (life * 3 + (uint32_t)i) % 4, plans[i]);
            int64_t us = life < 4 ? 2000 + (int64_t)ck_random_below(&f->t.proc, 25000) : 60000000;
            ck_status s = ck_job_wait(r.job, us, &err);
            if (s == CK_AGAIN && count > 1 && life % 2 == 0) {
                kill(r.pids[count - 1], SIGKILL);
                s = ck_job_wait(r.job, 60000000, &err); /* it may still have finished in time */
                if (s != CK_OK) assert_non_null(strstr(err.msg, "process "));
            }
            ck_job_free(r.job);
            for (uint32_t p = 1; p < count; p++) (void)reap(r.pids[p]);
            if (s == CK_OK) break;
            assert_true(life < 4);
        }
        check_output(f);
    }
}

/* ---- an input without end ---- */

static void one_more_split(fixture *f) {
    FILE *more = fopen(f->plan.c_more, "a");
    assert_non_null(more);
    fputc('x', more);
    assert_int_equal(fclose(more), 0);
}

/* Until rows of so many splits are committed. */
static void savepoints_until(fixture *f, run *r, uint32_t splits) {
    ck_error err = CK_ERROR_INIT;
    uint32_t seen = 0;
    for (int i = 0; seen < splits; i++) {
        uint64_t checkpoint;
        if (i == 2000) fail_msg("rows of %u splits, not of %u", seen, splits);
        if (ck_job_savepoint(r->job, 60000000, &checkpoint, &err) != CK_OK) fail_msg("%s", err.msg);
        if (output_splits_of_c(&f->t.proc, &f->plan, &seen, &err) != CK_OK) fail_msg("%s", err.msg);
    }
    assert_int_equal(seen, splits); /* no split under a second name */
}

static void killed_endless_jobs_go_on_with_splits_found_later(void **state) {
    fixture *f = *state;
    static const char *const plans[] = {"g7", "g7x"}; /* x: the leader has no subtask of the source */
    for (size_t i = 0; i < CK_ARRAY_COUNT(plans); i++) {
        new_round(f, plans[i], true);
        for (uint32_t life = 0; life < 5; life++) {
            run r;
            ck_error err = CK_ERROR_INIT;
            uint64_t checkpoint;
            uint32_t count = 1 + (life + 1) % 3, splits = f->plan.c_splits + life + 1;
            one_more_split(f);
            begin_well(f, &r, count, 1 + (life * 3 + 1) % 4, plans[i]);
            savepoints_until(f, &r, splits);
            if (life == 4) {
                if (ck_job_stop(r.job, 60000000, &checkpoint, &err) != CK_OK) fail_msg("%s", err.msg);
                end_well(&r);
                break;
            }
            assert_int_equal(ck_job_wait(r.job, (int64_t)ck_random_below(&f->t.proc, 20000), &err), CK_AGAIN);
            if (count > 1) {
                kill(r.pids[count - 1], SIGKILL);
                assert_int_not_equal(ck_job_wait(r.job, 60000000, &err), CK_OK);
                assert_non_null(strstr(err.msg, "process "));
            }
            ck_job_free(r.job);
            for (uint32_t p = 1; p < count; p++) (void)reap(r.pids[p]);
        }
        check_output(f);
    }
}

/* It may come so late that the checkpoint it would look for is gone: here the whole directory is, for it. */
static void a_host_that_runs_nothing_needs_no_checkpoint(void **state) {
    fixture *f = *state;
    char real[sizeof f->checkpoints];
    run r;
    new_round(f, "abx", true);
    begin_well(f, &r, 2, 3, "abx");
    end_well(&r);
    memcpy(real, f->checkpoints, sizeof real);
    find_addresses(f, &r.h, 3, false);
    for (uint32_t p = 1; p < 3; p++) {
        host_args a = {"abx", "s3cret", p, 3, 20000000};
        if (p == 2) snprintf(f->checkpoints, sizeof f->checkpoints, "%s/nothing", ck_test_dir(&f->t));
        r.pids[p] = spawn_host(f, &r.h, &a);
        memcpy(f->checkpoints, real, sizeof real);
    }
    host_args leader = {"abx", "s3cret", 0, 3, 20000000};
    ck_error err = CK_ERROR_INIT;
    if (start_host(f, &r.h, &leader, &r.job, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_true(ck_job_was_finished(r.job));
    end_well(&r);
    check_output(f);
}

static void a_killed_host_fails_the_others(void **state) {
    fixture *f = *state;
    run r;
    ck_error err = CK_ERROR_INIT;
    new_round(f, "ae", false);
    begin_well(f, &r, 3, 3, "ae");
    assert_int_equal(ck_job_wait(r.job, 100000, &err), CK_AGAIN);
    kill(r.pids[1], SIGKILL);
    ck_status s = ck_job_wait(r.job, 60000000, &err);
    assert_true(s != CK_OK && s != CK_AGAIN);
    assert_non_null(strstr(err.msg, "process 1"));
    ck_job_free(r.job);
    assert_int_equal(reap(r.pids[1]), 128 + SIGKILL);
    assert_int_equal(reap(r.pids[2]), EXIT_BROKEN);
}

static void a_failure_elsewhere_comes_with_its_reason(void **state) {
    fixture *f = *state;
    run r;
    ck_error err = CK_ERROR_INIT;
    new_round(f, "bx", false);
    choose_plan(f, "bx", "/dev/null/nothing", "");
    begin_well(f, &r, 2, 2, "bx");
    ck_status s = ck_job_wait(r.job, 60000000, &err);
    assert_true(s != CK_OK && s != CK_AGAIN);
    if (!strstr(err.msg, "process 1: ")) fail_msg("%s", err.msg);
    assert_non_null(strstr(err.msg, "/dev/null"));
    ck_job_free(r.job);
    reap_all(&r, EXIT_BROKEN);
}

static void a_cancel_ends_all(void **state) {
    fixture *f = *state;
    run r;
    ck_error err = CK_ERROR_INIT;
    new_round(f, "be", false);
    begin_well(f, &r, 3, 3, "be");
    assert_int_equal(ck_job_wait(r.job, 50000, &err), CK_AGAIN);
    ck_job_cancel(r.job);
    assert_int_equal(ck_job_wait(r.job, 20000000, &err), CK_CANCELLED);
    ck_job_free(r.job);
    reap_all(&r, EXIT_CANCELLED);
}

/* Who knows another secret, or runs another plan. */
static void strangers_stay_outside(void **state) {
    fixture *f = *state;
    for (int other_plan = 0; other_plan < 2; other_plan++) {
        hosts h;
        ck_job *j;
        ck_error err = CK_ERROR_INIT;
        find_addresses(f, &h, 2, false);
        new_round(f, "b", false);
        host_args stranger = {other_plan ? "bc" : "b", other_plan ? "right" : "wrong", 1, 2, 0};
        pid_t pid = spawn_host(f, &h, &stranger);
        host_args ours = {"b", "right", 0, 2, other_plan ? 1500000 : 300000};
        assert_int_equal(start_host(f, &h, &ours, &j, &err), CK_IO); /* nobody comes who belongs here */
        assert_non_null(strstr(err.msg, "0 of 1"));
        if (!other_plan) kill(pid, SIGKILL); /* it is told nothing and tries on */
        assert_int_equal(reap(pid), other_plan ? EXIT_BROKEN : 128 + SIGKILL);
    }
}

static void nobody_there_is_an_error(void **state) {
    fixture *f = *state;
    hosts h;
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    find_addresses(f, &h, 3, false);
    new_round(f, "b", false);
    host_args a = {"b", "", 2, 2, 200000};
    assert_int_equal(start_host(f, &h, &a, &j, &err), CK_IO);
    assert_true(err.retriable);
    a.process = 3;
    assert_int_equal(start_host(f, &h, &a, &j, &err), CK_INVALID);
}

static void every_allocation_before_the_start_may_fail(void **state) {
    fixture *f = *state;
    hosts h;
    find_addresses(f, &h, 2, false);
    new_round(f, "abc7", true);
    for (uint32_t process = 0; process < 2; process++)
        for (uint64_t n = 1;; n += 1 + n / 32) {
            ck_job *j = NULL;
            ck_error err = CK_ERROR_INIT;
            ck_graph *g;
            ck_job_config cfg = {.name = "hosts", .parallelism = 2, .batch_rows = 7};
            cfg.placement = (ck_job_placement){
                .process = process, .process_count = 2, .addresses = h.address_list, .connect_timeout_us = 1};
            cfg.checkpoint = (ck_checkpoint_config){.dir = f->checkpoints, .timeout_us = 1000, .retained = 1};
            assert_int_equal(plan_graph(&f->plan, &f->arena, &g, NULL), CK_OK);
            ck_tracked_heap_fail_nth(f->t.heap, n);
            ck_status s = ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err);
            bool fired = ck_tracked_heap_fired(f->t.heap);
            ck_tracked_heap_fail_nth(f->t.heap, 0);
            if (s == CK_IO && !fired) break; /* it got as far as finding nobody there */
            if (s != CK_NOMEM && s != CK_IO) fail_msg("allocation %llu: %s", (unsigned long long)n, err.msg);
        }
}

int main(int argc, char **argv) {
    if (argc > 9 && strcmp(argv[1], "--host") == 0) return host_main(argv);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(one_job_over_several_processes),
        T(checkpoints_cross_the_edges),
        T(a_savepoint_is_of_all_processes),
        T(killed_jobs_go_on),
        T(killed_endless_jobs_go_on_with_splits_found_later),
        T(a_host_that_runs_nothing_needs_no_checkpoint),
        T(a_killed_host_fails_the_others),
        T(a_failure_elsewhere_comes_with_its_reason),
        T(a_cancel_ends_all),
        T(strangers_stay_outside),
        T(nobody_there_is_an_error),
        T(every_allocation_before_the_start_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
