/* Measures how fast a member searches, with random rows: a few at first, then four times as many until the search takes much
 * longer than a launch. This is a first guess, which real searches correct (group_learn). */
#include <time.h>

#include "arithmetic/canon.h"
#include "arithmetic/row_types.h"
#include "base/clock.h"
#include "base/memory.h"
#include "device/group/group.h"

enum { DIM = 128, QUERIES = 16, ROWS_FIRST = 256, ROWS_MAX = 1 << 18, STEP = 4, K = 10 };

static const double SECONDS_ENOUGH = 2e-3;

/* Returns the better of two times: the first search may have to load code. */
static ww_status time_searches(ww_device *device, const segment *rows, const float *numbers, double *seconds)
{
    int64_t found[QUERIES * K];
    float scores[QUERIES * K];
    const search_job job = {.metric = CANON_DOT,
                            .dim = DIM,
                            .type = ROW_F32,
                            .segments = rows,
                            .segment_count = 1,
                            .queries = numbers,
                            .query_count = QUERIES,
                            .query_stride = DIM,
                            .k = K,
                            .rows = found,
                            .scores = scores,
                            .screen = true};
    ww_status status = WW_OK;
    *seconds = 1e9;
    for (int32_t i = 0; status == WW_OK && i < 2; i++) {
        const double begin = clock_seconds();
        status = device->backend->rows_search(device, &job);
        const double took = clock_seconds() - begin;
        *seconds = took < *seconds ? took : *seconds;
    }
    return status;
}

static ww_status fill_segment(ww_device *device, device_stream *stream, segment *part, const float *numbers)
{
    const uint32_t all = UINT32_MAX;
    int64_t refused = -1;
    ww_status status = device->backend->rows_write(device, (row_range){part, 0, part->capacity, DIM}, numbers, DIM, &refused);
    if (status == WW_OK)
        status = device->backend->fill(device, stream, (buffer_range){&part->live, 0, part->live.bytes}, all);
    if (status == WW_OK)
        status = device->backend->stream_synchronize(device, stream);
    part->count = part->capacity;
    return status;
}

/* Makes numbers from -1 to 1 by a multiplicative sequence. */
static void make_numbers(float *numbers, int64_t count)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * UINT32_C(1664525) + UINT32_C(1013904223);
        numbers[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

static ww_status measure_rows(ww_device *device, device_stream *stream, int64_t rows, double *seconds)
{
    const segment_plan plan = {.dim = DIM, .type = ROW_F32, .screen = true, .live = true, .stream = stream, .capacity = rows};
    const size_t bytes = (size_t)rows * DIM * sizeof(float);
    float *numbers = memory_alloc(bytes);
    if (!numbers)
        return memory_failed("rows to measure a device with", bytes);
    make_numbers(numbers, rows * DIM);
    segment part = {0};
    ww_status status = device->backend->segment_create(device, &plan, &part);
    if (status == WW_OK)
        status = fill_segment(device, stream, &part, numbers);
    if (status == WW_OK)
        status = time_searches(device, &part, numbers, seconds);
    device->backend->segment_destroy(device, &part);
    memory_free(numbers);
    return status;
}

static ww_status measure(ww_device *device, double *speed)
{
    device_stream *stream = NULL;
    double seconds = 0;
    int64_t rows = ROWS_FIRST / STEP;
    ww_status status = device->backend->stream_create(device, &stream);
    while (status == WW_OK && seconds < SECONDS_ENOUGH && rows < ROWS_MAX) {
        rows *= STEP;
        status = measure_rows(device, stream, rows, &seconds);
    }
    device->backend->stream_destroy(device, stream);
    *speed = (double)rows * DIM * QUERIES / (seconds > 0 ? seconds : 1e-6);
    return status;
}

/* If all members are alike, their speed does not matter. */
static bool is_needed(const group_device *group)
{
    bool differ = false;
    for (int32_t m = 0; m < group->count; m++)
        differ |= group->members[m].kind != 0;
    return differ && !group->base.tuning.group_even;
}

ww_status group_measure(group_device *group)
{
    ww_status status = WW_OK;
    pthread_mutex_lock(&group->measuring);
    for (int32_t m = 0; status == WW_OK && m < group->count && is_needed(group); m++) {
        group_member *member = &group->members[m];
        _Atomic double *speed = &group->members[member->kind].speed;
        double found = 0;
        if (!member_is_in(member) || atomic_load(speed) > 0)
            continue;
        status = member_failed(group, m, measure(member->device, &found));
        if (status == WW_OK)
            atomic_store(speed, found);
    }
    pthread_mutex_unlock(&group->measuring);
    return status;
}
