/* An index for one run of the command: built after the rows were added, and destroyed with them. */
#include "warpwave/search/search_index.h"

#include <warpwave/ivf.h>

#include "base/status.h"
#include "warpwave/command.h"
#include "warpwave/terminal.h"

ww_status search_index_read(search_settings *s)
{
    if (s->nlist > 0 && s->nprobe == 0 && !s->recall_text)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--nlist goes with --nprobe or --recall"));
    if (s->nprobe > 0 && s->recall_text)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--nprobe and --recall: give one of them"));
    if ((s->nprobe > 0 || s->recall_text) && s->ranged)
        return command_line_wrong(ww_fail(
            WW_INVALID_ARGUMENT, "--nprobe and --recall are for the nearest k; --radius and --min-score read all rows"));
    return command_read_recall(s->recall_text, &s->recall);
}

ww_status search_index_build(search_run *run)
{
    const search_settings *s = &run->settings;
    const double start = seconds_now();
    progress bar;
    if ((s->nprobe == 0 && s->recall == 0.0f) || run->row_count == 0)
        return WW_OK;
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = s->nlist;
    config.progress = progress_report;
    config.progress_user = &bar;
    progress_begin(&bar, "building the index", run->row_count);
    ww_status status = ww_collection_build_ivf(run->collection, &config);
    progress_end(&bar);
    if (status == WW_OK && s->recall > 0.0f && s->recall < 1.0f) {
        ww_calibrate_config calibration = ww_calibrate_config_default();
        calibration.k = (int32_t)(s->k < 1024 ? s->k : 1024);
        calibration.recall = s->recall;
        status = ww_collection_calibrate(run->collection, &calibration);
    }
    run->index_seconds = seconds_now() - start;
    return status;
}
