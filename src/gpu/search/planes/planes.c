/* A list of planes, one for each segment; a segment is known by the address of its codes. One lock protects the list. It is
 * held while planes are made: another search would only make the same planes again. */
#include "gpu/search/planes/planes.h"

#include "arithmetic/row_types.h"
#include "arithmetic/screen.h"
#include "base/integers.h"
#include "base/memory.h"
#include "gpu/error.h"
#include "gpu/launch.h"
#include "gpu/memory.h"
#include "kernels/search/packed_layout.h"

enum {
    CHUNKS_MIN = 2,       /* a plane of one chunk would be as long as the codes */
    SEARCHES_MIN = 4,     /* searches without planes before planes are made, which takes as long as two searches */
    MISSING_SHARE = 8,    /* planes are made at once if at most 1/8 of the rows has none, as after an add */
    FREE_SHARE = 2,       /* planes may take at most half of the free memory */
    PLANE_BLOCK_ROWS = 16 /* rows of a block of screen_plane */
};

typedef struct plane {
    const void *codes;
    buffer memory; /* the planes of `capacity` rows, then their residuals */
    int64_t capacity;
    int64_t made; /* the first `made` rows have their plane */
} plane;

struct gpu_planes {
    pthread_mutex_t lock; /* protects everything below */
    plane *list;
    size_t count, room;
    int32_t searches;      /* searches that are reading planes now */
    int32_t searches_lack; /* searches that found no planes since some were last made */
    int64_t rows_refused;  /* the number of rows whose planes did not fit in memory; -1: none */
};

ww_status gpu_planes_create(gpu_device *device)
{
    gpu_planes *planes = memory_alloc_zeroed(1, sizeof *planes);
    if (planes == NULL)
        return memory_failed("a list of planes", sizeof *planes);
    if (pthread_mutex_init(&planes->lock, NULL) != 0) {
        memory_free(planes);
        return memory_failed("a lock", sizeof planes->lock);
    }
    planes->rows_refused = -1;
    device->planes = planes;
    return WW_OK;
}

/* ---- freeing ---------------------------------------------------------------------------------------------------------------
 */

/* The lock is held, and nothing reads the plane. */
static void free_plane(gpu_device *device, size_t number)
{
    gpu_planes *planes = device->planes;
    gpu_pool_count_aside(device, -(int64_t)gpu_block_bytes(planes->list[number].memory.bytes));
    gpu_memory_free(device, &planes->list[number].memory);
    planes->list[number] = planes->list[--planes->count];
}

void gpu_planes_destroy(gpu_device *device)
{
    gpu_planes *planes = device->planes;
    if (planes == NULL)
        return;
    while (planes->count > 0)
        free_plane(device, planes->count - 1);
    memory_free(planes->list);
    pthread_mutex_destroy(&planes->lock);
    memory_free(planes);
    device->planes = NULL;
}

void gpu_planes_release(gpu_device *device)
{
    gpu_planes *planes = device->planes;
    if (planes == NULL || pthread_mutex_trylock(&planes->lock) != 0) /* they are being made, which may itself need memory */
        return;
    if (planes->searches == 0 && planes->count > 0)
        gpu_drain(device);
    while (planes->searches == 0 && planes->count > 0)
        free_plane(device, planes->count - 1);
    pthread_mutex_unlock(&planes->lock);
}

/* The number of the plane of these codes, or planes->count; `guess` is likely. The lock is held. */
static size_t find_plane(const gpu_planes *planes, const void *codes, size_t guess)
{
    if (guess < planes->count && planes->list[guess].codes == codes)
        return guess;
    size_t number = 0;
    while (number < planes->count && planes->list[number].codes != codes)
        number++;
    return number;
}

void gpu_planes_forget(gpu_device *device, const void *codes)
{
    gpu_planes *planes = device->planes;
    pthread_mutex_lock(&planes->lock);
    const size_t number = find_plane(planes, codes, 0);
    if (number < planes->count)
        free_plane(device, number);
    planes->rows_refused = -1; /* more memory is free now */
    pthread_mutex_unlock(&planes->lock);
}

