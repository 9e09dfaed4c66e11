/* An index over ranks lives: rows come on every rank and go, lists are split and merged by all ranks together, and lists and
 * answers stay those of one collection that was written in the same way. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/memory_hooks.h"
#include "mpi/ranks.h"
#include "support/data/random.h"
#include "vectors/ivf/ivf.h"

enum { FIRST = 300, ALL = 900, CHANGED = 40, WIDE = 8, ASKED = 4, K = 9, LISTS = 24 };

typedef struct grown {
    const ranks *r;
    float rows[ALL + 2 * CHANGED][WIDE]; /* the last ones take the place of others */
    char ids[ALL][16];
    ww_cluster *cluster;
    ww_collection *shard, *whole;
} grown;

/* Rows are spread at first. Later ones are in one place, so that its list grows too large and is split more than once. No two
 * scores are equal: the order of rows is another one in the one collection. */
static grown *grown_of(const ranks *r, ww_metric metric)
{
    static grown g;
    test_random random = {4711};
    g.r = r;
    for (int i = 0; i < ALL + 2 * CHANGED; i++)
        for (int d = 0; d < WIDE; d++)
            g.rows[i][d] = i < FIRST ? 4.0f * random_normal(&random) : 3.0f * (float)(d % 2) + 0.5f * random_normal(&random);
    for (int i = 0; i < ALL; i++)
        snprintf(g.ids[i], sizeof g.ids[i], "g%d", i);
    g.cluster = empty_cluster(r, WIDE, metric);
    g.shard = ww_cluster_collection(g.cluster);
    g.whole = empty_collection(r, WIDE, metric);
    return &g;
}

static void grown_free(grown *g)
{
    ww_cluster_destroy(g->cluster);
    ww_collection_destroy(g->whole);
}

/* The first rows are in slices, later ones everywhere; the second rank never has any of them. */
static bool is_here(const grown *g, int64_t i)
{
    const int64_t count = g->r->count;
    const int64_t owner = i < FIRST ? i * count / FIRST : i % count;
    return g->r->rank == (owner == 1 ? 0 : owner);
}

typedef ww_status (*writing)(ww_collection *collection, const ww_rows *rows);

/* Writes rows [first, end), in the one collection and on the ranks that have them; values are those of rows from `values` on.
 */
static void write_rows(const grown *g, writing write, int64_t first, int64_t end, int64_t values)
{
    static float mine[ALL][WIDE];
    const char *ids[ALL], *my_ids[ALL];
    ww_rows rows = ww_rows_default();
    int64_t here = 0;
    for (int64_t i = first; i < end; i++) {
        ids[i - first] = g->ids[i];
        if (!is_here(g, i))
            continue;
        memcpy(mine[here], g->rows[values + i - first], sizeof mine[here]);
        my_ids[here++] = g->ids[i];
    }
    rows.dim = WIDE;
    rows.vectors = g->rows[values];
    rows.ids = ids;
    rows.count = end - first;
    EXPECT(write(g->whole, &rows) == WW_OK);
    rows.vectors = mine[0];
    rows.ids = my_ids;
    rows.count = here;
    EXPECT(here == 0 || write(g->shard, &rows) == WW_OK);
}

static void remove_rows(const grown *g, int64_t first, int64_t end, int64_t kept)
{
    for (int64_t i = first; i < end; i++) {
        const char *id[] = {g->ids[i]};
        if (i % kept == 0)
            continue;
        EXPECT(ww_collection_remove(g->whole, id, 1) == WW_OK);
        EXPECT(!is_here(g, i) || ww_collection_remove(g->shard, id, 1) == WW_OK);
    }
}

static void build(const grown *g)
{
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = LISTS;
    config.seed = 5;
    EXPECT(ww_cluster_build_ivf(g->cluster, &config) == WW_OK);
    EXPECT(ww_collection_build_ivf(g->whole, &config) == WW_OK);
}

/* ---- comparing ----------------------------------------------------------------------------------------------------------- */

