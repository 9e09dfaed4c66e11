/* IVF: an index for collections of very many rows.
 *
 * k-means divides the rows into lists, each around a centroid. A query with `nprobe` reads the rows of the lists whose
 * centroids are nearest, and no others: it may miss a neighbour, and ww_results_proven() says how many of its hits are
 * certainly right. A query without `nprobe` is exact. Lists and answers are the same on every device.
 * docs/guide/ivf.md says when an index is worth its cost.
 *
 * The index follows every write: new rows enter their nearest list at once, a list that has grown beyond four times the mean is
 * split, and removed rows are skipped until compact, when they leave their list and lists that have become tiny are merged.
 * ww_collection_clear() drops the index.
 *
 * A store keeps the index in the file: these calls, and writes that change it, are one transaction each. While an index is
 * built or calibrated, others can search the collection but not write to the store. In a store removed rows leave their list
 * at once. If the tables of an index are damaged, exact searches still work; queries by the index and writes return
 * WW_CORRUPT_FILE until it is built again or dropped.
 */
#ifndef WARPWAVE_IVF_H
#define WARPWAVE_IVF_H

#include <warpwave/vectors.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_IVF_LISTS_MAX 1048576

typedef struct ww_ivf_config {
    size_t struct_size;
    int64_t nlist;        /* lists; 0: 4 times the square root of the rows, with at least 16 rows per list */
    int64_t sample_rows;  /* rows that k-means learns from, drawn at random; 0: 256 per list; at most all rows */
    int32_t iterations;   /* of k-means at most; 0: 10. It ends sooner when the loss no longer falls */
    uint64_t seed;        /* of the sample and the first centroids */
    ww_progress progress; /* in rows compared with centroids; may be NULL */
    void *progress_user;
} ww_ivf_config;

typedef struct ww_ivf_info {
    size_t struct_size; /* set by ww_ivf_info_default() */
    int64_t nlist;
    int64_t rows;         /* in lists; includes rows removed since the last compact, except in a store */
    int64_t rows_largest; /* of the largest list */
    double rows_mean;
    double loss;                 /* mean over the rows of the build: squared distance to the centroid, or 1 - cosine */
    int64_t bytes;               /* of lists and centroids, on host and device; in a store 0 before the first search */
    int64_t rows_trained;        /* when the index was built */
    int64_t rows_added;          /* since then; an upsert counts as one */
    int64_t lists_split;         /* while the index was built, and since then */
    int64_t calibration_queries; /* of the last ww_collection_calibrate(); 0: there was none since the index was built */
    int32_t calibration_k;
    int64_t calibration_rows_added;   /* since then; an upsert counts as one */
    int64_t calibration_rows_removed; /* since then, with the rows that an upsert has replaced */
    int64_t calibration_time;         /* of that calibration, in seconds since 1970 */
} ww_ivf_info;

/* Queries from which ww_collection_calibrate() learns how many lists each recall needs. */
typedef struct ww_calibrate_config {
    size_t struct_size;
    const float *queries; /* query_count x dim, typical ones; NULL: rows of the collection, drawn at random; a row does not
                           * count as its own neighbour */
    int64_t query_count;  /* 0: 1000, or 299 if there are fewer rows; at least 299 */
    int64_t query_stride; /* floats from one query to the next; 0 means the collection's dimension */
    int32_t k;            /* neighbours of each query; 0: 10; at most 1024, and fewer than there are rows */
    uint64_t seed;        /* for drawing rows */
    ww_progress progress; /* in queries; may be NULL */
    void *progress_user;
    float recall; /* the recall that queries will ask for most: the rules that read the fewest lists for it are kept. 0: the
                   * rules that read the fewest lists on average over all recalls */
} ww_calibrate_config;

/* Every default is zero; device.h says how ..._default() and ..._init() differ. */
WW_API ww_status ww_ivf_config_init(void *value, size_t struct_size);
WW_API ww_status ww_ivf_info_init(void *value, size_t struct_size);
WW_API ww_status ww_calibrate_config_init(void *value, size_t struct_size);

static inline ww_ivf_config ww_ivf_config_default(void)
{
    ww_ivf_config value;
    ww_ivf_config_init(&value, sizeof value);
    return value;
}
static inline ww_calibrate_config ww_calibrate_config_default(void)
{
    ww_calibrate_config value;
    ww_calibrate_config_init(&value, sizeof value);
    return value;
}
static inline ww_ivf_info ww_ivf_info_default(void)
{
    ww_ivf_info value;
    ww_ivf_info_init(&value, sizeof value);
    return value;
}

/* Builds the index from the live rows, and replaces an existing one. NULL for `config`: the defaults. Refuses a collection
 * without rows, a number out of range and more lists than rows. WW_CANCELLED if the callback stops it. After a failure the
 * collection is as it was, with its old index. Waits for readers, and they wait until it is done. */
WW_API ww_status ww_collection_build_ivf(ww_collection *collection, const ww_ivf_config *config);

/* Learns for every recall how many lists a query must read, so that queries can ask for a `recall`. NULL for `config`: the
 * defaults. A recall R then means: among such queries at most 1% fall below R, at a confidence of 95%. This holds for
 * queries without a filter that resemble those of the calibration, and for the rows of that time: ww_ivf_info says when that
 * was, and how many rows were added and removed since. The same rows, queries and seed give the same numbers on every device.
 * WW_NOT_FOUND without an index. Refuses fewer than 299 queries, which cannot give that confidence, and queries that are not
 * finite. WW_CANCELLED if the callback stops it. After a failure the last calibration stays. Waits for readers, and they wait
 * until it is done. */
WW_API ww_status ww_collection_calibrate(ww_collection *collection, const ww_calibrate_config *config);

/* Removes the index. WW_NOT_FOUND if there is none. Waits for readers. */
WW_API ww_status ww_collection_drop_ivf(ww_collection *collection);

/* Describes the index. WW_NOT_FOUND if there is none. Refuses NULL. May wait for a writer. */
WW_API ww_status ww_collection_describe_ivf(ww_collection *collection, ww_ivf_info *info);

#ifdef __cplusplus
}
#endif

#endif
