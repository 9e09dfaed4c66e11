/* Where points start: at the first two principal components of their rows.
 *
 * They are computed from a sample, by power iteration: both axes are multiplied by the rows' covariance and made orthogonal, a
 * fixed number of times. The result need not converge, because it is only a start. Sums are in double precision, in a fixed
 * order, on one thread.
 */
#include <string.h>

#include "arithmetic/math/f64.h"
#include "arithmetic/philox.h"
#include "base/integers.h"
#include "base/memory.h"
#include "map/map.h"

enum {
    SAMPLE_NUMBERS = 1 << 21, /* all numbers of the sample's vectors together ... */
    SAMPLE_MIN = 256,         /* ... but at least this many vectors */
    ITERATIONS = 24,
    SUMS = 8, /* partial sums of a product, so that a compiler can vectorize it */
};

static const double EXTENT = 10.0; /* maximum distance of points from the middle at the start */
static const double NOISE = 1e-3;  /* added to each point, to separate equal rows */

/* Where these sequences of the seed start; the layout uses the first one. */
static const uint64_t AXES_SEQUENCE = UINT64_C(1) << 62, NOISE_SEQUENCE = UINT64_C(1) << 61;

static double fold(const double sums[SUMS])
{
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

static double dot(const double *a, const double *b, int32_t dim)
{
    double sums[SUMS] = {0};
    int32_t i = 0;
    for (; i + SUMS <= dim; i += SUMS)
        for (int32_t j = 0; j < SUMS; j++)
            sums[j] += a[i + j] * b[i + j];
    for (int32_t j = 0; i + j < dim; j++)
        sums[j] += a[i + j] * b[i + j];
    return fold(sums);
}

/* Subtracts the mean from `vector`, which is first scaled to length 1 if requested. */
static void centre(const map_start *start, int32_t dim, const float *vector, double *centred)
{
    double length = 0.0;
    for (int32_t i = 0; i < dim; i++)
        centred[i] = (double)vector[i];
    if (start->unit)
        length = canon_sqrt_f64(dot(centred, centred, dim));
    for (int32_t i = 0; i < dim; i++)
        centred[i] = (length > 0.0 ? centred[i] / length : centred[i]) - start->mean[i];
}

void start_put(map_job *job, const map_start *start, uint32_t number, const float *vector)
{
    const int32_t dim = job->collection->dim;
    double sums[2][SUMS] = {{0}};
    double length = 1.0;
    if (start->unit) {
        double squares[SUMS] = {0};
        for (int32_t i = 0; i < dim; i++)
            squares[i % SUMS] += (double)vector[i] * (double)vector[i];
        length = canon_sqrt_f64(fold(squares));
    }
    const double scale = length > 0.0 ? 1.0 / length : 1.0;
    for (int32_t i = 0; i < dim; i++) {
        const double value = (double)vector[i] * scale - start->mean[i];
        sums[0][i % SUMS] += value * start->axes[i];
        sums[1][i % SUMS] += value * start->axes[dim + i];
    }
    job->x[number] = (float)fold(sums[0]); /* a row's length is below 2^64 */
    job->y[number] = (float)fold(sums[1]);
}

/* Makes an axis orthogonal to the earlier ones, with length 1; 0 if nothing is left. */
static void make_orthogonal(double *axes, int32_t which, int32_t dim)
{
    double *axis = axes + (int64_t)which * dim;
    for (int32_t other = 0; other < which; other++) {
        const double *before = axes + (int64_t)other * dim;
        const double along = dot(axis, before, dim);
        for (int32_t i = 0; i < dim; i++)
            axis[i] -= along * before[i];
    }
    const double length = canon_sqrt_f64(dot(axis, axis, dim));
    for (int32_t i = 0; i < dim; i++)
        axis[i] = length > 0.0 ? axis[i] / length : 0.0;
}

/* Multiplies both axes by the covariance of `rows` centred vectors; writes the results to `next`. */
static void multiply(const double *sample, int64_t rows, int32_t dim, double *axes, double *next)
{
    memset(next, 0, 2 * (size_t)dim * sizeof *next);
    for (int64_t r = 0; r < rows; r++) {
        const double *row = sample + r * dim;
        for (int32_t which = 0; which < 2; which++) {
            const double along = dot(row, axes + (int64_t)which * dim, dim);
            double *sum = next + (int64_t)which * dim;
            for (int32_t i = 0; i < dim; i++)
                sum[i] += along * row[i];
        }
    }
    memcpy(axes, next, 2 * (size_t)dim * sizeof *axes);
    make_orthogonal(axes, 0, dim);
    make_orthogonal(axes, 1, dim);
}

/* Reads the sample into `sample`, centred, and computes the mean. Returns the number of rows, without those that were
 * removed. */
static ww_status read_sample(map_job *job, map_start *start, map_list list, double *sample, int64_t *rows)
{
    const int32_t dim = job->collection->dim;
    row_vectors vectors = {0};
    ww_status status = vectors_create(job, &vectors);
    *rows = 0;
    memset(start->mean, 0, (size_t)dim * sizeof *start->mean);
    for (int64_t first = 0; status == WW_OK && first < list.count; first += vectors.capacity) {
        status = vectors_read(job, list, first, &vectors);
        for (int64_t i = 0; status == WW_OK && i < vectors.count; i++)
            centre(start, dim, vectors.values + i * dim, sample + (*rows)++ * dim);
    }
    vectors_free(&vectors);
    for (int64_t r = 0; r < *rows; r++)
        for (int32_t i = 0; i < dim; i++)
            start->mean[i] += sample[r * dim + i];
    for (int32_t i = 0; i < dim && *rows > 0; i++)
        start->mean[i] /= (double)*rows;
    for (int64_t r = 0; r < *rows; r++)
        for (int32_t i = 0; i < dim; i++)
            sample[r * dim + i] -= start->mean[i];
    return status;
}

ww_status start_learn(map_job *job, map_start *start)
{
    const int32_t dim = job->collection->dim;
    const size_t bytes = 2 * (size_t)dim * sizeof(double);
    const map_list list = {.count = min_i64(job->count, max_i64(SAMPLE_NUMBERS / dim, SAMPLE_MIN))};
    const size_t sample_bytes = (size_t)list.count * (size_t)dim * sizeof(double);
    int64_t rows = 0;
    *start = (map_start){.unit = job->collection->metric == WW_COSINE};
    start->mean = memory_alloc((size_t)dim * sizeof(double));
    start->axes = memory_alloc(bytes);
    double *next = memory_alloc(bytes), *sample = memory_alloc(sample_bytes);
    ww_status status = start->mean && start->axes && next && sample ? WW_OK : memory_failed("a sample of rows", sample_bytes);
    if (status == WW_OK)
        status = read_sample(job, start, list, sample, &rows);
    for (int32_t i = 0; status == WW_OK && i < 2 * dim; i++) {
        const philox_block words = philox((uint64_t)job->seed, AXES_SEQUENCE + (uint64_t)i);
        start->axes[i] = random_uniform_f64(words.word[0], words.word[1], -1.0, 2.0);
    }
    for (int32_t i = 0; status == WW_OK && i < ITERATIONS; i++)
        multiply(sample, rows, dim, start->axes, next);
    memory_free(sample);
    memory_free(next);
    return status;
}

void start_free(map_start *start)
{
    memory_free(start->axes);
    memory_free(start->mean);
}

void start_scale(map_job *job)
{
    double largest = 0.0;
    for (int64_t i = 0; i < job->count; i++) {
        const double x = canon_abs_f64((double)job->x[i]), y = canon_abs_f64((double)job->y[i]);
        largest = x > largest ? x : largest;
        largest = y > largest ? y : largest;
    }
    const double scale = largest > 0.0 ? EXTENT / largest : 0.0, noise = largest > 0.0 ? NOISE : EXTENT;
    for (int64_t i = 0; i < job->count; i++) {
        const philox_block words = philox((uint64_t)job->seed, NOISE_SEQUENCE + (uint64_t)i);
        job->x[i] = (float)((double)job->x[i] * scale + random_uniform_f64(words.word[0], words.word[1], -noise, 2.0 * noise));
        job->y[i] = (float)((double)job->y[i] * scale + random_uniform_f64(words.word[2], words.word[3], -noise, 2.0 * noise));
    }
}
