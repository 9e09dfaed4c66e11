/* Hits that a search over ranks calls proven are correct, whatever the ranks have done to their shards: rows were added,
 * changed and removed, lists were split and merged, and some ranks compacted their shards by themselves while others did not.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/ranks.h"
#include "support/data/random.h"
#include "vectors/ivf/ivf.h"

enum { FIRST = 260, ALL = 700, WIDE = 6, ASKED = 60, K = 6, LISTS = 16 };

typedef struct proofs {
    const ranks *r;
    ww_metric metric;
    test_random random;
    bool rounded;          /* to integers, so that rows of different lists and ranks have equal scores */
    float rows[ALL][WIDE]; /* the current rows of all ranks */
    bool live[ALL];        /* on the rank that has them */
    char ids[ALL][16];     /* "0", "1", ... */
    float queries[ASKED][WIDE];
    ww_cluster *cluster;
    ww_collection *shard;
    int64_t hits, proven, missed; /* for searches that did not read all lists */
} proofs;

/* Neighbouring rows are on different ranks. The second rank has only a few. */
static int owner_of(const proofs *p, int64_t row)
{
    const int owner = (int)(row % p->r->count);
    return owner == 1 && row % 5 ? 0 : owner;
}

static bool is_here(const proofs *p, int64_t row)
{
    return owner_of(p, row) == p->r->rank;
}

static void draw(proofs *p, float *vector, bool spread)
{
    for (int d = 0; d < WIDE; d++) {
        const float value =
            spread ? 4.0f * random_normal(&p->random) : 9.0f * (float)(d % 2) + 0.8f * random_normal(&p->random);
        vector[d] = p->rounded ? rintf(value) : value;
    }
}

static proofs *proofs_of(const ranks *r, ww_metric metric, bool rounded)
{
    static proofs p;
    p = (proofs){.r = r, .metric = metric, .rounded = rounded, .random = {99}};
    for (int i = 0; i < ALL; i++)
        snprintf(p.ids[i], sizeof p.ids[i], "%d", i);
    for (int q = 0; q < ASKED; q++)
        draw(&p, p.queries[q], q % 2);
    p.cluster = empty_cluster(r, WIDE, metric);
    p.shard = ww_cluster_collection(p.cluster);
    return &p;
}

/* ---- changes ------------------------------------------------------------------------------------------------------------- */

/* Gives every `step`-th row of [first, end) new values; a row that does not exist is added. */
static void write_rows(proofs *p, int64_t first, int64_t end, int64_t step, bool spread)
{
    for (int64_t i = first; i < end; i += step) {
        ww_rows row = ww_rows_default();
        draw(p, p->rows[i], spread);
        p->live[i] = true;
        row.dim = WIDE;
        row.count = 1;
        row.vectors = p->rows[i];
        row.ids = (const char *[]){p->ids[i]};
        EXPECT(!is_here(p, i) || ww_collection_upsert(p->shard, &row) == WW_OK);
    }
}

/* Removes all live rows of [first, end) except every `kept`-th. */
static void remove_rows(proofs *p, int64_t first, int64_t end, int64_t kept)
{
    for (int64_t i = first; i < end; i++) {
        if (i % kept == 0 || !p->live[i])
            continue;
        p->live[i] = false;
        EXPECT(!is_here(p, i) || ww_collection_remove(p->shard, (const char *[]){p->ids[i]}, 1) == WW_OK);
    }
}

/* Compacts the shards of ranks with even numbers, or of those with odd ones. */
static void compact_some(const proofs *p, int odd)
{
    EXPECT(p->r->rank % 2 != odd || ww_collection_compact(p->shard, NULL, NULL) == WW_OK);
}

/* The last rank loses all its rows. */
static void clear_last(proofs *p)
{
    const int last = p->r->count - 1;
    for (int64_t i = 0; i < ALL; i++)
        p->live[i] = p->live[i] && owner_of(p, i) != last;
    EXPECT(p->r->rank != last || ww_collection_clear(p->shard) == WW_OK);
}

/* ---- comparing ----------------------------------------------------------------------------------------------------------- */

static double score_of(const proofs *p, int64_t q, int64_t row)
{
    double dot = 0.0, squares = 0.0, lengths[2] = {0.0, 0.0};
    for (int d = 0; d < WIDE; d++) {
        const double a = (double)p->queries[q][d], b = (double)p->rows[row][d];
        dot += a * b;
        squares += (a - b) * (a - b);
        lengths[0] += a * a;
        lengths[1] += b * b;
    }
    if (p->metric == WW_L2)
        return sqrt(squares);
    const double length = sqrt(lengths[0] * lengths[1]);
    return p->metric == WW_DOT ? dot : length > 0.0 ? dot / length : 0.0;
}

