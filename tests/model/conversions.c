/* Converts folders for tests of the converter. */
#include "model/conversions.h"

#include <unistd.h>

#include "support/check.h"
#include "support/memory.h"
#include "support/scratch.h"

ww_status folder_convert(ww_device *device, const char *type)
{
    ww_conversion_report report;
    const ww_conversion job = {
        .folder = scratch_path("folder"), .out_path = scratch_path("out.gguf"), .type = type, .device = device};
    unlink(job.out_path);
    return convert_folder(&job, &report);
}

int64_t convert_with_faults(const ww_conversion *job)
{
    ww_conversion_report report;
    CHECK_OK(convert_folder(job, &report)); /* so that memory that the device keeps for reuse is already allocated */
    const int64_t held = blocks_held();
    for (int64_t n = 1;; n++) {
        unlink(job->out_path);
        fail_allocation_at(n);
        const ww_status status = convert_folder(job, &report);
        fail_allocation_at(0);
        assert_int_equal(blocks_held(), held);
        if (status == WW_OK)
            return n - 1;
        assert_int_equal(status, WW_OUT_OF_MEMORY);
        assert_int_equal(access(job->out_path, F_OK), -1);
        assert_true(n < 20000);
    }
}
