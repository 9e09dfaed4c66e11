/* The storages that a case has made: all are kept until the case has ended, and one of them is its result. */
#include "base/status.h"
#include "cases/cases.h"

ww_status case_keep(case_run *run, ww_storage *storage)
{
    if (run->made_count == CASE_STORAGES) {
        ww_storage_release(storage);
        return ww_fail(WW_CORRUPT_FILE, "a case with more than %d tensors", CASE_STORAGES);
    }
    run->made[run->made_count++] = storage;
    return WW_OK;
}

ww_status case_give(case_run *run, ww_status status, const ww_tensor *out)
{
    if (status != WW_OK)
        return status;
    run->result = *out;
    return case_keep(run, out->storage);
}

ww_status case_give_storage(case_run *run, ww_storage *storage, int32_t rank, const int64_t *shape)
{
    const ww_tensor whole = {.storage = storage, .layout = ww_layout_contiguous(rank, shape)};
    return case_give(run, WW_OK, &whole);
}
