/* Key groups: every number of groups with every parallelism, and the hash against the published vectors. */
#include "stream/key_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* For all (groups, parallelism): the ranges of the subtasks are contiguous, in order, cover every group once, differ by
 * at most one group, and are exactly what ck_subtask_for_key_group says of each group in them. */
static void ranges_and_owners_are_inverse(void **state) {
    (void)state;
    for (uint32_t groups = CK_KEY_GROUPS_MIN; groups <= CK_KEY_GROUPS_MAX; groups++)
        for (uint32_t parallelism = 1; parallelism <= groups; parallelism++) {
            uint32_t next = 0, least = groups / parallelism;
            bool right = true;
            for (uint32_t s = 0; s < parallelism; s++) {
                ck_key_group_range r = ck_key_group_range_for_subtask(s, parallelism, groups);
                uint32_t count = r.last - r.first + 1;
                right &= r.first == next && r.last >= r.first && r.last < groups;
                right &= count == least || count == least + 1;
                for (uint32_t kg = r.first; kg <= r.last && right; kg++)
                    right &= ck_subtask_for_key_group(kg, parallelism, groups) == s && ck_key_group_in(r, kg);
                next = r.last + 1;
            }
            if (!right || next != groups) fail_msg("%u groups over %u subtasks", groups, parallelism);
        }
}

/* A restore at another parallelism asks each parent whose range overlaps: they are neighbours, and their ranges cover
 * the child's. */
static void parents_are_contiguous(void **state) {
    (void)state;
    static const uint32_t groups_of[] = {16, 17, 100, 127, 128, 129, 1000, 1024};
    for (size_t g = 0; g < sizeof groups_of / sizeof *groups_of; g++)
        for (uint32_t groups = groups_of[g], p = 1; p <= groups; p += 1 + p / 16)
            for (uint32_t q = 1; q <= groups; q += 1 + q / 16)
                for (uint32_t s = 0; s < q; s++) {
                    ck_key_group_range child = ck_key_group_range_for_subtask(s, q, groups);
                    uint32_t first = ck_subtask_for_key_group(child.first, p, groups);
                    uint32_t last = ck_subtask_for_key_group(child.last, p, groups);
                    bool right = first <= last;
                    for (uint32_t parent = first; parent <= last; parent++)
                        right &= ck_key_groups_overlap(ck_key_group_range_for_subtask(parent, p, groups), child);
                    if (first > 0)
                        right &= !ck_key_groups_overlap(ck_key_group_range_for_subtask(first - 1, p, groups), child);
                    if (last + 1 < p)
                        right &= !ck_key_groups_overlap(ck_key_group_range_for_subtask(last + 1, p, groups), child);
                    if (q % p == 0) right &= first == last && first == s / (q / p); /* scaling up by a factor */
                    if (!right) fail_msg("%u groups, from %u to subtask %u of %u", groups, p, s, q);
                }
}

static void keys_hash_as_published(void **state) {
    (void)state;
    assert_true(ck_fnv1a("", 0) == 0xcbf29ce484222325ULL);
    assert_true(ck_fnv1a("a", 1) == 0xaf63dc4c8601ec8cULL);
    assert_true(ck_fnv1a("foobar", 6) == 0x85944171f73967e8ULL);
    for (uint32_t groups = CK_KEY_GROUPS_MIN; groups <= CK_KEY_GROUPS_MAX; groups++) {
        assert_int_equal(ck_key_group_for_key((ck_view){"foobar", 6}, groups), 0x85944171f73967e8ULL % groups);
        assert_int_equal(ck_key_group_for_key((ck_view){"", 0}, groups), 0xcbf29ce484222325ULL % groups);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_and_owners_are_inverse),
        cmocka_unit_test(parents_are_contiguous),
        cmocka_unit_test(keys_hash_as_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
