/* Rows on the CPU: copied in with padding and norm, copied out, gathered for compact. All of it is bound by memory, so the work
 * is divided into blocks of about a megabyte for all cores.
 */
#include <math.h>
#include <string.h>

#include "arithmetic/canon.h"
#include "base/integers.h"
#include "base/memory.h"
#include "base/status.h"
#include "cpu/cpu.h"
#include "cpu/search/high_plane.h"

enum {
    PAGE_ROWS = 64,
    BLOCK_BYTES = 1 << 20,
    HERE_BYTES = 128 << 10, /* copying fewer bytes takes less time than waking the workers */
};

static int64_t rows_in_block(int32_t padded)
{
    const int64_t rows = BLOCK_BYTES / ((int64_t)padded * (int64_t)sizeof(float));
    return rows > 0 ? rows : 1;
}

static void run(cpu_device *cpu, int64_t rows, int32_t padded, pool_work work, void *context)
{
    const int64_t blocks = (rows + rows_in_block(padded) - 1) / rows_in_block(padded);
    if (rows * padded * (int64_t)sizeof(float) <= HERE_BYTES)
        pool_run_here(blocks, work, context);
    else
        pool_run(cpu->pool, blocks, work, NULL, context);
}

typedef struct write_job {
    const instruction_set *isa;
    int32_t type;
    size_t element_bytes;
    char *rows;
    float *norms;
    int8_t *codes; /* NULL: the segment has no screen, or the rows are their own codes */
    float *scales; /* NULL: the segment has no screen */
    float *residuals;
    uint8_t *highs; /* NULL: the segment has no codes */
    float *high_residuals;
    float *wide; /* a padded row for each worker, if the type is not f32 */
    const char *from;
    int64_t count;
    int64_t from_stride;
    int32_t dim;
    int32_t padded;
    atomic_int_least64_t refused; /* the first refused row, or count */
} write_job;

/* Stores the scale and residual of row r, which are computed with its codes. */
static void keep_made(const write_job *job, int64_t r, screen_vector made)
{
    job->scales[r] = made.scale;
    job->residuals[r] = made.residual;
    if (job->highs)
        job->high_residuals[r] =
            high_plane_make(job->codes + r * job->padded, job->padded, made, job->highs + r * (job->padded / 2));
}

/* Stores a row, and makes its codes while it is in the first-level cache. Returns its squared norm. */
static float write_row(const write_job *job, int64_t r)
{
    float *row = (float *)(void *)job->rows + r * job->padded;
    const float *from = (const float *)(const void *)job->from + r * job->from_stride;
    if (!job->codes)
        return job->isa->store(row, from, job->dim);
    screen_vector made;
    const float square = job->isa->store_encoded(row, from, job->dim, job->codes + r * job->padded, &made);
    keep_made(job, r, made);
    return square;
}

/* Stores a row of another type, whose numbers are first converted to floats. */
static float write_typed_row(const write_job *job, int64_t r, float *wide)
{
    const size_t bytes = (size_t)job->dim * job->element_bytes, room = (size_t)job->padded * job->element_bytes;
    char *row = job->rows + (size_t)r * room;
    memcpy(row, job->from + (size_t)(r * job->from_stride) * job->element_bytes, bytes);
    memset(row + bytes, 0, room - bytes);
    for (size_t i = 0; job->type == ROW_U8 && i < room; i++)
        row[i] = (char)((uint8_t)row[i] ^ 0x80); /* minus 128 */
    job->isa->widen(job->type, row, wide, job->padded);
    screen_vector made = {.scale = 1.0f};
    if (job->codes)
        made = job->isa->encode(wide, job->padded, job->codes + r * job->padded);
    if (job->scales)
        keep_made(job, r, made);
    return job->isa->dot(wide, wide, job->padded);
}

static void write_block(void *context, int64_t item, int32_t worker)
{
    write_job *job = context;
    const int64_t begin = item * rows_in_block(job->padded);
    const int64_t end = begin + rows_in_block(job->padded) < job->count ? begin + rows_in_block(job->padded) : job->count;
    for (int64_t r = begin; r < end; r++) {
        const float square = job->wide ? write_typed_row(job, r, job->wide + (int64_t)worker * job->padded) : write_row(job, r);
        job->norms[r] = sqrtf(square);
        if (isfinite(square))
            continue;
        int64_t first = atomic_load(&job->refused);
        while (r < first && !atomic_compare_exchange_weak(&job->refused, &first, r))
            continue;
        return;
    }
}

/* The screen reads up to 64 rows at a time, so it also multiplies the memory after the last row, and ignores these products.
 * Zeros there satisfy tools that check for uninitialised memory. Only a write that starts a new page must write them. */