static int by_score(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool is_close(double a, double b)
{
    return fabs(a - b) <= 1e-4 * (1.0 + fabs(b));
}

/* An exact answer has the best scores of all live rows, each of a row that has it. */
static void expect_exact(const proofs *p, const ww_results *exact, int64_t q)
{
    static double best[ALL];
    int64_t live = 0;
    bool seen[ALL] = {false};
    for (int64_t i = 0; i < ALL; i++)
        if (p->live[i])
            best[live++] = p->metric == WW_L2 ? score_of(p, q, i) : -score_of(p, q, i);
    qsort(best, (size_t)live, sizeof *best, by_score);
    EXPECT(live >= K && ww_results_count(exact, q) == K && ww_results_proven(exact, q) == K);
    for (int64_t i = 0; i < K; i++) {
        const int64_t row = atoll(ww_results_id(exact, q, i));
        const double score = (double)ww_results_scores(exact, q)[i];
        EXPECT(p->live[row] && !seen[row]);
        EXPECT(is_close(score, score_of(p, q, row)));
        EXPECT(is_close(score, p->metric == WW_L2 ? best[i] : -best[i]));
        seen[row] = true;
    }
}

/* Is the hit the same one, with the same bits? */
static bool is_same_hit(const ww_results *a, const ww_results *b, int64_t q, int64_t i)
{
    return ww_results_rows(a, q)[i] == ww_results_rows(b, q)[i] &&
           strcmp(ww_results_id(a, q, i), ww_results_id(b, q, i)) == 0 &&
           memcmp(&ww_results_scores(a, q)[i], &ww_results_scores(b, q)[i], sizeof(float)) == 0;
}

static ww_results *ask(const proofs *p, int64_t nprobe)
{
    ww_results *results = NULL;
    ww_query query = ww_query_default();
    query.queries = p->queries[0];
    query.query_count = ASKED;
    query.dim = WIDE;
    query.k = K;
    query.nprobe = nprobe;
    query.fetch = WW_FETCH_IDS;
    EXPECT(ww_cluster_query(p->cluster, &query, WW_ANSWER_ALL, &results) == WW_OK);
    return results;
}

/* Searches a few lists: the proven hits are the first of the exact answer. */
static void expect_true_proofs(proofs *p, const ww_results *exact, int64_t nprobe)
{
    ww_results *found = ask(p, nprobe);
    for (int64_t q = 0; q < ASKED; q++) {
        const int64_t proven = ww_results_proven(found, q);
        EXPECT(ww_results_count(found, q) == K && proven >= 0 && proven <= K);
        for (int64_t i = 0; i < K; i++) {
            const bool same = is_same_hit(found, exact, q, i);
            EXPECT(same || i >= proven);
            p->missed += !same;
        }
        p->hits += K;
        p->proven += proven;
    }
    ww_results_destroy(found);
}

/* Compares searches of some lists and of all lists with the exact search, and the exact search with all live rows. The first
 * search by lists splits those that have become too large. */
static void expect_proofs(proofs *p)
{
    ww_ivf_info info = ww_ivf_info_default();
    ww_results *exact = ask(p, 0);
    for (int64_t q = 0; q < ASKED; q++)
        expect_exact(p, exact, q);
    for (int64_t nprobe = 1; nprobe < LISTS; nprobe = 2 * nprobe + 1)
        expect_true_proofs(p, exact, nprobe);
    EXPECT(ww_cluster_describe_ivf(p->cluster, &info) == WW_OK);
    ww_results *all = ask(p, info.nlist);
    for (int64_t q = 0; q < ASKED; q++) {
        EXPECT(ww_results_count(all, q) == K && ww_results_proven(all, q) == K);
        for (int64_t i = 0; i < K; i++)
            EXPECT(is_same_hit(all, exact, q, i));
    }
    ww_results_destroy(all);
    ww_results_destroy(exact);
}

/* ---- the case ------------------------------------------------------------------------------------------------------------ */

static int64_t lists_split(const proofs *p)
{
    ww_ivf_info info = ww_ivf_info_default();
    EXPECT(ww_collection_describe_ivf(p->shard, &info) == WW_OK);
    return info.lists_split;
}

static void live_and_prove(proofs *p)
{
    ww_ivf_config config = ww_ivf_config_default();
    config.nlist = LISTS;
    config.seed = 5;
    write_rows(p, 0, FIRST, 1, true);
    EXPECT(ww_cluster_build_ivf(p->cluster, &config) == WW_OK);
    expect_proofs(p);
    remove_rows(p, 0, FIRST, 3);
    expect_proofs(p);
    compact_some(p, 0);
    expect_proofs(p);
    const int64_t split = lists_split(p);
    write_rows(p, FIRST, ALL - 200, 1, false);
    expect_proofs(p);
    EXPECT(lists_split(p) > split);
    remove_rows(p, FIRST, ALL - 200, 2);
    compact_some(p, 1);
    expect_proofs(p);
    compact_some(p, 0);
    expect_proofs(p);
    write_rows(p, 1, FIRST, 2, true); /* some of them are removed rows that come back */
    expect_proofs(p);
    write_rows(p, ALL - 200, ALL, 1, false);
    remove_rows(p, 0, FIRST, 5);
    compact_some(p, 0); /* before any rank knows which lists are too large */
    expect_proofs(p);
    if (p->r->count > 1) {
        clear_last(p);
        expect_proofs(p);
    }
    EXPECT(ww_cluster_compact(p->cluster, NULL, NULL) == WW_OK);
    expect_proofs(p);
    write_rows(p, 0, FIRST, 4, true);
    expect_proofs(p);
}

void case_ivf_proven(const ranks *r)
{
    for (int metric = WW_COSINE; metric <= WW_DOT; metric++)
        for (int rounded = 0; rounded < 2; rounded++) {
            if (r->count > 8 && (metric != WW_L2 || rounded)) /* many ranks share few cores */
                continue;
            proofs *p = proofs_of(r, (ww_metric)metric, rounded);
            live_and_prove(p);
            EXPECT(p->proven > 0 && p->missed > 0 && p->proven + p->missed <= p->hits);
            ww_cluster_destroy(p->cluster);
        }
}