void gpu_planes_outdate(gpu_device *device, const void *codes, int64_t first)
{
    gpu_planes *planes = device->planes;
    pthread_mutex_lock(&planes->lock);
    const size_t number = find_plane(planes, codes, 0);
    if (number < planes->count)
        planes->list[number].made = min_i64(planes->list[number].made, first);
    pthread_mutex_unlock(&planes->lock);
}

/* ---- making; the lock is held ----------------------------------------------------------------------------------------------
 */

static size_t plane_bytes(const search_job *job)
{
    return (size_t)screen_plane_chunks(packed_chunks(job->dim)) * CANON_LANES;
}

/* Planes that a search needs and that are missing. */
typedef struct lack {
    int64_t rows, rows_all, segments;
    size_t bytes;
} lack;

static lack lack_of(const gpu_planes *planes, const search_job *job)
{
    lack found = {0};
    size_t guess = 0;
    for (int64_t i = 0; i < job->segment_count; i++) {
        const segment *part = &job->segments[i];
        if (part->count == 0)
            continue;
        const size_t number = find_plane(planes, part->codes.data, guess);
        const bool there = number < planes->count;
        guess = number + 1;
        found.rows_all += part->count;
        found.rows += part->count - (there ? min_i64(planes->list[number].made, part->count) : 0);
        found.segments += !there;
        found.bytes += there ? 0 : (size_t)part->capacity * (plane_bytes(job) + sizeof(float));
    }
    return found;
}

/* Should the missing planes be made now? Yes if searches come again and enough memory is free. */
static ww_status should_make(gpu_device *device, const lack *lacks, bool *yes)
{
    gpu_planes *planes = device->planes;
    size_t free_bytes = 0, total_bytes = 0;
    *yes = false;
    if (lacks->rows_all == planes->rows_refused)
        return WW_OK;
    planes->searches_lack += planes->searches_lack < SEARCHES_MIN;
    if (device->base.tuning.planes != TUNING_ALWAYS && lacks->rows * MISSING_SHARE > lacks->rows_all &&
        planes->searches_lack < SEARCHES_MIN)
        return WW_OK;
    const ww_status status =
        gpu_check(device, device->driver->memory_info(&free_bytes, &total_bytes), "asking for the free memory");
    *yes = status == WW_OK && lacks->bytes <= free_bytes / FREE_SHARE;
    planes->rows_refused = status == WW_OK && !*yes ? lacks->rows_all : -1;
    return status;
}

/* Makes room in the list for all segments that have no plane. */
static ww_status make_room(gpu_planes *planes, const lack *lacks)
{
    const size_t wanted = planes->count + (size_t)lacks->segments;
    if (wanted <= planes->room)
        return WW_OK;
    plane *list = memory_resize(planes->list, 2 * wanted * sizeof *list);
    if (list == NULL)
        return memory_failed("a list of planes", 2 * wanted * sizeof *list);
    planes->list = list;
    planes->room = 2 * wanted;
    return WW_OK;
}

static ww_status add_plane(gpu_device *device, const search_job *job, const segment *part)
{
    gpu_planes *planes = device->planes;
    plane *added = &planes->list[planes->count];
    *added = (plane){.codes = part->codes.data, .capacity = part->capacity};
    const ww_status status =
        gpu_memory_alloc(device, (size_t)part->capacity * (plane_bytes(job) + sizeof(float)), &added->memory);
    if (status != WW_OK)
        return status;
    gpu_pool_count_aside(device, (int64_t)gpu_block_bytes(added->memory.bytes));
    planes->count++;
    return WW_OK;
}

static float *residuals_of(const plane *p, const search_job *job)
{
    return (float *)(void *)((char *)p->memory.data + (size_t)p->capacity * plane_bytes(job));
}

