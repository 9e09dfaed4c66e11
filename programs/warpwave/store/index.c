/* The index of a collection: `warpwave store build-ivf`, `calibrate` and `drop-ivf`. */
#include <stdio.h>
#include <warpwave/ivf.h>

#include "base/memory.h"
#include "warpwave/command.h"
#include "warpwave/store/store.h"
#include "warpwave/terminal.h"

static void report_json(const store_call *call, const char *done, const ww_ivf_info *info)
{
    json_writer w = {.to = stdout, .digits = JSON_DIGITS_F32};
    json_open(&w, NULL, '{');
    json_put_text(&w, "done", done);
    json_put_text(&w, "collection", call->operands[1]);
    json_put_integer(&w, "nlist", info->nlist);
    json_put_integer(&w, "rows", info->rows);
    json_put_integer(&w, "rows_largest", info->rows_largest);
    json_put_real(&w, "rows_mean", info->rows_mean);
    json_put_real(&w, "loss", info->loss);
    json_put_integer(&w, "lists_split", info->lists_split);
    json_put_integer(&w, "calibration_queries", info->calibration_queries);
    json_put_integer(&w, "calibration_k", info->calibration_k);
    json_put_integer(&w, "calibration_time", info->calibration_time);
    json_close(&w);
}

static ww_status report(const store_call *call, const char *done)
{
    ww_ivf_info info = ww_ivf_info_default();
    const ww_status status = ww_collection_describe_ivf(call->collection, &info);
    if (status != WW_OK)
        return status;
    if (call->settings.json) {
        report_json(call, done, &info);
        return WW_OK;
    }
    if (!terminal_notes())
        return WW_OK;
    print_plain(stdout, call->operands[1]);
    printf(": %lld list%s, %.1f rows on average, %lld in the largest", (long long)info.nlist, plural(info.nlist),
           info.rows_mean, (long long)info.rows_largest);
    if (info.calibration_k > 0)
        printf("; calibrated with %lld queries, k %d", (long long)info.calibration_queries, info.calibration_k);
    putchar('\n');
    return WW_OK;
}

ww_status store_build_ivf(store_call *call)
{
    const store_settings *s = &call->settings;
    ww_ivf_config config = ww_ivf_config_default();
    progress bar;
    config.nlist = s->nlist;
    config.sample_rows = s->sample_rows;
    config.iterations = (int32_t)s->iterations;
    config.seed = s->seed > 0 ? (uint64_t)s->seed : 0;
    config.progress = progress_report;
    config.progress_user = &bar;
    progress_begin(&bar, "building the index", call->info.rows_live);
    const ww_status status = ww_collection_build_ivf(call->collection, &config);
    progress_end(&bar);
    return status == WW_OK ? report(call, "build-ivf") : status;
}

ww_status store_calibrate(store_call *call)
{
    const store_settings *s = &call->settings;
    ww_calibrate_config config = ww_calibrate_config_default();
    progress bar;
    float *queries = NULL;
    if (s->queries && s->query_count > 0)
        return command_line_wrong(ww_fail(WW_INVALID_ARGUMENT, "--query-count is for rows that are drawn, not for --queries"));
    config.query_count = s->query_count;
    ww_status status = command_read_recall(s->recall_text, &config.recall);
    if (status == WW_OK && s->queries)
        status = store_read_queries(call, &queries, &config.query_count);
    config.queries = queries;
    config.k = (int32_t)s->k;
    config.seed = s->seed > 0 ? (uint64_t)s->seed : 0;
    config.progress = progress_report;
    config.progress_user = &bar;
    progress_begin(&bar, "calibrating", config.query_count);
    if (status == WW_OK)
        status = ww_collection_calibrate(call->collection, &config);
    progress_end(&bar);
    memory_free(queries);
    return status == WW_OK ? report(call, "calibrate") : status;
}

ww_status store_drop_ivf(store_call *call)
{
    return ww_collection_drop_ivf(call->collection);
}
