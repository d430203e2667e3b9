/* One job over several processes: the test starts itself again as task hosts, which find each other over loopback. */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "os/socket.h"

enum { HOSTS_MAX = 4 };

typedef struct hosts {
    uint32_t count;
    char addresses[HOSTS_MAX][32];
    const char *address_list[HOSTS_MAX];
} hosts;

static void find_ports(fixture *f, hosts *h, uint32_t count) {
    ck_socket *s[HOSTS_MAX];
    h->count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t port;
        assert_int_equal(ck_socket_listen(&f->t.proc, "127.0.0.1:0", &s[i], &port, NULL), CK_OK);
        snprintf(h->addresses[i], sizeof h->addresses[i], "127.0.0.1:%u", port);
        h->address_list[i] = h->addresses[i];
    }
    for (uint32_t i = 0; i < count; i++) ck_socket_close(s[i]);
}

/* ---- the job, the same in every process ---- */

static void choose_plan(fixture *f, const char *which, const char *out) {
    snprintf(f->out, sizeof f->out, "%s", out);
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
    if (strchr(which, 'e')) p->with_limit = true, p->c_limit = 2000000000; /* endless */
}

static ck_status start_host(fixture *f, const hosts *h, uint32_t process, uint32_t parallelism, const char *secret,
                            int64_t connect_us, ck_job **out, ck_error *err) {
    ck_job_config cfg = {.placement = {.process = process,
                                       .process_count = h->count,
                                       .addresses = h->address_list,
                                       .secret = secret,
                                       .connect_timeout_us = connect_us}};
    return start(f, parallelism, &cfg, out, err);
}

/* argv: --host PROCESS PARALLELISM PLAN OUT SECRET COUNT ADDRESS... */
static int host_main(char **argv) {
    void *state;
    hosts h = {.count = (uint32_t)atoi(argv[7])};
    for (uint32_t i = 0; i < h.count; i++) h.address_list[i] = argv[8 + i];
    if (setup(&state) != 0) return 9;
    fixture *f = state;
    choose_plan(f, argv[4], argv[5]);
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    ck_status s = start_host(f, &h, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), argv[6], 5000000, &j, &err);
    if (s == CK_OK) {
        s = ck_job_wait(j, 60000000, &err);
        ck_job_free(j);
    }
    teardown(&state);
    if (s != CK_OK) fprintf(stderr, "host %s: %s\n", argv[2], err.msg);
    return s == CK_OK ? 0 : 3;
}

static pid_t spawn_host(const hosts *h, uint32_t process, uint32_t parallelism, const char *which, const char *out,
                        const char *secret) {
    char p[16], n[16], count[16];
    char *argv[8 + HOSTS_MAX + 1] = {
        "hosts", "--host", p, n, (char *)(uintptr_t)which, (char *)(uintptr_t)out, (char *)(uintptr_t)secret, count};
    snprintf(p, sizeof p, "%u", process);
    snprintf(n, sizeof n, "%u", parallelism);
    snprintf(count, sizeof count, "%u", h->count);
    for (uint32_t i = 0; i < h->count; i++) argv[8 + i] = (char *)(uintptr_t)h->address_list[i];
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    return pid;
}

