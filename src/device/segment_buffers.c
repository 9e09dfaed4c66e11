/* Creates a segment from the buffers of one device. */
#include "device/segment_buffers.h"

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"

static size_t row_bytes(const segment_plan *plan)
{
    return (size_t)canon_padded(plan->dim) * row_type_bytes(plan->type);
}

/* Bytes of codes; rows of bytes are their own codes. */
static size_t code_bytes(const segment_plan *plan)
{
    return plan->screen && !row_type_is_bytes(plan->type) ? (size_t)canon_padded(plan->dim) : 0;
}

/* Bytes of the high plane of codes; only CPUs read it. */
static size_t high_bytes(const ww_device *device, const segment_plan *plan)
{
    return device->backend->on_host ? code_bytes(plan) / 2 : 0;
}

static bool rows_go_to_host(const ww_device *device, const segment_plan *plan)
{
    return plan->rows_on_host && !device->backend->on_host;
}

segment_row_bytes segment_bytes_of_row(const ww_device *device, const segment_plan *plan)
{
    const bool host = rows_go_to_host(device, plan);
    const size_t high = high_bytes(device, plan);
    const size_t beside =
        sizeof(float) + (plan->screen ? code_bytes(plan) + 2 * sizeof(float) : 0) + (high > 0 ? high + sizeof(float) : 0);
    return (segment_row_bytes){.device = beside + (host ? 0 : row_bytes(plan)), .host = host ? row_bytes(plan) : 0};
}

static ww_status create_rows(ww_device *device, const segment_plan *plan, segment *out)
{
    const size_t bytes = (size_t)plan->capacity * row_bytes(plan);
    out->rows_on_host = rows_go_to_host(device, plan);
    return out->rows_on_host ? device->backend->pinned_create(device, bytes, &out->rows)
                             : device->backend->buffer_create(device, bytes, &out->rows);
}

static ww_status clear_live(ww_device *device, device_stream *stream, segment *out)
{
    const backend *api = device->backend;
    const ww_status status = api->fill(device, stream, (buffer_range){&out->live, 0, out->live.bytes}, 0);
    return status == WW_OK ? api->stream_synchronize(device, stream) : status;
}

ww_status segment_buffers_create(ww_device *device, const segment_plan *plan, segment *out)
{
    const backend *api = device->backend;
    const size_t rows = (size_t)plan->capacity;
    *out = (segment){.capacity = plan->capacity, .type = plan->type};
    ww_status status = create_rows(device, plan, out);
    if (status == WW_OK)
        status = api->buffer_create(device, rows * sizeof(float), &out->norms);
    if (status == WW_OK && plan->live)
        status = api->buffer_create(device, rows / 64 * sizeof(uint64_t), &out->live);
    if (status == WW_OK && code_bytes(plan) > 0)
        status = api->buffer_create(device, rows * code_bytes(plan), &out->codes);
    if (status == WW_OK && plan->screen)
        status = api->buffer_create(device, rows * sizeof(float), &out->scales);
    if (status == WW_OK && plan->screen)
        status = api->buffer_create(device, rows * sizeof(float), &out->residuals);
    if (status == WW_OK && high_bytes(device, plan) > 0)
        status = api->buffer_create(device, rows * high_bytes(device, plan), &out->highs);
    if (status == WW_OK && high_bytes(device, plan) > 0)
        status = api->buffer_create(device, rows * sizeof(float), &out->high_residuals);
    if (status == WW_OK && plan->live)
        status = clear_live(device, plan->stream, out);
    if (status != WW_OK)
        segment_buffers_destroy(device, out);
    return status;
}

void segment_buffers_destroy(ww_device *device, segment *part)
{
    const backend *api = device->backend;
    api->buffer_destroy(device, &part->high_residuals);
    api->buffer_destroy(device, &part->highs);
    api->buffer_destroy(device, &part->residuals);
    api->buffer_destroy(device, &part->scales);
    api->buffer_destroy(device, &part->codes);
    api->buffer_destroy(device, &part->live);
    api->buffer_destroy(device, &part->norms);
    if (part->rows_on_host)
        api->pinned_destroy(device, &part->rows);
    else
        api->buffer_destroy(device, &part->rows);
    *part = (segment){0};
}