static void clear_codes_after(row_range to, int32_t padded)
{
    const int64_t end = to.first + to.count, page = (end - 1) / PAGE_ROWS * PAGE_ROWS;
    const buffer *codes = row_type_is_bytes(to.segment->type) ? &to.segment->rows : &to.segment->codes;
    if (codes->data && to.count > 0 && page >= to.first)
        memset((int8_t *)codes->data + end * padded, 0, (size_t)((page + PAGE_ROWS - end) * padded));
    if (to.segment->highs.data && to.count > 0 && page >= to.first)
        memset((uint8_t *)to.segment->highs.data + end * (padded / 2), 0, (size_t)((page + PAGE_ROWS - end) * (padded / 2)));
}

ww_status cpu_rows_write(ww_device *device, row_range to, const void *rows, int64_t row_stride, int64_t *refused)
{
    cpu_device *cpu = (cpu_device *)device;
    const segment *part = to.segment;
    const int32_t padded = canon_padded(to.dim);
    const size_t element_bytes = row_type_bytes(part->type);
    write_job job = {.isa = cpu->isa,
                     .type = part->type,
                     .element_bytes = element_bytes,
                     .rows = (char *)part->rows.data + (size_t)(to.first * padded) * element_bytes,
                     .norms = (float *)part->norms.data + to.first,
                     .from = rows,
                     .count = to.count,
                     .from_stride = row_stride,
                     .dim = to.dim,
                     .padded = padded};
    if (part->codes.data)
        job.codes = (int8_t *)part->codes.data + to.first * padded;
    if (part->highs.data) {
        job.highs = (uint8_t *)part->highs.data + to.first * (padded / 2);
        job.high_residuals = (float *)part->high_residuals.data + to.first;
    }
    if (part->scales.data) {
        job.scales = (float *)part->scales.data + to.first;
        job.residuals = (float *)part->residuals.data + to.first;
        clear_codes_after(to, padded);
    }
    const size_t wide_bytes = (size_t)pool_threads(cpu->pool) * (size_t)padded * sizeof *job.wide;
    if (part->type != ROW_F32 && !(job.wide = memory_alloc_aligned(wide_bytes)))
        return memory_failed("rows on their way into a collection", wide_bytes);
    atomic_init(&job.refused, to.count);
    run(cpu, to.count, padded, write_block, &job);
    memory_free(job.wide);
    const int64_t bad = atomic_load(&job.refused);
    *refused = bad < to.count ? bad : -1;
    return WW_OK;
}

ww_status cpu_rows_read(ww_device *device, row_range from, void *out)
{
    (void)device;
    const int32_t type = from.segment->type;
    const size_t bytes = (size_t)from.dim * row_type_bytes(type), room = (size_t)canon_padded(from.dim) * row_type_bytes(type);
    const char *rows = (const char *)from.segment->rows.data + (size_t)from.first * room;
    for (int64_t r = 0; r < from.count; r++)
        memcpy((char *)out + (size_t)r * bytes, rows + (size_t)r * room, bytes);
    for (int64_t i = 0; type == ROW_U8 && i < from.count * from.dim; i++)
        ((uint8_t *)out)[i] ^= 0x80;
    return WW_OK;
}

typedef struct gather_job {
    row_range to;
    const segment *from;
    const int64_t *sources;
    int32_t padded;
} gather_job;

/* Copies element `source` of `from`, `bytes` long, to element `at` of `to`. Does nothing if the buffers are empty. */
static void gather(const buffer *to, int64_t at, const buffer *from, int64_t source, size_t bytes)
{
    if (to->data)
        memcpy((char *)to->data + at * (int64_t)bytes, (const char *)from->data + source * (int64_t)bytes, bytes);
}

static void gather_block(void *context, int64_t item, int32_t worker)
{
    (void)worker;
    const gather_job *job = context;
    const segment *to = job->to.segment, *from = job->from;
    const int64_t begin = item * rows_in_block(job->padded);
    const int64_t end = min_i64(begin + rows_in_block(job->padded), job->to.count);
    for (int64_t r = begin; r < end; r++) {
        const int64_t at = job->to.first + r, source = job->sources[r];
        gather(&to->rows, at, &from->rows, source, (size_t)job->padded * row_type_bytes(from->type));
        gather(&to->norms, at, &from->norms, source, sizeof(float));
        gather(&to->codes, at, &from->codes, source, (size_t)job->padded);
        gather(&to->scales, at, &from->scales, source, sizeof(float));
        gather(&to->residuals, at, &from->residuals, source, sizeof(float));
        gather(&to->highs, at, &from->highs, source, (size_t)job->padded / 2);
        gather(&to->high_residuals, at, &from->high_residuals, source, sizeof(float));
    }
}

ww_status cpu_rows_gather(ww_device *device, row_range to, const segment *from, const int64_t *sources)
{
    gather_job job = {.to = to, .from = from, .sources = sources, .padded = canon_padded(to.dim)};
    clear_codes_after(to, job.padded);
    run((cpu_device *)device, to.count, job.padded, gather_block, &job);
    return WW_OK;
}
