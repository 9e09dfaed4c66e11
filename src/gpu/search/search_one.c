/* A full scan for one query: one launch, one wait.
 *
 * The rows of a small collection are read in a tenth of a millisecond, so every driver call counts. The query travels in the
 * kernel's arguments. The kernel writes the answer to pinned host memory, which the host polls, and leaves the state that its
 * blocks share ready for the next search.
 */
#include <string.h>

#include "arithmetic/row_types.h"
#include "gpu/search/search_common.h"

/* For each row type, the kernel for dot and cosine, and the one for l2. */
static const int32_t kernels[ROW_TYPES][2] = {[ROW_F32] = {GPU_KERNEL_search_one, GPU_KERNEL_search_one_l2},
                                              [ROW_F16] = {GPU_KERNEL_search_one_half, GPU_KERNEL_search_one_half_l2},
                                              [ROW_BF16] = {GPU_KERNEL_search_one_half, GPU_KERNEL_search_one_half_l2},
                                              [ROW_I8] = {GPU_KERNEL_search_one_bytes, GPU_KERNEL_search_one_bytes_l2},
                                              [ROW_U8] = {GPU_KERNEL_search_one_bytes, GPU_KERNEL_search_one_bytes_l2}};

/* Puts the query into the arguments, or copies it to the device if it is too long. A query that is on the device stays
 * there. */
static ww_status stage_query(search *s, search_one_args *args)
{
    const size_t bytes = (size_t)s->job->dim * sizeof(float);
    args->dim = s->job->dim;
    if (s->job->queries_on_device) {
        args->query_on_device = s->job->queries;
        return WW_OK;
    }
    if (s->job->dim <= SEARCH_ONE_DIM_MAX) {
        memcpy(args->query, s->job->queries, bytes);
        return WW_OK;
    }
    void *query = NULL;
    ww_status status = gpu_workspace(s->stream, WORKSPACE_GIVEN, bytes, &query);
    if (status == WW_OK)
        status = gpu_copy_in(s->stream, query, s->job->queries, bytes);
    args->query_on_device = query;
    return status;
}

ww_status search_for_one(search *s)
{
    static const search_one_state fresh = {.worst = CANON_KEY_WORST};
    const int32_t kernel = kernels[s->job->type][s->rows.metric == CANON_L2];
    search_one_args args = {.rows = s->rows};
    int64_t resident = 1;
    void *state = NULL, *best = NULL;
    ww_status status = gpu_search_report(s->job, 0);
    if (status == WW_OK)
        status = search_resident(s, kernel, &resident);
    if (status == WW_OK)
        status = search_make_lists(s, 1, resident, &args.lists);
    if (status == WW_OK)
        status = gpu_keep(s->stream, KEPT_STATE, &fresh, sizeof fresh, &state);
    if (status == WW_OK)
        status = gpu_pinned(s->stream, PINNED_BEST, (size_t)s->job->k * sizeof(canon_key), &best);
    if (status == WW_OK)
        status = stage_query(s, &args);
    if (status != WW_OK)
        return status;
    args.state = state;
    args.lists.taken = &args.state->taken;
    args.best = best;
    args.backward = gpu_alternate_direction(s->stream);
    memset(best, 0, (size_t)s->job->k * sizeof(canon_key)); /* no key is 0 */
    status = gpu_launch(s->stream, kernel, (gpu_shape){grid_of(args.lists.parts), SEARCH_THREADS, s->plan.shared_bytes}, &args,
                        sizeof args);
    if (status == WW_OK)
        status = gpu_await(s->stream, best, s->job->k);
    if (status == WW_OK)
        gpu_search_write(s->job, 0, best);
    else
        gpu_forget(s->stream, KEPT_STATE);
    return status;
}