/* Queues the kernels that make a segment's missing rows of its plane. */
static ww_status make_plane(gpu_stream *stream, const search_job *job, const segment *part, const plane *to)
{
    const int64_t rows_max = gpu_blocks_max(stream->device) * PLANE_BLOCK_ROWS;
    ww_status status = WW_OK;
    for (int64_t first = to->made; status == WW_OK && first < part->count; first += rows_max) {
        const int64_t count = min_i64(rows_max, part->count - first);
        const screen_plane_args args = {.codes = part->codes.data,
                                        .scales = part->scales.data,
                                        .residuals = part->residuals.data,
                                        .highs = to->memory.data,
                                        .high_residuals = residuals_of(to, job),
                                        .first = (uint32_t)first,
                                        .count = (uint32_t)count,
                                        .chunks = packed_chunks(job->dim)};
        status = launch_screen_plane(stream, grid_of(divide_up_i64(count, PLANE_BLOCK_ROWS)), SCREEN_THREADS, 0, &args);
    }
    return status;
}

/* Allocates planes for all segments; if memory does not suffice, for none, and sets rows_refused. */
static ww_status add_planes(gpu_device *device, const search_job *job, const lack *lacks)
{
    gpu_planes *planes = device->planes;
    ww_status status = make_room(planes, lacks);
    if (status != WW_OK)
        return status;
    for (int64_t i = 0; status == WW_OK && i < job->segment_count; i++)
        if (job->segments[i].count > 0 && find_plane(planes, job->segments[i].codes.data, 0) == planes->count)
            status = add_plane(device, job, &job->segments[i]);
    if (status != WW_OUT_OF_MEMORY)
        return status;
    for (size_t i = planes->count; i-- > 0;)
        if (planes->list[i].made == 0)
            free_plane(device, i);
    planes->rows_refused = lacks->rows_all;
    return WW_OK;
}

static ww_status make_planes(gpu_stream *stream, const search_job *job)
{
    gpu_planes *planes = stream->device->planes;
    ww_status status = WW_OK;
    for (int64_t i = 0; status == WW_OK && i < job->segment_count; i++) {
        const size_t number = find_plane(planes, job->segments[i].codes.data, 0);
        if (number < planes->count)
            status = make_plane(stream, job, &job->segments[i], &planes->list[number]);
    }
    if (status == WW_OK)
        status = gpu_synchronize(stream);
    for (int64_t i = 0; status == WW_OK && i < job->segment_count; i++) {
        const size_t number = find_plane(planes, job->segments[i].codes.data, 0);
        if (number < planes->count)
            planes->list[number].made = max_i64(planes->list[number].made, job->segments[i].count);
    }
    return status;
}

/* ---- searches --------------------------------------------------------------------------------------------------------------
 */

/* Can this search read planes? */
static bool can_read(const gpu_device *device, const search_job *job)
{
    return job->query_count == 1 && job->type == ROW_F32 && packed_chunks(job->dim) >= CHUNKS_MIN &&
           device->base.tuning.planes != TUNING_NEVER;
}

static void fill_table(const gpu_planes *planes, const search_job *job, segment_table *table)
{
    size_t filled = 0, guess = 0;
    for (int64_t i = 0; i < job->segment_count; i++) {
        if (job->segments[i].count == 0)
            continue;
        guess = find_plane(planes, job->segments[i].codes.data, guess);
        table->segments[filled].highs = planes->list[guess].memory.data;
        table->segments[filled++].high_residuals = residuals_of(&planes->list[guess], job);
        guess++;
    }
}

ww_status gpu_planes_take(gpu_stream *stream, const search_job *job, segment_table *table, bool *taken)
{
    gpu_device *device = stream->device;
    gpu_planes *planes = device->planes;
    *taken = false;
    if (!can_read(device, job))
        return WW_OK;
    pthread_mutex_lock(&planes->lock);
    const lack lacks = lack_of(planes, job);
    bool all = lacks.rows == 0, make = false;
    ww_status status = all ? WW_OK : should_make(device, &lacks, &make);
    if (make) {
        status = add_planes(device, job, &lacks);
        if (status == WW_OK && planes->rows_refused < 0) {
            status = make_planes(stream, job);
            all = status == WW_OK;
            planes->searches_lack = 0;
        }
    }
    if (all) {
        fill_table(planes, job, table);
        planes->searches++;
    }
    *taken = all;
    pthread_mutex_unlock(&planes->lock);
    return status;
}

void gpu_planes_return(gpu_device *device)
{
    pthread_mutex_lock(&device->planes->lock);
    device->planes->searches--;
    pthread_mutex_unlock(&device->planes->lock);
}
