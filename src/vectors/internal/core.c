/* The table of functions of this room that stores and ranks use (core.h). */
#include "vectors/internal/core.h"

#include "base/float_guard.h"
#include "vectors/write/payloads.h"

static ww_status retain(ww_device *device, ww_device **retained)
{
    const ww_status status = device_check(device);
    if (status == WW_OK)
        *retained = device_retain(device);
    return status;
}

static const core_functions functions = {
    .version = CORE_VERSION,
    .collection_init = collection_init,
    .collection_release = collection_release,
    .check_rows = collection_check_rows,
    .is_finite = vector_is_finite,
    .row_text_copy = row_text_copy,
    .check_payload = payload_check,
    .merge_payload = payload_merge,
    .tell = progress_tell,
    .device_retain = retain,
    .results_create = results_create,
    .results_prepare = results_prepare,
    .results_put = results_put,
    .results_parts = results_parts,
    .results_totals = results_totals,
    .results_proven = results_proven,
    .mirror_acquire = mirror_acquire,
    .mirror_create = mirror_create,
    .mirror_release = mirror_release,
    .mirror_abandon = mirror_abandon,
    .mirror_lock_read = mirror_lock_read,
    .mirror_lock_write = mirror_lock_write,
    .mirror_unlock = mirror_unlock,
    .mirror_state_of = mirror_state_of,
    .mirror_set_state = mirror_set_state,
    .mirror_collection = mirror_collection,
    .mirror_query = mirror_query,
    .mirror_places = mirror_places,
    .mirror_row = mirror_row,
    .mirror_mask = mirror_mask,
    .mirror_reserve = mirror_reserve,
    .mirror_append = mirror_append,
    .mirror_remove = mirror_remove,
    .mirror_tidy = mirror_tidy,
    .mirror_file_enter = mirror_file_enter,
    .mirror_file_leave = mirror_file_leave,
    .ivf_build = ivf_build,
    .ivf_calibrate = ivf_calibrate,
    .ivf_destroy = ivf_destroy,
    .ivf_list_set = ivf_list_set,
    .ivf_list_rows = ivf_list_rows,
    .ivf_restore = ivf_restore,
    .ivf_not_found = ivf_not_found,
    .outline_create = outline_create,
    .outline_set_records = outline_set_records,
    .outline_assign = outline_assign,
    .outline_remove = outline_remove,
    .outline_to_split = outline_to_split,
    .outline_split = outline_split,
    .outline_merge = outline_merge,
    .outline_lists = outline_lists,
    .outline_record = outline_record,
    .outline_centroid = outline_centroid,
};

const core_functions *ww_core(void)
{
    return &functions;
}