static void lists_of(ww_collection *c, int64_t *lists)
{
    for (int i = 0; i < ALL; i++)
        lists[i] = -1;
    for (int64_t l = 0; l < c->index->nlist; l++)
        for (int64_t i = 0; i < c->index->lists[l].count; i++) {
            char id[32];
            if (ww_collection_id(c, c->index->lists[l].rows[i], id, sizeof id, NULL) == WW_OK) /* otherwise it was removed */
                lists[atoi(id + 1)] = l;
        }
}

/* Every live row of this rank is in the same list as in the single collection. */
static void expect_same_lists(const grown *g)
{
    static int64_t part[ALL], whole[ALL];
    EXPECT(g->shard->index && g->whole->index && g->shard->index->nlist == g->whole->index->nlist);
    EXPECT(memcmp(g->shard->index->centroids, g->whole->index->centroids,
                  (size_t)g->whole->index->nlist * WIDE * sizeof(float)) == 0);
    lists_of(g->shard, part);
    lists_of(g->whole, whole);
    for (int i = 0; i < ALL; i++)
        EXPECT(part[i] == (is_here(g, i) ? whole[i] : -1));
}

static void expect_same_answer(const grown *g, int64_t nprobe)
{
    ww_results *expected = NULL, *got = NULL;
    ww_query query = ww_query_default();
    query.queries = g->rows[FIRST - 2]; /* two among the first rows, two among the others */
    query.query_count = ASKED;
    query.dim = WIDE;
    query.k = K;
    query.nprobe = nprobe;
    query.fetch = WW_FETCH_IDS;
    EXPECT(ww_cluster_query(g->cluster, &query, WW_ANSWER_ALL, &got) == WW_OK);
    EXPECT(ww_collection_query(g->whole, &query, &expected) == WW_OK);
    for (int64_t q = 0; q < ASKED; q++) {
        EXPECT(ww_results_count(got, q) == ww_results_count(expected, q));
        EXPECT(ww_results_proven(got, q) == ww_results_proven(expected, q));
        for (int64_t i = 0; i < ww_results_count(expected, q); i++) {
            EXPECT(strcmp(ww_results_id(got, q, i), ww_results_id(expected, q, i)) == 0);
            EXPECT(memcmp(&ww_results_scores(got, q)[i], &ww_results_scores(expected, q)[i], sizeof(float)) == 0);
        }
    }
    ww_results_destroy(got);
    ww_results_destroy(expected);
}

static void expect_same_info(const grown *g)
{
    ww_ivf_info got = ww_ivf_info_default(), one = ww_ivf_info_default();
    EXPECT(ww_cluster_describe_ivf(g->cluster, &got) == WW_OK);
    EXPECT(ww_collection_describe_ivf(g->whole, &one) == WW_OK);
    EXPECT(got.nlist == one.nlist && got.rows == one.rows && got.rows_largest == one.rows_largest);
    EXPECT(got.rows_mean == one.rows_mean && got.rows_trained == one.rows_trained && got.rows_added == one.rows_added);
    EXPECT(got.lists_split == one.lists_split && got.bytes > 0);
    EXPECT(got.calibration_k == one.calibration_k && got.calibration_queries == one.calibration_queries);
    EXPECT(got.calibration_rows_added == one.calibration_rows_added);
    EXPECT(got.calibration_rows_removed == one.calibration_rows_removed);
    EXPECT((got.calibration_time > 0) == (one.calibration_k > 0));
    expect_same(got.calibration_time);
    EXPECT(got.loss > 0.999999 * one.loss && got.loss < 1.000001 * one.loss); /* summed in another order */
    expect_same(got.bytes);
}

static void expect_same_all(const grown *g)
{
    expect_same_info(g); /* splits large lists, as all following calls would */
    expect_same_lists(g);
    for (int64_t nprobe = 1; nprobe < 40; nprobe = 2 * nprobe + 1)
        expect_same_answer(g, nprobe);
}

