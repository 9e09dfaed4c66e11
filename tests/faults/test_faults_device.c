/* A device fails at each of its calls in turn: once or from then on, before its work or after it. */
#include <string.h>

#include "support/calls/calls.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty.h"
#include "support/memory.h"

enum { ATTEMPTS_MAX = 1000, FOREVER = 1000000 };

static long walk(const collection_call *call, ww_collection *c, long count, bool after_work)
{
    snapshot before = snapshot_take(c);
    long first = 1;
    for (; first < ATTEMPTS_MAX; first = fault_next(first)) {
        const int64_t blocks = blocks_held();
        faults = (fault_plan){.first = first, .count = count, .after_work = after_work};
        const ww_status status = call->call(c);
        char message[256];
        snprintf(message, sizeof message, "%s", ww_error_message());
        faults = (fault_plan){0};
        if (status == WW_OK)
            break;
        if (status != WW_DRIVER_ERROR || !strstr(message, "injected failure"))
            fail_msg("%s, device call %ld: %s: %s", call->name, first, ww_status_name(status), message);
        if (blocks_held() != blocks)
            fail_msg("%s, device call %ld: %lld blocks more than before", call->name, first,
                     (long long)(blocks_held() - blocks));
        snapshot now = snapshot_take(c);
        if (!snapshot_equal(&before, &now))
            fail_msg("%s, device call %ld (%ld fail, %s): the collection has changed", call->name, first, count,
                     after_work ? "behind their work" : "before their work");
        snapshot_free(&now);
    }
    snapshot_free(&before);
    return first;
}

static void every_call_survives_a_failure_of_every_call_of_the_device(void **state)
{
    static const long counts[] = {1, 2, FOREVER};
    for (const collection_call *call = collection_calls; call->name; call++) {
        for (size_t i = 0; i < (call->by_type ? 8 : 6); i++) {
            faulty_attach(*state);
            ww_collection *c = collection_for_calls_of(*state, i < 6 ? WW_VECTOR_F32 : WW_VECTOR_F16);
            const long attempts = walk(call, c, counts[i / 2 % 3], i % 2);
            if (call->needs_device && attempts == 1)
                fail_msg("%s: no call of the device was made to fail", call->name);
            ww_collection_destroy(c);
            faulty_detach(*state);
        }
    }
}

/* The live mask could be neither pushed nor pushed back. Searches fail until the device is well again, then answer. */
static void a_device_that_recovers_is_brought_up_to_date(void **state)
{
    faulty_attach(*state);
    ww_collection *c = collection_for_calls(*state);
    snapshot before = snapshot_take(c);
    const char *id = "a10";
    float query[9] = {1};
    int64_t rows[3];
    float scores[3];
    ww_query search = ww_query_default();
    search.queries = query;
    search.query_count = 1;
    search.dim = 9;
    search.k = 3;
    faults = (fault_plan){.first = 2, .count = FOREVER, .after_work = true}; /* the copy works, the rest does not */
    CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_remove(c, &id, 1));
    CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_search(c, &search, rows, scores));
    int64_t row;
    CHECK_OK(ww_collection_find(c, "a10", &row));
    faults = (fault_plan){0};
    check_unchanged(c, &before);
    CHECK_OK(ww_collection_remove(c, &id, 1));
    check_search(c, query, 1, 0, 200, NULL, 0);
    ww_collection_destroy(c);
    faulty_detach(*state);
}

static void a_collection_that_cannot_be_made_leaves_nothing(void **state)
{
    faulty_attach(*state);
    ww_collection_config config = ww_collection_config_default();
    config.dim = 3;
    const int64_t blocks = blocks_held();
    ww_collection *c = NULL;
    faults = (fault_plan){.first = 1, .count = 1};
    CHECK_FAILS(WW_DRIVER_ERROR, ww_collection_create(*state, &config, &c));
    assert_null(c);
    assert_int_equal(blocks_held(), blocks);
    faulty_detach(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_survives_a_failure_of_every_call_of_the_device),
        cmocka_unit_test(a_device_that_recovers_is_brought_up_to_date),
        cmocka_unit_test(a_collection_that_cannot_be_made_leaves_nothing),
    };
    return RUN_ON_EVERY_DEVICE("failing device", tests);
}
