/* Data sets for searches. */
#include "support/data/datasets.h"

#include <math.h>
#include <string.h>

#include "support/check.h"

static void normal(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    random_normals(random, rows, count * dim);
    random_normals(random, queries, query_count * dim);
}

/* Makes queries near some of the rows; `spread` is the relative distance of each element. */
static void queries_near(test_random *random, int32_t dim, const float *rows, int64_t count, float *queries,
                         int64_t query_count, float spread)
{
    for (int64_t q = 0; q < query_count; q++) {
        const float *row = rows + (int64_t)random_below(random, (uint64_t)count) * dim;
        for (int32_t i = 0; i < dim; i++)
            queries[q * dim + i] = row[i] + spread * random_normal(random);
    }
}

/* A thousand centres, or as many as there are rows; rows within 1% of them. */
static void clustered(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    const int64_t centres = count < 1000 ? count : 1000;
    random_normals(random, rows, centres * dim);
    for (int64_t r = centres; r < count; r++)
        for (int32_t i = 0; i < dim; i++)
            rows[r * dim + i] = rows[r % centres * dim + i] + 0.01f * random_normal(random);
    queries_near(random, dim, rows, count, queries, query_count, 0.01f);
}

/* Copies of a few rows: the same, an ulp away in one element, or 1e-6 in all. */
static void near_duplicates(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    random_normals(random, rows, (count < 20 ? count : 20) * dim);
    for (int64_t r = 20; r < count; r++) {
        float *row = rows + r * dim;
        memcpy(row, rows + r % 20 * dim, (size_t)dim * sizeof *row);
        const uint64_t kind = random_below(random, 3), i = random_below(random, (uint64_t)dim);
        if (kind == 1)
            row[i] = nextafterf(row[i], random_below(random, 2) ? INFINITY : -INFINITY);
        for (int32_t j = 0; kind == 2 && j < dim; j++)
            row[j] += 1e-6f * random_uniform(random);
    }
    queries_near(random, dim, rows, count, queries, query_count, 0.0f);
}

static void all_equal(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    random_normals(random, rows, dim);
    for (int64_t r = 1; r < count; r++)
        memcpy(rows + r * dim, rows, (size_t)dim * sizeof *rows);
    random_normals(random, queries, query_count * dim);
    memcpy(queries, rows, (size_t)dim * sizeof *queries);
}

/* Every element of a row the same. */
static void constant(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int64_t r = 0; r < count * dim; r += dim)
        for (int32_t i = 0; i < dim; i++)
            rows[r + i] = i == 0 ? random_normal(random) : rows[r];
    for (int64_t q = 0; q < query_count * dim; q += dim)
        for (int32_t i = 0; i < dim; i++)
            queries[q + i] = i == 0 ? random_normal(random) : queries[q];
}

/* Elements over twelve orders of magnitude. */
static void heavy_tailed(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int64_t i = 0; i < count * dim; i++)
        rows[i] = random_normal(random) * powf(10.0f, 3.0f * random_normal(random));
    for (int64_t i = 0; i < query_count * dim; i++)
        queries[i] = random_normal(random) * powf(10.0f, 3.0f * random_normal(random));
}

static void sparse(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int64_t i = 0; i < count * dim; i++)
        rows[i] = random_below(random, 20) == 0 ? random_normal(random) : 0.0f;
    for (int64_t i = 0; i < query_count * dim; i++)
        queries[i] = random_below(random, 20) == 0 ? random_normal(random) : 0.0f;
}

/* One coordinate swallows the scale, and codes of the others are 0. */
static void huge_coordinate(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    normal(random, dim, rows, count, queries, query_count);
    for (int64_t r = 0; r < count; r++)
        rows[r * dim + (int64_t)random_below(random, (uint64_t)dim)] = 1e6f * random_uniform(random);
    for (int64_t q = 1; q < query_count; q += 2)
        queries[q * dim] = 1e6f;
}

/* Denormals, and values whose squares are: some rows of each, some queries ordinary. */
static void denormals(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    static const float sizes[] = {1e-40f, 1e-30f, 1e-23f, 1e-18f, 1.0f};
    normal(random, dim, rows, count, queries, query_count);
    for (int64_t i = 0; i < count * dim; i++)
        rows[i] *= sizes[i / dim % 5];
    for (int64_t i = 0; i < query_count * dim; i++)
        queries[i] *= sizes[i / dim % 5];
}

static void integers(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int64_t i = 0; i < count * dim; i++)
        rows[i] = (float)random_below(random, 256);
    for (int64_t i = 0; i < query_count * dim; i++)
        queries[i] = (float)random_below(random, 256);
}

/* The coding error of a row points along the query, or against it: a query of +-1 has no error of its own, and each element of
 * a row is just inside the half step that rounds away from, or towards, the query's sign. Then the Cauchy-Schwarz inequality is
 * an equality, and rows with the same products differ by all that the bound allows. */
