/* Searches of a group from several threads, while rows are added, moved among the members, and a member is dropped: every
 * answer is that of the rows that were there all the time. */
#include "support/pretend/pretend.h"
#include "threads/searching.h"

enum { ROWS = 400, MOVES = 8 };

/* Far from the query: they are never among the nearest. */
static void add_far(ww_collection *c, int64_t number)
{
    float far[DIM];
    char text[32];
    const char *id = text;
    for (int32_t d = 0; d < DIM; d++)
        far[d] = 1000;
    snprintf(text, sizeof text, "far%lld", (long long)number);
    ww_rows rows = ww_rows_default();
    rows.count = 1;
    rows.dim = DIM;
    rows.vectors = far;
    rows.ids = &id;
    CHECK_OK(ww_collection_add(c, &rows));
}

static void searches_while_a_group_changes_are_all_right(void **state)
{
    (void)state;
    searching s = {0};
    test_random random = {3};
    CHECK_OK(ww_device_open("cpu+emulator:32+cpu", &s.device));
    pretend_tuning(s.device)->group_even = true;
    ww_collection_config config = ww_collection_config_default();
    config.name = "busy";
    config.dim = DIM;
    config.metric = WW_L2;
    config.keep_host_copy = 1;
    CHECK_OK(ww_collection_create(s.device, &config, &s.collection));
    collection_fill(s.collection, &random, ROWS, DIM, "a", 0);
    searching_start(&s, &random);
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    for (int i = 0; i < MOVES; i++) {
        add_far(s.collection, i);
        CHECK_OK(ww_collection_move(s.collection, i % 2 ? s.device : cpu));
    }
    searching_end(&s);
    CHECK_OK(ww_device_drop(s.device, "emulator:32"));
    CHECK_OK(ww_collection_move(s.collection, s.device));
    int64_t rows[K];
    float scores[K];
    CHECK_OK(search(&s, rows, scores));
    assert_memory_equal(rows, s.rows, sizeof rows);
    ww_collection_destroy(s.collection);
    ww_device_close(s.device);
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(searches_while_a_group_changes_are_all_right)};
    return cmocka_run_group_tests_name("a group among threads", tests, NULL, NULL);
}
