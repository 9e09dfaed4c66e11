/* Shared by the files of `warpwave bench`: bench.c makes and adds the rows, ivf.c measures an index over them. */
#ifndef WW_CLI_BENCH_BENCH_H
#define WW_CLI_BENCH_BENCH_H

#include <stdbool.h>
#include <warpwave/device.h>
#include <warpwave/ivf.h>
#include <warpwave/vectors.h>

enum { BENCH_BATCHES = 3, BENCH_PROBES_MAX = 24 };

typedef struct bench_settings {
    const char *device;
    int64_t rows, dim, queries, k, repeat, nlist;
    int metric; /* a ww_metric */
    int screen; /* a ww_screen */
    int type;   /* a ww_vector_type */
    int place;  /* a ww_row_place */
    bool ivf, parity, json, quiet;
} bench_settings;

/* Results for one number of lists per query. */
typedef struct bench_probe {
    int64_t nprobe;        /* 0: the exact search */
    bool by_index;         /* the exact search used the index to exclude lists */
    double recall, proven; /* fractions of the k nearest */
    double one_seconds, all_seconds;
} bench_probe;

typedef struct bench {
    bench_settings settings;
    ww_device *device;
    ww_device_info device_info;
    ww_collection *collection;
    float *rows, *queries, *scores;
    int64_t *found;
    double *seconds;  /* one for each repetition */
    size_t row_bytes; /* bytes of all rows in their type */
    int read_threads;
    double read_seconds, add_seconds;
    int batch_count;
    int64_t batches[BENCH_BATCHES]; /* queries per search */
    double search_seconds[BENCH_BATCHES];
    ww_search_stats stats[BENCH_BATCHES]; /* of the last repetition */
    double build_seconds;                 /* of the index; so are the fields below */
    ww_ivf_info index;
    int probe_count;
    bench_probe probes[BENCH_PROBES_MAX]; /* the first is the exact search, nprobe 0 */
} bench;

/* Builds an index and searches with 1, 2, 4, ... lists until nearly all neighbours are found. Fills the index fields of the
 * bench. */
ww_status bench_ivf_measure(bench *b);

/* Prints the index fields. */
void bench_ivf_print(const bench *b);
void bench_ivf_print_json(const bench *b);

#endif
