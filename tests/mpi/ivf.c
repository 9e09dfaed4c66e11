/* An index over ranks: its lists equal those of one collection with all rows, and answers by lists have the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/ranks.h"
#include "support/data/random.h"
#include "vectors/ivf/ivf.h"

enum { LISTED = 750, LISTED_DIM = 12, ASKED = 5, K = 7 };

typedef struct listed {
    float rows[LISTED][LISTED_DIM];
    float queries[ASKED][LISTED_DIM];
    ww_cluster *cluster;
    ww_collection *shard, *whole;
    int64_t first, end; /* rows of this rank */
} listed;

/* Half of the rows in clusters of small integers, so that scores are equal across ranks; half of them around zero at lengths of
 * many magnitudes, so that one list has most of those, and is split. */
static listed *listed_of(const ranks *r, ww_metric metric)
{
    static listed l;
    test_random random = {77};
    for (int i = 0; i < LISTED; i++) {
        const float length = expf(4.0f * random_normal(&random) - 6.0f);
        for (int d = 0; d < LISTED_DIM; d++)
            l.rows[i][d] = i % 2 ? length * random_normal(&random)
                                 : (float)random_below(&random, 5) - 2.0f + (float)(40 * (i / 2 % 11 >> d % 4 & 1));
    }
    for (int q = 0; q < ASKED; q++)
        for (int d = 0; d < LISTED_DIM; d++)
            l.queries[q][d] = l.rows[q * 31][d] + (q % 3 ? 0.0f : random_normal(&random));
    l.first = share_first(r, r->rank) * LISTED / ROWS;
    l.end = share_first(r, r->rank + 1) * LISTED / ROWS;
    l.cluster = empty_cluster(r, LISTED_DIM, metric);
    l.shard = ww_cluster_collection(l.cluster);
    l.whole = empty_collection(r, LISTED_DIM, metric);
    return &l;
}

/* Adds the rows [first, end) of all to both, as ranks share them. */
static void add_listed(const listed *l, int64_t first, int64_t end)
{
    ww_rows rows = ww_rows_default();
    rows.dim = LISTED_DIM;
    rows.vectors = l->rows[first];
    rows.count = end - first;
    EXPECT(ww_collection_add(l->whole, &rows) == WW_OK);
    const int64_t mine = first > l->first ? first : l->first, mine_end = end < l->end ? end : l->end;
    rows.vectors = l->rows[mine];
    rows.count = mine_end - mine;
    EXPECT(mine >= mine_end || ww_collection_add(l->shard, &rows) == WW_OK);
}

static void listed_free(listed *l)
{
    ww_cluster_destroy(l->cluster);
    ww_collection_destroy(l->whole);
}

/* Every list has on this rank the rows that it has in the whole collection, and what bounds them. */
static void expect_same_lists(const listed *l)
{
    const ivf *part = l->shard->index, *whole = l->whole->index; /* callers cannot see lists */
    EXPECT(part && whole && part->nlist == whole->nlist);
    EXPECT(memcmp(part->centroids, whole->centroids, (size_t)whole->nlist * LISTED_DIM * sizeof(float)) == 0);
    for (int64_t i = 0; i < whole->nlist; i++) {
        const ivf_list *all = &whole->lists[i], *mine = &part->lists[i];
        int64_t at = 0;
        EXPECT(all->was_split == mine->was_split && all->unbounded == mine->unbounded);
        EXPECT(memcmp(&all->farthest, &mine->farthest, sizeof(float)) == 0);
        EXPECT(memcmp(&all->nearest, &mine->nearest, sizeof(float)) == 0);
        for (int64_t j = 0; j < all->count; j++)
            if (all->rows[j] >= l->first && all->rows[j] < l->end)
                EXPECT(at < mine->count && mine->rows[at++] == all->rows[j] - l->first);
        EXPECT(at == mine->count);
    }
}

