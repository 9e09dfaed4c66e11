/* Searches over ranks give the bits of a search over one collection: rows, scores, ties, masks, empty shards. */
#include <string.h>

#include "mpi/ranks.h"

static int64_t rows[QUERIES * WW_K_MAX], rows_of_one[QUERIES * WW_K_MAX];
static float scores[QUERIES * WW_K_MAX], scores_of_one[QUERIES * WW_K_MAX];

static ww_query query_of_scene(int32_t k)
{
    ww_query query = ww_query_default();
    query.queries = scene_make()->queries[0];
    query.query_count = QUERIES;
    query.dim = DIM;
    query.k = k;
    return query;
}

static void expect_same_bits(int64_t places)
{
    EXPECT(memcmp(rows, rows_of_one, (size_t)places * sizeof *rows) == 0);
    EXPECT(memcmp(scores, scores_of_one, (size_t)places * sizeof *scores) == 0);
}

/* Each rank that has a hit finds it in its shard, by the number that ww_cluster_locate() gives. */
static void expect_located(const ranks *r, ww_cluster *cluster, int64_t places)
{
    for (int64_t i = 0; i < places; i++) {
        int32_t rank;
        int64_t row;
        char id[32];
        if (rows[i] < 0)
            continue;
        EXPECT(ww_cluster_locate(cluster, rows[i], &rank, &row) == WW_OK);
        if (rank != r->rank)
            continue;
        EXPECT(ww_collection_id(ww_cluster_collection(cluster), row, id, sizeof id, NULL) == WW_OK);
        EXPECT(strcmp(id, scene_make()->ids[rows[i]]) == 0);
    }
}

static void search_as_one(const ranks *r, ww_cluster *cluster, ww_collection *whole, int32_t k)
{
    ww_query query = query_of_scene(k);
    ww_search_stats stats = ww_search_stats_default();
    const bool sent = k % 3 == 1; /* the root has the queries, or every rank */
    EXPECT(ww_collection_search(whole, &query, rows_of_one, scores_of_one) == WW_OK);
    if (sent && r->rank != 0)
        query.queries = NULL;
    query.stats = &stats;
    EXPECT(ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores) == WW_OK);
    expect_same_bits(QUERIES * k);
    expect_located(r, cluster, QUERIES * k);
    EXPECT(k == 0 || ww_collection_count(ww_cluster_collection(cluster)) == 0 || stats.rows_screened + stats.rows_scored > 0);
    memset(rows, 0x55, sizeof rows);
    EXPECT(ww_cluster_search(cluster, &query, WW_ANSWER_ROOT, rows, scores) == WW_OK);
    if (r->rank == 0)
        expect_same_bits(QUERIES * k);
    else /* other ranks' arrays do not change */
        EXPECT(rows[0] == INT64_C(0x5555555555555555));
}

void case_bits(const ranks *r)
{
    static const int32_t ks[] = {37, 1, 10, 0, WW_K_MAX};
    const size_t k_count = r->count > 16 ? 2 : sizeof ks / sizeof *ks; /* fewer, because more than 16 ranks share a few cores */
    for (int metric = r->count > 16 ? WW_DOT : WW_COSINE; metric <= WW_DOT; metric++) {
        ww_cluster *cluster = cluster_of_scene(r, (ww_metric)metric);
        ww_collection *whole = collection_of_scene(r, (ww_metric)metric);
        for (size_t i = 0; i < k_count; i++)
            search_as_one(r, cluster, whole, ks[i]);
        ww_collection_destroy(whole);
        ww_cluster_destroy(cluster);
    }
}

/* Every rank has its own mask and filter, over the rows of its shard; an index of a shard changes nothing. */
void case_masks(const ranks *r)
{
    uint64_t whole_mask[(ROWS + 63) / 64] = {0}, own_mask[(ROWS + 63) / 64] = {0};
    ww_cluster *cluster = cluster_of_scene(r, WW_L2);
    ww_collection *whole = collection_of_scene(r, WW_L2), *shard = ww_cluster_collection(cluster);
    const int64_t first = share_first(r, r->rank), own = ww_collection_count(shard);
    for (int64_t row = 0; row < ROWS; row += 3)
        whole_mask[row / 64] |= UINT64_C(1) << row % 64;
    for (int64_t row = 0; row < own; row++)
        if ((first + row) % 3 == 0)
            own_mask[row / 64] |= UINT64_C(1) << row % 64;
    EXPECT(own < 20 || ww_collection_build_ivf(shard, NULL) == WW_OK);
    ww_query query = query_of_scene(10);
    ww_filter *filter = NULL;
    EXPECT(ww_filter_read("{\"n\": {\"$lt\": 250}}", &filter) == WW_OK);
    query.filter = filter;
    query.mask = whole_mask;
    query.mask_rows = ROWS;
    EXPECT(ww_collection_search(whole, &query, rows_of_one, scores_of_one) == WW_OK);
    query.mask = own_mask;
    query.mask_rows = own;
    EXPECT(ww_cluster_search(cluster, &query, WW_ANSWER_ALL, rows, scores) == WW_OK);
    expect_same_bits(QUERIES * 10);
    ww_filter_destroy(filter);
    ww_collection_destroy(whole);
    ww_cluster_destroy(cluster);
}
