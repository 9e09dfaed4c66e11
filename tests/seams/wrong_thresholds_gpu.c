/* The functions of wrong_thresholds.c for GPUs, in a separate file because the GPU headers conflict with the CPU ones. */
#include "seams/wrong_thresholds.h"

#include "gpu/search/screen_round.h"

/* On a GPU before the first rows are looked at by them. */
ww_status __real_screen_launch_scan(const screen_round *round, bool sample, int64_t tile_begin, int64_t tile_end);
ww_status __wrap_screen_launch_scan(const screen_round *round, bool sample, int64_t tile_begin, int64_t tile_end);
ww_status __wrap_screen_launch_scan(const screen_round *round, bool sample, int64_t tile_begin, int64_t tile_end)
{
    ww_status status = WW_OK;
    const bool first = !sample && tile_begin == 0 && thresholds_lowered > 0;
    for (uint32_t i = 0; first && status == WW_OK && i < round->queries.count; i++) {
        uint64_t *const at = round->queries.thresholds + i;
        canon_key threshold;
        status = gpu_copy_out(round->stream, &threshold, at, sizeof threshold);
        if (status != WW_OK || threshold == CANON_KEY_WORST)
            continue;
        threshold = lowered_key(threshold);
        status = gpu_copy_in(round->stream, at, &threshold, sizeof threshold);
    }
    return status == WW_OK ? __real_screen_launch_scan(round, sample, tile_begin, tile_end) : status;
}