/* Expects the same answer from both, with the same number of proven hits, and returns that number. */
static int64_t expect_same_answers(const ranks *r, const listed *l, const ww_query *given)
{
    static int64_t rows[ASKED * LISTED];
    static float scores[ASKED * LISTED];
    ww_query query = *given;
    ww_results *expected = NULL, *got = NULL;
    ww_search_stats all = ww_search_stats_default(), one = ww_search_stats_default();
    int64_t proven = 0;
    query.queries = l->queries[0];
    query.query_count = ASKED;
    query.dim = LISTED_DIM;
    query.stats = &one;
    EXPECT(ww_collection_query(l->whole, &query, &expected) == WW_OK);
    if (given->mask) { /* a mask is over the rows of the rank's own shard */
        static uint64_t mine[(LISTED + 63) / 64];
        memset(mine, 0, sizeof mine);
        for (int64_t i = l->first; i < l->end; i++)
            mine[(i - l->first) / 64] |= (given->mask[i / 64] >> i % 64 & 1) << (i - l->first) % 64;
        query.mask = mine;
        query.mask_rows = l->end - l->first;
        if (l->end == l->first)
            query.mask = NULL;
    }
    query.queries = r->rank == 0 ? query.queries : NULL;
    query.stats = &all;
    EXPECT(ww_cluster_query(l->cluster, &query, WW_ANSWER_ALL, &got) == WW_OK);
    EXPECT(all.lists_read == one.lists_read && all.list_rows_read == one.list_rows_read);
    query.stats = NULL;
    EXPECT(ww_cluster_search(l->cluster, &query, WW_ANSWER_ALL, rows, scores) == WW_OK);
    for (int64_t q = 0; q < ASKED; q++) {
        EXPECT(ww_results_count(got, q) == ww_results_count(expected, q));
        EXPECT(ww_results_proven(got, q) == ww_results_proven(expected, q));
        proven += ww_results_proven(got, q);
        for (int64_t i = 0; i < ww_results_count(expected, q); i++) {
            EXPECT(ww_results_rows(got, q)[i] == ww_results_rows(expected, q)[i]);
            EXPECT(memcmp(&ww_results_scores(got, q)[i], &ww_results_scores(expected, q)[i], sizeof(float)) == 0);
            EXPECT(rows[q * query.k + i] == ww_results_rows(expected, q)[i]);
        }
    }
    ww_results_destroy(got);
    ww_results_destroy(expected);
    return proven;
}

static void expect_all_answers(const ranks *r, const listed *l)
{
    uint64_t mask[(LISTED + 63) / 64];
    ww_query query = ww_query_default();
    int64_t proven = 0;
    query.k = K;
    for (query.nprobe = 1; query.nprobe < 60; query.nprobe = query.nprobe * 3 + 1)
        proven += expect_same_answers(r, l, &query);
    EXPECT(proven > 0);
    query.nprobe = 2;
    query.k = 400; /* more than two lists have */
    expect_same_answers(r, l, &query);
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        mask[i] = UINT64_C(0x8421084210842108) << i % 5;
    query.mask = mask;
    query.mask_rows = LISTED;
    expect_same_answers(r, l, &query);
    query.k = K;
    expect_same_answers(r, l, &query);
    memset(mask, 0, sizeof mask);
    mask[3] = 9; /* so few that all rows are read */
    expect_same_answers(r, l, &query);
}