static int reap(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- tests ---- */

static void one_job_over_several_processes(void **state) {
    fixture *f = *state;
    static const char *const plans[] = {"ab", "abcf", "abc7", "c"};
    for (uint32_t count = 2; count <= 3; count++)
        for (size_t i = 0; i < CK_ARRAY_COUNT(plans); i++) {
            hosts h;
            char out[128];
            pid_t pids[HOSTS_MAX];
            snprintf(out, sizeof out, "%s/out%u-%zu", ck_test_dir(&f->t), count, i);
            find_ports(f, &h, count);
            choose_plan(f, plans[i], out);
            for (uint32_t p = 1; p < count; p++) pids[p] = spawn_host(&h, p, 4, plans[i], out, "s3cret");
            ck_job *j;
            ck_error err = CK_ERROR_INIT;
            if (start_host(f, &h, 0, 4, "s3cret", 20000000, &j, &err) != CK_OK) fail_msg("%s", err.msg);
            finish(j);
            ck_job_free(j);
            for (uint32_t p = 1; p < count; p++) assert_int_equal(reap(pids[p]), 0);
            check_output(f);
        }
}

static void a_killed_host_fails_the_others(void **state) {
    fixture *f = *state;
    hosts h;
    char out[128];
    snprintf(out, sizeof out, "%s/killed", ck_test_dir(&f->t));
    find_ports(f, &h, 2);
    choose_plan(f, "ae", out);
    pid_t pid = spawn_host(&h, 1, 2, "ae", out, "x");
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    if (start_host(f, &h, 0, 2, "x", 20000000, &j, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_job_wait(j, 100000, &err), CK_AGAIN);
    kill(pid, SIGKILL);
    ck_status s = ck_job_wait(j, 20000000, &err);
    assert_true(s != CK_OK && s != CK_AGAIN);
    assert_non_null(strstr(err.msg, "process 1"));
    ck_job_free(j);
    assert_int_equal(reap(pid), 128 + SIGKILL);
}

static void a_cancel_ends_both(void **state) {
    fixture *f = *state;
    hosts h;
    char out[128];
    snprintf(out, sizeof out, "%s/cancelled", ck_test_dir(&f->t));
    find_ports(f, &h, 2);
    choose_plan(f, "be", out);
    pid_t pid = spawn_host(&h, 1, 3, "be", out, "x");
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    if (start_host(f, &h, 0, 3, "x", 20000000, &j, &err) != CK_OK) fail_msg("%s", err.msg);
    assert_int_equal(ck_job_wait(j, 50000, &err), CK_AGAIN);
    ck_job_cancel(j);
    assert_int_equal(ck_job_wait(j, 20000000, &err), CK_CANCELLED);
    ck_job_free(j);
    assert_int_equal(reap(pid), 3);
}

static void who_does_not_know_the_secret_stays_outside(void **state) {
    fixture *f = *state;
    hosts h;
    find_ports(f, &h, 2);
    choose_plan(f, "b", "/nowhere");
    pid_t pid = spawn_host(&h, 1, 2, "be", "/nowhere", "wrong");
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(start_host(f, &h, 0, 2, "right", 1500000, &j, &err), CK_IO); /* nobody comes who belongs here */
    assert_non_null(strstr(err.msg, "0 of 1"));
    assert_int_equal(reap(pid), 3);
}

static void nobody_there_is_an_error(void **state) {
    fixture *f = *state;
    hosts h;
    find_ports(f, &h, 3);
    choose_plan(f, "b", "/nowhere");
    ck_job *j;
    ck_error err = CK_ERROR_INIT;
    assert_int_equal(start_host(f, &h, 2, 2, "", 200000, &j, &err), CK_IO);
    assert_true(err.retriable);
    ck_job_config cfg = {.placement = {.process = 3, .process_count = 3, .addresses = h.address_list}};
    assert_int_equal(start(f, 2, &cfg, &j, &err), CK_INVALID);
    cfg.placement.process = 0;
    cfg.checkpoint.dir = "/nowhere";
    assert_int_equal(start(f, 2, &cfg, &j, &err), CK_REFUSED);
}

static void every_allocation_before_the_start_may_fail(void **state) {
    fixture *f = *state;
    hosts h;
    find_ports(f, &h, 2);
    choose_plan(f, "abc", "/nowhere");
    ck_graph *g;
    assert_int_equal(plan_graph(&f->plan, &f->arena, &g, NULL), CK_OK);
    for (uint64_t n = 1;; n += 1 + n / 32) {
        ck_job *j = NULL;
        ck_error err = CK_ERROR_INIT;
        ck_job_config cfg = {
            .name = "hosts",
            .parallelism = 2,
            .batch_rows = 7,
            .placement = {.process = 1, .process_count = 2, .addresses = h.address_list, .connect_timeout_us = 1}};
        ck_tracked_heap_fail_nth(f->t.heap, n);
        ck_status s = ck_job_start(f->scheduler, &f->registry, g, &cfg, &j, &err);
        bool fired = ck_tracked_heap_fired(f->t.heap);
        ck_tracked_heap_fail_nth(f->t.heap, 0);
        if (s == CK_IO && !fired) break; /* it got as far as finding nobody there */
        if (s != CK_NOMEM && s != CK_IO) fail_msg("allocation %llu: %s", (unsigned long long)n, err.msg);
    }
}

int main(int argc, char **argv) {
    if (argc > 8 && strcmp(argv[1], "--host") == 0) return host_main(argv);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(one_job_over_several_processes),
        T(a_killed_host_fails_the_others),
        T(a_cancel_ends_both),
        T(who_does_not_know_the_secret_stays_outside),
        T(nobody_there_is_an_error),
        T(every_allocation_before_the_start_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