static void adversarial(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int32_t i = 0; i < dim; i++)
        queries[i] = random_below(random, 2) ? 1.0f : -1.0f;
    for (int64_t q = 1; q < query_count; q++)
        memcpy(queries + q * dim, queries, (size_t)dim * sizeof *queries);
    for (int64_t r = 0; r < count; r++) {
        const float along = random_below(random, 8) == 0 ? 0.49f : -0.49f;
        const int64_t largest = (int64_t)random_below(random, (uint64_t)dim);
        for (int32_t i = 0; i < dim; i++)
            rows[r * dim + i] = (float)(int32_t)random_below(random, 5) - 2.0f + along * queries[i];
        rows[r * dim + largest] = 127.0f * queries[largest]; /* makes the scale 1 */
    }
}

/* Rows from best to worst for the first query and from worst to best for the second: no sample of the first rows is like the
 * rest. */
static void sorted(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    normal(random, dim, rows, count, queries, query_count);
    for (int64_t r = 0; r < count; r++)
        for (int32_t i = 0; i < dim; i++)
            rows[r * dim + i] = 0.1f * rows[r * dim + i] + queries[i] * (1.0f - (float)r / (float)count);
    for (int32_t i = 0; query_count > 1 && i < dim; i++)
        queries[dim + i] = -queries[i];
}

const dataset datasets[] = {
    {"random normal", normal},
    {"clustered", clustered},
    {"near-duplicates", near_duplicates},
    {"all equal", all_equal},
    {"constant vectors", constant},
    {"heavy-tailed", heavy_tailed},
    {"sparse", sparse},
    {"one huge coordinate", huge_coordinate},
    {"denormals", denormals},
    {"integers", integers},
    {"adversarial", adversarial},
    {"sorted", sorted},
    {NULL, NULL},
};

/* Rows and queries each of a size of its own, from `least` on over `octaves` powers of two. */
static void sized(test_random *random, int32_t dim, float *vectors, int64_t count, int least, uint64_t octaves)
{
    for (int64_t v = 0; v < count; v++) {
        const float size = ldexpf(1.0f, least + (int)random_below(random, octaves));
        for (int32_t i = 0; i < dim; i++)
            vectors[v * dim + i] = random_uniform(random) * size;
    }
}

/* From denormals to where the squares of a thousand elements overflow: everything underflows or overflows, or nearly does. */
static void any_size(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    sized(random, dim, rows, count, -140, 195);
    sized(random, dim, queries, query_count, -140, 195);
}

/* Scales and norms on both sides of 2^-40 and 2^40, from where on a gate keeps every row and a row passes every gate. */
static void gates_end(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    sized(random, dim, rows, count / 2, -46, 12);
    sized(random, dim, rows + count / 2 * dim, count - count / 2, 34, 12);
    sized(random, dim, queries, query_count / 2, -46, 12);
    sized(random, dim, queries + query_count / 2 * dim, query_count - query_count / 2, 34, 12);
}

/* Thresholds equal to most scores: elements of -1, 0 and 1, in rows and queries. */
static void ties(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int64_t i = 0; i < count * dim; i++)
        rows[i] = (float)(int32_t)random_below(random, 3) - 1.0f;
    for (int64_t i = 0; i < query_count * dim; i++)
        queries[i] = (float)(int32_t)random_below(random, 3) - 1.0f;
}

/* The best rows look worst to the screen: all of their coding error points along the query, and rows that look better are just
 * below them (test_screen.c has the numbers). Queries differ by a factor, so that no two have the same threshold. */
static void at_the_bound(test_random *random, int32_t dim, float *rows, int64_t count, float *queries, int64_t query_count)
{
    for (int64_t r = 0; r < count; r++) {
        const uint64_t kind = random_below(random, 16); /* 0: hidden; 1 to 4: decoys */
        rows[r * dim] = 127.0f;
        for (int32_t i = 1; i < dim; i++)
            rows[r * dim + i] = kind == 0 ? 0.499f : kind < 5 && i <= dim * 47 / 100 ? 1.0f : 0.0f;
    }
    for (int64_t q = 0; q < query_count; q++)
        for (int32_t i = 0; i < dim; i++)
            queries[q * dim + i] = 1.0f + (float)q * 0.125f;
}

const dataset extreme_datasets[] = {
    {"any size", any_size}, {"the end of gates", gates_end}, {"ties", ties}, {"at the bound", at_the_bound}, {NULL, NULL},
};

const dataset *dataset_named(const char *name)
{
    const dataset *d = datasets;
    while (d->name && strcmp(d->name, name) != 0)
        d++;
    if (!d->name)
        fail_msg("there is no dataset '%s'", name);
    return d;
}
