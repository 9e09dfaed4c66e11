/* The loops over every allocation and every call of the driver. */
#include "support/faults/collection_faults.h"

#include "emulated/emulated.h"
#include "emulated/parts.h"
#include "gpu/backend.h"
#include "support/collections.h"
#include "support/devices.h"
#include "support/faults/fault_counts.h"
#include "support/faults/faulty_driver.h"
#include "support/memory.h"

enum { CALLS_MAX = 5000 };

/* After a failure: nothing has changed, and the operation succeeds when it is repeated. */
static void check_failed(const collection_faults *faults, const faulty_operation *o, ww_collection *c, snapshot *before)
{
    check_unchanged(c, before);
    faults->check_unchanged(c);
    CHECK_OK(o->work(c));
}

static void check_whole(const collection_faults *faults, ww_collection *c)
{
    if (faults->check_whole)
        faults->check_whole(c);
}

/* Fails the n-th allocation of the operation. Returns true if there are fewer. */
static bool fail_allocation(const collection_faults *faults, const faulty_operation *o, ww_device *device, int64_t n)
{
    ww_collection *c = faults->make(device);
    snapshot before = snapshot_take(c);
    const int64_t blocks = blocks_held();
    fail_allocation_at(n);
    const ww_status status = o->work(c);
    fail_allocation_at(0);
    if (status == WW_OK) {
        snapshot_free(&before);
    } else {
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_int_equal(blocks_held(), blocks);
        check_failed(faults, o, c, &before);
    }
    check_whole(faults, c);
    ww_collection_destroy(c);
    return status == WW_OK;
}

void fail_every_allocation(const collection_faults *faults, ww_device *device)
{
    for (const faulty_operation *o = faults->operations; o->work; o++) {
        int64_t n = 1;
        while (n < CALLS_MAX && !fail_allocation(faults, o, device, n))
            n = device_is_slow(device) && !test_is_long() ? n * (test_is_short() ? 8 : 2) : fault_next(n);
        fault_count("allocation", (long)n - 1);
        assert_true((n > 1 || o->is_free) && n < CALLS_MAX);
    }
}

/* Fails the n-th call of the operation; true if there was such a call. */
static bool fail_call(const collection_faults *faults, const faulty_operation *o, int64_t n, int number)
{
    ww_device *device = NULL;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    CHECK_OK(gpu_open(&backend_emulator, &faulty_driver, (int32_t)(n % 2), &device));
    ww_collection *c = faults->make(device);
    snapshot before = snapshot_take(c);
    faulty_arm(&emulated_driver, n, number, NULL);
    const ww_status status = o->work(c);
    const bool failed = faulty_victim() != NULL;
    faulty_arm(&emulated_driver, 0, 0, NULL);
    if (status == WW_OK)
        snapshot_free(&before);
    else
        check_failed(faults, o, c, &before);
    check_whole(faults, c);
    ww_collection_destroy(c);
    ww_device_close(device);
    return failed;
}

void fail_every_driver_call(const collection_faults *faults)
{
    static const int numbers[] = {EMULATED_OUT_OF_MEMORY, EMULATED_INVALID_VALUE};
    for (const faulty_operation *o = faults->operations; o->work; o++) {
        int64_t n = 1;
        while (n < CALLS_MAX && fail_call(faults, o, n, numbers[n % 2]))
            n = test_is_long() ? n + 1 : test_is_short() ? 8 * n + 1 + n % 2 : n * 3 + 1;
        fault_count("call of a GPU's driver", (long)n - 1);
        assert_true((n > 2 || o->is_free) && n < CALLS_MAX);
    }
}
