/* Which of the replicas that differ leaves service. */
#include <stdlib.h>
#include <string.h>

#include "server/cluster/digests.h"
#include "support/check.h"

static replica_digests replica(const char *name, pg_lsn copied, const char *text)
{
    replica_digests made = {.copied = copied};
    strcpy(made.name, name);
    digests_read(text, &made);
    return made;
}

static digest_verdict verdict(const replica_digests *list, int32_t count, int32_t own)
{
    pg_lsn at = 0;
    return digests_compare(list, count, own, &at);
}

static void digests_are_written_and_read(void **state)
{
    (void)state;
    char text[DIGESTS_TEXT_BYTES], again[DIGESTS_TEXT_BYTES];
    replica_digests kept = {.count = 0}, read = {.count = 0};
    for (uint64_t i = 1; i <= DIGESTS_KEPT + 5; i++)
        digests_add(&kept, UINT64_MAX - 2 * i, i * 0x123456789abcdef);
    digests_add(&kept, 5, 1);
    digests_add(&kept, 5, 2); /* the same place again */
    assert_int_equal(kept.count, DIGESTS_KEPT);
    assert_true(kept.list[DIGESTS_KEPT - 1].lsn == 5 && kept.list[DIGESTS_KEPT - 1].digest == 2);
    digests_write(&kept, text);
    digests_read(text, &read);
    digests_write(&read, again);
    assert_string_equal(text, again);
    assert_int_equal(read.count, DIGESTS_KEPT);
    static const char *const odd[] = {"", " ", "1/2", "1/2:", "1/2:xyz", "1/2:1 3", ":1", "123456789012345678901/2:1"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        digests_read(odd[i], &read);
        assert_int_equal(read.count, strncmp(odd[i], "1/2:1 ", 6) == 0 || strcmp(odd[i], "1/2:") == 0);
    }
}

static void the_minority_is_wrong(void **state)
{
    (void)state;
    replica_digests three[] = {replica("a", 0, "0/1:1 0/2:2 0/3:3"), replica("b", 9, "0/1:1 0/2:9"),
                               replica("c", 0, "0/2:2 0/4:4")};
    assert_int_equal(verdict(three, 3, 0), DIGESTS_OTHER_WRONG);
    assert_int_equal(verdict(three, 3, 1), DIGESTS_OWN_WRONG);
    assert_int_equal(verdict(three, 3, 2), DIGESTS_OTHER_WRONG);
    three[1] = replica("b", 9, "0/1:8 0/2:2"); /* it agrees at the last place that they have in common */
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(verdict(three, 3, i), DIGESTS_AGREE);
    three[1] = replica("b", 9, "0/7:1"); /* and now there is none */
    assert_int_equal(verdict(three, 3, 1), DIGESTS_AGREE);
}

/* All replicas decide for themselves, and alike: exactly one of two leaves. */
static void of_equal_groups_the_one_that_copied_last_stays(void **state)
{
    (void)state;
    replica_digests two[] = {replica("a", 0, "0/1:1"), replica("b", 0, "0/1:2")};
    assert_int_equal(verdict(two, 2, 0), DIGESTS_OTHER_WRONG);
    assert_int_equal(verdict(two, 2, 1), DIGESTS_OWN_WRONG);
    two[1].copied = 7; /* it has copied anew, and they still differ */
    assert_int_equal(verdict(two, 2, 0), DIGESTS_OWN_WRONG);
    assert_int_equal(verdict(two, 2, 1), DIGESTS_OTHER_WRONG);
    const replica_digests all[] = {replica("a", 0, "0/1:1"), replica("b", 0, "0/1:2"), replica("c", 3, "0/1:3")};
    assert_int_equal(verdict(all, 3, 0), DIGESTS_OWN_WRONG);
    assert_int_equal(verdict(all, 3, 1), DIGESTS_OWN_WRONG);
    assert_int_equal(verdict(all, 3, 2), DIGESTS_OTHER_WRONG);
    assert_int_equal(verdict(all, 1, 0), DIGESTS_AGREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_written_and_read),
        cmocka_unit_test(the_minority_is_wrong),
        cmocka_unit_test(of_equal_groups_the_one_that_copied_last_stays),
    };
    return cmocka_run_group_tests_name("server: replicas are compared", tests, NULL, NULL);
}