/* ---- cases --------------------------------------------------------------------------------------------------------------- */

static void calibrate(const grown *g)
{
    ww_calibrate_config config = ww_calibrate_config_default();
    config.queries = g->rows[0];
    config.query_count = FIRST;
    config.k = 3;
    config.recall = 0.9f;
    EXPECT(ww_collection_calibrate(g->shard, &config) == WW_UNSUPPORTED);
    EXPECT(strstr(ww_error_message(), "on all of them together"));
    EXPECT(ww_cluster_calibrate(g->cluster, &config) == WW_OK);
    EXPECT(ww_collection_calibrate(g->whole, &config) == WW_OK);
    EXPECT(memcmp(g->shard->index->calibration.rules, g->whole->index->calibration.rules, 3 * sizeof(ivf_rule)) == 0);
}

void case_ivf_growth(const ranks *r)
{
    for (int metric = WW_COSINE; metric <= WW_DOT; metric++) {
        if (r->count > 8 && metric != WW_L2) /* many ranks share few cores */
            continue;
        grown *g = grown_of(r, (ww_metric)metric);
        write_rows(g, ww_collection_add, 0, FIRST, 0);
        build(g);
        expect_same_all(g);
        calibrate(g);
        write_rows(g, ww_collection_add, FIRST, ALL - 100, FIRST);
        expect_same_answer(g, 3); /* a search is the first to see the new rows */
        EXPECT(g->whole->index->lists_split > 1);
        expect_same_all(g);
        write_rows(g, ww_collection_add, ALL - 100, ALL, ALL - 100);
        calibrate(g); /* also calibrates */
        expect_same_all(g);
        write_rows(g, ww_collection_upsert, ALL - 150, ALL - 150 + CHANGED, ALL);
        write_rows(g, ww_collection_update, 20, 20 + CHANGED, ALL + CHANGED);
        expect_same_all(g);
        remove_rows(g, 0, FIRST, 10);
        expect_same_all(g);
        const int64_t nlist = g->whole->index->nlist;
        EXPECT(ww_collection_compact(g->whole, NULL, NULL) == WW_OK);
        EXPECT(ww_cluster_compact(g->cluster, NULL, NULL) == WW_OK);
        EXPECT(g->whole->index->nlist < nlist); /* lists were merged */
        expect_same_all(g);
        remove_rows(g, FIRST, ALL, ALL); /* the row with number FIRST stays, and those that stayed before */
        EXPECT(ww_collection_compact(g->whole, NULL, NULL) == WW_OK);
        EXPECT(ww_cluster_compact(g->cluster, NULL, NULL) == WW_OK);
        expect_same_all(g);
        grown_free(g);
    }
}

static int stop_root(long long done, long long total, void *user)
{
    const ranks *r = user;
    return r->rank == 0 && done <= total;
}

