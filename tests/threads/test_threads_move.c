/* Several threads search while the collection moves between devices: every result is the same. */
#include "support/devices.h"
#include "threads/searching.h"

enum { ROWS = 300, MOVES = 20 };

static void searches_while_it_moves_are_all_right(void **state)
{
    searching s = {.device = *state, .collection = collection_make(*state, DIM, WW_L2)};
    test_random random = {3};
    ww_device *cpu = NULL;
    CHECK_OK(ww_device_open("cpu", &cpu));
    collection_fill(s.collection, &random, ROWS, DIM, "a", 0);
    searching_start(&s, &random);
    for (int i = 0; i < MOVES; i++)
        CHECK_OK(ww_collection_move(s.collection, i % 2 ? *state : cpu));
    searching_end(&s);
    ww_collection_destroy(s.collection);
    ww_device_close(cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(searches_while_it_moves_are_all_right)};
    return RUN_ON_EVERY_DEVICE("moving among searches", tests);
}
