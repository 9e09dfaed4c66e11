/* Gather and scatter on a GPU. A kernel checks the ids, and the host waits for that: before a scatter, or during a gather. Ids
 * are usually valid, so the first check only says whether any is not.
 */
#include "base/status.h"
#include "gpu/error.h"
#include "gpu/launch.h"
#include "gpu/tensor/tensor.h"

enum {
    PINNED_ANY = 0,         /* one word in host memory: is there a bad id? */
    THREADS_WANTED = 65536, /* threads of a scatter; if there are fewer lines, several threads share a line */
};

static gpu_grid tiles(int64_t count)
{
    return grid_of((count + ELEMENTWISE_TILE - 1) / ELEMENTWISE_TILE);
}

/* Returns the offset of element i of the only input. */
static int64_t place_of_element(const elementwise_job *job, int64_t i)
{
    int64_t at = 0;
    for (int32_t d = job->rank - 1; d >= 0; d--) {
        at += i % job->shape[d] * job->in[0].strides[d];
        i /= job->shape[d];
    }
    return at;
}

static ww_status launch_check(gpu_stream *stream, const index_check_args *args)
{
    return launch_tensor_index_check(stream, grid_early(tiles(args->ids.count)), ELEMENTWISE_THREADS, 0, args);
}

/* Queues the check and an event after it. After the event *any, in host memory, says whether there is a bad id. */
static ww_status look_for_any(gpu_stream *stream, const elementwise_job *ids, int64_t extent, const uint64_t **any)
{
    gpu_device *device = stream->device;
    void *here = NULL;
    ww_status status = gpu_pinned(stream, PINNED_ANY, sizeof(uint64_t), &here);
    if (status != WW_OK)
        return status;
    *(uint64_t *)here = 0;
    *any = here;
    const size_t bytes = (size_t)(place_of_element(ids, ids->count - 1) + 1) * (size_t)type_size(ids->in[0].type);
    const index_check_args args = {.ids = gpu_elementwise_args(stream->device, ids),
                                   .extent = extent,
                                   .any = here,
                                   .apart = gpu_leaves_alone(stream, ids->in[0].data, bytes)};
    status = launch_check(stream, &args);
    return status == WW_OK ? gpu_tensors_mark(device) : status;
}

/* Finds the first bad id and its value. Waits. */
static ww_status find_bad(gpu_stream *stream, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value)
{
    void *device_found = NULL;
    uint64_t found = 0;
    ww_status status = gpu_workspace(stream, TENSORS_WORKSPACE_BAD_ID, sizeof found, &device_found);
    if (status == WW_OK)
        status = gpu_fill(stream, device_found, UINT32_MAX, sizeof found / sizeof(uint32_t));
    if (status != WW_OK)
        return status;
    const index_check_args args = {.ids = gpu_elementwise_args(stream->device, ids), .extent = extent, .bad = device_found};
    status = launch_check(stream, &args);
    if (status == WW_OK)
        status = gpu_copy_out(stream, &found, device_found, sizeof found);
    if (status != WW_OK)
        return status;
    const int32_t bytes = type_size(ids->in[0].type);
    const char *at = (const char *)ids->in[0].data + place_of_element(ids, (int64_t)found) * bytes;
    *bad = (int64_t)found;
    return gpu_copy_out(stream, value, at, (size_t)bytes); /* little-endian, and only i64 has a sign */
}

static ww_status launch_gather(gpu_stream *stream, const elementwise_job *job)
{
    elementwise_job units = *job;
    const bool in_units = gpu_take_units(&units, 1);
    elementwise_args args = gpu_elementwise_args(stream->device, &units);
    args.quads = in_units ? QUADS_UNITS : QUADS_NONE;
    const ww_status status = launch_tensor_gather(stream, grid_early(tiles(units.count)), ELEMENTWISE_THREADS, 0, &args);
    if (status == WW_OK)
        gpu_writes(stream, job->out.data, (size_t)(job->count * type_size(job->out.type)));
    return status;
}

typedef struct checked_ids {
    const elementwise_job *ids;
    int64_t extent;
    int64_t *bad, *value;
} checked_ids;

/* Checks ids, and gathers unless `job` is NULL. The gather is queued after the check and runs while the host waits for the
 * check, which ends long before. */
static ww_status check_and_gather(gpu_device *device, const checked_ids *check, const elementwise_job *job)
{
    gpu_stream *stream;
    driver_context previous = NULL;
    const uint64_t *any = NULL;
    *check->bad = -1;
    *check->value = 0;
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = look_for_any(stream, check->ids, check->extent, &any);
    if (status == WW_OK && job)
        status = launch_gather(stream, job);
    if (status == WW_OK)
        status = gpu_tensors_wait(device); /* for the check */
    if (status == WW_OK && *any != 0)
        status = find_bad(stream, check->ids, check->extent, check->bad, check->value);
    if (status != WW_OK)
        gpu_settle(stream); /* so that nothing still writes to the host */
    return gpu_tensors_leave(device, previous, status);
}

ww_status gpu_check_ids(ww_device *base, const elementwise_job *ids, int64_t extent, int64_t *bad, int64_t *value)
{
    return check_and_gather(gpu_of(base), &(checked_ids){ids, extent, bad, value}, NULL);
}

ww_status gpu_gather(ww_device *base, const elementwise_job *job, const elementwise_job *ids, int64_t *bad, int64_t *value)
{
    return check_and_gather(gpu_of(base), &(checked_ids){ids, job->ib, bad, value}, job);
}

ww_status gpu_scatter(ww_device *base, const scatter_job *job)
{
    gpu_device *device = gpu_of(base);
    gpu_stream *stream;
    driver_context previous = NULL;
    const int64_t lines = job->lines.count;
    const int64_t parts = lines >= THREADS_WANTED ? 1 : THREADS_WANTED / lines;
    const scatter_args args = {.lines = gpu_elementwise_args(device, &job->lines),
                               .length = job->length,
                               .extent = job->extent,
                               .x_step = job->x_step,
                               .ids_step = job->ids_step,
                               .src_step = job->src_step,
                               .parts = parts < job->extent ? parts : job->extent,
                               .what = job->what};
    const gpu_grid grid = grid_of((lines * args.parts + SCATTER_THREADS - 1) / SCATTER_THREADS);
    ww_status status = gpu_tensors_enter(device, &stream, &previous);
    if (status != WW_OK)
        return status;
    status = launch_tensor_scatter(stream, grid, SCATTER_THREADS, 0, &args);
    return gpu_tensors_leave(device, previous, status);
}