static void expect_recall(const ranks *r, const listed *l)
{
    ww_calibrate_config config = ww_calibrate_config_default();
    ww_query query = ww_query_default();
    query.k = K;
    query.recall = 0.8f;
    query.queries = l->queries[0], query.query_count = ASKED, query.dim = LISTED_DIM;
    ww_results *none = NULL;
    EXPECT(ww_cluster_query(l->cluster, &query, WW_ANSWER_ALL, &none) == WW_INVALID_ARGUMENT);
    EXPECT(strstr(ww_error_message(), "not calibrated"));
    config.query_count = 299;
    config.seed = 4;
    config.k = 5;
    EXPECT(ww_cluster_calibrate(l->cluster, &config) == WW_OK);
    EXPECT(ww_collection_calibrate(l->whole, &config) == WW_OK);
    const ivf_calibration *part = &l->shard->index->calibration, *whole = &l->whole->index->calibration;
    EXPECT(part->k == 5 && part->queries == 299);
    EXPECT(memcmp(part->rules, whole->rules, 5 * sizeof *part->rules) == 0);
    expect_same_answers(r, l, &query);
    config.queries = l->rows[0]; /* of the caller */
    EXPECT(ww_cluster_calibrate(l->cluster, &config) == WW_OK);
    EXPECT(ww_collection_calibrate(l->whole, &config) == WW_OK);
    EXPECT(memcmp(part->rules, whole->rules, 5 * sizeof *part->rules) == 0);
    config.query_count = 5;
    EXPECT(ww_cluster_calibrate(l->cluster, &config) == WW_OUT_OF_RANGE);
}

void case_ivf(const ranks *r)
{
    for (int metric = WW_COSINE; metric <= WW_DOT; metric++) {
        listed *l = listed_of(r, (ww_metric)metric);
        ww_ivf_config config = ww_ivf_config_default();
        config.nlist = 20;
        config.iterations = 4;
        config.seed = 3;
        EXPECT(ww_cluster_build_ivf(l->cluster, &config) == WW_INVALID_ARGUMENT); /* no rows */
        add_listed(l, 0, LISTED);
        EXPECT(ww_cluster_calibrate(l->cluster, NULL) == WW_NOT_FOUND);
        EXPECT(ww_cluster_build_ivf(l->cluster, &config) == WW_OK);
        EXPECT(ww_collection_build_ivf(l->whole, &config) == WW_OK);
        EXPECT(l->whole->index->lists_split > 0 || metric == WW_COSINE); /* angles are spread */
        expect_same_lists(l);
        expect_all_answers(r, l);
        expect_recall(r, l);
        if (r->count > 1) {
            config.seed = (uint64_t)r->rank; /* ranks disagree */
            EXPECT(ww_cluster_build_ivf(l->cluster, &config) == WW_INVALID_ARGUMENT);
            expect_same_lists(l);
        }
        listed_free(l);
    }
}

/* Later rows enter the lists of all ranks, and removed rows leave them. */
void case_ivf_life(const ranks *r)
{
    listed *l = listed_of(r, WW_L2);
    ww_query query = ww_query_default();
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = 16;
    add_listed(l, 0, LISTED - 10);
    EXPECT(ww_cluster_build_ivf(l->cluster, &config) == WW_OK);
    EXPECT(ww_collection_build_ivf(l->whole, &config) == WW_OK);
    expect_same_lists(l);
    add_listed(l, LISTED - 10, LISTED); /* so few that no list is split */
    query.k = K;
    for (query.nprobe = 1; query.nprobe < 9; query.nprobe += 3)
        expect_same_answers(r, l, &query);
    for (int64_t row = 0; row < LISTED; row += 3) {
        char id[32], own[32];
        const char *gone[] = {id}, *own_gone[] = {own};
        snprintf(id, sizeof id, "%lld", (long long)row);
        snprintf(own, sizeof own, "%lld", (long long)(row - l->first));
        EXPECT(ww_collection_remove(l->whole, gone, 1) == WW_OK);
        EXPECT(row < l->first || row >= l->end || ww_collection_remove(l->shard, own_gone, 1) == WW_OK);
    }
    for (query.nprobe = 1; query.nprobe < 9; query.nprobe += 3)
        expect_same_answers(r, l, &query);
    if (r->count > 1) { /* an index that was built by one rank for itself is not an index over ranks */
        ww_results *none = NULL;
        query.queries = l->queries[0], query.query_count = ASKED, query.dim = LISTED_DIM;
        if (r->rank == r->count - 1)
            EXPECT(ww_collection_drop_ivf(l->shard) == WW_OK);
        EXPECT(ww_cluster_query(l->cluster, &query, WW_ANSWER_ALL, &none) == WW_INVALID_ARGUMENT);
    }
    listed_free(l);
}
