/* One run of `warpwave search`: its settings and its results. search.c fills it, search_output.c prints it. */
#ifndef CLI_SEARCH_SEARCH_H
#define CLI_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <warpwave/device.h>
#include <warpwave/files.h>
#include <warpwave/vectors.h>

#include "warpwave/ids.h"
#include "warpwave/options.h"

typedef struct search_settings {
    const char *base, *queries, *format, *device, *ids, *id_column, *query_id_column, *out_neighbors, *out_distances;
    int64_t k, rows_skip, rows_take, repeat; /* rows_take is ROWS_ALL for all rows after rows_skip */
    int metric;                              /* a ww_metric */
    int screen;                              /* a ww_screen */
    int type;                                /* a ww_vector_type */
    int place;                               /* a ww_row_place */
    bool json, quiet, yes, check;
    const char *radius, *min_score; /* at most one is given: return all rows within it */
    int64_t limit;                  /* maximum number of hits per query; -1 until LIMIT_DEFAULT replaces it */
    bool ranged;                    /* a bound was given and read into `bound` (search_range.h) */
    float bound;
    const char *store, *collection, *where, *filter, *text, *model, *rerank; /* used in place of `base` (warpwave/store) */
    text_list params;
    int64_t nlist, nprobe; /* for an index (search_index.h); 0: not given */
    const char *recall_text;
    float recall; /* parsed from recall_text; 0: not given */
} search_settings;

enum { LIMIT_DEFAULT = 1000 };

#define ROWS_ALL INT64_C(-1)

typedef struct search_run {
    search_settings settings;
    ww_matrix *base, *query_file;
    int64_t base_rows, row_count, query_count; /* rows in the base file; rows taken from it; rows in the query file */
    int32_t dim;
    ids ids; /* one for each row of the base file; empty without --ids and --id-column */
    ww_device *device;
    ww_device_info device_info;
    ww_collection *collection;
    float *queries;
    int64_t *rows; /* query_count x k: row numbers in the base file, -1 for none */
    float *scores;
    int64_t *totals;          /* rows within the bound of each query; NULL without a bound */
    ww_search_stats stats;    /* of the last repetition */
    ww_damage_report checked; /* with --check; otherwise no rows */
    double load_seconds, add_seconds, index_seconds, search_seconds;
} search_run;

/* Searches a collection in a store and prints the results: a search with --store. */
#ifdef WARPWAVE_WITH_TEXT
ww_status search_in_store(const search_settings *settings);
#else
#define search_in_store(settings) command_left_out("store")
#endif

/* Refuses output paths before any work is done: endings that cannot be written, missing folders, and paths that are an input or
 * equal each other. */
ww_status search_output_check(const search_settings *settings);

/* Write the files that were asked for, then print the report: JSON or text. */
ww_status search_output_files(const search_run *run);
ww_status search_output_report(const search_run *run);

#endif