/* A shard without rows keeps its part, and an index without any rows is dropped, as in one collection. */
void case_ivf_end(const ranks *r)
{
    grown *g = grown_of(r, WW_L2);
    ww_ivf_info info = ww_ivf_info_default();
    EXPECT(ww_cluster_describe_ivf(g->cluster, &info) == WW_NOT_FOUND);
    EXPECT(ww_cluster_drop_ivf(g->cluster) == WW_NOT_FOUND);
    write_rows(g, ww_collection_add, 0, FIRST, 0);
    build(g);
    EXPECT(ww_cluster_describe_ivf(g->cluster, NULL) == WW_INVALID_ARGUMENT);
    if (r->count > 1) {
        for (int64_t i = 0; i < FIRST; i++)
            if (r->count - 1 == (i * r->count / FIRST == 1 ? 0 : i * r->count / FIRST))
                EXPECT(ww_collection_remove(g->whole, (const char *[]){g->ids[i]}, 1) == WW_OK);
        EXPECT(r->rank < r->count - 1 || ww_collection_clear(g->shard) == WW_OK);
        expect_same_answer(g, 3);
        write_rows(g, ww_collection_add, FIRST, FIRST + 50, FIRST);
        expect_same_answer(g, 3);
    }
    remove_rows(g, 1, 5, ALL); /* of the first rank */
    EXPECT(ww_cluster_compact(g->cluster, stop_root, (void *)(uintptr_t)r) == WW_CANCELLED);
    EXPECT(ww_cluster_drop_ivf(g->cluster) == WW_OK);
    EXPECT(!g->shard->index && ww_cluster_drop_ivf(g->cluster) == WW_NOT_FOUND);
    build(g);
    if (r->rank == 0) /* one rank drops its part by itself; then all ranks can drop the rest */
        EXPECT(ww_collection_drop_ivf(g->shard) == WW_OK);
    EXPECT(r->count == 1 || ww_cluster_drop_ivf(g->cluster) == WW_OK);
    EXPECT(!g->shard->index);
    build(g);
    for (int64_t i = 0; i < ALL; i++) {
        int64_t missing;
        EXPECT(ww_collection_discard(g->shard, (const char *[]){g->ids[i]}, 1, &missing) == WW_OK);
    }
    EXPECT(ww_cluster_compact(g->cluster, NULL, NULL) == WW_OK);
    EXPECT(!g->shard->index);
    grown_free(g);
}

/* ---- faults -------------------------------------------------------------------------------------------------------------- */

/* Without memory for a split the lists stay as they are, and the answer is right anyway; without memory to compact or merge, no
 * row is lost. Whatever fails, all ranks have the same lists. */
static bool grow_without_memory(const ranks *r, int victim, int64_t n)
{
    grown *g = grown_of(r, WW_L2);
    ww_query query = ww_query_default();
    static int64_t rows[ASKED * K], exact[ASKED * K];
    static float scores[ASKED * K];
    query.queries = g->rows[FIRST - 2], query.query_count = ASKED, query.dim = WIDE, query.k = K;
    write_rows(g, ww_collection_add, 0, FIRST, 0);
    build(g);
    write_rows(g, ww_collection_add, FIRST, ALL, FIRST);
    remove_rows(g, 0, FIRST, 10);
    EXPECT(ww_cluster_search(g->cluster, &query, WW_ANSWER_ALL, exact, scores) == WW_OK);
    query.nprobe = g->shard->index->nlist + ALL; /* more lists than there will be */
    const int64_t before = memory_failures_made();
    if (r->rank == victim)
        memory_fail_at(n);
    ww_status status = ww_cluster_search(g->cluster, &query, WW_ANSWER_ALL, rows, scores);
    EXPECT(status == WW_OUT_OF_MEMORY || (status == WW_OK && memcmp(rows, exact, sizeof rows) == 0));
    expect_same(status);
    expect_same(g->shard->index->nlist);
    status = ww_cluster_compact(g->cluster, NULL, NULL);
    EXPECT(status == WW_OK || status == WW_OUT_OF_MEMORY);
    expect_same(status);
    memory_fail_at(0);
    expect_same(g->shard->index->nlist);
    EXPECT(ww_cluster_compact(g->cluster, NULL, NULL) == WW_OK);
    EXPECT(ww_collection_compact(g->whole, NULL, NULL) == WW_OK);
    query.nprobe = 2; /* lists may be others than those of the one collection; all rows are in them */
    EXPECT(ww_cluster_search(g->cluster, &query, WW_ANSWER_ALL, rows, scores) == WW_OK);
    EXPECT(g->shard->index->rows == ww_collection_count(g->shard));
    int64_t failed = memory_failures_made() - before, any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    grown_free(g);
    return any > 0;
}

void case_ivf_faults(const ranks *r)
{
    for (int victim = 0; victim < r->count; victim++) {
        int64_t n = 1;
        const int64_t held = memory_blocks_held();
        while (grow_without_memory(r, victim, n))
            n += getenv("WARPWAVE_TEST_LONG") ? 1 : 1 + n / 4;
        EXPECT(n > 40);
        EXPECT(memory_blocks_held() == held);
    }
}
