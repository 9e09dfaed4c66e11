/* Models and sessions while memory runs out, or the device fails: a status, nothing leaked, and everything as it was. */
#include <stdlib.h>
#include <string.h>

#include "model/model_calls.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty.h"
#include "support/memory.h"
#include "support/scratch.h"

enum { ATTEMPTS_MAX = 3000 };

/* Emulated devices take their time for the many calls of opening, which the CPU has, too. */
static const model_call *first_call(ww_device *device)
{
    const model_call *c = model_calls;
    while (c->opens && device_is_slow(device))
        c++;
    return c;
}

static void every_call_survives_a_failure_of_every_allocation(void **state)
{
    model_calls_begin(*state);
    model_calls_warm();
    for (const model_call *c = first_call(*state); c->name; c++) {
        int64_t n = 1;
        for (; n < ATTEMPTS_MAX; n = fault_after(n)) {
            if (c->before)
                c->before();
            const int64_t held = blocks_held();
            fail_allocation_at(n);
            const ww_status status = c->call();
            fail_allocation_at(0);
            if (status == WW_OK)
                break;
            if (status != WW_OUT_OF_MEMORY)
                fail_msg("%s, allocation %d: %s: %s", c->name, (int)n, ww_status_name(status), ww_error_message());
            /* Pages that were made stay with the model for the next session. */
            if (blocks_held() - held > 8)
                fail_msg("%s, allocation %d: %d blocks more", c->name, (int)n, (int)(blocks_held() - held));
        }
        assert_true(n < ATTEMPTS_MAX);
        assert_true(n > 1);
        model_calls_check(c->name, true);
    }
    model_calls_end();
}

static void every_call_survives_a_failure_of_every_call_of_the_backend(void **state)
{
    model_calls_begin(*state);
    model_calls_warm();
    for (int after = 0; after < 2; after++)
        for (const model_call *c = first_call(*state); c->name; c++) {
            long n = 1;
            for (; n < ATTEMPTS_MAX; n = fault_after(n)) {
                faulty_attach(*state);
                faults = (fault_plan){.first = n, .count = 1, .after_work = after};
                const ww_status status = c->call();
                faulty_detach(*state);
                if (status == WW_OK)
                    break;
                if (status != WW_DRIVER_ERROR || !strstr(ww_error_message(), "injected"))
                    fail_msg("%s, call %ld: %s: %s", c->name, n, ww_status_name(status), ww_error_message());
            }
            assert_true(n < ATTEMPTS_MAX);
            assert_true(n > 1 || !c->opens); /* operations that are only queued have no counted calls */
            model_calls_check(c->name, true);
        }
    model_calls_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_survives_a_failure_of_every_allocation),
        cmocka_unit_test(every_call_survives_a_failure_of_every_call_of_the_backend),
    };
    void *scratch;
    if (scratch_setup(&scratch) != 0)
        return 1;
    model_calls_write_files();
    const int failed = RUN_ON_EVERY_DEVICE("model faults", tests);
    return scratch_teardown(&scratch) != 0 || failed;
}
