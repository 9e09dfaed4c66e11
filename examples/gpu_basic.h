/* Shared by rocm_basic.c and cuda_basic.c: opens a GPU, describes it, stores vectors on it and on the CPU, searches both, and
 * compares the answers bit for bit. */
#ifndef EXAMPLES_GPU_BASIC_H
#define EXAMPLES_GPU_BASIC_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <warpwave.h>

enum { ROWS = 5000, DIM = 128, QUERIES = 8, K = 5 };
enum { SAME = 0, FAILED = 1, NO_DEVICE = 77 }; /* exit codes; 77 is what test programs say that could not run */

typedef struct answers {
    int64_t rows[QUERIES][K];
    float scores[QUERIES][K];
} answers;

/* Repeatable numbers between -1 and 1. */
static float next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

static void print_info(const ww_device_info *info)
{
    printf("%s: %s (%s), %s\n", info->id, info->name, info->arch, info->vendor);
    printf("  %d compute units, waves of %d, %lld bytes of shared memory a block\n", info->compute_units, info->wave_size,
           (long long)info->shared_bytes_per_block);
    printf("  memory: %.1f GiB, %.1f GiB free; PCI address %s\n", (double)info->memory_total_bytes / (1 << 30),
           (double)info->memory_free_bytes / (1 << 30), *info->pci_address ? info->pci_address : "none");
    printf("  driver %s; kernels: %s\n", info->driver_version, info->kernels);
}

/* Makes a collection of the vectors on `device` and searches it. Every call returns a status; it stops at the first that is not
 * WW_OK. */
static ww_status store_and_search(ww_device *device, const float *vectors, const float *queries, answers *found)
{
    ww_collection_config config = ww_collection_config_default();
    config.name = "example";
    config.dim = DIM;
    config.metric = WW_COSINE;
    ww_rows rows = ww_rows_default();
    rows.count = ROWS;
    rows.dim = DIM;
    rows.vectors = vectors;
    ww_query search = ww_query_default();
    search.queries = queries;
    search.query_count = QUERIES;
    search.dim = DIM;
    search.k = K;
    ww_collection *collection = NULL;
    ww_status status = ww_collection_create(device, &config, &collection);
    if (status == WW_OK)
        status = ww_collection_add(collection, &rows);
    if (status == WW_OK)
        status = ww_collection_search(collection, &search, found->rows[0], found->scores[0]);
    ww_collection_destroy(collection);
    return status;
}

static uint32_t score_bits(float score)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits;
}

static int compare(const answers *gpu, const answers *cpu)
{
    for (int q = 0; q < QUERIES; q++)
        printf("query %d: row %lld on the GPU, %lld on the CPU, score %.6f\n", q, (long long)gpu->rows[q][0],
               (long long)cpu->rows[q][0], gpu->scores[q][0]);
    int same = memcmp(gpu->rows, cpu->rows, sizeof gpu->rows) == 0;
    for (int i = 0; i < QUERIES * K; i++)
        same = same && score_bits(gpu->scores[i / K][i % K]) == score_bits(cpu->scores[i / K][i % K]);
    printf("%d results: rows and score bits are %s\n", QUERIES * K, same ? "the same" : "NOT the same");
    return same ? SAME : FAILED;
}

/* `backend` is "rocm" or "cuda". */
static int gpu_basic(const char *backend)
{
    static float vectors[ROWS * DIM], queries[QUERIES * DIM];
    static answers on_gpu, on_cpu;
    uint32_t state = 1;
    for (int i = 0; i < ROWS * DIM; i++)
        vectors[i] = next_number(&state);
    for (int i = 0; i < QUERIES * DIM; i++)
        queries[i] = next_number(&state);

    ww_device *gpu = NULL, *cpu = NULL;
    ww_device_info info = ww_device_info_default();
    ww_status status = ww_device_open(backend, &gpu);
    if (status == WW_NO_DEVICE) {
        printf("%s\n", ww_error_message());
        return NO_DEVICE;
    }
    if (status == WW_OK)
        status = ww_device_describe(gpu, &info);
    if (status == WW_OK)
        print_info(&info);
    if (status == WW_OK)
        status = store_and_search(gpu, vectors, queries, &on_gpu);
    if (status == WW_OK)
        status = ww_device_open("cpu", &cpu);
    if (status == WW_OK)
        status = store_and_search(cpu, vectors, queries, &on_cpu);
    if (status != WW_OK)
        fprintf(stderr, "%s: %s\n", ww_status_name(status), ww_error_message());
    ww_device_close(cpu);
    ww_device_close(gpu);
    return status == WW_OK ? compare(&on_gpu, &on_cpu) : FAILED;
}

#endif
